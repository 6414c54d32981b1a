//! What is kept: records on disk, their index, the action journal, the audit chain, the guard.
//!
//! The files are the truth. [`root`] reads them inside a sandbox, [`keeper`] is the only thing that
//! writes them, [`index`] is derived from them and can be rebuilt. Nothing here knows Temporal, a
//! clerk or the network.
#![cfg_attr(test, allow(clippy::unwrap_used))]

/// Tests inside and beside this crate share their fixtures.
#[cfg(test)]
extern crate self as steward_vault;

pub mod answer;
mod apply;
pub mod brake;
pub mod chain;
pub mod crash;
pub mod create;
pub mod disk;
pub mod drill;
mod durable;
pub mod guard;
pub mod inbox;
pub mod index;
mod journal;
pub mod keeper;
mod lines;
mod note;
pub mod operator;
pub mod outbox;
mod outcome;
mod past;
pub mod preview;
pub mod root;
pub mod stamp;
mod swap;
pub mod watch;
