//! Filtered pages of actions and resolutions, for lists, the API and readers that follow the chain.
//!
//! Each page is one query that walks the narrowest SQL index for the filter, newest first. The other conditions are
//! tested row by row, on a limited number of rows for one page. So a page with fewer rows than the limit, or with
//! none, may have a next page. Everything is derived from the audit records, which stay the truth.

use super::action::{ActionColumns, ActionRow};
use super::waiting::{PROPOSAL_LIFETIME, count_waiting_sql, is_settled, is_shown, is_snoozed, is_waiting};
use crate::index::ActionsView;
use crate::index::IndexError;
use crate::index::read::page::{ListPage, PageCursor, rows_to_read};
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, QueryBuilder, Sqlite};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::RecordPath;

/// A filter for actions; every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionFilter {
    /// From this moment on.
    pub since: Option<DateTime<Utc>>,
    /// Before this moment.
    pub until: Option<DateTime<Utc>>,
    /// About this very record.
    pub target: Option<RecordPath>,
    /// About this matter or one of its current tasks.
    pub matter: Option<RecordPath>,
    pub disposition: Option<Disposition>,
    pub class: Option<MutationClass>,
    /// With this source among the weighed or supporting ones, by its key
    /// ([`steward_domain::signals::signal::source_key`]).
    pub source: Option<String>,
    /// Of these kinds; of every kind if the list is empty.
    pub kinds: Vec<ActionKind>,
    pub only: ActionSubset,
}

/// A subset of actions by what a person may still do about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionSubset {
    #[default]
    All,
    /// Proposals that wait for a person's answer at a moment, and that are shown then.
    Waiting(DateTime<Utc>),
    /// Proposals that nobody answered for [`PROPOSAL_LIFETIME`]. They can still be answered.
    Expired(DateTime<Utc>),
    /// Proposals that a person has put off.
    Snoozed(DateTime<Utc>),
    /// Live changes that nobody has reverted. The caller's `since` limits them to the undo window.
    Undoable,
}

impl ActionSubset {
    /// Whether every action in it can be answered.
    fn is_of_waiting(self) -> bool {
        match self {
            Self::Waiting(_) | Self::Expired(_) | Self::Snoozed(_) => true,
            Self::All | Self::Undoable => false,
        }
    }
}

/// The records after a number in the chain.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ActionsSince {
    /// The number of the last row, or the requested number if there is none.
    pub seq: u64,
    /// In chain order.
    pub rows: Vec<ActionRow>,
    /// Whether there are more after these.
    pub more: bool,
}

/// The most rows that one page tests where no single SQL index covers the filter; the next page continues after them.
/// An index for each pair of filters would be written with every record and used once a month.
pub(crate) const MAX_TESTED_ROWS: u32 = 10_000;

/// The columns of a row.
macro_rules! columns {
    () => {
        concat!(
            "SELECT a.path, a.id, a.kind, a.target, a.at, a.decision, a.confidence, a.disposition, a.mode, a.pending, a.resolves,
            a.waits, a.waits = 1 AND EXISTS (SELECT 1 FROM actions e INDEXED BY actions_by_proposal
                WHERE e.proposal = a.proposal AND e.seq > a.seq AND e.waits = 1) AS repeated,
            a.class, a.proposed_state, a.proposal, a.seq, a.edited, a.batch_id, b.kind AS resolution, b.id AS resolved_by, b.at AS resolved_at,
            a.pending = 1 AND ",
            is_settled!(),
            " AS settled "
        )
    };
}
/// The join of the latest resolution to each row.
macro_rules! resolution {
    () => {
        " LEFT JOIN actions b ON b.path = (SELECT c.path FROM actions c WHERE c.follows = a.id AND c.taken_back = 0
            ORDER BY c.seq DESC LIMIT 1) "
    };
}

pub(crate) const BY_PATH: &str = concat!(columns!(), "FROM actions a", resolution!(), "WHERE a.path = ?1");
/// A copied file has the same id; the file that lies where it was filed is the action.
pub(crate) const BY_ID: &str =
    concat!(columns!(), "FROM actions a", resolution!(), "WHERE a.id = ?1 ORDER BY a.misnamed, a.seq, a.path LIMIT 1");
