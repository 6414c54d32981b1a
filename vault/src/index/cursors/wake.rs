//! Matters that a signal woke and that no tick has observed since.
//!
//! A mark is made in the transaction that takes the signal in, so that neither a crash nor a command
//! that brings the index up to date beside the worker swallows a wake. The engine triggers the
//! schedule. The mark goes in the transaction in which a tick observes the matter, so a tick that was
//! lost or that met a stop uses up no wake.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use sqlx::{FromRow, SqliteConnection};
use std::collections::BTreeMap;
use steward_domain::record::path::RecordPath;

/// The matters of signals that nothing has judged, as the first scan of all finds them. A matter or a
/// task that is closed has no schedule that would judge them. ?1: the mark.
const UNJUDGED: &str = "INSERT INTO wakes (matter, at) SELECT DISTINCT p.path, ?1
    FROM signals s JOIN first_seen f ON f.signal = s.path
    LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    JOIN matters p ON p.path = COALESCE(t.parent, m.path) AND p.state = 'open'
    LEFT JOIN task_checks c ON c.task = s.target
    WHERE s.applied = 0 AND s.effect <> 'none' AND COALESCE(t.state, 'open') = 'open'
        AND (c.last_check_at IS NULL OR f.at > c.last_check_at)
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// The matter of a task, or a matter itself. ?1: its path, ?2: the mark.
const MATTER_OF: &str = "INSERT INTO wakes (matter, at) SELECT COALESCE(t.parent, a.path), ?2
    FROM (SELECT ?1 AS path) a LEFT JOIN tasks t ON t.path = a.path WHERE true
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// The oldest marks first. ?1: the matters to pass over, as JSON, ?2: how many.
const OLDEST: &str = "SELECT w.matter, w.at, k.observed_at AS observed,
        CASE WHEN m.path IS NULL THEN f.path IS NOT NULL ELSE m.state = 'open' END AS ticks
    FROM wakes w LEFT JOIN matter_ticks k ON k.matter = w.matter
    LEFT JOIN matters m ON m.path = w.matter LEFT JOIN files f ON f.path = w.matter
    WHERE w.matter NOT IN (SELECT value FROM json_each(?1)) ORDER BY w.at, w.matter LIMIT ?2";

/// A matter to be woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeMark {
    pub matter: RecordPath,
    /// What [`Index::woken`] takes.
    pub at: i64,
    /// When a tick last observed the matter; another value means that one has done so since.
    pub observed: Option<i64>,
    /// The matter is open, or unreadable for now. One that is closed or gone is ticked by nobody.
    pub ticks: bool,
}

#[derive(FromRow)]
struct WakeMarkColumns {
    matter: String,
    at: i64,
    observed: Option<i64>,
    ticks: bool,
}

/// The matters that signals bear upon, as far as those signals count. ?1: paths of signals.
const MATTERS: &str = "SELECT DISTINCT COALESCE(t.parent, m.path)
    FROM json_each(?1) j JOIN signals s ON s.path = j.value
    LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    WHERE s.applied = 0 AND s.effect <> 'none' AND COALESCE(t.parent, m.path) IS NOT NULL";

/// Marks the matters of signals that are new.
pub(crate) async fn mark_matters_of_signals(
    tx: &mut SqliteConnection,
    signals: &[String],
    at: i64,
) -> sqlx::Result<()> {
    let matters: Vec<String> = sqlx::query_scalar(MATTERS).bind(to_json(&signals)).fetch_all(&mut *tx).await?;
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

/// Marks the matters of signals that nothing has judged, at the end of the first scan of all.
pub(crate) async fn mark_unjudged(tx: &mut SqliteConnection, at: i64) -> sqlx::Result<()> {
    sqlx::query(UNJUDGED).bind(at).execute(tx).await.map(drop)
}

/// Takes the mark of a matter away, as a tick observes it; whether there was one.
pub(crate) async fn clear_mark(tx: &mut SqliteConnection, matter: &RecordPath) -> sqlx::Result<bool> {
    let taken = sqlx::query("DELETE FROM wakes WHERE matter = ?1").bind(matter.as_str()).execute(tx).await?;
    Ok(taken.rows_affected() > 0)
}

impl Index {
    /// The matters that have waited longest to be woken, without those passed over.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_oldest_wake_marks(
        &self,
        pass_over: &[&RecordPath],
        limit: usize,
    ) -> Result<Vec<WakeMark>, IndexError> {
        let rows: Vec<WakeMarkColumns> = sqlx::query_as(OLDEST)
            .bind(to_json(&pass_over))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let mark = |row: WakeMarkColumns| {
            let WakeMarkColumns { matter, at, observed, ticks } = row;
            Ok(WakeMark { matter: self.parse_path(&matter)?, at, observed, ticks })
        };
        rows.into_iter().map(mark).collect()
    }

    /// Marks the matter of a task or matter that was observed and could not be judged, so that it is woken again.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn mark_matter_again(&self, target: &RecordPath, now: DateTime<Utc>) -> Result<(), IndexError> {
        sqlx::query(MATTER_OF)
            .bind(target.as_str())
            .bind(to_micros(now))
            .execute(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        self.notify_wakes();
        Ok(())
    }

    /// Every matter to be woken, with the mark that [`Index::woken`] takes.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_wake_marks(&self) -> Result<BTreeMap<RecordPath, i64>, IndexError> {
        let rows: Vec<(String, i64)> = sqlx::query_as("SELECT matter, at FROM wakes")
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|(matter, at)| Ok((self.parse_path(&matter)?, at))).collect()
    }

    /// Takes a mark away, unless another signal came since it was read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn clear_wake_mark(&self, matter: &RecordPath, mark: i64) -> Result<(), IndexError> {
        sqlx::query("DELETE FROM wakes WHERE matter = ?1 AND at <= ?2")
            .bind(matter.as_str())
            .bind(mark)
            .execute(&self.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.sql_error(e))
    }

    /// The matters that signals bear upon, as far as those signals count.
    pub(crate) async fn list_matters_of_signals(&self, signals: &[String]) -> Result<Vec<RecordPath>, IndexError> {
        if signals.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<String> = sqlx::query_scalar(MATTERS)
            .bind(to_json(&signals))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        found.iter().map(|m| self.parse_path(m)).collect()
    }
}
