//! Writes rows: one statement per table and batch, the rows as one JSON argument.
//!
//! A batch is one transaction, so a reader sees a file's old rows or its new ones, and a scan never
//! empties a table on its way. Nothing here reads a file.

use super::Index;
use super::IndexError;
use super::asks;
use super::codec::{self, micros};
use super::parse::Typed;
use super::read::{FileNow, Known};
use super::wake;
use super::words;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{Sqlite, SqliteConnection, Transaction};
use std::collections::{BTreeMap, HashMap};
use steward_domain::path::RecordKind;

/// A statement that takes one JSON array.
pub(super) type Sql = &'static str;

const FILES: Sql = "INSERT OR REPLACE INTO files (path, kind, hash, size, modified_ns, inode, problem)
    SELECT value->>'path', value->>'kind', value->>'hash', value->>'size', value->>'modified_ns', value->>'inode',
           value->>'problem' FROM json_each(?1)";
const MATTERS: Sql = "INSERT OR REPLACE INTO matters (path, name, state, state_as_written, ceiling, policy,
           policy_faults, hash)
    SELECT value->>'path', value->>'name', value->>'state', value->>'state_as_written', value->>'ceiling',
           value->>'policy', value->>'policy_faults', value->>'hash' FROM json_each(?1)";
const TASKS: Sql = "INSERT OR REPLACE INTO tasks (path, parent, id, name, state, state_as_written, surface_class, due,
           snoozed_until, next_check_after, hash)
    SELECT value->>'path', value->>'parent', value->>'id', value->>'name', value->>'state',
           value->>'state_as_written', value->>'surface_class', value->>'due', value->>'snoozed_until',
           value->>'next_check_after', value->>'hash' FROM json_each(?1)";
const SIGNALS: Sql = "INSERT OR REPLACE INTO signals (path, target, created, source, instinct, note, effect,
           class, proposal, proposed_state, changes, target_confidence, effect_confidence, status, reason, applied,
           source_event)
    SELECT value->>'path', value->>'target', value->>'created', value->>'source', value->>'instinct',
           value->>'note', value->>'effect', value->>'class', value->>'proposal', value->>'proposed_state', value->>'changes',
           value->>'target_confidence', value->>'effect_confidence', value->>'status', value->>'reason',
           value->>'applied', value->>'source_event' FROM json_each(?1)";
const INSTINCTS: Sql = "INSERT OR REPLACE INTO instincts (path, source, observations, ceiling, start)
    SELECT value->>'path', value->>'source', value->>'observations', value->>'ceiling', value->>'start' FROM json_each(?1)";
const ACTIONS: Sql = "INSERT OR REPLACE INTO actions (path, id, kind, target, at, decision, confidence, landing, mode,
           pending, answers_of, proposed_state, class, judged, issue, tracks_of, trust_subject, trust_mode, closed, moves_to,
           moved_from, changes, proposal, prev, content, misnamed, edited, together,
           seq)
    SELECT value->>'path', value->>'id', value->>'kind', value->>'target', value->>'at', value->>'decision',
           value->>'confidence', value->>'landing', value->>'mode', value->>'pending', value->>'answers_of',
           value->>'proposed_state', value->>'class', value->>'judged', value->>'issue', value->>'tracks_of',
           value->>'trust_subject', value->>'trust_mode', value->>'closed', value->>'moves_to', value->>'moved_from',
           value->>'changes', value->>'proposal', value->>'prev', value->>'content', value->>'misnamed',
           value->>'edited', value->>'together', value->>'seq'
    FROM json_each(?1)";
const STREAM_EVENTS: Sql = "INSERT OR REPLACE INTO stream_events (path, source, pattern, received_at, status, tries,
           reason, hash)
    SELECT value->>'path', value->>'source', value->>'pattern', value->>'received_at', value->>'status',
           value->>'tries', value->>'reason', value->>'hash' FROM json_each(?1)";
