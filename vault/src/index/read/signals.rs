//! Filtered pages of signals, and the timeline of a record.
//!
//! Rows are newest first, by the date of a signal and the decision time of an action. Each page is one query on the
//! narrowest SQL index for the filter; a timeline merges two. Quotes and names of sources are untrusted text.

use super::page::{ListPage, PageCursor, rows_to_read};
use super::why::{self, WeighedSignal, weighed_signal_columns};
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::actions::action::ActionRow;
use crate::index::actions::list::ActionFilter;
use crate::index::store::codec::to_micros;
use serde::Serialize;
use sqlx::{FromRow, QueryBuilder, Sqlite};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::SignalStatus;

/// A filter for signals; every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalFilter {
    pub status: Option<SignalStatus>,
    /// About this very record.
    pub target: Option<RecordPath>,
    /// About this matter or one of its current tasks.
    pub matter: Option<RecordPath>,
    /// Of the source with this key ([`steward_domain::signals::signal::source_key`]).
    pub source: Option<String>,
}

/// A signal in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalRow {
    #[serde(flatten)]
    pub signal: WeighedSignal,
    /// `None` if the signal has no single target.
    pub target: Option<RecordPath>,
}

/// One entry of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum TimelineRow {
    Signal(SignalRow),
    /// A decision, with or without a change, or a resolution.
    Action(ActionRow),
}

#[derive(FromRow)]
struct SignalColumns {
    target: Option<String>,
    #[sqlx(flatten)]
    signal: why::WeighedSignalColumns,
}

impl TimelineRow {
    /// The position in the list.
    #[must_use]
    pub fn page_cursor(&self) -> PageCursor {
        match self {
            Self::Signal(row) => row.page_cursor(),
            Self::Action(row) => PageCursor { at: row.at, path: row.path.clone() },
        }
    }
}

impl SignalRow {
    fn page_cursor(&self) -> PageCursor {
        PageCursor { at: self.signal.created, path: self.signal.path.clone() }
    }
}

impl ReadView<'_> {
    /// Reads a page of signals, newest first, after the page before. `limit` is 1 to 500.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn signals_page(
        self,
        filter: &SignalFilter,
        before: Option<&PageCursor>,
        limit: u32,
    ) -> Result<ListPage<SignalRow>, IndexError> {
        let mut query = signal_page_query(filter, before, limit);
        let rows: Vec<SignalColumns> =
            query.build_query_as().fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let decode = |row: SignalColumns| {
            let target = row.target.map(|t| self.index.parse_path(&t)).transpose()?;
            Ok(SignalRow { signal: self.decode_weighed_signal(row.signal)?, target })
        };
        let rows = rows.into_iter().map(decode).collect::<Result<Vec<_>, IndexError>>()?;
        Ok(ListPage::from_rows(rows, limit, SignalRow::page_cursor))
    }

    /// Reads a page of signals, decisions, changes and resolutions about a record, newest first. `limit` is 1 to 500.
    ///
    /// The timeline of a matter includes those about its current tasks.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn timeline_page(
        self,
        record: &RecordPath,
        before: Option<&PageCursor>,
        limit: u32,
    ) -> Result<ListPage<TimelineRow>, IndexError> {
        let (matter, target) = match self.find_note_kind(record).await? {
            Some(RecordKind::Matter) => (Some(record.clone()), None),
            _ => (None, Some(record.clone())),
        };
        let signals = SignalFilter { matter: matter.clone(), target: target.clone(), ..SignalFilter::default() };
        let actions = ActionFilter { matter, target, ..ActionFilter::default() };
        let signals = self.signals_page(&signals, before, limit).await?;
        let actions = self.index.actions().actions_page(&actions, before, limit).await?;
        let more = signals.more || actions.more;
        let mut rows: Vec<TimelineRow> = signals.rows.into_iter().map(TimelineRow::Signal).collect();
        rows.extend(actions.rows.into_iter().map(TimelineRow::Action));
        rows.sort_by_cached_key(|row| {
            let cursor = row.page_cursor();
            std::cmp::Reverse((cursor.at, cursor.path))
        });
        let mut page = ListPage::from_rows(rows, limit, TimelineRow::page_cursor);
        // Each query read a full page, so the next page begins after the last of these rows.
        if more && !page.more {
            (page.more, page.next) = (true, page.rows.last().map(TimelineRow::page_cursor));
        }
        Ok(page)
    }
}

pub(crate) fn signal_page_query(
    filter: &SignalFilter,
    before: Option<&PageCursor>,
    limit: u32,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(concat!(
        "SELECT o.target, ",
        weighed_signal_columns!(),
        " FROM (SELECT path FROM signals s INDEXED BY "
    ));
    query.push(if filter.target.is_some() || filter.matter.is_some() {
        "signals_by_target WHERE true"
    } else if filter.source.is_some() {
        "signals_by_source WHERE true"
    } else if filter.status.is_some() {
        "signals_by_status WHERE true"
    } else {
        "signals_by_time WHERE true"
    });
    if let Some(target) = &filter.target {
        query.push(" AND s.target = ").push_bind(target.to_string());
    }
    if let Some(matter) = &filter.matter {
        query.push(" AND s.target IN (SELECT ").push_bind(matter.to_string());
        query.push(" UNION ALL SELECT path FROM tasks WHERE parent = ").push_bind(matter.to_string()).push(")");
    }
    if let Some(source) = &filter.source {
        query.push(" AND s.instinct = ").push_bind(source.clone());
    }
    if let Some(status) = filter.status {
        query.push(" AND s.status = ").push_bind(status.as_str());
    }
    if let Some(before) = before {
        query.push(" AND (s.created, s.path) < (").push_bind(to_micros(before.at));
        query.push(", ").push_bind(before.path.to_string()).push(")");
    }
    query.push(" ORDER BY s.created DESC, s.path DESC LIMIT ").push_bind(rows_to_read(limit));
    query.push(") p CROSS JOIN signals o ON o.path = p.path ORDER BY o.created DESC, o.path DESC");
    query
}
