//! Activities that read events from streams and turn them into signals.
//!
//! [`streams`] holds one adapter for each kind of stream. [`extract`] reads the events that they store, and [`purge`]
//! removes old ones. Text from a stream stays data: it never becomes an instruction or a path.

pub mod extract;
pub mod purge;
pub(crate) mod route;
pub mod streams;
