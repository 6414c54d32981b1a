//! Rounds of the router: signals become plans or named reasons, one after the other.
//!
//! What a signal and its target say is read from their files; who has acted before and how far whom is
//! trusted comes from the index; the decision is [`mod@steward_domain::signals::route`]. The keeper carries it out.
//! A crash anywhere and the same round again comes to the same: a record that was filed claims its
//! signal, and its name is the same for every try. Where nothing may change no signal's standing is noted in its file;
//! the index keeps the reason for every signal that the router has met.

mod status;
use self::status::{signal_status_for_receipt, signal_status_for_skip};
use crate::failure::retryable_failure;
use crate::vault::VaultContext;
use crate::vault::run_blocking;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::{Duration, Instant};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, Disposition, Plan};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::{Matter, RecordState, Task};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::plain_text;
use steward_domain::signals::route::{
    self, ProposalDoubt, RouteCase, RouteDecision, RouteSkip, RouteTarget, StewardWeighing,
};
use steward_domain::signals::signal::Signal;
use steward_domain::time::format_millis;
use steward_vault::action::writer::ApplyError;
use steward_vault::index::{RouteDeferral, RouteFacts, RouteFactsQuery};
use steward_workflows::activities::RouteOutput;
use temporalio_common::ActivityError;

/// No signal is begun later than this into a round, 15 s: the activity may take 30.
const ROUND_TIME: Duration = Duration::from_secs(15);
/// When a file that cannot be used is looked at again: 10 min.
const MEND: TimeDelta = TimeDelta::minutes(10);
/// When a signal is looked at again that has been dealt with, should its standing not show that: 6 h.
const LATER: TimeDelta = TimeDelta::hours(6);
/// When a signal is looked at again that is listed on a question: 10 years, so never by time alone.
const WITHHELD: TimeDelta = TimeDelta::days(3_650);
/// When a change is tried again that a human's edit or a stop came before: 10 s.
const SOON: TimeDelta = TimeDelta::seconds(10);

/// What one round shares.
struct RoutingRound {
    policy: DecisionPolicy,
    /// Changes may happen.
    acts: bool,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
}

/// How one signal's routing ended.
enum RoutingOutcome {
    Landed(Disposition),
    Skipped(RouteSkip),
    /// Tried again later.
    Failed(String),
    /// An operator stopped the fleet: nothing was filed, and it is tried again soon.
    Stopped,
}

/// A signal, and its target as far as there is one.
struct SignalContext {
    signal: Signal,
    target: Option<RouteTarget>,
    facts: Option<RouteFacts>,
    doubt: Option<ProposalDoubt>,
}

/// How a signal is left.
struct SignalRevisit {
    wait: TimeDelta,
    /// Its action has its record.
    filed: bool,
    reason: String,
    question: Option<ActionId>,
}

impl SignalRevisit {
    /// For a while, for this reason.
    fn schedule_after(wait: TimeDelta, reason: &str) -> Self {
        Self { wait, filed: false, reason: plain_text::to_one_line(reason), question: None }
    }
}

impl VaultContext {
    /// Routes at most `limit` signals.
    pub(crate) async fn route_signals(&self, limit: u32, workflow: WorkflowRef) -> Result<RouteOutput, ActivityError> {
        if self.is_stopped() {
            return Ok(RouteOutput { stopped: true, ..RouteOutput::default() });
        }
        let policy = self.settings.policy.clone();
        let round = RoutingRound { acts: policy.mode > Mode::Shadow, policy, workflow, now: Utc::now() };
        let limit = limit as usize;
        let signals =
            self.index.list_signals_to_route(limit, round.now, round.acts).await.map_err(retryable_failure)?;
        let mut report = RouteOutput { more: signals.len() == limit, ..RouteOutput::default() };
        let started = Instant::now();
        for signal in signals {
            if started.elapsed() > ROUND_TIME {
                report.more = true;
                break;
            }
            if self.is_stopped() {
                (report.stopped, report.more) = (true, false);
                break;
            }
            match self.route_signal(&round, &signal).await? {
                RoutingOutcome::Landed(landing) => *report.landed.entry(landing).or_default() += 1,
                RoutingOutcome::Skipped(skip) => *report.skipped.entry(skip.as_str().to_owned()).or_default() += 1,
                RoutingOutcome::Failed(reason) => report.add_error(format!("{signal}: {reason}")),
                RoutingOutcome::Stopped => {
                    (report.stopped, report.more) = (true, false);
                    break;
                }
            }
        }
        Ok(report)
    }

