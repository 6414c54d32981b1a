//! A tick: which tasks of a matter are due, which need a clerk, and when the next check is.
//!
//! The rules are pure. They read facts from the index and decide nothing about a record.
//! A due task that needs a clerk becomes a [`TaskCheck`], which the workflow then evaluates.

use crate::action::plan::{ActionId, ContentHash, Disposition};
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{Ceiling, DecisionPolicy};
use crate::record::entity::{RecordState, SurfaceClass, Task};
use crate::record::path::RecordPath;
use crate::steward::clerk::{AttributedVerdict, ClerkQuestion, Judgement};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most tasks of one matter that one tick asks a clerk about. The others stay due.
pub const MAX_CHECKS_PER_TICK: usize = 64;

/// How often matters and tasks are checked, in seconds. Every value is a configuration key of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cadence {
    /// The interval of a matter's schedule. Default 1,800 s.
    pub matter_seconds: u32,
    /// The longest interval of a matter without signals. Default 14,400 s.
    pub matter_max_seconds: u32,
    /// The interval of a task of `surface_class: high`. Default 1,800 s.
    pub task_high_seconds: u32,
    /// The interval of a task that is overdue or due within 24 h. Default 3,600 s.
    pub task_soon_seconds: u32,
    /// The interval of any other task. Default 14,400 s.
    pub task_seconds: u32,
    /// The longest interval of a task without signals. Default 86,400 s.
    pub task_max_seconds: u32,
    /// The number of checks in a row without signals after which an interval doubles. Default 3.
    pub looks_per_step: u32,
}

impl Default for Cadence {
    fn default() -> Self {
        Self {
            matter_seconds: 1_800,
            matter_max_seconds: 14_400,
            task_high_seconds: 1_800,
            task_soon_seconds: 3_600,
            task_seconds: 14_400,
            task_max_seconds: 86_400,
            looks_per_step: 3,
        }
    }
}

impl Cadence {
    /// The interval of a matter's schedule after `streak` ticks in a row without signals (S3-10).
    #[must_use]
    pub fn matter_interval_seconds(&self, streak: u32) -> u32 {
        self.double_interval(self.matter_seconds, streak, self.matter_max_seconds)
    }

    /// When a task is checked next (S3-27), or `None` if it is done or archived.
    #[must_use]
    pub fn next_check(&self, task: &TaskClock, streak: u32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match task.state {
            RecordState::Done | RecordState::Archived => return None,
            RecordState::Open => {}
        }
        if let Some(until) = task.snoozed_until.filter(|until| *until > now) {
            return Some(until);
        }
        let soon = task.due.is_some_and(|due| due <= now + TimeDelta::hours(24));
        let base = match task.surface_class {
            SurfaceClass::High => self.task_high_seconds,
            SurfaceClass::Normal | SurfaceClass::Low if soon => self.task_soon_seconds,
            SurfaceClass::Normal | SurfaceClass::Low => self.task_seconds,
        };
        let wait = self.double_interval(base, streak, self.task_max_seconds);
        Some(now + TimeDelta::seconds(i64::from(wait)))
    }

    fn double_interval(&self, base: u32, streak: u32, max: u32) -> u32 {
        let steps = streak / self.looks_per_step.max(1);
        let factor = 1u32.checked_shl(steps).unwrap_or(u32::MAX);
        base.saturating_mul(factor).min(max.max(base))
    }
}

/// The fields of a task on which its next check depends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskClock {
    pub state: RecordState,
    pub surface_class: SurfaceClass,
    pub due: Option<DateTime<Utc>>,
    pub snoozed_until: Option<DateTime<Utc>>,
}

impl From<&Task> for TaskClock {
    fn from(task: &Task) -> Self {
        Self { state: task.state, surface_class: task.surface_class, due: task.due, snoozed_until: task.snoozed_until }
    }
}

/// Why a tick skipped a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSkipReason {
    Done,
    Archived,
    Snoozed,
    /// The matter's policy forbids changes at this time of day. The task stays due.
    QuietHours,
    NotDue,
    /// Another tick of the matter holds the task's lease.
    BeingJudged,
}

