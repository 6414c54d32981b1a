//! `steward_why`: why an action is as it is, or why a note or a signal was left alone or changed.
//!
//! The values are those of the decision, as its record keeps them. No gate is evaluated again and no model is asked.

use super::READ_STEWARD;
use super::facts::{open_views, read_path, refuse_missing_note, show_path, wait_for};
use super::lines::{ActionDetails, ActionLine, ShownAction};
use super::signals::explain_one;
use super::wiki_runs::{find_wiki_run, show_line};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::action::ActionDetail;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_vault::index::{ActionFilter, WeighedSignal};

/// The most signals about a note, the newest first; `steward why` prints as many.
const MAX_SIGNALS: u32 = 10;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_why",
    title: "Why",
    description: "Explains an action, the newest decision about a note, or the status of a signal: the evidence, the checks with their values, and what would change it. \
        Example: steward_why(record=\"task/pay-rent.md\")",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<WhyArguments>,
    result: Some(describe_result::<WhyResult>),
    run: explain_record,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhyArguments {
    /// The path of a task, a matter or a signal.
    #[schemars(length(max = 300))]
    record: Option<String>,
    /// The id of an action.
    #[schemars(length(max = 16))]
    action: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct WhyResult {
    /// Outside words: the decision, a row of steward_actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<ShownAction<ActionLine>>,
    /// Outside words: its `details`, as in steward_actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<ShownAction<ActionDetails>>,
    /// Outside words: its resolution, a row of steward_actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<ShownAction<ActionLine>>,
    /// What is said about the note, newest first.
    signals: Vec<SaidAbout>,
    /// Outside words: of a signal, why it has its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<OutsideWords>,
    /// Outside words: what would change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_change_it: Option<OutsideWords>,
}

impl WhyResult {
    fn new(decided: Option<&ActionDetail>, signals: Vec<SaidAbout>) -> Self {
        let action = decided.map(|detail| ShownAction(ActionLine::new(&detail.action)));
        Self { action, details: decided.map(|detail| ShownAction(detail.into())), signals, ..Self::default() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SaidAbout {
    /// Outside words: the path of the signal.
    signal: OutsideWords,
    /// Outside words: who said it.
    source: OutsideWords,
    /// Outside words: the quote.
    quote: OutsideWords,
    status: String,
    /// Outside words: the reason of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<OutsideWords>,
}

fn explain_record(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: WhyArguments = call.read_arguments()?;
    let views = open_views(call)?;
    match (&arguments.record, &arguments.action) {
        (None, Some(action)) => {
            let run = find_wiki_run(call, action)?;
            if let Some(run) = run.as_ref().filter(|run| !run.is_committed()) {
                let line = ShownAction(ActionLine::of_wiki_run(run));
                return answer_value(&WhyResult {
                    action: Some(line),
                    why: Some(run.what.as_str().into()),
                    ..WhyResult::default()
                });
            }
            let detail = wait_for(views.read_detail(action))?;
            let mut result = WhyResult::new(Some(&detail), Vec::new());
            result.action = Some(ShownAction(show_line(run.as_slice(), &detail.action)));
            result.resolved = find_resolution(&views, &detail.action.id)?;
            answer_value(&result)
        }
        (Some(record), None) => {
            let path = read_path(record)?;
            match path.own_kind() {
                Some(RecordKind::Signal) => answer_value(&explain_signal(&views, path)?),
                _ => answer_value(&explain_note(&views, &path)?),
            }
        }
        _ => {
            let what = "the call names neither a record nor an action, or both";
            Err(ToolError::new(ToolErrorCode::BadArguments, what, "Give either `record` or `action`"))
        }
    }
}

fn explain_signal(views: &VaultViews, path: RecordPath) -> Result<WhyResult, ToolError> {
    let explanation = explain_one(views, path)?;
    Ok(WhyResult {
        why: Some(explanation.why.into()),
        would_change_it: Some(explanation.what_would_change_it.into()),
        ..WhyResult::default()
    })
}

fn explain_note(views: &VaultViews, path: &RecordPath) -> Result<WhyResult, ToolError> {
    if wait_for(views.read().find_subject(path))?.is_none() {
        return Err(refuse_missing_note(path));
    }
    let filter =
        ActionFilter { target: Some(path.clone()), kinds: vec![ActionKind::Action], ..ActionFilter::default() };
    let newest = wait_for(views.actions().actions_page(&filter, None, 1))?.rows.pop();
    let decided = newest.map(|row| wait_for(views.read_detail(row.id.as_str()))).transpose()?;
    let show = |signal: WeighedSignal| SaidAbout {
        signal: show_path(&signal.path),
        source: signal.source.into(),
        quote: signal.note.into(),
        status: signal.status.as_str().to_owned(),
        reason: signal.reason.map(Into::into),
    };
    let signals = wait_for(views.read().list_signals_about(path, MAX_SIGNALS))?.into_iter().map(show).collect();
    let resolved = match &decided {
        Some(detail) => find_resolution(views, &detail.action.id)?,
        None => None,
    };
    Ok(WhyResult { resolved, ..WhyResult::new(decided.as_ref(), signals) })
}

/// The undo, confirmation or dismissal of an action.
fn find_resolution(views: &VaultViews, id: &str) -> Result<Option<ShownAction<ActionLine>>, ToolError> {
    let Some(resolution) = wait_for(views.find_action_row(id))?.resolved_by else { return Ok(None) };
    let detail = wait_for(views.read_detail(resolution.as_str()))?;
    Ok(Some(ShownAction(ActionLine::new(&detail.action))))
}
