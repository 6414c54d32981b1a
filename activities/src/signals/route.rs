//! Runs the router's rounds: turns each signal into a plan or into a named reason to skip it, one after the other.
//!
//! A signal and its target are read from their files. Earlier actions and trust come from the index.
//! [`mod@steward_domain::signals::route`] decides, and the vault writer applies the plan. A round that is repeated
//! after a crash gives the same result: a filed record claims its signal, and its name is the same for every try. In
//! shadow mode a signal's file must not change. The index keeps the reason for every signal that the router has met.

mod revisit;
mod status;
mod target;

use self::revisit::SignalRevisit;
use self::status::{signal_status_for_receipt, signal_status_for_skip};
use self::target::{TargetQuery, read_target};
use crate::failure::retryable_failure;
use crate::signals::SignalActivities;
use crate::vault::run_blocking;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{Disposition, Plan};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::route::{
    self, ProposalDoubt, RouteCase, RouteDecision, RouteSkip, RouteTarget, StewardWeighing,
};
use steward_domain::signals::signal::Signal;
use steward_domain::time::format_millis;
use steward_vault::action::writer::ApplyError;
use steward_vault::index::{DeferralBasis, RouteFacts, RouteFactsQuery};
use steward_workflows::activities::RouteOutput;
use temporalio_common::ActivityError;

/// No signal is begun later than this into a round: 15 s, because the activity may take 30 s.
const ROUND_TIME: Duration = Duration::from_secs(15);
/// When a file that cannot be used is checked again: 10 min.
const RECHECK_UNUSABLE: TimeDelta = TimeDelta::minutes(10);
/// When a finished signal is checked again, in case its status does not show that: 6 h.
const RECHECK_FINISHED: TimeDelta = TimeDelta::hours(6);
/// When a signal that is listed on a question is checked again: 10 years, so never by time alone.
const RECHECK_WITHHELD: TimeDelta = TimeDelta::days(3_650);
/// When a change is tried again that a person's edit or a stop prevented: 10 s.
const RETRY_SOON: TimeDelta = TimeDelta::seconds(10);

/// What all signals of one round share.
struct RoutingRound {
    policy: DecisionPolicy,
    /// The mode allows changes.
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
    /// An operator stopped the vault. Nothing was filed, and the signal is tried again soon.
    Stopped,
}

/// A signal, with its target and the facts about both, as far as it has a target.
struct SignalContext {
    signal: Signal,
    target: Option<RouteTarget>,
    facts: Option<RouteFacts>,
    doubt: Option<ProposalDoubt>,
}

impl SignalContext {
    fn basis(&self) -> Option<DeferralBasis> {
        let target = self.signal.target.clone()?;
        Some(DeferralBasis { target, actions: self.facts.as_ref()?.target_actions })
    }

    fn count_own_action(&mut self, repeated: bool) {
        if let Some(facts) = self.facts.as_mut().filter(|_| !repeated) {
            facts.target_actions += 1;
        }
    }
}

