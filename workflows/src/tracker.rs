//! `TrackerWorkflow`: what changes of tasks owe to the tracker is delivered, one after the other.
//!
//! It learns what is due and has each delivered by an activity of the vault's process; nothing but ids and
//! words of ours comes here. One that fails stops no other; a tracker that asks to wait ends the run.
//! What is left waits for the next one.

use crate::activities::{DeliverOutput, TrackActivities, TrackerReport};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use std::time::{Duration, SystemTime};
use steward_domain::action::plan::ActionId;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult};

/// Most deliveries of one round; at 60 requests a minute no more are made in a run.
const ROUND: u32 = 50;
/// Most rounds: what waits for an earlier delivery to its issue is due in the next.
const MAX_ROUNDS: u32 = 10;
/// No delivery is begun later than this into a run; the slowest takes [`DELIVERY_TIMEOUT`], which makes 4 min.
const START_NO_LATER: Duration = Duration::from_secs(115);
/// Longest that one delivery may take: some requests of 10 s, and their turns.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// A process that has not been heard of for so long is taken for dead: 10 s.
const SILENCE: Duration = Duration::from_secs(10);

/// Delivers what is owed. No argument; result: [`TrackerReport`].
#[workflow]
#[derive(Default)]
pub struct TrackerWorkflow;

#[workflow_methods]
impl TrackerWorkflow {
    /// Runs until nothing is due, time is up or the tracker asks to wait.
    ///
    /// # Errors
    /// Fails when the index cannot be read.
    #[run(name = "TrackerWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<TrackerReport> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let started = ctx.workflow_time();
        let mut report = TrackerReport::default();
        for _ in 0..MAX_ROUNDS {
            let due =
                ctx.execute_local_activity(TrackActivities::due, ROUND, local_activity_options("what is due")).await?;
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
            if report.held { "; asked to wait" } else { "" }
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

/// One attempt: what a lost process left is taken up by the next run from where it was.
pub(crate) fn single_attempt_options(summary: &str, timeout: Duration) -> ActivityOptions {
    ActivityOptions::with_schedule_to_close_timeout(timeout)
        .heartbeat_timeout(SILENCE)
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .summary(summary.to_owned())
        .build()
}