/// Checks whether a task is due now (S3-21).
///
/// `next_check` is the later of the file's date and the stored one. A missing date means that the task is due.
/// A fresh signal makes a task due at once, unless a human snoozed it.
///
/// # Errors
/// The reason to skip the task.
pub fn check_due(
    task: &TaskClock,
    next_check: Option<DateTime<Utc>>,
    has_fresh_signals: bool,
    now: DateTime<Utc>,
) -> Result<(), TaskSkipReason> {
    match task.state {
        RecordState::Done => return Err(TaskSkipReason::Done),
        RecordState::Archived => return Err(TaskSkipReason::Archived),
        RecordState::Open => {}
    }
    if task.snoozed_until.is_some_and(|until| until > now) {
        return Err(TaskSkipReason::Snoozed);
    }
    if has_fresh_signals || next_check.is_none_or(|at| at <= now) {
        return Ok(());
    }
    Err(TaskSkipReason::NotDue)
}

/// Whether a due task needs a clerk (S3-23). Without one it counts as still active.
#[must_use]
pub fn needs_clerk(surface_class: SurfaceClass, has_fresh_signals: bool) -> bool {
    has_fresh_signals || surface_class == SurfaceClass::High
}

/// One task that needs a clerk, with everything that the decision needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCheck {
    pub question: ClerkQuestion,
    /// The content of the task's file at this check.
    pub before: ContentHash,
    /// The verbatim text of the field `state`, or `None` if the file has no such field.
    pub state_as_written: Option<String>,
    /// The ceiling that a human set for the matter.
    pub matter_ceiling: Ceiling,
    /// The policies of the other matters that the task belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_policies: Vec<MatterPolicy>,
    /// An earlier answer to the same question. If there is one, no clerk is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_verdict: Option<AttributedVerdict>,
}

/// What one check of one matter found. It is the output of the tick's first and often only activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatterObservation {
    pub matter: RecordPath,
    pub observed_at: DateTime<Utc>,
    pub policy: DecisionPolicy,
    /// The policy in the matter's own frontmatter, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matter_policy: Option<MatterPolicy>,
    /// An operator stopped the vault: no clerk is asked and no timestamp is written.
    pub stopped: bool,
    /// Tasks that need a clerk, ordered by their last check, the oldest first.
    pub task_checks: Vec<TaskCheck>,
    /// The number of due tasks without signals. They are still active with confidence 1.0, and no clerk was asked.
    pub quiet: u32,
    /// The number of due tasks beyond the limit of one tick. They stay due.
    pub left_due: u32,
    pub skipped: BTreeMap<TaskSkipReason, u32>,
    pub signals: u32,
    /// Ticks in a row without signals, this one included.
    pub streak: u32,
    /// The interval that the matter's schedule should have now, in seconds.
    pub interval_seconds: u32,
    /// The problems of malformed records. Each names its file.
    pub problems: Vec<String>,
    #[serde(default)]
    pub display: RunDisplay,
}

/// How the Temporal UI can show a run. It comes with the observation, because a workflow sees no server and no setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDisplay {
    /// Whether the server has the search attributes of runs.
    #[serde(default)]
    pub has_search_attributes: bool,
    /// The address of the dashboard, as in `http://127.0.0.1:8420`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dashboard: Option<String>,
}

/// What one tick did. It is the output of `StewardWorkflow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TickReport {
    pub matter: String,
    /// The evaluated tasks of this tick, in order.
    pub evaluated: Vec<TaskCheckReport>,
    pub quiet: u32,
    pub skipped: BTreeMap<TaskSkipReason, u32>,
    pub left_due: u32,
    pub signals: u32,
    pub interval_seconds: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// How one task's evaluation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCheckReport {
    pub task: RecordPath,
    #[serde(flatten)]
    pub ended: TaskCheckOutcome,
}

/// The possible ends of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskCheckOutcome {
    /// A decision was made and recorded.
    Decided { decision: Judgement, confidence: f64, disposition: Disposition, action_id: ActionId },
    /// The rate guard refused the call. The confidence is 0.3, and this is no check.
    RateGuarded { confidence: f64, reason: String },
    /// The clerk gave no answer. The task stays due.
    ClerkFailed { reason: String },
    /// A human changed the record meanwhile. The task stays due.
    ChangedMeanwhile,
    /// The time of the run was used up. The task stays due.
    NoTimeLeft,
    /// An operator stopped the vault. Nothing was recorded, and the task stays due.
    Stopped,
    /// Any other error. The task stays due.
    Error { reason: String },
}

#[cfg(test)]
mod tests;
