//! Leases on tasks that a tick is judging, so that two ticks of one matter never judge a task twice.
//!
//! A schedule never overlaps itself, but a tick that was started by hand or by another client may run beside it. A
//! check takes a lease on every task that goes to a clerk. The record of the check ends the lease, and the end of the
//! run releases the rest. The lease of a run that died expires.

use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::SqliteConnection;
use std::collections::BTreeSet;
use steward_domain::record::path::RecordPath;

/// How long a silent run keeps its leases: 310 s, a little more than the 300 s that a run may take.
const LEASE: TimeDelta = TimeDelta::seconds(310);

/// The run that a check belongs to: the part of its id before the slash.
pub(crate) fn parse_run_id(check_id: &str) -> &str {
    check_id.split('/').next().unwrap_or(check_id)
}

/// Lists the tasks that other runs are judging.
pub(crate) async fn list_tasks_leased_by_others(
    tx: &mut SqliteConnection,
    check_id: &str,
    now: DateTime<Utc>,
) -> sqlx::Result<BTreeSet<String>> {
    let rows: Vec<String> = sqlx::query_scalar("SELECT task FROM leases WHERE run <> ?1 AND until > ?2")
        .bind(parse_run_id(check_id))
        .bind(to_micros(now))
        .fetch_all(tx)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Leases the tasks to this run.
pub(crate) async fn lease_tasks(
    tx: &mut SqliteConnection,
    check_id: &str,
    tasks: &[String],
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    let tasks = serde_json::Value::from(tasks).to_string();
    sqlx::query("INSERT OR REPLACE INTO leases (task, run, until) SELECT value, ?2, ?3 FROM json_each(?1)")
        .bind(tasks)
        .bind(parse_run_id(check_id))
        .bind(to_micros(now + LEASE))
        .execute(tx)
        .await
        .map(drop)
}

/// Ends the lease of a task that was judged.
pub(crate) async fn end_lease(tx: &mut SqliteConnection, task: &str) -> sqlx::Result<()> {
    sqlx::query("DELETE FROM leases WHERE task = ?1").bind(task).execute(tx).await.map(drop)
}

impl CursorsView<'_> {
    /// Lists the matters of which a run is judging tasks. Such a run has recorded a path.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_leased_matters(self, now: DateTime<Utc>) -> Result<Vec<RecordPath>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT COALESCE(t.parent, m.path) FROM leases l LEFT JOIN tasks t ON t.path = l.task
             LEFT JOIN matters m ON m.path = l.task WHERE l.until > ?1 AND COALESCE(t.parent, m.path) IS NOT NULL",
        )
        .bind(to_micros(now))
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        paths.iter().map(|path| self.index.parse_path(path)).collect()
    }

    /// Releases all leases. For a vault that was restored and taken: the runs that held them were another copy's.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn release_all_leases(self) -> Result<(), IndexError> {
        let query = sqlx::query("DELETE FROM leases").execute(&self.index.store.writer);
        query.await.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Releases the leases of a run on tasks that it did not judge. They are due for the next run at once.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn release_leases(self, check_id: &str) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        sqlx::query("DELETE FROM leases WHERE run = ?1")
            .bind(parse_run_id(check_id))
            .execute(&mut *tx)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        tx.commit().await.map_err(|e| self.index.sql_error(e))
    }
}
