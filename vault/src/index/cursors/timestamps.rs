//! Timestamp write-back: which task files must still show their last check, and which dates in them Steward wrote.
//!
//! A date that Steward wrote is no wish of a person, so [`super::task_check`] and [`crate::index::read::tasks`] ignore
//! it. Every other date counts as a person's, also if these rows are lost. A date is noted here before it is written, so
//! a crash in between leaves a date that is known as Steward's.
//! [`crate::action::writer::VaultWriter::write_timestamps`] writes the files, and the engine decides when.

use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::FromRow;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::timestamps::CheckTimestamps;

/// The wait before a failed write is tried again: 30 s, so that a person can finish an edit.
const RETRY: TimeDelta = TimeDelta::seconds(30);

/// A task whose file does not show its last check yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimestampWrite {
    pub task: RecordPath,
    pub timestamps: CheckTimestamps,
    /// The cursor that is written, in microseconds.
    checked_at: i64,
}

#[derive(FromRow)]
struct TimestampWriteColumns {
    task: String,
    last_check_at: i64,
    next_check_after: Option<i64>,
    written: Option<i64>,
    before: Option<i64>,
}

const DUE: &str = "
    SELECT c.task, c.last_check_at, c.next_check_after, w.written, w.before
    FROM task_checks c JOIN tasks t ON t.path = c.task
    LEFT JOIN timestamp_writes w ON w.task = c.task LEFT JOIN leases l ON l.task = c.task AND l.until > ?1
    WHERE l.task IS NULL AND (w.task IS NULL OR (w.retry_at <= ?1
        AND (w.checked_at IS NULL OR w.checked_at < c.last_check_at)))
    ORDER BY COALESCE(w.retry_at, 0), c.last_check_at, c.task LIMIT ?2";

/// Notes a date only while no run is judging the task. If the file contains the date that was noted last, that date may
/// stay in the file if this write fails, so it moves to `before`.
const BEGIN: &str = "
    INSERT INTO timestamp_writes (task, checked_at, written, before, retry_at)
    SELECT t.path, NULL, ?2, NULL, ?4 FROM tasks t WHERE t.path = ?1
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.task = t.path AND l.until > ?3)
    ON CONFLICT (task) DO UPDATE SET retry_at = excluded.retry_at,
        before = CASE WHEN written = (SELECT next_check_after FROM tasks WHERE path = ?1) THEN written ELSE before END,
        written = COALESCE(excluded.written, written)";

impl CursorsView<'_> {
    /// Lists tasks that were checked since their file was last written, the oldest check first, at most `limit`.
    ///
    /// Tasks whose write failed before come last, so that they delay no other. Tasks are left out while a run is
    /// judging them, while their file cannot be parsed, and for a moment after a failed write.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_due_timestamp_writes(
        self,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<DueTimestampWrite>, IndexError> {
        let rows: Vec<TimestampWriteColumns> = sqlx::query_as(DUE)
            .bind(to_micros(now))
            .bind(limit)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let due = |row: TimestampWriteColumns| {
            let ours = [row.written, row.before].into_iter().flatten().filter_map(from_micros);
            let checked = from_micros(row.last_check_at).unwrap_or_default();
            Ok(DueTimestampWrite {
                task: self.index.parse_path(&row.task)?,
                timestamps: CheckTimestamps::new(checked, row.next_check_after.and_then(from_micros), ours),
                checked_at: row.last_check_at,
            })
        };
        rows.into_iter().map(due).collect()
    }

    /// Notes the date that is about to be written. Returns `false` if a run has begun to judge the task meanwhile.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn begin_timestamp_write(self, due: &DueTimestampWrite, now: DateTime<Utc>) -> Result<bool, IndexError> {
        let mut tx = self.index.begin_write().await?;
        let begun = sqlx::query(BEGIN)
            .bind(due.task.as_str())
            .bind(due.timestamps.next_check_after().map(to_micros))
            .bind(to_micros(now))
            .bind(to_micros(now + RETRY))
            .execute(&mut *tx)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        tx.commit().await.map_err(|e| self.index.sql_error(e))?;
        Ok(begun.rows_affected() > 0)
    }

    /// Ends the write for this check: the file shows it now, or never will.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn finish_timestamp_write(self, due: &DueTimestampWrite) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        sqlx::query("UPDATE timestamp_writes SET checked_at = ?2, retry_at = 0 WHERE task = ?1")
            .bind(due.task.as_str())
            .bind(due.checked_at)
            .execute(&mut *tx)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        tx.commit().await.map_err(|e| self.index.sql_error(e))
    }
}
