//! Changes of a wiki as workflows, so that a request survives a crash.
//!
//! [`change`] carries out what a person asked for in one step. [`ingest`] makes pages of a source: it is staged, judged and
//! committed, and staged again if a page changed meanwhile. Neither holds a text of a page or a source.

pub(crate) mod change;
pub(crate) mod ingest;

use std::time::Duration;
use temporalio_common::ActivityCloseTimeouts;
use temporalio_workflow::{ActivityOptions, RetryPolicy};

/// Longest time of one call: 5 min. It reads every page of a wiki.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// Longest time of all tries together: 1 h.
const ALL_TRIES: Duration = Duration::from_secs(3_600);
/// A process without a heartbeat for this long counts as dead: 10 s.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of every activity of a wiki. A repeat finds what an earlier try did.
fn wiki_activity_options(summary: &str) -> ActivityOptions {
    let limits =
        ActivityCloseTimeouts::ScheduleAndStartToClose { start_to_close: CALL_TIMEOUT, schedule_to_close: ALL_TRIES };
    ActivityOptions::with_close_timeouts(limits)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(5).build())
        .summary(summary.to_owned())
        .build()
}