pub(crate) const CITING: &str = concat!(
    columns!(),
    "FROM action_evidence e CROSS JOIN actions a ON a.path = e.action",
    resolution!(),
    "WHERE e.ref = ?1 AND a.kind = 'steward-action' ORDER BY a.seq DESC LIMIT 1"
);
pub(crate) const RESOLUTIONS: &str = concat!(
    columns!(),
    "FROM actions a",
    resolution!(),
    "WHERE a.follows = ?1
        OR a.follows IN (SELECT t.id FROM actions t WHERE t.follows = ?1 AND t.taken_back = 1) ORDER BY a.seq, a.path"
);
pub(crate) const OF_BATCH: &str = concat!(
    columns!(),
    "FROM actions a INDEXED BY actions_batch",
    resolution!(),
    "WHERE a.batch_id = ?1 ORDER BY a.at DESC, a.path DESC LIMIT 500"
);
pub(crate) const AFTER_SEQ: &str =
    concat!(columns!(), "FROM actions a", resolution!(), "WHERE a.seq > ?1 ORDER BY a.seq, a.path LIMIT ?2");

/// The newest outcome of an equal proposal after a proposal that was made in Watch: an answer, or the change itself.
pub(crate) const OUTCOME_OF_EQUAL: &str = "SELECT path FROM (
    SELECT b.path, b.seq FROM actions a
        CROSS JOIN actions c INDEXED BY actions_by_proposal ON c.proposal = a.proposal AND c.path <> a.path
        CROSS JOIN actions b ON b.resolves = c.id AND b.seq > a.seq WHERE a.path = ?1
    UNION ALL SELECT c.path, c.seq FROM actions a
        CROSS JOIN actions c INDEXED BY actions_by_proposal ON c.proposal = a.proposal AND c.seq > a.seq
        WHERE a.path = ?1 AND c.disposition = 'live')
    ORDER BY seq DESC LIMIT 1";
/// The newest answer to an equal proposal after one that waited.
pub(crate) const ANSWER_TO_EQUAL: &str = "SELECT b.path FROM actions a
    CROSS JOIN actions c INDEXED BY actions_by_proposal ON c.proposal = a.proposal AND c.path <> a.path
    CROSS JOIN actions b ON b.resolves = c.id AND b.seq > a.seq
    WHERE a.path = ?1 AND a.pending = 1 AND a.ended = 0 AND NOT EXISTS (SELECT 1 FROM actions o WHERE o.resolves = a.id)
    ORDER BY b.seq DESC LIMIT 1";

/// The action `a` changed its target, and nobody has reverted that.
pub(crate) const UNDOABLE: &str = "a.kind IN ('steward-action', 'steward-action-confirmed') AND NOT EXISTS (
    SELECT 1 FROM actions b WHERE b.resolves = a.id AND b.kind = 'steward-action-reversed')";

