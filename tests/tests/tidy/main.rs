//! The house rules, held by machine: who may depend on whom, what pure code may call, how sources look.
//!
//! Every rule is a function from what it reads to a list of complaints, so that each can be shown a
//! bad sample. Nothing is built and nothing fetched: `git ls-files`, `cargo metadata --no-deps` and
//! `Cargo.lock` tell everything.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod layers;
mod lock;
mod manifests;
mod names;
mod places;
mod references;
mod rust;
mod tree;
