//! Stream events and signals that wait.
//!
//! [`streams`] says where each stream stands, [`route`] which signals the router takes up. A question that is open
//! withholds what it is about.

pub(crate) mod doubt;
pub(crate) mod extract;
pub(crate) mod route;
pub(crate) mod streams;
