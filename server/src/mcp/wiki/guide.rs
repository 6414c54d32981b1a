//! `guide`: what a wiki is about, which rules hold, and how things stand.
//!
//! It is the first call of a model. The first text is the same until what is in force changes; the second is made anew at each call.

use crate::mcp::error::ToolError;
use crate::mcp::guide::{GuideReader, render_guide};
use crate::mcp::handler::list_tools;
use crate::mcp::schema::describe_arguments;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::guide::{StreamQueue, WikiGuide, read_wiki_guide};
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use tokio::runtime::Handle;

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
    let WikiGuide { contract, mut situation } =
        read_wiki_guide(vault.root(), &workspace.name, now).map_err(ToolError::internal)?;
    situation.streams = list_stream_queues(&workspace);
    let tools: Vec<&str> = list_tools(&call.caller).into_iter().map(|tool| tool.name).collect();
    let reader = GuideReader { name: &call.caller.name, tools: &tools };
    let guide = render_guide(&contract, &situation, &reader, &vault.fences)?;
    Ok(ToolAnswer::TextWithMeta { blocks: guide.blocks, meta: guide.meta })
}

/// The streams of a wiki. No run takes an event yet, so all that the vault still has of them are in no page.
fn list_stream_queues(workspace: &Workspace<'_>) -> Vec<StreamQueue> {
    let vault = workspace.vault;
    let streams = vault.attachments.find(&workspace.name).streams;
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let known = Handle::current().block_on(vault.wikis.list_adapters(vault.root(), &names));
    let count = |name: &str| known.get(name).map_or(0, |status| status.events);
    streams.iter().map(|stream| StreamQueue { name: stream.to_string(), events: count(&stream.name) }).collect()
}