impl SignalActivities {
    /// Routes at most `limit` signals.
    pub(crate) async fn route_signals(&self, limit: u32, workflow: WorkflowRef) -> Result<RouteOutput, ActivityError> {
        if self.vault.is_stopped() {
            return Ok(RouteOutput { stopped: true, ..RouteOutput::default() });
        }
        let policy = self.vault.settings.policy.clone();
        let round = RoutingRound { acts: policy.mode > Mode::Shadow, policy, workflow, now: Utc::now() };
        let limit = limit as usize;
        let signals = self
            .vault
            .index
            .signals()
            .list_signals_to_route(limit, round.now, round.acts)
            .await
            .map_err(retryable_failure)?;
        let mut report = RouteOutput { more: signals.len() == limit, ..RouteOutput::default() };
        let started = Instant::now();
        for signal in signals {
            if started.elapsed() > ROUND_TIME {
                report.more = true;
                break;
            }
            if self.vault.is_stopped() {
                (report.stopped, report.more) = (true, false);
                break;
            }
            match self.route_signal(&round, &signal).await? {
                RoutingOutcome::Landed(disposition) => *report.dispositions.entry(disposition).or_default() += 1,
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
        // A second run must not meet a half-applied change: it would take it for another party's.
        let _guard = self.routing_lock.lock().await;
        let mut context = match self.read_signal(round, reference).await? {
            Ok(context) => context,
            Err(reason) => {
                self.vault.reindex_paths(&[reference]).await?;
                self.record_revisit(round, reference, SignalRevisit::schedule_after(RECHECK_UNUSABLE, &reason)).await?;
                return Ok(RoutingOutcome::Failed(reason));
            }
        };
        let skip = match self.decide_route(round, reference, &context, round.now) {
            RouteDecision::Skipped(skip) => skip,
            RouteDecision::Planned(_) | RouteDecision::QuestionPlanned(_) => {
                let decided_at = self
                    .vault
                    .index
                    .signals()
                    .begin_route(reference, round.acts, round.now)
                    .await
                    .map_err(retryable_failure)?;
                match self.decide_route(round, reference, &context, decided_at) {
                    RouteDecision::Skipped(skip) => skip,
                    RouteDecision::Planned(plan) => return self.apply_route(round, reference, *plan).await,
                    RouteDecision::QuestionPlanned(plan) => match self.vault.cap_and_apply(*plan, Utc::now()).await? {
                        Ok(receipt) => {
                            // The question itself is no news about the target.
                            context.count_own_action(receipt.repeated);
                            tracing::info!(signal = %reference, action_id = %receipt.id, "question filed for a person");
                            RouteSkip::Withheld(receipt.id)
                        }
                        Err(e) => return self.defer_route(round, reference, e).await,
                    },
                }
            }
        };
        self.skip_signal(round, reference, &context, &skip).await?;
        Ok(RoutingOutcome::Skipped(skip))
    }

    fn decide_route(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        context: &SignalContext,
        decided_at: DateTime<Utc>,
    ) -> RouteDecision {
        let facts = context.facts.as_ref();
        let weighing = match facts {
            Some(facts) if facts.weighed && facts.weighed_with_others => StewardWeighing::DoneBesideOthers,
            // The steward did not judge it in time, nor the signals of other sources about the same record.
            Some(facts) if self.is_overdue_beside_others(round, facts) => StewardWeighing::DoneBesideOthers,
            Some(facts) if facts.weighed => StewardWeighing::Done,
            Some(facts) => StewardWeighing::Until(self.weighing_deadline(round, facts)),
            None => StewardWeighing::Until(round.now),
        };
        route::plan_signal_route(&RouteCase {
            reference,
            signal: &context.signal,
            target: context.target.as_ref(),
            new_parent: facts.and_then(|f| f.new_parent),
            claim: facts.and_then(|f| f.claim.as_ref()),
            weighing,
            doubt: context.doubt.as_ref(),
            observations: facts.map_or(0, |f| f.observations),
            // Without facts a person is asked.
            ceiling: facts.map_or(Ceiling::Ask, |f| f.ceiling),
            policy: &round.policy,
            matter_policies: facts.map_or(&[], |f| &f.policies),
            workflow: round.workflow.clone(),
            at: round.now,
            decided_at,
        })
    }

    fn is_overdue_beside_others(&self, round: &RoutingRound, facts: &RouteFacts) -> bool {
        !facts.weighed
            && facts.other_sources_wait
            && facts.claim.is_none()
            && self.weighing_deadline(round, facts) <= round.now
    }

    fn matter_interval(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.vault.settings.cadence.matter_seconds))
    }

    /// When the steward's time to judge the signal ends: one interval after it came.
    ///
    /// Where changes are allowed, the matter's quiet hours do not count.
    fn weighing_deadline(&self, round: &RoutingRound, facts: &RouteFacts) -> DateTime<Utc> {
        let interval = self.matter_interval();
        let notes = facts.policies.iter().filter(|_| round.acts);
        let ends = notes.map(|note| note.steward_turn_end(facts.first_seen, interval));
        ends.max().unwrap_or(facts.first_seen + interval)
    }

