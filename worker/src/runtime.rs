//! The long-running parts of a process: workers, streams, the web server and their loops.
//!
//! [`engine`] wires them together for the process that holds a vault. Each part ends in good order when the process is
//! told to end.

pub(crate) mod clerks;
pub(crate) mod engine;
pub(crate) mod reading_progress;
pub(crate) mod sdk_workers;
pub(crate) mod streams;
pub(crate) mod timestamps;
pub(crate) mod web;
pub(crate) mod webhooks;
