//! The activities of the process that holds the vault.
//!
//! Thin: each gathers what the vault's own parts need, calls one of them, and turns what came of
//! it into a value. The policy (mode, thresholds, ceilings) and the stop enter here, so that
//! workflow code sees no environment.

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
use steward_vault::index::{CompletedCheck, Index, ObservationQuery as Look};
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
pub use steward_domain::steward::tick::MAX_LOOKS;

/// What the environment and the configuration say, fixed for the life of the process.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// The ceiling of this process; nothing raises it.
    pub policy: DecisionPolicy,
    pub default_ceiling: Ceiling,
    pub cadence: Cadence,
    /// How long an extracted event is kept, in days.
    pub keep_events_days: u32,
    /// Live changes that one source may lead to in 24 hours.
    pub live_per_source_day: u32,
    /// The share of live changes that may be undone before a source or a class goes one step back, 0 to 1.
    pub reversal_budget: f64,
}

/// A matter's schedule should have another interval from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInterval {
    pub matter: RecordPath,
    pub seconds: u32,
}

/// The vault's own parts, held together for the activities. Cheap to clone.
#[derive(Clone)]
pub struct VaultContext {
    pub keeper: Arc<VaultWriter>,
    pub index: Arc<Index>,
    pub ledger: Arc<Ledger>,
    pub settings: VaultSettings,
    /// Whose answers are kept and given again; asked elsewhere.
    pub clerk: Arc<Clerk>,
    /// Where changes of a matter's cadence go.
    pub intervals: UnboundedSender<NewInterval>,
    /// Changes land one after the other, each counted before the next.
    pub landing: Arc<Mutex<()>>,
    /// One signal is routed at a time, also when two runs of the router meet.
    pub routing: Arc<Mutex<()>>,
    /// Trust is brought in line by one at a time, also where one that was given up has not ended yet.
    pub learning: Arc<Mutex<()>>,
    /// Answers that were filed and that the index and the signals do not show yet.
    pub unshown: Arc<Mutex<Vec<FiledResolution>>>,
}

impl VaultContext {
    pub(crate) fn is_stopped(&self) -> bool {
        stop::is_stopped(self.keeper.root())
    }

    async fn observe_matter(&self, ask: ObserveInput) -> Result<MatterObservation, ActivityError> {
        self.publish_filed_resolutions().await?;
        let before =
            self.index.read_matter_interval(&ask.matter, &self.settings.cadence).await.map_err(retryable_failure)?;
        let mut seen = self
            .index
            .observe_due_tasks(&Look {
                matter: ask.matter,
                look_id: ask.look_id,
                now: Utc::now(),
                cadence: self.settings.cadence,
                policy: self.settings.policy.clone(),
                default_ceiling: self.settings.default_ceiling,
                stopped: self.is_stopped(),
                max_looks: MAX_LOOKS,
            })
            .await
            .map_err(retryable_failure)?;
        if before != seen.interval_seconds {
            let change = NewInterval { matter: seen.matter.clone(), seconds: seen.interval_seconds };
            // The receiver is gone only while the process ends; the registrar reads the interval
            // from the index at the next start.
            let _ = self.intervals.send(change);
        }
        for look in &mut seen.looks {
            look.known = self.recall_verdict(&look.question).await?;
        }
        Ok(seen)
    }

    async fn reserve_call(&self, ask: ReserveRequest) -> Result<ReserveOutcome, ActivityError> {
        let now = Utc::now();
        let outcome = if self.is_stopped() { stopped_refusal() } else { self.ledger.reserve(&ask, now).await };
        if let ReserveOutcome::Refused(refusal) = &outcome {
            let task = ask.task.unwrap_or_default();
            match (refusal.cap, RecordPath::parse(&task)) {
                (GuardCap::LedgerUnreadable, Ok(target)) => self.try_again_later(&target).await,
                (GuardCap::Stopped, Ok(target)) => self.wake_after_stop(&target).await?,
                (_, _) => {}
            }
            tracing::warn!(task, reason = %refusal.reason, "clerk call refused");
            self.index.count_check(now, "rate_guarded", &ask.call_id.0).await.map_err(retryable_failure)?;
        }
        Ok(outcome)
    }

