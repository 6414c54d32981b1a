//! `history`: what happened to a workspace, from its runs and its log, newest first.
//!
//! A run that waits or is under way is shown with its state. What a person did without a run is in the log alone.

use super::search::read_moment;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::views::wiki::{list_wiki_runs, shorten_run};
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steward_domain::wiki::log::{LogEntry, read_log};
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "history",
    title: "History",
    description: "Shows what happened, newest first: runs with their state, and entries of the log. \
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
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
}

fn default_limit() -> u64 {
    30
}

#[derive(Debug, Serialize, JsonSchema)]
struct HistoryResult {
    entries: Vec<HistoryEntry>,
    /// Whether there are more: narrow the time, or raise the limit.
    truncated: bool,
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
    let mut by_run: BTreeMap<String, LogEntry> = BTreeMap::new();
    let mut entries: Vec<(DateTime<Utc>, HistoryEntry)> = Vec::new();
    for entry in logged {
        match entry.find_run().map(str::to_owned) {
            Some(run) => drop(by_run.insert(run, entry)),
            None => entries.push((entry.at, describe_entry(entry, None))),
        }
    }
    let runs = list_wiki_runs(workspace.vault.root(), Some(&workspace.name), usize::MAX);
    for run in runs.map_err(ToolError::internal)? {
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
    });
    entries.sort_by(|(a, _), (b, _)| b.cmp(a));
    let truncated = entries.len() > limit;
    let entries = entries.into_iter().take(limit).map(|(_, entry)| entry).collect();
    answer_value(&HistoryResult { entries, truncated })
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
