//! `ReviewWorkflow`: has a model read pages for what is wrong or missing, and makes a page of what it found.
//!
//! The calls are those of a measurement. The page takes the way of every run: it is staged, judged and committed.

use super::eval::{EvalInput, EvalOutput, take_turns};
use super::ingest::{IngestOutput, StageInput, carry_out};
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Reviews a wiki. Argument: [`EvalInput`]; result: [`IngestOutput`].
#[workflow]
#[derive(Default)]
pub struct ReviewWorkflow;

#[workflow_methods]
impl ReviewWorkflow {
    /// Runs the review.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "ReviewWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<EvalInput>,
    ) -> WorkflowResult<IngestOutput> {
        let review = argument
            .into_value("an object with the keys wiki, method, claims, by and at")
            .map_err(permanent_failure)?;
        match take_turns(ctx, &review).await? {
            EvalOutput::Measured => carry_out(ctx, StageInput::Review(review)).await,
            EvalOutput::Refused { status, message } => Ok(IngestOutput::Refused { run: None, status, message }),
        }
    }
}
