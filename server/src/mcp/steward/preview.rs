//! `steward_preview`: what an undo, a confirmation or a dismissal of an action would do now.
//!
//! An undo is planned by the code that would carry it out, and stopped before anything is written.

use super::READ_STEWARD;
use super::facts::{open_views, read_whole_id, wait_for};
use super::resolve::{describe_earlier, refuse_ceiling_undo, refuse_resolution};
use super::wiki_runs::{find_wiki_run, preview_wiki_approval, preview_wiki_undo};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::action::{Action, ActionChange};
use crate::views::wiki::WikiRunRow;
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steward_domain::action::undo::ResolutionRefusal;
use steward_domain::time::format_seconds;
use steward_vault::action::preview::{FieldUndoOutcome, UndoPreview};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::gates::stop;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_preview",
    title: "Preview a resolution",
    description: "Shows what a resolution of an action would do now, or why it would be refused. \
        Example: steward_preview(action=\"3f9a1c22b07d4e51\", resolution=\"undo\")",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<PreviewArguments>,
    result: Some(describe_result::<PreviewResult>),
    run: preview_resolution,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewArguments {
    /// The whole id.
    #[schemars(length(min = 16, max = 16))]
    action: String,
    resolution: ResolutionArgument,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ResolutionArgument {
    Undo,
    Confirm,
    Dismiss,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct PreviewResult {
    /// What would change.
    pub(super) fields: Vec<FieldChange>,
    /// Fields that people edited since.
    pub(super) kept: Vec<FieldChange>,
    /// Newer actions to undo first, in order.
    pub(super) undo_first: Vec<String>,
    /// Outside words: what the tracker would be owed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tracker: Option<OutsideWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) undo_until: Option<String>,
    /// The number of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<u64>,
    /// Outside words: why it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<OutsideWords>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct FieldChange {
    pub(super) field: String,
    /// Outside words: the value now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<OutsideWords>,
    /// Outside words: the value after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<OutsideWords>,
}

fn preview_resolution(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let PreviewArguments { action, resolution } = call.read_arguments()?;
    let id = read_whole_id(&action)?;
    if let Some(run) = find_wiki_run(call, &id)? {
        return answer_value(&preview_wiki_run(call, &run, resolution)?);
    }
    let views = open_views(call)?;
    let row = wait_for(views.find_action_row(&id))?;
    if let ResolutionArgument::Undo = resolution {
        refuse_ceiling_undo(row.kind)?;
        return match views.preview_undo(&row.path, Utc::now()) {
            Ok(preview) => answer_value(&show_undo(preview)),
            Err(ResolutionError::Refused(refusal)) => Err(refuse_resolution(&refusal)),
            Err(ResolutionError::Apply(e)) => Err(ToolError::internal(e)),
        };
    }
    let action = wait_for(views.read_detail(&id))?.action;
    let is_confirmation = matches!(resolution, ResolutionArgument::Confirm);
    let refusal = find_refusal(&views, &action, is_confirmation);
    let change = action.change.filter(|_| is_confirmation && refusal.is_none());
    let show = |change: ActionChange| FieldChange {
        field: change.field,
        now: change.before.map(Into::into),
        after: change.after.map(Into::into),
    };
    let result = PreviewResult { fields: change.map(show).into_iter().collect(), ..PreviewResult::default() };
    answer_value(&with_refusal(result, refusal.as_ref()))
}

/// A person alone commits a run that waits. A dismissal ends it, and changes nothing of the wiki.
fn preview_wiki_run(
    call: &ToolCall,
    run: &WikiRunRow,
    resolution: ResolutionArgument,
) -> Result<PreviewResult, ToolError> {
    if let ResolutionArgument::Undo = resolution {
        return preview_wiki_undo(call, run);
    }
    let refusal = ResolutionRefusal::NotPending { id: run.derive_action(), disposition: run.state.clone() };
    match resolution {
        ResolutionArgument::Confirm if run.waits => preview_wiki_approval(call, run),
        _ => Ok(with_refusal(PreviewResult::default(), (!run.waits).then_some(&refusal))),
    }
}

fn with_refusal(result: PreviewResult, refusal: Option<&ResolutionRefusal>) -> PreviewResult {
    PreviewResult {
        refused: refusal.map(|refusal| u64::from(refusal.http_status())),
        refusal: refusal.map(|refusal| refusal.to_string().into()),
        ..result
    }
}

/// Why a confirmation or a dismissal would be refused, as far as the record and the stop say.
fn find_refusal(views: &VaultViews, action: &Action, is_confirmation: bool) -> Option<ResolutionRefusal> {
    let id = || action.id.clone();
    if let Some(how) = action.resolution.as_deref() {
        return Some(describe_earlier(id(), how));
    }
    if action.is_open_question() {
        return is_confirmation.then(|| ResolutionRefusal::NothingProposed { id: id() });
    }
    if !action.waits {
        return Some(ResolutionRefusal::NotPending { id: id(), disposition: action.disposition.clone() });
    }
    if !is_confirmation {
        return None;
    }
    if !action.confirmable {
        return Some(ResolutionRefusal::HumanOnly { id: id() });
    }
    stop::is_stopped(views.root()).then_some(ResolutionRefusal::Stopped)
}

fn show_undo(preview: UndoPreview) -> PreviewResult {
    let mut result = PreviewResult {
        undo_first: preview.newer.iter().map(ToString::to_string).collect(),
        tracker: preview.tracker.as_ref().map(|owed| owed.to_string().into()),
        undo_until: preview.until.map(format_seconds),
        ..PreviewResult::default()
    };
    for field in preview.fields {
        let (now, then) = (field.now.as_ref().map(show_value), field.then.as_ref().map(show_value));
        match field.fate {
            FieldUndoOutcome::Restored => {
                result.fields.push(FieldChange { field: field.field, now, after: then });
            }
            FieldUndoOutcome::EditedSince => {
                result.kept.push(FieldChange { field: field.field, now, after: None });
            }
            FieldUndoOutcome::AsBefore | FieldUndoOutcome::Untouched => {}
        }
    }
    with_refusal(result, preview.refusal.map(|refused| refused.refusal).as_ref())
}

fn show_value(value: &Value) -> OutsideWords {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned).into()
}
