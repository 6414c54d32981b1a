//! `steward_stop`: stops all stewards of the vault, as `steward stop` does.
//!
//! It writes the stop file and needs no other process. Only a person resumes.

use super::STOP;
use super::status::StopInForce;
use crate::mcp::error::ToolError;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::time::format_millis;
use steward_vault::gates::stop::{VaultStop, stop_vault};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_stop",
    title: "Stop all stewards",
    description: "Stops everything at once: no model is asked and no note is changed until a person resumes. Undo and dismiss still work. \
        Example: steward_stop(reason=\"tasks are closed that are still open\")",
    kind: STOP,
    arguments: describe_vault_arguments::<StopArguments>,
    result: Some(describe_result::<StopResult>),
    run: stop_stewards,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopArguments {
    #[schemars(length(min = 1, max = 500))]
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StopResult {
    /// The stop in force. An earlier stop stays as it is.
    stop: StopInForce,
}

fn stop_stewards(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let StopArguments { reason } = call.read_arguments()?;
    let stop = VaultStop { at: format_millis(Utc::now()), by: call.caller.name.clone(), reason: Some(reason) };
    stop_vault(call.vault.root(), &stop).map_err(ToolError::internal)?;
    let stop = StopInForce::read(call).ok_or_else(|| ToolError::internal("a person resumed at the same moment"))?;
    answer_value(&StopResult { stop })
}
