//! What the server asks of Temporal.
//!
//! [`resolve`] starts the workflow of a person's resolution. The other modules ask for the state of schedules and workers;
//! they change nothing.

pub(crate) mod client;
pub(crate) mod health;
pub mod resolve;
