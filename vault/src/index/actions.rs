//! Actions and answers, page by page and chosen: for lists, the API, and whoever follows the chain.
//!
//! Each page is one query that walks the index of what is asked for most narrowly, newest first, and reads no row that
//! it does not show. Derived from the audit records, which stay the truth.

use super::action::{ActionRow, Row};
use super::codec::micros;
use super::page::{Cursor, Page, reads};
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use sqlx::{QueryBuilder, Sqlite};
use steward_domain::audit::ActionKind;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, Landing};

/// Which actions are asked for; all that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionFilter {
    /// From this moment on.
    pub since: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
    /// About this very record.
    pub target: Option<RecordPath>,
    /// About this matter or one of its tasks of today.
    pub matter: Option<RecordPath>,
    pub landing: Option<Landing>,
    pub class: Option<MutationClass>,
    /// A source that was weighed or spoke, by the name by which trust goes
    /// ([`steward_domain::signal::source_key`]).
    pub source: Option<String>,
    /// Of these kinds; of every kind where none is named.
    pub kinds: Vec<ActionKind>,
    pub only: Only,
}

/// Which actions are asked for by what may still be done about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    All,
    /// Those that wait for a human's answer.
    Waiting,
    /// Live changes that nobody has taken back. Whether the undo window is still open is the asker's `since`.
    Undoable,
}

/// What was filed after a place in the chain.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Filed {
    /// The place of the last one of `rows`, or the one that was asked after.
    pub seq: u64,
    /// In the order of the chain.
    pub rows: Vec<ActionRow>,
    /// There are more after these.
    pub more: bool,
}

/// What a row shows, and the latest answer.
macro_rules! columns {
    () => {
        "SELECT a.path, a.id, a.kind, a.target, a.at, a.decision, a.confidence, a.landing, a.mode, a.pending, a.answers_of,
            a.class, a.proposed_state, a.seq, a.edited, a.together,
            (SELECT b.kind FROM actions b WHERE b.answers_of = a.id ORDER BY b.at DESC LIMIT 1) AS answered "
    };
}

pub(super) const AT: &str = concat!(columns!(), "FROM actions a WHERE a.path = ?1");
/// A copied file has the same id; what lies where it was filed is the action.
pub(super) const BY_ID: &str =
    concat!(columns!(), "FROM actions a WHERE a.id = ?1 ORDER BY a.misnamed, a.seq, a.path LIMIT 1");
pub(super) const ANSWERS: &str = concat!(columns!(), "FROM actions a WHERE a.answers_of = ?1 ORDER BY a.seq, a.path");
pub(super) const FILED: &str = concat!(columns!(), "FROM actions a WHERE a.seq > ?1 ORDER BY a.seq, a.path LIMIT ?2");

pub(super) const WAITING: &str = "SELECT COUNT(*) FROM actions a INDEXED BY actions_that_wait WHERE a.pending = 1
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id)";

/// Nobody has answered the action `a`.
pub(super) const UNANSWERED: &str = "NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id)";
/// The action `a` changed its target, and nobody took that back.
pub(super) const UNDOABLE: &str = "a.kind IN ('steward-action', 'steward-action-confirmed') AND NOT EXISTS (
    SELECT 1 FROM actions b WHERE b.answers_of = a.id AND b.kind = 'steward-action-reversed')";

impl Index {
    /// Actions and answers, newest first, after those of the page before; 1 to 500 of them.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions_page(
        &self,
        filter: &ActionFilter,
        before: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<ActionRow>, IndexError> {
        let mut query = page_query(filter, before, limit);
        let rows: Vec<Row> = query.build_query_as().fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        let rows = rows.into_iter().map(|row| self.action(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(rows, limit, |row| Cursor { at: row.at, path: row.path.clone() }))
    }

    /// Actions that wait for a human's answer, newest first, page by page.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn pending_page(&self, before: Option<&Cursor>, limit: u32) -> Result<Page<ActionRow>, IndexError> {
        let waiting = ActionFilter { only: Only::Waiting, ..ActionFilter::default() };
        self.actions_page(&waiting, before, limit).await
    }

