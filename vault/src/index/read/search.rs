//! Full-text search over matters, tasks, signals and actions.
//!
//! The search text is data: every word goes to the full-text table in quotes, so no syntax can be wrong or misused.
//! All words must occur, in any case and with any accents; the last one may be the beginning of a word. The full-text
//! table is in the order of the list, so a search reads no more rows than a page shows, or tests if other filters are
//! set. Results are plain text without markup, and most of it is untrusted.

use super::page::{ListPage, clamp_limit, rows_to_read};
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::actions::waiting::is_shown;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::words::{join_document, path_slug, place_range};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::{RecordKind, RecordPath};

/// The most words that are used; further words are ignored.
const MAX_WORDS: usize = 16;
/// The most characters of one word.
const MAX_WORD_CHARS: usize = 64;
/// The most matching records that one page tests if other filters are set; the next page continues after them.
pub(crate) const MAX_TESTED_ROWS: usize = 10_000;
/// The kinds in the order of the list.
const KINDS: [RecordKind; 4] = [RecordKind::Matter, RecordKind::Task, RecordKind::Signal, RecordKind::Event];

/// A filter for the records with the words; every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Of this kind; [`RecordKind::Event`] means actions and resolutions.
    pub kind: Option<RecordKind>,
    /// Signals and actions from this moment on.
    pub since: Option<DateTime<Utc>>,
    /// Signals that propose this class, and actions of it.
    pub class: Option<MutationClass>,
    /// Signals of the source with this key, and actions that it was weighed for or supported.
    pub source: Option<String>,
    /// Actions with this disposition.
    pub disposition: Option<Disposition>,
    /// Only proposals that wait for a person's answer at this moment.
    pub waits: Option<DateTime<Utc>>,
}

impl SearchFilter {
    /// The kinds to which every condition that is set applies. Nothing is found of the others.
    #[must_use]
    pub fn matching_kinds(&self) -> Vec<RecordKind> {
        let actions_only = self.disposition.is_some() || self.waits.is_some();
        let no_records = self.since.is_some() || self.class.is_some() || self.source.is_some();
        let fits = |kind: RecordKind| match kind {
            RecordKind::Matter | RecordKind::Task => !actions_only && !no_records,
            RecordKind::Signal => !actions_only,
            RecordKind::Event => true,
            RecordKind::Instinct | RecordKind::Stream => false,
        };
        KINDS.into_iter().filter(|kind| fits(*kind) && self.kind.is_none_or(|wanted| wanted == *kind)).collect()
    }

    /// Whether the words and the kind are the only conditions.
    fn is_plain(&self) -> bool {
        *self == Self { kind: self.kind, ..Self::default() }
    }
}

/// A record that contains the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// `matter`, `task`, `signal`, or `event` for an action or resolution.
    pub kind: RecordKind,
    pub path: RecordPath,
    /// The name of a matter or task, the quote of a signal, the name of an action's target. Untrusted.
    pub title: String,
    /// The state of a matter or task, the source of a signal, a quote that an action cites (or its decision).
    /// Untrusted.
    pub snippet: String,
    /// The matter of a task; the target of a signal or an action.
    pub about: Option<RecordPath>,
    /// The id of an action.
    pub id: Option<ActionId>,
    /// The date of a signal, or when an action was decided.
    pub at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct SearchHitColumns {
    place: i64,
    path: String,
    kind: String,
    at: Option<i64>,
    title: Option<String>,
    snippet: Option<String>,
    about: Option<String>,
    id: Option<String>,
}

/// The places of the words, highest first. A place is the row number in the full-text table.
///
/// The last word as a beginning is put together from all words with that beginning. A table of beginnings would avoid
/// that, but for a million made-up texts it made 2.7 times the writing and 2.9 times the size.
pub(crate) const PLACES: &str =
    "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";

