//! The vault that this process holds, as the activities see it.
//!
//! A [`VaultContext`] is the only way from a plan to a record: it holds the plan to the limits of now, hands it to the
//! vault writer and updates the index. It knows no clerk, no ledger and no stream.

mod disk;
mod gate;
mod ownership;

use crate::failure::retryable_failure;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::{Disposition, Plan};
use steward_domain::gates::landing::LandingSettings;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::{Cadence, RunDisplay};
use steward_fleet::VaultOwnership;
use steward_vault::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use steward_vault::files::crash;
use steward_vault::index::Index;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::Mutex;

pub use crate::action::resolve::FiledResolution;
pub use gate::create_provider_gate;
pub use ownership::create_ownership_check;
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
    /// How the Temporal UI can show the runs of this process.
    pub display: RunDisplay,
}

/// The vault that this process holds: its writer, its index and the settings. Cheap to clone.
///
/// Every activity that changes a record holds one. It is the only way from a plan to the vault.
#[derive(Clone)]
pub struct VaultContext {
    pub writer: Arc<VaultWriter>,
    pub index: Arc<Index>,
    pub settings: VaultSettings,
    /// `None` for a vault that belongs to no fleet.
    ownership: Option<VaultOwnership>,
    /// Held while a live change is applied, so that each change is counted before the next one.
    pub(crate) apply_lock: Arc<Mutex<()>>,
    /// Filed resolutions that the index and the signals do not show yet.
    pub(crate) unpublished_resolutions: Arc<Mutex<Vec<FiledResolution>>>,
}

impl VaultContext {
    #[must_use]
    pub fn new(writer: Arc<VaultWriter>, index: Arc<Index>, settings: VaultSettings) -> Self {
        let (apply_lock, unpublished_resolutions) = (Arc::default(), Arc::default());
        Self { writer, index, settings, ownership: None, apply_lock, unpublished_resolutions }
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
        // As late as possible: a lower ceiling or a stop must reach this plan.
        let ceiling = match self.obtain_ceiling().await {
            Ok(ceiling) => ceiling,
            Err(reason) => return Ok(Err(ApplyError::NotPermitted { reason })),
        };
        let facts = self.index.gates().read_landing_facts(plan.draft(), self.settings.default_ceiling, now).await;
        let policy = DecisionPolicy { mode: self.settings.policy.mode.min(ceiling), ..self.settings.policy.clone() };
        let settings = LandingSettings { policy: &policy, live_per_source_day: self.settings.live_per_source_day };
        let plan = plan.hold_at_landing(settings, &facts.map_err(retryable_failure)?, now);
        let (target, writer) = (plan.target().clone(), Arc::clone(&self.writer));
        let applied = run_blocking(move || writer.apply_plan(plan)).await?;
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

    /// Reads files that were just written into the index, so that the next check need not wait for the watcher.
    pub(crate) async fn reindex_paths(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let paths: Vec<RecordPath> = paths.iter().map(|p| (*p).clone()).collect();
        self.index.sync_paths(self.writer.root(), &paths, Utc::now()).await.map(drop).map_err(retryable_failure)
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

#[cfg(test)]
pub(crate) mod tests;
