//! `history`: what happened to a workspace, from its runs and its log, newest first.
//!
//! A run that waits or is under way is shown with its state. What a person did without a run is in the log alone.

use super::search::read_moment;
use super::write::{RunChoice, open_run, refuse_change, render_diff};
use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::cut_to_tokens;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::{DiffSide, RunDiffLine, WikiRunFile, WikiRunRow, find_wiki_run, list_wiki_runs, shorten_run};
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::log::{LogEntry, read_log};
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES};
use steward_vault::wiki::guardian::StagedPage;
use steward_vault::wiki::staged::StagedRuns;

/// The state of a run that is being written or waits.
const OPEN: &str = "pending";
/// The most tokens of the diff of one file, and of those of a run together.
const MAX_DIFF_TOKENS: usize = 1_500;
const MAX_DIFFS_TOKENS: usize = 5_000;
/// The most findings of a run that are shown.
const MAX_FINDINGS: usize = 20;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "history",
    title: "History",
    description: "Shows what happened, newest first: runs with their state, and entries of the log; with run_id one run with what was found and its diffs. \
        Example: history(op=\"ingest\", since=\"2026-11-01\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<HistoryArguments>,
    result: Some(describe_result::<HistoryResult>),
    run: history,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryArguments {
    /// `ingest`, `query`, `lint` or `manual`, as in the log, or the type of a run, such as `archive` and `rollback`.
    #[schemars(length(max = 20))]
    op: Option<String>,
    /// From this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// Before this day or moment.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// `committed`, `pending`, `verifying`, `taken_back`, `rejected` or `abandoned`.
    #[schemars(length(max = 20))]
    status: Option<String>,
    /// Your own runs alone.
    #[serde(default)]
    mine: bool,
    /// This run alone, with what was found and what it changes.
    #[schemars(length(max = 40))]
    run_id: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 300))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    30
}

#[derive(Debug, Serialize, JsonSchema)]
struct HistoryResult {
    entries: Vec<HistoryEntry>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// With `run_id`: what was found, and what the run changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunDetails>,
}

/// What is known of one run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct RunDetails {
    /// The whole id.
    run_id: String,
    /// The action id of a submitted run, for `steward_undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// Outside words: what the rules or the verifier found, one line each.
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

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct HistoryEntry {
    at: String,
    op: String,
    /// Outside words: what was done, or the subject in the log.
    title: OutsideWords,
    /// The 8 characters that name the run; absent for what was no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Whether it waits for a person.
    waits: bool,
    /// Outside words: the lines of the log below the subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<OutsideWords>,
}

fn history(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<HistoryArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 200)?;
    let since = arguments.since.as_deref().map(read_moment).transpose()?;
    let until = arguments.until.as_deref().map(read_moment).transpose()?;
    let log = workspace.folder.read_text(LOG_FILE, MAX_GENERATED_BYTES).map_err(ToolError::internal)?;
    let logged = read_log(&log.unwrap_or_default()).entries;
    let own = arguments.mine.then(|| list_own_runs(call, &workspace)).transpose()?;
    let named = arguments.run_id.as_deref().map(|run| describe_run(call, &workspace, run)).transpose()?;
    let (named, details) = named.unzip();
    let mut by_run: BTreeMap<String, LogEntry> = BTreeMap::new();
    let mut entries: Vec<(DateTime<Utc>, HistoryEntry)> = Vec::new();
    for entry in logged.into_iter().rev() {
        match entry.find_run().map(str::to_owned) {
            Some(run) => drop(by_run.entry(run).or_insert(entry)),
            None => entries.push((entry.at, describe_entry(entry, None))),
        }
    }
    // A run that goes on while it is read is shown as it was at one moment.
    let is_wanted = |run: &str| named.as_ref().is_none_or(|named| shorten_run(&named.run) == shorten_run(run));
    let runs = match &named {
        Some(run) => vec![run.clone()],
        None => {
            list_wiki_runs(workspace.vault.root(), Some(&workspace.name), usize::MAX).map_err(ToolError::internal)?
        }
    };
    for run in runs {
        let short = shorten_run(&run.run).to_owned();
        let logged = by_run.remove(&run.run).or_else(|| by_run.remove(&short));
        let details = logged.as_ref().map(|entry| entry.bullets.join("\n").into());
        let title = logged.map_or(run.what, |entry| entry.subject);
        let entry = HistoryEntry {
            at: steward_domain::time::format_seconds(run.at),
            op: run.run_type,
            title: title.into(),
            run: Some(short),
            status: Some(run.state),
            waits: run.waits,
            details,
        };
        entries.push((run.at, entry));
    }
    // The log also names what has a record of another kind, such as a source that was added.
    entries.extend(by_run.into_iter().map(|(run, entry)| (entry.at, describe_entry(entry, Some(run)))));
    entries.retain(|(at, entry)| {
        since.is_none_or(|since| *at >= since)
            && until.is_none_or(|until| *at < until)
            && arguments.op.as_ref().is_none_or(|op| entry.op == *op)
            && arguments.status.as_ref().is_none_or(|status| entry.status.as_ref() == Some(status))
            && (named.is_none() || entry.run.as_deref().is_some_and(is_wanted))
            && own.as_ref().is_none_or(|own| entry.run.as_ref().is_some_and(|run| own.contains(run)))
    });
    let filters = (&workspace.name, &arguments.op, &arguments.since, &arguments.until, &arguments.status);
    let filters = (filters, arguments.mine, &arguments.run_id);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let after = cursors.read(arguments.cursor.as_deref())?.map(|JsonPosition(after)| after);
    let rest = EntryPosition::number(entries).into_iter();
    let rest = rest.filter(|(position, _)| after.as_ref().is_none_or(|after| position > after));
    let mut rows: Vec<ListRow<HistoryEntry>> =
        rest.map(|(position, row)| ListRow { row, position: JsonPosition(position).to_string() }).collect();
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|row| row.position.clone());
    let ListPart { rows, cursor } = cursors.cut(rows, next);
    answer_value(&HistoryResult { entries: rows, truncated: cursor.is_some(), cursor, run: details })
}

