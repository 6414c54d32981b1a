//! What touches the world: the activities that workflows declare, implemented.
//!
//! [`vault`] runs in the process that holds the vault's lock, next to the index, the ledger and
//! the keeper, and so does [`extract`], which reads stream events there. [`judge`] runs anywhere in the
//! fleet and knows nothing but the clerk. [`streams`] brings in what happens outside, [`tracker`] tells
//! a tracker what was done. Which trouble is worth another try is decided in one place, `failure`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod calibrate;
pub mod clerk;
mod drill;
pub mod extract;
mod failure;
pub mod judge;
pub mod purge;
pub mod streams;
pub mod tracker;
pub mod vault;
