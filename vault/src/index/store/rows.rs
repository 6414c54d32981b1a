//! Writes rows: one statement per table and batch, with the rows as one JSON argument.
//!
//! A batch is one transaction. So a reader sees a file's old rows or its new ones, and a scan never empties a table.
//! Nothing here reads a file.

use super::codec::{self, to_micros};
use super::identities::{self, NoteIdentity};
use super::links::{NoteChange, resolve_parents};
use super::parse::ParsedRecord;
use super::words;
use crate::index::Index;
use crate::index::IndexError;
use crate::index::cursors::wake;
use crate::index::read::questions;
use crate::index::store::files::{KnownFile, ScannedFile};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{Sqlite, SqliteConnection, Transaction};
use std::collections::{BTreeMap, HashMap};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordKind;

/// A constant SQL statement; most of them take one JSON array.
pub(crate) type SqlText = &'static str;

const FILES: SqlText = "INSERT OR REPLACE INTO files (path, kind, hash, size, modified_ns, inode, problem)
    SELECT value->>'path', value->>'kind', value->>'hash', value->>'size', value->>'modified_ns', value->>'inode',
           value->>'problem' FROM json_each(?1)";
const MATTERS: SqlText = "INSERT OR REPLACE INTO matters (path, name, state, state_as_written, ceiling, policy,
           policy_faults, hash)
    SELECT value->>'path', value->>'name', value->>'state', value->>'state_as_written', value->>'ceiling',
           value->>'policy', value->>'policy_faults', value->>'hash' FROM json_each(?1)";
const TASKS: SqlText =
    "INSERT OR REPLACE INTO tasks (path, parent, parent_link, parent_key, id, name, state, state_as_written, surface_class, due,
           snoozed_until, next_check_after, ceiling, has_unreadable_due, hash)
    SELECT value->>'path', value->>'parent', value->>'parent_link', value->>'parent_key', value->>'id', value->>'name',
           value->>'state', value->>'state_as_written', value->>'surface_class', value->>'due', value->>'snoozed_until',
           value->>'next_check_after', value->>'ceiling', value->>'has_unreadable_due', value->>'hash' FROM json_each(?1)";
/// Until their links are resolved, they name no matter: the path of a task stands for none.
const FURTHER_PARENTS: SqlText = "INSERT OR REPLACE INTO further_parents (task, position, link, link_key, parent)
    SELECT t.value->>'path', p.key + 1, p.value->>'link', p.value->>'key', t.value->>'path'
    FROM json_each(?1) t, json_each(t.value->'further_parents') p";
const SIGNALS: SqlText = "INSERT OR REPLACE INTO signals (path, target, created, source, instinct, note, effect,
           class, proposal, proposed_state, changes, target_confidence, effect_confidence, status, reason, applied,
           source_event)
    SELECT value->>'path', value->>'target', value->>'created', value->>'source', value->>'instinct',
           value->>'note', value->>'effect', value->>'class', value->>'proposal', value->>'proposed_state', value->>'changes',
           value->>'target_confidence', value->>'effect_confidence', value->>'status', value->>'reason',
           value->>'applied', value->>'source_event' FROM json_each(?1)";
const INSTINCTS: SqlText = "INSERT OR REPLACE INTO instincts (path, source, observations, ceiling, start)
    SELECT value->>'path', value->>'source', value->>'observations', value->>'ceiling', value->>'start' FROM json_each(?1)";
const ACTIONS: SqlText = "INSERT OR REPLACE INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode,
           pending, follows, resolves, proposed_state, class, judged, issue, tracks_of, trust_subject, trust_mode, closed, moves_to,
           moved_from, changes, proposal, prev, content, misnamed, edited, batch_id, by_agent, settles,
           ended, seq)
    SELECT value->>'path', value->>'id', value->>'kind', value->>'target', value->>'at', value->>'decision',
           value->>'confidence', value->>'disposition', value->>'mode', value->>'pending', value->>'follows', value->>'resolves',
           value->>'proposed_state', value->>'class', value->>'judged', value->>'issue', value->>'tracks_of',
           value->>'trust_subject', value->>'trust_mode', value->>'closed', value->>'moves_to', value->>'moved_from',
           value->>'changes', value->>'proposal', value->>'prev', value->>'content', value->>'misnamed',
           value->>'edited', value->>'batch_id', value->>'by_agent', value->>'settles', value->>'ended', value->>'seq'
    FROM json_each(?1)";
