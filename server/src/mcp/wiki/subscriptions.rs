//! `subscriptions`: the events of a wiki's streams that no run has made pages of.
//!
//! No run takes an event yet: runs take documents of `sources/`. So every event that the vault still has is an item, and none is ingested.
//! An event leaves the vault some days after the stewards have read it, and the list with it.

use super::stream_events::{EventSelection, choose_events, find_title};
use crate::mcp::cursor::ListState;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "subscriptions",
    title: "Subscription items",
    description: "Lists what came by the streams of this wiki and is in no page yet, newest first. Example: subscriptions(adapter=\"imap:work\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<SubscriptionsArguments>,
    result: Some(describe_result::<SubscriptionsResult>),
    run: list_items,
};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubscriptionsArguments {
    #[serde(default)]
    status: ItemStatus,
    /// A stream, such as `imap:work`.
    #[schemars(length(max = 140))]
    adapter: Option<String>,
    /// From this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 80))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    50
}

/// Whether a run has made pages of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ItemStatus {
    #[default]
    Pending,
    Ingested,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SubscriptionsResult {
    items: Vec<SubscriptionItem>,
    total: u64,
    /// `no_streams`, `no_index` or `cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SubscriptionItem {
    /// As in `events`.
    id: String,
    adapter: String,
    /// Outside words: the subject, or the first line.
    title: OutsideWords,
    published_at: String,
}

fn list_items(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, mut arguments) = call.open::<SubscriptionsArguments>()?;
    let cursor = arguments.cursor.take();
    let limit = check_range("limit", arguments.limit, 1, 200)?;
    let selection = EventSelection {
        source: arguments.adapter.as_deref(),
        since: arguments.since.as_deref(),
        ..EventSelection::default()
    };
    let mut chosen = choose_events(&workspace, selection)?;
    if arguments.status == ItemStatus::Ingested {
        chosen.events.clear();
    }
    let ids: Vec<&str> = chosen.events.iter().map(|event| event.id()).collect();
    let asked = (&call.caller.name, &workspace.name, &arguments);
    let state = ListState::new(&workspace.vault.fences, TOOL.name, &asked, &ids);
    let offset = state.read(cursor.as_deref())?;
    let read = chosen.read_from(&workspace, offset, limit, |chosen, event| {
        Some(SubscriptionItem {
            id: chosen.id().to_owned(),
            adapter: chosen.source.clone(),
            title: find_title(&event),
            published_at: steward_domain::time::format_seconds(chosen.listed.at),
        })
    });
    let (items, next) = read.keep_rows();
    let total = chosen.events.len();
    let cursor = state.next(next, total);
    answer_value(&SubscriptionsResult { items, total: total as u64, notice: chosen.notice, cursor })
}
