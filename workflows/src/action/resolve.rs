//! `AnswerWorkflow`: a human's undo, confirm or dismiss, so that a click survives a crash.
//!
//! One local activity in the process that holds the vault; where an undo owes something to the tracker, a
//! second step there. A refusal is a result with an HTTP status, not a failure: whoever asked gets the same
//! words on the command line and in a browser.

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

/// Longest that whoever asked is kept waiting for the tracker: 40 s of the minute that the command waits.
const TRACKER_TIMEOUT: Duration = Duration::from_secs(40);

/// What is said of a tracker that did not answer.
const NOT_IN_TIME: &str = "no answer in time";

/// Takes one answer. Argument: [`ResolveInput`]; result: [`ResolveOutput`].
#[workflow]
#[derive(Default)]
pub struct AnswerWorkflow;

#[workflow_methods]
impl AnswerWorkflow {
    /// Runs the answer.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "AnswerWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        ask: WorkflowArgument<ResolveInput>,
    ) -> WorkflowResult<ResolveOutput> {
        let ask = ask.into_value("an object with the keys kind, action and by").map_err(permanent_failure)?;
        // The details are shown as Markdown, and both the id and the message hold words of others.
        let what = format!("{} {}", ask.kind.as_str(), plain_text::escape_one_line(&ask.action));
        let answered =
            ctx.execute_local_activity(VaultActivities::answer, ask, local_activity_options("answer")).await?;
        let answered = settle_tracker_debt(ctx, answered).await;
        ctx.set_current_details(match &answered {
            ResolveOutput::Done { target, record, tracker, lowered, .. } => {
                let came = tracker.as_deref().map(|came| format!("; tracker: {came}")).unwrap_or_default();
                let steps: String = lowered.iter().map(|step| format!("; one step back: {step}")).collect();
                format!("{what}: {target}, see {record}{came}{steps}")
            }
            ResolveOutput::Refused { status, message, .. } => {
                format!("{what}: refused ({status}): {}", plain_text::escape_one_line(message))
            }
        });
        Ok(answered)
    }
}

/// The answer, once what it owes to the tracker was taken back there, or why it was not.
pub(crate) async fn settle_tracker_debt<W>(ctx: &WorkflowContext<W>, answered: ResolveOutput) -> ResolveOutput {
    let ResolveOutput::Done { owes: Some(owing), .. } = &answered else { return answered };
    let came = revert_in_tracker(ctx, owing.clone()).await;
    record_tracker_outcome(answered, came)
}

/// The answer, where what it owes to the tracker is not tried now.
pub(crate) fn leave_tracker_debt(answered: ResolveOutput) -> ResolveOutput {
    record_tracker_outcome(answered, Err(NOT_IN_TIME.into()))
}

fn record_tracker_outcome(answered: ResolveOutput, came: Result<String, String>) -> ResolveOutput {
    match answered {
        ResolveOutput::Done { owes: Some(_), action_id, record, target, lowered, .. } => match came {
            Ok(came) => ResolveOutput::Done { action_id, record, target, owes: None, tracker: Some(came), lowered },
            Err(reason) => {
                ResolveOutput::from_refusal(ResolutionRefusal::Tracker { record: record.to_string(), reason })
            }
        },
        ResolveOutput::Done { owes: None, .. } | ResolveOutput::Refused { .. } => answered,
    }
}

/// Takes back in the tracker what was made there; an error says why that is still owed.
async fn revert_in_tracker<W>(ctx: &WorkflowContext<W>, owing: ActionId) -> Result<String, String> {
    let options = single_attempt_options("take back in the tracker", TRACKER_TIMEOUT);
    match ctx.execute_activity(TrackActivities::deliver, owing, options).await {
        Ok(DeliverOutput::Settled { came }) => Ok(came),
        Ok(DeliverOutput::Failed { reason } | DeliverOutput::Later { reason, .. }) => Err(reason),
        Err(_) => Err(NOT_IN_TIME.into()),
    }
}
