//! Finds matters, tasks, signals and actions by words.
//!
//! What somebody types is data: every word goes to the full-text table in quotes, so there is no syntax to get wrong and
//! none to use. All words must occur, in any form of case and accents; the last one may be a beginning. The full-text table
//! stands in the order of the list, so no more is read than a page shows, or looks at where something else is asked for
//! as well. What comes back is plain text without markup, and most of it is a stranger's.

use super::page::{ListPage, clamp_limit, rows_to_read};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::actions::list::waits;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::words::{document_of, path_slug, place_range};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::{RecordKind, RecordPath};

/// Most words that are looked at; what follows is passed over.
const MAX_WORDS: usize = 16;
/// Most characters of one word.
const MAX_WORD_CHARS: usize = 64;
/// Most records with the words that are looked at for one page where something else is asked for as well. Way out: the next
/// page goes on behind them.
pub(crate) const LOOKED_AT: usize = 10_000;
/// In the order in which they are listed.
const KINDS: [RecordKind; 4] = [RecordKind::Matter, RecordKind::Task, RecordKind::Signal, RecordKind::Event];

/// Which of the records that hold the words are asked for; all that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Of this kind; [`RecordKind::Event`] for actions and answers.
    pub kind: Option<RecordKind>,
    /// From this moment on; of signals and actions.
    pub since: Option<DateTime<Utc>>,
    /// Of signals what they propose, of actions what they change.
    pub class: Option<MutationClass>,
    /// The name by which trust goes: whose a signal is, who was weighed or spoke for an action.
    pub source: Option<String>,
    /// Of actions.
    pub landing: Option<Disposition>,
    /// Actions that wait for a human's answer.
    pub waits: bool,
}

impl SearchFilter {
    /// The kinds of which all that is set says anything; of the others nothing is found.
    #[must_use]
    pub fn matching_kinds(&self) -> Vec<RecordKind> {
        let of_actions = self.landing.is_some() || self.waits;
        let of_signals = self.since.is_some() || self.class.is_some() || self.source.is_some();
        let fits = |kind: RecordKind| match kind {
            RecordKind::Matter | RecordKind::Task => !of_actions && !of_signals,
            RecordKind::Signal => !of_actions,
            RecordKind::Event => true,
            RecordKind::Instinct | RecordKind::Stream => false,
        };
        KINDS.into_iter().filter(|kind| fits(*kind) && self.kind.is_none_or(|asked| asked == *kind)).collect()
    }

    /// Whether the words and the kind tell all that is asked for.
    fn is_plain(&self) -> bool {
        *self == Self { kind: self.kind, ..Self::default() }
    }
}

/// A record that holds the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchHit {
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

/// Where the words stand, from above.
pub(crate) const PLACES: &str =
    "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";

