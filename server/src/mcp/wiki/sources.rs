//! `sources`: the documents of a workspace and what became of each.
//!
//! It shows no addresses and no secrets: a document has an id, a title and a state.

use crate::mcp::cursor::ListState;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::views::wiki::list_wiki_sources;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "sources",
    title: "Documents",
    description: "Lists the documents of the wiki, what became of each, and how many pages cite it. Example: sources(state=\"pending\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<SourcesArguments>,
    result: Some(describe_result::<SourcesResult>),
    run: list_sources,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourcesArguments {
    /// Those in this state alone: `ingested`, `pending`, `waiting`, `reverted`, `rejected`, `unsupported`, `changed`, `missing` or `new`.
    #[schemars(length(max = 20))]
    state: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: u64,
    /// Where the list goes on, from an earlier answer.
    #[schemars(length(max = 80))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    100
}

#[derive(Debug, Serialize, JsonSchema)]
struct SourcesResult {
    sources: Vec<SourceEntry>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SourceEntry {
    /// Outside words: the id; absent for a file that is not registered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<OutsideWords>,
    path: String,
    /// Outside words: the title of the document.
    title: OutsideWords,
    state: String,
    /// How many pages cite it.
    pages: u64,
}

fn list_sources(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<SourcesArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 500)?;
    let rows = list_wiki_sources(workspace.vault.root(), &workspace.name).map_err(ToolError::internal)?;
    let entries = rows.into_iter().filter_map(|row| {
        Some(SourceEntry {
            path: to_path(&row.path)?,
            title: row.title.into(),
            state: row.state.to_string(),
            pages: row.pages,
            id: row.id.map(Into::into),
        })
    });
    let entries: Vec<SourceEntry> =
        entries.filter(|entry| arguments.state.as_ref().is_none_or(|state| entry.state == *state)).collect();
    let asked = (&workspace.name, &arguments.state, arguments.limit);
    let state = ListState::new(&workspace.vault.fences, TOOL.name, &asked, &entries);
    let offset = state.read(arguments.cursor.as_deref())?;
    let total = entries.len();
    let shown: Vec<SourceEntry> = entries.into_iter().skip(offset).take(limit).collect();
    let cursor = state.next(offset + shown.len(), total);
    answer_value(&SourcesResult { sources: shown, total: total as u64, cursor })
}
