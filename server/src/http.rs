//! The HTTP server: its address, the router, and what every request goes through.
//!
//! [`app`] puts the router together, [`listen`] serves it until it is told to end. Authentication is in
//! [`crate::access`].

pub mod app;
pub mod holder;
pub mod listen;
pub(crate) mod operator_log;
pub mod serving;
