//! Which signals the router takes up, and what it needs to know of them beside their files.
//!
//! The files of a signal and its target are read by whoever routes; here is what only the tables know:
//! who has cited the signal before, when it was first seen, how far its source and the matters concerned
//! are trusted. What the router has met is kept with the moment at which it comes back to it, so that
//! what must wait holds up nothing. Only [`crate::action::writer`] writes a signal's standing.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::gates::matter_policy::concerned;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use std::collections::BTreeMap;
use steward_domain::action::plan::ActionId;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::route::{SignalClaim, action_id};
use steward_domain::signals::signal::source_key;

/// What the router asks about a signal.
#[derive(Clone, Debug)]
pub struct RouteFactsQuery<'a> {
    pub signal: &'a RecordPath,
    pub source: &'a str,
    pub target: &'a RecordPath,
    /// The matter that a task is to move to.
    pub new_parent: Option<&'a RecordPath>,
    /// Changes may happen: what led to no more than a shadow is free again.
    pub acts: bool,
    /// The ceiling of sources for which a human set none.
    pub default_ceiling: Ceiling,
}

/// What the tables know of a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFacts {
    /// Not before the index was filled: what was in the vault before us is new to its steward, too.
    pub first_seen: DateTime<Utc>,
    /// Its steward has weighed the target since the signal was first seen.
    pub weighed: bool,
    /// What it weighed then were words of other messages as well.
    pub beside_others: bool,
    /// Words of another source wait for it as well.
    pub others_wait: bool,
    pub claim: Option<SignalClaim>,
    pub observations: u32,
    /// The lowest that a human set for the source and the matters concerned; `ask` where the target's matter is missing or
    /// cannot be read.
    pub ceiling: Ceiling,
    /// What the notes of the matters concerned allow, of those that say anything.
    pub notes: Vec<MatterPolicy>,
    /// The state of the target's matter; `None` where that is missing or cannot be read.
    pub matter: Option<RecordState>,
    /// The state of the matter to move to.
    pub new_parent: Option<RecordState>,
    /// Another task has the same `id`, so that the two cannot be told apart.
    pub has_twin: bool,
}

#[derive(FromRow)]
struct RouteFactsColumns {
    first_seen: Option<i64>,
    last_check_at: Option<i64>,
    observations: i64,
    source_ceiling: Option<i64>,
    matter: Option<String>,
    matter_ceiling: Option<String>,
    parent: Option<String>,
    parent_ceiling: Option<String>,
    twin: bool,
    beside_others: bool,
    others_wait: bool,
}

/// The oldest first, but every source in turn: a flood of one delays no other. What a human has told
/// apart since it was found ambiguous is taken up again.
const TO_ROUTE: &str = "
    SELECT path FROM (
        SELECT s.path, f.at, ROW_NUMBER() OVER (PARTITION BY s.source ORDER BY f.at, s.path) AS turn
        FROM (SELECT signal FROM routes WHERE retry_at <= ?1
              UNION SELECT signal FROM routes WHERE acts = 0 AND ?2) r
        CROSS JOIN signals_to_route s ON s.path = r.signal CROSS JOIN first_seen f ON f.signal = s.path)
    ORDER BY turn, at, path LIMIT ?3";

const FACTS: &str = "
    SELECT (SELECT MAX(at, COALESCE((SELECT value FROM meta WHERE key = 'filled_at'), at))
            FROM first_seen WHERE signal = ?1) AS first_seen,
        (SELECT last_check_at FROM task_checks WHERE task = ?2) AS last_check_at,
        COALESCE((SELECT MIN(observations) FROM instincts WHERE source = ?3), 0) AS observations,
        (SELECT MIN(ceiling) FROM instincts WHERE source = ?3) AS source_ceiling,
        m.state AS matter, m.ceiling AS matter_ceiling, p.state AS parent, p.ceiling AS parent_ceiling,
        COALESCE(t.id IS NOT NULL AND EXISTS (SELECT 1 FROM tasks d WHERE d.id = t.id AND d.path <> t.path), 0) AS twin,
        EXISTS (SELECT 1 FROM signals s JOIN first_seen f ON f.signal = s.path
            JOIN signals o ON o.target = ?2 AND o.path <> s.path AND o.effect <> 'none'
                AND (o.source_event IS NULL OR o.source_event IS NOT s.source_event)
            JOIN first_seen g ON g.signal = o.path JOIN task_checks c ON c.task = ?2
            WHERE s.path = ?1 AND g.at <= c.last_check_at AND g.at > COALESCE((
                SELECT MAX(a.at) FROM actions a WHERE a.target = ?2 AND a.kind = 'steward-action' AND a.judged = 1
                AND a.landing <> 'shadow' AND a.at < f.at), 0)) AS beside_others,
        EXISTS (SELECT 1 FROM signals s
            JOIN signals o ON o.target = ?2 AND o.path <> s.path AND o.effect <> 'none' AND o.source <> s.source
                AND (o.source_event IS NULL OR o.source_event IS NOT s.source_event)
            JOIN first_seen g ON g.signal = o.path LEFT JOIN task_checks c ON c.task = ?2
            WHERE s.path = ?1 AND g.at > COALESCE(c.last_check_at, 0)) AS others_wait
    FROM (SELECT ?2 AS path) a LEFT JOIN tasks t ON t.path = a.path
    LEFT JOIN matters m ON m.path = COALESCE(t.parent, a.path) LEFT JOIN matters p ON p.path = ?4";