    async fn route_signal(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
    ) -> Result<RoutingOutcome, ActivityError> {
        // Half landed, a change would be taken for somebody else's.
        let _turn = self.routing.lock().await;
        let read = match self.read_signal(round, reference).await? {
            Ok(read) => read,
            Err(reason) => {
                self.reindex_paths(&[reference]).await?;
                self.record_revisit(round, reference, SignalRevisit::schedule_after(MEND, &reason)).await?;
                return Ok(RoutingOutcome::Failed(reason));
            }
        };
        let routed = self.decide_route(round, reference, &read, round.now);
        let skip = match routed {
            RouteDecision::Skipped(skip) => skip,
            RouteDecision::Planned(_) | RouteDecision::QuestionPlanned(_) => {
                let named_after =
                    self.index.begin_route(reference, round.acts, round.now).await.map_err(retryable_failure)?;
                match self.decide_route(round, reference, &read, named_after) {
                    RouteDecision::Skipped(skip) => skip,
                    RouteDecision::Planned(plan) => return self.apply_route(round, reference, *plan).await,
                    RouteDecision::QuestionPlanned(plan) => match self.cap_and_apply(*plan, Utc::now()).await? {
                        Ok(receipt) => {
                            tracing::info!(signal = %reference, action_id = %receipt.id, "question to a human filed");
                            RouteSkip::Withheld(receipt.id)
                        }
                        Err(e) => return self.defer_route(round, reference, e).await,
                    },
                }
            }
        };
        self.skip_signal(round, reference, (&read, &skip)).await?;
        Ok(RoutingOutcome::Skipped(skip))
    }

    fn decide_route(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        read: &SignalContext,
        decided_at: DateTime<Utc>,
    ) -> RouteDecision {
        let facts = read.facts.as_ref();
        let weighing = match facts {
            Some(facts) if facts.weighed && facts.beside_others => StewardWeighing::DoneBesideOthers,
            // Its steward did not come to it in time, nor to what others say of the same record.
            Some(facts) if self.is_overdue_beside_others(round, facts) => StewardWeighing::DoneBesideOthers,
            Some(facts) if facts.weighed => StewardWeighing::Done,
            Some(facts) => StewardWeighing::Until(self.weighing_deadline(round, facts)),
            None => StewardWeighing::Until(round.now),
        };
        route::plan_signal_route(&RouteCase {
            reference,
            signal: &read.signal,
            target: read.target.as_ref(),
            new_parent: facts.and_then(|f| f.new_parent),
            claim: facts.and_then(|f| f.claim.as_ref()),
            weighing,
            doubt: read.doubt.as_ref(),
            observations: facts.map_or(0, |f| f.observations),
            // Of what is not known, a human is asked.
            ceiling: facts.map_or(Ceiling::Ask, |f| f.ceiling),
            policy: &round.policy,
            notes: facts.map_or(&[], |f| &f.notes),
            workflow: round.workflow.clone(),
            at: round.now,
            decided_at,
        })
    }

    fn is_overdue_beside_others(&self, round: &RoutingRound, facts: &RouteFacts) -> bool {
        !facts.weighed
            && facts.others_wait
            && facts.claim.is_none()
            && self.weighing_deadline(round, facts) <= round.now
    }

