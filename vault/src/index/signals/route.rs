//! The router's list of signals, and the facts about each that only the tables have.
//!
//! The router itself reads the files of a signal and its target. The tables have the rest: which actions cited the
//! signal, when it was first seen, and how far its source and the concerned matters are trusted. Each signal that the
//! router has tried is stored with the moment of its next try, so that waiting signals delay no others. Only
//! [`crate::action::writer`] writes a signal's status.

use crate::index::IndexError;
use crate::index::SignalsView;
use crate::index::gates::matter_policy::concerned_matters;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use sqlx::FromRow;
use std::collections::BTreeMap;
use steward_domain::action::plan::ActionId;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::route::{SignalClaim, action_id};
use steward_domain::signals::signal::source_key;

/// The router's query about a signal.
#[derive(Clone, Debug)]
pub struct RouteFactsQuery<'a> {
    pub signal: &'a RecordPath,
    pub source: &'a str,
    pub target: &'a RecordPath,
    /// The matter that a task is to move to.
    pub new_parent: Option<&'a RecordPath>,
    /// Whether the mode permits changes. If so, a signal whose only actions are `shadow` is free again.
    pub acts: bool,
    /// The ceiling of sources for which no person set one.
    pub default_ceiling: Ceiling,
}

/// The facts about a signal from the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteFacts {
    /// Not before the first scan ended: a signal that was in the vault before is new to its steward, too.
    pub first_seen: DateTime<Utc>,
    /// The steward has checked the target since the signal was first seen.
    pub weighed: bool,
    /// That check also had signals of other messages.
    pub weighed_with_others: bool,
    /// Signals of another source wait for the steward too.
    pub other_sources_wait: bool,
    pub claim: Option<SignalClaim>,
    pub observations: u32,
    /// The lowest ceiling that a person set for the source and the concerned matters; `ask` if the target's matter is
    /// missing or cannot be read.
    pub ceiling: Ceiling,
    /// The policies of the concerned matters that have one.
    pub policies: Vec<MatterPolicy>,
    /// The state of the target's matter; `None` if it is missing or cannot be read.
    pub matter: Option<RecordState>,
    /// The state of the matter to move to.
    pub new_parent: Option<RecordState>,
    /// What the target is; `None` if it is missing, or if it cannot be read.
    pub kind: Option<RecordKind>,
    /// The matter that a task's link names.
    pub parent: Option<RecordPath>,
    /// Why the target cannot be read.
    pub problem: Option<String>,
    /// Another task has the same `id`, so the two cannot be distinguished.
    pub has_twin: bool,
    /// The actions on the target when these facts were read.
    pub target_actions: i64,
}

#[derive(FromRow)]
struct RouteFactsColumns {
    first_seen: Option<i64>,
    last_check_at: Option<i64>,
    observations: i64,
    source_ceiling: Option<i64>,
    matter: Option<String>,
    matter_ceiling: Option<String>,
    task_ceiling: Option<String>,
    parent: Option<String>,
    parent_ceiling: Option<String>,
    kind: Option<String>,
    matter_path: Option<String>,
    problem: Option<String>,
    twin: bool,
    beside_others: bool,
    others_wait: bool,
    target_actions: i64,
}

/// Oldest first, round-robin over the sources, so that a flood from one delays no other. A signal that was ambiguous is
/// listed again once a person has named its target.
const TO_ROUTE: &str = "
    SELECT path FROM (
        SELECT s.path, f.at, ROW_NUMBER() OVER (PARTITION BY s.source ORDER BY f.at, s.path) AS turn
        FROM (SELECT signal FROM routes WHERE retry_at <= ?1
              UNION SELECT signal FROM routes WHERE acts = 0 AND ?2) r
        CROSS JOIN signals_to_route s ON s.path = r.signal CROSS JOIN first_seen f ON f.signal = s.path)
    ORDER BY turn, at, path LIMIT ?3";

