//! The words by which matters, tasks, signals and actions are found, written with their rows.
//!
//! Derived like the rows beside them. The full-text table keeps no text, only where each word stands: what is shown
//! comes from the rows. Outside text goes in here and comes out as a list of records, nothing else;
//! [`crate::index::read::search`] asks.

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

/// What one record is found by.
#[derive(Serialize)]
pub(crate) struct SearchText {
    path: String,
    kind: RecordKind,
    /// Microseconds since 1970; `None` of matters and tasks.
    at: Option<i64>,
    text: String,
}

/// The number under which the words of the document `d` stand: its kind, the second of its moment, and the end of its
/// own number. So the highest numbers are those of matters, then tasks, then signals and actions with the newest
/// first, and a list in that order is read and never sorted. As [`places`] has it.
macro_rules! place {
    () => {
        "((CASE d.kind WHEN 'matter' THEN 3 WHEN 'task' THEN 2 WHEN 'signal' THEN 1 ELSE 0 END << 61)
        + (MAX(0, MIN(COALESCE(d.at, 0) / 1000000, 4294967295)) << 29) + (d.id & 536870911))"
    };
}
/// The document of the number `place`.
macro_rules! document_of {
    ($place:literal) => {
        concat!("d.id = ", $place, " & 536870911")
    };
}
pub(crate) use document_of;
#[cfg(test)]
pub(crate) use place;

/// Above these bits stands the kind.
const KIND_BITS: u32 = 61;
/// Above these the second.
const SECOND_BITS: u32 = 29;

const DOCUMENTS: SqlText = "INSERT INTO documents (path, kind, at)
    SELECT value->>'path', value->>'kind', value->>'at' FROM json_each(?1)";
/// In the order of the numbers, or the full-text table would begin anew with each.
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
/// After the documents without a file.
pub(crate) const DROP_STRAYS: SqlText = concat!(
    "DELETE FROM words WHERE rowid IN (SELECT id FROM words_docsize WHERE id NOT IN (SELECT ",
    place!(),
    " FROM documents d))"
);
/// Records without words, and words without a record.
const UNFOUND: SqlText = concat!(
    "WITH rows (path) AS (SELECT path FROM matters UNION ALL SELECT path FROM tasks
        UNION ALL SELECT path FROM signals UNION ALL SELECT path FROM actions)
    SELECT path FROM rows WHERE path NOT IN (
        SELECT d.path FROM documents d JOIN words_docsize w ON w.id = ",
    place!(),
    ") UNION SELECT path FROM documents WHERE path NOT IN (SELECT path FROM rows) ORDER BY 1"
);

/// The words of a record; `None` of kinds that are not looked for.
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

/// The numbers under which words of a kind may stand, from a moment on where it has moments.
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

/// What it is about, whose word it took, and what it quotes.
fn action_text(row: &ActionData) -> String {
    let sources = row.sources.iter().map(|source| source.name.as_str());
    let quotes = row.quotes.iter().map(String::as_str);
    let parts: Vec<&str> = std::iter::once(path_slug(&row.target)).chain(sources).chain(quotes).collect();
    parts.join(" ")
}

/// The name of a file, in which people look for words too.
pub(crate) fn path_slug(path: &str) -> &str {
    let name = path.split_once('/').map_or(path, |(_, name)| name);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Writes the words of records that have none now.
pub(crate) async fn write_search_texts(tx: &mut SqliteConnection, texts: &[SearchText]) -> sqlx::Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let rows = to_json(&texts);
    execute_json(tx, DOCUMENTS, &rows).await?;
    execute_json(tx, WORDS, &rows).await
}

/// Forgets the words of these records, which are a JSON array of paths.
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
    /// Records whose words and rows do not go together; only a fault of ours leaves one.
    pub(crate) async fn list_unsearchable_records(&self) -> Result<Vec<String>, IndexError> {
        sqlx::query_scalar(UNFOUND).fetch_all(&self.store.writer).await.map_err(|e| self.sql_error(e))
    }
}
