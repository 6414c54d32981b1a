//! Activities that resolve an action: undo, confirm, dismiss.
//!
//! They run in the process that holds the vault, because only that process writes it. A repeated call returns the
//! result of the first one.

pub mod resolve;
