//! Storage: records on disk, their index, the action journal, the audit chain, the rate guard's ledger.
//!
//! The files are the truth. [`files`] reads them inside a sandbox. Only [`action::writer`] writes records. [`index`] is
//! derived from the files and can be rebuilt. This crate must not know Temporal, a clerk or the network.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
pub mod files;
pub mod gates;
pub mod signals;
pub mod steward;
pub mod tracker;
pub mod trust;
/// Unit tests and integration tests share their fixtures under this name.
#[cfg(test)]
extern crate self as steward_vault;

pub mod index;
