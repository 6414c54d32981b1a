//! `sources`: the documents of a workspace and what became of each, and the adapters by which something comes to it.
//!
//! It shows no addresses and no secrets: a document has an id, a title and a state, and an adapter a name, a kind and counts.

use super::excerpt::shorten_words;
use crate::mcp::attachments::AttachedStream;
use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::{MAX_ROW_TOKENS, count_fitting};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::{WikiSourceRow, WikiSourceState, list_wiki_sources};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::runtime::Handle;

/// What the adapters may take of a model's context, in tokens.
const MAX_ADAPTER_TOKENS: usize = 2_000;
/// The most characters of a title, and of why a round failed.
const MAX_TITLE: usize = 300;
const MAX_ERROR: usize = 200;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "sources",
    title: "Documents",
    description: "Lists documents, what became of each, and how many pages cite it; and the adapters: the folder of documents, and streams. Example: sources(state=\"pending\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<SourcesArguments>,
    result: Some(describe_result::<SourcesResult>),
    run: list_sources,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SourcesArguments {
    /// `ingested`, `pending`, `waiting`, `reverted`, `rejected`, `unsupported`, `changed`, `missing` or `new`.
    #[schemars(length(max = 20))]
    state: Option<String>,
    /// Adapters of this kind, such as `imap`, or `folder`.
    #[schemars(length(max = 40))]
    kind: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: u64,
    #[schemars(length(max = 2000))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    100
}

#[derive(Debug, Serialize, JsonSchema)]
struct SourcesResult {
    adapters: Vec<AdapterEntry>,
    sources: Vec<SourceEntry>,
    total: u64,
    /// Adapters are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// A way by which something comes to the wiki.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct AdapterEntry {
    /// As `events` takes it; `raw` for the documents.
    name: String,
    kind: String,
    // Whether it is not paused.
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sync_at: Option<String>,
    /// Outside words: why its last round failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<OutsideWords>,
    // What no page was made of.
    pending: u64,
    total: u64,
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
    // How many pages cite it.
    pages: u64,
}

/// Where a document stands in the list: its path and its id.
type SourcePlace = (String, String);

impl SourceEntry {
    fn find_place(&self) -> SourcePlace {
        (self.path.clone(), self.id.as_ref().map(|id| id.0.clone()).unwrap_or_default())
    }
}

fn list_sources(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<SourcesArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 500)?;
    let rows = list_wiki_sources(workspace.vault.root(), &workspace.name).map_err(ToolError::internal)?;
    let mut adapters = list_adapters(&workspace, &rows, arguments.kind.as_deref());
    let fitting = count_fitting(&adapters, MAX_ADAPTER_TOKENS);
    let cut = fitting < adapters.len();
    adapters.truncate(fitting);
    let entries = rows.into_iter().filter_map(|row| {
        Some(SourceEntry {
            path: to_path(&row.path)?,
            title: shorten_words(&row.title, MAX_TITLE),
            state: row.state.to_string(),
            pages: row.pages,
            id: row.id.map(Into::into),
        })
    });
    let mut entries: Vec<SourceEntry> =
        entries.filter(|entry| arguments.state.as_ref().is_none_or(|state| entry.state == *state)).collect();
    let total = entries.len() as u64;
    let filters = (&workspace.name, &arguments.state, &arguments.kind, arguments.limit);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let after = cursors.read(arguments.cursor.as_deref())?.map(|JsonPosition::<SourcePlace>(after)| after);
    entries.sort_by_key(SourceEntry::find_place);
    entries.retain(|entry| after.as_ref().is_none_or(|after| entry.find_place() > *after));
    let locate = |row: SourceEntry| ListRow { position: JsonPosition(row.find_place()).to_string(), row };
    let mut rows: Vec<ListRow<SourceEntry>> = entries.into_iter().map(locate).collect();
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|row| row.position.clone());
    let ListPart { rows, cursor } = cursors.cut_within(rows, next, MAX_ROW_TOKENS - MAX_ADAPTER_TOKENS);
    answer_value(&SourcesResult { adapters, sources: rows, total, cut, cursor })
}

/// The folder of documents, and the streams that belong to the wiki.
fn list_adapters(workspace: &Workspace<'_>, rows: &[WikiSourceRow], kind: Option<&str>) -> Vec<AdapterEntry> {
    let is_pending = |row: &&WikiSourceRow| matches!(row.state, WikiSourceState::New | WikiSourceState::Pending);
    let folder = AdapterEntry {
        name: "raw".to_owned(),
        kind: "folder".to_owned(),
        enabled: true,
        last_sync_at: None,
        last_error: None,
        pending: rows.iter().filter(is_pending).count() as u64,
        total: rows.len() as u64,
    };
    let vault = workspace.vault;
    let streams = vault.attachments.find(&workspace.name).streams;
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    let mut known = match names.is_empty() {
        true => BTreeMap::new(),
        false => Handle::current().block_on(vault.wikis.list_adapters(vault.root(), &names)),
    };
    let describe = |stream: &AttachedStream| {
        let status = known.remove(&stream.name).unwrap_or_default();
        AdapterEntry {
            name: stream.to_string(),
            kind: stream.kind.clone(),
            enabled: !status.is_paused,
            last_sync_at: status.ran_at.map(steward_domain::time::format_seconds),
            last_error: status.last_error.map(|error| shorten_words(&error, MAX_ERROR)),
            // No run takes an event yet.
            pending: status.events,
            total: status.events,
        }
    };
    let all = std::iter::once(folder).chain(streams.iter().map(describe));
    all.filter(|adapter| kind.is_none_or(|kind| adapter.kind == kind)).collect()
}
