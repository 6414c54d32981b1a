//! `AssistantRunWorkflow`: carries out a run that an assistant has written and submitted.
//!
//! The pages take the way of every run: they are staged anew, judged, checked by a model if one is set, and committed. If something is
//! found, the run ends here, and is open again for its assistant.

use super::ingest::{IngestOutput, StageInput, carry_out};
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use steward_domain::wiki::run::RunId;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// A run that was submitted; the argument of `AssistantRunWorkflow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantRunInput {
    /// The name of the wiki.
    pub wiki: String,
    pub run: RunId,
    /// How often it was submitted, this time included.
    pub submission: u32,
}

/// Carries out a submitted run. Argument: [`AssistantRunInput`]; result: [`IngestOutput`].
#[workflow]
#[derive(Default)]
pub struct AssistantRunWorkflow;

#[workflow_methods]
impl AssistantRunWorkflow {
    /// Carries out the run.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "AssistantRunWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<AssistantRunInput>,
    ) -> WorkflowResult<IngestOutput> {
        let input =
            argument.into_value("an object with the keys wiki, run and submission").map_err(permanent_failure)?;
        carry_out(ctx, StageInput::Assistant(input)).await
    }
}