const EVIDENCE: Sql = "INSERT OR IGNORE INTO action_evidence (ref, action)
    SELECT e.value, a.value->>'path' FROM json_each(?1) a, json_each(a.value->'evidence') e";
const SOURCES: Sql = "INSERT OR REPLACE INTO action_sources (action, source, name, contribution, cited, speaks,
           proposal, seq, at)
    SELECT a.value->>'path', s.value->>'source', s.value->>'name', s.value->>'contribution', s.value->>'cited',
           s.value->>'speaks', a.value->>'proposal', a.value->>'seq', a.value->>'at'
    FROM json_each(?1) a, json_each(a.value->'sources') s";
/// What the router left to a steward it meets again once that has decided: the signal then says so.
const DECIDED: Sql = "UPDATE routes SET retry_at = 0 WHERE at IS NULL AND retry_at < 9223372036854775807
    AND signal IN (SELECT e.value FROM json_each(?1) a, json_each(a.value->'evidence') e)";
/// What was withheld because of a question about a record is met again once its steward has decided about that.
const RELEASED: Sql = "UPDATE routes SET retry_at = 0 WHERE question IN (
    SELECT q.id FROM json_each(?1) a CROSS JOIN actions q INDEXED BY questions_by_target
        ON q.target = a.value->>'target' AND q.decision = 'needs_input' AND q.kind = 'steward-action'
            AND q.landing = 'recorded'
    WHERE a.value->>'kind' = 'steward-action' AND a.value->>'judged' AND a.value->>'landing' IN ('live', 'shadow'))";
/// What is new is on the router's list, or off it where nothing is to be done.
const ROUTES: Sql = "INSERT INTO routes (signal, acts, at, retry_at, met_at)
    SELECT n.value, s.path IS NULL, NULL, CASE WHEN s.path IS NULL THEN 9223372036854775807 ELSE 0 END, 0
    FROM json_each(?1) n LEFT JOIN signals_to_route s ON s.path = n.value WHERE true
    ON CONFLICT (signal) DO UPDATE SET retry_at = excluded.retry_at, acts = MAX(acts, excluded.acts), reason = NULL,
        question = NULL";
/// A signal whose content is known keeps the moment at which it was first seen.
const FIRST_SEEN: Sql = "INSERT INTO first_seen (signal, hash, at)
    SELECT value->>'path', value->>'hash', CASE WHEN ?3 THEN MIN(value->>'created', ?2) ELSE ?2 END
    FROM json_each(?1) WHERE true
    ON CONFLICT (signal) DO UPDATE SET hash = excluded.hash, at = excluded.at WHERE hash <> excluded.hash
    RETURNING signal";

