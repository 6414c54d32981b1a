//! Wake marks: matters with a new signal that no tick has observed since.
//!
//! A mark is made in the transaction that ingests the signal. So neither a crash nor a command that updates the index
//! beside the worker loses a wake. The engine triggers the schedule. The mark is cleared in the transaction in which
//! a tick observes the matter, so a tick that was lost or that met a stop clears nothing.

use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use sqlx::{FromRow, SqliteConnection};
use std::collections::BTreeMap;
use steward_domain::record::path::RecordPath;

/// Marks the matters of signals that no tick has judged, after the very first scan. A closed matter has no schedule
/// that would judge them, and a closed task is not judged. ?1: the mark.
const MARK_UNJUDGED: &str = "INSERT INTO wakes (matter, at) SELECT DISTINCT p.path, ?1
    FROM signals s JOIN first_seen f ON f.signal = s.path
    LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    JOIN matters p ON p.path = COALESCE(t.parent, m.path) AND p.state = 'open'
    LEFT JOIN task_checks c ON c.task = s.target
    WHERE s.applied = 0 AND s.effect <> 'none' AND COALESCE(t.state, 'open') = 'open'
        AND (c.last_check_at IS NULL OR f.at > c.last_check_at)
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// Marks the matter of a task, or a matter itself. ?1: the path of either, ?2: the mark.
const MARK_MATTER_OF: &str = "INSERT INTO wakes (matter, at) SELECT COALESCE(t.parent, a.path), ?2
    FROM (SELECT ?1 AS path) a LEFT JOIN tasks t ON t.path = a.path WHERE true
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// Marks the matters whose newest decision about an open record was made in shadow. Once the mode permits changes, its
/// signals count as fresh again. ?1: the mark.
const MARK_SHADOW_DECISIONS: &str = "INSERT INTO wakes (matter, at) SELECT DISTINCT p.path, ?1
    FROM actions a LEFT JOIN tasks t ON t.path = a.target LEFT JOIN matters m ON m.path = a.target
    JOIN matters p ON p.path = COALESCE(t.parent, m.path) AND p.state = 'open'
    WHERE a.kind = 'steward-action' AND a.disposition = 'shadow' AND a.mode = 'shadow'
        AND COALESCE(t.state, 'open') = 'open'
        AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id)
        AND NOT EXISTS (SELECT 1 FROM actions n WHERE n.target = a.target AND n.kind = 'steward-action' AND n.seq > a.seq)
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// The oldest marks first. ?1: the matters to skip, as JSON, ?2: the limit.
const OLDEST: &str = "SELECT w.matter, w.at, k.observed_at AS observed,
        CASE WHEN m.path IS NULL THEN f.path IS NOT NULL ELSE m.state = 'open' END AS ticks
    FROM wakes w LEFT JOIN matter_ticks k ON k.matter = w.matter
    LEFT JOIN matters m ON m.path = w.matter LEFT JOIN files f ON f.path = w.matter
    WHERE w.matter NOT IN (SELECT value FROM json_each(?1)) ORDER BY w.at, w.matter LIMIT ?2";

/// A matter to wake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeMark {
    pub matter: RecordPath,
    /// The mark, which `CursorsView::clear_wake_mark` takes.
    pub at: i64,
    /// When a tick last observed the matter. A different value means that another tick has observed it since.
    pub observed: Option<i64>,
    /// Whether the matter is open, or unreadable for now. A closed or missing matter has no ticks.
    pub may_tick: bool,
}

#[derive(FromRow)]
struct WakeMarkColumns {
    matter: String,
    at: i64,
    observed: Option<i64>,
    ticks: bool,
}

/// The matters of signals that count: neither applied nor without effect. ?1: the paths of the signals.
const MATTERS_OF_SIGNALS: &str = "SELECT DISTINCT COALESCE(t.parent, m.path)
    FROM json_each(?1) j JOIN signals s ON s.path = j.value
    LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    WHERE s.applied = 0 AND s.effect <> 'none' AND COALESCE(t.parent, m.path) IS NOT NULL";