    /// What was observed and met a stop is judged when that is over, even when the run ends later.
    async fn wake_after_stop(&self, target: &RecordPath) -> Result<(), ActivityError> {
        self.index.mark_matter_again(target, Utc::now()).await.map_err(retryable_failure)
    }

    pub(crate) async fn settle_call(&self, ask: SettleCallInput) -> Result<(), ActivityError> {
        if let Some((question, judged)) = &ask.answered {
            self.remember_verdict(question, judged).await;
        }
        self.ledger.settle(&ask.settlement, Utc::now()).await.map_err(|e| {
            let passes = matches!(e, LedgerError::Busy { .. } | LedgerError::Changed { .. });
            if passes { retryable_failure(e) } else { non_retryable_failure(e.to_string()) }
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
            look_id: ask.look_id,
            observed_at,
            had_signals: ask.had_signals,
            outcome: decision.as_str().to_owned(),
            clock: ask.clock,
            cadence: self.settings.cadence,
        };
        if let Err(e) = self.index.record_check(&done).await {
            if self.can_write().await {
                return Err(retryable_failure(e));
            }
            tracing::warn!(task = %target, error = %e, "decided; the check is recorded when the disk can be written");
            self.index.record_check_later(done);
        }
        tracing::info!(
            task = %target, action_id = %receipt.id, decision = decision.as_str(), landing = receipt.landing.as_str(),
            repeated = receipt.repeated, "decision filed"
        );
        Ok(ApplyOutput::Filed { action_id: receipt.id, record: receipt.record, landing: receipt.landing })
    }

    /// Has the keeper carry a plan out, within what this process, trust, its sources' budget and its matter's note allow
    /// by now, and tells the index.
    ///
    /// # Errors
    /// When the index cannot be read or written; that the keeper refuses is an answer.
    pub async fn cap_and_apply(
        &self,
        plan: Plan,
        now: DateTime<Utc>,
    ) -> Result<Result<ActionReceipt, ApplyError>, ActivityError> {
        if plan.disposition() == Disposition::Live {
            self.catch_up_index().await?;
        }
        let _turn = if plan.disposition() == Disposition::Live { Some(self.landing.lock().await) } else { None };
        if plan.disposition() >= Disposition::Pending {
            let new_parent = plan.draft().proposal.as_ref().and_then(|proposal| proposal.mutation.new_parent());
            self.refresh_stale_matters(plan.target(), new_parent, now).await?;
        }
        let facts = self.index.read_landing_facts(plan.draft(), self.settings.default_ceiling, now).await;
        let settings =
            LandingSettings { policy: &self.settings.policy, live_per_source_day: self.settings.live_per_source_day };
        let plan = plan.hold_at_landing(settings, &facts.map_err(retryable_failure)?, now);
        let (target, keeper) = (plan.target().clone(), Arc::clone(&self.keeper));
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
        let root = self.keeper.root();
        let stale = self.index.list_stale_matters(root, target, new_parent).await.map_err(retryable_failure)?;
        if !stale.is_empty() {
            self.index.sync_paths(root, &stale, now).await.map_err(retryable_failure)?;
        }
        Ok(())
    }

    /// Files a record that changes nothing, and tells the index.
    pub(crate) async fn file_record(&self, plan: Plan) -> Result<(), ActivityError> {
        let keeper = Arc::clone(&self.keeper);
        let receipt = run_blocking(move || keeper.file_plan(&plan)).await?.map_err(retryable_failure)?;
        self.reindex_paths(&[&receipt.record]).await
    }

    /// Brings trust in line with the records as of this moment, as `ReversalCalibrationWorkflow` does, as far as one
    /// call comes; `more` says that there is something left.
    ///
    /// # Errors
    /// When the vault or its index cannot be read or written; doing it again is safe.
    pub async fn calibrate_trust(
        &self,
        (workflow, now): (WorkflowRef, DateTime<Utc>),
    ) -> Result<CalibrateOutput, ActivityError> {
        calibrate::run_calibration(self, CallDeadline::from_now, (workflow, now)).await
    }

    /// Tells the index what was just written, so that the next look sees it without waiting for
    /// the watcher.
    pub(crate) async fn reindex_paths(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let paths: Vec<RecordPath> = paths.iter().map(|p| (*p).clone()).collect();
        self.index.sync_paths(self.keeper.root(), &paths, Utc::now()).await.map(drop).map_err(retryable_failure)
    }
}

#[activities]
impl VaultContext {
    #[activity(definition = steward_workflows::activities::Observe)]
    pub async fn observe(
        self: Arc<Self>,
        _ctx: ActivityContext,
        ask: ObserveInput,
    ) -> Result<MatterObservation, ActivityError> {
        let matter = ask.matter.clone();
        self.retry_later_on_failure(&matter, self.observe_matter(ask)).await
    }

