//! `ResolveWorkflow`: a person's undo, confirm or dismiss, so that a click survives a crash.
//!
//! It runs one local activity in the process that holds the vault, and a second activity if an undo owes something to
//! the tracker. A refusal is a result with an HTTP status and not a failure, so that the command line and the browser
//! show the same message. It must not touch the vault itself.

use crate::activities::{DeliverOutput, ResolveInput, ResolveOutput, TrackActivities, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use crate::tracker::single_attempt_options;
use std::time::Duration;
use steward_domain::action::plan::ActionId;
use steward_domain::action::undo::ResolutionRefusal;
use steward_domain::record::plain_text;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Longest wait for the tracker: 40 s of the minute that the command waits.
const TRACKER_TIMEOUT: Duration = Duration::from_secs(40);

/// The reason if the tracker did not answer.
const NOT_IN_TIME: &str = "the tracker did not answer in time";

/// Resolves one action. Argument: [`ResolveInput`]; result: [`ResolveOutput`].
#[workflow]
#[derive(Default)]
pub struct ResolveWorkflow;

#[workflow_methods]
impl ResolveWorkflow {
    /// Runs the resolution.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "ResolveWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<ResolveInput>,
    ) -> WorkflowResult<ResolveOutput> {
        let input = argument.into_value("an object with the keys kind, action and by").map_err(permanent_failure)?;
        // The details are shown as Markdown, and both the id and the message hold untrusted text.
        let resolution = format!("{} {}", input.kind.as_str(), plain_text::escape_one_line(&input.action));
        let options = local_activity_options(&resolution);
        let output = ctx.execute_local_activity(VaultActivities::answer, input, options).await?;
        let output = settle_tracker_debt(ctx, output).await;
        ctx.set_current_details(match &output {
            ResolveOutput::Done { target, record, tracker, lowered, .. } => {
                let tracker = tracker.as_deref().map(|done| format!("; tracker: {done}")).unwrap_or_default();
                let demotions: String = lowered.iter().map(|demotion| format!("; demoted: {demotion}")).collect();
                format!("{resolution}: {target}, see {record}{tracker}{demotions}")
            }
            ResolveOutput::Refused { status, message, .. } => {
                format!("{resolution}: refused ({status}): {}", plain_text::escape_one_line(message))
            }
        });
        Ok(output)
    }
}

/// Delivers the debt to the tracker, and returns the output with the outcome.
pub(crate) async fn settle_tracker_debt<W>(ctx: &WorkflowContext<W>, output: ResolveOutput) -> ResolveOutput {
    let ResolveOutput::Done { owes: Some(owing), .. } = &output else { return output };
    let outcome = revert_in_tracker(ctx, owing.clone()).await;
    record_tracker_outcome(output, outcome)
}

/// Returns the output of a resolution whose debt to the tracker is not tried now.
pub(crate) fn leave_tracker_debt(output: ResolveOutput) -> ResolveOutput {
    record_tracker_outcome(output, Err(NOT_IN_TIME.into()))
}

fn record_tracker_outcome(output: ResolveOutput, outcome: Result<String, String>) -> ResolveOutput {
    match output {
        ResolveOutput::Done { owes: Some(_), action_id, record, target, lowered, .. } => match outcome {
            Ok(done) => ResolveOutput::Done { action_id, record, target, owes: None, tracker: Some(done), lowered },
            Err(reason) => {
                ResolveOutput::from_refusal(ResolutionRefusal::Tracker { record: record.to_string(), reason })
            }
        },
        ResolveOutput::Done { owes: None, .. } | ResolveOutput::Refused { .. } => output,
    }
}

/// Reverts in the tracker what was made there. An error says why that is still owed.
async fn revert_in_tracker<W>(ctx: &WorkflowContext<W>, owing: ActionId) -> Result<String, String> {
    let options = single_attempt_options("revert in the tracker", TRACKER_TIMEOUT);
    match ctx.execute_activity(TrackActivities::deliver, owing, options).await {
        Ok(DeliverOutput::Settled { came }) => Ok(came),
        Ok(DeliverOutput::Failed { reason } | DeliverOutput::Later { reason, .. }) => Err(reason),
        Err(_) => Err(NOT_IN_TIME.into()),
    }
}
