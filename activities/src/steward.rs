//! The activities of a tick: observe, reserve, judge, settle, apply and release.
//!
//! [`tick`] has those that touch the vault. [`judge`] is the only one that may leave the machine; [`clerks`] are what it
//! asks. An answer about the same evidence is remembered, so it costs no second call. [`eval`] asks labelled cases.

pub(crate) mod clerk_answers;
pub mod clerks;
pub mod eval;
pub mod judge;
pub mod tick;
