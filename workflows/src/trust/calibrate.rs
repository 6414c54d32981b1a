//! `ReversalCalibrationWorkflow`: updates trust from people's resolutions, every 10 minutes.
//!
//! First it demotes what was undone too often, which is quick and waits for nothing. Then the process that holds the
//! vault computes every source's numbers from the audit records and writes those that differ. One call has limited
//! time, and a new run does the rest at once. The workflow must not carry numbers, so it cannot count anything twice.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::ActivityCloseTimeouts;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, ContinueAsNewOptions, RetryPolicy, WorkflowContext, WorkflowResult};

/// Longest time of one call: 4 min, twice the time after which it begins no new work, and within a run.
const CALL_TIMEOUT: Duration = Duration::from_secs(240);
/// Longest time of all tries together: 280 s, because a run has 300 s.
const ALL_TRIES: Duration = Duration::from_secs(280);
/// A process without a heartbeat for this long counts as dead: 10 s.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrateOutput {
    pub written: u64,
    /// Files that a person has to fix first.
    pub failed: u64,
    /// There is more work to do.
    pub more: bool,
    /// Proposals that a person made true, or decided otherwise, by hand.
    #[serde(default)]
    pub by_hand: u64,
    /// Sources that count as unknown again.
    #[serde(default)]
    pub pruned: u64,
    /// Sources and classes that were demoted.
    #[serde(default)]
    pub lowered: u64,
}

impl CalibrateOutput {
    /// Reports whether something was filed or written, so that the next call has less to do.
    fn has_progress(&self) -> bool {
        self.written + self.by_hand + self.pruned > 0
    }
}

/// Calibrates trust. Result: [`CalibrateOutput`] of this run.
#[workflow]
#[derive(Default)]
pub struct ReversalCalibrationWorkflow;

#[workflow_methods]
impl ReversalCalibrationWorkflow {
    /// Runs the calibration.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "ReversalCalibrationWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<CalibrateOutput> {
        none.into_value("no argument").map_err(permanent_failure)?;
        // The undo that is one too many demotes by itself. This check is needed as well, because time alone may carry a
        // rate over its budget.
        let demoted = ctx
            .execute_local_activity(
                VaultActivities::step_back,
                (),
                local_activity_options("demote what was undone too often"),
            )
            .await?;
        let calibrated = ctx.execute_activity(VaultActivities::calibrate, (), calibrate_options()).await?;
        let output = CalibrateOutput { lowered: calibrated.lowered + demoted, ..calibrated };
        ctx.set_current_details(describe_calibration(&output));
        // Only a run with progress continues. Files that cannot be written now wait for the schedule.
        if output.more && output.has_progress() {
            ctx.continue_as_new(().into(), ContinueAsNewOptions::default())?;
        }
        Ok(output)
    }
}

/// The options of the calibration. An interrupted call is repeated, with the same result.
///
/// It is no local activity, because a fold over a large vault outlives the 30 s of those.
fn calibrate_options() -> ActivityOptions {
    let limits =
        ActivityCloseTimeouts::ScheduleAndStartToClose { start_to_close: CALL_TIMEOUT, schedule_to_close: ALL_TRIES };
    ActivityOptions::with_close_timeouts(limits)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(5).build())
        .summary("calibrate".to_owned())
        .build()
}

fn describe_calibration(output: &CalibrateOutput) -> String {
    format!(
        "{} instincts written, {} failed; {} proposals settled by hand, {} sources pruned, {} demotions{}",
        output.written,
        output.failed,
        output.by_hand,
        output.pruned,
        output.lowered,
        if output.more { ", more are left" } else { "" }
    )
}
