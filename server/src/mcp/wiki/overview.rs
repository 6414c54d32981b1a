//! `overview`: what a workspace holds, what is new in it, what people pinned, and what a check finds wrong.
//!
//! The answer has a limit of tokens. Rows of the largest part go first, and the answer names the parts that lost some.

use super::stream_events::{EventSelection, choose_events};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::count_tokens;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind};
use crate::mcp::workspace::{Workspace, WorkspaceFile};
use crate::views::wiki::read_outline;
use chrono::{TimeDelta, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::wiki::OVERVIEW_FILE;
use steward_domain::wiki::page::may_be_page;
use steward_vault::wiki::folder::PageFacts;
use steward_vault::wiki::health::check_wiki;

/// About as many bytes as a token has.
const BYTES_OF_TOKEN: u64 = 4;
/// The most tokens of an answer, and what its frame takes of them.
const MAX_TOKENS: usize = 3_000;
const FRAME_TOKENS: usize = 60;
/// The most rows of each part, before its tokens are counted.
const MAX_TREE: usize = 200;
const MAX_RECENT: usize = 20;
const MAX_SOURCES: usize = 100;
const MAX_PINNED: usize = 50;
const MAX_FINDINGS: usize = 100;
/// The most characters of a title and of a sentence of a finding.
const MAX_TITLE: usize = 150;
const MAX_SENTENCE: usize = 300;
/// The parts of a result that may lose rows.
const PARTS: [&str; 5] = ["tree", "recent", "events", "pinned", "findings"];
/// How far back events are counted, in days.
const EVENT_DAYS: i64 = 7;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "overview",
    title: "Overview",
    description: "Shows what the wiki holds: folders with pages and tokens, the newest pages, events of the last 7 days, pages that people pinned, and with \
        `findings` what a check without a model finds, each with its fix. Example: overview(workspace=\"acme\", include=[\"findings\"])",
    kind: ToolKind::SEARCH_WIKI,
    arguments: describe_arguments::<OverviewArguments>,
    result: Some(describe_result::<OverviewResult>),
    run: show_overview,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OverviewArguments {
    /// What is shown; all but `findings` without it.
    #[serde(default = "default_parts")]
    #[schemars(length(max = 5))]
    include: Vec<OverviewPart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum OverviewPart {
    Tree,
    Recent,
    Events,
    Pinned,
    Findings,
}

fn default_parts() -> Vec<OverviewPart> {
    vec![OverviewPart::Tree, OverviewPart::Recent, OverviewPart::Events, OverviewPart::Pinned]
}

#[derive(Debug, Serialize, JsonSchema)]
struct OverviewResult {
    /// Folders to the second level, each with everything below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<FolderRow>>,
    /// The pages that were updated last, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Vec<PageRow>>,
    /// The events of the last 7 days, by source.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<SourceCount>>,
    /// The pages that people pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<Vec<PageRow>>,
    /// What is wrong, the worst first.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingRow>>,
    /// How many findings there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings_total: Option<u64>,
    /// About as many tokens have all pages together: a quarter of the bytes.
    wiki_tokens: u64,
    /// The same of all documents.
    raw_tokens: u64,
    /// The parts that have more rows than are shown.
    truncated: Vec<String>,
    /// `no_streams`, `no_index` or `cut`, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct FolderRow {
    path: String,
    files: u64,
    pages: u64,
    /// About as many tokens: a quarter of the bytes.
    tokens: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SourceCount {
    source: String,
    count: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct PageRow {
    path: String,
    /// Outside words: the title of the page.
    title: OutsideWords,
    /// When the page was updated, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct FindingRow {
    /// Absent for a file that has no path.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    code: String,
    /// `error`, `warn` or `info`.
    severity: String,
    /// Outside words: what is wrong.
    problem: OutsideWords,
    /// Outside words: how to fix it.
    fix: OutsideWords,
}

fn show_overview(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, OverviewArguments { include }) = call.open()?;
    let has = |part| include.contains(&part);
    let files = workspace.list_files();
    let sum = |prefix: &str| {
        let bytes: u64 = files.iter().filter(|it| it.path.starts_with(prefix)).map(|it| it.file.bytes).sum();
        bytes.div_ceil(BYTES_OF_TOKEN)
    };
    let needs_pages = has(OverviewPart::Recent) || has(OverviewPart::Pinned);
    let outline = match needs_pages {
        true => read_outline(workspace.vault.root(), &workspace.name).map_err(ToolError::internal)?,
        false => Arc::default(),
    };
    let pages = &outline.pages;
    let tree = has(OverviewPart::Tree).then(|| list_folders(&files));
    let recent = has(OverviewPart::Recent).then(|| list_newest(pages));
    let pinned = has(OverviewPart::Pinned)
        .then(|| pages.iter().filter(|page| page.is_pinned).filter_map(describe_page).collect());
    let findings = has(OverviewPart::Findings).then(|| list_findings(&workspace)).transpose()?;
    let events = has(OverviewPart::Events).then(|| count_events(&workspace)).transpose()?;
    let (events, notice) = events.unzip();
    let result = OverviewResult {
        wiki_tokens: sum("wiki/"),
        raw_tokens: sum("raw/"),
        tree,
        recent,
        events,
        pinned,
        findings_total: findings.as_ref().map(|found| found.len() as u64),
        findings,
        truncated: Vec::new(),
        notice: notice.flatten(),
    };
    let value = serde_json::to_value(&result).map_err(ToolError::internal)?;
    Ok(ToolAnswer::Value(fit_result(value)))
}

/// The folders to the second level, by path.
fn list_folders(files: &[WorkspaceFile]) -> Vec<FolderRow> {
    let mut folders: BTreeMap<&str, FolderRow> = BTreeMap::new();
    for WorkspaceFile { path, file } in files {
        let ends = path.match_indices('/').map(|(at, _)| at).take(2);
        for folder in ends.map(|end| &path[..end]) {
            let row = folders.entry(folder).or_insert_with(|| FolderRow {
                path: folder.to_owned(),
                files: 0,
                pages: 0,
                tokens: 0,
            });
            row.files += 1;
            row.pages += u64::from(may_be_page(&file.path));
            row.tokens += file.bytes.div_ceil(BYTES_OF_TOKEN);
        }
    }
    folders.into_values().collect()
}

/// How many events came lately by each stream of the wiki, and what to say of them.
fn count_events(workspace: &Workspace<'_>) -> Result<(Vec<SourceCount>, Option<String>), ToolError> {
    let since = (Utc::now() - TimeDelta::days(EVENT_DAYS)).to_rfc3339();
    let chosen = choose_events(workspace, EventSelection { since: Some(&since), ..EventSelection::default() })?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for event in chosen.events {
        *counts.entry(event.source).or_default() += 1;
    }
    let rows = counts.into_iter().map(|(source, count)| SourceCount { source, count });
    Ok((rows.collect(), chosen.notice))
}

fn list_newest(pages: &[Arc<PageFacts>]) -> Vec<PageRow> {
    let mut newest: Vec<&Arc<PageFacts>> = pages.iter().filter(|page| page.file != OVERVIEW_FILE).collect();
    newest.sort_by_key(|page| std::cmp::Reverse(page.updated_at));
    newest.into_iter().filter_map(describe_page).take(MAX_RECENT).collect()
}

fn describe_page(page: &Arc<PageFacts>) -> Option<PageRow> {
    Some(PageRow {
        path: to_path(&page.file)?,
        title: cut_text(&page.title, MAX_TITLE),
        updated_at: page.updated_at.map(steward_domain::time::format_seconds),
    })
}

fn cut_text(text: &str, most: usize) -> OutsideWords {
    text.chars().take(most).collect::<String>().into()
}

/// What a check of the wiki finds, the worst first.
fn list_findings(workspace: &Workspace<'_>) -> Result<Vec<FindingRow>, ToolError> {
    let checked = check_wiki(workspace.folder.path(), Utc::now()).map_err(ToolError::internal)?;
    let mut found = checked.findings;
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let rows = found.into_iter().map(|finding| FindingRow {
        path: to_path(&finding.file),
        line: finding.line.map(|line| line as u64),
        code: finding.code.to_string(),
        severity: finding.severity.to_string(),
        problem: cut_text(&finding.problem, MAX_SENTENCE),
        fix: cut_text(&finding.fix, MAX_SENTENCE),
    });
    Ok(rows.collect())
}

/// Takes rows out of a result until it has few enough tokens, always of the largest part.
fn fit_result(mut value: Value) -> Value {
    let mut cut: Vec<&str> = Vec::new();
    for (part, most) in PARTS.into_iter().zip([MAX_TREE, MAX_RECENT, MAX_SOURCES, MAX_PINNED, MAX_FINDINGS]) {
        if cut_part(&mut value, part, |rows| most.min(rows)) {
            cut.push(part);
        }
    }
    while count_tokens(&value.to_string()) > MAX_TOKENS - FRAME_TOKENS {
        let size = |part: &&str| value.get(*part).map_or(0, |rows| rows.to_string().len());
        let Some(largest) = PARTS.into_iter().max_by_key(size) else { break };
        // A quarter of the rows at once, so that a few counts suffice.
        if !cut_part(&mut value, largest, |rows| rows * 3 / 4) {
            break;
        }
        cut.push(largest);
    }
    let is_cut = |part: &&str| cut.contains(part);
    value["truncated"] = PARTS.into_iter().filter(is_cut).collect::<Vec<_>>().into();
    value
}

/// Keeps so many rows of a part. Whether any went.
fn cut_part(value: &mut Value, part: &str, choose: impl Fn(usize) -> usize) -> bool {
    let Some(rows) = value.get_mut(part).and_then(Value::as_array_mut) else { return false };
    let before = rows.len();
    rows.truncate(choose(before));
    rows.len() < before
}

#[cfg(test)]
mod tests;