const FACTS: &str = "
    SELECT (SELECT COUNT(*) FROM actions WHERE target = ?2) AS target_actions,
        (SELECT MAX(at, COALESCE((SELECT value FROM meta WHERE key = 'filled_at'), at))
            FROM first_seen WHERE signal = ?1) AS first_seen,
        (SELECT last_check_at FROM task_checks WHERE task = ?2) AS last_check_at,
        COALESCE((SELECT MIN(observations) FROM instincts WHERE source = ?3), 0) AS observations,
        (SELECT MIN(ceiling) FROM instincts WHERE source = ?3) AS source_ceiling,
        m.state AS matter, (SELECT c.ceiling FROM ceilings c WHERE c.path = m.path) AS matter_ceiling,
        (SELECT c.ceiling FROM ceilings c WHERE c.path = t.path) AS task_ceiling,
        p.state AS parent, (SELECT c.ceiling FROM ceilings c WHERE c.path = p.path) AS parent_ceiling,
        CASE WHEN t.path IS NOT NULL THEN 'task' WHEN m.path = a.path THEN 'matter' END AS kind, t.parent AS matter_path,
        (SELECT problem FROM files WHERE path = ?2) AS problem,
        COALESCE(t.id IS NOT NULL AND EXISTS (SELECT 1 FROM tasks d WHERE d.id = t.id AND d.path <> t.path), 0) AS twin,
        EXISTS (SELECT 1 FROM signals s JOIN first_seen f ON f.signal = s.path
            JOIN signals o ON o.target = ?2 AND o.path <> s.path AND o.effect <> 'none'
                AND (o.source_event IS NULL OR o.source_event IS NOT s.source_event)
            JOIN first_seen g ON g.signal = o.path JOIN task_checks c ON c.task = ?2
            WHERE s.path = ?1 AND g.at <= c.last_check_at AND g.at > COALESCE((
                SELECT MAX(a.at) FROM actions a WHERE a.target = ?2 AND a.kind = 'steward-action' AND a.judged = 1
                AND a.disposition <> 'shadow' AND a.at < f.at), 0)) AS beside_others,
        EXISTS (SELECT 1 FROM signals s
            JOIN signals o ON o.target = ?2 AND o.path <> s.path AND o.effect <> 'none' AND o.source <> s.source
                AND (o.source_event IS NULL OR o.source_event IS NOT s.source_event)
            JOIN first_seen g ON g.signal = o.path LEFT JOIN task_checks c ON c.task = ?2
            WHERE s.path = ?1 AND g.at > COALESCE(c.last_check_at, 0)) AS others_wait
    FROM (SELECT ?2 AS path) a LEFT JOIN tasks t ON t.path = a.path
    LEFT JOIN matters m ON m.path = COALESCE(t.parent, a.path) LEFT JOIN matters p ON p.path = ?4";

/// The ceilings of the matters that a change concerns; NULL for a matter that is missing or cannot be read.
const MATTER_CEILINGS: &str = concat!(
    "SELECT (SELECT a.ceiling FROM ceilings a WHERE a.path = m.path) FROM ",
    concerned_matters!(),
    " LEFT JOIN matters m ON m.path = c.path UNION ALL SELECT ceiling FROM ceilings WHERE path = ?1 AND ?1 IN (SELECT path FROM tasks)"
);

/// The `retry_at` of a signal that is off the router's list.
const NEVER: i64 = i64::MAX;

/// The newest action that cites the signal for its target, or is the signal's own action. Once the mode permits
/// changes, a `shadow` action claims nothing, unless a person resolved it or acted on it by hand.
const CLAIM: &str = "
    SELECT a.id, a.disposition, a.decision FROM actions a WHERE a.kind = 'steward-action' AND (a.id = ?3 OR (a.target = ?2
        AND EXISTS (SELECT 1 FROM action_evidence e WHERE e.action = a.path AND e.ref = ?1)))
    AND a.ended = 0 AND NOT (?4 AND a.disposition = 'shadow' AND a.id <> ?3 AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id))
    ORDER BY a.seq DESC LIMIT 1";

/// Takes the first free millisecond from now on, so that two actions on one record never get their names from the same
/// moment. Moments of a clock that once ran ahead stay taken and move nothing.
const BEGIN_ROUTE: &str = "
    INSERT INTO routes (signal, acts, at, retry_at, met_at)
    VALUES (?1, ?2, (WITH RECURSIVE free (at) AS (SELECT ?3 UNION ALL
            SELECT free.at + 1000 FROM free
            WHERE EXISTS (SELECT 1 FROM routes r WHERE r.at > free.at - 1000 AND r.at < free.at + 1000))
        SELECT MAX(at) FROM free), ?3, ?3)
    ON CONFLICT (signal) DO UPDATE SET acts = excluded.acts,
        at = CASE WHEN at IS NULL OR acts <> excluded.acts THEN excluded.at ELSE at END
    RETURNING at";

