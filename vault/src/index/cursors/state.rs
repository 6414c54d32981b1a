//! Cursors and counters: the stewards' memory of their checks.
//!
//! Every write is keyed by the check or call that makes it, so that a retried activity moves nothing twice. A task's
//! cursor is the moment of the check, not of the clerk's answer. A signal that arrives in between therefore stays
//! fresh.

use super::lease;
use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use sqlx::SqliteConnection;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::{Cadence, TaskClock};

/// How long the ids of counted checks are kept, so that a repeated one is recognised: 7 days, far beyond any retry.
const MARK_DAYS: i64 = 7;
/// The reason of checks that end because nothing is new (S3-23).
pub(crate) const NO_SIGNALS: &str = "no_signals";

/// A check of a task that a clerk answered.
#[derive(Clone, Debug)]
pub struct CompletedCheck {
    pub task: RecordPath,
    pub check_id: String,
    /// [`steward_domain::steward::tick::MatterObservation::observed_at`] of the tick.
    pub observed_at: DateTime<Utc>,
    /// Whether the check had fresh signals, which ends the streak of checks without any.
    pub had_signals: bool,
    /// The outcome, as reports and screens show it.
    pub outcome: String,
    /// The task after the decision was applied.
    pub clock: TaskClock,
    pub cadence: Cadence,
}

/// How many checks of a day ended for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckCount {
    pub day: NaiveDate,
    pub reason: String,
    pub count: u64,
}

impl CursorsView<'_> {
    /// Records that a task was checked. The second call for the same check does nothing.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_check(self, done: &CompletedCheck) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        let previous: Option<(i64, String)> = sqlx::query_as("SELECT streak, look_id FROM task_checks WHERE task = ?1")
            .bind(done.task.as_str())
            .fetch_optional(&mut *tx)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let streak = match previous {
            Some((_, last_check_id)) if last_check_id == done.check_id => return Ok(()),
            _ if done.had_signals => 0,
            Some((streak, _)) => u32::try_from(streak).unwrap_or(u32::MAX).saturating_add(1),
            None => 1,
        };
        let next = done.cadence.next_check(&done.clock, streak, done.observed_at);
        sqlx::query(
            "INSERT INTO task_checks (task, last_check_at, next_check_after, outcome, streak, look_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (task) DO UPDATE SET last_check_at = MAX(last_check_at, excluded.last_check_at),
                 next_check_after = excluded.next_check_after, outcome = excluded.outcome,
                 streak = excluded.streak, look_id = excluded.look_id",
        )
        .bind(done.task.as_str())
        .bind(to_micros(done.observed_at))
        .bind(next.map(to_micros))
        .bind(&done.outcome)
        .bind(i64::from(streak))
        .bind(&done.check_id)
        .execute(&mut *tx)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        lease::end_lease(&mut tx, done.task.as_str()).await.map_err(|e| self.index.sql_error(e))?;
        tx.commit().await.map_err(|e| self.index.sql_error(e))
    }

    /// Counts a check that ended before a clerk was asked. The same `id` counts once.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_check(self, at: DateTime<Utc>, reason: &str, id: &str) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        let work = async {
            let marked = sqlx::query("INSERT OR IGNORE INTO look_marks (id, day) VALUES (?1, ?2)")
                .bind(id)
                .bind(format_day(at))
                .execute(&mut *tx)
                .await?;
            if marked.rows_affected() > 0 {
                add_to_check_count(&mut tx, reason, at, 1).await?;
                let oldest = format_day(at - TimeDelta::days(MARK_DAYS));
                sqlx::query("DELETE FROM look_marks WHERE day < ?1").bind(oldest).execute(&mut *tx).await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }

    /// Lists how many checks ended before a clerk was asked, by day and reason, from a day on.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_check_counts(self, since: NaiveDate) -> Result<Vec<CheckCount>, IndexError> {
        let rows: Vec<(String, String, i64)> =
            sqlx::query_as("SELECT day, reason, count FROM looks WHERE day >= ?1 ORDER BY day, reason")
                .bind(since.to_string())
                .fetch_all(&self.index.store.reader)
                .await
                .map_err(|e| self.index.sql_error(e))?;
        let count = |(day, reason, count): (String, String, i64)| {
            Ok(CheckCount {
                day: day.parse().map_err(|_| self.index.unknown_value_error(&day))?,
                reason,
                count: count.cast_unsigned(),
            })
        };
        rows.into_iter().map(count).collect()
    }
}

/// Adds checks to the count of their day.
pub(crate) async fn add_to_check_count(
    tx: &mut SqliteConnection,
    reason: &str,
    at: DateTime<Utc>,
    count: u32,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO looks (day, reason, count) VALUES (?1, ?2, ?3)
         ON CONFLICT (day, reason) DO UPDATE SET count = count + excluded.count",
    )
    .bind(format_day(at))
    .bind(reason)
    .bind(i64::from(count))
    .execute(tx)
    .await
    .map(drop)
}

fn format_day(at: DateTime<Utc>) -> String {
    at.date_naive().to_string()
}
