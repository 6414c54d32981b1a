//! What the steward keeps outside the records: the rate guard's ledger and the timestamps of checks.
//!
//! [`guard`] reserves every clerk call before it is made. Its loss fails closed. [`timestamps`] writes when a task was last
//! checked into its file, where the operator asked for it.

pub mod guard;
pub mod timestamps;
