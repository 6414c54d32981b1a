//! Whose files are to say when they were last looked at, and which dates in them are ours.
//!
//! A date in a file that we wrote ourselves is no wish of a human's, so [`super::look`] and
//! [`crate::index::read::overview`] pass over it; every other one counts as a human's, also when these rows are lost. What
//! is about to be written is noted first: a crash in between leaves a date that is known as ours. The
//! files are written by [`crate::action::writer::VaultWriter::stamp`]; when, says the engine.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::FromRow;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::timestamps::CheckTimestamps;

/// When a stamp that came to nothing is tried again: 30 s, so that a person can finish their edit.
const RETRY: TimeDelta = TimeDelta::seconds(30);

/// A task whose file does not say yet when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimestampWrite {
    pub task: RecordPath,
    pub stamp: CheckTimestamps,
    /// The cursor that is written down, exactly.
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
    LEFT JOIN stamps w ON w.task = c.task LEFT JOIN leases l ON l.task = c.task AND l.until > ?1
    WHERE l.task IS NULL AND (w.task IS NULL OR (w.retry_at <= ?1
        AND (w.checked_at IS NULL OR w.checked_at < c.last_check_at)))
    ORDER BY COALESCE(w.retry_at, 0), c.last_check_at, c.task LIMIT ?2";

/// Only while nobody is judging the task. Where the file holds what was to be written last, that is what
/// may be left if this comes to nothing.
const BEGIN: &str = "
    INSERT INTO stamps (task, checked_at, written, before, retry_at)
    SELECT t.path, NULL, ?2, NULL, ?4 FROM tasks t WHERE t.path = ?1
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.task = t.path AND l.until > ?3)
    ON CONFLICT (task) DO UPDATE SET retry_at = excluded.retry_at,
        before = CASE WHEN written = (SELECT next_check_after FROM tasks WHERE path = ?1) THEN written ELSE before END,
        written = COALESCE(excluded.written, written)";

impl Index {
    /// Tasks that were looked at since their file was stamped, the longest ago first, at most `limit`.
    ///
    /// Those that came to nothing before come last, so that they hold nobody up; none that a run is judging, whose file cannot be understood, or that was tried a moment ago.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_due_timestamp_writes(
        &self,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<DueTimestampWrite>, IndexError> {
        let rows: Vec<TimestampWriteColumns> = sqlx::query_as(DUE)
            .bind(to_micros(now))
            .bind(limit)
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let due = |row: TimestampWriteColumns| {
            let ours = [row.written, row.before].into_iter().flatten().filter_map(from_micros);
            let checked = from_micros(row.last_check_at).unwrap_or_default();
            Ok(DueTimestampWrite {
                task: self.parse_path(&row.task)?,
                stamp: CheckTimestamps::new(checked, row.next_check_after.and_then(from_micros), ours),
                checked_at: row.last_check_at,
            })
        };
        rows.into_iter().map(due).collect()
    }

    /// Notes what is about to be written; `false` where a run has begun to judge the task meanwhile.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn begin_timestamp_write(&self, due: &DueTimestampWrite, now: DateTime<Utc>) -> Result<bool, IndexError> {
        let mut tx = self.begin_write().await?;
        let begun = sqlx::query(BEGIN)
            .bind(due.task.as_str())
            .bind(due.stamp.next_check_after().map(to_micros))
            .bind(to_micros(now))
            .bind(to_micros(now + RETRY))
            .execute(&mut *tx)
            .await
            .map_err(|e| self.sql_error(e))?;
        tx.commit().await.map_err(|e| self.sql_error(e))?;
        Ok(begun.rows_affected() > 0)
    }

    /// The file says it now, or never will for this look.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn finish_timestamp_write(&self, due: &DueTimestampWrite) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        sqlx::query("UPDATE stamps SET checked_at = ?2, retry_at = 0 WHERE task = ?1")
            .bind(due.task.as_str())
            .bind(due.checked_at)
            .execute(&mut *tx)
            .await
            .map_err(|e| self.sql_error(e))?;
        tx.commit().await.map_err(|e| self.sql_error(e))
    }
}
