//! Activities that resolve an action: undo, confirm, dismiss.
//!
//! They run in the process that holds the vault, because only that process writes it. A repeated call finds the
//! first one's result.

pub(crate) mod resolve;
