//! What is owed to the tracker, as files.
//!
//! [`outbox`] keeps one small file for each delivery, so that a delivery may be cut short at any step. The audit records
//! say what is owed; these files say how far it has come.

pub mod outbox;
