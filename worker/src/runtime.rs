//! The long-running parts of a process: workers, streams, the web server and their loops.
//!
//! [`engine`] wires them together for the process that holds a vault. Each part shuts down cleanly when the process is
//! asked to stop.

pub(crate) mod clerks;
pub(crate) mod engine;
pub(crate) mod reading_progress;
pub(crate) mod sdk_workers;
pub(crate) mod streams;
pub(crate) mod supervisor;
pub(crate) mod timestamps;
pub(crate) mod web;
pub(crate) mod webhooks;
