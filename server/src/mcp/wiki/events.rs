//! `events`: what came by the streams of a wiki, newest first, with the signals that were read from it.
//!
//! The events are read from the vault, and nothing of them is kept here. To find words or references the newest events are read, within
//! limits that the answer names.

use super::stream_events::{
    ChosenEvent, EventReference, EventRow, EventSelection, ReadEvents, choose_events, cut_excerpt, find_title,
};
use crate::mcp::admission::CallCost;
use crate::mcp::cursor::ListState;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::references::list_references;
use steward_domain::signals::stream::StreamEvent;
use steward_domain::wiki::search::{list_query_words, split_words};
use tokio::runtime::Handle;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "events",
    title: "Events",
    description: "Shows what came by the streams of this wiki (mail, calendars, webhooks), newest first, with the signals and matters of each. \
        Example: events(source=\"imap:work\", ref=\"#123\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<EventsArguments>,
    result: Some(describe_result::<EventsResult>),
    run: list_events,
};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsArguments {
    /// A stream, such as `imap:work`.
    #[schemars(length(max = 140))]
    source: Option<String>,
    /// Such as `mail`.
    #[serde(rename = "type")]
    #[schemars(length(max = 40))]
    event_type: Option<String>,
    /// A part of the author.
    #[schemars(length(max = 200))]
    actor: Option<String>,
    /// From this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// Before this day or moment.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// Words, all of them.
    #[schemars(length(max = 1000))]
    query: Option<String>,
    /// Such as `#123`.
    #[serde(rename = "ref")]
    #[schemars(length(max = 64))]
    reference: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: u64,
    #[schemars(length(max = 80))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    50
}

#[derive(Debug, Serialize, JsonSchema)]
struct EventsResult {
    events: Vec<EventEntry>,
    /// `no_streams`, `no_index` or `cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct EventEntry {
    id: String,
    at: String,
    source: String,
    /// Outside words: what it is, such as `mail`.
    #[serde(rename = "type")]
    event_type: OutsideWords,
    /// Outside words: who wrote it.
    actor: OutsideWords,
    /// Outside words: the subject, or the first line.
    title: OutsideWords,
    /// Outside words: the beginning of the text.
    excerpt: OutsideWords,
    refs: Vec<EventReference>,
    signals: Vec<EventSignalEntry>,
}

/// What was read from an event.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct EventSignalEntry {
    /// Outside words: the path of the signal.
    signal: OutsideWords,
    /// Outside words: the path of its matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    matter: Option<OutsideWords>,
}

fn list_events(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, mut arguments) = call.open::<EventsArguments>()?;
    let cursor = arguments.cursor.take();
    let limit = check_range("limit", arguments.limit, 1, 500)?;
    let words = arguments.query.as_deref().map(list_query_words).unwrap_or_default();
    let reads_words = !words.is_empty() || arguments.reference.is_some();
    // Reading the words of many events is like searching many files.
    let permit = reads_words.then(|| call.admit_more(CallCost::Heavy)).transpose()?;
    let selection = EventSelection {
        source: arguments.source.as_deref(),
        event_type: arguments.event_type.as_deref(),
        actor: arguments.actor.as_deref(),
        since: arguments.since.as_deref(),
        until: arguments.until.as_deref(),
    };
    let mut chosen = choose_events(&workspace, selection)?;
    let ids: Vec<&str> = chosen.events.iter().map(ChosenEvent::id).collect();
    let asked = (&call.caller.name, &workspace.name, &arguments);
    let state = ListState::new(&workspace.vault.fences, TOOL.name, &asked, &ids);
    let offset = state.read(cursor.as_deref())?;
    let is_meant = |event: &StreamEvent| {
        holds_words(event, &words)
            && arguments.reference.as_ref().is_none_or(|wanted| list_event_references(event).contains(wanted))
    };
    let mut read = chosen
        .read_from(&workspace, offset, limit, |chosen, event| is_meant(&event).then(|| describe_event(chosen, &event)));
    drop(permit);
    attach_signals(&workspace, &mut read);
    let (events, next) = read.keep_rows();
    let cursor = state.next(next, chosen.events.len());
    answer_value(&EventsResult { events, notice: chosen.notice, cursor })
}

fn describe_event(chosen: &ChosenEvent, event: &StreamEvent) -> EventEntry {
    let (event_type, author) = chosen.split_pattern();
    let refs = list_event_references(event).into_iter().map(|text| EventReference { text: text.into() }).collect();
    EventEntry {
        id: chosen.id().to_owned(),
        at: steward_domain::time::format_seconds(chosen.listed.at),
        source: chosen.source.clone(),
        event_type: event_type.into(),
        actor: event.author.as_deref().unwrap_or(author).into(),
        title: find_title(event),
        excerpt: cut_excerpt(event),
        refs,
        signals: Vec::new(),
    }
}

fn list_event_references(event: &StreamEvent) -> Vec<String> {
    list_references(&format!("{}\n{}", event.subject.as_deref().unwrap_or_default(), event.text))
}

/// Whether an event holds all of these words.
fn holds_words(event: &StreamEvent, words: &BTreeSet<String>) -> bool {
    if words.is_empty() {
        return true;
    }
    let texts = [event.subject.as_deref(), event.author.as_deref(), Some(event.text.as_str())];
    let held: BTreeSet<String> = texts.into_iter().flatten().flat_map(split_words).collect();
    words.is_subset(&held)
}

fn attach_signals(workspace: &Workspace<'_>, read: &mut ReadEvents<EventEntry>) {
    let to_path = |id: &str| RecordPath::new(RecordKind::Stream, id).ok();
    let paths: Vec<RecordPath> = read.rows.iter().filter_map(|row| to_path(&row.row.id)).collect();
    let paths: Vec<&RecordPath> = paths.iter().collect();
    let mut signals = Handle::current().block_on(workspace.vault.wikis.list_event_signals(&paths));
    for EventRow { row, .. } in &mut read.rows {
        let of_event = to_path(&row.id).and_then(|path| signals.remove(path.as_str())).unwrap_or_default();
        let entries = of_event
            .into_iter()
            .map(|found| EventSignalEntry { signal: found.signal.into(), matter: found.matter.map(Into::into) });
        row.signals = entries.collect();
    }
}
