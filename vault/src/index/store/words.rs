//! The search texts of matters, tasks, signals and actions, written with their rows.
//!
//! They are derived like the rows. The full-text table stores no text, only the position of each word; displayed texts
//! come from the rows. Untrusted text goes in, and only lists of records come out, by [`crate::index::read::search`].

use super::codec::to_micros;
use super::parse::{ActionData, ParsedRecord};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::rows::{SqlText, execute_json, to_json};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::ops::RangeInclusive;
use steward_domain::record::path::RecordKind;

/// The search text of one record.
#[derive(Serialize)]
pub(crate) struct SearchText {
    path: String,
    kind: RecordKind,
    /// Microseconds since 1970; `None` for matters and tasks.
    at: Option<i64>,
    text: String,
}

/// The place of the document `d`: its row number in the full-text table, made of its kind, the second of its moment,
/// and the low bits of its id. So matters have the highest numbers, then tasks, then signals, then actions, the newest
/// of each first. A list in that order is read and never sorted. [`place_range`] uses the same layout.
macro_rules! place {
    () => {
        "((CASE d.kind WHEN 'matter' THEN 3 WHEN 'task' THEN 2 WHEN 'signal' THEN 1 ELSE 0 END << 61)
        + (MAX(0, MIN(COALESCE(d.at, 0) / 1000000, 4294967295)) << 29) + (d.id & 536870911))"
    };
}
/// The condition that the document `d` has this place.
macro_rules! join_document {
    ($place:literal) => {
        concat!("d.id = ", $place, " & 536870911")
    };
}
pub(crate) use join_document;
#[cfg(test)]
pub(crate) use place;

/// The kind is above these bits.
const KIND_BITS: u32 = 61;
/// The second is above these bits.
const SECOND_BITS: u32 = 29;

const DOCUMENTS: SqlText = "INSERT INTO documents (path, kind, at)
    SELECT value->>'path', value->>'kind', value->>'at' FROM json_each(?1)";
/// In the order of the places, because otherwise the full-text table would start again with each.
const WORDS: SqlText = concat!(
    "INSERT INTO words (rowid, text) SELECT ",
    place!(),
    ", j.value->>'text' FROM json_each(?1) j CROSS JOIN documents d ON d.path = j.value->>'path' ORDER BY 1"
);
const DROP_WORDS: SqlText = concat!(
    "DELETE FROM words WHERE rowid IN (SELECT ",
    place!(),
    " FROM json_each(?1) j CROSS JOIN documents d ON d.path = j.value)"
);
const DROP_DOCUMENTS: SqlText = "DELETE FROM documents WHERE path IN (SELECT value FROM json_each(?1))";
/// Removes search texts without a document. Documents without a file must be removed before.
pub(crate) const DROP_STRAYS: SqlText = concat!(
    "DELETE FROM words WHERE rowid IN (SELECT id FROM words_docsize WHERE id NOT IN (SELECT ",
    place!(),
    " FROM documents d))"
);
/// Records without search text, and search texts without a record.
const UNSEARCHABLE: SqlText = concat!(
    "WITH rows (path) AS (SELECT path FROM matters UNION ALL SELECT path FROM tasks
        UNION ALL SELECT path FROM signals UNION ALL SELECT path FROM actions)
    SELECT path FROM rows WHERE path NOT IN (
        SELECT d.path FROM documents d JOIN words_docsize w ON w.id = ",
    place!(),
    ") UNION SELECT path FROM documents WHERE path NOT IN (SELECT path FROM rows) ORDER BY 1"
);

/// The search text of a record; `None` for kinds that are not searchable.
pub(crate) fn search_text(typed: &ParsedRecord) -> Option<SearchText> {
    let (path, kind, at, text) = match typed {
        ParsedRecord::Matter(row) => {
            (&row.path, RecordKind::Matter, None, format!("{} {}", row.name, path_slug(&row.path)))
        }
        ParsedRecord::Task(row) => {
            (&row.path, RecordKind::Task, None, format!("{} {}", row.name, path_slug(&row.path)))
        }
        ParsedRecord::Signal(row) => {
            (&row.path, RecordKind::Signal, Some(row.created), format!("{} {}", row.note, row.source))
        }
        ParsedRecord::Action(row) => (&row.path, RecordKind::Event, Some(row.at), action_text(row)),
        ParsedRecord::Instinct(_) | ParsedRecord::Stream(_) => return None,
    };
    Some(SearchText { path: path.clone(), kind, at, text })
}

/// The range of places of a kind, from a moment on if the kind has moments.
pub(crate) fn place_range(kind: RecordKind, since: Option<DateTime<Utc>>) -> RangeInclusive<i64> {
    let rank: i64 = match kind {
        RecordKind::Matter => 3,
        RecordKind::Task => 2,
        RecordKind::Signal => 1,
        RecordKind::Event | RecordKind::Instinct | RecordKind::Stream => 0,
    };
    let second = since.map_or(0, |since| (to_micros(since) / 1_000_000).clamp(0, u32::MAX.into()));
    let first = rank << KIND_BITS;
    first + (second << SECOND_BITS)..=first + ((1 << KIND_BITS) - 1)
}

/// The target of an action, its sources and its quotes.
fn action_text(row: &ActionData) -> String {
    let sources = row.sources.iter().map(|source| source.name.as_str());
    let quotes = row.quotes.iter().map(String::as_str);
    let parts: Vec<&str> = std::iter::once(path_slug(&row.target)).chain(sources).chain(quotes).collect();
    parts.join(" ")
}

/// The name of a file without folder and ending. It is searchable too.
pub(crate) fn path_slug(path: &str) -> &str {
    let name = path.split_once('/').map_or(path, |(_, name)| name);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Writes the search texts of records that have none yet.
pub(crate) async fn write_search_texts(tx: &mut SqliteConnection, texts: &[SearchText]) -> sqlx::Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let rows = to_json(&texts);
    execute_json(tx, DOCUMENTS, &rows).await?;
    execute_json(tx, WORDS, &rows).await
}

/// Removes the search texts of records. `paths` is a JSON array.
pub(crate) async fn forget_search_texts(tx: &mut SqliteConnection, kind: RecordKind, paths: &str) -> sqlx::Result<()> {
    match kind {
        RecordKind::Matter | RecordKind::Task | RecordKind::Signal | RecordKind::Event => {
            execute_json(tx, DROP_WORDS, paths).await?;
            execute_json(tx, DROP_DOCUMENTS, paths).await
        }
        RecordKind::Instinct | RecordKind::Stream => Ok(()),
    }
}

impl Index {
    /// Lists records whose search text and rows do not match. Only a bug in Steward can cause one.
    pub(crate) async fn list_unsearchable_records(&self) -> Result<Vec<String>, IndexError> {
        sqlx::query_scalar(UNSEARCHABLE).fetch_all(&self.store.writer).await.map_err(|e| self.sql_error(e))
    }
}
