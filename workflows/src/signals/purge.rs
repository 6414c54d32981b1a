//! `PurgeWorkflow`: removes old extracted events, once a day.
//!
//! It works in short steps, so that no write to the vault waits for long. A run has a limited number of steps, and the
//! rest waits for the next day. The process that holds the vault decides which events are removed; no event's text must
//! come here.

use crate::activities::{PurgeInput, PurgeOutput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Events that one step removes: 500, which takes a slow disk a second or two.
const STEP: u32 = 500;
/// Most steps of one run: 40, for 20,000 events with far fewer history events than a run may have.
const STEPS: u32 = 40;

/// Removes old events. Result: [`PurgeOutput`] of all steps.
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
            let input = PurgeInput { limit: STEP };
            let step = ctx
                .execute_local_activity(VaultActivities::purge, input, local_activity_options("purge old events"))
                .await?;
            all = PurgeOutput { gone: all.gone + step.gone, more: step.more };
            if !step.more {
                break;
            }
        }
        ctx.set_current_details(format!(
            "{} events removed{}",
            all.gone,
            if all.more { ", more are left" } else { "" }
        ));
        Ok(all)
    }
}
