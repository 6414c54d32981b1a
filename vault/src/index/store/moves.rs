//! Lets everything follow a note that was moved: what is kept under its old path goes to its new one.
//!
//! Only chained audit records count, so that a rebuilt index finds the same. State is moved once, when the record is
//! read. Audit records and signals name the old path for ever, so those about moved notes are read again: the parser
//! follows the moves.

use super::codec::{from_micros, to_micros};
use super::files::ScanDepth;
use super::rows::{KEEP_META, SqlText, execute_json, to_json};
use super::sync::VaultScan;
use crate::action::chain;
use crate::index::read::questions;
use crate::index::{Index, IndexError};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{FromRow, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steward_domain::action::audit::AuditRecord;
use steward_domain::record::frontmatter;
use steward_domain::record::moves::{MoveHistory, NoteMove, RecordedMoves};
use steward_domain::record::path::{RecordKind, RecordPath};

/// The tables of our own state that have rows for notes, with the column of the path.
pub(crate) const STATE_OF_NOTES: [(&str, &str); 8] = [
    ("task_checks", "task"),
    ("matter_ticks", "matter"),
    ("leases", "task"),
    ("timestamp_writes", "task"),
    ("wakes", "matter"),
    ("snoozes", "target"),
    ("contents", "path"),
    ("edits", "path"),
];
/// The key in the table `meta` of the last record that the ledger has followed.
pub(super) const LEDGER_KEY: &str = "moves_in_ledger";
/// How long before its move is noticed the links to a note may have been rewritten: 1 h.
const REWRITTEN: TimeDelta = TimeDelta::hours(1);
/// The key in the table `meta` that is set while audit records and signals about moved notes must be read again.
const PENDING_KEY: &str = "moves_pending";

/// The chained records whose moves are not known yet.
const UNKNOWN_MOVES: SqlText = "SELECT a.path, a.seq, a.at FROM actions a INDEXED BY actions_of_moves
    CROSS JOIN files f ON f.path = a.path WHERE a.kind = 'steward-notes-moved' AND a.misnamed = 0
        AND (EXISTS (SELECT 1 FROM actions n WHERE n.seq = a.seq + 1 AND n.prev = f.hash) OR f.hash = ?1)
        AND NOT EXISTS (SELECT 1 FROM note_moves m WHERE m.seq = a.seq) AND a.seq <= ?2
    ORDER BY a.seq";
const ANY_UNKNOWN: SqlText = "SELECT EXISTS (SELECT 1 FROM actions a INDEXED BY actions_of_moves
    WHERE a.kind = 'steward-notes-moved' AND NOT EXISTS (SELECT 1 FROM note_moves m WHERE m.seq = a.seq))";
const ADD_MOVES: SqlText = "INSERT OR IGNORE INTO note_moves (seq, at, old, new)
    SELECT ?2, ?3, value->>'from', value->>'to' FROM json_each(?1)";
const ALL_MOVES: SqlText = "SELECT seq, at, old, new FROM note_moves WHERE seq > ?1 ORDER BY seq";
const DROP_KNOWN: [SqlText; 3] = [
    "DELETE FROM gone_notes WHERE path IN (SELECT value->>'from' FROM json_each(?1))",
    "DELETE FROM moves_by_hand WHERE old IN (SELECT value->>'from' FROM json_each(?1))",
    "DELETE FROM doubtful_notes WHERE gone IN (SELECT value->>'from' FROM json_each(?1))
        OR path IN (SELECT value->>'to' FROM json_each(?1))",
];
const MOVED_CONTENTS: SqlText = "SELECT j.value->>'to' AS path, c.content FROM json_each(?1) j
    CROSS JOIN contents c ON c.path = j.value->>'to' WHERE j.value->>'to' IS NOT NULL";
/// The audit records and signals that name one of these paths.
const NAMING: SqlText = "SELECT path FROM actions WHERE target IN (SELECT value FROM json_each(?1))
    UNION SELECT path FROM actions WHERE moves_to IN (SELECT value FROM json_each(?1))
        OR moved_from IN (SELECT value FROM json_each(?1))
    UNION SELECT path FROM signals WHERE target IN (SELECT value FROM json_each(?1))";

/// Notes whose links may name another note by now: those with edits of people, and those that were written since.
/// ?1: an hour before the moves were noticed, in nanoseconds.
const TO_HASH_AGAIN: SqlText = "SELECT c.path, f.kind FROM contents c CROSS JOIN files f ON f.path = c.path
    WHERE EXISTS (SELECT 1 FROM edits e WHERE e.path = c.path)
    UNION SELECT i.path, f.kind FROM note_identities i CROSS JOIN files f ON f.path = i.path
    WHERE i.modified_ns >= ?1 AND f.kind IN ('matter', 'task')";
