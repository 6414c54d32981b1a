//! `RouterWorkflow`: handles signals that the stewards do not judge, or did not reach.
//!
//! It runs rounds of one local activity each, until nothing is left or the run's time is up. The next run does the
//! rest. Only counts come here, and no signal must. The decision is pure code in the vault's process, next to the
//! files that it reads and the vault writer that applies it.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use steward_domain::action::plan::Disposition;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Most signals of one round: 50, which takes about 2 s on a disk that syncs slowly.
const ROUND: u32 = 50;
/// Most rounds of one run: 200, so that its history stays far below 2,000 events.
const MAX_ROUNDS: u32 = 200;
/// No round starts later than this into a run: 180 s, so that the run ends within 240 s.
const START_NO_LATER: Duration = Duration::from_secs(180);

/// The input of one round of the router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInput {
    /// Most signals of this round.
    pub limit: u32,
}

/// The result of one round of routing, or of a whole run; the result of `RouterWorkflow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteOutput {
    /// The number of actions by their disposition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dispositions: BTreeMap<Disposition, u32>,
    /// The number of skipped signals by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u32>,
    /// The signals that could not be routed now and are tried again, with the reason; at most 20 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// An operator stopped the vault, so routing ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// More signals wait to be routed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Most errors in one report: 20.
const MAX_ERRORS: usize = 20;

impl RouteOutput {
    /// Adds the result of another round.
    pub fn add_round(&mut self, other: Self) {
        for (disposition, count) in other.dispositions {
            *self.dispositions.entry(disposition).or_default() += count;
        }
        for (reason, count) in other.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
        other.errors.into_iter().for_each(|error| self.add_error(error));
        (self.stopped, self.more) = (other.stopped, other.more);
    }

    /// Adds the reason why a signal could not be routed.
    pub fn add_error(&mut self, error: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

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
                ctx.execute_local_activity(VaultActivities::route, input, local_activity_options("route new signals"))
                    .await?,
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