const STREAM_EVENTS: SqlText =
    "INSERT OR REPLACE INTO stream_events (path, source, pattern, received_at, status, tries,
           reason, hash)
    SELECT value->>'path', value->>'source', value->>'pattern', value->>'received_at', value->>'status',
           value->>'tries', value->>'reason', value->>'hash' FROM json_each(?1)";
const EVIDENCE: SqlText = "INSERT OR IGNORE INTO action_evidence (ref, action)
    SELECT e.value, a.value->>'path' FROM json_each(?1) a, json_each(a.value->'evidence') e";
const SOURCES: SqlText = "INSERT OR REPLACE INTO action_sources (action, source, name, contribution, cited, supports,
           proposal, seq, at)
    SELECT a.value->>'path', s.value->>'source', s.value->>'name', s.value->>'contribution', s.value->>'cited',
           s.value->>'supports', a.value->>'proposal', a.value->>'seq', a.value->>'at'
    FROM json_each(?1) a, json_each(a.value->'sources') s";
/// A signal that the router left to a steward is routed again once the steward has decided about it.
const RETRY_DECIDED: SqlText = "UPDATE routes SET retry_at = 0 WHERE at IS NULL AND retry_at < 9223372036854775807
    AND signal IN (SELECT e.value FROM json_each(?1) a, json_each(a.value->'evidence') e)";
/// A withheld signal is routed again once the steward has decided about the record of the question.
const RETRY_WITHHELD: SqlText = "UPDATE routes SET retry_at = 0 WHERE question IN (
    SELECT q.id FROM json_each(?1) a CROSS JOIN actions q INDEXED BY questions_by_target
        ON q.target = a.value->>'target' AND q.decision = 'needs_input' AND q.kind = 'steward-action'
            AND q.disposition = 'recorded'
    WHERE a.value->>'kind' = 'steward-action' AND a.value->>'judged' AND a.value->>'disposition' IN ('live', 'shadow'))";
/// Puts a new signal on the router's list, or takes it off if there is nothing to route.
const ROUTES: SqlText = "INSERT INTO routes (signal, acts, at, retry_at, met_at)
    SELECT n.value, s.path IS NULL, NULL, CASE WHEN s.path IS NULL THEN 9223372036854775807 ELSE 0 END, 0
    FROM json_each(?1) n LEFT JOIN signals_to_route s ON s.path = n.value WHERE true
    ON CONFLICT (signal) DO UPDATE SET retry_at = excluded.retry_at, acts = MAX(acts, excluded.acts), reason = NULL,
        question = NULL";
/// A signal with known content keeps its first-seen moment. A new one comes after the last check of its target, which may lie
/// in the future: the clock was set back since.
const FIRST_SEEN: SqlText = "INSERT INTO first_seen (signal, hash, at)
    SELECT n.value->>'path', n.value->>'hash', CASE WHEN ?3 THEN MIN(n.value->>'created', ?2)
        ELSE MAX(?2, COALESCE((SELECT last_check_at + 1 FROM task_checks WHERE task = n.value->>'target'), ?2)) END
    FROM json_each(?1) n WHERE true
    ON CONFLICT (signal) DO UPDATE SET hash = excluded.hash, at = excluded.at WHERE hash <> excluded.hash
    RETURNING signal";

