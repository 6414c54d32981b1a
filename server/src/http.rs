//! The HTTP server: its address, its router, and the layers that every request passes.
//!
//! [`app`] builds the router, and [`settings`] holds what the interfaces show of the configuration. [`listen`] serves it
//! until the process ends. [`holder`] records which process holds the vault and where it listens, and [`pulse`] whether
//! its main loop turns. Authentication is in [`crate::access`].

pub mod app;
pub mod dependencies;
pub mod holder;
pub mod listen;
pub(crate) mod operator_log;
pub mod pulse;
pub mod serving;
pub mod settings;
pub(crate) mod starting;