/// The records at these places that match the filter. The rows of the page are chosen before their texts are read.
const HITS: &str = concat!(
    "WITH hits AS MATERIALIZED (
        SELECT j.key AS turn, j.value AS place, d.path, d.kind, d.at FROM json_each(?1) j CROSS JOIN documents d ON ",
    join_document!("j.value"),
    " LEFT JOIN signals s ON s.path = d.path LEFT JOIN actions a ON a.path = d.path
        WHERE (?2 IS NULL OR d.at >= ?2) AND (?3 IS NULL OR COALESCE(a.class, s.class) = ?3)
            AND (?4 IS NULL OR a.disposition = ?4) AND (?5 OR ( "
);
const HIT_COLUMNS: &str = "))
            AND (?6 IS NULL OR s.instinct = ?6
                OR EXISTS (SELECT 1 FROM action_sources q WHERE q.action = d.path AND q.source = ?6))
        ORDER BY j.key LIMIT ?7)
    SELECT h.place, h.path, h.kind, h.at, COALESCE(m.name, t.name, s.note,
            (SELECT name FROM tasks WHERE path = a.target), (SELECT name FROM matters WHERE path = a.target)) AS title,
        COALESCE(m.state, t.state, s.source, (SELECT q.note FROM action_evidence e CROSS JOIN signals q ON q.path = e.ref
            WHERE e.action = a.path ORDER BY q.created DESC, q.path LIMIT 1), a.decision) AS snippet,
        COALESCE(t.parent, s.target, a.target) AS about, a.id
    FROM hits h LEFT JOIN matters m ON m.path = h.path LEFT JOIN tasks t ON t.path = h.path
    LEFT JOIN signals s ON s.path = h.path LEFT JOIN actions a ON a.path = h.path ORDER BY h.turn";

pub(crate) fn hits_sql(now: DateTime<Utc>) -> String {
    format!("{HITS}{}{HIT_COLUMNS}", is_shown(now))
}

impl ReadView<'_> {
    /// Finds records that contain all these words. `before` is the `next` of the page before, and `limit` is 1 to 500.
    ///
    /// Matters come first, then tasks, each group with the last written ones first. Signals and actions follow,
    /// newest first to the second. A page may have fewer rows, or none, although there is a next page: then many
    /// tested rows did not match. A text without a word finds nothing.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn search(
        self,
        words: &str,
        filter: &SearchFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<ListPage<SearchHit, i64>, IndexError> {
        let none = ListPage { rows: Vec::new(), more: false, next: None };
        let Some(expression) = match_expression(words) else { return Ok(none) };
        let most = if filter.is_plain() { clamp_limit(limit) } else { MAX_TESTED_ROWS };
        let mut found = self.find_places(&expression, filter, before, most + 1).await?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().copied().filter(|_| more);
        let rows: Vec<SearchHitColumns> = sqlx::query_as(AssertSqlSafe(hits_sql(filter.waits.unwrap_or_default())))
            .bind(crate::index::store::rows::to_json(&found))
            .bind(filter.since.map(to_micros))
            .bind(filter.class.map(MutationClass::as_str))
            .bind(filter.disposition.map(Disposition::as_str))
            .bind(filter.waits.is_none())
            .bind(filter.source.as_deref())
            .bind(rows_to_read(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let ListPage { rows, more, next } = ListPage::from_rows(rows, limit, |row| row.place);
        let rows = rows.into_iter().map(|row| self.decode_hit(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(if more { ListPage { rows, more, next } } else { ListPage { rows, more: last.is_some(), next: last } })
    }

    /// Finds the places of the words in records of the wanted kinds, in the order of the list.
    async fn find_places(
        self,
        expression: &str,
        filter: &SearchFilter,
        before: Option<i64>,
        most: usize,
    ) -> Result<Vec<i64>, IndexError> {
        let mut found: Vec<i64> = Vec::new();
        for (first, last) in place_ranges(filter) {
            let last = before.map_or(last, |before| last.min(before.saturating_sub(1)));
            if found.len() == most || last < first {
                continue;
            }
            let places: Vec<i64> = sqlx::query_scalar(PLACES)
                .bind(expression)
                .bind(first)
                .bind(last)
                .bind(i64::try_from(most - found.len()).unwrap_or(i64::MAX))
                .fetch_all(&self.index.store.reader)
                .await
                .map_err(|e| self.index.sql_error(e))?;
            found.extend(places);
        }
        Ok(found)
    }

    fn decode_hit(self, row: SearchHitColumns) -> Result<SearchHit, IndexError> {
        let about = row.about.map(|path| self.index.parse_path(&path)).transpose()?;
        let target_name = || about.as_ref().map_or_else(|| path_slug(&row.path), RecordPath::slug).to_owned();
        Ok(SearchHit {
            title: row.title.unwrap_or_else(target_name),
            kind: self.index.parse_enum(&row.kind)?,
            path: self.index.parse_path(&row.path)?,
            snippet: row.snippet.unwrap_or_default(),
            about,
            id: row.id.map(|id| self.index.parse_enum(&id)).transpose()?,
            at: row.at.and_then(from_micros),
        })
    }
}

/// The ranges of places of the wanted kinds, highest first. Adjacent ranges are merged.
fn place_ranges(filter: &SearchFilter) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for kind in filter.matching_kinds() {
        let (first, last) = place_range(kind, filter.since).into_inner();
        match ranges.last_mut().filter(|above| above.0 == last + 1) {
            Some(above) => above.0 = first,
            None => ranges.push((first, last)),
        }
    }
    ranges
}

/// Converts a search text to an expression for the full-text table; `None` if it contains no word.
///
/// A control character would end the text early for SQLite, so it separates words here.
pub(crate) fn match_expression(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let quoted: Vec<String> = words
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"", word.chars().take(MAX_WORD_CHARS).collect::<String>().replace('"', "\"\"")))
        .collect();
    (!quoted.is_empty()).then(|| format!("{} *", quoted.join(" ")))
}
