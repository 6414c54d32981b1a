//! `FileBackWorkflow`: makes a page of an answer.
//!
//! The page takes the way of every run: it is staged, judged, checked by a model if one wrote it, and committed.

use super::ingest::{IngestOutput, StageInput, carry_out};
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::query::FiledKind;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// An answer of which a page is made; the argument of `FileBackWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileAnswerInput {
    /// The name of the wiki.
    pub wiki: String,
    /// The id of the answer.
    pub answer: String,
    pub kind: FiledKind,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked for it. The run is named after this moment.
    pub at: DateTime<Utc>,
}

/// Files an answer. Argument: [`FileAnswerInput`]; result: [`IngestOutput`].
#[workflow]
#[derive(Default)]
pub struct FileBackWorkflow;

#[workflow_methods]
impl FileBackWorkflow {
    /// Runs the filing.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "FileBackWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<FileAnswerInput>,
    ) -> WorkflowResult<IngestOutput> {
        let input =
            argument.into_value("an object with the keys wiki, answer, kind, by and at").map_err(permanent_failure)?;
        carry_out(ctx, StageInput::Answer(input)).await
    }
}
