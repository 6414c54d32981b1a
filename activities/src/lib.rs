//! Side effects: the activities that workflows declare, implemented.
//!
//! [`vault`] runs in the process that holds the vault's lock, next to the index, the ledger and the vault writer. The
//! clerk's activity in [`steward`] runs on any worker and knows nothing but the clerk. [`signals`] brings in what
//! happens outside, [`tracker`] reports to a tracker what was done. Which errors are worth a retry is decided in one
//! place, `failure`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
mod failure;
pub mod signals;
pub mod steward;
pub mod tracker;
mod trust;
pub mod vault;
