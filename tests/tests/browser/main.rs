//! A real Chromium on the pages of the real binary: what a person sees, clicks and types.
//!
//! If there is no Chromium, the tests print it and pass. Screenshots of every page are in `target/screenshots/`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod answers;
mod forged;
mod house;
mod keys;
mod login;
mod names;
mod naughty;
mod power;
mod senders;
mod size;
mod sound;
mod stop;
mod teaching;
mod temporal;
mod trust_report;
mod undo;
mod web_app;
mod wikis;
