//! Activities that bring in what happens outside and turn it into signals.
//!
//! [`streams`] holds one adapter a kind of stream, [`extract`] reads the events they bring, [`purge`] drops old ones. All of it
//! stays data: text from outside never becomes an instruction or a path.

pub mod extract;
pub mod purge;
pub(crate) mod route;
pub mod streams;