    fn matter_interval(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.settings.cadence.matter_seconds))
    }

    /// A steward has one interval of its matter to weigh what came; where it may act, its quiet hours do not count.
    fn weighing_deadline(&self, round: &RoutingRound, facts: &RouteFacts) -> DateTime<Utc> {
        let interval = self.matter_interval();
        let notes = facts.notes.iter().filter(|_| round.acts);
        let turns = notes.map(|note| note.steward_turn_end(facts.first_seen, interval));
        turns.max().unwrap_or(facts.first_seen + interval)
    }

    /// The signal and what it points at, from their files; or why one of them cannot be used.
    async fn read_signal(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
    ) -> Result<Result<SignalContext, String>, ActivityError> {
        let (root, path) = (self.keeper.root().clone(), reference.clone());
        let signal = run_blocking(move || {
            let content = root.read_file(&path).map_err(|e| e.to_string())?;
            let document = frontmatter::read_document(&content.bytes).map_err(|e| format!("failed to {e}"))?;
            Signal::read(document.fields()).map_err(|e| e.to_string())
        });
        let signal = match signal.await? {
            Ok(signal) => signal,
            Err(reason) => return Ok(Err(reason)),
        };
        let Some(path) = signal.target.clone() else {
            return Ok(Ok(SignalContext { signal, target: None, facts: None, doubt: None }));
        };
        let new_parent = signal.proposal.as_ref().and_then(Mutation::new_parent);
        let ask = RouteFactsQuery {
            signal: reference,
            source: &signal.source_type,
            target: &path,
            new_parent,
            acts: round.acts,
            default_ceiling: self.settings.default_ceiling,
        };
        let facts = self.index.read_route_facts(&ask).await.map_err(retryable_failure)?;
        let doubt = match &signal.proposal {
            Some(_) => self.index.find_doubt(reference, &path).await.map_err(retryable_failure)?,
            None => None,
        };
        let (root, known) = (self.keeper.root().clone(), facts.clone());
        match run_blocking(move || read_target(&root, path, known.as_ref())).await? {
            Ok(target) => Ok(Ok(SignalContext { signal, target, facts, doubt })),
            Err(reason) => Ok(Err(reason)),
        }
    }

    async fn apply_route(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        plan: Plan,
    ) -> Result<RoutingOutcome, ActivityError> {
        let target = plan.target().clone();
        let receipt = match self.cap_and_apply(plan, Utc::now()).await? {
            Ok(receipt) => receipt,
            Err(e) => return self.defer_route(round, reference, e).await,
        };
        tracing::info!(
            signal = %reference, target = %target, action_id = %receipt.id, landing = receipt.landing.as_str(),
            repeated = receipt.repeated, "signal routed"
        );
        if round.acts {
            self.mark_signal_status(reference, signal_status_for_receipt(receipt.landing, &receipt)).await?;
        }
        // A lowered source turned the change into a shadow: the next round says so on the signal.
        let is_lowered = round.acts && receipt.landing == Disposition::Shadow;
        let reason = format!("{}: {}", receipt.landing.as_str(), receipt.id);
        let wait = if is_lowered { SOON } else { LATER };
        self.record_revisit(
            round,
            reference,
            SignalRevisit { filed: !is_lowered, ..SignalRevisit::schedule_after(wait, &reason) },
        )
        .await?;
        Ok(RoutingOutcome::Landed(receipt.landing))
    }

    /// A plan that does not fit the record any more waits, and so does one that the machine refuses: it keeps
    /// back no other.
    async fn defer_route(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        e: ApplyError,
    ) -> Result<RoutingOutcome, ActivityError> {
        let wait = match &e {
            ApplyError::ChangedMeanwhile { .. } | ApplyError::Conflict { .. } | ApplyError::Stopped => SOON,
            ApplyError::Record { .. }
            | ApplyError::Root(_)
            | ApplyError::Form(_)
            | ApplyError::Chain(_)
            | ApplyError::Io { .. } => MEND,
        };
        let reason = e.to_string();
        self.record_revisit(round, reference, SignalRevisit::schedule_after(wait, &reason)).await?;
        Ok(if matches!(e, ApplyError::Stopped) { RoutingOutcome::Stopped } else { RoutingOutcome::Failed(reason) })
    }

    async fn skip_signal(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        (read, skip): (&SignalContext, &RouteSkip),
    ) -> Result<(), ActivityError> {
        if skip.is_temporary() {
            let facts = read.facts.as_ref();
            let until = if *skip == RouteSkip::Snoozed {
                read.target.as_ref().and_then(|t| t.snoozed_until)
            } else if *skip == RouteSkip::QuietHours {
                // A human may make them shorter meanwhile.
                let ends = facts.and_then(|f| f.notes.iter().filter_map(|note| note.quiet_until(round.now)).max());
                ends.map(|ends| ends.min(round.now + self.matter_interval()))
            } else {
                facts.map(|f| self.weighing_deadline(round, f))
            };
            let wait = until.map_or(MEND, |until| until - round.now);
            let reason = match until {
                Some(until) => format!("{}: until {}", skip.as_str(), format_millis(until)),
                None => skip.as_str().to_owned(),
            };
            return self.record_revisit(round, reference, SignalRevisit::schedule_after(wait, &reason)).await;
        }
        if round.acts {
            let standing = signal_status_for_skip(skip, read.facts.as_ref().and_then(|f| f.claim.as_ref()));
            self.mark_signal_status(reference, Some(standing)).await?;
        }
        let left = match skip {
            // The moment of an action that was filed stays taken.
            RouteSkip::Claimed(id) => SignalRevisit {
                filed: true,
                ..SignalRevisit::schedule_after(LATER, &format!("{}: {id}", skip.as_str()))
            },
            // It is not met again until its file says something new or a record cites it.
            RouteSkip::Withheld(id) => {
                let question = Some(id.clone());
                SignalRevisit {
                    question,
                    ..SignalRevisit::schedule_after(WITHHELD, &format!("{}: {id}", skip.as_str()))
                }
            }
            _ => {
                let misfit = route::explain_misfit(&read.signal, read.target.as_ref());
                SignalRevisit::schedule_after(LATER, misfit.as_deref().unwrap_or(skip.as_str()))
            }
        };
        self.record_revisit(round, reference, left).await
    }

    async fn record_revisit(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        leave: SignalRevisit,
    ) -> Result<(), ActivityError> {
        let SignalRevisit { wait, filed, reason, question } = leave;
        let (acts, now) = (round.acts, round.now);
        let left = RouteDeferral { acts, until: now + wait, now, filed, reason, question };
        self.index.record_route_deferral(reference, &left).await.map_err(retryable_failure)
    }
}

