//! Replays recorded runs against this build: a run that an older build began must continue.
//!
//! `tests/histories/` holds recordings of real servers. Files are added, never edited. To add one, write a scene in
//! `scenes.rs` and run `make histories`, which records the missing ones.
#![allow(clippy::unwrap_used, reason = "tests")]

mod assistant;
mod recorded;
mod scenes;
mod variants;
mod wiki_scenes;