/// Marks the matters of new signals.
pub(crate) async fn mark_matters_of_signals(
    tx: &mut SqliteConnection,
    signals: &[String],
    at: i64,
) -> sqlx::Result<()> {
    let matters: Vec<String> =
        sqlx::query_scalar(MATTERS_OF_SIGNALS).bind(to_json(&signals)).fetch_all(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO wakes (matter, at) SELECT value, ?2 FROM json_each(?1) WHERE true
         ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)",
    )
    .bind(to_json(&matters))
    .bind(at)
    .execute(tx)
    .await
    .map(drop)
}

/// Marks the matters of signals that no tick has judged, at the end of the very first scan.
pub(crate) async fn mark_unjudged(tx: &mut SqliteConnection, at: i64) -> sqlx::Result<()> {
    sqlx::query(MARK_UNJUDGED).bind(at).execute(tx).await.map(drop)
}

/// Clears the mark of a matter that a tick observes. Returns whether there was one.
pub(crate) async fn clear_mark(tx: &mut SqliteConnection, matter: &RecordPath) -> sqlx::Result<bool> {
    let cleared = sqlx::query("DELETE FROM wakes WHERE matter = ?1").bind(matter.as_str()).execute(tx).await?;
    Ok(cleared.rows_affected() > 0)
}

impl CursorsView<'_> {
    /// Lists the matters that have waited longest for their wake, without those to skip.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_oldest_wake_marks(self, skip: &[&RecordPath], limit: usize) -> Result<Vec<WakeMark>, IndexError> {
        let rows: Vec<WakeMarkColumns> = sqlx::query_as(OLDEST)
            .bind(to_json(&skip))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mark = |row: WakeMarkColumns| {
            let WakeMarkColumns { matter, at, observed, ticks } = row;
            Ok(WakeMark { matter: self.index.parse_path(&matter)?, at, observed, may_tick: ticks })
        };
        rows.into_iter().map(mark).collect()
    }

    /// Marks the matter of a task or matter again that was observed but could not be judged.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn mark_matter_again(self, target: &RecordPath, now: DateTime<Utc>) -> Result<(), IndexError> {
        sqlx::query(MARK_MATTER_OF)
            .bind(target.as_str())
            .bind(to_micros(now))
            .execute(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        self.notify_wakes();
        Ok(())
    }

    /// Wakes the matters with decisions that were made in shadow, because the mode permits changes now.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn mark_shadow_decisions(self, now: DateTime<Utc>) -> Result<(), IndexError> {
        sqlx::query(MARK_SHADOW_DECISIONS)
            .bind(to_micros(now))
            .execute(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        self.notify_wakes();
        Ok(())
    }

    /// Lists every matter to wake, with the mark that `CursorsView::clear_wake_mark` takes.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_wake_marks(self) -> Result<BTreeMap<RecordPath, i64>, IndexError> {
        let rows: Vec<(String, i64)> = sqlx::query_as("SELECT matter, at FROM wakes")
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|(matter, at)| Ok((self.index.parse_path(&matter)?, at))).collect()
    }

    /// Clears a mark, unless another signal has arrived since it was read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn clear_wake_mark(self, matter: &RecordPath, mark: i64) -> Result<(), IndexError> {
        sqlx::query("DELETE FROM wakes WHERE matter = ?1 AND at <= ?2")
            .bind(matter.as_str())
            .bind(mark)
            .execute(&self.index.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.index.sql_error(e))
    }

    /// Lists the matters of those signals that count.
    pub(crate) async fn list_matters_of_signals(self, signals: &[String]) -> Result<Vec<RecordPath>, IndexError> {
        if signals.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<String> = sqlx::query_scalar(MATTERS_OF_SIGNALS)
            .bind(to_json(&signals))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        found.iter().map(|m| self.index.parse_path(m)).collect()
    }
}