/// The target as its file says; `None` where there is none, an error where it cannot be understood.
fn read_target(
    root: &steward_vault::files::root::VaultRoot,
    path: RecordPath,
    facts: Option<&RouteFacts>,
) -> Result<Option<RouteTarget>, String> {
    if !matches!(path.kind(), RecordKind::Task | RecordKind::Matter) || !root.exists(&path) {
        return Ok(None);
    }
    let content = root.read_file(&path).map_err(|e| e.to_string())?;
    let document = frontmatter::read_document(&content.bytes).map_err(|e| format!("{path}: failed to {e}"))?;
    let fields = document.fields().clone();
    let unusable = |e| format!("{path}: {e}");
    let (own, snoozed_until) = if path.kind() == RecordKind::Task {
        let task = Task::read(&fields).map_err(unusable)?;
        (task.state, task.snoozed_until)
    } else {
        (Matter::read(&fields).map_err(unusable)?.state, None)
    };
    // What lies under a closed matter is left alone, as in its steward's looks.
    let matter = facts.and_then(|f| f.matter).unwrap_or(RecordState::Open);
    let state = if own == RecordState::Open { matter } else { own };
    let has_twin = facts.is_some_and(|f| f.has_twin);
    Ok(Some(RouteTarget { path, state, snoozed_until, has_twin, hash: content.hash, fields }))
}

#[cfg(test)]
mod tests;
