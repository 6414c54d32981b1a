//! The server's requests to Temporal.
//!
//! [`resolve`] starts the workflow of a person's resolution, unless [`service_pause`] says why not, [`trigger`] a
//! check, and [`wiki`] a change of a wiki. The other modules read the state of schedules and workers and change nothing.

pub(crate) mod client;
pub(crate) mod health;
pub mod resolve;
pub mod service_pause;
pub(crate) mod trigger;
pub mod wiki;
