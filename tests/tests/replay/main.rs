//! Recorded runs against this build: what was begun by an older one must go on.
//!
//! `tests/histories/` holds what real servers recorded; files are added, never edited. To add one,
//! write a scene in `scenes.rs` and run `make histories`, which records what is not there yet.
#![allow(clippy::unwrap_used, reason = "tests")]

mod recorded;
mod scenes;
mod variants;
