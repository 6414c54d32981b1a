//! Wikis on disk: their folder, and the chain of manifests above a view.
//!
//! Any folder can be read, in a vault or not. [`create`] writes the files of a new wiki, and [`commit`] the changes of a run,
//! which [`revert`] takes back.

pub mod chain;
pub mod commit;
pub mod create;
pub mod folder;
pub mod revert;
