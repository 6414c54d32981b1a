//! Clusters of actions by source and class, so that a page can offer to resolve them as one batch.
//!
//! Each action belongs to one cluster: that of its supporting source with the largest contribution. A resolution
//! reads each action's own record again; nothing here changes anything. A proposal is in no cluster if newer signals
//! make it unclear, or if a question about its record is open.

use crate::index::ActionsView;
use crate::index::IndexError;
use crate::index::actions::list::{ActionSubset, UNDOABLE};
use crate::index::actions::waiting::{is_settled, is_shown};
use crate::index::read::questions::is_open_question;
use crate::index::signals::doubt::leaves_unclear;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder, Sqlite};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;

/// The most actions that a cluster lists, newest first.
pub const MAX_CLUSTER_IDS: u32 = 200;
/// The most clusters in a list; those with the most actions stay.
const MAX_CLUSTERS: u32 = 100;

/// Actions that may be resolved as one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionCluster {
    /// The source's key.
    pub source: String,
    /// The source's name in the newest of the records. Untrusted.
    pub name: String,
    /// `None` if the records name no class.
    pub class: Option<MutationClass>,
    /// The number of all actions, also of those beyond `ids`.
    pub count: u64,
    pub newest_at: DateTime<Utc>,
    pub oldest_at: DateTime<Utc>,
    /// Newest first, at most [`MAX_CLUSTER_IDS`].
    pub ids: Vec<ActionId>,
}

#[derive(FromRow)]
struct ClusterColumns {
    source: String,
    name: String,
    class: Option<String>,
    count: i64,
    newest: i64,
    oldest: i64,
    ids: String,
}

/// First the source of each action; `CLUSTERS` then groups by source and class, newest first.
const ACTIONS_WITH_SOURCE: &str = "WITH each AS MATERIALIZED (SELECT a.path, a.id, a.at, a.class, (
        SELECT s.source FROM action_sources s WHERE s.action = a.path AND s.supports = 1
        ORDER BY s.contribution DESC, s.source LIMIT 1) AS source
    FROM actions a INDEXED BY ";
/// Excludes the action `a` if a signal that it does not cite is newer than all cited ones and makes it unclear, or if a
/// question about its record is open.
const NOT_UNCLEAR: &str = concat!(
    " AND NOT EXISTS (SELECT 1 FROM action_evidence e CROSS JOIN signals s ON s.path = e.ref AND s.target = a.target
            CROSS JOIN signals o INDEXED BY signals_by_target ON o.target = a.target AND o.created >= s.created
        WHERE e.action = a.path AND o.path <> s.path AND ",
    leaves_unclear!(),
    " AND NOT EXISTS (SELECT 1 FROM action_evidence c WHERE c.ref = o.path AND c.action = a.path)
            AND o.created >= (SELECT MAX(x.created) FROM action_evidence c JOIN signals x ON x.path = c.ref
                WHERE c.action = a.path))
        AND NOT EXISTS (SELECT 1 FROM actions p INDEXED BY actions_that_ask_by_target
            WHERE p.target = a.target AND p.asks = 1 AND ",
    is_open_question!(),
    ")"
);
const CLUSTERS: &str = "), turns AS (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY source, class ORDER BY at DESC, path DESC) AS turn
        FROM each WHERE source IS NOT NULL)
    SELECT g.*, COALESCE((SELECT s.name FROM action_sources s WHERE s.action = g.path AND s.source = g.source),
        g.source) AS name
    FROM (SELECT source, class, COUNT(*) AS count, MAX(at) AS newest, MIN(at) AS oldest,
        MAX(CASE WHEN turn = 1 THEN path END) AS path, json_group_array(id ORDER BY turn) FILTER (WHERE turn <= ";
const GROUPS: &str = ") AS ids FROM turns GROUP BY source, class HAVING COUNT(*) >= ";

/// A pending action that still waits.
const WAITING: &str = concat!("SELECT 1 FROM actions a WHERE a.path = ?1 AND a.waits = 1 AND NOT ", is_settled!());

impl ActionsView<'_> {
    /// Whether a proposal that still waits is in no cluster, because newer signals make it unclear or because a
    /// question about its record is open.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_unclear(self, proposal: &RecordPath) -> Result<bool, IndexError> {
        let sql = format!("SELECT EXISTS ({WAITING}) AND NOT EXISTS ({WAITING}{NOT_UNCLEAR})");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(proposal.as_str())
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))
    }

    /// Lists clusters of at least `min` actions that wait for a resolution, the largest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_pending_clusters(self, min: u32, now: DateTime<Utc>) -> Result<Vec<ActionCluster>, IndexError> {
        self.list_clusters(ActionSubset::Waiting(now), None, min).await
    }

    /// Lists clusters of at least `min` live changes since a moment that nobody has reverted, the largest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_undoable_clusters(
        self,
        since: DateTime<Utc>,
        min: u32,
    ) -> Result<Vec<ActionCluster>, IndexError> {
        self.list_clusters(ActionSubset::Undoable, Some(since), min).await
    }

    async fn list_clusters(
        self,
        only: ActionSubset,
        since: Option<DateTime<Utc>>,
        min: u32,
    ) -> Result<Vec<ActionCluster>, IndexError> {
        let mut query = cluster_query(only, since, min);
        let rows: Vec<ClusterColumns> =
            query.build_query_as().fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let decode = |row: ClusterColumns| {
            Ok(ActionCluster {
                source: row.source,
                name: row.name,
                class: row.class.map(|class| self.index.parse_enum(&class)).transpose()?,
                count: row.count.cast_unsigned(),
                newest_at: from_micros(row.newest).unwrap_or_default(),
                oldest_at: from_micros(row.oldest).unwrap_or_default(),
                ids: serde_json::from_str(&row.ids).map_err(|_| self.index.unknown_value_error(&row.ids))?,
            })
        };
        rows.into_iter().map(decode).collect()
    }
}

pub(crate) fn cluster_query(only: ActionSubset, since: Option<DateTime<Utc>>, min: u32) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(ACTIONS_WITH_SOURCE);
    match only {
        ActionSubset::All => query.push("actions_by_time WHERE a.kind = 'steward-action'"),
        ActionSubset::Waiting(now) => {
            query.push(format_args!("actions_that_wait WHERE {}", is_shown(now))).push(NOT_UNCLEAR)
        }
        ActionSubset::Expired(_) | ActionSubset::Snoozed(_) => query.push("actions_that_wait WHERE false"),
        ActionSubset::Undoable => {
            query.push(format_args!("actions_that_live WHERE a.disposition = 'live' AND {UNDOABLE}"))
        }
    };
    if let Some(since) = since {
        query.push(" AND a.at >= ").push_bind(to_micros(since));
    }
    query.push(CLUSTERS).push_bind(MAX_CLUSTER_IDS).push(GROUPS).push_bind(min);
    query.push(" ORDER BY count DESC, source, class LIMIT ").push_bind(MAX_CLUSTERS).push(") g");
    query.push(" ORDER BY g.count DESC, g.source, g.class");
    query
}
