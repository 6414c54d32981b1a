//! Recognises notes that people renamed or moved.
//!
//! A note is the same if its inode and its time of birth are equal, or if its content is equal and no other note has or
//! had it. What is found here is only a proposal: [`crate::action::moves`] records it, and then [`super::moves`] lets
//! everything follow that is kept under the old path.

use super::codec::to_micros;
use super::rows::{SqlText, execute_json, to_json};
use crate::files::root::VaultRoot;
use crate::index::{Index, IndexError};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{FromRow, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::record::link::fold_name;
use steward_domain::record::moves::NoteMove;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::is_sync_copy;

/// How long a note that is gone is remembered: 14 days, so that a holiday or a slow sync tool loses nothing.
const REMEMBERED: TimeDelta = TimeDelta::days(14);
/// How long before or after a note goes another one may come that can be it: 1 h. Sync tools deliver in pieces.
const PIECES: TimeDelta = TimeDelta::hours(1);

/// What another file replaced under its path. Editors that save by an exchange of files do that, and so do we.
const KEEP_REPLACED: SqlText = "INSERT OR REPLACE INTO gone_notes
        (path, kind, inode, born_ns, modified_ns, hash, came_at, gone_at)
    SELECT i.path, (SELECT f.kind FROM files f WHERE f.path = i.path), i.inode, i.born_ns, i.modified_ns, i.hash, i.came_at, ?2
    FROM json_each(?1) j CROSS JOIN note_identities i ON i.path = j.value->>'path'
    WHERE i.inode <> j.value->>'inode' OR i.born_ns <> j.value->>'born_ns'";
const KEEP_SEEN: SqlText = "INSERT INTO note_identities (path, inode, born_ns, modified_ns, hash, came_at)
    SELECT value->>'path', value->>'inode', value->>'born_ns', value->>'modified_ns', value->>'hash', ?2
    FROM json_each(?1) WHERE true
    ON CONFLICT (path) DO UPDATE SET inode = excluded.inode, born_ns = excluded.born_ns,
        modified_ns = excluded.modified_ns, hash = excluded.hash";
const KEEP_GONE: SqlText = "INSERT OR REPLACE INTO gone_notes
        (path, kind, inode, born_ns, modified_ns, hash, came_at, gone_at)
    SELECT i.path, (SELECT f.kind FROM files f WHERE f.path = i.path), i.inode, i.born_ns, i.modified_ns, i.hash, i.came_at, ?2
    FROM json_each(?1) j CROSS JOIN note_identities i ON i.path = j.value";
const DROP_GONE: SqlText = "DELETE FROM note_identities WHERE path IN (SELECT value FROM json_each(?1))";

/// A note that is back as it was, one that was replaced long ago, and one that is gone for too long.
const FORGET: [SqlText; 3] = [
    "DELETE FROM gone_notes AS g WHERE EXISTS (SELECT 1 FROM note_identities i WHERE i.path = g.path
            AND (i.inode = g.inode AND i.born_ns = g.born_ns AND i.born_ns <> 0 OR i.hash = g.hash))
        AND NOT EXISTS (SELECT 1 FROM note_identities i
            WHERE i.inode = g.inode AND i.born_ns = g.born_ns AND i.born_ns <> 0 AND i.path <> g.path)",
    "DELETE FROM gone_notes WHERE gone_at < ?2
        AND EXISTS (SELECT 1 FROM note_identities i WHERE i.path = gone_notes.path)",
    "DELETE FROM gone_notes WHERE gone_at < ?1",
];
const SAME_FILE: SqlText = "SELECT g.path AS old, i.path AS new, g.gone_at, g.came_at FROM gone_notes g
    CROSS JOIN note_identities i ON i.inode = g.inode AND i.born_ns = g.born_ns
    WHERE g.born_ns <> 0 AND i.path <> g.path";
/// A note that was copied from a template and edited since must not be taken for the next one from that template. So if
/// there is a note under the old path, the time of change must be equal, too.
const SAME_CONTENT: SqlText = "SELECT g.path AS old, i.path AS new, g.gone_at, g.came_at FROM gone_notes g
    CROSS JOIN note_identities i ON i.hash = g.hash
    WHERE i.path <> g.path
        AND (i.came_at >= g.gone_at - ?1
            OR EXISTS (SELECT 1 FROM gone_notes before WHERE before.path = i.path AND before.gone_at >= g.gone_at - ?1))
        AND (i.modified_ns = g.modified_ns
            OR g.gone_at = (SELECT MAX(last.gone_at) FROM gone_notes last WHERE last.path = g.path)
                AND NOT EXISTS (SELECT 1 FROM note_identities there WHERE there.path = g.path))
        AND NOT EXISTS (SELECT 1 FROM note_identities other WHERE other.hash = g.hash AND other.path <> i.path)
        AND NOT EXISTS (SELECT 1 FROM gone_notes other WHERE other.hash = g.hash AND other.path <> g.path)";
