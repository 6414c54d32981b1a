//! One tick's look at one matter: what is due, what is new, who needs a clerk (S3-20 to S3-23).
//!
//! One transaction over the tables and no file. A tick that finds nothing new ends here: its due
//! tasks are stamped and counted at once. What needs a clerk is returned as looks and stamped only
//! after its evaluation, by [`Index::record_check`]. The same look asked for again gets the stored answer.

use super::lease;
use super::look::{self, CheckCandidate};
use super::state::{NO_SIGNALS, add_to_check_count};
use super::turns;
use super::wake;
use crate::index::Index;
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
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::{Cadence, MatterObservation, TaskSkipReason, check_due, needs_clerk};

/// Most bytes of the looks of one tick, as JSON: 1 MB; the rest stays due. Temporal takes no payload of more
/// than 2 MB, and answers that are remembered come on top.
const MAX_LOOKS_BYTES: usize = 1_000_000;

/// Most problems that one tick names: 20.
const MAX_PROBLEMS: usize = 20;

/// What a tick asks of the index.
#[derive(Clone, Debug)]
pub struct ObservationQuery {
    pub matter: RecordPath,
    /// Names this look; asked again under the same name, it gets the same answer and moves nothing.
    pub look_id: String,
    pub now: DateTime<Utc>,
    pub cadence: Cadence,
    pub policy: DecisionPolicy,
    /// The brake is pulled: look, but move nothing.
    pub stopped: bool,
    /// Most tasks that one tick takes to a clerk; the rest stays due. Configured, 64 by default.
    pub max_looks: usize,
    /// The ceiling of sources for which a human set none (`STEWARD_DEFAULT_CEILING`).
    pub default_ceiling: Ceiling,
}

/// The matter, and where its last tick left it.
pub(crate) struct ObservedMatter {
    pub(crate) name: String,
    pub(crate) state: RecordState,
    pub(crate) ceiling: Ceiling,
    note: Option<MatterPolicy>,
    faults: Vec<String>,
}

/// How a matter stood before this tick.
struct PreTickState {
    /// Why it cannot be ticked, or the matter.
    matter: Result<ObservedMatter, String>,
    streak: u32,
    /// The answer that this very look was given before.
    repeated: Option<String>,
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
    /// Another task has the same `id`, so neither is looked at.
    Twin,
    Skipped(TaskSkipReason),
    /// A clerk is asked, as far as one tick takes so many.
    Clerk,
    /// It is due and nothing is new: still active, and nobody is asked.
    Quiet,
}

impl CheckDecision {
    /// Whether what is new to it counts for this tick.
    fn is_counted(self) -> bool {
        match self {
            Self::Twin => false,
            Self::Skipped(reason) => matches!(reason, TaskSkipReason::QuietHours | TaskSkipReason::BeingJudged),
            Self::Clerk | Self::Quiet => true,
        }
    }
}

/// The tasks of a matter, sorted by what becomes of them.
#[derive(Default)]
struct SortedCandidates {
    needy: Vec<CheckCandidate>,
    quiet: Vec<QuietCheck>,
    skipped: BTreeMap<TaskSkipReason, u32>,
    signals: u32,
    /// The latest moment at which one of the signals was first seen.
    newest: i64,
    problems: Vec<String>,
}

