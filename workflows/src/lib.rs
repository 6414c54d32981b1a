//! Durable, deterministic workflows, and the declarations of their activities.
//!
//! A workflow sees no clock, randomness, environment or file but through an activity. Payloads carry ids, hashes and
//! decisions. [`activities`] declares the activities, and the crate `steward-activities` implements them, so that drift
//! is a compile error. Steps must not be renamed, moved or given other arguments without `patched` (S3-57). Recorded
//! histories test that.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
pub mod activities;
mod argument;
pub mod registry;
mod signals;
mod steward;
mod tracker;
mod trust;
mod wiki;

use steward_domain::record::path::{RecordKind, RecordPath};

pub use action::resolve::ResolveWorkflow;
pub use action::resolve_batch::{
    MAX_BATCH_ACTIONS, ResolveBatchInput, ResolveBatchItem, ResolveBatchOutput, ResolveBatchWorkflow,
};
pub use argument::WorkflowArgument;
pub use signals::extract::ExtractWorkflow;
pub use signals::purge::PurgeWorkflow;
pub use signals::router::RouterWorkflow;
pub use steward::eval::{ClerkEvalInput, ClerkEvalOutput, ClerkEvalStep, ClerkEvalWorkflow};
pub use steward::tick::StewardWorkflow;
pub use steward_domain::fleet::names::clerk_queue;
pub use tracker::TrackerWorkflow;
pub use trust::calibrate::{CalibrateOutput, ReversalCalibrationWorkflow};
pub use trust::drill::{DrillOutput, ReversibilityDrillWorkflow};
pub use trust::set_ceiling::{SetCeilingInput, SetCeilingOutput, SetCeilingWorkflow};
pub use wiki::assistant::{AssistantRunInput, AssistantRunWorkflow};
pub use wiki::change::{WikiRequest, WikiRunInput, WikiRunOutput, WikiRunWorkflow};
pub use wiki::eval::{EvalInput, EvalOutput, EvalTurnInput, EvalWorkflow};
pub use wiki::file_back::{FileAnswerInput, FileBackWorkflow};
pub use wiki::ingest::{
    CommitIngestOutput, IngestInput, IngestOutput, IngestWorkflow, SendTurnInput, SendTurnOutput, StageIngestOutput,
};
pub use wiki::query::{AnswerQuestionInput, AnswerQuestionOutput, QueryInput, QueryOutput, QueryWorkflow};
pub use wiki::review::ReviewWorkflow;

/// The search attribute of a matter's schedule and runs: the path of the matter, a keyword. It is set at the start of a run.
pub const MATTER_ATTRIBUTE: &str = "StewardMatter";
/// The search attribute of a run that evaluated something: how far its furthest decision went, a keyword.
pub const DISPOSITION_ATTRIBUTE: &str = "StewardDisposition";
/// The search attribute of such a run that says whether it changed a record, a bool.
pub const CHANGED_ATTRIBUTE: &str = "StewardChanged";

/// Memo key with which a caller requests a tick that changes nothing; its value is then `"shadow"`.
pub const CALLER_MEMO: &str = "caller";

/// The id of the router's schedule.
pub const ROUTER_SCHEDULE: &str = "al-signal-router";

/// The prefix of the ids of stewards' schedules.
pub const SCHEDULE_PREFIX: &str = "al-steward-";

/// The id of the schedule that calibrates trust from people's resolutions.
pub const CALIBRATION_SCHEDULE: &str = "al-reversal-calibration";

/// The id of the schedule that removes old events, daily at 03:00 UTC.
pub const PURGE_SCHEDULE: &str = "al-stream-event-purge";

/// The id of the schedule that drills whether changes can be undone, daily at 02:00 UTC.
pub const DRILL_SCHEDULE: &str = "al-reversibility-drill";

/// The id of the schedule that extracts signals from new stream events.
pub const EXTRACT_SCHEDULE: &str = "al-signal-extract";

/// The id of the schedule that delivers debts to the tracker.
pub const TRACKER_SCHEDULE: &str = "al-tracker-outbox";

/// The plain id of the schedule of a matter's steward: `al-steward-<slug>` for `matter/<slug>.md`, and
/// `al-steward-<part>-<hash8>` for any other note ([`RecordPath::plain_name`]).
#[must_use]
pub fn schedule_id(matter: &RecordPath) -> String {
    format!("{SCHEDULE_PREFIX}{}", matter.plain_name(RecordKind::Matter))
}
