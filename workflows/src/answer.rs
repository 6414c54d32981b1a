//! `AnswerWorkflow`: a human's undo, confirm or dismiss, so that a click survives a crash.
//!
//! One local activity in the process that holds the vault. A refusal is a result with an HTTP
//! status, not a failure: whoever asked gets the same words on the command line and in a browser.

use crate::activities::{AnswerAsk, Answered, VaultActivities};
use crate::steward::local;
use steward_domain::plain;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

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
    pub async fn run(ctx: &mut WorkflowContext<Self>, ask: AnswerAsk) -> WorkflowResult<Answered> {
        // The details are shown as Markdown, and both the id and the message hold words of others.
        let what = format!("{} {}", ask.kind.word(), plain::text(&ask.action));
        let answered = ctx.execute_local_activity(VaultActivities::answer, ask, local("answer")).await?;
        ctx.set_current_details(match &answered {
            Answered::Done { target, record, .. } => format!("{what}: {target}, see {record}"),
            Answered::Refused { status, message, .. } => {
                format!("{what}: refused ({status}): {}", plain::text(message))
            }
        });
        Ok(answered)
    }
}
