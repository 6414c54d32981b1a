//! Changes of a wiki as workflows, so that a request survives a crash.
//!
//! [`change`] carries out what a person asked for in one step. [`ingest`] makes pages of a source: it is staged, judged and
//! committed, and staged again if a page changed meanwhile. [`query`] answers a question, [`eval`] measures a verifier, [`review`] has pages read for what
//! is wrong, [`file_back`] makes a page of an answer, and [`assistant`] carries out what an assistant wrote. None holds a text of a page or a source.

pub(crate) mod assistant;
pub(crate) mod change;
pub(crate) mod eval;
pub(crate) mod file_back;
pub(crate) mod ingest;
pub(crate) mod query;
pub(crate) mod review;

use crate::steward::tick::long_activity_options;
use std::time::Duration;
use temporalio_workflow::ActivityOptions;

/// Longest time of one call: 5 min. It reads every page of a wiki.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// The options of every activity of a wiki.
fn wiki_activity_options(summary: &str) -> ActivityOptions {
    long_activity_options(summary, CALL_TIMEOUT)
}

/// The options of one turn of a model.
fn wiki_turn_options(turn: u32, limit: Duration) -> ActivityOptions {
    long_activity_options(&format!("turn {turn}"), limit)
}