const BY_HAND: SqlText = "SELECT h.old, h.new, h.by FROM moves_by_hand h
    CROSS JOIN note_identities i ON i.path = h.new";
/// What a person said about a note that is gone since. It would count for whatever comes there later.
const DROP_STALE_WORDS: SqlText = "DELETE FROM moves_by_hand WHERE new NOT IN (SELECT path FROM note_identities)";
/// Of these paths, those where another file replaced a note.
const REPLACED: SqlText = "SELECT DISTINCT g.path FROM json_each(?1) j CROSS JOIN gone_notes g ON g.path = j.value";
const HAS_HISTORY: SqlText = "SELECT EXISTS (SELECT 1 FROM actions a WHERE a.target = ?1)";
pub(super) const FORGET_PATHS: SqlText = "DELETE FROM gone_notes WHERE path IN (SELECT value FROM json_each(?1))";
/// Notes that came when a note of their kind went, or that have its content or name. Only notes that Steward has acted
/// on are asked about.
const DOUBTS: SqlText = "SELECT g.path AS old, i.path AS new, g.gone_at, i.came_at, i.hash = g.hash AS is_equal
    FROM gone_notes g CROSS JOIN note_identities i INDEXED BY identities_by_arrival ON i.came_at >= g.gone_at - ?1
    CROSS JOIN files f ON f.path = i.path AND f.kind = g.kind
    WHERE g.kind IN ('matter', 'task') AND i.came_at > 0
        AND NOT EXISTS (SELECT 1 FROM note_identities there WHERE there.path = g.path)
        AND (EXISTS (SELECT 1 FROM actions a WHERE a.target = g.path)
            OR EXISTS (SELECT 1 FROM matter_ticks k WHERE k.matter = g.path))
        AND g.path NOT IN (SELECT value->>0 FROM json_each(?2)) AND i.path NOT IN (SELECT value->>1 FROM json_each(?2))
        AND NOT EXISTS (SELECT 1 FROM note_moves m WHERE m.new = i.path AND m.at >= g.gone_at)
    LIMIT 1000";
const OLD_DOUBTS: SqlText = "SELECT path, gone FROM doubtful_notes";
const NEW_DOUBTS: SqlText = "INSERT OR IGNORE INTO doubtful_notes (path, gone)
    SELECT value->>0, value->>1 FROM json_each(?1)";

const SAME_FILES: SqlText = "SELECT i.path FROM json_each(?1) j
    CROSS JOIN note_identities i ON i.inode = j.value->>0 AND i.born_ns = j.value->>1 WHERE i.born_ns <> 0";
/// Whether there is anything to find.
const IS_ANYTHING_GONE: SqlText = "SELECT EXISTS (SELECT 1 FROM gone_notes) OR EXISTS (SELECT 1 FROM moves_by_hand) OR EXISTS (SELECT 1 FROM doubtful_notes)";

/// A note as a scan sees it.
#[derive(Debug, Serialize)]
pub(super) struct NoteIdentity<'a> {
    pub(super) path: &'a str,
    pub(super) inode: u64,
    pub(super) born_ns: i64,
    pub(super) modified_ns: i64,
    pub(super) hash: Option<&'a str>,
}

/// A note that could be one that is gone.
#[derive(Clone, Debug, FromRow)]
struct MoveCandidate {
    old: String,
    new: String,
    gone_at: i64,
    came_at: i64,
}

/// What a person said about a note.
#[derive(Debug, FromRow)]
struct SaidRow {
    old: String,
    new: String,
    by: String,
}

#[derive(Debug, FromRow)]
struct DoubtCandidate {
    old: String,
    new: String,
    gone_at: i64,
    came_at: i64,
    is_equal: Option<bool>,
}

