//! One tick's observation of one matter: what is due, what is new and what needs a clerk (S3-20 to S3-23).
//!
//! It takes one transaction over the tables and opens no file. Due tasks without anything new need no clerk, so their
//! cursors move and they are counted at once. Tasks that need a clerk are returned as checks. Their cursors move only
//! after the evaluation, by `CursorsView::record_check`. A repeated check gets the stored observation.

use super::lease;
use super::state::{NO_SIGNALS, add_to_check_count};
use super::task_check::{self, CheckCandidate};
use super::turns;
use super::wake;
use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::read::matter_status::is_within_quiet_hours;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, Sqlite, SqliteConnection, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::tick::{Cadence, MatterObservation, RunDisplay, TaskSkipReason, check_due, needs_clerk};

/// The most bytes of JSON for the checks of one tick: 1 MB; the rest stays due. Temporal accepts no payload over 2
/// MB, and cached answers are added later.
const MAX_CHECKS_BYTES: usize = 1_000_000;

/// The most problems that one tick names: 20.
const MAX_PROBLEMS: usize = 20;

/// The query of a tick.
#[derive(Clone, Debug)]
pub struct ObservationQuery {
    pub matter: RecordPath,
    /// The id of this check. A second query with the same id gets the same observation and moves nothing.
    pub check_id: String,
    pub now: DateTime<Utc>,
    pub cadence: Cadence,
    pub policy: DecisionPolicy,
    /// A stop is in force: nothing is judged and no cursor moves.
    pub stopped: bool,
    /// The most tasks of one tick that go to a clerk; the rest stays due. Configured, 64 by default.
    pub max_checks: usize,
    /// The ceiling of sources for which no person set one (`STEWARD_DEFAULT_CEILING`).
    pub default_ceiling: Ceiling,
}

/// The matter as its file says.
pub(crate) struct ObservedMatter {
    pub(crate) name: String,
    pub(crate) state: RecordState,
    pub(crate) ceiling: Ceiling,
    policy: Option<MatterPolicy>,
    policy_faults: Vec<String>,
}

/// The state of a matter before this tick.
struct PreTickState {
    /// The matter, or the reason why it cannot be ticked.
    matter: Result<ObservedMatter, String>,
    streak: u32,
    /// The observation that this same check got before.
    earlier_observation: Option<String>,
}

#[derive(FromRow)]
struct MatterColumns {
    name: Option<String>,
    state: Option<String>,
    ceiling: Option<String>,
    policy: Option<String>,
    policy_faults: Option<String>,
    problem: Option<String>,
    streak: Option<i64>,
    repeated: Option<String>,
}

/// A due task that needs no clerk.
#[derive(Serialize)]
struct QuietCheck {
    task: String,
    next: Option<i64>,
    streak: u32,
}

/// What a tick does with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckDecision {
    /// Another task has the same `id`, so neither is checked.
    Twin,
    Skipped(TaskSkipReason),
    /// A clerk is asked, within the limit of one tick.
    Clerk,
    /// The task is due and nothing is new: it is still active, and no clerk is asked.
    Quiet,
}

impl CheckDecision {
    /// Whether the fresh signals of such a task count for this tick.
    fn is_counted(self) -> bool {
        match self {
            Self::Twin => false,
            Self::Skipped(reason) => matches!(reason, TaskSkipReason::QuietHours | TaskSkipReason::BeingJudged),
            Self::Clerk | Self::Quiet => true,
        }
    }
}

/// The tasks of a matter, sorted by the decision on their check.
#[derive(Default)]
struct SortedCandidates {
    needing_clerk: Vec<CheckCandidate>,
    quiet: Vec<QuietCheck>,
    skipped: BTreeMap<TaskSkipReason, u32>,
    signals: u32,
    /// The latest first-seen moment of the counted signals, in microseconds.
    newest: i64,
    problems: Vec<String>,
}

