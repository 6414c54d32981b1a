//! What the vault records about trust.
//!
//! [`drill`] makes and undoes every class of change on a canary and compares the bytes. The other module records outcomes
//! that change no task.

pub mod drill;
pub(crate) mod outcome;
