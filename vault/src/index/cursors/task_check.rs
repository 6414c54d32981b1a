//! The candidates of a check: the tasks of a matter, the matter itself, and their fresh signals.
//!
//! A signal is fresh for its task under three conditions. It could change something (`effect`, `status`). Nothing has
//! acted on it: no live action on that task cites it, and no pending one of the router. It was first seen after the
//! last check; its own date does not matter, because a late mail is still new.
//!
//! Where the mode permits changes, a signal is also fresh again if its newest action was `shadow` because of the mode
//! at that time, and no person has resolved that action since. So nothing is lost that was judged before the mode was
//! raised, or for a caller who only wanted a preview. Signals of a demoted source are not judged again at every
//! check.

use super::observe::{ObservationQuery, ObservedMatter};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::signals::route::decode_ceiling;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use sqlx::{FromRow, SqliteConnection};
use std::ops::RangeInclusive;
use steward_domain::action::mutation::Mutation;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::{Ceiling, Mode};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkQuestion, LastDecision, MAX_EVIDENCE, QuestionSubject, SignalEvidence};
use steward_domain::steward::tick::{TaskCheck, TaskClock};

/// A task of the matter or the matter itself, with the facts that the rules need.
pub(crate) struct CheckCandidate {
    pub(crate) target: RecordPath,
    pub(crate) name: String,
    pub(crate) id: String,
    /// Other tasks with the same `id`, at most five.
    pub(crate) twins: Option<String>,
    pub(crate) clock: TaskClock,
    /// The later of the date that a person wrote and the stored one.
    pub(crate) next_check: Option<DateTime<Utc>>,
    pub(crate) last_check: Option<i64>,
    pub(crate) streak: u32,
    pub(crate) fresh: u32,
    /// When the newest fresh signal was first seen, in microseconds.
    pub(crate) newest: i64,
    /// The slugs of the sources of the fresh signals.
    pub(crate) sources: Vec<String>,
    hash: String,
    state_as_written: Option<String>,
    ceiling: Ceiling,
    /// The policies of the other matters that the task belongs to.
    pub(crate) further_policies: Vec<MatterPolicy>,
}

#[derive(FromRow)]
struct CandidateColumns {
    path: String,
    name: String,
    id: Option<String>,
    state: String,
    state_as_written: Option<String>,
    surface_class: String,
    due: Option<i64>,
    snoozed_until: Option<i64>,
    next_by_human: Option<i64>,
    ceiling: String,
    hash: String,
    last_check_at: Option<i64>,
    next_by_us: Option<i64>,
    streak: i64,
    twins: Option<String>,
    further_policies: Option<String>,
    fresh: i64,
    newest: i64,
    sources: Option<String>,
}

#[derive(FromRow)]
struct EvidenceColumns {
    path: String,
    source: String,
    note: String,
    created: i64,
    effect: String,
    proposed_state: Option<String>,
    target_confidence: f64,
    effect_confidence: f64,
    observations: i64,
    ceiling: Option<i64>,
}

#[derive(FromRow)]
struct LastDecisionColumns {
    decision: String,
    confidence: f64,
    at: i64,
}

/// Every task of the matter between two paths, with its cursor and the number of its fresh signals.
///
/// A date in the file that Steward wrote is no wish of a person. A signal's own date is not compared: a signal that
/// claims to be from tomorrow must not be judged forever.
pub(crate) const TASKS: &str = "
    WITH fresh AS MATERIALIZED (
        SELECT t.path AS task, COUNT(*) AS count, MAX(f.at) AS newest, json_group_array(DISTINCT s.instinct) AS sources
        FROM tasks t LEFT JOIN task_checks c ON c.task = t.path
        CROSS JOIN signals s ON s.target = t.path AND s.applied = 0 AND s.effect <> 'none'
        CROSS JOIN first_seen f ON f.signal = s.path
        WHERE t.parent = ?1 AND t.path BETWEEN ?3 AND ?4
        AND (c.last_check_at IS NULL OR f.at > c.last_check_at OR (?2 AND 'shadow' = (
            SELECT CASE WHEN a.mode = 'shadow'
                AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id) THEN a.disposition END
            FROM action_evidence e JOIN actions a ON a.path = e.action
            WHERE e.ref = s.path AND a.target = t.path AND a.kind = 'steward-action' ORDER BY a.seq DESC LIMIT 1)))
        AND NOT EXISTS (
            SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
            WHERE e.ref = s.path AND a.target = t.path
                AND (a.disposition = 'live' OR (a.disposition = 'pending' AND a.judged = 0 AND a.ended = 0)))
        GROUP BY t.path)
    SELECT t.path, t.name, t.id, t.state, t.state_as_written, t.surface_class, t.due, t.snoozed_until,
        CASE WHEN t.next_check_after IN (w.written, w.before) THEN NULL ELSE t.next_check_after END AS next_by_human,
        (SELECT a.ceiling FROM ceilings a WHERE a.path = t.path) AS ceiling,
        t.hash, c.last_check_at, c.next_check_after AS next_by_us,
        COALESCE(c.streak, 0) AS streak, COALESCE(n.count, 0) AS fresh, COALESCE(n.newest, 0) AS newest, n.sources,
        CASE WHEN t.id IS NOT NULL THEN
            (SELECT group_concat(path, ', ') FROM (
                SELECT d.path FROM tasks d WHERE d.id = t.id AND d.path <> t.path LIMIT 5)) END AS twins,
        (SELECT json_group_array(json(m.policy)) FROM further_parents p JOIN matters m ON m.path = p.parent
            WHERE p.task = t.path AND m.policy IS NOT NULL) AS further_policies
    FROM tasks t LEFT JOIN task_checks c ON c.task = t.path LEFT JOIN fresh n ON n.task = t.path
    LEFT JOIN timestamp_writes w ON w.task = t.path
    WHERE t.parent = ?1 AND t.path BETWEEN ?3 AND ?4 ORDER BY t.path";

