//! `TrackerWorkflow`: delivers the debts of changed tasks to the tracker, one after the other.
//!
//! It lists the due deliveries and has an activity of the vault's process make each of them. Only ids and our own
//! texts may come here. A failed delivery does not stop the others. A tracker that asks to wait ends the run, and the
//! next run does the rest.

use crate::activities::{DeliverOutput, TrackActivities, TrackerReport};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use std::time::{Duration, SystemTime};
use steward_domain::action::plan::ActionId;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult};

/// Most deliveries of one round: 50. At 60 requests a minute, a run cannot make more.
const ROUND: u32 = 50;
/// Most rounds: 10. A delivery that waits for an earlier one to its issue is due in the next round.
const MAX_ROUNDS: u32 = 10;
/// No delivery is begun later than this into a run: 115 s. The slowest takes [`DELIVERY_TIMEOUT`], which makes 4 min.
const START_NO_LATER: Duration = Duration::from_secs(115);
/// Longest time of one delivery: 120 s, for some requests of 10 s and their waits for the rate limit.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// A process without a heartbeat for this long counts as dead: 10 s.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// Delivers debts to the tracker. No argument; result: [`TrackerReport`].
#[workflow]
#[derive(Default)]
pub struct TrackerWorkflow;

#[workflow_methods]
impl TrackerWorkflow {
    /// Runs until nothing is due, the time is up, or the tracker asks to wait.
    ///
    /// # Errors
    /// Fails when the index cannot be read.
    #[run(name = "TrackerWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<TrackerReport> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let started = ctx.workflow_time();
        let mut report = TrackerReport::default();
        for _ in 0..MAX_ROUNDS {
            let due = ctx
                .execute_local_activity(TrackActivities::due, ROUND, local_activity_options("list due deliveries"))
                .await?;
            let before = report.settled;
            for owing in due {
                let elapsed = |start: SystemTime| ctx.workflow_time().and_then(|now| now.duration_since(start).ok());
                if report.held || started.and_then(elapsed).is_some_and(|elapsed| elapsed > START_NO_LATER) {
                    break;
                }
                deliver_owed(ctx, owing, &mut report).await;
            }
            if report.held || report.settled == before {
                break;
            }
        }
        ctx.set_current_details(format!(
            "{} settled, {} failed, {} errors{}",
            report.settled,
            report.failed,
            report.errors,
            if report.held { "; the tracker asked to wait" } else { "" }
        ));
        Ok(report)
    }
}

async fn deliver_owed(ctx: &WorkflowContext<TrackerWorkflow>, owing: ActionId, report: &mut TrackerReport) {
    let options = single_attempt_options(&format!("deliver {owing}"), DELIVERY_TIMEOUT);
    match ctx.execute_activity(TrackActivities::deliver, owing, options).await {
        Ok(DeliverOutput::Settled { .. }) => report.settled += 1,
        Ok(DeliverOutput::Failed { .. }) => report.failed += 1,
        Ok(DeliverOutput::Later { held, .. }) => report.held |= held,
        Err(_) => report.errors += 1,
    }
}

/// Options with one attempt: the next run continues a delivery that a lost process left.
pub(crate) fn single_attempt_options(summary: &str, timeout: Duration) -> ActivityOptions {
    ActivityOptions::with_schedule_to_close_timeout(timeout)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .summary(summary.to_owned())
        .build()
}
