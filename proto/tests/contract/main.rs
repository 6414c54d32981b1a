//! How the contract is held: numbers that stay, comments that say who may call, and buf's own rules.
#![allow(clippy::unwrap_used)]

mod comments;
mod descriptors;
mod lint;
mod refusals;
mod released;
