//! The tables of the index, and the scans that keep them in line with the files.
//!
//! The files are the truth: [`schema`] may discard the tables, and [`sync`] builds them again. Nothing here decides
//! anything.

pub(crate) mod check;
pub(crate) mod codec;
pub(crate) mod files;
pub(crate) mod filled;
pub(crate) mod identities;
pub(crate) mod links;
pub(crate) mod lost_notes;
pub(crate) mod mapped;
pub(crate) mod moves;
pub(crate) mod notes;
pub(crate) mod parse;
pub(crate) mod progress;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod sync;
pub(crate) mod words;