/// What seemed to be an edit and was only a link under the new name of its note.
const DROP_EDITS: SqlText = "DELETE FROM edits WHERE EXISTS (
    SELECT 1 FROM json_each(?1) j WHERE j.value->>'path' = edits.path AND j.value->>'content' = edits.before)";

#[derive(FromRow)]
struct MoveColumns {
    seq: i64,
    at: i64,
    old: String,
    new: Option<String>,
}

#[derive(Serialize, FromRow)]
struct ContentRow {
    path: String,
    content: String,
}

impl Index {
    /// Where notes have moved.
    #[must_use]
    pub fn note_moves(&self) -> Arc<MoveHistory> {
        self.notes.moves()
    }

    /// Loads the moves of notes from the tables. Another process may have added some.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn load_note_moves(&self) -> Result<(), IndexError> {
        let records = self.read_moves_since(0).await?;
        self.notes.keep_moves(MoveHistory::new(self.note_schema().link_scope(), records));
        Ok(())
    }

    /// Whether audit records and signals about moved notes must still be read again.
    pub(super) async fn is_following_moves(&self) -> Result<bool, IndexError> {
        Ok(self.read_meta(PENDING_KEY).await?.is_some())
    }

    /// The moves that the rate guard's ledger has not followed yet, in the order of their records.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_moves_for_ledger(&self) -> Result<Vec<RecordedMoves>, IndexError> {
        self.read_moves_since(self.read_meta(LEDGER_KEY).await?.unwrap_or_default()).await
    }

    /// Notes that the ledger has followed the record of this number.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn mark_followed_in_ledger(&self, seq: u64) -> Result<(), IndexError> {
        self.write_meta(LEDGER_KEY, seq.cast_signed()).await
    }

    async fn read_moves_since(&self, seq: i64) -> Result<Vec<RecordedMoves>, IndexError> {
        let rows: Vec<MoveColumns> =
            sqlx::query_as(ALL_MOVES).bind(seq).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let mut records: BTreeMap<i64, RecordedMoves> = BTreeMap::new();
        for row in rows {
            let Some(at) = from_micros(row.at) else { continue };
            let to = row.new.map(|new| self.parse_path(&new)).transpose()?;
            let moved = NoteMove { from: self.parse_path(&row.old)?, to };
            let seq = row.seq.cast_unsigned();
            records.entry(row.seq).or_insert(RecordedMoves { seq, at, moves: Vec::new() }).moves.push(moved);
        }
        Ok(records.into_values().collect())
    }

    /// Moves the state of one record's notes, and keeps the moves.
    async fn add_moves(
        &self,
        seq: i64,
        at: DateTime<Utc>,
        moves: &[NoteMove],
        has_state: bool,
    ) -> Result<(), IndexError> {
        let rows = to_json(&moves);
        let mut tx = self.begin_write().await?;
        let work = async {
            sqlx::query(ADD_MOVES).bind(&rows).bind(seq).bind(to_micros(at)).execute(&mut *tx).await?;
            if has_state {
                move_state(&mut tx, &rows).await?;
            }
            for sql in DROP_KNOWN {
                execute_json(&mut tx, sql, &rows).await?;
            }
            sqlx::query(KEEP_META).bind(PENDING_KEY).bind(1).execute(&mut *tx).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))?;
        self.bump_records_revision(RecordKind::Task);
        Ok(())
    }
}

/// Moves every row that is kept under an old path. Two notes may have changed places, so each row first gets a name that
/// no note can have.
async fn move_state(tx: &mut SqliteConnection, moves: &str) -> sqlx::Result<()> {
    let now: Vec<ContentRow> = sqlx::query_as(MOVED_CONTENTS).bind(moves).fetch_all(&mut *tx).await?;
    // All names are constants of this module.
    for (table, column) in STATE_OF_NOTES {
        let park = format!(
            "UPDATE {table} SET {column} = '/' || (j.value->>'to') FROM json_each(?1) j
             WHERE {table}.{column} = j.value->>'from' AND j.value->>'to' IS NOT NULL"
        );
        let end = format!("DELETE FROM {table} WHERE {column} IN (SELECT value->>'from' FROM json_each(?1))");
        let unpark = format!(
            "UPDATE OR REPLACE {table} SET {column} = substr({column}, 2) WHERE {column} >= '/' AND {column} < '0'"
        );
        sqlx::query(sqlx::AssertSqlSafe(park)).bind(moves).execute(&mut *tx).await?;
        sqlx::query(sqlx::AssertSqlSafe(end)).bind(moves).execute(&mut *tx).await?;
        sqlx::query(sqlx::AssertSqlSafe(unpark)).execute(&mut *tx).await?;
    }
    // A note that was edited while it moved has other content than before.
    let now = to_json(&now);
    execute_json(tx, questions::EDITS, &now).await?;
    execute_json(tx, questions::CONTENTS, &now).await
}

