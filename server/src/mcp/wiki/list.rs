//! `list`: the files of a workspace, by a glob.
//!
//! What it says of pages is kept until something changes.

use crate::mcp::cursor::ListState;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::keep_rows;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::{Workspace, read_glob};
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_vault::wiki::state::read_page_facts;

/// About as many characters as a token has.
const CHARACTERS_OF_TOKEN: u64 = 4;
const MAX_LIMIT: u64 = 500;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "list",
    title: "List files",
    description: "Lists pages (wiki/…) and documents (raw/…) by a glob: `*` stays in a folder, `**` does not. \
        Example: list(path=\"wiki/concepts/*\", sort=\"updated\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<ListArguments>,
    result: Some(describe_result::<ListResult>),
    run: list,
};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// A glob of paths, such as `wiki/concepts/*`; all files without it.
    #[schemars(length(max = 200))]
    path: Option<String>,
    #[serde(default)]
    sort: ListOrder,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: u64,
    /// The cursor of an earlier answer, to go on.
    #[schemars(length(max = 80))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    100
}

/// What comes first.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ListOrder {
    /// By path.
    #[default]
    Name,
    /// The newest first.
    Updated,
    /// The largest first.
    Size,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListResult {
    entries: Vec<ListEntry>,
    /// How many files the glob means.
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct ListEntry {
    path: String,
    /// Outside words: the kind of a page, or `raw`, or `file` for another file of the wiki.
    kind: OutsideWords,
    bytes: u64,
    /// About as many tokens: a quarter of the bytes.
    tokens: u64,
    /// When the page was updated, or else when the file changed.
    updated_at: String,
    /// Outside words: the title of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<OutsideWords>,
}

fn list(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<ListArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, MAX_LIMIT)?;
    // Rows and cursor are of one look, so that no row of a later page is left out or shown twice.
    let snapshot = workspace.look();
    let glob = arguments.path.as_deref().map(read_glob).transpose()?;
    let mut files = Workspace::list_files_of(&snapshot);
    files.retain(|file| glob.as_ref().is_none_or(|glob| glob.matches(&file.path)));
    match arguments.sort {
        ListOrder::Name => {}
        ListOrder::Updated => files.sort_by_key(|file| std::cmp::Reverse(file.file.modified_ms)),
        ListOrder::Size => files.sort_by_key(|file| std::cmp::Reverse(file.file.bytes)),
    }
    let asked = (&call.caller.name, &arguments.path, arguments.sort, arguments.limit);
    let state = ListState::new(&workspace.vault.fences, TOOL.name, &(&workspace.name, asked), &snapshot.digest());
    let offset = state.read(arguments.cursor.as_deref())?;
    let shown = &files[offset.min(files.len())..(offset + limit).min(files.len())];
    let names: Vec<String> = shown.iter().map(|file| file.file.path.clone()).collect();
    let pages = read_page_facts(workspace.vault.root(), &workspace.folder, &names);
    let entries = shown.iter().zip(&pages).map(|(file, page)| {
        let changed = DateTime::<Utc>::from_timestamp_millis(file.file.modified_ms).unwrap_or_default();
        let stated = page.as_ref().and_then(|page| page.updated_at);
        ListEntry {
            path: file.path.clone(),
            kind: match page {
                Some(page) => page.kind.as_str().into(),
                None if file.path.starts_with("raw/") => "raw".into(),
                None => "file".into(),
            },
            bytes: file.file.bytes,
            tokens: file.file.bytes.div_ceil(CHARACTERS_OF_TOKEN),
            updated_at: steward_domain::time::format_seconds(stated.unwrap_or(changed)),
            title: page.as_ref().map(|page| page.title.as_str().into()),
        }
    });
    let entries = keep_rows(entries.collect::<Vec<ListEntry>>());
    let cursor = state.next(offset + entries.len(), files.len());
    answer_value(&ListResult { entries, total: files.len() as u64, cursor })
}
