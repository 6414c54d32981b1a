//! Where a matter stands with its steward: its last tick, why it comes as often as it does, and what the next one would
//! pass over.
//!
//! Read-only, by the very rules of a tick: what is told here is what [`Index::observe`] would find.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::cursors::lease;
use crate::index::cursors::look::{self, CheckCandidate};
use crate::index::cursors::observe::{CheckDecision, ObservationQuery, decide_check};
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::Mode;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::{Cadence, TaskSkipReason};

/// The last tick of a matter, as far as it is kept. A tick that found the brake pulled or the matter closed leaves none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastTick {
    pub at: DateTime<Utc>,
    /// Tasks that went to a clerk.
    pub looks: u32,
    /// Due tasks without signals: still active, and nobody was asked.
    pub quiet: u32,
    /// Due tasks beyond what one tick takes.
    pub left_due: u32,
    /// Signals that were new to it.
    pub signals: u32,
    /// How many tasks were passed over, and why.
    pub skipped: BTreeMap<TaskSkipReason, u32>,
    /// Each names its file.
    pub problems: Vec<String>,
    pub interval: MatterInterval,
}

/// How often a matter is looked at, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MatterInterval {
    pub seconds: u32,
    /// What it is with something new at every tick.
    pub base_seconds: u32,
    /// The longest that it grows.
    pub max_seconds: u32,
    /// Ticks in a row without signals.
    pub streak: u32,
    /// After so many more of those it grows; `None` when it is at its longest.
    pub grows_after: Option<u32>,
}

/// How a task stands, or a matter that signals point at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskCheckStatus {
    pub path: RecordPath,
    /// Untrusted.
    pub name: String,
    /// What a tick would do with it now.
    pub turn: CheckDecision,
    /// Signals that are new to it.
    pub fresh: u32,
    pub last_check_at: Option<DateTime<Utc>>,
    /// The later of what a human wrote and what we stored; `None` means due.
    pub next_check_after: Option<DateTime<Utc>>,
    /// Looks in a row without signals.
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

/// The looks themselves may be a megabyte, so they are only counted.
const LAST: &str = "SELECT observed_at, streak, json_array_length(observation, '$.looks') AS looks,
        observation->>'quiet' AS quiet, observation->>'left_due' AS left_due, observation->>'signals' AS signals,
        observation->'skipped' AS skipped, observation->'problems' AS problems
    FROM matter_ticks WHERE matter = ?1";

const LAG: &str = "SELECT m.path, k.observed_at, COALESCE(k.streak, 0) FROM matters m
    LEFT JOIN matter_ticks k ON k.matter = m.path WHERE m.state = 'open' ORDER BY m.path";

impl MatterInterval {
    /// How often a matter is looked at after so many ticks in a row without signals.
    #[must_use]
    pub fn after_streak(streak: u32, cadence: &Cadence) -> Self {
        let seconds = cadence.matter_interval_seconds(streak);
        let per_step = cadence.looks_per_step.max(1);
        let more = per_step - streak % per_step;
        let grows = cadence.matter_interval_seconds(streak.saturating_add(more)) > seconds;
        Self {
            seconds,
            base_seconds: cadence.matter_seconds,
            max_seconds: cadence.matter_max_seconds.max(cadence.matter_seconds),
            streak,
            grows_after: grows.then_some(more),
        }
    }
}

/// How far ticks lag behind what the matters' intervals ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TickLag {
    /// Open matters whose last tick is longer ago than their interval and a half.
    pub late: u64,
    /// The one of them that is the latest, and by how many seconds it is over its interval.
    pub worst: Option<(RecordPath, i64)>,
    /// Open matters that no tick has looked at yet.
    pub never: u64,
}

