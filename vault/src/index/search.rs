//! Finds matters, tasks, signals and actions by words.
//!
//! What somebody types is data: every word goes to the full-text table in quotes, so there is no syntax to get wrong and
//! none to use. All words must occur, in any form of case and accents; the last one may be a beginning. What comes back
//! is plain text without markup, and most of it is a stranger's.

use super::codec::instant;
use super::page::{MAX_PAGE, Page, reads};
use super::words::slug;
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::plan::ActionId;

/// Most words that are looked at; what follows is passed over.
const MAX_WORDS: usize = 16;
/// Most characters of one word.
const MAX_WORD_CHARS: usize = 64;
/// Most hits that can be paged through.
const MAX_OFFSET: u32 = 10_000;

/// A record that holds the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// `matter`, `task`, `signal`, or `event` for an action or answer.
    pub kind: RecordKind,
    pub path: RecordPath,
    /// The name of a matter or task, the quote of a signal, the name of what an action is about. Untrusted.
    pub title: String,
    /// The state of a matter or task, the source of a signal, of an action a quote that it rests on (or its decision).
    /// Untrusted.
    pub snippet: String,
    /// The matter of a task, what a signal or an action is about.
    pub about: Option<RecordPath>,
    /// Of an action.
    pub id: Option<ActionId>,
    /// When a signal came and an action was decided.
    pub at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct Row {
    path: String,
    kind: String,
    at: Option<i64>,
    title: Option<String>,
    snippet: Option<String>,
    about: Option<String>,
    id: Option<String>,
}

/// First matters, then tasks, both as they were written last; then signals and actions, the newest first.
pub(super) const HITS: &str = "
    WITH hits AS MATERIALIZED (
        SELECT d.id, d.path, d.kind, d.at FROM words w CROSS JOIN documents d ON d.id = w.rowid
        WHERE words MATCH ?1 AND (?2 IS NULL OR d.kind IN (SELECT value FROM json_each(?2)))
        ORDER BY CASE d.kind WHEN 'matter' THEN 0 WHEN 'task' THEN 1 WHEN 'signal' THEN 2 ELSE 3 END,
            d.at DESC, d.id DESC LIMIT ?3 OFFSET ?4)
    SELECT h.path, h.kind, h.at, COALESCE(m.name, t.name, s.note,
            (SELECT name FROM tasks WHERE path = a.target), (SELECT name FROM matters WHERE path = a.target)) AS title,
        COALESCE(m.state, t.state, s.source, (SELECT q.note FROM action_evidence e CROSS JOIN signals q ON q.path = e.ref
            WHERE e.action = a.path ORDER BY q.created DESC, q.path LIMIT 1), a.decision) AS snippet,
        COALESCE(t.parent, s.target, a.target) AS about, a.id
    FROM hits h LEFT JOIN matters m ON m.path = h.path LEFT JOIN tasks t ON t.path = h.path
    LEFT JOIN signals s ON s.path = h.path LEFT JOIN actions a ON a.path = h.path
    ORDER BY CASE h.kind WHEN 'matter' THEN 0 WHEN 'task' THEN 1 WHEN 'signal' THEN 2 ELSE 3 END, h.at DESC, h.id DESC";

impl Index {
    /// Records that hold all these words, of these kinds (of every kind where none is named), after the first `skip`.
    ///
    /// 1 to 500 of them; `next` is what to skip then. Nothing is found without a word.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn search(
        &self,
        words: &str,
        kinds: &[RecordKind],
        skip: u32,
        limit: u32,
    ) -> Result<Page<Hit, u32>, IndexError> {
        let none = Page { rows: Vec::new(), more: false, next: None };
        let Some(asked) = asked(words).filter(|_| skip < MAX_OFFSET) else { return Ok(none) };
        let rows: Vec<Row> = sqlx::query_as(HITS)
            .bind(asked)
            .bind((!kinds.is_empty()).then(|| super::store::json(&kinds)))
            .bind(reads(limit))
            .bind(skip)
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        let rows = rows.into_iter().map(|row| self.hit(row)).collect::<Result<Vec<_>, _>>()?;
        let next = skip + limit.clamp(1, MAX_PAGE);
        let page = Page::cut(rows, limit, |_| next);
        let more = page.more && next < MAX_OFFSET;
        Ok(Page { more, next: page.next.filter(|_| more), ..page })
    }

    fn hit(&self, row: Row) -> Result<Hit, IndexError> {
        let about = row.about.map(|path| self.path(&path)).transpose()?;
        let named = || about.as_ref().map_or_else(|| slug(&row.path), RecordPath::slug).to_owned();
        Ok(Hit {
            title: row.title.unwrap_or_else(named),
            kind: self.word(&row.kind)?,
            path: self.path(&row.path)?,
            snippet: row.snippet.unwrap_or_default(),
            about,
            id: row.id.map(|id| self.word(&id)).transpose()?,
            at: row.at.and_then(instant),
        })
    }
}

/// What somebody typed, as the full-text table wants it; `None` where there is no word in it.
///
/// A control character would end the text early for SQLite, so it parts words here.
pub(super) fn asked(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let quoted: Vec<String> = words
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"", word.chars().take(MAX_WORD_CHARS).collect::<String>().replace('"', "\"\"")))
        .collect();
    (!quoted.is_empty()).then(|| format!("{} *", quoted.join(" ")))
}
