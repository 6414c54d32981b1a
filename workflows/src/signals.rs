//! Signals: extraction, routing and the purge of old events, as workflows.
//!
//! [`extract`] turns stream events into signals, [`router`] acts on signals that no steward judges, [`purge`] drops events
//! that have served.

pub(crate) mod extract;
pub(crate) mod purge;
pub(crate) mod router;