impl ActionsView<'_> {
    /// Reads a page of actions and resolutions, newest first, after the page before. `limit` is 1 to 500.
    ///
    /// A page may have fewer rows, or none, although there is a next page: then many tested rows did not match.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions_page(
        self,
        filter: &ActionFilter,
        before: Option<&PageCursor>,
        limit: u32,
    ) -> Result<ListPage<ActionRow>, IndexError> {
        let last = self.find_page_bound(filter, before).await?;
        let mut query = action_page_query(filter, before, last.as_ref(), limit);
        let rows: Vec<ActionColumns> =
            query.build_query_as().fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let rows = rows.into_iter().map(|row| self.decode_action(row)).collect::<Result<Vec<_>, _>>()?;
        let page = ListPage::from_rows(rows, limit, |row| PageCursor { at: row.at, path: row.path.clone() });
        Ok(if page.more { page } else { ListPage { more: last.is_some(), next: last, ..page } })
    }

    /// The last row that a page may test; `None` if it may read to the end.
    async fn find_page_bound(
        self,
        filter: &ActionFilter,
        before: Option<&PageCursor>,
    ) -> Result<Option<PageCursor>, IndexError> {
        let Some(mut query) = page_bound_query(filter, before) else { return Ok(None) };
        let row: Option<(i64, String)> = query
            .build_query_as()
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        row.map(|(at, path)| {
            Ok(PageCursor { at: from_micros(at).unwrap_or_default(), path: self.index.parse_path(&path)? })
        })
        .transpose()
    }

    /// Reads a page of the proposals that wait for a person's answer, newest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn pending_actions_page(
        self,
        before: Option<&PageCursor>,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<ListPage<ActionRow>, IndexError> {
        let waiting = ActionFilter { only: ActionSubset::Waiting(now), ..ActionFilter::default() };
        self.actions_page(&waiting, before, limit).await
    }

    /// Lists the answers to an action, those that were taken back and what people did about it by hand, in chain order.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_resolutions(self, id: &ActionId) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(RESOLUTIONS)
            .bind(id.as_str())
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_action(row)).collect()
    }

    /// Lists the resolutions of one batch, newest first, at most 500.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_actions_of_batch(self, click: &ActionId) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(OF_BATCH)
            .bind(click.as_str())
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_action(row)).collect()
    }

    /// Lists the records after a number in the chain, in chain order. `limit` is 1 to 500.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_actions_since(self, seq: u64, limit: u32) -> Result<ActionsSince, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(AFTER_SEQ)
            .bind(i64::try_from(seq).unwrap_or(i64::MAX))
            .bind(rows_to_read(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let rows = rows.into_iter().map(|row| self.decode_action(row)).collect::<Result<Vec<_>, _>>()?;
        let ListPage { rows, more, .. } = ListPage::from_rows(rows, limit, |_| ());
        Ok(ActionsSince { seq: rows.last().map_or(seq, |row| row.seq), rows, more })
    }

    /// Counts the proposals that wait for a person's answer.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_pending_actions(self, now: DateTime<Utc>) -> Result<u64, IndexError> {
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(count_waiting_sql(now)))
            .fetch_one(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(count.cast_unsigned())
    }
}

/// The query first selects the paths of the page, nearly always from the SQL index alone, and then their rows. `last`
/// is the bound of [`page_bound_query`].
pub(crate) fn action_page_query(
    filter: &ActionFilter,
    before: Option<&PageCursor>,
    last: Option<&PageCursor>,
    limit: u32,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(columns!());
    let order = ActionPageOrder::for_filter(filter);
    query.push(format_args!("FROM (SELECT {0}.at, {0}.{1} AS path FROM ", order.table, order.path));
    order.push_conditions(&mut query, filter, before);
    if let Some(last) = last {
        query.push(format_args!(" AND ({0}.at, {0}.{1}) >= (", order.table, order.path)).push_bind(to_micros(last.at));
        query.push(", ").push_bind(last.path.to_string()).push(")");
    }
    if let Some(source) = filter.source.as_ref().filter(|_| order.table == "a") {
        query.push(" AND EXISTS (SELECT 1 FROM action_sources s WHERE s.action = a.path AND s.source = ");
        query.push_bind(source.clone()).push(")");
    }
    if let Some(disposition) = filter.disposition {
        query.push(" AND a.disposition = ").push_bind(disposition.as_str());
    }
    if let Some(class) = filter.class {
        query.push(" AND a.class = ").push_bind(class.as_str());
    }
    if !filter.kinds.is_empty() {
        let words: Vec<&str> = filter.kinds.iter().map(|kind| kind.as_str()).collect();
        query.push(" AND a.kind IN (SELECT value FROM json_each(");
        query.push_bind(crate::index::store::rows::to_json(&words)).push("))");
    }
    match filter.only {
        ActionSubset::All => {}
        ActionSubset::Waiting(now) => {
            query.push(format_args!(" AND {}", is_shown(now)));
        }
        ActionSubset::Expired(now) => {
            let oldest = to_micros(now - PROPOSAL_LIFETIME);
            query.push(format_args!(concat!(" AND ", is_waiting!(), " AND a.at <= {}"), oldest));
        }
        ActionSubset::Snoozed(now) => {
            query.push(format_args!(concat!(" AND ", is_waiting!(), " AND {}"), is_snoozed("a.target", now)));
        }
        ActionSubset::Undoable => {
            query.push(format_args!(" AND a.disposition = 'live' AND {UNDOABLE}"));
        }
    }
    order.push_order(&mut query).push_bind(rows_to_read(limit));
    query.push(") p CROSS JOIN actions a ON a.path = p.path").push(resolution!());
    query.push("ORDER BY p.at DESC, p.path DESC");
    query
}

