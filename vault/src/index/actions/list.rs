//! Actions and answers, page by page and chosen: for lists, the API, and whoever follows the chain.
//!
//! Each page is one query that walks the index of what is asked for most narrowly, newest first. What is asked for besides
//! is looked at row by row, and only so many rows for one page: one with fewer rows than were asked for, or none, may
//! have a next. Derived from the audit records, which stay the truth.

use super::action::{ActionColumns, ActionRow};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::read::page::{ListPage, PageCursor, rows_to_read};
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use sqlx::{QueryBuilder, Sqlite};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::record::path::RecordPath;

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
    pub landing: Option<Disposition>,
    pub class: Option<MutationClass>,
    /// A source that was weighed or spoke, by the name by which trust goes
    /// ([`steward_domain::signals::signal::source_key`]).
    pub source: Option<String>,
    /// Of these kinds; of every kind where none is named.
    pub kinds: Vec<ActionKind>,
    pub only: ActionSubset,
}

/// Which actions are asked for by what may still be done about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActionSubset {
    #[default]
    All,
    /// Those that wait for a human's answer.
    Waiting,
    /// Live changes that nobody has taken back. Whether the undo window is still open is the asker's `since`.
    Undoable,
}

/// What was filed after a place in the chain.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ActionsSince {
    /// The place of the last one of `rows`, or the one that was asked after.
    pub seq: u64,
    /// In the order of the chain.
    pub rows: Vec<ActionRow>,
    /// There are more after these.
    pub more: bool,
}

/// Most rows that are looked at for one page where not everything that is asked for is told by one index. Way out: the next
/// page goes on behind them.
pub(crate) const LOOKED_AT: u32 = 10_000;

/// The target of the action `a` has by now the state or the matter that was proposed, whoever made it so: there is nothing
/// left to answer. The index does not hold the other fields.
macro_rules! settled {
    () => {
        "EXISTS (SELECT 1 FROM tasks t WHERE t.path = a.target AND t.state = a.proposed_state UNION ALL
            SELECT 1 FROM matters m WHERE m.path = a.target AND m.state = a.proposed_state UNION ALL
            SELECT 1 FROM tasks t WHERE t.path = a.target AND t.parent = a.moves_to)"
    };
}
/// The action `a` waits for a human's answer.
macro_rules! waits {
    () => {
        concat!("a.waits = 1 AND NOT ", crate::index::actions::list::settled!())
    };
}
pub(crate) use {settled, waits};

/// What a row shows.
macro_rules! columns {
    () => {
        concat!(
            "SELECT a.path, a.id, a.kind, a.target, a.at, a.decision, a.confidence, a.landing, a.mode, a.pending, a.answers_of,
            a.class, a.proposed_state, a.proposal, a.seq, a.edited, a.together, b.kind AS answered, b.id AS answered_by,
            a.pending = 1 AND ",
            settled!(),
            " AS settled "
        )
    };
}
/// The latest answer beside each row.
macro_rules! answer {
    () => {
        " LEFT JOIN actions b ON b.path = (SELECT c.path FROM actions c WHERE c.answers_of = a.id
            ORDER BY c.seq DESC LIMIT 1) "
    };
}

pub(crate) const AT: &str = concat!(columns!(), "FROM actions a", answer!(), "WHERE a.path = ?1");
/// A copied file has the same id; what lies where it was filed is the action.
pub(crate) const BY_ID: &str =
    concat!(columns!(), "FROM actions a", answer!(), "WHERE a.id = ?1 ORDER BY a.misnamed, a.seq, a.path LIMIT 1");
pub(crate) const CITING: &str = concat!(
    columns!(),
    "FROM action_evidence e CROSS JOIN actions a ON a.path = e.action",
    answer!(),
    "WHERE e.ref = ?1 AND a.kind = 'steward-action' ORDER BY a.seq DESC LIMIT 1"
);
pub(crate) const ANSWERS: &str =
    concat!(columns!(), "FROM actions a", answer!(), "WHERE a.answers_of = ?1 ORDER BY a.seq, a.path");
pub(crate) const TOGETHER: &str = concat!(
    columns!(),
    "FROM actions a INDEXED BY actions_together",
    answer!(),
    "WHERE a.together = ?1 ORDER BY a.at DESC, a.path DESC LIMIT 500"
);
pub(crate) const FILED: &str =
    concat!(columns!(), "FROM actions a", answer!(), "WHERE a.seq > ?1 ORDER BY a.seq, a.path LIMIT ?2");

