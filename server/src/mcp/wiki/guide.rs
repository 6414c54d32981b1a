//! `guide`: what a wiki is about, which rules hold, and how things stand.
//!
//! It is the first call of a model. The first text is the same until what is in force changes; the second is made anew at each call.

use crate::mcp::error::ToolError;
use crate::mcp::guide::{GuideReader, render_guide};
use crate::mcp::handler::list_tools;
use crate::mcp::schema::describe_arguments;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind};
use crate::views::wiki::guide::{WikiGuide, read_wiki_guide};
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "guide",
    title: "Guide",
    description: "Call it first: what the wiki is about, which rules hold, and how things stand: counts, what waits, health, the newest entries of the log, \
        the overview and the index, in at most 2,000 tokens. Example: guide(workspace=\"acme\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<GuideArguments>,
    result: None,
    run: show_guide,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GuideArguments {}

fn show_guide(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, GuideArguments {}) = call.open()?;
    let now = Utc::now();
    let vault = workspace.vault;
    let WikiGuide { contract, situation } =
        read_wiki_guide(vault.root(), &workspace.name, now).map_err(ToolError::internal)?;
    let tools: Vec<&str> = list_tools(&call.caller).into_iter().map(|tool| tool.name).collect();
    let reader = GuideReader { name: &call.caller.name, tools: &tools };
    let guide = render_guide(&contract, &situation, &reader, &vault.fences)?;
    Ok(ToolAnswer::TextWithMeta { blocks: guide.blocks, meta: guide.meta })
}