pub(crate) const KEEP_META: SqlText = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
const DROP_FILES: SqlText = "DELETE FROM files WHERE path IN (SELECT value FROM json_each(?1))";
const DROP_EVIDENCE: SqlText = "DELETE FROM action_evidence WHERE action IN (SELECT value FROM json_each(?1))";
const DROP_SOURCES: SqlText = "DELETE FROM action_sources WHERE action IN (SELECT value FROM json_each(?1))";
/// Removes rows without a file. Only a bug in Steward can leave one, and a rebuild removes it.
const STRAYS: [SqlText; 10] = [
    "DELETE FROM matters WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    "DELETE FROM tasks WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    "DELETE FROM signals WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    "DELETE FROM instincts WHERE path NOT IN (SELECT path FROM files)",
    "DELETE FROM stream_events WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    "DELETE FROM actions WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    "DELETE FROM action_evidence WHERE action NOT IN (SELECT path FROM actions)",
    "DELETE FROM action_sources WHERE action NOT IN (SELECT path FROM actions)",
    "DELETE FROM documents WHERE path NOT IN (SELECT path FROM files WHERE problem IS NULL)",
    words::DROP_STRAYS,
];

/// The moment at which new signals count as first seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanClock {
    pub(crate) now: DateTime<Utc>,
    /// Whether this is the very first scan: its signals were in the vault before, so their own date may count.
    pub(crate) is_first_scan: bool,
    /// Whether the tables were filled under another mapping. Content is not compared across mappings.
    pub(crate) is_remapped: bool,
}

impl ScanClock {
    /// When notes that were not known before came; 0 in the very first scan.
    pub(super) fn arrival(self) -> i64 {
        if self.is_first_scan { 0 } else { to_micros(self.now) }
    }
}

#[derive(Serialize)]
struct FileRow<'a> {
    path: &'a str,
    kind: RecordKind,
    hash: Option<&'a str>,
    size: u64,
    modified_ns: i64,
    inode: u64,
    problem: Option<&'a str>,
}

impl Index {
    /// Reads the known rows of the files of a kind, or of some of them.
    pub(crate) async fn read_known_files(
        &self,
        kind: RecordKind,
        only: Option<&[String]>,
    ) -> Result<HashMap<String, KnownFile>, IndexError> {
        const COLUMNS: SqlText = "SELECT path, size, modified_ns, inode, hash, problem FROM files WHERE kind = ?1";
        const SOME: SqlText = "SELECT path, size, modified_ns, inode, hash, problem FROM files
            WHERE kind = ?1 AND path IN (SELECT value FROM json_each(?2))";
        type FileColumns = (String, i64, i64, i64, Option<String>, Option<String>);
        let query = match only {
            None => sqlx::query_as(COLUMNS).bind(codec::encode_enum(kind)),
            Some(paths) => sqlx::query_as(SOME).bind(codec::encode_enum(kind)).bind(to_json(&paths)),
        };
        let rows: Vec<FileColumns> = query.fetch_all(&self.store.writer).await.map_err(|e| self.sql_error(e))?;
        let known = rows.into_iter().map(|(path, size, modified_ns, inode, hash, problem)| {
            let hash = hash.as_deref().and_then(codec::decode_enum);
            (path, KnownFile { size: size.cast_unsigned(), modified_ns, inode: inode.cast_unsigned(), hash, problem })
        });
        Ok(known.collect())
    }

    /// Begins a writing transaction.
    pub(crate) async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, IndexError> {
        self.store.writer.begin_with("BEGIN IMMEDIATE").await.map_err(|e| self.sql_error(e))
    }

