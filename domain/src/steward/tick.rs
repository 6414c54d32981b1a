//! When a task or a matter is looked at: due, skipped, quiet, and how long until the next time.
//!
//! Pure rules over what the index and the state store know. They decide nothing about a record;
//! a task that needs a clerk becomes a [`TaskCheck`], which is what a workflow carries on with.

use crate::action::plan::{ActionId, ContentHash, Disposition};
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{Ceiling, DecisionPolicy};
use crate::record::entity::{RecordState, SurfaceClass, Task};
use crate::record::path::RecordPath;
use crate::steward::clerk::{AttributedVerdict, ClerkQuestion, Judgement};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most tasks of one matter that one tick asks a clerk about; the rest stay due.
pub const MAX_LOOKS: usize = 64;

/// How often things are looked at, in seconds. Every value is a configuration key of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cadence {
    /// Interval of a matter's schedule: 1,800 s.
    pub matter_seconds: u32,
    /// The longest a quiet matter's interval grows: 14,400 s.
    pub matter_max_seconds: u32,
    /// Next check of a task of `surface_class: high`: 1,800 s.
    pub task_high_seconds: u32,
    /// Next check of a task that is overdue or due within 24 h: 3,600 s.
    pub task_soon_seconds: u32,
    /// Next check of any other task: 14,400 s.
    pub task_seconds: u32,
    /// The longest a quiet task's next check is put off: 86,400 s.
    pub task_max_seconds: u32,
    /// Looks in a row without signals after which an interval doubles: 3.
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
    /// The interval of a matter's schedule after so many ticks in a row without signals (S3-10).
    #[must_use]
    pub fn matter_interval_seconds(&self, streak: u32) -> u32 {
        self.double_interval(self.matter_seconds, streak, self.matter_max_seconds)
    }

    /// When a task is looked at next (S3-27); `None` once it is done or archived.
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

/// The fields of a task that say when it is looked at.
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

/// Why a task was passed over in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSkipReason {
    Done,
    Archived,
    Snoozed,
    /// Its matter's note wants nothing changed at this time of day; it stays due.
    QuietHours,
    NotDue,
    /// Another tick of the matter is judging it.
    BeingJudged,
}

/// Whether a task is looked at now.
///
/// `next_check` is the later of what a human wrote and what we stored; missing means due. A fresh
/// signal makes a task due at once, unless a human snoozed it (S3-21).
///
/// # Errors
/// The reason to pass it over.
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

/// Whether a due task needs a clerk (S3-23); otherwise it is still active and nobody is asked.
#[must_use]
pub fn needs_clerk(surface_class: SurfaceClass, has_fresh_signals: bool) -> bool {
    has_fresh_signals || surface_class == SurfaceClass::High
}

/// One task that needs a clerk, with all that the decision will need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskCheck {
    pub question: ClerkQuestion,
    /// The content of the task's file that this look saw.
    pub before: ContentHash,
    /// The text of the field `state`, as it stands in the file; `None` where there is none.
    pub state_as_written: Option<String>,
    /// What the matter's human allows.
    pub matter_ceiling: Ceiling,
    /// What was answered to this evidence before; then nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<AttributedVerdict>,
}

/// What one look at one matter found (the result of the tick's first and often only activity).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatterObservation {
    pub matter: RecordPath,
    pub observed_at: DateTime<Utc>,
    pub policy: DecisionPolicy,
    /// What the matter's own note allows, if it says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<MatterPolicy>,
    /// An operator pulled the brake: nobody is asked and nothing is stamped.
    pub stopped: bool,
    /// Tasks that need a clerk, oldest look first.
    pub looks: Vec<TaskCheck>,
    /// Due tasks without signals: still active, confidence 1.0, nobody was asked.
    pub quiet: u32,
    /// Due tasks beyond what one tick takes; they stay due.
    pub left_due: u32,
    pub skipped: BTreeMap<TaskSkipReason, u32>,
    pub signals: u32,
    /// Ticks in a row without signals, this one included.
    pub streak: u32,
    /// The interval the matter's schedule should have now, in seconds.
    pub interval_seconds: u32,
    /// Records that could not be understood; each names its file.
    pub problems: Vec<String>,
}

/// What one tick did; the result of `StewardWorkflow`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TickReport {
    pub matter: String,
    /// Clerk decisions of this tick, in the order in which they were made.
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

/// The ways an evaluation ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TaskCheckOutcome {
    /// A decision was made and filed.
    Decided { decision: Judgement, confidence: f64, landing: Disposition, action_id: ActionId },
    /// The rate guard refused; confidence 0.3, does not count as a look.
    RateGuarded { confidence: f64, reason: String },
    /// The clerk gave no answer; the cursor did not move.
    ClerkFailed { reason: String },
    /// A human changed the record meanwhile; it stays due.
    ChangedMeanwhile,
    /// The run's time was used up; it stays due.
    NoTimeLeft,
    /// An operator stopped the fleet; nothing was filed and it stays due.
    Stopped,
    /// Something else went wrong; it stays due.
    Error { reason: String },
}

#[cfg(test)]
mod tests;
