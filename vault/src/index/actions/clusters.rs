//! Actions of one source and one class, counted together, so that a page can offer to handle them at once.
//!
//! Each action is in one cluster: that of the source that spoke for it and weighed most. What is then done to each of
//! them is decided again from its record; nothing here changes anything. A proposal that newer words leave unclear, or
//! about whose record a human is asked, is in none.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::actions::list::{ActionSubset, UNDOABLE, waits};
use crate::index::read::questions::is_open;
use crate::index::signals::doubt::leaves_unclear;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, QueryBuilder, Sqlite};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;

/// Most actions that a cluster names, the newest.
pub const MAX_CLUSTER_IDS: u32 = 200;
/// Most clusters, those with the most actions.
const MAX_CLUSTERS: u32 = 100;

/// Actions that may be handled together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionCluster {
    /// The name by which trust goes.
    pub source: String,
    /// As the newest of the records names it. Untrusted.
    pub name: String,
    /// `None` where no record says what is changed.
    pub class: Option<MutationClass>,
    /// All of them, also beyond `ids`.
    pub count: u64,
    pub newest_at: DateTime<Utc>,
    pub oldest_at: DateTime<Utc>,
    /// The newest first, at most [`MAX_CLUSTER_IDS`].
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

/// Of each action its source, then of each source and class the newest first.
const EACH: &str = "WITH each AS MATERIALIZED (SELECT a.path, a.id, a.at, a.class, (
        SELECT s.source FROM action_sources s WHERE s.action = a.path AND s.speaks = 1
        ORDER BY s.contribution DESC, s.source LIMIT 1) AS source
    FROM actions a INDEXED BY ";
/// Newer than all that the action `a` cites, and not cited by it; or a question about its record.
const UNCLEAR: &str = concat!(
    " AND NOT EXISTS (SELECT 1 FROM action_evidence e CROSS JOIN signals s ON s.path = e.ref AND s.target = a.target
            CROSS JOIN signals o INDEXED BY signals_by_target ON o.target = a.target AND o.created >= s.created
        WHERE e.action = a.path AND o.path <> s.path AND ",
    leaves_unclear!(),
    " AND NOT EXISTS (SELECT 1 FROM action_evidence c WHERE c.ref = o.path AND c.action = a.path)
            AND o.created >= (SELECT MAX(x.created) FROM action_evidence c JOIN signals x ON x.path = c.ref
                WHERE c.action = a.path))
        AND NOT EXISTS (SELECT 1 FROM actions p INDEXED BY actions_that_ask_by_target
            WHERE p.target = a.target AND p.asks = 1 AND ",
    is_open!(),
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

/// An action that still waits.
const WAITING: &str = concat!("SELECT 1 FROM actions a WHERE a.path = ?1 AND ", waits!());

impl Index {
    /// Whether a proposal that still waits is in no cluster because newer words leave it unclear, or because a human is asked
    /// about its record.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_unclear(&self, proposal: &RecordPath) -> Result<bool, IndexError> {
        let sql = format!("SELECT EXISTS ({WAITING}) AND NOT EXISTS ({WAITING}{UNCLEAR})");
        sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(proposal.as_str())
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))
    }

    /// Actions that wait for an answer, by source and class, where there are at least so many; the largest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_pending_clusters(&self, min: u32) -> Result<Vec<ActionCluster>, IndexError> {
        self.list_clusters(ActionSubset::Waiting, None, min).await
    }

    /// Live changes since a moment that nobody has taken back, by source and class, where there are at least so many;
    /// the largest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_undoable_clusters(
        &self,
        since: DateTime<Utc>,
        min: u32,
    ) -> Result<Vec<ActionCluster>, IndexError> {
        self.list_clusters(ActionSubset::Undoable, Some(since), min).await
    }

    async fn list_clusters(
        &self,
        only: ActionSubset,
        since: Option<DateTime<Utc>>,
        min: u32,
    ) -> Result<Vec<ActionCluster>, IndexError> {
        let mut query = cluster_query(only, since, min);
        let rows: Vec<ClusterColumns> =
            query.build_query_as().fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let cluster = |row: ClusterColumns| {
            Ok(ActionCluster {
                source: row.source,
                name: row.name,
                class: row.class.map(|class| self.parse_enum(&class)).transpose()?,
                count: row.count.cast_unsigned(),
                newest_at: from_micros(row.newest).unwrap_or_default(),
                oldest_at: from_micros(row.oldest).unwrap_or_default(),
                ids: serde_json::from_str(&row.ids).map_err(|_| self.unknown_value_error(&row.ids))?,
            })
        };
        rows.into_iter().map(cluster).collect()
    }
}

pub(crate) fn cluster_query(only: ActionSubset, since: Option<DateTime<Utc>>, min: u32) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new(EACH);
    match only {
        ActionSubset::All => query.push("actions_by_time WHERE a.kind = 'steward-action'"),
        ActionSubset::Waiting => query.push(concat!("actions_that_wait WHERE ", waits!())).push(UNCLEAR),
        ActionSubset::Undoable => query.push(format_args!("actions_that_live WHERE a.landing = 'live' AND {UNDOABLE}")),
    };
    if let Some(since) = since {
        query.push(" AND a.at >= ").push_bind(to_micros(since));
    }
    query.push(CLUSTERS).push_bind(MAX_CLUSTER_IDS).push(GROUPS).push_bind(min);
    query.push(" ORDER BY count DESC, source, class LIMIT ").push_bind(MAX_CLUSTERS).push(") g");
    query.push(" ORDER BY g.count DESC, g.source, g.class");
    query
}
