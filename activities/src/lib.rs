//! Side effects: implements the activities that the workflows declare.
//!
//! [`vault`] runs in the process that holds the vault's lock, next to the index, the ledger and the vault writer. The
//! clerk's activity in [`steward`] runs on any worker and knows only the clerk. [`signals`] reads streams and turns
//! their events into signals. [`tracker`] reports completed changes to an issue tracker. [`wiki`] changes wikis. `failure` alone decides which
//! errors are retried.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
mod failure;
pub mod signals;
pub mod steward;
pub mod tracker;
pub mod trust;
pub mod vault;
pub mod wiki;