impl Index {
    /// How far ticks lag behind; what was not looked at before `from`, when the brake was released last, is late from
    /// then on.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn measure_tick_lag(
        &self,
        cadence: &Cadence,
        (from, now): (Option<DateTime<Utc>>, DateTime<Utc>),
    ) -> Result<TickLag, IndexError> {
        let rows: Vec<(String, Option<i64>, i64)> =
            sqlx::query_as(LAG).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let mut lag = TickLag::default();
        for (path, at, streak) in rows {
            let Some(at) = at.and_then(from_micros) else {
                lag.never += 1;
                continue;
            };
            let interval = i64::from(cadence.matter_interval_seconds(u32::try_from(streak).unwrap_or(u32::MAX)));
            let at = from.map_or(at, |from| at.max(from));
            let over = (now - at).num_seconds() - interval;
            if over <= interval / 2 {
                continue;
            }
            lag.late += 1;
            if lag.worst.as_ref().is_none_or(|(_, worst)| over > *worst) {
                lag.worst = Some((self.parse_path(&path)?, over));
            }
        }
        Ok(lag)
    }

    /// The last tick of a matter; `None` before the first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn last_tick(&self, matter: &RecordPath, cadence: &Cadence) -> Result<Option<LastTick>, IndexError> {
        let row: Option<LastTickColumns> = sqlx::query_as(LAST)
            .bind(matter.as_str())
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let Some(row) = row else { return Ok(None) };
        let count = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(Some(LastTick {
            at: from_micros(row.observed_at).unwrap_or_default(),
            looks: count(row.looks),
            quiet: count(row.quiet),
            left_due: count(row.left_due),
            signals: count(row.signals),
            skipped: serde_json::from_str(&row.skipped).map_err(|_| self.unknown_value_error(&row.skipped))?,
            problems: serde_json::from_str(&row.problems).map_err(|_| self.unknown_value_error(&row.problems))?,
            interval: MatterInterval::after_streak(count(row.streak), cadence),
        }))
    }

    /// What a tick would do with each task of a matter, and with the matter itself where signals point at it; in the
    /// order of paths, tasks first. Of the tasks, where two are named, only those from the one to the other. It moves
    /// nothing.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn preview_task_checks(
        &self,
        ask: &ObservationQuery,
        among: Option<(&RecordPath, &RecordPath)>,
    ) -> Result<Vec<TaskCheckStatus>, IndexError> {
        let mut tx = self.store.reader.begin().await.map_err(|e| self.sql_error(e))?;
        let policy: Option<Option<String>> = sqlx::query_scalar("SELECT policy FROM matters WHERE path = ?1")
            .bind(ask.matter.as_str())
            .fetch_optional(&mut *tx)
            .await
            .map_err(|e| self.sql_error(e))?;
        let note = policy.flatten().map(|policy| self.parse_matter_policy(&policy)).transpose()?;
        let among = among.map_or(look::ALL_TASKS, |(first, last)| (first.as_str(), last.as_str()));
        let candidates = look::read_candidates(self, &mut tx, (ask, among)).await?;
        let taken =
            lease::list_tasks_leased_by_others(&mut tx, &ask.look_id, ask.now).await.map_err(|e| self.sql_error(e))?;
        let quiet = is_within_quiet_hours(ask, note.as_ref());
        Ok(candidates.into_iter().map(|c| build_task_check_status(ask, (&taken, quiet), c)).collect())
    }
}

fn build_task_check_status(
    ask: &ObservationQuery,
    held: (&BTreeSet<String>, bool),
    candidate: CheckCandidate,
) -> TaskCheckStatus {
    TaskCheckStatus {
        turn: decide_check(ask, held, &candidate),
        path: candidate.task,
        name: candidate.name,
        fresh: candidate.fresh,
        last_check_at: candidate.last_check.and_then(from_micros),
        next_check_after: candidate.next_check,
        streak: candidate.streak,
    }
}

/// Whether the matter's note wants nothing changed at this time of day.
pub(crate) fn is_within_quiet_hours(ask: &ObservationQuery, note: Option<&MatterPolicy>) -> bool {
    ask.policy.mode > Mode::Shadow && note.is_some_and(|note| note.quiet_until(ask.now).is_some())
}
