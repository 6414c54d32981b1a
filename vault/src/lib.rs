//! Storage: records on disk, their index, the action journal, the audit chain, the rate guard's ledger. The files are the
//! truth, and only [`action::writer`] writes records. This crate must not know Temporal, a clerk or the network.
//!
//! | folder | contents |
//! |---|---|
//! | [`files`] | the vault's folder as a sandbox, durable writes, the file watcher, the vault's identity |
//! | [`backup`] | copies of a vault that a person can read without Steward, and restoring one |
//! | [`action`] | the one write path, the audit chain, resolutions, recovery after a crash |
//! | [`index`] | the index, derived from the files, and the cursors of stewards and streams |
//! | [`gates`] | the stop file |
//! | [`signals`] | the drop folder, and the status fields of events and signals |
//! | [`steward`] | the rate guard's ledger, and the timestamp write-back |
//! | [`tracker`] | the progress of deliveries to the tracker |
//! | [`trust`] | the nightly drill, and records of outcomes |
//! | [`wiki`] | the folder of a wiki, and the manifests above a view |
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
pub mod backup;
pub mod files;
pub mod gates;
pub mod signals;
pub mod steward;
pub mod tracker;
pub mod trust;
pub mod wiki;
/// Unit tests and integration tests share their fixtures under this name.
#[cfg(test)]
extern crate self as steward_vault;

pub mod index;