    /// Writes a batch of one kind. Returns the signals that are new or have new content.
    pub(crate) async fn write_files(
        &self,
        kind: RecordKind,
        files: &[ScannedFile],
        clock: ScanClock,
    ) -> Result<Vec<String>, IndexError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let work = async {
            let mut tx = self.begin_write().await?;
            let new_signals = write_batch(&mut tx, kind, files, clock).await.map_err(|e| self.sql_error(e))?;
            if kind.is_note() {
                let read = NoteChange::Read(files.iter().map(|file| file.path.as_str()).collect());
                resolve_parents(&mut tx, &self.notes, &read).await.map_err(|e| self.sql_error(e))?;
            }
            tx.commit().await.map_err(|e| self.sql_error(e))?;
            Ok::<_, IndexError>(new_signals)
        };
        let new_signals = work.await.inspect_err(|_| self.notes.clear())?;
        self.bump_records_revision(kind);
        Ok(new_signals)
    }

    /// Removes the rows of files that are gone. `gone_at` is `None` for notes that are still there, as another kind.
    pub(crate) async fn forget_files(
        &self,
        kind: RecordKind,
        gone: &[String],
        gone_at: Option<DateTime<Utc>>,
    ) -> Result<(), IndexError> {
        if gone.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin_write().await?;
        let work = async {
            if let Some(now) = gone_at.filter(|_| kind.is_note()) {
                identities::keep_gone(&mut tx, gone, now).await?;
            }
            execute_json(&mut tx, DROP_FILES, &to_json(&gone)).await?;
            drop_rows(&mut tx, kind, &gone).await?;
            if kind.is_note() {
                let gone = NoteChange::Gone(gone.iter().map(String::as_str).collect());
                resolve_parents(&mut tx, &self.notes, &gone).await?;
            }
            tx.commit().await
        };
        work.await.inspect_err(|_| self.notes.clear()).map_err(|e| self.sql_error(e))?;
        self.bump_records_revision(kind);
        Ok(())
    }

    /// Removes rows without a file.
    pub(crate) async fn drop_strays(&self) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        for sql in STRAYS {
            sqlx::query(sql).execute(&mut *tx).await.map_err(|e| self.sql_error(e))?;
        }
        tx.commit().await.map_err(|e| self.sql_error(e))?;
        self.bump_records_revision(RecordKind::Task);
        Ok(())
    }

    /// Reads every matter's path and state. A matter that cannot be read has no state.
    pub(crate) async fn read_matter_states(&self) -> Result<BTreeMap<String, Option<String>>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(
            "SELECT f.path, m.state FROM files f LEFT JOIN matters m ON m.path = f.path WHERE f.kind = 'matter'",
        )
        .fetch_all(&self.store.writer)
        .await
        .map_err(|e| self.sql_error(e))?;
        Ok(rows.into_iter().collect())
    }
}

async fn write_batch(
    tx: &mut SqliteConnection,
    kind: RecordKind,
    files: &[ScannedFile],
    clock: ScanClock,
) -> sqlx::Result<Vec<String>> {
    let rows: Vec<FileRow<'_>> = files.iter().map(|f| file_row(kind, f)).collect();
    execute_json(tx, FILES, &to_json(&rows)).await?;
    if kind.is_note() {
        let notes: Vec<NoteIdentity<'_>> = files.iter().map(note_identity).collect();
        identities::keep_seen(tx, &notes, clock.arrival(), clock.now).await?;
    }
    // A file with unchanged content keeps its rows.
    let stale: Vec<&str> = files.iter().filter(|f| f.changed || f.parsed.is_some()).map(|f| f.path.as_str()).collect();
    drop_rows(tx, kind, &stale).await?;
    insert_rows(tx, files, clock).await
}

fn note_identity(file: &ScannedFile) -> NoteIdentity<'_> {
    NoteIdentity {
        path: &file.path,
        inode: file.now.inode,
        born_ns: file.born_ns,
        modified_ns: file.now.modified_ns,
        hash: file.now.hash.as_ref().map(ContentHash::as_str),
    }
}

fn file_row(kind: RecordKind, file: &ScannedFile) -> FileRow<'_> {
    FileRow {
        path: &file.path,
        kind,
        hash: file.now.hash.as_ref().map(ContentHash::as_str),
        size: file.now.size,
        modified_ns: file.now.modified_ns,
        inode: file.now.inode,
        problem: file.now.problem.as_deref(),
    }
}

