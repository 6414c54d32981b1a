//! Whether anything has happened, for whoever shows it live.
//!
//! A watcher has a connection of its own, on which SQLite tells in microseconds whether any process has written since the
//! last time; only then is anything looked up. Nothing is missed in between: what was filed is read by its place in the
//! chain ([`Index::list_actions_since`]).

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::PathBuf;
use steward_domain::record::path::RecordPath;

/// How far the index has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IndexRevision {
    /// Another number whenever anybody has written anything, also a look that found nothing. Of this watcher alone.
    pub revision: i64,
    /// The newest place in the chain of audit records; 0 before the first.
    pub newest_action_seq: u64,
    /// When the newest signal says it came.
    pub newest_signal_at: Option<DateTime<Utc>>,
    /// Goes up whenever a matter, task, signal or action came or changed, whichever process read it. Not when one went.
    pub files_revision: u64,
}

/// Looks at the index again and again, at nearly no cost.
#[derive(Debug)]
pub struct IndexWatcher {
    file: PathBuf,
    db: SqliteConnection,
    last: Option<IndexRevision>,
}

pub(crate) const PULSE: &str = "SELECT (SELECT MAX(seq) FROM actions), (SELECT MAX(created) FROM signals),
    (SELECT seq FROM sqlite_sequence WHERE name = 'documents')";

const WRITTEN: &str = "SELECT id, path FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2";

impl Index {
    /// The matters, tasks, signals and actions that came or changed after a revision of files, in the order in which
    /// they were read, each with its own revision; at most `limit`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_records_written_since(
        &self,
        revision: u64,
        limit: u32,
    ) -> Result<Vec<(u64, RecordPath)>, IndexError> {
        let rows: Vec<(i64, String)> = sqlx::query_as(WRITTEN)
            .bind(i64::try_from(revision).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|(id, path)| Ok((id.cast_unsigned(), self.parse_path(&path)?))).collect()
    }

    /// Begins to watch, with a connection of its own.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn open_watcher(&self) -> Result<IndexWatcher, IndexError> {
        let options = self.store.reader.connect_options();
        let db = options.as_ref().clone().connect().await.map_err(|e| self.sql_error(e))?;
        Ok(IndexWatcher { file: self.store.file.clone(), db, last: None })
    }
}

impl IndexWatcher {
    /// How far the index has come by now.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn current_revision(&mut self) -> Result<IndexRevision, IndexError> {
        match self.query_revision().await {
            Ok(pulse) => Ok(pulse),
            Err(e) => Err(IndexError::from_sqlx(&self.file, e)),
        }
    }

    /// The revision is read first: what is written in between is found again the next time.
    async fn query_revision(&mut self) -> sqlx::Result<IndexRevision> {
        let revision: i64 = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut self.db).await?;
        if let Some(last) = self.last.as_ref().filter(|last| last.revision == revision) {
            return Ok(last.clone());
        }
        let (seq, signal, files): (Option<i64>, Option<i64>, Option<i64>) =
            sqlx::query_as(PULSE).fetch_one(&mut self.db).await?;
        let pulse = IndexRevision {
            revision,
            newest_action_seq: seq.unwrap_or(0).cast_unsigned(),
            newest_signal_at: signal.and_then(from_micros),
            files_revision: files.unwrap_or(0).cast_unsigned(),
        };
        self.last = Some(pulse.clone());
        Ok(pulse)
    }
}
