//! The records of the vault that trust is computed from.
//!
//! [`drill`] makes and undoes every class of change on a canary and compares the bytes. The other module files outcomes
//! that change no task.

pub mod drill;
pub(crate) mod outcome;
