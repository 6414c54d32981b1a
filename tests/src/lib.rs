//! What the tests on a real Temporal server share.
//!
//! Every test has its own [`world::World`]: a vault in a temporary folder and a namespace on the one development server
//! of the test run. The real binary runs as a child process; of our environment it sees only what the test sets.
//! Waiting is polling with a deadline. All processes end with the test run, even if it panics or is killed ([`run`]).
#![allow(clippy::unwrap_used, reason = "a harness that cannot go on says where, and the test fails")]

pub mod api;
pub mod attacker;
pub mod browser;
pub mod certificate;
pub mod clerk;
pub mod files;
pub mod fleet;
pub mod former;
pub mod gate;
pub mod history;
pub mod leaks;
pub mod moves;
pub mod past;
pub mod pdf;
pub mod plane;
pub mod postgres;
pub mod process_clock;
pub mod provider;
pub mod rehearsal;
pub mod rpc;
pub mod run;
pub mod runs;
pub mod server;
pub mod steward;
pub mod supervisor;
pub mod vault;
pub mod wait;
pub mod world;
