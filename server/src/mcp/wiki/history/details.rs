//! One run of the history: what was found, what it changes, and where a person decides about it.
//!
//! What is staged and not submitted is shown to its caller alone.

use super::OPEN;
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::steward::find_card_address;
use crate::mcp::tokens::{count_fitting, cut_to_tokens};
use crate::mcp::tool::ToolCall;
use crate::mcp::wiki::excerpt::shorten_words;
use crate::mcp::wiki::write::{RunChoice, open_run, refuse_ambiguous, refuse_change, render_diff};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::{DiffSide, RunDiffLine, WikiRunFile, WikiRunRow, find_wiki_run, list_named_runs};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use steward_domain::wiki::run::RunId;
use steward_vault::wiki::guardian::StagedPage;
use steward_vault::wiki::run_facts::count_loops;
use steward_vault::wiki::staged::StagedRuns;

/// The most tokens of the diff of one file, and of those of a run together.
const MAX_DIFF_TOKENS: usize = 1_500;
const MAX_DIFFS_TOKENS: usize = 5_000;
/// The most findings of a run that are shown, their most tokens, and the most characters of one.
const MAX_FINDINGS: usize = 20;
const MAX_FINDINGS_TOKENS: usize = 1_000;
const MAX_FINDING: usize = 300;

/// What is known of one run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct RunDetails {
    // The whole id.
    run_id: String,
    // The action id of a submitted run.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// Where a person decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<String>,
    /// How often it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    loops: Option<u64>,
    /// Outside words: what was found.
    findings: Vec<OutsideWords>,
    files: Vec<ChangedFile>,
}

/// A file that a run changes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct ChangedFile {
    path: String,
    /// Outside words: the lines that it gains and loses, with `+` and `-`.
    diff: OutsideWords,
}

/// The one run of this workspace that a call names.
///
/// # Errors
/// [`ToolErrorCode::RunUnknown`], [`ToolErrorCode::RunAmbiguous`].
fn find_named_run(workspace: &Workspace<'_>, name: &str) -> Result<RunId, ToolError> {
    let found = list_named_runs(workspace.vault.root(), &workspace.name, name).map_err(ToolError::internal)?;
    match found.as_slice() {
        [run] => Ok(run.clone()),
        [] => Err(refuse_unknown(name)),
        several => Err(refuse_ambiguous(name, several)),
    }
}

fn refuse_unknown(name: &str) -> ToolError {
    let what = format!("there is no run `{}` in this workspace", shorten_outside(name));
    ToolError::new(ToolErrorCode::RunUnknown, what, "`history` lists the runs")
}

/// What is known of a run of this workspace.
pub(super) fn describe_run(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    name: &str,
) -> Result<(WikiRunRow, RunDetails), ToolError> {
    let root = workspace.vault.root();
    let run = find_named_run(workspace, name)?;
    let found = find_wiki_run(root, run.as_str()).map_err(ToolError::internal)?;
    let Some(view) = found.filter(|view| view.row.wiki == workspace.name) else { return Err(refuse_unknown(name)) };
    let row = view.row;
    // A run that is open again still has what was submitted before.
    let files = match row.state == OPEN && !row.waits {
        true => list_open_files(call, workspace, run.as_str())?,
        false => show_files(view.files),
    };
    let findings = view.findings.iter().take(MAX_FINDINGS);
    let mut findings: Vec<OutsideWords> = findings.map(|finding| shorten_words(finding, MAX_FINDING)).collect();
    findings.truncate(count_fitting(&findings, MAX_FINDINGS_TOKENS));
    let details = RunDetails {
        run_id: row.run.clone(),
        action: row.is_submitted().then(|| row.derive_action()),
        card: if row.waits { find_card_address(call, &row.wiki, row.short()) } else { None },
        loops: StagedRuns::new(root).peek(&run).ok().map(|staged| count_loops(&staged)),
        findings,
        files,
    };
    Ok((row, details))
}

fn show_files(files: Vec<WikiRunFile>) -> Vec<ChangedFile> {
    let line = |line: &RunDiffLine| match line.side {
        DiffSide::Before => format!("-{}\n", line.text),
        DiffSide::After => format!("+{}\n", line.text),
    };
    let most = share_tokens(files.len());
    let show = |file: WikiRunFile| {
        let diff: String = file.lines.iter().map(line).collect();
        Some(ChangedFile { path: to_path(&file.file)?, diff: cut_diff(&diff, most) })
    };
    files.into_iter().filter_map(show).collect()
}

/// What an open run of the caller has staged so far.
fn list_open_files(call: &ToolCall, workspace: &Workspace<'_>, run: &str) -> Result<Vec<ChangedFile>, ToolError> {
    let choice = RunChoice { run: Some(run), run_type: None, source: None };
    let Ok((session, _)) = open_run(call, workspace, &choice) else { return Ok(Vec::new()) };
    let pages = session.list_pages().map_err(refuse_change)?;
    let most = share_tokens(pages.len());
    let show =
        |page: &StagedPage| Some(ChangedFile { path: to_path(&page.file)?, diff: cut_diff(&render_diff(page), most) });
    Ok(pages.iter().filter_map(show).collect())
}

/// What the diff of one of so many files may take.
fn share_tokens(files: usize) -> usize {
    MAX_DIFF_TOKENS.min(MAX_DIFFS_TOKENS / files.max(1))
}

fn cut_diff(diff: &str, most: usize) -> OutsideWords {
    cut_to_tokens(diff, most).into()
}
