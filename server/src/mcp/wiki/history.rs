//! `history`: what happened to a workspace, from its runs and its log, newest first.
//!
//! A run that waits or is under way is shown with its state. What a person did without a run is in the log alone.

mod details;
mod entries;

use super::search::read_moment;
use crate::mcp::admission::CallCost;
use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::paths::to_file;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::MAX_ROW_TOKENS;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use crate::views::wiki::{WikiRunRow, list_wiki_runs, shorten_run};
use chrono::{DateTime, Utc};
use details::{RunDetails, describe_run};
use entries::{FactReader, FoundEntry, HistoryEntry};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::log::{LogEntry, read_log};
use steward_domain::wiki::verify::Verdict;
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES};
use steward_vault::wiki::staged::{StagedRunSummary, StagedRuns};

/// The state of a run that is being written or waits.
const OPEN: &str = "pending";
/// What the entries take at most if one run is shown with its diffs, in tokens.
const MAX_NAMED_TOKENS: usize = 1_500;

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
    /// `ingest`, `query`, `lint`, `manual`, `archive` or `rollback`.
    #[schemars(length(max = 20))]
    op: Option<String>,
    /// From this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// Before this day or moment.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// Those that touched this page.
    #[schemars(length(max = 512))]
    path: Option<String>,
    /// `committed`, `pending`, `verifying`, `taken_back`, `rejected` or `abandoned`.
    #[schemars(length(max = 20))]
    status: Option<String>,
    /// `commit`, `revise` or `reject`.
    #[schemars(length(max = 20))]
    verdict: Option<String>,
    /// Your own.
    #[serde(default)]
    mine: bool,
    /// This run alone.
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
    /// With `run_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunDetails>,
}

fn history(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<HistoryArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 200)?;
    let filter = EntryFilter::read(call, &workspace, &arguments)?;
    let named = arguments.run_id.as_deref().map(|run| describe_run(call, &workspace, run)).transpose()?;
    let (named, details) = named.unzip();
    let reader = FactReader::new(&workspace, &filter.staged);
    let mut found = list_entries(&workspace, named)?;
    found.retain(|(at, entry)| filter.is_met(*at, entry));
    if filter.needs_facts() {
        // The records of all these runs are read, which is like searching many files.
        let permit = call.admit_more(CallCost::Heavy)?;
        found.retain_mut(|(_, entry)| filter.is_met_by_facts(entry, &reader));
        drop(permit);
    }
    let filters = (&workspace.name, &arguments.op, &arguments.since, &arguments.until, &arguments.status);
    let filters = (filters, &arguments.path, &arguments.verdict, arguments.mine, &arguments.run_id);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let after = cursors.read(arguments.cursor.as_deref())?.map(|JsonPosition(after)| after);
    let rest = EntryPosition::number(found).into_iter();
    let mut rest: Vec<(EntryPosition, FoundEntry)> =
        rest.filter(|(position, _)| after.as_ref().is_none_or(|after| position > after)).collect();
    let has_more = rest.len() > limit;
    rest.truncate(limit);
    let show = |(position, entry): (EntryPosition, FoundEntry)| ListRow {
        row: entry.complete(&reader),
        position: JsonPosition(position).to_string(),
    };
    let rows: Vec<ListRow<HistoryEntry>> = rest.into_iter().map(show).collect();
    let next = rows.last().filter(|_| has_more).map(|row| row.position.clone());
    let most = if details.is_some() { MAX_NAMED_TOKENS } else { MAX_ROW_TOKENS };
    let ListPart { rows, cursor } = cursors.cut_within(rows, next, most);
    answer_value(&HistoryResult { entries: rows, truncated: cursor.is_some(), cursor, run: details })
}

