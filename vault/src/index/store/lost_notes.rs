//! Notes that are gone from their path and were not found under another one.
//!
//! They are shown to the person, who can say where they are. What a person says is only kept here: it counts once it is
//! recorded.

use super::codec::from_micros;
use super::identities::FORGET_PATHS;
use super::rows::{SqlText, to_json};
use crate::files::root::VaultRoot;
use crate::index::{Index, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::time::{Duration, Instant};
use steward_domain::record::link::link_key;
use steward_domain::record::path::RecordPath;

/// How long the process that holds the vault may take to record a move: 20 s.
const RECORD_PATIENCE: Duration = Duration::from_secs(20);
/// The pause before the index is read again: 200 ms.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

const LOST: SqlText = "SELECT g.path, MAX(g.gone_at), d.path FROM gone_notes g
    LEFT JOIN doubtful_notes d ON d.gone = g.path
    WHERE g.kind IN ('matter', 'task')
        AND NOT EXISTS (SELECT 1 FROM note_identities there WHERE there.path = g.path)
        AND (EXISTS (SELECT 1 FROM actions a WHERE a.target = g.path)
            OR EXISTS (SELECT 1 FROM matter_ticks k WHERE k.matter = g.path))
    GROUP BY g.path, d.path ORDER BY g.path, d.path";
const GONE_MATTERS: SqlText = "SELECT DISTINCT path FROM gone_notes WHERE kind = 'matter'
    AND NOT EXISTS (SELECT 1 FROM note_identities there WHERE there.path = gone_notes.path)";

impl Index {
    /// Lists the notes that are gone, that Steward has acted on, and that were not found under another path.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_lost_notes(&self) -> Result<Vec<LostNote>, IndexError> {
        let rows: Vec<(String, i64, Option<String>)> =
            sqlx::query_as(LOST).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let mut lost: Vec<LostNote> = Vec::new();
        for (path, gone_at, candidate) in rows {
            if lost.last().is_none_or(|last| last.path != path) {
                lost.push(LostNote { path, gone_at: from_micros(gone_at), candidates: Vec::new() });
            }
            if let Some(last) = lost.last_mut() {
                last.candidates.extend(candidate);
            }
        }
        Ok(lost)
    }

    /// Lists the matters whose notes are gone and not found under another path.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_gone_matters(&self) -> Result<Vec<RecordPath>, IndexError> {
        let paths: Vec<String> =
            sqlx::query_scalar(GONE_MATTERS).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        paths.iter().map(|path| self.parse_path(path)).collect()
    }

    /// Forgets a note that is gone, because a person said that it was deleted. `false` if it is not known.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn forget_lost_note(&self, path: &RecordPath) -> Result<bool, IndexError> {
        let forgotten = sqlx::query(FORGET_PATHS).bind(to_json(&[path.as_str()])).execute(&self.store.writer).await;
        forgotten.map(|done| done.rows_affected() > 0).map_err(|e| self.sql_error(e))
    }

    /// Counts the tasks whose link to a matter has the name of this note and names no note.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_tasks_linking_to(&self, path: &RecordPath) -> Result<u64, IndexError> {
        let sql = "SELECT COUNT(*) FROM tasks WHERE parent_key = ?1 AND parent_fault IS NOT NULL";
        let count: i64 = sqlx::query_scalar(sql)
            .bind(link_key(path.as_str()))
            .fetch_one(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        Ok(count.cast_unsigned())
    }

    /// Whether a note is gone from this path, and not found under another one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_missed(&self, path: &RecordPath) -> Result<bool, IndexError> {
        self.has_row("SELECT EXISTS (SELECT 1 FROM gone_notes WHERE path = ?1)", path).await
    }

    /// Whether the file at this path is the one that the last scan saw.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_known_file(&self, root: &VaultRoot, path: &RecordPath) -> Result<bool, IndexError> {
        let (root, note) = (root.clone(), path.clone());
        let entry = tokio::task::spawn_blocking(move || root.find_entry(&note)).await?.ok().flatten();
        let Some(entry) = entry else { return Ok(false) };
        sqlx::query_scalar(
            "SELECT EXISTS (SELECT 1 FROM note_identities WHERE path = ?1 AND inode = ?2 AND born_ns = ?3)",
        )
        .bind(path.as_str())
        .bind(entry.inode.cast_signed())
        .bind(entry.born_ns)
        .fetch_one(&self.store.reader)
        .await
        .map_err(|e| self.sql_error(e))
    }

    /// Whether a scan has seen a note at this path.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_known_note(&self, path: &RecordPath) -> Result<bool, IndexError> {
        self.has_row("SELECT EXISTS (SELECT 1 FROM note_identities WHERE path = ?1)", path).await
    }

    async fn has_row(&self, exists: SqlText, path: &RecordPath) -> Result<bool, IndexError> {
        let found = sqlx::query_scalar(exists).bind(path.as_str()).fetch_one(&self.store.reader).await;
        found.map_err(|e| self.sql_error(e))
    }

    /// Waits until what a person said about this note is recorded and its history follows, or cannot count any more.
    /// Another process does that, and only the index tells when. Returns `false` if that takes too long.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn wait_for_said_move(&self, old: &RecordPath) -> Result<bool, IndexError> {
        let started = Instant::now();
        while self.has_row("SELECT EXISTS (SELECT 1 FROM moves_by_hand WHERE old = ?1)", old).await?
            || self.is_following_moves().await?
        {
            if started.elapsed() > RECORD_PATIENCE {
                return Ok(false);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(true)
    }

    /// Whether people said something about notes that is not recorded yet.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn has_said_moves(&self) -> Result<bool, IndexError> {
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM moves_by_hand)")
            .fetch_one(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))
    }

    /// Keeps what a person said about a note that is gone, unless it cannot be so. The next [`Index::find_moves`] returns
    /// it.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn say_moved(
        &self,
        root: &VaultRoot,
        old: &RecordPath,
        new: &RecordPath,
        by: &str,
    ) -> Result<Result<(), MoveRefusal>, IndexError> {
        if !root.exists(new) || !self.is_known_note(new).await? {
            return Ok(Err(MoveRefusal::NoSuchNote { note: new.clone() }));
        }
        if !self.is_missed(old).await? {
            let note = old.clone();
            return Ok(Err(match root.exists(old) {
                true => MoveRefusal::StillThere { note },
                false => MoveRefusal::NotMissed { note },
            }));
        }
        self.keep_said_move(old, new, by).await.map(Ok)
    }

    async fn keep_said_move(&self, old: &RecordPath, new: &RecordPath, by: &str) -> Result<(), IndexError> {
        sqlx::query("INSERT OR REPLACE INTO moves_by_hand (old, new, by) VALUES (?1, ?2, ?3)")
            .bind(old.as_str())
            .bind(new.as_str())
            .bind(by)
            .execute(&self.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.sql_error(e))
    }
}

/// Why a note cannot have moved as a person says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    #[error("{note}: there is no such note in the vault")]
    NoSuchNote { note: RecordPath },
    #[error("{note}: this note is still there: `steward moved` lists those that are gone")]
    StillThere { note: RecordPath },
    #[error("{note}: Steward misses no such note: `steward moved` lists those that are gone")]
    NotMissed { note: RecordPath },
}

/// A note that is gone, and the notes that could be it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostNote {
    pub path: String,
    pub gone_at: Option<DateTime<Utc>>,
    pub candidates: Vec<String>,
}
