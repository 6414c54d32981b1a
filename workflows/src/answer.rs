//! `AnswerWorkflow`: a human's undo, confirm or dismiss, so that a click survives a crash.
//!
//! One local activity in the process that holds the vault; where an undo owes something to the tracker, a
//! second step there. A refusal is a result with an HTTP status, not a failure: whoever asked gets the same
//! words on the command line and in a browser.

use crate::activities::{AnswerAsk, Answered, TrackActivities, Tracked, VaultActivities};
use crate::argument::Argument;
use crate::steward::for_good;
use crate::steward::local;
use crate::tracker::once;
use std::time::Duration;
use steward_domain::plain;
use steward_domain::plan::ActionId;
use steward_domain::undo::ResolutionRefusal;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Longest that whoever asked is kept waiting for the tracker: 40 s of the minute that the command waits.
const TRACKER_TIMEOUT: Duration = Duration::from_secs(40);

/// What is said of a tracker that did not answer.
const NOT_IN_TIME: &str = "no answer in time";

/// Takes one answer. Argument: [`AnswerAsk`]; result: [`Answered`].
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
    pub async fn run(ctx: &mut WorkflowContext<Self>, ask: Argument<AnswerAsk>) -> WorkflowResult<Answered> {
        let ask = ask.into_value("an object with the keys kind, action and by").map_err(for_good)?;
        // The details are shown as Markdown, and both the id and the message hold words of others.
        let what = format!("{} {}", ask.kind.as_str(), plain::escape_one_line(&ask.action));
        let answered = ctx.execute_local_activity(VaultActivities::answer, ask, local("answer")).await?;
        let answered = with_tracker(ctx, answered).await;
        ctx.set_current_details(match &answered {
            Answered::Done { target, record, tracker, lowered, .. } => {
                let came = tracker.as_deref().map(|came| format!("; tracker: {came}")).unwrap_or_default();
                let steps: String = lowered.iter().map(|step| format!("; one step back: {step}")).collect();
                format!("{what}: {target}, see {record}{came}{steps}")
            }
            Answered::Refused { status, message, .. } => {
                format!("{what}: refused ({status}): {}", plain::escape_one_line(message))
            }
        });
        Ok(answered)
    }
}

/// The answer, once what it owes to the tracker was taken back there, or why it was not.
pub(crate) async fn with_tracker<W>(ctx: &WorkflowContext<W>, answered: Answered) -> Answered {
    let Answered::Done { owes: Some(owing), .. } = &answered else { return answered };
    let came = take_back(ctx, owing.clone()).await;
    settled(answered, came)
}

/// The answer, where what it owes to the tracker is not tried now.
pub(crate) fn no_answer_in_time(answered: Answered) -> Answered {
    settled(answered, Err(NOT_IN_TIME.into()))
}

fn settled(answered: Answered, came: Result<String, String>) -> Answered {
    match answered {
        Answered::Done { owes: Some(_), action_id, record, target, lowered, .. } => match came {
            Ok(came) => Answered::Done { action_id, record, target, owes: None, tracker: Some(came), lowered },
            Err(reason) => Answered::refused(ResolutionRefusal::Tracker { record: record.to_string(), reason }),
        },
        Answered::Done { owes: None, .. } | Answered::Refused { .. } => answered,
    }
}

/// Takes back in the tracker what was made there; an error says why that is still owed.
async fn take_back<W>(ctx: &WorkflowContext<W>, owing: ActionId) -> Result<String, String> {
    let options = once("take back in the tracker", TRACKER_TIMEOUT);
    match ctx.execute_activity(TrackActivities::deliver, owing, options).await {
        Ok(Tracked::Settled { came }) => Ok(came),
        Ok(Tracked::Failed { reason } | Tracked::Later { reason, .. }) => Err(reason),
        Err(_) => Err(NOT_IN_TIME.into()),
    }
}
