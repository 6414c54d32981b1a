//! `ReversalCalibrationWorkflow`: every 10 minutes, trust is brought in line with what humans answered.
//!
//! First what was undone too often goes a step back, which is quick and waits for nothing. Then the process that holds
//! the vault tells every source's numbers from the audit records, once, and writes those that differ, for as long as
//! one call may take; what is left is taken up by a new run at once. It carries no numbers itself, so nothing can be
//! counted twice by it.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_common::ActivityCloseTimeouts;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, ContinueAsNewOptions, RetryPolicy, WorkflowContext, WorkflowResult};

/// Longest that one call may take: 4 min, twice what it gives itself, and within a run.
const CALL_TIMEOUT: Duration = Duration::from_secs(240);
/// Longest of all tries together: a run has 300 s.
const ALL_TRIES: Duration = Duration::from_secs(280);
/// A process that has not been heard of for so long is taken for dead: 10 s.
const SILENCE: Duration = Duration::from_secs(10);
/// What was brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrateOutput {
    pub written: u64,
    /// Files that a human has to mend first.
    pub failed: u64,
    /// There is more to do.
    pub more: bool,
    /// Proposals that were found done, or decided otherwise, by hand.
    #[serde(default)]
    pub by_hand: u64,
    /// Sources that are taken for strangers again.
    #[serde(default)]
    pub pruned: u64,
    /// Sources and classes that went one step back.
    #[serde(default)]
    pub lowered: u64,
}

impl CalibrateOutput {
    /// Something was filed or written, so that the next call has less to do.
    fn has_progress(&self) -> bool {
        self.written + self.by_hand + self.pruned > 0
    }
}

/// Brings trust up to date. Result: [`CalibrateOutput`] of this run.
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
        let lowered =
            ctx.execute_local_activity(VaultActivities::step_back, (), local_activity_options("step back")).await?;
        let whole = ctx.execute_activity(VaultActivities::calibrate, (), calibrate_options()).await?;
        let all = CalibrateOutput { lowered: whole.lowered + lowered, ..whole };
        ctx.set_current_details(describe_calibration(&all));
        // Only where it got somewhere: what cannot be written now is tried again at the schedule's pace.
        if all.more && all.has_progress() {
            ctx.continue_as_new(().into(), ContinueAsNewOptions::default())?;
        }
        Ok(all)
    }
}

/// What was cut short is begun again: it comes to the same.
fn calibrate_options() -> ActivityOptions {
    let limits =
        ActivityCloseTimeouts::ScheduleAndStartToClose { start_to_close: CALL_TIMEOUT, schedule_to_close: ALL_TRIES };
    ActivityOptions::with_close_timeouts(limits)
        .heartbeat_timeout(SILENCE)
        .retry_policy(RetryPolicy::builder().maximum_attempts(5).build())
        .summary("calibrate".to_owned())
        .build()
}

fn describe_calibration(all: &CalibrateOutput) -> String {
    format!(
        "{} instincts written, {} could not be; {} proposals settled by hand, {} sources pruned, {} steps back{}",
        all.written,
        all.failed,
        all.by_hand,
        all.pruned,
        all.lowered,
        if all.more { ", more are left" } else { "" }
    )
}