impl CursorsView<'_> {
    /// Observes a matter by look-ups in the index, never by a scan of the vault.
    ///
    /// # Errors
    /// [`IndexError::Unfilled`] before the first scan; [`IndexError::Sql`] if `state.db` fails.
    /// A missing, unreadable or closed matter is no error: nothing is due.
    pub async fn observe_due_tasks(self, query: &ObservationQuery) -> Result<MatterObservation, IndexError> {
        if !self.index.is_filled() {
            return Err(IndexError::Unfilled { path: self.index.store.file.clone() });
        }
        let mut tx = self.index.begin_write().await?;
        let before = self.read_matter_state(&mut tx, query).await?;
        if let Some(stored) = before.earlier_observation {
            return serde_json::from_str(&stored).map_err(|_| self.index.unknown_value_error(&stored));
        }
        let mut observation = empty_observation(query, before.streak);
        // Nothing is judged under a stop, so the wake mark stays until its end.
        let woken =
            !query.stopped && wake::clear_mark(&mut tx, &query.matter).await.map_err(|e| self.index.sql_error(e))?;
        let matter = match before.matter {
            Ok(matter) if !query.stopped => matter,
            Ok(_) => return Ok(observation),
            Err(problem) => {
                observation.problems.push(problem);
                self.commit_observation(tx, woken).await?;
                return Ok(observation);
            }
        };
        let quiet_hours = is_within_quiet_hours(query, matter.policy.as_ref());
        let candidates = task_check::read_candidates(self.index, &mut tx, query, task_check::ALL_TASKS).await?;
        let leased = if candidates.iter().any(|c| needs_clerk(c.clock.surface_class, c.fresh > 0)) {
            lease::list_tasks_leased_by_others(&mut tx, &query.check_id, query.now)
                .await
                .map_err(|e| self.index.sql_error(e))?
        } else {
            BTreeSet::new()
        };
        let mut sorted = sort_candidates(query, &leased, quiet_hours, candidates);
        // A check counts as later than every signal that it saw, even if a scan's clock ran ahead.
        observation.observed_at = from_micros(to_micros(query.now).max(sorted.newest)).unwrap_or(query.now);
        observation.streak = if sorted.signals > 0 { 0 } else { before.streak.saturating_add(1) };
        observation.interval_seconds = query.cadence.matter_interval_seconds(observation.streak);
        observation.quiet = saturating_u32(sorted.quiet.len());
        observation.signals = sorted.signals;
        observation.skipped = sorted.skipped;
        observation.problems = matter.policy_faults.iter().map(|fault| format!("{}: {fault}", query.matter)).collect();
        observation.problems.extend(sorted.problems);
        observation.matter_policy.clone_from(&matter.policy);
        let (known, needing_clerk) = (self.known_sources(&mut tx).await?, sorted.needing_clerk.len());
        let mut bytes = 0;
        for candidate in turns::choose_round_robin(std::mem::take(&mut sorted.needing_clerk), query.max_checks, &known)
        {
            let check = task_check::complete_check(self.index, &mut tx, query, &matter, candidate).await?;
            bytes += to_json(&check).len();
            if bytes > MAX_CHECKS_BYTES && !observation.task_checks.is_empty() {
                break;
            }
            observation.task_checks.push(check);
        }
        observation.left_due = saturating_u32(needing_clerk.saturating_sub(observation.task_checks.len()));
        let tasks: Vec<String> = observation.task_checks.iter().map(|c| c.question.subject.task.to_string()).collect();
        if !tasks.is_empty() {
            lease::lease_tasks(&mut tx, &query.check_id, &tasks, query.now)
                .await
                .map_err(|e| self.index.sql_error(e))?;
        }
        write_observation(&mut tx, query, &observation, &sorted.quiet).await.map_err(|e| self.index.sql_error(e))?;
        self.commit_observation(tx, woken).await?;
        Ok(observation)
    }

    /// Commits. If a wake mark was cleared, the dispatcher can wake the next matter.
    async fn commit_observation(self, tx: Transaction<'static, Sqlite>, woken: bool) -> Result<(), IndexError> {
        tx.commit().await.map_err(|e| self.index.sql_error(e))?;
        if woken {
            self.notify_wakes();
        }
        Ok(())
    }

    async fn read_matter_state(
        self,
        tx: &mut SqliteConnection,
        query: &ObservationQuery,
    ) -> Result<PreTickState, IndexError> {
        let row: MatterColumns = sqlx::query_as(
            "SELECT m.name, m.state, (SELECT c.ceiling FROM ceilings c WHERE c.path = m.path) AS ceiling,
                 m.policy, m.policy_faults, f.problem, k.streak,
                 CASE WHEN k.look_id = ?2 THEN k.observation END AS repeated
             FROM (SELECT ?1 AS path) a
             LEFT JOIN matters m ON m.path = a.path
             LEFT JOIN files f ON f.path = a.path
             LEFT JOIN matter_ticks k ON k.matter = a.path",
        )
        .bind(query.matter.as_str())
        .bind(&query.check_id)
        .fetch_one(tx)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        let matter = match (row.name, row.state, row.ceiling) {
            (Some(name), Some(state), Some(ceiling)) => {
                let (state, ceiling) = (self.index.parse_enum(&state)?, self.index.parse_enum(&ceiling)?);
                let policy = row.policy.map(|policy| self.index.gates().parse_matter_policy(&policy)).transpose()?;
                let policy_faults =
                    row.policy_faults.and_then(|faults| serde_json::from_str(&faults).ok()).unwrap_or_default();
                self.require_open(&query.matter, ObservedMatter { name, state, ceiling, policy, policy_faults })
            }
            _ => Err(match row.problem {
                Some(problem) => format!("{}: {problem}", query.matter),
                None => format!("{}: not in the vault: restore the file, or let its schedule be removed", query.matter),
            }),
        };
        let streak = row.streak.map_or(0, |s| u32::try_from(s).unwrap_or(u32::MAX));
        Ok(PreTickState { matter, streak, earlier_observation: row.repeated })
    }

    fn require_open(self, path: &RecordPath, matter: ObservedMatter) -> Result<ObservedMatter, String> {
        match matter.state {
            RecordState::Open => Ok(matter),
            RecordState::Done | RecordState::Archived => Err(format!(
                "{path}: its state is `{}`, so its tasks are not checked: set `{}` to resume",
                matter.state.as_str(),
                self.index.note_schema().spell_state(RecordKind::Matter, RecordState::Open)
            )),
        }
    }
}