/// The matter itself, if fresh signals are about it. It is never due for any other reason.
pub(crate) const ITSELF: &str = "
    SELECT m.path, m.name, NULL AS id, m.state, m.state_as_written, 'normal' AS surface_class, NULL AS due,
        NULL AS snoozed_until, NULL AS next_by_human, 'act' AS ceiling, m.hash, c.last_check_at, c.next_check_after AS next_by_us,
        COALESCE(c.streak, 0) AS streak, COUNT(*) AS fresh, MAX(f.at) AS newest,
        json_group_array(DISTINCT s.instinct) AS sources, NULL AS twins,
        NULL AS further_policies
    FROM matters m LEFT JOIN task_checks c ON c.task = m.path
    CROSS JOIN signals s ON s.target = m.path AND s.applied = 0 AND s.effect <> 'none'
    CROSS JOIN first_seen f ON f.signal = s.path
    WHERE m.path = ?1 AND (c.last_check_at IS NULL OR f.at > c.last_check_at OR (?2 AND 'shadow' = (
        SELECT CASE WHEN a.mode = 'shadow'
                AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id) THEN a.disposition END
            FROM action_evidence e JOIN actions a ON a.path = e.action
        WHERE e.ref = s.path AND a.target = m.path AND a.kind = 'steward-action' ORDER BY a.seq DESC LIMIT 1)))
    AND NOT EXISTS (
        SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
        WHERE e.ref = s.path AND a.target = m.path
            AND (a.disposition = 'live' OR (a.disposition = 'pending' AND a.judged = 0 AND a.ended = 0)))
    GROUP BY m.path";

/// The fresh signals of one task, newest first, with the observations and the ceiling of their sources.
///
/// If there are too many, they are chosen round-robin over the sources, the newest of each first. So fifty signals
/// from one source displace none of another.
pub(crate) const EVIDENCE: &str = "
    SELECT path, source, note, created, effect, proposed_state, target_confidence, effect_confidence, observations,
        ceiling
    FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY instinct ORDER BY created DESC, path) AS turn FROM (
    SELECT s.path, s.instinct, s.source, s.note, s.created, s.effect, s.proposed_state, s.target_confidence, s.effect_confidence,
        COALESCE((SELECT MIN(i.observations) FROM instincts i WHERE i.source = s.instinct), 0) AS observations,
        (SELECT MIN(i.ceiling) FROM instincts i WHERE i.source = s.instinct) AS ceiling
    FROM signals s JOIN first_seen f ON f.signal = s.path
    WHERE s.target = ?1 AND s.applied = 0 AND s.effect <> 'none' AND (?2 IS NULL OR f.at > ?2 OR (?4 AND 'shadow' = (
        SELECT CASE WHEN a.mode = 'shadow'
                AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id) THEN a.disposition END
            FROM action_evidence e JOIN actions a ON a.path = e.action
        WHERE e.ref = s.path AND a.target = ?1 AND a.kind = 'steward-action' ORDER BY a.seq DESC LIMIT 1)))
    AND NOT EXISTS (
        SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
        WHERE e.ref = s.path AND a.target = ?1
            AND (a.disposition = 'live' OR (a.disposition = 'pending' AND a.judged = 0 AND a.ended = 0)))
    ) ORDER BY turn, observations = 0, created DESC, path LIMIT ?3) ORDER BY created DESC, path";

/// The newest decision of a steward about a note.
pub(crate) const LAST_DECISION: &str = "SELECT decision, confidence, at FROM actions
    WHERE target = ?1 AND kind = 'steward-action' ORDER BY seq DESC LIMIT 1";

/// The range of all paths.
pub(crate) const ALL_TASKS: RangeInclusive<&str> = ""..="\u{10ffff}";

/// Reads the tasks of the matter within a range of paths, and the matter itself if fresh signals are about it.
pub(crate) async fn read_candidates(
    index: &Index,
    tx: &mut SqliteConnection,
    query: &ObservationQuery,
    paths: RangeInclusive<&str>,
) -> Result<Vec<CheckCandidate>, IndexError> {
    let tasks = sqlx::query_as(TASKS).bind(query.matter.as_str()).bind(can_change(query));
    let tasks = tasks.bind(*paths.start()).bind(*paths.end());
    let mut rows: Vec<CandidateColumns> = tasks.fetch_all(&mut *tx).await.map_err(|e| index.sql_error(e))?;
    let itself = sqlx::query_as(ITSELF).bind(query.matter.as_str()).bind(can_change(query)).fetch_all(&mut *tx).await;
    rows.extend(itself.map_err(|e| index.sql_error(e))?);
    rows.into_iter().map(|row| decode_candidate(index, row)).collect()
}