impl VaultScan<'_> {
    /// Follows the moves of records that were read for the first time.
    pub(super) async fn follow_new_moves(&mut self) -> Result<(), IndexError> {
        let is_any: bool = sqlx::query_scalar(ANY_UNKNOWN)
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        if !is_any {
            return self.read_naming_files().await;
        }
        // Anybody can drop a file behind the last record. It counts only up to the head that the writer keeps.
        let root = self.root.clone();
        let Ok(head) = tokio::task::spawn_blocking(move || chain::read_head(&root)).await? else { return Ok(()) };
        let unknown: Vec<(String, i64, i64)> = sqlx::query_as(UNKNOWN_MOVES)
            .bind(head.sha256.as_str())
            .bind(head.seq.cast_signed())
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let has_new = !unknown.is_empty();
        for (path, seq, at) in unknown {
            let Some(at) = from_micros(at) else { continue };
            let (root, path) = (self.root.clone(), self.index.parse_path(&path)?);
            let read = move || AuditRecord::parse(&root.read_file(&path).ok()?.bytes).ok();
            let Some(record) = tokio::task::spawn_blocking(read).await? else { continue };
            // The state of a new index is that of today, so nothing of it moves.
            self.index.add_moves(seq, at, &record.moves, !self.report.first).await?;
        }
        if has_new {
            self.index.load_note_moves().await?;
        }
        self.read_naming_files().await
    }

    /// Computes the hashes of contents again that may depend on the moves: an editor rewrites the links to a note that it
    /// renames, and a scan may have met them before it knew of the move.
    async fn hash_contents_again(&self) -> Result<(), IndexError> {
        let since = (self.clock.now - REWRITTEN).timestamp_nanos_opt().unwrap_or_default();
        let notes: Vec<(String, String)> = sqlx::query_as(TO_HASH_AGAIN)
            .bind(since)
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let (root, scan) = (self.root.clone(), self.create_context());
        let hash = move |(path, kind): &(String, String)| {
            let (note, kind) = (RecordPath::parse(path).ok()?, kind.parse::<RecordKind>().ok()?);
            let document = frontmatter::read_note(&root.read_file(&note).ok()?.bytes).ok()?;
            let content = scan.hash_content(kind, &note, &document);
            Some(ContentRow { path: path.clone(), content })
        };
        let hashed =
            tokio::task::spawn_blocking(move || notes.iter().filter_map(hash).collect::<Vec<ContentRow>>()).await?;
        let (mut tx, rows) = (self.index.begin_write().await?, to_json(&hashed));
        let work = async {
            execute_json(&mut tx, DROP_EDITS, &rows).await?;
            execute_json(&mut tx, questions::CONTENTS, &rows).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }

    /// Reads the audit records and signals about moved notes again, if that was not finished before.
    async fn read_naming_files(&mut self) -> Result<(), IndexError> {
        if !self.index.is_following_moves().await? {
            return Ok(());
        }
        self.hash_contents_again().await?;
        let old: BTreeSet<String> = sqlx::query_scalar("SELECT DISTINCT old FROM note_moves")
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?
            .into_iter()
            .collect();
        let naming: Vec<String> = sqlx::query_scalar(NAMING)
            .bind(to_json(&old))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let naming: Vec<RecordPath> = naming.iter().filter_map(|path| RecordPath::parse(path).ok()).collect();
        let depth = std::mem::replace(&mut self.depth, ScanDepth::Nothing);
        for kind in [RecordKind::Event, RecordKind::Signal] {
            let named: BTreeSet<&RecordPath> = naming.iter().filter(|path| path.own_kind() == Some(kind)).collect();
            self.scan_named_files(kind, &named).await?;
        }
        self.depth = depth;
        sqlx::query("DELETE FROM meta WHERE key = ?1")
            .bind(PENDING_KEY)
            .execute(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(())
    }
}