const DROP_FILES: Sql = "DELETE FROM files WHERE path IN (SELECT value FROM json_each(?1))";
const DROP_EVIDENCE: Sql = "DELETE FROM action_evidence WHERE action IN (SELECT value FROM json_each(?1))";
const DROP_SOURCES: Sql = "DELETE FROM action_sources WHERE action IN (SELECT value FROM json_each(?1))";
/// A record filed without its file: only a fault of ours leaves one, and a rebuild mends that.
const STRAYS: [Sql; 10] = [
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

/// When signals that are new count as first seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) now: DateTime<Utc>,
    /// The first scan of all: what is in the vault was there before.
    pub(super) filling: bool,
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
    /// What is known of the files of a kind, or of some of them.
    pub(super) async fn known(
        &self,
        kind: RecordKind,
        only: Option<&[String]>,
    ) -> Result<HashMap<String, Known>, IndexError> {
        const COLUMNS: Sql = "SELECT path, size, modified_ns, inode, hash, problem FROM files WHERE kind = ?1";
        const SOME: Sql = "SELECT path, size, modified_ns, inode, hash, problem FROM files
            WHERE kind = ?1 AND path IN (SELECT value FROM json_each(?2))";
        type Row = (String, i64, i64, i64, Option<String>, Option<String>);
        let query = match only {
            None => sqlx::query_as(COLUMNS).bind(codec::word(kind)),
            Some(paths) => sqlx::query_as(SOME).bind(codec::word(kind)).bind(json(&paths)),
        };
        let rows: Vec<Row> = query.fetch_all(&self.store.writer).await.map_err(|e| self.sql(e))?;
        let known = rows.into_iter().map(|(path, size, modified_ns, inode, hash, problem)| {
            let hash = hash.as_deref().and_then(codec::unword);
            (path, Known { size: size.cast_unsigned(), modified_ns, inode: inode.cast_unsigned(), hash, problem })
        });
        Ok(known.collect())
    }

    /// Begins a writing transaction.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, IndexError> {
        self.store.writer.begin_with("BEGIN IMMEDIATE").await.map_err(|e| self.sql(e))
    }

    /// Writes a batch of one kind; returns the signals that are new or have new content.
    pub(super) async fn write(
        &self,
        kind: RecordKind,
        files: &[FileNow],
        clock: Clock,
    ) -> Result<Vec<String>, IndexError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = self.begin().await?;
        let seen = write_batch(&mut tx, kind, files, clock).await.map_err(|e| self.sql(e))?;
        tx.commit().await.map_err(|e| self.sql(e))?;
        self.next_edition(kind);
        Ok(seen)
    }

    /// Forgets files that are gone.
    pub(super) async fn forget(&self, kind: RecordKind, gone: &[String]) -> Result<(), IndexError> {
        if gone.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin().await?;
        let work = async {
            run(&mut tx, DROP_FILES, &json(&gone)).await?;
            drop_rows(&mut tx, kind, &gone).await
        };
        work.await.map_err(|e| self.sql(e))?;
        tx.commit().await.map_err(|e| self.sql(e))?;
        self.next_edition(kind);
        Ok(())
    }

    /// Removes rows that no file stands behind.
    pub(super) async fn drop_strays(&self) -> Result<(), IndexError> {
        let mut tx = self.begin().await?;
        for sql in STRAYS {
            sqlx::query(sql).execute(&mut *tx).await.map_err(|e| self.sql(e))?;
        }
        tx.commit().await.map_err(|e| self.sql(e))?;
        self.next_edition(RecordKind::Task);
        Ok(())
    }

    /// Every matter's path and state; one that cannot be read has none.
    pub(super) async fn matter_states(&self) -> Result<BTreeMap<String, Option<String>>, IndexError> {
        let rows: Vec<(String, Option<String>)> = sqlx::query_as(
            "SELECT f.path, m.state FROM files f LEFT JOIN matters m ON m.path = f.path WHERE f.kind = 'matter'",
        )
        .fetch_all(&self.store.writer)
        .await
        .map_err(|e| self.sql(e))?;
        Ok(rows.into_iter().collect())
    }
}

async fn write_batch(
    tx: &mut SqliteConnection,
    kind: RecordKind,
    files: &[FileNow],
    clock: Clock,
) -> sqlx::Result<Vec<String>> {
    let rows: Vec<FileRow<'_>> = files.iter().map(|f| file_row(kind, f)).collect();
    run(tx, FILES, &json(&rows)).await?;
    // A file whose content is as it was keeps its rows.
    let stale: Vec<&str> = files.iter().filter(|f| f.changed || f.typed.is_some()).map(|f| f.path.as_str()).collect();
    drop_rows(tx, kind, &stale).await?;
    insert_rows(tx, files, clock).await
}

fn file_row(kind: RecordKind, file: &FileNow) -> FileRow<'_> {
    FileRow {
        path: &file.path,
        kind,
        hash: file.now.hash.as_ref().map(steward_domain::plan::ContentHash::as_str),
        size: file.now.size,
        modified_ns: file.now.modified_ns,
        inode: file.now.inode,
        problem: file.now.problem.as_deref(),
    }
}

