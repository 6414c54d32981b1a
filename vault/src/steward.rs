//! The rate guard's ledger, the timestamps of checks, and the descriptions of notes.
//!
//! [`guard`] reserves every clerk call before it is made. If its ledger is lost, it refuses calls. [`timestamps`]
//! writes the time of a task's last check into the task's file, if the operator enabled that.
//! [`description`] reads what a clerk sees of a note beside its fields, and [`eval`] keeps a measurement of the clerk.

pub mod description;
pub mod eval;
pub mod guard;
pub mod timestamps;
