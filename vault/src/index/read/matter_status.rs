//! The status of a matter: its last tick, its current interval, and what the next tick would do with each task.
//!
//! Read-only. It uses the same rules as a tick, so it shows what `CursorsView::observe_due_tasks` would find.

use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::cursors::lease;
use crate::index::cursors::observe::{CheckDecision, ObservationQuery, decide_check};
use crate::index::cursors::task_check::{self, CheckCandidate};
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::Mode;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::{Cadence, TaskSkipReason};

/// The last stored tick of a matter. A tick under a stop or of a closed matter stores nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastTick {
    pub at: DateTime<Utc>,
    /// Tasks that went to a clerk.
    pub task_checks: u32,
    /// Due tasks without signals: they are still active, and no clerk was asked.
    pub quiet: u32,
    /// Due tasks beyond the limit of one tick.
    pub left_due: u32,
    /// Signals that were fresh for this tick.
    pub signals: u32,
    /// How many tasks were skipped, by reason.
    pub skipped: BTreeMap<TaskSkipReason, u32>,
    /// Each message names its file.
    pub problems: Vec<String>,
    pub interval: MatterInterval,
}

/// The interval between the ticks of a matter, with the reason for its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MatterInterval {
    pub seconds: u32,
    /// The interval if every tick has signals.
    pub base_seconds: u32,
    /// The longest interval.
    pub max_seconds: u32,
    /// Ticks in a row without signals.
    pub streak: u32,
    /// The number of further such ticks after which the interval grows; `None` if it is at its longest.
    pub grows_after: Option<u32>,
}

/// The status of a task, or of a matter that has fresh signals about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskCheckStatus {
    pub path: RecordPath,
    /// Untrusted.
    pub name: String,
    /// What a tick would do with the task now.
    pub turn: CheckDecision,
    /// The number of fresh signals.
    pub fresh: u32,
    pub last_check_at: Option<DateTime<Utc>>,
    /// The later of the date that a person wrote and the stored one; `None` means due.
    pub next_check_after: Option<DateTime<Utc>>,
    /// Checks in a row without signals.
    pub streak: u32,
}

#[derive(FromRow)]
struct LastTickColumns {
    observed_at: i64,
    streak: i64,
    looks: i64,
    quiet: i64,
    left_due: i64,
    signals: i64,
    skipped: String,
    problems: String,
}

/// The checks themselves may be a megabyte of JSON, so they are only counted.
const LAST_TICK: &str = "SELECT observed_at, streak, json_array_length(observation, '$.task_checks') AS looks,
        observation->>'quiet' AS quiet, observation->>'left_due' AS left_due, observation->>'signals' AS signals,
        observation->'skipped' AS skipped, observation->'problems' AS problems
    FROM matter_ticks WHERE matter = ?1";

const LAG: &str = "SELECT m.path, k.observed_at, COALESCE(k.streak, 0) FROM matters m
    LEFT JOIN matter_ticks k ON k.matter = m.path WHERE m.state = 'open' ORDER BY m.path";

impl MatterInterval {
    /// The interval of a matter after `streak` ticks in a row without signals.
    #[must_use]
    pub fn after_streak(streak: u32, cadence: &Cadence) -> Self {
        let seconds = cadence.matter_interval_seconds(streak);
        let per_step = cadence.looks_per_step.max(1);
        let until_next_step = per_step - streak % per_step;
        let grows = cadence.matter_interval_seconds(streak.saturating_add(until_next_step)) > seconds;
        Self {
            seconds,
            base_seconds: cadence.matter_seconds,
            max_seconds: cadence.matter_max_seconds.max(cadence.matter_seconds),
            streak,
            grows_after: grows.then_some(until_next_step),
        }
    }
}

/// How far ticks lag behind the intervals of their matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TickLag {
    /// Open matters whose last tick is longer ago than one and a half intervals.
    pub late: u64,
    /// The most overdue of them, and by how many seconds it exceeds its interval.
    pub worst: Option<(RecordPath, i64)>,
    /// Open matters that no tick has observed yet.
    pub never: u64,
    /// The newest tick of any open matter.
    pub newest: Option<DateTime<Utc>>,
}