/// What humans set for the matters of a change; NULL for one that is missing or cannot be read.
const MATTER_CEILINGS: &str =
    concat!("SELECT m.ceiling FROM ", concerned!(), " LEFT JOIN matters m ON m.path = c.path");

/// Off the router's list.
const NEVER: i64 = i64::MAX;

/// The newest record that cites the signal for its target, or is the signal's own action. What was only said in
/// shadow claims nothing once changes may happen, unless a human has answered it by what they did.
const CLAIM: &str = "
    SELECT a.id, a.landing, a.decision FROM actions a WHERE a.kind = 'steward-action' AND (a.id = ?3 OR (a.target = ?2
        AND EXISTS (SELECT 1 FROM action_evidence e WHERE e.action = a.path AND e.ref = ?1)))
    AND NOT (?4 AND a.landing = 'shadow' AND a.id <> ?3 AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id))
    ORDER BY a.seq DESC LIMIT 1";

/// Two actions on one record are never named after the same moment: the first free millisecond from now on. Moments of a
/// clock that once ran ahead stay taken and move nothing.
const BEGIN: &str = "
    INSERT INTO routes (signal, acts, at, retry_at, met_at)
    VALUES (?1, ?2, (WITH RECURSIVE free (at) AS (SELECT ?3 UNION ALL
            SELECT free.at + 1000 FROM free
            WHERE EXISTS (SELECT 1 FROM routes r WHERE r.at > free.at - 1000 AND r.at < free.at + 1000))
        SELECT MAX(at) FROM free), ?3, ?3)
    ON CONFLICT (signal) DO UPDATE SET acts = excluded.acts,
        at = CASE WHEN at IS NULL OR acts <> excluded.acts THEN excluded.at ELSE at END
    RETURNING at";

const LEFT: &str = "
    INSERT INTO routes (signal, acts, at, retry_at, met_at, reason, question) VALUES (?1, ?2, NULL, ?3, ?4, ?6, ?7)
    ON CONFLICT (signal) DO UPDATE SET acts = excluded.acts, retry_at = excluded.retry_at, met_at = excluded.met_at,
        at = CASE WHEN ?5 THEN at END, reason = excluded.reason, question = excluded.question";

/// What has been settled is off the list, until its file says something new.
const SETTLED: &str = "
    UPDATE routes SET acts = 1, retry_at = ?2
    WHERE signal = ?1 AND NOT EXISTS (SELECT 1 FROM signals_to_route WHERE path = ?1)";

