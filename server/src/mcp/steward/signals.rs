//! `steward_signals`: what mails and documents say about notes; one with the reason of its status.
//!
//! Nearly all of a signal is outside words.

use super::READ_STEWARD;
use super::facts::{default_limit, open_views, read_limit, read_path, refuse_missing_note, show_path, wait_for};
use crate::mcp::cursor::{ListCursors, ListPart, ListRow};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::signal::{SignalExplanation, explain_signal, read_signal};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::SignalStatus;
use steward_domain::time::format_seconds;
use steward_vault::index::{PageCursor, SignalFilter, SignalRow};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_signals",
    title: "Signals",
    description: "Lists what mails and documents say about notes, newest first. `id` adds why one has its status. \
        Example: steward_signals(about=\"task/pay-rent.md\")",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<SignalsArguments>,
    result: Some(describe_result::<SignalsResult>),
    run: list_signals,
};

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum StatusArgument {
    Unrouted,
    Applied,
    Skipped,
    Pending,
    ActionPending,
}

impl From<StatusArgument> for SignalStatus {
    fn from(status: StatusArgument) -> Self {
        match status {
            StatusArgument::Unrouted => Self::Unrouted,
            StatusArgument::Applied => Self::Applied,
            StatusArgument::Skipped => Self::Skipped,
            StatusArgument::Pending => Self::Pending,
            StatusArgument::ActionPending => Self::ActionPending,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignalsArguments {
    #[schemars(length(max = 300))]
    id: Option<String>,
    status: Option<StatusArgument>,
    /// About this note, by its path.
    #[schemars(length(max = 300))]
    about: Option<String>,
    /// With those about the tasks of a matter.
    #[serde(default)]
    with_tasks: bool,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 600))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignalsResult {
    signals: Vec<SignalLine>,
    /// Outside words: of one signal, why it has its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<OutsideWords>,
    /// Outside words: what would change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_change_it: Option<OutsideWords>,
    /// Outside words: the author and the subject of its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<OutsideWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SignalLine {
    /// Outside words: its path.
    path: OutsideWords,
    at: String,
    /// Outside words: who said it.
    source: OutsideWords,
    /// Outside words: the quote.
    quote: OutsideWords,
    /// Outside words: the path of the note that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<OutsideWords>,
    target_confidence: f64,
    effect_confidence: f64,
    status: String,
    /// Outside words: the reason of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<OutsideWords>,
}

fn list_signals(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: SignalsArguments = call.read_arguments()?;
    let limit = read_limit(arguments.limit)?;
    let views = open_views(call)?;
    if let Some(id) = &arguments.id {
        return answer_value(&show_one(explain_one(&views, read_path(id)?)?));
    }
    let mut filter = SignalFilter { status: arguments.status.map(Into::into), ..SignalFilter::default() };
    if let Some(about) = arguments.about.as_deref().map(read_path).transpose()? {
        let kind = wait_for(views.read().find_note_kind(&about))?;
        let with_tasks = arguments.with_tasks && kind == Some(RecordKind::Matter);
        *(if with_tasks { &mut filter.matter } else { &mut filter.target }) = Some(about);
    }
    let filters = (arguments.status, &arguments.about, arguments.with_tasks);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let before: Option<PageCursor> = cursors.read(arguments.cursor.as_deref())?;
    let page = wait_for(views.read().signals_page(&filter, before.as_ref(), limit))?;
    let show = |row: SignalRow| {
        let position = PageCursor { at: row.signal.created, path: row.signal.path.clone() }.to_string();
        ListRow { row: show_signal(row), position }
    };
    let rows = page.rows.into_iter().map(show).collect();
    let ListPart { rows, cursor } = cursors.cut(rows, page.next.map(|next| next.to_string()));
    answer_value(&SignalsResult { signals: rows, why: None, would_change_it: None, event: None, cursor })
}

fn show_signal(SignalRow { signal, target }: SignalRow) -> SignalLine {
    SignalLine {
        path: show_path(&signal.path),
        at: format_seconds(signal.created),
        source: signal.source.into(),
        quote: signal.note.into(),
        target: target.as_ref().map(show_path),
        target_confidence: signal.target_confidence,
        effect_confidence: signal.effect_confidence,
        status: signal.status.as_str().to_owned(),
        reason: signal.reason.map(Into::into),
    }
}

/// Explains the signal of a path.
///
/// # Errors
/// [`crate::mcp::error::ToolErrorCode::NotFound`].
pub(super) fn explain_one(views: &VaultViews, path: RecordPath) -> Result<SignalExplanation, ToolError> {
    if path.own_kind() != Some(RecordKind::Signal) || !views.root().exists(&path) {
        return Err(refuse_missing_note(&path));
    }
    let history = wait_for(views.read_signal_history(&path))?;
    let file = read_signal(views.root(), path).map_err(ToolError::internal)?;
    Ok(explain_signal(views.root(), &views.note_schema(), file, &history))
}

fn show_one(explanation: SignalExplanation) -> SignalsResult {
    let SignalExplanation { filed, event, why, what_would_change_it } = explanation;
    let signal = filed.signal;
    let event = event
        .map(|event| format!("{}: {}", event.author.unwrap_or(event.source), event.subject.unwrap_or_default()).into());
    let line = SignalLine {
        path: show_path(&filed.path),
        at: format_seconds(signal.created),
        source: signal.source_type.into(),
        quote: signal.raw_quote.into(),
        target: signal.target.as_ref().map(show_path),
        target_confidence: signal.target_confidence,
        effect_confidence: signal.effect_confidence,
        status: signal.status.as_str().to_owned(),
        reason: signal.reason.map(Into::into),
    };
    let (why, would_change_it) = (Some(why.into()), Some(what_would_change_it.into()));
    SignalsResult { signals: vec![line], why, would_change_it, event, cursor: None }
}
