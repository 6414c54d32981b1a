//! `PurgeWorkflow`: once a day, events that were extracted and are old are dropped.
//!
//! It goes in short steps, so that no write to the vault waits for long, and ends after a number of them:
//! what is left waits for the next day. Which events those are, the process that holds the vault knows.

use crate::activities::{PurgeInput, PurgeOutput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Events that one step drops: a second or two of a slow disk.
const STEP: u32 = 500;
/// Steps of one run: 20,000 events, and far fewer history events than a run may have.
const STEPS: u32 = 40;

/// Drops what is old. Result: [`PurgeOutput`] of all steps.
#[workflow]
#[derive(Default)]
pub struct PurgeWorkflow;

#[workflow_methods]
impl PurgeWorkflow {
    /// Runs the purge.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "PurgeWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<PurgeOutput> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let mut all = PurgeOutput { gone: 0, more: true };
        for _ in 0..STEPS {
            let ask = PurgeInput { limit: STEP };
            let step = ctx.execute_local_activity(VaultActivities::purge, ask, local_activity_options("purge")).await?;
            all = PurgeOutput { gone: all.gone + step.gone, more: step.more };
            if !step.more {
                break;
            }
        }
        ctx.set_current_details(format!(
            "{} events dropped{}",
            all.gone,
            if all.more { ", more are left" } else { "" }
        ));
        Ok(all)
    }
}