/// The observation of a tick before it has seen anything, after `streak` ticks without signals.
fn empty_observation(query: &ObservationQuery, streak: u32) -> MatterObservation {
    MatterObservation {
        matter: query.matter.clone(),
        observed_at: from_micros(to_micros(query.now)).unwrap_or(query.now),
        policy: query.policy.clone(),
        matter_policy: None,
        stopped: query.stopped,
        task_checks: Vec::new(),
        quiet: 0,
        left_due: 0,
        skipped: BTreeMap::new(),
        signals: 0,
        streak,
        interval_seconds: query.cadence.matter_interval_seconds(streak),
        problems: Vec::new(),
        display: RunDisplay::default(),
    }
}

/// Decides for every task whether it is skipped, quiet or needs a clerk.
fn sort_candidates(
    query: &ObservationQuery,
    leased: &BTreeSet<String>,
    quiet_hours: bool,
    candidates: Vec<CheckCandidate>,
) -> SortedCandidates {
    let mut sorted = SortedCandidates::default();
    for candidate in candidates {
        let decision = decide_check(query, leased, quiet_hours, &candidate);
        if decision.is_counted() {
            sorted.signals = sorted.signals.saturating_add(candidate.fresh);
            sorted.newest = sorted.newest.max(candidate.newest);
        }
        match decision {
            CheckDecision::Twin => {
                let twins = candidate.twins.as_deref().unwrap_or_default();
                sorted.problems.push(twin_problem(candidate.target.as_str(), &candidate.id, twins));
            }
            CheckDecision::Skipped(reason) => *sorted.skipped.entry(reason).or_default() += 1,
            CheckDecision::Clerk => sorted.needing_clerk.push(candidate),
            CheckDecision::Quiet => sorted.quiet.push(build_quiet_check(query, &candidate)),
        }
    }
    let more = sorted.problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        sorted.problems.truncate(MAX_PROBLEMS);
        sorted.problems.push(format!("{}: {more} more like these", query.matter));
    }
    sorted.needing_clerk.sort_by(|a, b| (a.last_check, &a.target).cmp(&(b.last_check, &b.target)));
    sorted
}

