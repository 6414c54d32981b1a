//! Runs of wikis among the actions of the stewards: by their action ids they are found, previewed and resolved like any other.
//!
//! A preview is planned by the code that takes a run back, and stopped before anything is written. A run that waits has no record
//! yet, so it is read from its folder.

use super::facts::open_views;
use super::lines::ActionLine;
use crate::http::serving::ServerEndpoint;
use crate::mcp::error::{CONFLICT, ToolError, ToolErrorCode, show_reason};
use crate::mcp::outside::OutsideWords;
use crate::mcp::steward::preview::{FieldChange, PreviewResult};
use crate::mcp::tokens::cut_to_tokens;
use crate::mcp::tool::ToolCall;
use crate::views::action::Action;
use crate::views::wiki::{WikiRunRow, list_run_lines, list_wiki_runs};
use chrono::{DateTime, Utc};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::rollback::{EditedPages, KeptPage};
use steward_vault::wiki::revert::{RevertError, preview_revert};
use steward_vault::wiki::runs::find_run_records;
use steward_vault::wiki::staged::StagedRuns;

/// What a preview shows of the lines that a page loses, and of those that it gains, in tokens: a run has at most 15 pages and the files of code.
const MAX_SIDE_TOKENS: usize = 200;

/// The run of an action, if there is one and its workspace is seen.
pub(super) fn find_wiki_run(call: &ToolCall, action: &str) -> Result<Option<WikiRunRow>, ToolError> {
    Ok(list_seen_runs(call)?.into_iter().find(|row| row.derive_action() == action))
}

/// All runs of the workspaces that a caller sees, newest first.
pub(super) fn list_seen_runs(call: &ToolCall) -> Result<Vec<WikiRunRow>, ToolError> {
    list_wiki_runs(call.vault.root(), call.caller.workspace.as_deref(), usize::MAX).map_err(ToolError::internal)
}

/// The runs that wait for a person; with `since`, those of that moment and later.
pub(super) fn list_waiting(runs: &[WikiRunRow], since: Option<DateTime<Utc>>) -> Vec<ActionLine> {
    let is_meant = |row: &&WikiRunRow| row.waits && since.is_none_or(|since| row.at >= since);
    runs.iter().filter(is_meant).map(ActionLine::of_wiki_run).collect()
}

/// The line of an action. A committed run is shown as its wiki lists it: its record names no note.
pub(super) fn show_line(runs: &[WikiRunRow], action: &Action) -> ActionLine {
    let is_run = action.kind == ActionKind::Wiki.as_str();
    let run = runs.iter().find(|run| is_run && run.derive_action() == action.id);
    run.map_or_else(|| ActionLine::new(action), ActionLine::of_wiki_run)
}

/// How many runs wait for a person.
pub(super) fn count_waiting_runs(call: &ToolCall) -> Result<u64, ToolError> {
    let staged = StagedRuns::new(call.vault.root()).list().map_err(ToolError::internal)?;
    Ok(staged.iter().filter(|run| run.status.waits).count() as u64)
}

impl ActionLine {
    pub(super) fn of_wiki_run(row: &WikiRunRow) -> Self {
        let disposition = match row {
            row if row.is_committed() => "live",
            row if row.is_submitted() => "pending",
            _ => "recorded",
        };
        Self {
            id: row.derive_action(),
            kind: ActionKind::Wiki.as_str().to_owned(),
            at: steward_domain::time::format_seconds(row.at),
            target: format!("wiki/{}", row.wiki).into(),
            decision: row.run_type.clone(),
            confidence: None,
            disposition: disposition.to_owned(),
            field: Some(format!("run {}", row.short())),
            before: None,
            after: Some(row.what.as_str().into()),
            waits: row.waits,
            undo_until: None,
            resolution: row.reverted_by.as_ref().map(|_| row.state.clone()),
            resolves: None,
            by: None,
        }
    }
}