/// Keeps what notes are recognised by. `came_at` is the time of a note that was not known before.
pub(super) async fn keep_seen(
    tx: &mut SqliteConnection,
    notes: &[NoteIdentity<'_>],
    came_at: i64,
    now: DateTime<Utc>,
) -> sqlx::Result<()> {
    if notes.is_empty() {
        return Ok(());
    }
    let rows = to_json(&notes);
    sqlx::query(KEEP_REPLACED).bind(&rows).bind(to_micros(now)).execute(&mut *tx).await?;
    sqlx::query(KEEP_SEEN).bind(&rows).bind(came_at).execute(tx).await.map(drop)
}

/// Remembers notes that are gone from their path. It must be called before their other rows are removed.
pub(super) async fn keep_gone(tx: &mut SqliteConnection, gone: &[String], now: DateTime<Utc>) -> sqlx::Result<()> {
    let gone = to_json(&gone);
    sqlx::query(KEEP_GONE).bind(&gone).bind(to_micros(now)).execute(&mut *tx).await?;
    execute_json(tx, DROP_GONE, &gone).await
}

impl Index {
    /// The paths under which these files were known before. The watcher may report the new path of a note before the old
    /// one, and between the two there would seem to be two notes.
    pub(super) async fn list_other_paths(
        &self,
        root: &VaultRoot,
        paths: &[RecordPath],
    ) -> Result<Vec<RecordPath>, IndexError> {
        let (root, notes) = (root.clone(), paths.to_vec());
        let stat = move || {
            let entries = notes.iter().filter(|path| path.own_kind().is_none()).map(|path| root.find_entry(path));
            let files = entries.filter_map(|entry| entry.ok().flatten()).map(|entry| (entry.inode, entry.born_ns));
            files.collect::<Vec<(u64, i64)>>()
        };
        let files = tokio::task::spawn_blocking(stat).await?;
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let known: Vec<String> = sqlx::query_scalar(SAME_FILES)
            .bind(to_json(&files))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let known = known.iter().filter_map(|path| RecordPath::parse(path).ok());
        Ok(known.filter(|path| !paths.contains(path)).collect())
    }

    /// Finds notes that are under another path now. They count as moved only when that is recorded.
    ///
    /// A note for which nothing fits, or several notes, is remembered for 14 days. Meanwhile a person can say where it
    /// is, and the notes that could be it are only asked about.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_moves(&self, now: DateTime<Utc>) -> Result<FoundMoves, IndexError> {
        let is_anything_gone: bool =
            sqlx::query_scalar(IS_ANYTHING_GONE).fetch_one(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        if !is_anything_gone {
            return Ok(FoundMoves::default());
        }
        let mut tx = self.begin_write().await?;
        let work = async {
            for sql in FORGET {
                sqlx::query(sql)
                    .bind(to_micros(now - REMEMBERED))
                    .bind(to_micros(now - PIECES))
                    .execute(&mut *tx)
                    .await?;
            }
            let same_file: Vec<MoveCandidate> = sqlx::query_as(SAME_FILE).fetch_all(&mut *tx).await?;
            let same_content: Vec<MoveCandidate> =
                sqlx::query_as(SAME_CONTENT).bind(PIECES.num_microseconds()).fetch_all(&mut *tx).await?;
            sqlx::query(DROP_STALE_WORDS).execute(&mut *tx).await?;
            let by_hand: Vec<SaidRow> = sqlx::query_as(BY_HAND).fetch_all(&mut *tx).await?;
            let mut found: BTreeMap<String, String> =
                by_hand.iter().map(|said| (said.old.clone(), said.new.clone())).collect();
            let said = found.clone();
            add_unique(&mut found, &same_file);
            add_unique(&mut found, &same_content);
            let ended = find_ended(&mut tx, &mut found, &said, [same_file, same_content].concat()).await?;
            let has_changed = write_doubts(&mut tx, &found).await?;
            tx.commit().await?;
            Ok((found, ended, by_hand, has_changed))
        };
        let (mut found, ended, by_hand, has_changed) = work.await.map_err(|e: sqlx::Error| self.sql_error(e))?;
        if has_changed {
            self.bump_records_revision(RecordKind::Task);
        }
        let parse = |path: &str| RecordPath::parse(path).ok();
        let mut moves = FoundMoves::default();
        for SaidRow { old, new, by } in by_hand {
            found.remove(&old);
            let Some((from, to)) = parse(&old).zip(parse(&new)) else { continue };
            moves.said.entry(by).or_default().push(NoteMove { from, to: Some(to) });
        }
        let moved = found.iter().filter_map(|(old, new)| Some(NoteMove { from: parse(old)?, to: Some(parse(new)?) }));
        let ended = ended.iter().filter_map(|path| Some(NoteMove { from: parse(path)?, to: None }));
        moves.shown = moved.chain(ended).collect();
        Ok(moves)
    }
}

/// Notes that are under another path now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundMoves {
    /// What the files show.
    pub shown: Vec<NoteMove>,
    /// What people said, by their names.
    pub said: BTreeMap<String, Vec<NoteMove>>,
}

