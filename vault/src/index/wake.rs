//! Matters that a signal woke and whose schedule has not been triggered yet.
//!
//! A mark is made in the transaction that takes the signal in, so that neither a crash nor a command
//! that brings the index up to date beside the worker swallows a wake. The engine triggers the
//! schedule and then takes the mark away.

use super::store::json;
use super::{Index, IndexError};
use sqlx::SqliteConnection;
use std::collections::BTreeMap;
use steward_domain::path::RecordPath;

/// The matters that signals bear upon, as far as those signals count. ?1: paths of signals.
const MATTERS: &str = "SELECT DISTINCT COALESCE(t.parent, m.path)
    FROM json_each(?1) j JOIN signals s ON s.path = j.value
    LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    WHERE s.applied = 0 AND s.effect <> 'none' AND COALESCE(t.parent, m.path) IS NOT NULL";

/// Marks the matters of signals that are new.
pub(super) async fn mark(tx: &mut SqliteConnection, signals: &[String], at: i64) -> sqlx::Result<()> {
    let matters: Vec<String> = sqlx::query_scalar(MATTERS).bind(json(&signals)).fetch_all(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO wakes (matter, at) SELECT value, ?2 FROM json_each(?1) WHERE true
         ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)",
    )
    .bind(json(&matters))
    .bind(at)
    .execute(tx)
    .await
    .map(drop)
}

impl Index {
    /// Every matter to be woken, with the mark that [`Index::woken`] takes.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn wakes(&self) -> Result<BTreeMap<RecordPath, i64>, IndexError> {
        let rows: Vec<(String, i64)> = sqlx::query_as("SELECT matter, at FROM wakes")
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql(e))?;
        rows.into_iter().map(|(matter, at)| Ok((self.path(&matter)?, at))).collect()
    }

    /// Takes a mark away, unless another signal came since it was read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn woken(&self, matter: &RecordPath, mark: i64) -> Result<(), IndexError> {
        sqlx::query("DELETE FROM wakes WHERE matter = ?1 AND at <= ?2")
            .bind(matter.as_str())
            .bind(mark)
            .execute(&self.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.sql(e))
    }

    /// The matters that signals bear upon, as far as those signals count.
    pub(super) async fn matters_of(&self, signals: &[String]) -> Result<Vec<RecordPath>, IndexError> {
        if signals.is_empty() {
            return Ok(Vec::new());
        }
        let found: Vec<String> = sqlx::query_scalar(MATTERS)
            .bind(json(&signals))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql(e))?;
        found.iter().map(|m| self.path(m)).collect()
    }
}