/// Decides what a tick does with one task. `leased` are the tasks that other runs are judging.
pub(crate) fn decide_check(
    query: &ObservationQuery,
    leased: &BTreeSet<String>,
    quiet_hours: bool,
    candidate: &CheckCandidate,
) -> CheckDecision {
    let fresh = candidate.fresh > 0;
    if candidate.twins.is_some() {
        return CheckDecision::Twin;
    }
    if let Err(reason) = check_due(&candidate.clock, candidate.next_check, fresh, query.now) {
        return CheckDecision::Skipped(reason);
    }
    if !needs_clerk(candidate.clock.surface_class, fresh) {
        return CheckDecision::Quiet;
    }
    // Its cursor does not move, so it is checked as soon as the quiet hours are over.
    if quiet_hours || candidate.further_policies.iter().any(|policy| is_within_quiet_hours(query, Some(policy))) {
        return CheckDecision::Skipped(TaskSkipReason::QuietHours);
    }
    if leased.contains(candidate.target.as_str()) {
        CheckDecision::Skipped(TaskSkipReason::BeingJudged)
    } else {
        CheckDecision::Clerk
    }
}

fn build_quiet_check(query: &ObservationQuery, candidate: &CheckCandidate) -> QuietCheck {
    let streak = candidate.streak.saturating_add(1);
    let next = query.cadence.next_check(&candidate.clock, streak, query.now).map(to_micros);
    QuietCheck { task: candidate.target.to_string(), next, streak }
}

/// Two tasks that share an `id` cannot be distinguished, so nothing acts on either.
pub(crate) fn twin_problem(path: &str, id: &str, twins: &str) -> String {
    let id: String = id.chars().take(60).flat_map(char::escape_debug).collect();
    format!(
        "{path}: its `id` `{id}` is also used by {twins}: give each task its own `id`; until then neither is checked"
    )
}

async fn write_observation(
    tx: &mut SqliteConnection,
    query: &ObservationQuery,
    observation: &MatterObservation,
    quiet: &[QuietCheck],
) -> sqlx::Result<()> {
    if !quiet.is_empty() {
        sqlx::query(
            "INSERT INTO task_checks (task, last_check_at, next_check_after, outcome, streak, look_id)
             SELECT value->>'task', ?2, value->>'next', 'still_active', value->>'streak', ?3
             FROM json_each(?1) WHERE true
             ON CONFLICT (task) DO UPDATE SET last_check_at = MAX(last_check_at, excluded.last_check_at),
                 next_check_after = excluded.next_check_after, outcome = excluded.outcome,
                 streak = excluded.streak, look_id = excluded.look_id",
        )
        .bind(to_json(&quiet))
        .bind(to_micros(observation.observed_at))
        .bind(&query.check_id)
        .execute(&mut *tx)
        .await?;
        add_to_check_count(&mut *tx, NO_SIGNALS, query.now, observation.quiet).await?;
    }
    sqlx::query(
        "INSERT OR REPLACE INTO matter_ticks (matter, streak, look_id, observed_at, observation)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(query.matter.as_str())
    .bind(i64::from(observation.streak))
    .bind(&query.check_id)
    .bind(to_micros(observation.observed_at))
    .bind(to_json(observation))
    .execute(tx)
    .await
    .map(drop)
}

fn saturating_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