/// Adds the candidates that are the only ones for their old note, and whose old note is the only one for them.
fn add_unique(found: &mut BTreeMap<String, String>, candidates: &[MoveCandidate]) {
    let taken: BTreeSet<String> = found.values().cloned().collect();
    let is_open = |c: &&MoveCandidate| {
        !found.contains_key(&c.old) && !taken.contains(&c.new) && !is_sync_copy(&c.new) && !is_sync_copy(&c.old)
    };
    let open: BTreeSet<(&str, &str)> =
        candidates.iter().filter(is_open).map(|c| (c.old.as_str(), c.new.as_str())).collect();
    let (mut by_old, mut by_new): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    for (old, new) in &open {
        *by_old.entry(old).or_default() += 1;
        *by_new.entry(new).or_default() += 1;
    }
    let unique: Vec<(String, String)> = open
        .iter()
        .filter(|(old, new)| by_old.get(old) == Some(&1) && by_new.get(new) == Some(&1))
        .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
        .collect();
    found.extend(unique);
}

/// The notes that ended because another one was moved to their path. A file that an editor made only to save another
/// note is no note that moved: it is new, and nothing was done about it.
async fn find_ended(
    tx: &mut SqliteConnection,
    found: &mut BTreeMap<String, String>,
    said: &BTreeMap<String, String>,
    candidates: Vec<MoveCandidate>,
) -> sqlx::Result<Vec<String>> {
    let targets: Vec<&String> = found.iter().filter(|(old, _)| !said.contains_key(*old)).map(|(_, new)| new).collect();
    let replaced: Vec<String> = sqlx::query_scalar(REPLACED).bind(to_json(&targets)).fetch_all(&mut *tx).await?;
    let mut ended = Vec::new();
    for path in replaced {
        if found.contains_key(&path) {
            continue;
        }
        let moved_here = candidates.iter().filter(|c| c.new == path && found.get(&c.old) == Some(&path));
        let Some(candidate) = moved_here.max_by_key(|c| c.gone_at) else { continue };
        let is_new = candidate.came_at > candidate.gone_at - PIECES.num_microseconds().unwrap_or_default();
        let has_history: bool = sqlx::query_scalar(HAS_HISTORY).bind(&candidate.old).fetch_one(&mut *tx).await?;
        if is_new && !has_history {
            let saved = candidate.old.clone();
            execute_json(tx, FORGET_PATHS, &to_json(&[&saved, &path])).await?;
            found.remove(&saved);
        } else {
            ended.push(path);
        }
    }
    Ok(ended)
}

/// Writes which notes could be one that is gone and was not found. Returns whether they differ from before.
async fn write_doubts(tx: &mut SqliteConnection, found: &BTreeMap<String, String>) -> sqlx::Result<bool> {
    let pairs: Vec<(&String, &String)> = found.iter().collect();
    let candidates: Vec<DoubtCandidate> =
        sqlx::query_as(DOUBTS).bind(PIECES.num_microseconds()).bind(to_json(&pairs)).fetch_all(&mut *tx).await?;
    let name = |path: &str| fold_name(path.rsplit('/').next().unwrap_or(path));
    let is_possible = |c: &&DoubtCandidate| {
        let is_at_once = c.came_at <= c.gone_at + PIECES.num_microseconds().unwrap_or_default();
        is_at_once || c.is_equal == Some(true) || name(&c.old) == name(&c.new)
    };
    let doubts: BTreeSet<(String, String)> =
        candidates.iter().filter(is_possible).map(|c| (c.new.clone(), c.old.clone())).collect();
    let before: Vec<(String, String)> = sqlx::query_as(OLD_DOUBTS).fetch_all(&mut *tx).await?;
    if before.into_iter().collect::<BTreeSet<_>>() == doubts {
        return Ok(false);
    }
    sqlx::query("DELETE FROM doubtful_notes").execute(&mut *tx).await?;
    execute_json(tx, NEW_DOUBTS, &to_json(&doubts)).await?;
    Ok(true)
}