/// The query for the last row that one page may test. `None` if the SQL index covers the whole filter, or if the
/// filter names one record or matter.
pub(crate) fn page_bound_query(filter: &ActionFilter, before: Option<&PageCursor>) -> Option<QueryBuilder<Sqlite>> {
    let order = ActionPageOrder::for_filter(filter);
    let live = filter.disposition == Some(Disposition::Live) && order.index == BY_LIVE;
    let is_covered = filter.class.is_none()
        && filter.kinds.is_empty()
        && (filter.disposition.is_none() || live)
        && (filter.source.is_none() || order.index == BY_SOURCE)
        && (filter.only == ActionSubset::All || (filter.only.is_of_waiting() && order.index == BY_WAITING));
    if is_covered || order.index == BY_TARGET {
        return None;
    }
    let mut query = QueryBuilder::new(format!("SELECT {0}.at, {0}.{1} FROM ", order.table, order.path));
    // Counting needs no joined rows.
    ActionPageOrder { rows: "", ..order }.push_conditions(&mut query, filter, before);
    order.push_order(&mut query).push_bind(1).push(" OFFSET ").push_bind(MAX_TESTED_ROWS - 1);
    Some(query)
}

const BY_TARGET: &str = "actions_by_target";
const BY_WAITING: &str = "actions_that_wait";
const BY_SOURCE: &str = "sources_by_time";
const BY_LIVE: &str = "actions_that_live";

/// The SQL index in whose order a page is read.
#[derive(Clone, Copy)]
struct ActionPageOrder {
    table: &'static str,
    path: &'static str,
    index: &'static str,
    /// The join to the actions if the SQL index belongs to another table.
    rows: &'static str,
}

impl ActionPageOrder {
    /// Chooses the narrowest SQL index.
    fn for_filter(filter: &ActionFilter) -> Self {
        let by = |index| Self { table: "a", path: "path", index, rows: "" };
        if filter.target.is_some() || filter.matter.is_some() {
            by(BY_TARGET)
        } else if filter.only.is_of_waiting() {
            by(BY_WAITING)
        } else if filter.source.is_some() {
            let rows = " CROSS JOIN actions a ON a.path = s.action";
            Self { table: "s", path: "action", index: BY_SOURCE, rows }
        } else if filter.only == ActionSubset::Undoable || filter.disposition == Some(Disposition::Live) {
            by(BY_LIVE)
        } else {
            by("actions_by_time")
        }
    }

    /// Adds the source of the rows and the conditions that the SQL index covers.
    fn push_conditions(self, query: &mut QueryBuilder<Sqlite>, filter: &ActionFilter, before: Option<&PageCursor>) {
        let Self { table, path, index, rows } = self;
        let own = if table == "a" { "actions a" } else { "action_sources s" };
        query.push(format_args!("{own} INDEXED BY {index}{rows} WHERE "));
        match index {
            BY_WAITING => query.push("a.waits = 1"),
            BY_LIVE => query.push("a.disposition = 'live'"),
            BY_SOURCE => query.push("s.source = ").push_bind(filter.source.clone()),
            _ => query.push("true"),
        };
        if let Some(target) = &filter.target {
            query.push(" AND a.target = ").push_bind(target.to_string());
        }
        if let Some(matter) = &filter.matter {
            query.push(" AND a.target IN (SELECT ").push_bind(matter.to_string());
            query.push(" UNION ALL SELECT path FROM tasks WHERE parent = ").push_bind(matter.to_string()).push(")");
        }
        if let Some(since) = filter.since {
            query.push(format_args!(" AND {table}.at >= ")).push_bind(to_micros(since));
        }
        if let Some(until) = filter.until {
            query.push(format_args!(" AND {table}.at < ")).push_bind(to_micros(until));
        }
        if let Some(before) = before {
            query.push(format_args!(" AND ({table}.at, {table}.{path}) < (")).push_bind(to_micros(before.at));
            query.push(", ").push_bind(before.path.to_string()).push(")");
        }
    }

    fn push_order(self, query: &mut QueryBuilder<Sqlite>) -> &mut QueryBuilder<Sqlite> {
        let Self { table, path, .. } = self;
        query.push(format_args!(" ORDER BY {table}.at DESC, {table}.{path} DESC LIMIT "))
    }
}