/// Refuses what a person alone decides, with the address where they do.
pub(super) fn refuse_without_person(call: &ToolCall, row: &WikiRunRow) -> ToolError {
    let short = row.short();
    let what = format!("the run {short} waits for a person, so there is nothing to undo yet");
    let fix = match find_address(call, row) {
        Some(address) => format!("Show them {address}, where they approve or reject it"),
        None => format!("They decide by `steward wiki runs approve {short}` or `steward wiki runs reject {short}`"),
    };
    ToolError::new(ToolErrorCode::NeedsHuman, what, fix)
}

/// The page of a run, if a dashboard runs.
pub(super) fn find_address(call: &ToolCall, row: &WikiRunRow) -> Option<String> {
    find_card_address(call, &row.wiki, row.short())
}

/// The page of a run of a wiki, by the 8 characters that name it, if a dashboard runs.
pub(crate) fn find_card_address(call: &ToolCall, wiki: &str, run: &str) -> Option<String> {
    let views = open_views(call).ok()?;
    let endpoint = ServerEndpoint::find_for_vault(views.root(), views.state_dir())?;
    Some(format!("{}/wikis/{wiki}/runs/{run}", endpoint.build_address(false)))
}

/// What taking a run back would do now.
pub(super) fn preview_wiki_undo(call: &ToolCall, row: &WikiRunRow) -> Result<PreviewResult, ToolError> {
    if !row.is_committed() {
        let refusal = format!("the run {} was not committed: it is {}", row.short(), row.state);
        return Ok(refuse_preview(refusal));
    }
    let root = call.vault.root();
    let records = find_run_records(root, &row.run).map_err(ToolError::internal)?;
    let [record]: [RecordPath; 1] =
        records.try_into().map_err(|_| ToolError::internal("the record of the run is missing"))?;
    match preview_revert(root, &record, EditedPages::Refuse, Utc::now()) {
        Ok(preview) => {
            let keep = |kept: &KeptPage| FieldChange {
                field: format!("wiki/{}/{}", row.wiki, kept.file),
                now: Some(kept.reason.to_string().into()),
                after: None,
            };
            Ok(PreviewResult {
                fields: show_files(row, &preview.files),
                kept: preview.kept.iter().map(keep).collect(),
                ..PreviewResult::default()
            })
        }
        Err(e @ (RevertError::Conflicts(_) | RevertError::Nothing(_) | RevertError::Again(_))) => {
            Ok(refuse_preview(show_reason(&e.to_string())))
        }
        Err(e) => Err(ToolError::internal(e)),
    }
}

/// What a person's approval of a run that waits would do now: the files that were staged.
pub(super) fn preview_wiki_approval(call: &ToolCall, row: &WikiRunRow) -> Result<PreviewResult, ToolError> {
    let run = row.run.parse().map_err(ToolError::internal)?;
    let staged = StagedRuns::new(call.vault.root()).peek(&run).map_err(ToolError::internal)?;
    let files = staged.read_staged().map_err(ToolError::internal)?.map(|(_, files)| files).unwrap_or_default();
    Ok(PreviewResult { fields: show_files(row, &files), ..PreviewResult::default() })
}

/// The lines of each file that go, and those that come.
fn show_files(row: &WikiRunRow, files: &[RunFile]) -> Vec<FieldChange> {
    let show = |file: &RunFile| {
        let (now, after) = list_run_lines(file);
        let after = if file.after.is_none() { Some("(removed)".into()) } else { cut_lines(after) };
        FieldChange { field: format!("wiki/{}/{}", row.wiki, file.path.file()), now: cut_lines(now), after }
    };
    files.iter().map(show).collect()
}

fn refuse_preview(why: String) -> PreviewResult {
    PreviewResult { refused: Some(CONFLICT.into()), refusal: Some(why.into()), ..PreviewResult::default() }
}

fn cut_lines(lines: Vec<String>) -> Option<OutsideWords> {
    let text = lines.join("\n");
    let shown = cut_to_tokens(&text, MAX_SIDE_TOKENS);
    let more = if shown.len() < text.len() { "\n(cut)" } else { "" };
    (!text.is_empty()).then(|| format!("{}{more}", shown.trim_end()).into())
}
