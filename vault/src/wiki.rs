//! Wikis on disk: their folder, and the chain of manifests above a view.
//!
//! Any folder can be read, in a vault or not. Only [`create`] writes, and only files that are new.

pub mod chain;
pub mod create;
pub mod folder;
