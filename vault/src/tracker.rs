//! The progress of deliveries to the tracker, as files.
//!
//! [`outbox`] keeps one small file for each delivery, so that a delivery may be interrupted at any step. The audit
//! records say what is owed to the tracker. These files say how far a delivery has come.

pub mod outbox;
