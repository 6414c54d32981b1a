//! `RouterWorkflow`: handles signals that the stewards do not judge, or did not reach.
//!
//! It runs rounds of one local activity each, until nothing is left or the run's time is up. The next run does the
//! rest. Only counts come here, and no signal must. The decision is pure code in the vault's process, next to the
//! files that it reads and the vault writer that applies it.

use crate::activities::{RouteInput, RouteOutput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use std::time::{Duration, SystemTime};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Most signals of one round: 50, which takes about 2 s on a disk that syncs slowly.
const ROUND: u32 = 50;
/// Most rounds of one run: 200, so that its history stays far below 2,000 events.
const MAX_ROUNDS: u32 = 200;
/// No round starts later than this into a run: 180 s, so that the run ends within 240 s.
const START_NO_LATER: Duration = Duration::from_secs(180);

/// One run of the router. No argument; result: [`RouteOutput`].
#[workflow]
#[derive(Default)]
pub struct RouterWorkflow;

#[workflow_methods]
impl RouterWorkflow {
    /// Runs the router.
    ///
    /// # Errors
    /// Fails when the index cannot be read.
    #[run(name = "RouterWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<RouteOutput> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let started = ctx.workflow_time();
        let mut report = RouteOutput::default();
        for _ in 0..MAX_ROUNDS {
            let input = RouteInput { limit: ROUND };
            report.add_round(
                ctx.execute_local_activity(VaultActivities::route, input, local_activity_options("route")).await?,
            );
            let elapsed = |start: SystemTime| ctx.workflow_time().and_then(|now| now.duration_since(start).ok());
            let late = started.and_then(elapsed).is_some_and(|elapsed| elapsed > START_NO_LATER);
            if !report.more || late {
                break;
            }
        }
        ctx.set_current_details(describe_routing(&report));
        Ok(report)
    }
}

fn describe_routing(report: &RouteOutput) -> String {
    let applied = report.dispositions.iter().map(|(disposition, count)| format!("{count} {}", disposition.as_str()));
    let skipped = report.skipped.iter().map(|(reason, count)| format!("{count} {reason}"));
    let mut parts: Vec<String> = applied.chain(skipped).collect();
    if report.stopped {
        parts.push("stopped".into());
    }
    if !report.errors.is_empty() {
        parts.push(format!("{} errors", report.errors.len()));
    }
    if parts.is_empty() { "nothing to route".into() } else { parts.join(", ") }
}
