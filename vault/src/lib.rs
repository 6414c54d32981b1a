//! Storage: records on disk, their index, the action journal, the audit chain, the rate guard's ledger.
//!
//! The files are the truth. [`files`] reads them inside a sandbox, [`action::writer`] is the only thing that writes
//! records, [`index`] is derived from them and can be rebuilt. Nothing here knows Temporal, a clerk or the network.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
pub mod files;
pub mod gates;
pub mod signals;
pub mod steward;
pub mod tracker;
pub mod trust;
/// Tests inside and beside this crate share their fixtures.
#[cfg(test)]
extern crate self as steward_vault;

pub mod index;