impl Index {
    /// Looks at a matter: one look-up by index, never a scan of the vault.
    ///
    /// # Errors
    /// [`IndexError::Unfilled`] before the first scan; [`IndexError::Sql`] when `state.db` fails.
    /// A matter that is missing, unreadable or closed is no error: nothing of it is due.
    pub async fn observe_due_tasks(&self, ask: &ObservationQuery) -> Result<MatterObservation, IndexError> {
        if !self.is_filled() {
            return Err(IndexError::Unfilled { path: self.store.file.clone() });
        }
        let mut tx = self.begin_write().await?;
        let before = self.read_matter_state(&mut tx, ask).await?;
        if let Some(stored) = before.repeated {
            return serde_json::from_str(&stored).map_err(|_| self.unknown_value_error(&stored));
        }
        let mut seen = MatterObservation {
            matter: ask.matter.clone(),
            observed_at: from_micros(to_micros(ask.now)).unwrap_or(ask.now),
            policy: ask.policy.clone(),
            note: None,
            stopped: ask.stopped,
            looks: Vec::new(),
            quiet: 0,
            left_due: 0,
            skipped: BTreeMap::new(),
            signals: 0,
            streak: before.streak,
            interval_seconds: ask.cadence.matter_interval_seconds(before.streak),
            problems: Vec::new(),
        };
        // Under a stop nothing is judged, so the wake waits for the end of it.
        let woken = !ask.stopped && wake::clear_mark(&mut tx, &ask.matter).await.map_err(|e| self.sql_error(e))?;
        let matter = match before.matter {
            Ok(matter) if !ask.stopped => matter,
            Ok(_) => return Ok(seen),
            Err(problem) => {
                seen.problems.push(problem);
                self.commit_observation(tx, woken).await?;
                return Ok(seen);
            }
        };
        let quiet = is_within_quiet_hours(ask, matter.note.as_ref());
        let candidates = look::read_candidates(self, &mut tx, (ask, look::ALL_TASKS)).await?;
        let taken = if candidates.iter().any(|c| needs_clerk(c.clock.surface_class, c.fresh > 0)) {
            lease::list_tasks_leased_by_others(&mut tx, &ask.look_id, ask.now).await.map_err(|e| self.sql_error(e))?
        } else {
            BTreeSet::new()
        };
        let mut sorted = sort_candidates(ask, (&taken, quiet), candidates);
        // A look counts as later than all that it has seen, even if a scan's clock ran ahead.
        seen.observed_at = from_micros(to_micros(ask.now).max(sorted.newest)).unwrap_or(ask.now);
        seen.streak = if sorted.signals > 0 { 0 } else { before.streak.saturating_add(1) };
        seen.interval_seconds = ask.cadence.matter_interval_seconds(seen.streak);
        seen.quiet = saturating_u32(sorted.quiet.len());
        seen.signals = sorted.signals;
        seen.skipped = sorted.skipped;
        seen.problems = matter.faults.iter().map(|fault| format!("{}: {fault}", ask.matter)).collect();
        seen.problems.extend(sorted.problems);
        seen.note.clone_from(&matter.note);
        let (known, needy) = (self.known_sources(&mut tx).await?, sorted.needy.len());
        let mut bytes = 0;
        for candidate in turns::choose_round_robin(std::mem::take(&mut sorted.needy), ask.max_looks, &known) {
            let look = look::complete_check(self, &mut tx, (ask, &matter), candidate).await?;
            bytes += to_json(&look).len();
            if bytes > MAX_LOOKS_BYTES && !seen.looks.is_empty() {
                break;
            }
            seen.looks.push(look);
        }
        seen.left_due = saturating_u32(needy.saturating_sub(seen.looks.len()));
        let looks: Vec<String> = seen.looks.iter().map(|l| l.question.subject.task.to_string()).collect();
        if !looks.is_empty() {
            lease::lease_tasks(&mut tx, &ask.look_id, &looks, ask.now).await.map_err(|e| self.sql_error(e))?;
        }
        write_observation(&mut tx, ask, &seen, &sorted.quiet).await.map_err(|e| self.sql_error(e))?;
        self.commit_observation(tx, woken).await?;
        Ok(seen)
    }

    /// A matter that was marked has made room for the next one to be woken.
    async fn commit_observation(&self, tx: Transaction<'static, Sqlite>, woken: bool) -> Result<(), IndexError> {
        tx.commit().await.map_err(|e| self.sql_error(e))?;
        if woken {
            self.notify_wakes();
        }
        Ok(())
    }

    async fn read_matter_state(
        &self,
        tx: &mut SqliteConnection,
        ask: &ObservationQuery,
    ) -> Result<PreTickState, IndexError> {
        let row: MatterColumns = sqlx::query_as(
            "SELECT m.name, m.state, m.ceiling, m.policy, m.policy_faults, f.problem, k.streak,
                 CASE WHEN k.look_id = ?2 THEN k.observation END AS repeated
             FROM (SELECT ?1 AS path) a
             LEFT JOIN matters m ON m.path = a.path
             LEFT JOIN files f ON f.path = a.path
             LEFT JOIN matter_ticks k ON k.matter = a.path",
        )
        .bind(ask.matter.as_str())
        .bind(&ask.look_id)
        .fetch_one(tx)
        .await
        .map_err(|e| self.sql_error(e))?;
        let matter = match (row.name, row.state, row.ceiling) {
            (Some(name), Some(state), Some(ceiling)) => {
                let (state, ceiling) = (self.parse_enum(&state)?, self.parse_enum(&ceiling)?);
                let note = row.policy.map(|policy| self.parse_matter_policy(&policy)).transpose()?;
                let faults = row.policy_faults.and_then(|told| serde_json::from_str(&told).ok()).unwrap_or_default();
                self.require_open(&ask.matter, ObservedMatter { name, state, ceiling, note, faults })
            }
            _ => Err(match row.problem {
                Some(problem) => format!("{}: {problem}", ask.matter),
                None => format!("{}: not in the vault: restore it, or let its schedule go", ask.matter),
            }),
        };
        let streak = row.streak.map_or(0, |s| u32::try_from(s).unwrap_or(u32::MAX));
        Ok(PreTickState { matter, streak, repeated: row.repeated })
    }

