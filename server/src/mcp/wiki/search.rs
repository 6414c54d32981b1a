//! `search`: pages by their words, best first, or entries of the log.
//!
//! The index ranks pages; without it the files are read and ranked in the same way.

use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::{to_file, to_path};
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steward_domain::wiki::log::read_log;
use steward_domain::wiki::search::{PageFilter, PageHit, list_query_words, search_pages, split_words};
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES};
use tokio::runtime::Handle;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "search",
    title: "Search",
    description: "Finds pages by their words, best first (BM25); with kind=\"log\" the entries of the log that hold all words, newest first. \
        For exact words in documents use grep. Example: search(query=\"token lifetime\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<SearchArguments>,
    result: Some(describe_result::<SearchResult>),
    run: search,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    /// Words; may be empty with kind `log` alone.
    #[schemars(length(max = 1000))]
    query: String,
    #[serde(default)]
    kind: SearchKind,
    /// Pages alone whose path begins like this, such as `wiki/concepts/`.
    #[schemars(length(max = 512))]
    path: Option<String>,
    /// Pages with this tag alone.
    #[schemars(length(max = 96))]
    tag: Option<String>,
    /// Entries of the log from this day or moment on, such as `2026-11-22`.
    #[schemars(length(max = 40))]
    after: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u64,
}

fn default_limit() -> u64 {
    20
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum SearchKind {
    #[default]
    Wiki,
    Log,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchResult {
    hits: Vec<SearchHit>,
    /// `no_index` if the files were read, because no index can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SearchHit {
    path: String,
    /// Outside words: the kind of the page, or the type of the entry of the log.
    kind: OutsideWords,
    /// Outside words: the title of the page, or the subject of the entry.
    title: OutsideWords,
    /// Higher is better; 0 for entries of the log.
    score: f64,
    /// Outside words: the first line that holds one of the words.
    snippet: OutsideWords,
    /// When the entry of the log was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

fn search(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<SearchArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 100)?;
    if arguments.kind == SearchKind::Log {
        return answer_value(&SearchResult { hits: search_log(&workspace, &arguments, limit)?, notice: None });
    }
    if list_query_words(&arguments.query).is_empty() {
        let fix = "Give words; `list` shows all pages";
        return Err(ToolError::new(ToolErrorCode::BadArguments, "the query holds no word", fix));
    }
    let SearchArguments { query, path, tag, .. } = arguments;
    let path = path.map(|path| to_file(&format!("{}x", path.trim_start_matches('/')))).transpose()?;
    let filter = PageFilter {
        kind: None,
        tag,
        path: path.map(|mut path| {
            path.pop();
            path
        }),
    };
    let (found, notice) = match search_index(&workspace, &query, &filter, limit) {
        Some(hits) => (hits, None),
        None => {
            let hits = search_pages(&workspace.folder.read().pages, &query, &filter, limit);
            (hits, Some("no_index".to_owned()))
        }
    };
    let hits = found.into_iter().filter_map(|hit| {
        Some(SearchHit {
            path: to_path(&hit.file)?,
            kind: hit.kind.into(),
            title: hit.title.into(),
            score: (hit.score * 1e6).round() / 1e6,
            snippet: hit.passage.into(),
            at: None,
        })
    });
    answer_value(&SearchResult { hits: hits.collect(), notice })
}

/// What the index finds; `None` if it cannot be used.
fn search_index(workspace: &Workspace<'_>, query: &str, filter: &PageFilter, limit: usize) -> Option<Vec<PageHit>> {
    let vault = workspace.vault;
    Handle::current().block_on(vault.wikis.search(vault.root(), &workspace.name, query, filter, limit))
}

fn search_log(
    workspace: &Workspace<'_>,
    arguments: &SearchArguments,
    limit: usize,
) -> Result<Vec<SearchHit>, ToolError> {
    let after = arguments.after.as_deref().map(read_moment).transpose()?;
    let log = workspace.folder.read_text(LOG_FILE, MAX_GENERATED_BYTES).map_err(ToolError::internal)?;
    let wanted = list_query_words(&arguments.query);
    let mut entries = read_log(&log.unwrap_or_default()).entries;
    entries.reverse();
    entries.retain(|entry| {
        let lines = std::iter::once(&entry.subject).chain(&entry.bullets);
        let held: BTreeSet<String> = lines.flat_map(|line| split_words(line)).collect();
        wanted.is_subset(&held) && after.is_none_or(|after| entry.at >= after)
    });
    let hits = entries.into_iter().take(limit).map(|entry| SearchHit {
        path: "wiki/log.md".to_owned(),
        kind: entry.log_type.map(|log_type| log_type.to_string()).unwrap_or_default().into(),
        title: entry.subject.into(),
        score: 0.0,
        snippet: entry.bullets.join("\n").into(),
        at: Some(steward_domain::time::format_seconds(entry.at)),
    });
    Ok(hits.collect())
}

/// Reads a day or a moment. A time without a zone is UTC.
pub(super) fn read_moment(text: &str) -> Result<DateTime<Utc>, ToolError> {
    let day = || Some(text.parse::<chrono::NaiveDate>().ok()?.and_time(chrono::NaiveTime::MIN).and_utc());
    let local = || Some(text.parse::<chrono::NaiveDateTime>().ok()?.and_utc());
    let read = DateTime::parse_from_rfc3339(text).ok().map(|moment| moment.to_utc()).or_else(day).or_else(local);
    read.ok_or_else(|| {
        let what = format!("`{}` is no time", crate::mcp::error::shorten_outside(text));
        ToolError::new(ToolErrorCode::BadArguments, what, "Use 2026-11-22 or 2026-11-22T09:15:00Z")
    })
}