    #[activity(definition = steward_workflows::activities::Reserve)]
    pub async fn reserve(
        self: Arc<Self>,
        _ctx: ActivityContext,
        ask: ReserveRequest,
    ) -> Result<ReserveOutcome, ActivityError> {
        self.reserve_call(ask).await
    }

    #[activity(definition = steward_workflows::activities::Settle)]
    pub async fn settle(self: Arc<Self>, _ctx: ActivityContext, ask: SettleCallInput) -> Result<(), ActivityError> {
        self.settle_call(ask).await
    }

    #[activity(definition = steward_workflows::activities::Apply)]
    pub async fn apply(self: Arc<Self>, _ctx: ActivityContext, ask: ApplyInput) -> Result<ApplyOutput, ActivityError> {
        let target = ask.plan.target().clone();
        self.retry_later_on_failure(&target, self.apply_decision(ask)).await
    }

    #[activity(definition = steward_workflows::activities::Release)]
    pub async fn release(self: Arc<Self>, _ctx: ActivityContext, run_id: String) -> Result<(), ActivityError> {
        let released = self.index.release_leases(&run_id).await;
        if released.is_err() && !self.can_write().await {
            self.index.release_leases_later(&run_id);
            return Ok(());
        }
        released.map_err(retryable_failure)
    }

    #[activity(definition = steward_workflows::activities::Route)]
    pub async fn route(self: Arc<Self>, ctx: ActivityContext, ask: RouteInput) -> Result<RouteOutput, ActivityError> {
        let routed = self.route_signals(ask.limit, read_workflow_ref(&ctx)).await;
        if routed.is_err() && !self.can_write().await {
            self.index.run_routines_again();
        }
        routed
    }

    #[activity(definition = steward_workflows::activities::Purge)]
    pub async fn purge(self: Arc<Self>, _ctx: ActivityContext, ask: PurgeInput) -> Result<PurgeOutput, ActivityError> {
        purge::purge_events(&self, &ask, Utc::now()).await
    }

    #[activity(definition = steward_workflows::activities::Calibrate)]
    pub async fn calibrate(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<CalibrateOutput, ActivityError> {
        run_until_cancelled(&ctx, self.calibrate_trust((read_workflow_ref(&ctx), Utc::now()))).await
    }

    #[activity(definition = steward_workflows::activities::StepBack)]
    pub async fn step_back(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<u64, ActivityError> {
        let steps = calibrate::apply_demotions(&self, (&read_workflow_ref(&ctx), Utc::now())).await?;
        Ok(steps.len() as u64)
    }

    #[activity(definition = steward_workflows::activities::Drill)]
    pub async fn drill(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<DrillOutput, ActivityError> {
        drill::drill_all(&self, (read_workflow_ref(&ctx), Utc::now())).await
    }

    #[activity(definition = steward_workflows::activities::Answer)]
    pub async fn answer(
        self: Arc<Self>,
        ctx: ActivityContext,
        ask: ResolveInput,
    ) -> Result<ResolveOutput, ActivityError> {
        self.handle_resolution(ask, read_workflow_ref(&ctx)).await
    }
}

pub(crate) fn read_workflow_ref(ctx: &ActivityContext) -> WorkflowRef {
    let info = ctx.info();
    WorkflowRef {
        id: info.workflow_id.clone().unwrap_or_default(),
        run_id: info.workflow_run_id.clone().unwrap_or_default(),
    }
}

/// Runs file work where it may block; a panic there is a passing failure like any other.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ActivityError> {
    // Opened here and entered there: a span opened on the blocking thread would have no parent.
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

/// A plan that does not fit the record any more is an answer; trouble with the machine is not.
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
