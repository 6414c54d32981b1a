//! Rules: the types and decisions of Steward, pure and deterministic.
//!
//! Nothing here touches a file, the network, a clock or randomness: time is always an argument. Each folder is one
//! concept, and the other crates have a folder of the same name: [`record`] (what a vault holds), [`action`] (what is
//! decided, recorded and undone), [`gates`] (what must be open for it), [`steward`] (tick, clerk, rate guard),
//! [`signals`] (what arrives from outside), [`trust`] (what is learned from people), [`tracker`] (a task's issue
//! elsewhere).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
pub mod gates;
pub mod record;
pub mod signals;
pub mod steward;
pub mod time;
pub mod tracker;
pub mod trust;
