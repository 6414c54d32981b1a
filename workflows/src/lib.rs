//! What happens when: durable, deterministic workflows, and the activities they ask for.
//!
//! A workflow sees no clock, no randomness, no environment and no file but through an activity;
//! payloads carry ids, hashes and decisions. [`activities`] declares what is asked for, the crate
//! `steward-activities` implements it, so that drift is a compile error. Steps are never renamed,
//! moved or given other arguments without `patched` (S3-57): recorded histories hold that.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
pub mod activities;
mod argument;
mod signals;
mod steward;
mod tracker;
mod trust;

pub use action::resolve::AnswerWorkflow;
pub use action::resolve_batch::{
    AnswerTogetherWorkflow, MAX_TOGETHER, ResolveBatchInput, ResolveBatchItem, ResolveBatchOutput,
};
pub use argument::WorkflowArgument;
pub use signals::extract::ExtractWorkflow;
pub use signals::purge::PurgeWorkflow;
pub use signals::router::RouterWorkflow;
pub use steward::tick::StewardWorkflow;
pub use tracker::TrackerWorkflow;
pub use trust::calibrate::{CalibrateOutput, ReversalCalibrationWorkflow};
pub use trust::drill::{DrillOutput, ReversibilityDrillWorkflow};

/// Memo key by which a caller asks for a tick that changes nothing: `"shadow"`.
pub const CALLER_MEMO: &str = "caller";

/// Where clerk calls are taken up: anywhere in the fleet.
#[must_use]
pub fn clerk_queue(task_queue: &str) -> String {
    format!("{task_queue}-clerk")
}

/// The id of the router's schedule.
pub const ROUTER_SCHEDULE: &str = "al-signal-router";

/// What the ids of stewards' schedules begin with.
pub const SCHEDULE_PREFIX: &str = "al-steward-";

/// The id of the schedule on which trust is brought in line with what humans answered.
pub const CALIBRATION_SCHEDULE: &str = "al-reversal-calibration";

/// The schedule that drops old events, daily at 03:00 UTC.
pub const PURGE_SCHEDULE: &str = "al-stream-event-purge";

/// The id of the schedule that drills whether changes can be taken back, daily at 02:00 UTC.
pub const DRILL_SCHEDULE: &str = "al-reversibility-drill";

/// The id of the schedule on which new stream events are read.
pub const EXTRACT_SCHEDULE: &str = "al-signal-extract";

/// The id of the schedule on which what is owed to the tracker is delivered.
pub const TRACKER_SCHEDULE: &str = "al-tracker-outbox";

/// The id of the schedule of a matter's steward.
#[must_use]
pub fn schedule_id(matter_slug: &str) -> String {
    format!("{SCHEDULE_PREFIX}{matter_slug}")
}