    fn require_open(&self, path: &RecordPath, matter: ObservedMatter) -> Result<ObservedMatter, String> {
        match matter.state {
            RecordState::Open => Ok(matter),
            RecordState::Done | RecordState::Archived => Err(format!(
                "{path}: its state is `{}`, so its tasks are not looked at: set `state: open` to take it up again",
                matter.state.as_str()
            )),
        }
    }
}

/// Applies the rules of skipping and of the gate to every task.
fn sort_candidates(
    ask: &ObservationQuery,
    (taken, quiet): (&BTreeSet<String>, bool),
    candidates: Vec<CheckCandidate>,
) -> SortedCandidates {
    let mut sorted = SortedCandidates::default();
    for candidate in candidates {
        let turn = decide_check(ask, (taken, quiet), &candidate);
        if turn.is_counted() {
            sorted.signals = sorted.signals.saturating_add(candidate.fresh);
            sorted.newest = sorted.newest.max(candidate.newest);
        }
        match turn {
            CheckDecision::Twin => {
                let twins = candidate.twins.as_deref().unwrap_or_default();
                sorted.problems.push(twin_problem(candidate.task.as_str(), &candidate.id, twins));
            }
            CheckDecision::Skipped(reason) => *sorted.skipped.entry(reason).or_default() += 1,
            CheckDecision::Clerk => sorted.needy.push(candidate),
            CheckDecision::Quiet => sorted.quiet.push(build_quiet_check(ask, &candidate)),
        }
    }
    let more = sorted.problems.len().saturating_sub(MAX_PROBLEMS);
    if more > 0 {
        sorted.problems.truncate(MAX_PROBLEMS);
        sorted.problems.push(format!("{}: {more} more like these", ask.matter));
    }
    sorted.needy.sort_by(|a, b| (a.last_check, &a.task).cmp(&(b.last_check, &b.task)));
    sorted
}

/// What becomes of a task by the rules of skipping and of the gate.
pub(crate) fn decide_check(
    ask: &ObservationQuery,
    (taken, quiet): (&BTreeSet<String>, bool),
    candidate: &CheckCandidate,
) -> CheckDecision {
    let fresh = candidate.fresh > 0;
    if candidate.twins.is_some() {
        return CheckDecision::Twin;
    }
    if let Err(reason) = check_due(&candidate.clock, candidate.next_check, fresh, ask.now) {
        return CheckDecision::Skipped(reason);
    }
    if !needs_clerk(candidate.clock.surface_class, fresh) {
        return CheckDecision::Quiet;
    }
    // It has no cursor of this look, so it is taken up as soon as the quiet hours are over.
    if quiet {
        return CheckDecision::Skipped(TaskSkipReason::QuietHours);
    }
    if taken.contains(candidate.task.as_str()) {
        CheckDecision::Skipped(TaskSkipReason::BeingJudged)
    } else {
        CheckDecision::Clerk
    }
}

fn build_quiet_check(ask: &ObservationQuery, candidate: &CheckCandidate) -> QuietCheck {
    let streak = candidate.streak.saturating_add(1);
    let next = ask.cadence.next_check(&candidate.clock, streak, ask.now).map(to_micros);
    QuietCheck { task: candidate.task.to_string(), next, streak }
}

/// Two tasks that share an `id` cannot be told apart, so neither is acted upon.
pub(crate) fn twin_problem(path: &str, id: &str, twins: &str) -> String {
    let id: String = id.chars().take(60).flat_map(char::escape_debug).collect();
    format!("{path}: its `id` `{id}` is also that of {twins}: give each task its own, until then neither is looked at")
}

async fn write_observation(
    tx: &mut SqliteConnection,
    ask: &ObservationQuery,
    seen: &MatterObservation,
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
        .bind(to_micros(seen.observed_at))
        .bind(&ask.look_id)
        .execute(&mut *tx)
        .await?;
        add_to_check_count(&mut *tx, NO_SIGNALS, ask.now, seen.quiet).await?;
    }
    sqlx::query(
        "INSERT OR REPLACE INTO matter_ticks (matter, streak, look_id, observed_at, observation)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(ask.matter.as_str())
    .bind(i64::from(seen.streak))
    .bind(&ask.look_id)
    .bind(to_micros(seen.observed_at))
    .bind(to_json(seen))
    .execute(tx)
    .await
    .map(drop)
}

fn saturating_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
