//! Signals: extraction, routing and the purge of old events, as workflows.
//!
//! [`extract`] turns stream events into signals. [`router`] handles signals that no steward judges. [`purge`] removes
//! old events.

pub(crate) mod extract;
pub(crate) mod purge;
pub(crate) mod router;
