//! `ReversalCalibrationWorkflow`: every 10 minutes, trust is brought in line with what humans answered.
//!
//! It has the process that holds the vault tell every source's numbers from the audit records, and write those
//! that differ, some at a time. It carries no numbers itself, so nothing can be counted twice by it.

use crate::activities::{CalibrateAsk, Calibrated, VaultActivities};
use crate::steward::local;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Instincts that one step writes: a second or two of a slow disk.
const STEP: u32 = 200;
/// Steps of one run: 10,000 instincts, and far fewer history events than a run may have.
const STEPS: u32 = 50;

/// Brings the instincts up to date. Result: [`Calibrated`] of all steps.
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
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Calibrated> {
        let mut all = Calibrated::default();
        for _ in 0..STEPS {
            let ask = CalibrateAsk { limit: STEP };
            let step = ctx.execute_local_activity(VaultActivities::calibrate, ask, local("calibrate")).await?;
            all = Calibrated {
                written: all.written + step.written,
                by_hand: all.by_hand + step.by_hand,
                pruned: all.pruned + step.pruned,
                lowered: all.lowered + step.lowered,
                ..step
            };
            if !step.more {
                break;
            }
        }
        ctx.set_current_details(format!(
            "{} instincts written, {} could not be; {} proposals settled by hand, {} sources pruned, {} steps back{}",
            all.written,
            all.failed,
            all.by_hand,
            all.pruned,
            all.lowered,
            if all.more { ", more are left" } else { "" }
        ));
        Ok(all)
    }
}