/// All that happened, or one run alone. A run that goes on while it is read is shown as it was at one moment.
fn list_entries(
    workspace: &Workspace<'_>,
    named: Option<WikiRunRow>,
) -> Result<Vec<(DateTime<Utc>, FoundEntry)>, ToolError> {
    let log = workspace.folder.read_text(LOG_FILE, MAX_GENERATED_BYTES).map_err(ToolError::internal)?;
    let is_alone = named.is_some();
    let mut by_run: BTreeMap<String, LogEntry> = BTreeMap::new();
    let mut found: Vec<(DateTime<Utc>, FoundEntry)> = Vec::new();
    for entry in read_log(&log.unwrap_or_default()).entries.into_iter().rev() {
        match entry.find_run().map(str::to_owned) {
            Some(run) => drop(by_run.entry(run).or_insert(entry)),
            None => found.push((entry.at, FoundEntry::of_log(entry, None))),
        }
    }
    let runs = match named {
        Some(run) => vec![run],
        None => {
            list_wiki_runs(workspace.vault.root(), Some(&workspace.name), usize::MAX).map_err(ToolError::internal)?
        }
    };
    let runs = runs.into_iter().map(|run| {
        let logged = by_run.remove(&run.run).or_else(|| by_run.remove(shorten_run(&run.run)));
        (run.at, FoundEntry::of_run(run, logged))
    });
    let runs: Vec<(DateTime<Utc>, FoundEntry)> = runs.collect();
    if is_alone {
        return Ok(runs);
    }
    found.extend(runs);
    // The log also names what has a record of another kind, such as a source that was added.
    found.extend(by_run.into_iter().map(|(run, entry)| (entry.at, FoundEntry::of_log(entry, Some(run.as_str())))));
    Ok(found)
}

/// Which entries a call asks for.
struct EntryFilter {
    since: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    op: Option<String>,
    status: Option<String>,
    /// The page, relative to the wiki.
    file: Option<String>,
    verdict: Option<Verdict>,
    /// The ids of the caller's runs, if those alone are meant.
    own: Option<BTreeSet<String>>,
    staged: Vec<StagedRunSummary>,
}

impl EntryFilter {
    fn read(call: &ToolCall, workspace: &Workspace<'_>, arguments: &HistoryArguments) -> Result<Self, ToolError> {
        let staged = StagedRuns::new(workspace.vault.root()).list().map_err(ToolError::internal)?;
        let is_own = |run: &&StagedRunSummary| run.meta.by == call.caller.name && run.meta.wiki == workspace.name;
        let own = || staged.iter().filter(is_own).map(|run| run.meta.run.to_string()).collect();
        Ok(Self {
            since: arguments.since.as_deref().map(read_moment).transpose()?,
            until: arguments.until.as_deref().map(read_moment).transpose()?,
            op: arguments.op.clone(),
            status: arguments.status.clone(),
            file: arguments.path.as_deref().map(to_file).transpose()?,
            verdict: arguments.verdict.as_deref().map(read_verdict).transpose()?,
            own: arguments.mine.then(own),
            staged,
        })
    }

    fn is_met(&self, at: DateTime<Utc>, found: &FoundEntry) -> bool {
        let is_own = |own: &BTreeSet<String>| found.run.as_ref().is_some_and(|run| own.contains(&run.run));
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && self.op.as_ref().is_none_or(|op| found.entry.op == *op)
            && self.status.as_ref().is_none_or(|status| found.entry.status.as_ref() == Some(status))
            && self.own.as_ref().is_none_or(is_own)
    }

    /// Whether records or folders of runs must be read to know what is meant.
    fn needs_facts(&self) -> bool {
        self.file.is_some() || self.verdict.is_some()
    }

    fn is_met_by_facts(&self, found: &mut FoundEntry, reader: &FactReader<'_>) -> bool {
        self.file.as_ref().is_none_or(|file| found.has_touched(file, reader))
            && self.verdict.is_none_or(|verdict| found.find_verdict(reader) == Some(verdict))
    }
}

fn read_verdict(text: &str) -> Result<Verdict, ToolError> {
    text.parse().map_err(|_| {
        let what = format!("`{}` is no verdict", shorten_outside(text));
        ToolError::new(ToolErrorCode::BadArguments, what, "Use commit, revise or reject")
    })
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
    fn number<E>(mut entries: Vec<(DateTime<Utc>, E)>) -> Vec<(Self, E)> {
        entries.sort_by_key(|(at, _)| Reverse(*at));
        let (mut numbered, mut of_moment): (Vec<(Self, E)>, usize) = (Vec::new(), 0);
        for (at, entry) in entries.into_iter().rev() {
            let at = Reverse(at.timestamp_millis());
            of_moment = if numbered.last().is_some_and(|(last, _)| last.at == at) { of_moment + 1 } else { 0 };
            numbered.push((Self { at, number: Reverse(of_moment) }, entry));
        }
        numbered.reverse();
        numbered
    }
}

#[cfg(test)]
mod tests;
