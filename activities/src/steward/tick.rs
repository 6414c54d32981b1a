//! The activities of a tick that only the holder of the vault serves: observe, reserve, settle, apply, release.
//!
//! Each is thin: it collects the inputs, calls the index, the ledger or the vault writer, and turns the outcome into a
//! value. The policy (mode, thresholds, ceilings) and the stop enter here, because workflow code must not read the
//! environment.

use crate::failure::{non_retryable_failure, retryable_failure};
use crate::steward::clerks::Clerk;
use crate::steward::judge::run_until_cancelled;
use crate::vault::VaultContext;
use chrono::Utc;
use std::sync::Arc;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::hash_description;
use steward_domain::steward::guard::{GuardCap, GuardRefusal, ReserveOutcome, ReserveRequest};
use steward_domain::steward::tick::{MAX_CHECKS_PER_TICK, MatterObservation};
use steward_vault::action::writer::ApplyError;
use steward_vault::index::{CompletedCheck, ObservationQuery};
use steward_vault::steward::guard::{Ledger, LedgerError};
use steward_workflows::activities::{ApplyInput, ApplyOutput, ObserveInput, SettleCallInput};
use steward_workflows::{ClerkEvalInput, ClerkEvalStep};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::mpsc::UnboundedSender;

/// A new interval for the schedule of a matter, in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInterval {
    pub matter: RecordPath,
    pub seconds: u32,
}

/// What a tick works with.
#[derive(Clone)]
pub struct StewardActivities {
    pub vault: VaultContext,
    pub ledger: Arc<Ledger>,
    /// The clerk whose answers are cached here. Other processes may ask it.
    pub clerk: Arc<Clerk>,
    /// Receives the new interval when a matter's cadence changes.
    pub intervals: UnboundedSender<NewInterval>,
}

impl StewardActivities {
    pub(crate) async fn observe_matter(&self, input: ObserveInput) -> Result<MatterObservation, ActivityError> {
        self.vault.publish_filed_resolutions().await?;
        let before = self
            .vault
            .index
            .read()
            .read_matter_interval(&input.matter, &self.vault.settings.cadence)
            .await
            .map_err(retryable_failure)?;
        let mut observation = self
            .vault
            .index
            .cursors()
            .observe_due_tasks(&ObservationQuery {
                matter: input.matter,
                check_id: input.check_id,
                now: Utc::now(),
                cadence: self.vault.settings.cadence,
                policy: self.vault.settings.policy.clone(),
                default_ceiling: self.vault.settings.default_ceiling,
                stopped: self.vault.is_stopped(),
                max_checks: MAX_CHECKS_PER_TICK,
            })
            .await
            .map_err(retryable_failure)?;
        if before != observation.interval_seconds {
            let change = NewInterval { matter: observation.matter.clone(), seconds: observation.interval_seconds };
            // The receiver is gone only while the process ends. The registrar reads the interval from the index at the
            // next start.
            let _ = self.intervals.send(change);
        }
        for check in &mut observation.task_checks {
            let subject = &mut check.question.subject;
            subject.description_hash = self.read_description(&subject.task).await?.as_deref().map(hash_description);
            check.known_verdict = self.recall_verdict(&check.question).await?;
        }
        observation.display = self.vault.settings.display.clone();
        Ok(observation)
    }

    pub(crate) async fn reserve_call(&self, mut input: ReserveRequest) -> Result<ReserveOutcome, ActivityError> {
        input.tokens = input.tokens.saturating_add(self.clerk.verdict_overhead_tokens());
        let outcome = match self.vault.find_hold().await {
            Some(reason) => refuse_held(reason),
            None => reserve_in_turn(&self.ledger, &self.clerk, &input).await,
        };
        let now = Utc::now();
        if let ReserveOutcome::Refused(refusal) = &outcome {
            let task = input.task.unwrap_or_default();
            match (refusal.cap, RecordPath::parse(&task)) {
                (GuardCap::LedgerUnreadable, Ok(target)) => self.vault.try_again_later(&target).await,
                (GuardCap::Stopped, Ok(target)) => self.wake_after_stop(&target).await?,
                // The database may have gone at this moment. Then the task goes on when it is back.
                (GuardCap::Gate, Ok(target)) if self.vault.find_hold().await.is_some() => {
                    self.wake_after_stop(&target).await?;
                }
                (_, _) => {}
            }
            tracing::warn!(task, reason = %refusal.reason, "clerk call refused");
            self.vault
                .index
                .cursors()
                .count_check(now, "rate_guarded", &input.call_id.0)
                .await
                .map_err(retryable_failure)?;
        }
        Ok(outcome)
    }

    /// Marks the target's matter, so that its task is judged after the stop, even if this run ends later.
    async fn wake_after_stop(&self, target: &RecordPath) -> Result<(), ActivityError> {
        self.vault.index.cursors().mark_matter_again(target, Utc::now()).await.map_err(retryable_failure)
    }