pub(crate) const WAITING: &str =
    concat!("SELECT COUNT(*) FROM actions a INDEXED BY actions_that_wait WHERE ", waits!());

/// The action `a` changed its target, and nobody took that back.
pub(crate) const UNDOABLE: &str = "a.kind IN ('steward-action', 'steward-action-confirmed') AND NOT EXISTS (
    SELECT 1 FROM actions b WHERE b.answers_of = a.id AND b.kind = 'steward-action-reversed')";

impl Index {
    /// Actions and answers, newest first, after those of the page before; at most 1 to 500 of them.
    ///
    /// A page may hold fewer, and none, although there is a next: then many were looked at that are not asked for.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions_page(
        &self,
        filter: &ActionFilter,
        before: Option<&PageCursor>,
        limit: u32,
    ) -> Result<ListPage<ActionRow>, IndexError> {
        let last = self.find_page_bound(filter, before).await?;
        let mut query = action_page_query(filter, (before, last.as_ref()), limit);
        let rows: Vec<ActionColumns> =
            query.build_query_as().fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let rows = rows.into_iter().map(|row| self.decode_action(row)).collect::<Result<Vec<_>, _>>()?;
        let page = ListPage::from_rows(rows, limit, |row| PageCursor { at: row.at, path: row.path.clone() });
        Ok(if page.more { page } else { ListPage { more: last.is_some(), next: last, ..page } })
    }

    /// Where a page ends at the latest; `None` where it may go to the end.
    async fn find_page_bound(
        &self,
        filter: &ActionFilter,
        before: Option<&PageCursor>,
    ) -> Result<Option<PageCursor>, IndexError> {
        let Some(mut query) = page_bound_query(filter, before) else { return Ok(None) };
        let row: Option<(i64, String)> =
            query.build_query_as().fetch_optional(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        row.map(|(at, path)| Ok(PageCursor { at: from_micros(at).unwrap_or_default(), path: self.parse_path(&path)? }))
            .transpose()
    }

    /// Actions that wait for a human's answer, newest first, page by page.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn pending_actions_page(
        &self,
        before: Option<&PageCursor>,
        limit: u32,
    ) -> Result<ListPage<ActionRow>, IndexError> {
        let waiting = ActionFilter { only: ActionSubset::Waiting, ..ActionFilter::default() };
        self.actions_page(&waiting, before, limit).await
    }

    /// The action of a record's path; `None` when none is known.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_by_path(&self, path: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(AT, path.as_str()).await
    }

    /// The newest decision that cites a signal.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_citing(&self, signal: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(CITING, signal.as_str()).await
    }

    /// The action of an id; `None` when none is known. Of several files the one that lies where it was filed.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn action_by_id(&self, id: &ActionId) -> Result<Option<ActionRow>, IndexError> {
        self.fetch_action(BY_ID, id.as_str()).await
    }

    /// What humans said and did of an action, in the order of the chain.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_resolutions(&self, id: &ActionId) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(ANSWERS)
            .bind(id.as_str())
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_action(row)).collect()
    }

    /// What was answered with one click, newest first; at most 500 of them.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_actions_of_batch(&self, click: &ActionId) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(TOGETHER)
            .bind(click.as_str())
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_action(row)).collect()
    }

    /// What was filed after a place in the chain, in its order; 1 to 500 records.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_actions_since(&self, seq: u64, limit: u32) -> Result<ActionsSince, IndexError> {
        let rows: Vec<ActionColumns> = sqlx::query_as(FILED)
            .bind(i64::try_from(seq).unwrap_or(i64::MAX))
            .bind(rows_to_read(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        let rows = rows.into_iter().map(|row| self.decode_action(row)).collect::<Result<Vec<_>, _>>()?;
        let ListPage { rows, more, .. } = ListPage::from_rows(rows, limit, |_| ());
        Ok(ActionsSince { seq: rows.last().map_or(seq, |row| row.seq), rows, more })
    }

    /// How many actions wait for a human's answer.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_pending_actions(&self) -> Result<u64, IndexError> {
        let count: i64 =
            sqlx::query_scalar(WAITING).fetch_one(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        Ok(count.cast_unsigned())
    }

    async fn fetch_action(&self, sql: &'static str, key: &str) -> Result<Option<ActionRow>, IndexError> {
        let row: Option<ActionColumns> =
            sqlx::query_as(sql).bind(key).fetch_optional(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        row.map(|row| self.decode_action(row)).transpose()
    }
}

/// First the paths of the page, of which the index alone tells nearly always, then their rows.
pub(crate) fn action_page_query(
    filter: &ActionFilter,
    (before, last): (Option<&PageCursor>, Option<&PageCursor>),
    limit: u32,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(columns!());
    let walk = ActionPageOrder::for_filter(filter);
    query.push(format_args!("FROM (SELECT {0}.at, {0}.{1} AS path FROM ", walk.table, walk.path));
    walk.push_conditions(&mut query, filter, before);
    if let Some(last) = last {
        query.push(format_args!(" AND ({0}.at, {0}.{1}) >= (", walk.table, walk.path)).push_bind(to_micros(last.at));
        query.push(", ").push_bind(last.path.to_string()).push(")");
    }
    if let Some(source) = filter.source.as_ref().filter(|_| walk.table == "a") {
        query.push(" AND EXISTS (SELECT 1 FROM action_sources s WHERE s.action = a.path AND s.source = ");
        query.push_bind(source.clone()).push(")");
    }
    if let Some(landing) = filter.landing {
        query.push(" AND a.landing = ").push_bind(landing.as_str());
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
        ActionSubset::Waiting => {
            query.push(concat!(" AND ", waits!()));
        }
        ActionSubset::Undoable => {
            query.push(format_args!(" AND a.landing = 'live' AND {UNDOABLE}"));
        }
    }
    walk.push_order(&mut query).push_bind(rows_to_read(limit));
    query.push(concat!(") p CROSS JOIN actions a ON a.path = p.path", answer!(), "ORDER BY p.at DESC, p.path DESC"));
    query
}

/// The last place of those that are looked at for one page, if there are so many; `None` where the walk itself tells all
/// that is asked for, or is about one record or matter.
pub(crate) fn page_bound_query(filter: &ActionFilter, before: Option<&PageCursor>) -> Option<QueryBuilder<Sqlite>> {
    let walk = ActionPageOrder::for_filter(filter);
    let live = filter.landing == Some(Disposition::Live) && walk.index == LIVE;
    let told = filter.class.is_none()
        && filter.kinds.is_empty()
        && (filter.landing.is_none() || live)
        && (filter.source.is_none() || walk.index == OF_SOURCE)
        && (filter.only == ActionSubset::All || (filter.only == ActionSubset::Waiting && walk.index == WAIT));
    if told || walk.index == OF_TARGET {
        return None;
    }
    let mut query = QueryBuilder::new(format!("SELECT {0}.at, {0}.{1} FROM ", walk.table, walk.path));
    // Its rows are not needed to count them.
    ActionPageOrder { rows: "", ..walk }.push_conditions(&mut query, filter, before);
    walk.push_order(&mut query).push_bind(1).push(" OFFSET ").push_bind(LOOKED_AT - 1);
    Some(query)
}

const OF_TARGET: &str = "actions_by_target";
const WAIT: &str = "actions_that_wait";
const OF_SOURCE: &str = "sources_by_time";
const LIVE: &str = "actions_that_live";

/// The index in whose order a page is read, and what it tells.
#[derive(Clone, Copy)]
struct ActionPageOrder {
    table: &'static str,
    path: &'static str,
    index: &'static str,
    /// How the rows are found beside an index of another table.
    rows: &'static str,
}

impl ActionPageOrder {
    /// The narrowest.
    fn for_filter(filter: &ActionFilter) -> Self {
        let by = |index| Self { table: "a", path: "path", index, rows: "" };
        if filter.target.is_some() || filter.matter.is_some() {
            by(OF_TARGET)
        } else if filter.only == ActionSubset::Waiting {
            by(WAIT)
        } else if filter.source.is_some() {
            let rows = " CROSS JOIN actions a ON a.path = s.action";
            Self { table: "s", path: "action", index: OF_SOURCE, rows }
        } else if filter.only == ActionSubset::Undoable || filter.landing == Some(Disposition::Live) {
            by(LIVE)
        } else {
            by("actions_by_time")
        }
    }

    /// From here on, what the index itself tells.
    fn push_conditions(self, query: &mut QueryBuilder<Sqlite>, filter: &ActionFilter, before: Option<&PageCursor>) {
        let Self { table, path, index, rows } = self;
        let own = if table == "a" { "actions a" } else { "action_sources s" };
        query.push(format_args!("{own} INDEXED BY {index}{rows} WHERE "));
        match index {
            WAIT => query.push("a.waits = 1"),
            LIVE => query.push("a.landing = 'live'"),
            OF_SOURCE => query.push("s.source = ").push_bind(filter.source.clone()),
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