    /// The action of a record's path; `None` when none is known.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_at(&self, path: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        self.one_action(AT, path.as_str()).await
    }

    /// The action of an id; `None` when none is known. Of several files the one that lies where it was filed.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_by_id(&self, id: &ActionId) -> Result<Option<ActionRow>, IndexError> {
        self.one_action(BY_ID, id.as_str()).await
    }

    /// What humans said and did of an action, in the order of the chain.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn answers_to(&self, id: &ActionId) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<Row> =
            sqlx::query_as(ANSWERS).bind(id.as_str()).fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        rows.into_iter().map(|row| self.action(row)).collect()
    }

    /// What was filed after a place in the chain, in its order; 1 to 500 records.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn filed_since(&self, seq: u64, limit: u32) -> Result<Filed, IndexError> {
        let rows: Vec<Row> = sqlx::query_as(FILED)
            .bind(i64::try_from(seq).unwrap_or(i64::MAX))
            .bind(reads(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        let rows = rows.into_iter().map(|row| self.action(row)).collect::<Result<Vec<_>, _>>()?;
        let Page { rows, more, .. } = Page::cut(rows, limit, |_| ());
        Ok(Filed { seq: rows.last().map_or(seq, |row| row.seq), rows, more })
    }

    /// How many actions wait for a human's answer.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn pending_count(&self) -> Result<u64, IndexError> {
        let count: i64 = sqlx::query_scalar(WAITING).fetch_one(&self.store.reader).await.map_err(|e| self.sql(e))?;
        Ok(count.cast_unsigned())
    }

    async fn one_action(&self, sql: &'static str, key: &str) -> Result<Option<ActionRow>, IndexError> {
        let row: Option<Row> =
            sqlx::query_as(sql).bind(key).fetch_optional(&self.store.reader).await.map_err(|e| self.sql(e))?;
        row.map(|row| self.action(row)).transpose()
    }
}

/// First the paths of the page, of which the index alone tells nearly always, then their rows.
pub(super) fn page_query(filter: &ActionFilter, before: Option<&Cursor>, limit: u32) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(columns!());
    let order = begin(&mut query, filter, before);
    if let Some(since) = filter.since {
        query.push(format_args!(" AND {}.at >= ", order.table)).push_bind(micros(since));
    }
    if let Some(until) = filter.until {
        query.push(format_args!(" AND {}.at < ", order.table)).push_bind(micros(until));
    }
    if let Some(target) = &filter.target {
        query.push(" AND a.target = ").push_bind(target.to_string());
    }
    if let Some(matter) = &filter.matter {
        query.push(" AND a.target IN (SELECT ").push_bind(matter.to_string());
        query.push(" UNION ALL SELECT path FROM tasks WHERE parent = ").push_bind(matter.to_string()).push(")");
    }
    if let Some(landing) = filter.landing {
        query.push(" AND a.landing = ").push_bind(landing.word());
    }
    if let Some(class) = filter.class {
        query.push(" AND a.class = ").push_bind(class.word());
    }
    if !filter.kinds.is_empty() {
        let words: Vec<&str> = filter.kinds.iter().map(|kind| kind.word()).collect();
        query.push(" AND a.kind IN (SELECT value FROM json_each(");
        query.push_bind(super::store::json(&words)).push("))");
    }
    match filter.only {
        Only::All => {}
        Only::Waiting => {
            query.push(format_args!(" AND a.pending = 1 AND {UNANSWERED}"));
        }
        Only::Undoable => {
            query.push(format_args!(" AND a.landing = 'live' AND {UNDOABLE}"));
        }
    }
    query.push(format_args!(" ORDER BY {0}.at DESC, {0}.{1} DESC LIMIT ", order.table, order.path));
    query.push_bind(reads(limit));
    query.push(") p CROSS JOIN actions a ON a.path = p.path ORDER BY a.at DESC, a.path DESC");
    query
}

/// The table and column in whose order a page is read.
struct Order {
    table: &'static str,
    path: &'static str,
}

/// Begins with the narrowest index; what is asked for besides is then looked at row by row.
fn begin(query: &mut QueryBuilder<Sqlite>, filter: &ActionFilter, before: Option<&Cursor>) -> Order {
    let (mut order, by) = (Order { table: "a", path: "path" }, "FROM (SELECT a.path FROM actions a INDEXED BY ");
    if filter.target.is_some() || filter.matter.is_some() {
        query.push(by).push("actions_by_target WHERE true");
    } else if filter.only == Only::Waiting {
        query.push(by).push("actions_that_wait WHERE true");
    } else if let Some(source) = &filter.source {
        order = Order { table: "s", path: "action" };
        query.push("FROM (SELECT a.path FROM action_sources s INDEXED BY sources_by_time");
        query.push(" CROSS JOIN actions a ON a.path = s.action WHERE s.source = ").push_bind(source.clone());
    } else if filter.only == Only::Undoable || filter.landing == Some(Landing::Live) {
        query.push(by).push("actions_that_live WHERE a.landing = 'live'");
    } else {
        query.push(by).push("actions_by_time WHERE true");
    }
    if let Some(source) = filter.source.as_ref().filter(|_| order.table == "a") {
        query.push(" AND EXISTS (SELECT 1 FROM action_sources s WHERE s.action = a.path AND s.source = ");
        query.push_bind(source.clone()).push(")");
    }
    if let Some(before) = before {
        query.push(format_args!(" AND ({}.at, {}.{}) < (", order.table, order.table, order.path));
        query.push_bind(micros(before.at)).push(", ").push_bind(before.path.to_string()).push(")");
    }
    order
}
