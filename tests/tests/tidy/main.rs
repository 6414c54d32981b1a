//! The rules of the repository, checked by tests: dependencies, forbidden calls in pure code, and the form of sources.
//!
//! Every rule is a function from its input to a list of complaints, so that a test can show it a bad sample. Nothing is
//! built or fetched: `git ls-files`, `cargo metadata --no-deps` and `Cargo.lock` are enough.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod deploy;
mod documents;
mod layers;
mod lock;
mod manifests;
mod names;
mod places;
mod references;
mod rust;
mod tree;
