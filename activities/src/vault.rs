//! The activities of the process that holds the vault.
//!
//! Each activity is thin: it collects the inputs, calls the index, the ledger or the vault writer, and turns the
//! outcome into a value. The policy (mode, thresholds, ceilings) and the stop enter here. Workflow code must not read
//! the environment.

mod disk;

use crate::failure::{non_retryable_failure, retryable_failure};
use crate::signals::purge;
use crate::steward::clerks::Clerk;
use crate::steward::judge::run_until_cancelled;
use crate::trust::calibrate::{self, CallDeadline};
use crate::trust::drill;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::{Disposition, Plan};
use steward_domain::gates::landing::LandingSettings;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::guard::{GuardCap, GuardRefusal, ReserveOutcome, ReserveRequest};
use steward_domain::steward::tick::{Cadence, MatterObservation};
use steward_vault::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use steward_vault::files::crash;
use steward_vault::gates::stop;
use steward_vault::index::{CompletedCheck, Index, ObservationQuery};
use steward_vault::steward::guard::{Ledger, LedgerError};
use steward_workflows::CalibrateOutput;
use steward_workflows::DrillOutput;
use steward_workflows::activities::{
    ApplyInput, ApplyOutput, ObserveInput, PurgeInput, PurgeOutput, ResolveInput, ResolveOutput, RouteInput,
    RouteOutput, SettleCallInput,
};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

pub use crate::action::resolve::FiledResolution;
pub use steward_domain::steward::tick::MAX_CHECKS_PER_TICK;

/// The settings from environment and configuration, fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// The policy of this process. Nothing raises its mode or its ceilings.
    pub policy: DecisionPolicy,
    pub default_ceiling: Ceiling,
    pub cadence: Cadence,
    /// How long an extracted event is kept, in days.
    pub keep_events_days: u32,
    /// Live changes that one source may lead to in 24 hours.
    pub live_per_source_day: u32,
    /// The share of live changes that may be undone before a source or a class is demoted, 0 to 1.
    pub reversal_budget: f64,
}

/// A new interval for the schedule of a matter, in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInterval {
    pub matter: RecordPath,
    pub seconds: u32,
}

/// What the vault's activities work with: the writer, the index, the ledger and the settings. Cheap to clone.
#[derive(Clone)]
pub struct VaultContext {
    pub writer: Arc<VaultWriter>,
    pub index: Arc<Index>,
    pub ledger: Arc<Ledger>,
    pub settings: VaultSettings,
    /// The clerk whose answers are cached here. Other processes may ask it.
    pub clerk: Arc<Clerk>,
    /// Receives the new interval when a matter's cadence changes.
    pub intervals: UnboundedSender<NewInterval>,
    /// Held while a live change is applied, so that each change is counted before the next one.
    pub apply_lock: Arc<Mutex<()>>,
    /// Held while one signal is routed, because two runs of the router may overlap.
    pub routing_lock: Arc<Mutex<()>>,
    /// Held by one calibration at a time, because a cancelled one may not have ended yet.
    pub calibration_lock: Arc<Mutex<()>>,
    /// Filed resolutions that the index and the signals do not show yet.
    pub unpublished_resolutions: Arc<Mutex<Vec<FiledResolution>>>,
}

impl VaultContext {
    pub(crate) fn is_stopped(&self) -> bool {
        stop::is_stopped(self.writer.root())
    }

