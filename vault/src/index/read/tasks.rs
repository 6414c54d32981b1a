//! Tasks with their last and next check: one task, the tasks of a matter, and filtered pages.
//!
//! Read-only, in the order of paths. A task whose file cannot be read is not in these lists, but among the problems.

use super::page::{ListPage, rows_to_read};
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, QueryBuilder, Sqlite};
use steward_domain::record::entity::{RecordState, SurfaceClass};
use steward_domain::record::path::RecordPath;

/// A task in a list or on a screen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskRow {
    pub path: RecordPath,
    /// Untrusted.
    pub name: String,
    pub matter: RecordPath,
    pub state: RecordState,
    pub surface_class: SurfaceClass,
    pub due: Option<DateTime<Utc>>,
    pub snoozed_until: Option<DateTime<Utc>>,
    pub last_check_at: Option<DateTime<Utc>>,
    /// The later of the date that a person wrote and the stored one; `None` means due.
    pub next_check_after: Option<DateTime<Utc>>,
    /// The outcome of the last check.
    pub outcome: Option<String>,
    /// Checks in a row without signals.
    pub streak: u32,
}

/// A filter for tasks; every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Of this matter.
    pub matter: Option<RecordPath>,
    pub state: Option<RecordState>,
}

#[derive(FromRow)]
struct TaskColumns {
    path: String,
    name: String,
    parent: String,
    state: String,
    surface_class: String,
    due: Option<i64>,
    snoozed_until: Option<i64>,
    next_by_human: Option<i64>,
    last_check_at: Option<i64>,
    next_by_us: Option<i64>,
    outcome: Option<String>,
    streak: i64,
}

const TASKS: &str = "SELECT t.path, t.name, t.parent, t.state, t.surface_class, t.due, t.snoozed_until,
        CASE WHEN t.next_check_after IN (w.written, w.before) THEN NULL ELSE t.next_check_after END AS next_by_human,
        c.last_check_at, c.next_check_after AS next_by_us, c.outcome, COALESCE(c.streak, 0) AS streak
    FROM tasks t LEFT JOIN task_checks c ON c.task = t.path LEFT JOIN timestamp_writes w ON w.task = t.path WHERE true";

impl ReadView<'_> {
    /// Lists the tasks of a matter, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_tasks_of_matter(self, matter: &RecordPath) -> Result<Vec<TaskRow>, IndexError> {
        let mut query = QueryBuilder::new(TASKS);
        query.push(" AND t.parent = ").push_bind(matter.to_string()).push(" ORDER BY t.path");
        self.fetch_tasks(query).await
    }

    /// Finds one task; `None` if it is missing or cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_task(self, path: &RecordPath) -> Result<Option<TaskRow>, IndexError> {
        let mut query = QueryBuilder::new(TASKS);
        query.push(" AND t.path = ").push_bind(path.to_string());
        Ok(self.fetch_tasks(query).await?.pop())
    }

    /// Reads a page of tasks in the order of paths. `after` is the `next` of the page before, and `limit` is 1 to 500.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn tasks_page(
        self,
        filter: &TaskFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ListPage<TaskRow, String>, IndexError> {
        let rows = self.fetch_tasks(task_page_query(filter, after, limit)).await?;
        Ok(ListPage::from_rows(rows, limit, |row| row.path.to_string()))
    }

    async fn fetch_tasks(self, mut query: QueryBuilder<Sqlite>) -> Result<Vec<TaskRow>, IndexError> {
        let rows: Vec<TaskColumns> =
            query.build_query_as().fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_task(row)).collect()
    }

    fn decode_task(self, row: TaskColumns) -> Result<TaskRow, IndexError> {
        Ok(TaskRow {
            path: self.index.parse_path(&row.path)?,
            name: row.name,
            matter: self.index.parse_path(&row.parent)?,
            state: self.index.parse_enum(&row.state)?,
            surface_class: self.index.parse_enum(&row.surface_class)?,
            due: row.due.and_then(from_micros),
            snoozed_until: row.snoozed_until.and_then(from_micros),
            last_check_at: row.last_check_at.and_then(from_micros),
            next_check_after: row.next_by_human.max(row.next_by_us).and_then(from_micros),
            outcome: row.outcome,
            streak: u32::try_from(row.streak).unwrap_or(u32::MAX),
        })
    }
}

pub(crate) fn task_page_query(filter: &TaskFilter, after: Option<&str>, limit: u32) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(TASKS);
    if let Some(matter) = &filter.matter {
        query.push(" AND t.parent = ").push_bind(matter.to_string());
    }
    if let Some(state) = filter.state {
        query.push(" AND t.state = ").push_bind(state.as_str());
    }
    if let Some(after) = after {
        query.push(" AND t.path > ").push_bind(after.to_owned());
    }
    query.push(" ORDER BY t.path LIMIT ").push_bind(rows_to_read(limit));
    query
}