/// Completes a check with the evidence for the clerk's question.
pub(crate) async fn complete_check(
    index: &Index,
    tx: &mut SqliteConnection,
    query: &ObservationQuery,
    matter: &ObservedMatter,
    task: CheckCandidate,
) -> Result<TaskCheck, IndexError> {
    let (mut evidence, mut last_decision) = (Vec::new(), None);
    if task.fresh > 0 {
        let last: Option<LastDecisionColumns> = sqlx::query_as(LAST_DECISION)
            .bind(task.target.as_str())
            .fetch_optional(&mut *tx)
            .await
            .map_err(|e| index.sql_error(e))?;
        last_decision = last.map(|row| decode_last_decision(index, &row)).transpose()?.flatten();
        let rows: Vec<EvidenceColumns> = sqlx::query_as(EVIDENCE)
            .bind(task.target.as_str())
            .bind(task.last_check)
            .bind(i64::try_from(MAX_EVIDENCE).unwrap_or(i64::MAX))
            .bind(can_change(query))
            .fetch_all(tx)
            .await
            .map_err(|e| index.sql_error(e))?;
        for row in rows {
            evidence.push(decode_evidence(index, row, query.default_ceiling)?);
        }
    }
    let kind = if task.target == query.matter { RecordKind::Matter } else { RecordKind::Task };
    let is_off = !index.note_schema().can_write(kind, &Mutation::StateChange { to: RecordState::Done });
    let own_ceiling = if is_off { Ceiling::Ask } else { task.ceiling };
    let subject = QuestionSubject {
        task: task.target,
        task_name: task.name,
        matter: query.matter.clone(),
        matter_name: matter.name.clone(),
        state: task.clock.state,
        surface_class: task.clock.surface_class,
        due: task.clock.due,
        // Whoever can read the note adds it.
        description_hash: None,
        last_decision,
    };
    Ok(TaskCheck {
        question: ClerkQuestion { subject, evidence, complaint: None, asked_at: query.now },
        before: index.parse_enum(&task.hash)?,
        state_as_written: task.state_as_written,
        matter_ceiling: matter.ceiling.min(own_ceiling),
        further_policies: task.further_policies,
        known_verdict: None,
    })
}

/// Whether the mode permits a decision to change anything.
fn can_change(query: &ObservationQuery) -> bool {
    query.policy.mode > Mode::Shadow
}

fn decode_candidate(index: &Index, row: CandidateColumns) -> Result<CheckCandidate, IndexError> {
    let clock = TaskClock {
        state: index.parse_enum(&row.state)?,
        surface_class: index.parse_enum(&row.surface_class)?,
        due: row.due.and_then(from_micros),
        snoozed_until: row.snoozed_until.and_then(from_micros),
    };
    Ok(CheckCandidate {
        target: index.parse_path(&row.path)?,
        name: row.name,
        id: row.id.unwrap_or_default(),
        twins: row.twins,
        clock,
        next_check: row.next_by_human.max(row.next_by_us).and_then(from_micros),
        last_check: row.last_check_at,
        streak: u32::try_from(row.streak).unwrap_or(u32::MAX),
        fresh: u32::try_from(row.fresh).unwrap_or(u32::MAX),
        newest: row.newest,
        sources: row.sources.and_then(|names| serde_json::from_str(&names).ok()).unwrap_or_default(),
        hash: row.hash,
        state_as_written: row.state_as_written,
        ceiling: index.parse_enum(&row.ceiling)?,
        further_policies: match row.further_policies {
            Some(json) => serde_json::from_str(&json).map_err(|_| index.unknown_value_error(&json))?,
            None => Vec::new(),
        },
    })
}

fn decode_last_decision(index: &Index, row: &LastDecisionColumns) -> Result<Option<LastDecision>, IndexError> {
    let decision = index.parse_enum(&row.decision)?;
    Ok(from_micros(row.at).map(|at| LastDecision { decision, confidence: row.confidence, at }))
}

fn decode_evidence(
    index: &Index,
    row: EvidenceColumns,
    default_ceiling: Ceiling,
) -> Result<SignalEvidence, IndexError> {
    Ok(SignalEvidence {
        reference: index.parse_path(&row.path)?,
        source: row.source,
        note: row.note,
        created: from_micros(row.created).unwrap_or_default(),
        effect: index.parse_enum(&row.effect)?,
        proposed_state: row.proposed_state.map(|s| index.parse_enum(&s)).transpose()?,
        target_confidence: row.target_confidence,
        effect_confidence: row.effect_confidence,
        observations: u32::try_from(row.observations).unwrap_or(u32::MAX),
        ceiling: decode_ceiling(row.ceiling, default_ceiling),
    })
}