async fn insert_rows(tx: &mut SqliteConnection, files: &[FileNow], clock: Clock) -> sqlx::Result<Vec<String>> {
    let (mut matters, mut tasks, mut signals, mut instincts, mut actions, mut events) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut texts = Vec::new();
    for typed in files.iter().filter_map(|f| f.typed.as_ref()) {
        texts.extend(words::said(typed));
        match typed {
            Typed::Matter(row) => matters.push(row),
            Typed::Task(row) => tasks.push(row),
            Typed::Signal(row) => signals.push(row),
            Typed::Instinct(row) => instincts.push(row),
            Typed::Stream(row) => events.push(row),
            Typed::Action(row) => actions.push(row),
        }
    }
    insert(tx, asks::EDITS, &matters).await?;
    insert(tx, asks::EDITS, &tasks).await?;
    insert(tx, MATTERS, &matters).await?;
    insert(tx, TASKS, &tasks).await?;
    insert(tx, asks::CONTENTS, &matters).await?;
    insert(tx, asks::CONTENTS, &tasks).await?;
    insert(tx, INSTINCTS, &instincts).await?;
    insert(tx, ACTIONS, &actions).await?;
    insert(tx, EVIDENCE, &actions).await?;
    insert(tx, SOURCES, &actions).await?;
    insert(tx, DECIDED, &actions).await?;
    insert(tx, RELEASED, &actions).await?;
    insert(tx, STREAM_EVENTS, &events).await?;
    words::write(tx, &texts).await?;
    insert(tx, SIGNALS, &signals).await?;
    if signals.is_empty() {
        return Ok(Vec::new());
    }
    let at = after_every_look(tx, clock.now).await?;
    let first_seen = sqlx::query_scalar(FIRST_SEEN).bind(json(&signals)).bind(at).bind(clock.filling);
    let new: Vec<String> = first_seen.fetch_all(&mut *tx).await?;
    insert(tx, ROUTES, &new).await?;
    // The very first scan marks at its end, when it is known what was judged before the index was lost.
    if !clock.filling {
        wake::mark(tx, &new, at).await?;
    }
    Ok(new)
}

/// Now, but later than every look so far: a look that has just been taken cannot have seen what is
/// only filed now, even if the scan's clock was read before the look's.
async fn after_every_look(tx: &mut SqliteConnection, now: DateTime<Utc>) -> sqlx::Result<i64> {
    let last: Option<i64> = sqlx::query_scalar("SELECT MAX(observed_at) FROM matter_ticks").fetch_one(tx).await?;
    Ok(micros(now).max(last.map_or(i64::MIN, |at| at.saturating_add(1))))
}

async fn drop_rows<T: Serialize>(tx: &mut SqliteConnection, kind: RecordKind, paths: &T) -> sqlx::Result<()> {
    let paths = json(paths);
    words::forget(tx, kind, &paths).await?;
    let sql = match kind {
        RecordKind::Matter => "DELETE FROM matters WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Task => "DELETE FROM tasks WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Signal => "DELETE FROM signals WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Instinct => "DELETE FROM instincts WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Stream => "DELETE FROM stream_events WHERE path IN (SELECT value FROM json_each(?1))",
        RecordKind::Event => {
            run(tx, DROP_EVIDENCE, &paths).await?;
            run(tx, DROP_SOURCES, &paths).await?;
            "DELETE FROM actions WHERE path IN (SELECT value FROM json_each(?1))"
        }
    };
    run(tx, sql, &paths).await
}

async fn insert<T: Serialize>(tx: &mut SqliteConnection, sql: Sql, rows: &[T]) -> sqlx::Result<()> {
    if rows.is_empty() { Ok(()) } else { run(tx, sql, &json(&rows)).await }
}

pub(super) async fn run(tx: &mut SqliteConnection, sql: Sql, rows: &str) -> sqlx::Result<()> {
    sqlx::query(sql).bind(rows).execute(tx).await.map(drop)
}

/// Our rows are texts and numbers under fixed names, which JSON always takes.
pub(super) fn json<T: Serialize>(rows: &T) -> String {
    serde_json::to_string(rows).unwrap_or_default()
}