/// Defers a signal. The reserved moment stays only if the action was filed. If an action on the target was filed since
/// the facts were read, the signal is due at once: that action did not find it deferred and could not make it due.
const DEFER: &str = "
    INSERT INTO routes (signal, acts, at, retry_at, met_at, reason, question) VALUES (?1, ?2, NULL,
        CASE WHEN ?9 <> (SELECT COUNT(*) FROM actions WHERE target = ?8) THEN 0 ELSE ?3 END, ?4, ?6, ?7)
    ON CONFLICT (signal) DO UPDATE SET acts = excluded.acts, retry_at = excluded.retry_at, met_at = excluded.met_at,
        at = CASE WHEN ?5 THEN at END, reason = excluded.reason, question = excluded.question";

/// Takes a signal off the list that needs no routing any more, until its file has new content.
const TAKE_OFF_LIST: &str = "
    UPDATE routes SET acts = 1, retry_at = ?2
    WHERE signal = ?1 AND NOT EXISTS (SELECT 1 FROM signals_to_route WHERE path = ?1)";

impl SignalsView<'_> {
    /// Lists signals that nothing has acted on and that are due, at most `limit`.
    ///
    /// `acts` says whether the mode permits changes now. If so, signals are due again that were tried when it did not.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_signals_to_route(
        self,
        limit: usize,
        now: DateTime<Utc>,
        acts: bool,
    ) -> Result<Vec<RecordPath>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(TO_ROUTE)
            .bind(to_micros(now))
            .bind(acts)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        paths.iter().map(|p| self.index.parse_path(p)).collect()
    }

    /// Whether the router has to route one of these signals.
    pub(crate) async fn has_signal_to_route(self, signals: &[String]) -> Result<bool, IndexError> {
        if signals.is_empty() {
            return Ok(false);
        }
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM json_each(?1) j JOIN signals_to_route s ON s.path = j.value)")
            .bind(to_json(&signals))
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))
    }

    /// Reads the facts about a signal; `None` if it is not in the tables.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_route_facts(self, query: &RouteFactsQuery<'_>) -> Result<Option<RouteFacts>, IndexError> {
        let row: RouteFactsColumns = sqlx::query_as(FACTS)
            .bind(query.signal.as_str())
            .bind(query.target.as_str())
            .bind(source_key(query.source))
            .bind(query.new_parent.map(RecordPath::as_str))
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let Some(seen) = row.first_seen else { return Ok(None) };
        let claim: Option<(String, String, String)> = sqlx::query_as(CLAIM)
            .bind(query.signal.as_str())
            .bind(query.target.as_str())
            .bind(action_id(query.signal).as_str())
            .bind(query.acts)
            .fetch_optional(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let claim = match claim {
            Some((id, disposition, decision)) => Some(SignalClaim {
                id: self.index.parse_enum(&id)?,
                disposition: self.index.parse_enum(&disposition)?,
                decision: self.index.parse_enum(&decision)?,
            }),
            None => None,
        };
        let matters = [row.matter_ceiling.as_deref(), row.task_ceiling.as_deref(), row.parent_ceiling.as_deref()];
        let mut ceiling = decode_ceiling(row.source_ceiling, query.default_ceiling);
        for set in matters.into_iter().flatten() {
            ceiling = ceiling.min(self.index.parse_enum(set)?);
        }
        if row.matter.is_none() {
            ceiling = Ceiling::Ask;
        }
        let notes = self.index.gates().list_matter_policies(query.target, query.new_parent).await?;
        Ok(Some(RouteFacts {
            first_seen: from_micros(seen).unwrap_or_default(),
            weighed: row.last_check_at.is_some_and(|at| at >= seen),
            weighed_with_others: row.beside_others,
            other_sources_wait: row.others_wait,
            claim,
            observations: u32::try_from(row.observations).unwrap_or(u32::MAX),
            ceiling,
            matter: row.matter.map(|s| self.index.parse_enum(&s)).transpose()?,
            new_parent: row.parent.map(|s| self.index.parse_enum(&s)).transpose()?,
            kind: row.kind.map(|kind| self.index.parse_enum(&kind)).transpose()?,
            parent: row.matter_path.map(|path| self.index.parse_path(&path)).transpose()?,
            problem: row.problem,
            has_twin: row.twin,
            target_actions: row.target_actions,
            policies: notes.into_iter().map(|(_, policy)| policy).collect(),
        }))
    }

    /// Reserves the moment that gives a signal's action its name. It stays the same for every try until the signal is
    /// deferred.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn begin_route(
        self,
        signal: &RecordPath,
        acts: bool,
        now: DateTime<Utc>,
    ) -> Result<DateTime<Utc>, IndexError> {
        let at: i64 = sqlx::query_scalar(BEGIN_ROUTE)
            .bind(signal.as_str())
            .bind(acts)
            .bind(to_micros(now))
            .fetch_one(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(from_micros(at).unwrap_or(now))
    }

    /// Defers a signal until a moment.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_route_deferral(self, signal: &RecordPath, deferral: &RouteDeferral) -> Result<(), IndexError> {
        sqlx::query(DEFER)
            .bind(signal.as_str())
            .bind(deferral.acts)
            .bind(to_micros(deferral.until))
            .bind(to_micros(deferral.now))
            .bind(deferral.filed)
            .bind(&deferral.reason)
            .bind(deferral.question.as_ref().map(ActionId::as_str))
            .bind(deferral.basis.as_ref().map(|basis| basis.target.as_str()))
            .bind(deferral.basis.as_ref().map(|basis| basis.actions))
            .execute(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let taken_off =
            sqlx::query(TAKE_OFF_LIST).bind(signal.as_str()).bind(NEVER).execute(&self.index.store.writer).await;
        taken_off.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Lists the router's last reason for each of these signals. A signal that the router has not tried since its
    /// content changed has none.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_route_reasons(self, signals: &[RecordPath]) -> Result<BTreeMap<RecordPath, String>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as(
            "SELECT r.signal, r.reason FROM json_each(?1) j CROSS JOIN routes r ON r.signal = j.value
             WHERE r.reason IS NOT NULL",
        )
        .bind(to_json(&signals))
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|(signal, reason)| Ok((self.index.parse_path(&signal)?, reason))).collect()
    }

    /// The lowest ceiling that a person has set for the sources of an action and the concerned matters; `ask` if one of
    /// those matters is missing or cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn lowest_configured_ceiling(
        self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
        sources: &[&str],
        default_ceiling: Ceiling,
    ) -> Result<Ceiling, IndexError> {
        let matters: Vec<Option<String>> = sqlx::query_scalar(MATTER_CEILINGS)
            .bind(target.as_str())
            .bind(new_parent.map(RecordPath::as_str))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut lowest = Ceiling::Act;
        for set in matters {
            lowest = lowest.min(set.map_or(Ok(Ceiling::Ask), |set| self.index.parse_enum(&set))?);
        }
        for source in sources {
            let set: Option<i64> = sqlx::query_scalar("SELECT MIN(ceiling) FROM instincts WHERE source = ?1")
                .bind(source_key(source))
                .fetch_one(&self.index.store.writer)
                .await
                .map_err(|e| self.index.sql_error(e))?;
            lowest = lowest.min(decode_ceiling(set, default_ceiling));
        }
        Ok(lowest)
    }
}

/// The deferral of a signal by the router.
#[derive(Clone, Debug)]
pub struct RouteDeferral {
    /// Whether the mode permitted changes.
    pub acts: bool,
    pub until: DateTime<Utc>,
    pub now: DateTime<Utc>,
    /// Whether its action has its audit record.
    pub filed: bool,
    /// The reason or the outcome, on one line.
    pub reason: String,
    /// The question that withholds it.
    pub question: Option<ActionId>,
    /// What the deferral rests on; `None` if no later action can change it.
    pub basis: Option<DeferralBasis>,
}

/// The actions that the router knew when it deferred a signal.
#[derive(Clone, Debug)]
pub struct DeferralBasis {
    pub target: RecordPath,
    /// As in [`RouteFacts::target_actions`].
    pub actions: i64,
}

/// Decodes a ceiling from the tables: 0 ask, 1 confirm, 2 act.
pub(crate) fn decode_ceiling(set: Option<i64>, default_ceiling: Ceiling) -> Ceiling {
    match set {
        None => default_ceiling,
        Some(2) => Ceiling::Act,
        Some(1) => Ceiling::Confirm,
        Some(_) => Ceiling::Ask,
    }
}
