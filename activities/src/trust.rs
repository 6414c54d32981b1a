//! Activities of calibration, of the reversibility drill and of the ceilings that people set.
//!
//! All run in the process that holds the vault. All are idempotent: a repeat after a crash continues where the first
//! run ended.

pub(crate) mod calibrate;
pub(crate) mod drill;
pub(crate) mod set_ceiling;

use crate::steward::judge::run_until_cancelled;
use crate::trust::calibrate::CallDeadline;
use crate::vault::{VaultContext, read_workflow_ref};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_workflows::{CalibrateOutput, DrillOutput, SetCeilingInput, SetCeilingOutput};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::Mutex;

/// Calibrates trust and runs the drill.
#[derive(Clone)]
pub struct TrustActivities {
    vault: VaultContext,
    /// Held by one calibration at a time, because a cancelled one may not have ended yet.
    calibration_lock: Arc<Mutex<()>>,
}

impl TrustActivities {
    #[must_use]
    pub fn new(vault: VaultContext) -> Self {
        Self { vault, calibration_lock: Arc::default() }
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
        let _guard = self.calibration_lock.lock().await;
        calibrate::run_calibration(&self.vault, CallDeadline::from_now, workflow, now).await
    }
}

#[activities]
impl TrustActivities {
    #[activity(definition = steward_workflows::activities::Calibrate)]
    pub async fn calibrate(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<CalibrateOutput, ActivityError> {
        run_until_cancelled(&ctx, self.calibrate_trust(read_workflow_ref(&ctx), Utc::now())).await
    }

    #[activity(definition = steward_workflows::activities::StepBack)]
    pub async fn step_back(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<u64, ActivityError> {
        let steps = calibrate::apply_demotions(&self.vault, &read_workflow_ref(&ctx), Utc::now()).await?;
        Ok(steps.len() as u64)
    }

    #[activity(definition = steward_workflows::activities::SetCeiling)]
    pub async fn set_ceiling(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: SetCeilingInput,
    ) -> Result<SetCeilingOutput, ActivityError> {
        let workflow = read_workflow_ref(&ctx);
        run_until_cancelled(&ctx, set_ceiling::set_ceiling(&self.vault, input, workflow)).await
    }

    #[activity(definition = steward_workflows::activities::Drill)]
    pub async fn drill(self: Arc<Self>, ctx: ActivityContext, _: ()) -> Result<DrillOutput, ActivityError> {
        drill::drill_all(&self.vault, read_workflow_ref(&ctx), Utc::now()).await
    }
}
