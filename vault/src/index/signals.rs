//! Stream events and signals that wait.
//!
//! [`streams`] keeps the progress of each stream, and [`route`] lists the signals for the router. An open question
//! withholds signals about its record; [`doubt`] finds it.

pub(crate) mod doubt;
pub(crate) mod extract;
pub(crate) mod route;
pub(crate) mod streams;
