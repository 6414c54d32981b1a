//! Pages of matters in the order of paths, and the names of records.
//!
//! A matter that cannot be read is in the list too, with the reason, so that it does not vanish because of a typing
//! error. Counts are computed for the rows of the page only.

use super::page::{ListPage, MAX_PAGE, rows_to_read};
use super::search::match_expression;
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::actions::waiting::is_shown;
use crate::index::store::codec::from_micros;
use crate::index::store::words::{join_document, place_range};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, QueryBuilder, Sqlite};
use std::collections::BTreeMap;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};

/// A filter for matters; every condition that is set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatterFilter {
    /// Words of the name; the last one may be the beginning of a word. Untrusted.
    pub text: Option<String>,
    pub state: Option<RecordState>,
}

/// A matter in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatterCard {
    pub path: RecordPath,
    /// Untrusted.
    pub name: String,
    /// `None` if its file cannot be read.
    pub state: Option<RecordState>,
    /// Why its file cannot be read, with a hint.
    pub problem: Option<String>,
    pub open_tasks: u64,
    /// Actions about the matter or one of its tasks that wait for a resolution.
    pub pending: u64,
    pub last_tick_at: Option<DateTime<Utc>>,
    /// Ticks in a row without signals.
    pub streak: u32,
}

/// The name of a record, its state and its matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordLabel {
    /// Untrusted.
    pub name: String,
    pub state: RecordState,
    /// The matter of a task; `None` for a matter.
    pub matter: Option<RecordPath>,
    /// Why the link to that matter names no note, or several.
    pub matter_fault: Option<String>,
    /// When a task is due, if that is known.
    pub due: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct LabelColumns {
    path: String,
    name: String,
    state: String,
    parent: Option<String>,
    parent_fault: Option<String>,
    due: Option<i64>,
}

#[derive(FromRow)]
struct MatterCardColumns {
    path: String,
    name: Option<String>,
    state: Option<String>,
    problem: Option<String>,
    open_tasks: i64,
    pending: i64,
    last_tick_at: Option<i64>,
    streak: i64,
}

const CARD: &str =
    "SELECT p.path, m.name, m.state, p.problem, k.observed_at AS last_tick_at,
        COALESCE(k.streak, 0) AS streak,
        (SELECT COUNT(*) FROM tasks t INDEXED BY tasks_by_parent WHERE t.parent = p.path AND t.state = 'open') AS open_tasks,
        (SELECT COUNT(*) FROM (SELECT p.path AS target UNION ALL SELECT path FROM tasks WHERE parent = p.path) r
            CROSS JOIN actions a INDEXED BY actions_that_wait_by_target ON a.target = r.target AND ";
const CARD_FILES: &str = ") AS pending FROM (SELECT f.path, f.problem FROM files f ";
const CARDS: &str = ") p LEFT JOIN matters m ON m.path = p.path LEFT JOIN matter_ticks k ON k.matter = p.path
    ORDER BY p.path";
pub(crate) const NAMES: &str =
    "SELECT t.path, t.name, t.state, t.parent, t.parent_fault, t.due FROM json_each(?1) j
        CROSS JOIN tasks t ON t.path = j.value
    UNION ALL SELECT m.path, m.name, m.state, NULL, NULL, NULL FROM json_each(?1) j CROSS JOIN matters m ON m.path = j.value";

impl ReadView<'_> {
    /// Reads a page of matters in the order of paths. `after` is the `next` of the page before, and `limit` is 1 to
    /// 500.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn matters_page(
        self,
        filter: &MatterFilter,
        after: Option<&str>,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<ListPage<MatterCard, String>, IndexError> {
        let mut query = matter_page_query(filter, after, limit, now);
        let rows: Vec<MatterCardColumns> =
            query.build_query_as().fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let ListPage { rows, more, next } = ListPage::from_rows(rows, limit, |row| row.path.clone());
        // A file with an invalid name is a problem and no matter.
        let usable = rows.into_iter().filter_map(|row| Some((RecordPath::parse(&row.path).ok()?, row)));
        let rows = usable.map(|(path, row)| self.decode_card(path, row)).collect::<Result<_, _>>()?;
        Ok(ListPage { rows, more, next })
    }

    /// Reads the names of tasks and matters, at most 1,000. Missing and unreadable records are left out.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_record_labels(
        self,
        paths: &[RecordPath],
    ) -> Result<BTreeMap<RecordPath, RecordLabel>, IndexError> {
        let paths = &paths[..paths.len().min(2 * MAX_PAGE as usize)];
        let rows: Vec<LabelColumns> = sqlx::query_as(NAMES)
            .bind(crate::index::store::rows::to_json(&paths))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |row: LabelColumns| {
            let label = RecordLabel {
                name: row.name,
                state: self.index.parse_enum(&row.state)?,
                matter: row.parent.map(|matter| self.index.parse_path(&matter)).transpose()?,
                matter_fault: row.parent_fault,
                due: row.due.and_then(from_micros),
            };
            Ok((self.index.parse_path(&row.path)?, label))
        };
        rows.into_iter().map(decode).collect()
    }

    fn decode_card(self, path: RecordPath, row: MatterCardColumns) -> Result<MatterCard, IndexError> {
        Ok(MatterCard {
            name: row.name.unwrap_or_else(|| path.slug().to_owned()),
            path,
            state: row.state.map(|state| self.index.parse_enum(&state)).transpose()?,
            problem: row.problem,
            open_tasks: row.open_tasks.cast_unsigned(),
            pending: row.pending.cast_unsigned(),
            last_tick_at: row.last_tick_at.and_then(from_micros),
            streak: u32::try_from(row.streak).unwrap_or(u32::MAX),
        })
    }
}

pub(crate) fn matter_page_query(
    filter: &MatterFilter,
    after: Option<&str>,
    limit: u32,
    now: DateTime<Utc>,
) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(CARD);
    query.push(is_shown(now)).push(CARD_FILES);
    match filter.state {
        None => query.push("INDEXED BY files_by_kind WHERE f.kind = 'matter'"),
        Some(state) => {
            // An unreadable matter has no state, so this filter leaves it out.
            query.push("JOIN matters n INDEXED BY matters_by_state ON n.path = f.path WHERE n.state = ");
            query.push_bind(state.as_str())
        }
    };
    let ordered = if filter.state.is_some() { "n" } else { "f" };
    if let Some(after) = after {
        query.push(format_args!(" AND {ordered}.path > ")).push_bind(after.to_owned());
    }
    if let Some(words) = filter.text.as_deref().and_then(match_expression) {
        let matter_places = place_range(RecordKind::Matter, None);
        query.push(concat!(
            " AND f.path IN (SELECT d.path FROM words w CROSS JOIN documents d ON ",
            join_document!("w.rowid")
        ));
        query.push(" WHERE words MATCH ").push_bind(words).push(" AND w.rowid BETWEEN ");
        query.push_bind(*matter_places.start()).push(" AND ").push_bind(*matter_places.end()).push(")");
    }
    query.push(format_args!(" ORDER BY {ordered}.path LIMIT ")).push_bind(rows_to_read(limit)).push(CARDS);
    query
}
