//! The revision of the index, for live views.
//!
//! A watcher has its own connection. On it SQLite reports in microseconds whether any process has written since the
//! last call, and only then are rows read. Nothing is missed in between, because readers take new records by their
//! number in the chain (`ActionsView::list_actions_since`).

use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::PathBuf;
use steward_domain::record::path::{RecordKind, RecordPath};

/// The revision of the index at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IndexRevision {
    /// A different number after any write, also after a check that found nothing. It is valid for this watcher only.
    pub revision: i64,
    /// The number of the newest audit record in the chain; 0 before the first.
    pub newest_action_seq: u64,
    /// The newest date that a signal gives for itself.
    pub newest_signal_at: Option<DateTime<Utc>>,
    /// Rises whenever a matter, task, signal or action is added or changed, by any process. A removal does not raise
    /// it.
    pub files_revision: u64,
}

/// Polls the revision of the index at nearly no cost.
#[derive(Debug)]
pub struct IndexWatcher {
    file: PathBuf,
    db: SqliteConnection,
    last: Option<IndexRevision>,
}

pub(crate) const REVISION: &str = "SELECT (SELECT MAX(seq) FROM actions), (SELECT MAX(created) FROM signals),
    (SELECT seq FROM sqlite_sequence WHERE name = 'documents')";

/// A record that was added or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRecord {
    /// The files revision after it was read.
    pub revision: u64,
    pub path: RecordPath,
    pub kind: RecordKind,
}

const WRITTEN_SINCE: &str = "SELECT id, path, kind FROM documents WHERE id > ?1 ORDER BY id LIMIT ?2";

impl ReadView<'_> {
    /// Lists the matters, tasks, signals and actions that were added or changed after a files revision, at most
    /// `limit`.
    ///
    /// They are in the order in which scans read them, each with its own revision.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_records_written_since(self, revision: u64, limit: u32) -> Result<Vec<WrittenRecord>, IndexError> {
        let rows: Vec<(i64, String, String)> = sqlx::query_as(WRITTEN_SINCE)
            .bind(i64::try_from(revision).unwrap_or(i64::MAX))
            .bind(i64::from(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(id, path, kind): (i64, String, String)| {
            let (path, kind) = (self.index.parse_path(&path)?, self.index.parse_enum(&kind)?);
            Ok(WrittenRecord { revision: id.cast_unsigned(), path, kind })
        };
        rows.into_iter().map(decode).collect()
    }

    /// Opens a watcher with its own connection.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn open_watcher(self) -> Result<IndexWatcher, IndexError> {
        let options = self.index.store.reader.connect_options();
        let db = options.as_ref().clone().connect().await.map_err(|e| self.index.sql_error(e))?;
        Ok(IndexWatcher { file: self.index.store.file.clone(), db, last: None })
    }
}

impl IndexWatcher {
    /// Reads the current revision.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn current_revision(&mut self) -> Result<IndexRevision, IndexError> {
        match self.query_revision().await {
            Ok(revision) => Ok(revision),
            Err(e) => Err(IndexError::from_sqlx(&self.file, e)),
        }
    }

    /// The revision is read before the rows, so a write in between is found by the next call.
    async fn query_revision(&mut self) -> sqlx::Result<IndexRevision> {
        let revision: i64 = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut self.db).await?;
        if let Some(last) = self.last.as_ref().filter(|last| last.revision == revision) {
            return Ok(last.clone());
        }
        let (seq, signal, files): (Option<i64>, Option<i64>, Option<i64>) =
            sqlx::query_as(REVISION).fetch_one(&mut self.db).await?;
        let current = IndexRevision {
            revision,
            newest_action_seq: seq.unwrap_or(0).cast_unsigned(),
            newest_signal_at: signal.and_then(from_micros),
            files_revision: files.unwrap_or(0).cast_unsigned(),
        };
        self.last = Some(current.clone());
        Ok(current)
    }
}
