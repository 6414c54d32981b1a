//! The rate guard's ledger, and the timestamps of checks.
//!
//! [`guard`] reserves every clerk call before it is made. If its ledger is lost, it refuses calls. [`timestamps`]
//! writes the time of a task's last check into the task's file, if the operator enabled that.

pub mod guard;
pub mod timestamps;
