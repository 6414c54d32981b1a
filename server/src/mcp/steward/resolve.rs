//! `steward_undo` and `steward_dismiss`: resolve one action, as a click does, through the process that holds the vault.
//!
//! The record says that a model resolved it, so trust learns nothing from it. Refusals have the numbers and the words of the other interfaces.

use super::RESOLVE;
use super::facts::{open_views, read_whole_id, wait_for};
use super::wiki_runs::{find_wiki_run, refuse_without_person};
use crate::access::AccessScope;
use crate::http::app::check_may_resolve;
use crate::mcp::caller::ToolNeed;
use crate::mcp::error::{REASON, ToolError, ToolErrorCode, refuse_request, show_reason};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use crate::views::wiki::WikiRunRow;
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steward_domain::action::audit::{ActionKind, ResolverKind};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::run::RunId;
use steward_vault::wiki::guardian::is_written_for;
use steward_vault::wiki::staged::StagedRuns;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};

pub(super) const UNDO: ToolDefinition = ToolDefinition {
    name: "steward_undo",
    title: "Undo an action",
    description: "Undoes the change of one action, within 7 days, or takes a committed run of a wiki back. Look at `steward_preview` first. \
        Example: steward_undo(action=\"3f9a1c22b07d4e51\", reason=\"the rent is not paid yet\")",
    kind: ToolKind { need: ToolNeed::WriteOrAct, for_writers: true, ..RESOLVE },
    arguments: describe_vault_arguments::<ResolveArguments>,
    result: Some(describe_result::<ResolveResult>),
    run: |call| resolve_action(call, ResolutionKind::Undo),
};