impl ReadView<'_> {
    /// Measures how far ticks lag behind.
    ///
    /// `resumed_at` is the end of the last stop. For a matter that was last observed before it, the lag counts from
    /// then.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn measure_tick_lag(
        self,
        cadence: &Cadence,
        resumed_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<TickLag, IndexError> {
        let rows: Vec<(String, Option<i64>, i64)> =
            sqlx::query_as(LAG).fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let mut lag = TickLag::default();
        for (path, at, streak) in rows {
            let Some(at) = at.and_then(from_micros) else {
                lag.never += 1;
                continue;
            };
            lag.newest = lag.newest.max(Some(at));
            let interval = i64::from(cadence.matter_interval_seconds(u32::try_from(streak).unwrap_or(u32::MAX)));
            let at = resumed_at.map_or(at, |resumed_at| at.max(resumed_at));
            let overdue = (now - at).num_seconds() - interval;
            if overdue <= interval / 2 {
                continue;
            }
            lag.late += 1;
            if lag.worst.as_ref().is_none_or(|(_, worst)| overdue > *worst) {
                lag.worst = Some((self.index.parse_path(&path)?, overdue));
            }
        }
        Ok(lag)
    }

    /// The last tick of a matter; `None` before the first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn last_tick(self, matter: &RecordPath, cadence: &Cadence) -> Result<Option<LastTick>, IndexError> {
        let row: Option<LastTickColumns> = sqlx::query_as(LAST_TICK)
            .bind(matter.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let Some(row) = row else { return Ok(None) };
        let count = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Some(LastTick {
            at: from_micros(row.observed_at).unwrap_or_default(),
            task_checks: count(row.looks),
            quiet: count(row.quiet),
            left_due: count(row.left_due),
            signals: count(row.signals),
            skipped: serde_json::from_str(&row.skipped).map_err(|_| self.index.unknown_value_error(&row.skipped))?,
            problems: serde_json::from_str(&row.problems).map_err(|_| self.index.unknown_value_error(&row.problems))?,
            interval: MatterInterval::after_streak(count(row.streak), cadence),
        }))
    }

    /// Shows what a tick would do with each task of a matter, and with the matter itself if fresh signals are about it.
    ///
    /// The rows are in the order of paths, tasks first. `between` limits the tasks to those from the first path to
    /// the last. Nothing moves.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn preview_task_checks(
        self,
        query: &ObservationQuery,
        between: Option<(&RecordPath, &RecordPath)>,
    ) -> Result<Vec<TaskCheckStatus>, IndexError> {
        let mut tx = self.index.store.reader.begin().await.map_err(|e| self.index.sql_error(e))?;
        let policy: Option<Option<String>> = sqlx::query_scalar("SELECT policy FROM matters WHERE path = ?1")
            .bind(query.matter.as_str())
            .fetch_optional(&mut *tx)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let policy = policy.flatten().map(|policy| self.index.gates().parse_matter_policy(&policy)).transpose()?;
        let paths = between.map_or(task_check::ALL_TASKS, |(first, last)| first.as_str()..=last.as_str());
        let candidates = task_check::read_candidates(self.index, &mut tx, query, paths).await?;
        let leased = lease::list_tasks_leased_by_others(&mut tx, &query.check_id, query.now)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let quiet_hours = is_within_quiet_hours(query, policy.as_ref());
        Ok(candidates.into_iter().map(|c| build_task_check_status(query, &leased, quiet_hours, c)).collect())
    }
}

fn build_task_check_status(
    query: &ObservationQuery,
    leased: &BTreeSet<String>,
    quiet_hours: bool,
    candidate: CheckCandidate,
) -> TaskCheckStatus {
    TaskCheckStatus {
        turn: decide_check(query, leased, quiet_hours, &candidate),
        path: candidate.target,
        name: candidate.name,
        fresh: candidate.fresh,
        last_check_at: candidate.last_check.and_then(from_micros),
        next_check_after: candidate.next_check,
        streak: candidate.streak,
    }
}

/// Whether the matter's policy forbids changes at this time of day. In shadow mode nothing changes anyway.
pub(crate) fn is_within_quiet_hours(query: &ObservationQuery, policy: Option<&MatterPolicy>) -> bool {
    query.policy.mode > Mode::Shadow && policy.is_some_and(|policy| policy.quiet_until(query.now).is_some())
}