/// What stands at these places, as far as it is asked for: so many rows are chosen first, and then told.
pub(crate) const HITS: &str = concat!(
    "WITH hits AS MATERIALIZED (
        SELECT j.key AS turn, j.value AS place, d.path, d.kind, d.at FROM json_each(?1) j CROSS JOIN documents d ON ",
    document_of!("j.value"),
    " LEFT JOIN signals s ON s.path = d.path LEFT JOIN actions a ON a.path = d.path
        WHERE (?2 IS NULL OR d.at >= ?2) AND (?3 IS NULL OR COALESCE(a.class, s.class) = ?3)
            AND (?4 IS NULL OR a.landing = ?4) AND (NOT ?5 OR (",
    waits!(),
    "))
            AND (?6 IS NULL OR s.instinct = ?6
                OR EXISTS (SELECT 1 FROM action_sources q WHERE q.action = d.path AND q.source = ?6))
        ORDER BY j.key LIMIT ?7)
    SELECT h.place, h.path, h.kind, h.at, COALESCE(m.name, t.name, s.note,
            (SELECT name FROM tasks WHERE path = a.target), (SELECT name FROM matters WHERE path = a.target)) AS title,
        COALESCE(m.state, t.state, s.source, (SELECT q.note FROM action_evidence e CROSS JOIN signals q ON q.path = e.ref
            WHERE e.action = a.path ORDER BY q.created DESC, q.path LIMIT 1), a.decision) AS snippet,
        COALESCE(t.parent, s.target, a.target) AS about, a.id
    FROM hits h LEFT JOIN matters m ON m.path = h.path LEFT JOIN tasks t ON t.path = h.path
    LEFT JOIN signals s ON s.path = h.path LEFT JOIN actions a ON a.path = h.path ORDER BY h.turn"
);

impl Index {
    /// Records that hold all these words, after the place that the page before gave as `next`; at most 1 to 500 of them.
    ///
    /// First matters, then tasks, both as they were written last; then signals and actions, to the second the newest
    /// first. A page may hold fewer, and none, although there is a next: then many were looked at that are not
    /// asked for. Nothing is found without a word.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn search(
        &self,
        words: &str,
        filter: &SearchFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<ListPage<SearchHit, i64>, IndexError> {
        let none = ListPage { rows: Vec::new(), more: false, next: None };
        let Some(asked) = match_expression(words) else { return Ok(none) };
        let most = if filter.is_plain() { clamp_limit(limit) } else { LOOKED_AT };
        let mut found = self.find_places(&asked, (filter, before), most + 1).await?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().copied().filter(|_| more);
        let rows: Vec<SearchHitColumns> = sqlx::query_as(HITS)
            .bind(crate::index::store::rows::to_json(&found))
            .bind(filter.since.map(to_micros))
            .bind(filter.class.map(MutationClass::as_str))
            .bind(filter.landing.map(Disposition::as_str))
            .bind(filter.waits)
            .bind(filter.source.as_deref())
            .bind(rows_to_read(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let ListPage { rows, more, next } = ListPage::from_rows(rows, limit, |row| row.place);
        let rows = rows.into_iter().map(|row| self.decode_hit(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(if more { ListPage { rows, more, next } } else { ListPage { rows, more: last.is_some(), next: last } })
    }

    /// Where the words stand in records of the kinds that are asked for, in the order of the list.
    async fn find_places(
        &self,
        asked: &str,
        (filter, before): (&SearchFilter, Option<i64>),
        most: usize,
    ) -> Result<Vec<i64>, IndexError> {
        let mut found: Vec<i64> = Vec::new();
        for (first, last) in place_ranges(filter) {
            let last = before.map_or(last, |before| last.min(before.saturating_sub(1)));
            if found.len() == most || last < first {
                continue;
            }
            let places: Vec<i64> = sqlx::query_scalar(PLACES)
                .bind(asked)
                .bind(first)
                .bind(last)
                .bind(i64::try_from(most - found.len()).unwrap_or(i64::MAX))
                .fetch_all(&self.store.reader)
                .await
                .map_err(|e| self.sql_error(e))?;
            found.extend(places);
        }
        Ok(found)
    }

    fn decode_hit(&self, row: SearchHitColumns) -> Result<SearchHit, IndexError> {
        let about = row.about.map(|path| self.parse_path(&path)).transpose()?;
        let named = || about.as_ref().map_or_else(|| path_slug(&row.path), RecordPath::slug).to_owned();
        Ok(SearchHit {
            title: row.title.unwrap_or_else(named),
            kind: self.parse_enum(&row.kind)?,
            path: self.parse_path(&row.path)?,
            snippet: row.snippet.unwrap_or_default(),
            about,
            id: row.id.map(|id| self.parse_enum(&id)).transpose()?,
            at: row.at.and_then(from_micros),
        })
    }
}

/// Where the kinds that are asked for stand, the highest first; those that touch are one.
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

/// What somebody typed, as the full-text table wants it; `None` where there is no word in it.
///
/// A control character would end the text early for SQLite, so it parts words here.
pub(crate) fn match_expression(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let quoted: Vec<String> = words
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"", word.chars().take(MAX_WORD_CHARS).collect::<String>().replace('"', "\"\"")))
        .collect();
    (!quoted.is_empty()).then(|| format!("{} *", quoted.join(" ")))
}
