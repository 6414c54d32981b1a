//! What the tests on a real Temporal server share.
//!
//! Every test has a [`world::World`] of its own: a vault in a temporary folder, a namespace on the
//! one development server of the test run, and the real binary, started as a child process with
//! nothing of our environment but what the test sets. Waiting is polling with a deadline. What a
//! test run starts ends with it, also when it panics or is killed ([`run`]).
#![allow(clippy::unwrap_used, reason = "a harness that cannot go on says where, and the test fails")]

pub mod api;
pub mod attacker;
pub mod browser;
pub mod clerk;
pub mod files;
pub mod history;
pub mod past;
pub mod plane;
pub mod rpc;
pub mod run;
pub mod server;
pub mod steward;
pub mod vault;
pub mod wait;
pub mod world;