async fn insert_rows(tx: &mut SqliteConnection, files: &[ScannedFile], clock: ScanClock) -> sqlx::Result<Vec<String>> {
    let (mut matters, mut tasks, mut signals, mut instincts, mut actions, mut events) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut texts = Vec::new();
    for typed in files.iter().filter_map(|f| f.parsed.as_ref()) {
        texts.extend(words::search_text(typed));
        match typed {
            ParsedRecord::Matter(row) => matters.push(row),
            ParsedRecord::Task(row) => tasks.push(row),
            ParsedRecord::Signal(row) => signals.push(row),
            ParsedRecord::Instinct(row) => instincts.push(row),
            ParsedRecord::Stream(row) => events.push(row),
            ParsedRecord::Action(row) => actions.push(row),
        }
    }
    if !clock.is_remapped {
        insert_json(tx, questions::EDITS, &matters).await?;
        insert_json(tx, questions::EDITS, &tasks).await?;
    }
    insert_json(tx, MATTERS, &matters).await?;
    insert_json(tx, TASKS, &tasks).await?;
    insert_json(tx, FURTHER_PARENTS, &tasks).await?;
    insert_json(tx, questions::CONTENTS, &matters).await?;
    insert_json(tx, questions::CONTENTS, &tasks).await?;
    insert_json(tx, INSTINCTS, &instincts).await?;
    insert_json(tx, ACTIONS, &actions).await?;
    insert_json(tx, EVIDENCE, &actions).await?;
    insert_json(tx, SOURCES, &actions).await?;
    insert_json(tx, RETRY_DECIDED, &actions).await?;
    insert_json(tx, RETRY_WITHHELD, &actions).await?;
    insert_json(tx, STREAM_EVENTS, &events).await?;
    words::write_search_texts(tx, &texts).await?;
    insert_json(tx, SIGNALS, &signals).await?;
    if signals.is_empty() {
        return Ok(Vec::new());
    }
    let at = time_after_last_observation(tx, clock.now).await?;
    let first_seen = sqlx::query_scalar(FIRST_SEEN).bind(to_json(&signals)).bind(at).bind(clock.is_first_scan);
    let new: Vec<String> = first_seen.fetch_all(&mut *tx).await?;
    insert_json(tx, ROUTES, &new).await?;
    // The very first scan makes its marks at its end, when the judged signals are known from the audit records.
    if !clock.is_first_scan {
        wake::mark_matters_of_signals(tx, &new, at).await?;
    }
    Ok(new)
}

/// Now, but later than every observation so far. A tick that has already observed cannot have seen a signal that is
/// only written now, even if the scan read its clock before the tick did.
async fn time_after_last_observation(tx: &mut SqliteConnection, now: DateTime<Utc>) -> sqlx::Result<i64> {
    let last: Option<i64> = sqlx::query_scalar("SELECT MAX(observed_at) FROM matter_ticks").fetch_one(tx).await?;
    Ok(to_micros(now).max(last.map_or(i64::MIN, |at| at.saturating_add(1))))
}

async fn drop_rows<T: Serialize>(tx: &mut SqliteConnection, kind: RecordKind, paths: &T) -> sqlx::Result<()> {
    let paths = to_json(paths);
    words::forget_search_texts(tx, kind, &paths).await?;
    let sql = match kind {
        RecordKind::Matter => "DELETE FROM matters WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Task => "DELETE FROM tasks WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Signal => "DELETE FROM signals WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Instinct => "DELETE FROM instincts WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Stream => "DELETE FROM stream_events WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Event => {
            execute_json(tx, DROP_EVIDENCE, &paths).await?;
            execute_json(tx, DROP_SOURCES, &paths).await?;
            "DELETE FROM actions WHERE path IN (SELECT value FROM json_each(?1))"
        }
    };
    execute_json(tx, sql, &paths).await
}

async fn insert_json<T: Serialize>(tx: &mut SqliteConnection, sql: SqlText, rows: &[T]) -> sqlx::Result<()> {
    if rows.is_empty() { Ok(()) } else { execute_json(tx, sql, &to_json(&rows)).await }
}

pub(crate) async fn execute_json(tx: &mut SqliteConnection, sql: SqlText, rows: &str) -> sqlx::Result<()> {
    sqlx::query(sql).bind(rows).execute(tx).await.map(drop)
}

/// Serialises rows. They consist of texts and numbers under fixed names, which JSON can always represent.
pub(crate) fn to_json<T: Serialize>(rows: &T) -> String {
    serde_json::to_string(rows).unwrap_or_default()
}