/// Where an entry stands in a list that begins with the newest. Those of the same moment keep the order in which they were read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
struct EntryPosition {
    at: Reverse<i64>,
    /// From the oldest of this moment, so that a newer one moves none.
    number: Reverse<usize>,
}

impl EntryPosition {
    /// Sorts entries, newest first.
    fn number(mut entries: Vec<(DateTime<Utc>, HistoryEntry)>) -> Vec<(Self, HistoryEntry)> {
        entries.sort_by_key(|(at, _)| Reverse(*at));
        let (mut numbered, mut of_moment): (Vec<(Self, HistoryEntry)>, usize) = (Vec::new(), 0);
        for (at, entry) in entries.into_iter().rev() {
            let at = Reverse(at.timestamp_millis());
            of_moment = if numbered.last().is_some_and(|(last, _)| last.at == at) { of_moment + 1 } else { 0 };
            numbered.push((Self { at, number: Reverse(of_moment) }, entry));
        }
        numbered.reverse();
        numbered
    }
}

/// The short names of the caller's runs.
fn list_own_runs(call: &ToolCall, workspace: &Workspace<'_>) -> Result<BTreeSet<String>, ToolError> {
    let runs = StagedRuns::new(workspace.vault.root()).list().map_err(ToolError::internal)?;
    let own = runs.into_iter().filter(|run| run.meta.by == call.caller.name && run.meta.wiki == workspace.name);
    Ok(own.map(|run| run.meta.run.short().to_owned()).collect())
}

/// What is known of a run of this workspace. What is staged and not submitted is shown to its caller alone.
fn describe_run(call: &ToolCall, workspace: &Workspace<'_>, name: &str) -> Result<(WikiRunRow, RunDetails), ToolError> {
    let root = workspace.vault.root();
    let found = find_wiki_run(root, name).map_err(ToolError::internal)?;
    let Some(view) = found.filter(|view| view.row.wiki == workspace.name) else {
        let what = format!("there is no run `{}` in this workspace", shorten_outside(name));
        return Err(ToolError::new(ToolErrorCode::RunUnknown, what, "`history` lists the runs"));
    };
    let line = |line: &RunDiffLine| match line.side {
        DiffSide::Before => format!("-{}\n", line.text),
        DiffSide::After => format!("+{}\n", line.text),
    };
    let most = MAX_DIFF_TOKENS.min(MAX_DIFFS_TOKENS / view.files.len().max(1));
    let show = |file: WikiRunFile| {
        let diff: String = file.lines.iter().map(line).collect();
        Some(ChangedFile { path: to_path(&file.file)?, diff: OutsideWords(cut_to_tokens(&diff, most).to_owned()) })
    };
    let mut files: Vec<ChangedFile> = view.files.into_iter().filter_map(show).collect();
    if files.is_empty() && view.row.state == OPEN {
        files = list_open_files(call, workspace, name)?;
    }
    let details = RunDetails {
        run_id: view.row.run.clone(),
        action: view.row.is_submitted().then(|| view.row.derive_action()),
        findings: view.findings.into_iter().take(MAX_FINDINGS).map(OutsideWords).collect(),
        files,
    };
    Ok((view.row, details))
}

/// What an open run of the caller has staged so far.
fn list_open_files(call: &ToolCall, workspace: &Workspace<'_>, name: &str) -> Result<Vec<ChangedFile>, ToolError> {
    let choice = RunChoice { run: Some(name), run_type: None, source: None };
    let Ok((session, _)) = open_run(call, workspace, &choice) else { return Ok(Vec::new()) };
    let pages = session.list_pages().map_err(refuse_change)?;
    let show =
        |page: &StagedPage| Some(ChangedFile { path: to_path(&page.file)?, diff: OutsideWords(render_diff(page)) });
    Ok(pages.iter().filter_map(show).collect())
}

fn describe_entry(entry: LogEntry, run: Option<String>) -> HistoryEntry {
    HistoryEntry {
        at: steward_domain::time::format_seconds(entry.at),
        op: entry.log_type.map(|log_type| log_type.to_string()).unwrap_or_default(),
        title: entry.subject.into(),
        run: run.map(|run| shorten_run(&run).to_owned()),
        status: None,
        waits: false,
        details: Some(entry.bullets.join("\n").into()).filter(|details: &OutsideWords| !details.0.is_empty()),
    }
}