    /// Reads the signal and its target from their files; or returns why one of them cannot be used.
    async fn read_signal(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
    ) -> Result<Result<SignalContext, String>, ActivityError> {
        let (root, path) = (self.vault.writer.root().clone(), reference.clone());
        let signal = run_blocking(move || {
            let content = root.read_file(&path).map_err(|e| e.to_string())?;
            let document = frontmatter::read_document(&content.bytes).map_err(|e| format!("failed to {e}"))?;
            Signal::read(document.fields()).map_err(|e| e.to_string())
        });
        let names = self.vault.index.read_note_names().await.map_err(retryable_failure)?;
        let signal = match signal.await? {
            Ok(signal) => signal.resolve_links(&names, &self.vault.index.note_moves()),
            Err(reason) => return Ok(Err(reason)),
        };
        let Some(path) = signal.target.clone() else {
            return Ok(Ok(SignalContext { signal, target: None, facts: None, doubt: None }));
        };
        let new_parent = signal.proposal.as_ref().and_then(Mutation::new_parent);
        let query = RouteFactsQuery {
            signal: reference,
            source: &signal.source_type,
            target: &path,
            new_parent,
            acts: round.acts,
            default_ceiling: self.vault.settings.default_ceiling,
        };
        let facts = self.vault.index.signals().read_route_facts(&query).await.map_err(retryable_failure)?;
        let doubt = match &signal.proposal {
            Some(_) => self.vault.index.signals().find_doubt(reference, &path).await.map_err(retryable_failure)?,
            None => None,
        };
        let (root, schema) = (self.vault.writer.root().clone(), Arc::clone(self.vault.index.note_schema()));
        let (target_facts, proposal) = (facts.clone(), signal.proposal.clone());
        let read = move || {
            let query = TargetQuery { facts: target_facts.as_ref(), proposal: proposal.as_ref() };
            read_target(&root, &schema, path, query)
        };
        match run_blocking(read).await? {
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
        let receipt = match self.vault.cap_and_apply(plan, Utc::now()).await? {
            Ok(receipt) => receipt,
            Err(e) => return self.defer_route(round, reference, e).await,
        };
        tracing::info!(
            signal = %reference, target = %target, action_id = %receipt.id, disposition = receipt.disposition.as_str(),
            repeated = receipt.repeated, "signal routed"
        );
        if round.acts {
            self.vault.mark_signal_status(reference, signal_status_for_receipt(receipt.disposition, &receipt)).await?;
        }
        // A demotion turned the change into a shadow. The next round writes that to the signal.
        let is_demoted = round.acts && receipt.disposition == Disposition::Shadow;
        let reason = format!("{}: {}", receipt.disposition.as_str(), receipt.id);
        let wait = if is_demoted { RETRY_SOON } else { RECHECK_FINISHED };
        self.record_revisit(
            round,
            reference,
            SignalRevisit { filed: !is_demoted, ..SignalRevisit::schedule_after(wait, &reason) },
        )
        .await?;
        Ok(RoutingOutcome::Landed(receipt.disposition))
    }

    /// Lets a plan wait that no longer fits its record, or that a disk error stopped. Other signals go on.
    async fn defer_route(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        e: ApplyError,
    ) -> Result<RoutingOutcome, ActivityError> {
        let wait = match &e {
            ApplyError::ChangedMeanwhile { .. }
            | ApplyError::Conflict { .. }
            | ApplyError::Stopped
            | ApplyError::NotPermitted { .. } => RETRY_SOON,
            ApplyError::Record { .. }
            | ApplyError::Root(_)
            | ApplyError::Form(_)
            | ApplyError::Chain(_)
            | ApplyError::Io { .. } => RECHECK_UNUSABLE,
        };
        let reason = e.to_string();
        self.record_revisit(round, reference, SignalRevisit::schedule_after(wait, &reason)).await?;
        Ok(if e.is_held() { RoutingOutcome::Stopped } else { RoutingOutcome::Failed(reason) })
    }

    async fn skip_signal(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        context: &SignalContext,
        skip: &RouteSkip,
    ) -> Result<(), ActivityError> {
        if skip.is_temporary() {
            let facts = context.facts.as_ref();
            let until = if *skip == RouteSkip::Snoozed {
                context.target.as_ref().and_then(|t| t.snoozed_until)
            } else if *skip == RouteSkip::QuietHours {
                // A person may shorten the quiet hours meanwhile.
                let ends = facts.and_then(|f| f.policies.iter().filter_map(|note| note.quiet_until(round.now)).max());
                ends.map(|ends| ends.min(round.now + self.matter_interval()))
            } else {
                facts.map(|f| self.weighing_deadline(round, f))
            };
            let wait = until.map_or(RECHECK_UNUSABLE, |until| until - round.now);
            let reason = match until {
                Some(until) => format!("{}: until {}", skip.as_str(), format_millis(until)),
                None => skip.as_str().to_owned(),
            };
            let revisit = SignalRevisit { basis: context.basis(), ..SignalRevisit::schedule_after(wait, &reason) };
            return self.record_revisit(round, reference, revisit).await;
        }
        if round.acts {
            let claim = context.facts.as_ref().and_then(|f| f.claim.as_ref());
            self.vault.mark_signal_status(reference, Some(signal_status_for_skip(skip, claim))).await?;
        }
        let revisit = match skip {
            // A filed action keeps the moment that it is named after.
            RouteSkip::Claimed(id) => SignalRevisit {
                filed: true,
                ..SignalRevisit::schedule_after(RECHECK_FINISHED, &format!("{}: {id}", skip.as_str()))
            },
            // It is not met again until its file changes or a record cites it.
            RouteSkip::Withheld(id) => {
                let question = Some(id.clone());
                SignalRevisit {
                    question,
                    basis: context.basis(),
                    ..SignalRevisit::schedule_after(RECHECK_WITHHELD, &format!("{}: {id}", skip.as_str()))
                }
            }
            _ => {
                let misfit = route::explain_misfit(&context.signal, context.target.as_ref());
                SignalRevisit::schedule_after(RECHECK_FINISHED, misfit.as_deref().unwrap_or(skip.as_str()))
            }
        };
        self.record_revisit(round, reference, revisit).await
    }
}

#[cfg(test)]
mod tests;