impl Index {
    /// Signals that nobody has acted upon and whose turn has come, at most `limit`. `acts` says whether
    /// changes may happen now: what was met before they could comes again.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_signals_to_route(
        &self,
        limit: usize,
        now: DateTime<Utc>,
        acts: bool,
    ) -> Result<Vec<RecordPath>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(TO_ROUTE)
            .bind(to_micros(now))
            .bind(acts)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        paths.iter().map(|p| self.parse_path(p)).collect()
    }

    /// Whether one of these signals is the router's business.
    pub(crate) async fn has_signal_to_route(&self, signals: &[String]) -> Result<bool, IndexError> {
        if signals.is_empty() {
            return Ok(false);
        }
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM json_each(?1) j JOIN signals_to_route s ON s.path = j.value)")
            .bind(to_json(&signals))
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))
    }

    /// What the tables know of a signal; `None` when it is not in them.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_route_facts(&self, ask: &RouteFactsQuery<'_>) -> Result<Option<RouteFacts>, IndexError> {
        let row: RouteFactsColumns = sqlx::query_as(FACTS)
            .bind(ask.signal.as_str())
            .bind(ask.target.as_str())
            .bind(source_key(ask.source))
            .bind(ask.new_parent.map(RecordPath::as_str))
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let Some(seen) = row.first_seen else { return Ok(None) };
        let claim: Option<(String, String, String)> = sqlx::query_as(CLAIM)
            .bind(ask.signal.as_str())
            .bind(ask.target.as_str())
            .bind(action_id(ask.signal).as_str())
            .bind(ask.acts)
            .fetch_optional(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let claim = match claim {
            Some((id, landing, decision)) => Some(SignalClaim {
                id: self.parse_enum(&id)?,
                landing: self.parse_enum(&landing)?,
                decision: self.parse_enum(&decision)?,
            }),
            None => None,
        };
        let matters = [row.matter_ceiling.as_deref(), row.parent_ceiling.as_deref()];
        let mut ceiling = decode_ceiling(row.source_ceiling, ask.default_ceiling);
        for set in matters.into_iter().flatten() {
            ceiling = ceiling.min(self.parse_enum(set)?);
        }
        if row.matter.is_none() {
            ceiling = Ceiling::Ask;
        }
        let notes = self.list_matter_policies(ask.target, ask.new_parent).await?;
        Ok(Some(RouteFacts {
            first_seen: from_micros(seen).unwrap_or_default(),
            weighed: row.last_check_at.is_some_and(|at| at >= seen),
            beside_others: row.beside_others,
            others_wait: row.others_wait,
            claim,
            observations: u32::try_from(row.observations).unwrap_or(u32::MAX),
            ceiling,
            matter: row.matter.map(|s| self.parse_enum(&s)).transpose()?,
            new_parent: row.parent.map(|s| self.parse_enum(&s)).transpose()?,
            has_twin: row.twin,
            notes: notes.into_iter().map(|(_, policy)| policy).collect(),
        }))
    }

    /// The moment after which a signal's action is named: the same for every try, until it is left.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn begin_route(
        &self,
        signal: &RecordPath,
        acts: bool,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, IndexError> {
        let at: i64 = sqlx::query_scalar(BEGIN)
            .bind(signal.as_str())
            .bind(acts)
            .bind(to_micros(now))
            .fetch_one(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        Ok(from_micros(at).unwrap_or(now))
    }

    /// Leaves a signal alone until a moment; `filed` says that its action has its record.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_route_deferral(&self, signal: &RecordPath, left: &RouteDeferral) -> Result<(), IndexError> {
        sqlx::query(LEFT)
            .bind(signal.as_str())
            .bind(left.acts)
            .bind(to_micros(left.until))
            .bind(to_micros(left.now))
            .bind(left.filed)
            .bind(&left.reason)
            .bind(left.question.as_ref().map(ActionId::as_str))
            .execute(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let settled = sqlx::query(SETTLED).bind(signal.as_str()).bind(NEVER).execute(&self.store.writer).await;
        settled.map(drop).map_err(|e| self.sql_error(e))
    }

    /// What the router last made of these signals, in words; of those that it has not met since they said something new
    /// there is nothing.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_route_reasons(&self, signals: &[RecordPath]) -> Result<BTreeMap<RecordPath, String>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT r.signal, r.reason FROM json_each(?1) j CROSS JOIN routes r ON r.signal = j.value
             WHERE r.reason IS NOT NULL",
        )
        .bind(to_json(&signals))
        .fetch_all(&self.store.reader)
        .await
        .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|(signal, reason)| Ok((self.parse_path(&signal)?, reason))).collect()
    }

    /// The lowest ceiling that a human has set by now for the sources of an action and the matters concerned; `ask` where
    /// one of those is missing or cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn lowest_configured_ceiling(
        &self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
        sources: &[&str],
        default_ceiling: Ceiling,
    ) -> Result<Ceiling, IndexError> {
        let matters: Vec<Option<String>> = sqlx::query_scalar(MATTER_CEILINGS)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let mut lowest = Ceiling::Act;
        for set in matters {
            lowest = lowest.min(set.map_or(Ok(Ceiling::Ask), |set| self.parse_enum(&set))?);
        }
        for source in sources {
            let set: Option<i64> = sqlx::query_scalar("SELECT MIN(ceiling) FROM instincts WHERE source = ?1")
                .bind(source_key(source))
                .fetch_one(&self.store.writer)
                .await
                .map_err(|e| self.sql_error(e))?;
            lowest = lowest.min(decode_ceiling(set, default_ceiling));
        }
        Ok(lowest)
    }
}

/// How a signal is left.
#[derive(Clone, Debug)]
pub struct RouteDeferral {
    pub acts: bool,
    pub until: DateTime<Utc>,
    pub now: DateTime<Utc>,
    /// Its action has its record.
    pub filed: bool,
    /// What holds it, or what became of it, on one line.
    pub reason: String,
    /// The question on which it is listed.
    pub question: Option<ActionId>,
}

/// A ceiling as the tables hold it: 0 ask, 1 confirm, 2 act.
pub(crate) fn decode_ceiling(set: Option<i64>, default_ceiling: Ceiling) -> Ceiling {
    match set {
        None => default_ceiling,
        Some(2) => Ceiling::Act,
        Some(1) => Ceiling::Confirm,
        Some(_) => Ceiling::Ask,
    }
}