pub(super) const DISMISS: ToolDefinition = ToolDefinition {
    name: "steward_dismiss",
    title: "Dismiss a proposal",
    description: "Rejects a proposal that waits, or ends a question. It changes no note. \
        Example: steward_dismiss(action=\"3f9a1c22b07d4e51\", reason=\"it is about another house\")",
    kind: RESOLVE,
    arguments: describe_vault_arguments::<ResolveArguments>,
    result: Some(describe_result::<ResolveResult>),
    run: |call| resolve_action(call, ResolutionKind::Dismiss),
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResolveArguments {
    /// The whole id.
    #[schemars(length(min = 16, max = 16))]
    action: String,
    /// Kept in audit records alone.
    #[schemars(length(min = 1, max = 2000))]
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ResolveResult {
    /// The action that was resolved.
    action: String,
    /// The id of its resolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo_id: Option<String>,
    /// Outside words: the path of the record of the resolution.
    record: OutsideWords,
    /// Outside words: the path of the note.
    target: OutsideWords,
    /// Outside words: the tracker's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracker: Option<OutsideWords>,
    /// Outside words: what was demoted, or what stayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    demoted: Option<OutsideWords>,
}

fn resolve_action(call: &ToolCall, kind: ResolutionKind) -> Result<ToolAnswer, ToolError> {
    let ResolveArguments { action, reason } = call.read_arguments()?;
    let action = read_whole_id(&action)?;
    if reason.trim().is_empty() {
        let what = "`reason` says nothing";
        return Err(ToolError::new(ToolErrorCode::BadArguments, what, "Say why, for the person who reads the record"));
    }
    if let Some(run) = find_wiki_run(call, &action)? {
        return resolve_wiki_run(call, run, kind, ResolveArguments { action, reason });
    }
    if !call.caller.may_act {
        let what = "you may undo runs of a wiki that you committed yourself, and this is none";
        return Err(ToolError::new(ToolErrorCode::ScopeTooSmall, what, "A person can undo it in the dashboard"));
    }
    let row = wait_for(open_views(call)?.find_action_row(&action))?;
    if kind == ResolutionKind::Undo {
        refuse_ceiling_undo(row.kind)?;
    }
    let input = ResolveInput {
        kind,
        action: action.clone(),
        by: call.caller.name.clone(),
        reason: Some(reason),
        edited: None,
        batch_id: None,
        resolved_by: ResolverKind::Agent,
    };
    let holder = wait_for(call.vault.reach_holder())?;
    match wait_for(holder.request_resolution(input)).map_err(|e| refuse_request(&e))? {
        ResolveOutput::Done { action_id, record, target, tracker, lowered, .. } => answer_value(&ResolveResult {
            action,
            undo_id: Some(action_id.to_string()),
            record: record.as_str().into(),
            target: target.as_str().into(),
            tracker: tracker.map(Into::into),
            demoted: (!lowered.is_empty()).then(|| lowered.join("; ").into()),
        }),
        ResolveOutput::Refused { refusal, .. } => Err(refuse_resolution(&refusal)),
    }
}

/// Takes a committed run back, or ends one that waits. Who may only write does that with own runs.
fn resolve_wiki_run(
    call: &ToolCall,
    row: WikiRunRow,
    kind: ResolutionKind,
    ResolveArguments { action, reason }: ResolveArguments,
) -> Result<ToolAnswer, ToolError> {
    let run: RunId = row.run.parse().map_err(ToolError::internal)?;
    if !call.caller.may_act && !is_own_run(call, &row, &run) {
        let what = "another caller committed this run";
        return Err(ToolError::new(ToolErrorCode::ScopeTooSmall, what, "A person can take it back in the dashboard"));
    }
    if row.waits && kind == ResolutionKind::Undo {
        return Err(refuse_without_person(call, &row));
    }
    if !row.waits && kind == ResolutionKind::Dismiss {
        let refusal = ResolutionRefusal::NotPending { id: action, disposition: row.state };
        return Err(refuse_resolution(&refusal));
    }
    let request = match kind {
        ResolutionKind::Undo => WikiRequest::Revert { run, keep_edited: false, reason: Some(reason) },
        _ => WikiRequest::Reject { run, reason: Some(reason) },
    };
    let input = WikiRunInput { wiki: row.wiki.clone(), by: call.caller.name.clone(), at: Utc::now(), request };
    let holder = wait_for(call.vault.reach_holder())?;
    match wait_for(holder.request_wiki_run(input)).map_err(|e| refuse_request(&e))? {
        WikiRunOutput::Done { record, notes, .. } => answer_value(&ResolveResult {
            action,
            undo_id: None,
            record: record.as_ref().map_or("", RecordPath::as_str).into(),
            target: row.wiki.into(),
            tracker: None,
            demoted: (!notes.is_empty()).then(|| notes.join("; ").into()),
        }),
        WikiRunOutput::Refused { status, message } => {
            let what = format!("{status}: the run stays as it is");
            Err(ToolError::new(ToolErrorCode::Refused, what, "`history` shows how the run stands")
                .with_outside(REASON, &message))
        }
    }
}

/// Whether an assistant of the caller wrote a run. The record of a committed run says it when its folder is gone.
fn is_own_run(call: &ToolCall, row: &WikiRunRow, run: &RunId) -> bool {
    match StagedRuns::new(call.vault.root()).peek(run) {
        Ok(staged) => staged.meta.is_by_assistant() && staged.meta.by == call.caller.name,
        Err(_) => row.is_committed() && is_written_for(&row.what, &call.caller.name),
    }
}

/// Refuses to undo how far a sender may go: no caller here may set that.
pub(super) fn refuse_ceiling_undo(resolved: ActionKind) -> Result<(), ToolError> {
    check_may_resolve(AccessScope::Act, ResolutionKind::Undo, resolved).map_err(|problem| {
        let fix = "A person can do it in the dashboard";
        ToolError::new(ToolErrorCode::ScopeTooSmall, show_reason(&problem.detail), fix)
    })
}

/// That an action was resolved before. Who did it stands in the record.
pub(super) fn describe_earlier(id: String, how: &str) -> ResolutionRefusal {
    let how = how.trim_start_matches("steward-action-").to_owned();
    ResolutionRefusal::AlreadyResolved { id, how, by: "somebody".to_owned(), undo: None }
}

/// A refusal of the rules, with the number and the words of the other interfaces.
pub(super) fn refuse_resolution(refusal: &ResolutionRefusal) -> ToolError {
    let json = serde_json::to_value(refusal).unwrap_or_default();
    let rule = json.get("refused").and_then(Value::as_str).unwrap_or_default();
    let what = format!("{} {rule}", refusal.http_status());
    ToolError::new(ToolErrorCode::Refused, what, "`steward_preview` and `steward_actions` show how it stands")
        .with_outside(REASON, &refusal.to_string())
}
