//! A person's resolution as a workflow, so that a click survives a crash.
//!
//! [`resolve`] takes one undo, confirm or dismiss, [`resolve_batch`] takes one for many actions. Both only call activities of
//! the process that holds the vault.

pub(crate) mod resolve;
pub(crate) mod resolve_batch;
