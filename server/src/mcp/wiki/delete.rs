//! `delete`: stages the removal of a page, or gives up a run of the caller.
//!
//! A page that goes lies in the trash after its run was committed, which only a person can do.

use super::write::{ChangeResult, RunChoice, STAGE_WIKI, abandon_run, describe_change, open_run, refuse_change};
use super::write::{discard_empty_run, to_written_file};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::LOG_FILE;
use steward_domain::wiki::writer::draft::PageChange;
use steward_domain::wiki::writer::refusal::DraftFault;

/// How the path of a run begins.
const RUNS: &str = "runs/";

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "delete",
    title: "Stage a removal",
    description: "Stages the removal of a page in a manual run, which a person must commit; or gives up an own run by path=\"runs/<id>\". \
        Example: delete(path=\"wiki/concepts/old-lifetime.md\", reason=\"merged into token-lifetime\")",
    kind: STAGE_WIKI,
    arguments: describe_arguments::<DeleteArguments>,
    result: Some(describe_result::<DeleteResult>),
    run: delete,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The page, or `runs/<id>` for a run of yours.
    #[schemars(length(max = 512))]
    path: String,
    /// Why; the record keeps it.
    #[schemars(length(min = 1, max = 200))]
    reason: String,
    /// The run, as an earlier answer named it. Without it a new manual run is opened.
    #[schemars(length(max = 40))]
    run_id: Option<String>,
}

/// A removal that is staged, or a run that was given up.
#[derive(Debug, Serialize, JsonSchema)]
struct DeleteResult {
    /// The name of the run for later calls.
    run: String,
    /// `open` or `abandoned`.
    state: String,
    /// Outside words: pages that link to the page, one line each.
    warnings: Vec<OutsideWords>,
    /// What comes next.
    next: String,
}

impl From<ChangeResult> for DeleteResult {
    fn from(result: ChangeResult) -> Self {
        Self { run: result.run, state: result.state, warnings: result.warnings, next: result.next }
    }
}

fn delete(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, DeleteArguments { path, reason, run_id }) = call.open::<DeleteArguments>()?;
    if let Some(run) = path.trim_start_matches('/').strip_prefix(RUNS) {
        let run = abandon_run(call, &workspace, run, &reason)?;
        return answer_value(&DeleteResult::from(ChangeResult::of_run(
            &run,
            "abandoned",
            "Nothing was changed".to_owned(),
        )));
    }
    let file = to_written_file(&path)?;
    if file == LOG_FILE {
        let code = ToolErrorCode::Draft(DraftFault::ProtectedFile);
        return Err(ToolError::new(code, "the log is never removed", "Name a page"));
    }
    let choice = RunChoice { run: run_id.as_deref(), run_type: None, source: None };
    let (mut session, is_new) = open_run(call, &workspace, &choice)?;
    match session.change(&PageChange::Remove { file, reason }, None) {
        Ok(staged) => answer_value(&DeleteResult::from(describe_change(&session, &staged, Vec::new()))),
        Err(error) => {
            if is_new {
                discard_empty_run(session)?;
            }
            Err(refuse_change(error))
        }
    }
}