    pub(crate) async fn settle_call(&self, input: SettleCallInput) -> Result<(), ActivityError> {
        if let Some((question, judged)) = &input.answer {
            self.remember_verdict(question, judged).await;
        }
        self.ledger.settle(&input.settlement, Utc::now()).await.map_err(|e| {
            let is_temporary = matches!(e, LedgerError::Busy { .. } | LedgerError::Changed { .. });
            if is_temporary { retryable_failure(e) } else { non_retryable_failure(e) }
        })
    }

    pub(crate) async fn apply_decision(&self, ask: ApplyInput) -> Result<ApplyOutput, ActivityError> {
        let target = ask.plan.target().clone();
        let decision = ask.plan.draft().decision;
        let observed_at = ask.observed_at;
        let receipt = match self.vault.cap_and_apply(ask.plan, Utc::now()).await? {
            Ok(receipt) => receipt,
            Err(e) => {
                if e.is_held() {
                    self.wake_after_stop(&target).await?;
                }
                return map_apply_error(e);
            }
        };
        let done = CompletedCheck {
            task: target.clone(),
            check_id: ask.check_id,
            observed_at,
            had_signals: ask.had_signals,
            outcome: decision.as_str().to_owned(),
            clock: ask.clock,
            cadence: self.vault.settings.cadence,
        };
        if let Err(e) = self.vault.index.cursors().record_check(&done).await {
            if self.vault.can_write().await {
                return Err(retryable_failure(e));
            }
            tracing::warn!(task = %target, error = %e, "decided; the check is recorded when the disk can be written");
            self.vault.index.cursors().record_check_later(done);
        }
        tracing::info!(
            task = %target, action_id = %receipt.id, decision = decision.as_str(), disposition = receipt.disposition.as_str(),
            repeated = receipt.repeated, "decision filed"
        );
        Ok(ApplyOutput::Filed { action_id: receipt.id, record: receipt.record, disposition: receipt.disposition })
    }
}

#[activities]
impl StewardActivities {
    #[activity(definition = steward_workflows::activities::Observe)]
    pub async fn observe(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ObserveInput,
    ) -> Result<MatterObservation, ActivityError> {
        let matter = input.matter.clone();
        self.vault.retry_later_on_failure(&matter, self.observe_matter(input)).await
    }

    #[activity(definition = steward_workflows::activities::Reserve)]
    pub async fn reserve(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ReserveRequest,
    ) -> Result<ReserveOutcome, ActivityError> {
        self.reserve_call(input).await
    }

    #[activity(definition = steward_workflows::activities::Settle)]
    pub async fn settle(self: Arc<Self>, _ctx: ActivityContext, input: SettleCallInput) -> Result<(), ActivityError> {
        self.settle_call(input).await
    }

    #[activity(definition = steward_workflows::activities::Apply)]
    pub async fn apply(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ApplyInput,
    ) -> Result<ApplyOutput, ActivityError> {
        let target = input.plan.target().clone();
        self.vault.retry_later_on_failure(&target, self.apply_decision(input)).await
    }

    #[activity(definition = steward_workflows::activities::EvalClerk)]
    pub async fn eval_clerk(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: ClerkEvalInput,
    ) -> Result<ClerkEvalStep, ActivityError> {
        run_until_cancelled(&ctx, self.ask_next_case(&input)).await
    }

    #[activity(definition = steward_workflows::activities::Release)]
    pub async fn release(self: Arc<Self>, _ctx: ActivityContext, run_id: String) -> Result<(), ActivityError> {
        let released = self.vault.index.cursors().release_leases(&run_id).await;
        if released.is_err() && !self.vault.can_write().await {
            self.vault.index.cursors().release_leases_later(&run_id);
            return Ok(());
        }
        released.map_err(retryable_failure)
    }
}

/// Reserves a call. A gate's leave is good for seconds, so the call waits for its turn before it asks.
pub(crate) async fn reserve_in_turn(ledger: &Ledger, clerk: &Clerk, request: &ReserveRequest) -> ReserveOutcome {
    if ledger.has_gate()
        && let Err(reason) = clerk.wait_for_turn().await
    {
        return ReserveOutcome::Refused(GuardRefusal { cap: GuardCap::Provider, clears_at: None, reason });
    }
    ledger.reserve(request, Utc::now()).await
}

fn refuse_held(reason: String) -> ReserveOutcome {
    ReserveOutcome::Refused(GuardRefusal { cap: GuardCap::Stopped, clears_at: None, reason })
}

/// Turns a plan that no longer fits its record into a value; a failure of the machine stays a failure.
fn map_apply_error(e: ApplyError) -> Result<ApplyOutput, ActivityError> {
    match e {
        ApplyError::ChangedMeanwhile { .. } | ApplyError::Conflict { .. } => Ok(ApplyOutput::ChangedMeanwhile),
        ApplyError::Record { .. } | ApplyError::Root(_) => Ok(ApplyOutput::Unusable { reason: e.to_string() }),
        ApplyError::Stopped | ApplyError::NotPermitted { .. } => Ok(ApplyOutput::Stopped),
        ApplyError::Form(_) | ApplyError::Chain(_) | ApplyError::Io { .. } => Err(retryable_failure(e)),
    }
}