    async fn observe_matter(&self, input: ObserveInput) -> Result<MatterObservation, ActivityError> {
        self.publish_filed_resolutions().await?;
        let before = self
            .index
            .read()
            .read_matter_interval(&input.matter, &self.settings.cadence)
            .await
            .map_err(retryable_failure)?;
        let mut observation = self
            .index
            .cursors()
            .observe_due_tasks(&ObservationQuery {
                matter: input.matter,
                check_id: input.look_id,
                now: Utc::now(),
                cadence: self.settings.cadence,
                policy: self.settings.policy.clone(),
                default_ceiling: self.settings.default_ceiling,
                stopped: self.is_stopped(),
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
            check.known_verdict = self.recall_verdict(&check.question).await?;
        }
        Ok(observation)
    }

    async fn reserve_call(&self, input: ReserveRequest) -> Result<ReserveOutcome, ActivityError> {
        let now = Utc::now();
        let outcome = if self.is_stopped() { stopped_refusal() } else { self.ledger.reserve(&input, now).await };
        if let ReserveOutcome::Refused(refusal) = &outcome {
            let task = input.task.unwrap_or_default();
            match (refusal.cap, RecordPath::parse(&task)) {
                (GuardCap::LedgerUnreadable, Ok(target)) => self.try_again_later(&target).await,
                (GuardCap::Stopped, Ok(target)) => self.wake_after_stop(&target).await?,
                (_, _) => {}
            }
            tracing::warn!(task, reason = %refusal.reason, "clerk call refused");
            self.index.cursors().count_check(now, "rate_guarded", &input.call_id.0).await.map_err(retryable_failure)?;
        }
        Ok(outcome)
    }

    /// Marks the target's matter, so that its task is judged after the stop, even if this run ends later.
    async fn wake_after_stop(&self, target: &RecordPath) -> Result<(), ActivityError> {
        self.index.cursors().mark_matter_again(target, Utc::now()).await.map_err(retryable_failure)
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
        let receipt = match self.cap_and_apply(ask.plan, Utc::now()).await? {
            Ok(receipt) => receipt,
            Err(e) => {
                if matches!(e, ApplyError::Stopped) {
                    self.wake_after_stop(&target).await?;
                }
                return map_apply_error(e);
            }
        };
        let done = CompletedCheck {
            task: target.clone(),
            check_id: ask.look_id,
            observed_at,
            had_signals: ask.had_signals,
            outcome: decision.as_str().to_owned(),
            clock: ask.clock,
            cadence: self.settings.cadence,
        };
        if let Err(e) = self.index.cursors().record_check(&done).await {
            if self.can_write().await {
                return Err(retryable_failure(e));
            }
            tracing::warn!(task = %target, error = %e, "decided; the check is recorded when the disk can be written");
            self.index.cursors().record_check_later(done);
        }
        tracing::info!(
            task = %target, action_id = %receipt.id, decision = decision.as_str(), disposition = receipt.disposition.as_str(),
            repeated = receipt.repeated, "decision filed"
        );
        Ok(ApplyOutput::Filed { action_id: receipt.id, record: receipt.record, disposition: receipt.disposition })
    }

    /// Applies a plan within the limits that hold now, and updates the index.
    ///
    /// The limits are the policy of this process, trust, the budgets of the sources and the policies in matter notes.
    ///
    /// # Errors
    /// When the index cannot be read or written. A refusal by the vault writer is a value.
    pub async fn cap_and_apply(
        &self,
        plan: Plan,
        now: DateTime<Utc>,
    ) -> Result<Result<ActionReceipt, ApplyError>, ActivityError> {
        if plan.disposition() == Disposition::Live {
            self.catch_up_index().await?;
        }
        let _turn = if plan.disposition() == Disposition::Live { Some(self.apply_lock.lock().await) } else { None };
        if plan.disposition() >= Disposition::Pending {
            let new_parent = plan.draft().proposal.as_ref().and_then(|proposal| proposal.mutation.new_parent());
            self.refresh_stale_matters(plan.target(), new_parent, now).await?;
        }
        let facts = self.index.gates().read_landing_facts(plan.draft(), self.settings.default_ceiling, now).await;
        let settings =
            LandingSettings { policy: &self.settings.policy, live_per_source_day: self.settings.live_per_source_day };
        let plan = plan.hold_at_landing(settings, &facts.map_err(retryable_failure)?, now);
        let (target, keeper) = (plan.target().clone(), Arc::clone(&self.writer));
        let applied = run_blocking(move || keeper.apply_plan(plan)).await?;
        crash::die_if_armed("before-indexing");
        match &applied {
            Ok(receipt) => self.reindex_or_defer(&[&target, &receipt.record]).await?,
            Err(_) => self.reindex_paths(&[&target]).await?,
        }
        Ok(applied)
    }

    /// Reads the matters again that a plan concerns, where their files differ from the index: the watcher may not have
    /// seen yet that one of them was edited, renamed or deleted.
    pub(crate) async fn refresh_stale_matters(
        &self,
        target: &RecordPath,
        new_parent: Option<&RecordPath>,
        now: DateTime<Utc>,
    ) -> Result<(), ActivityError> {
        let root = self.writer.root();
        let stale = self.index.gates().list_stale_matters(root, target, new_parent).await.map_err(retryable_failure)?;
        if !stale.is_empty() {
            self.index.sync_paths(root, &stale, now).await.map_err(retryable_failure)?;
        }
        Ok(())
    }

    /// Files an audit record that changes no other record, and updates the index.
    pub(crate) async fn file_record(&self, plan: Plan) -> Result<(), ActivityError> {
        let writer = Arc::clone(&self.writer);
        let receipt = run_blocking(move || writer.file_plan(&plan)).await?.map_err(retryable_failure)?;
        self.reindex_paths(&[&receipt.record]).await
    }

    /// Calibrates trust from the records as of `now`, as `ReversalCalibrationWorkflow` does.
    ///
    /// One call has limited time; `more` in the output says that something is left.
    ///
    /// # Errors
    /// When the vault or its index cannot be read or written. A repeated call is safe.
    pub async fn calibrate_trust(
        &self,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<CalibrateOutput, ActivityError> {
        calibrate::run_calibration(self, CallDeadline::from_now, workflow, now).await
    }

    /// Reads files that were just written into the index, so that the next check need not wait for the watcher.
    pub(crate) async fn reindex_paths(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let paths: Vec<RecordPath> = paths.iter().map(|p| (*p).clone()).collect();
        self.index.sync_paths(self.writer.root(), &paths, Utc::now()).await.map(drop).map_err(retryable_failure)
    }
}

#[activities]
impl VaultContext {
    #[activity(definition = steward_workflows::activities::Observe)]
    pub async fn observe(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ObserveInput,
    ) -> Result<MatterObservation, ActivityError> {
        let matter = input.matter.clone();
        self.retry_later_on_failure(&matter, self.observe_matter(input)).await
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
        self.retry_later_on_failure(&target, self.apply_decision(input)).await
    }

    #[activity(definition = steward_workflows::activities::Release)]
    pub async fn release(self: Arc<Self>, _ctx: ActivityContext, run_id: String) -> Result<(), ActivityError> {
        let released = self.index.cursors().release_leases(&run_id).await;
        if released.is_err() && !self.can_write().await {
            self.index.cursors().release_leases_later(&run_id);
            return Ok(());
        }
        released.map_err(retryable_failure)
    }

    #[activity(definition = steward_workflows::activities::Route)]
    pub async fn route(self: Arc<Self>, ctx: ActivityContext, input: RouteInput) -> Result<RouteOutput, ActivityError> {
        let routed = self.route_signals(input.limit, read_workflow_ref(&ctx)).await;
        if routed.is_err() && !self.can_write().await {
            self.index.cursors().run_routines_again();
        }
        routed
    }

    #[activity(definition = steward_workflows::activities::Purge)]
    pub async fn purge(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: PurgeInput,
    ) -> Result<PurgeOutput, ActivityError> {
        purge::purge_events(&self, &input, Utc::now()).await
    }

    #[activity(definition = steward_workflows::activities::Calibrate)]
    pub async fn calibrate(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<CalibrateOutput, ActivityError> {
        run_until_cancelled(&ctx, self.calibrate_trust(read_workflow_ref(&ctx), Utc::now())).await
    }

    #[activity(definition = steward_workflows::activities::StepBack)]
    pub async fn step_back(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<u64, ActivityError> {
        let steps = calibrate::apply_demotions(&self, &read_workflow_ref(&ctx), Utc::now()).await?;
        Ok(steps.len() as u64)
    }

    #[activity(definition = steward_workflows::activities::Drill)]
    pub async fn drill(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<DrillOutput, ActivityError> {
        drill::drill_all(&self, read_workflow_ref(&ctx), Utc::now()).await
    }

    #[activity(definition = steward_workflows::activities::Answer)]
    pub async fn answer(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: ResolveInput,
    ) -> Result<ResolveOutput, ActivityError> {
        self.handle_resolution(input, read_workflow_ref(&ctx)).await
    }
}

pub(crate) fn read_workflow_ref(ctx: &ActivityContext) -> WorkflowRef {
    let info = ctx.info();
    WorkflowRef {
        id: info.workflow_id.clone().unwrap_or_default(),
        run_id: info.workflow_run_id.clone().unwrap_or_default(),
    }
}

/// Runs file work on a blocking thread. A panic there is a retryable failure.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ActivityError> {
    // The span is opened here and entered there: one opened on the blocking thread would have no parent.
    let span = tracing::info_span!("file write");
    tokio::task::spawn_blocking(move || span.in_scope(work)).await.map_err(retryable_failure)
}

fn stopped_refusal() -> ReserveOutcome {
    ReserveOutcome::Refused(GuardRefusal {
        cap: GuardCap::Stopped,
        clears_at: None,
        reason: "the fleet is stopped: `steward resume` lets it run again".into(),
    })
}

/// Turns a plan that no longer fits its record into a value; a failure of the machine stays a failure.
fn map_apply_error(e: ApplyError) -> Result<ApplyOutput, ActivityError> {
    match e {
        ApplyError::ChangedMeanwhile { .. } | ApplyError::Conflict { .. } => Ok(ApplyOutput::ChangedMeanwhile),
        ApplyError::Record { .. } | ApplyError::Root(_) => Ok(ApplyOutput::Unusable { reason: e.to_string() }),
        ApplyError::Stopped => Ok(ApplyOutput::Stopped),
        ApplyError::Form(_) | ApplyError::Chain(_) | ApplyError::Io { .. } => Err(retryable_failure(e)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
