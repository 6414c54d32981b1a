//! `search`: pages, documents or events by their words, best first, or entries of the log.
//!
//! The index ranks pages; without it the files are read and ranked in the same way. Documents and events are always read, within limits,
//! and take the room of a search of many files.

use super::stream_events::{EventSelection, choose_events, find_title};
use crate::mcp::admission::CallCost;
use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::fence::FenceKey;
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::{to_file, to_path};
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Instant;
use steward_domain::wiki::log::read_log;
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::search::{
    PageFilter, PageHit, WordCounts, WordMatch, find_line, list_page_words, list_query_words, rank_texts, search_pages,
    split_words,
};
use steward_domain::wiki::{LOG_FILE, MAX_GENERATED_BYTES, MAX_PAGE_BYTES};
use steward_vault::wiki::grep::MAX_GREP_TIME;
use steward_vault::wiki::raw_search::search_documents;
use tokio::runtime::Handle;

/// Of so many pages that hold one word those are chosen that hold all.
const MAX_CANDIDATES: usize = 500;
/// The most hits that cursors lead through. Who reads so many wants other words.
const MAX_FOUND: usize = 500;
/// About as many bytes as a token has.
const BYTES_OF_TOKEN: usize = 4;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "search",
    title: "Search",
    description: "Finds pages by their words, best first (BM25); with kind=\"raw\" documents, with kind=\"event\" what came by the streams, \
        with kind=\"log\" the entries of the log that hold all words, newest first. For exact words use grep. Example: search(query=\"token lifetime\")",
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
    /// Pages or documents alone whose path begins like this, such as `wiki/concepts/`.
    #[schemars(length(max = 512))]
    path: Option<String>,
    /// Pages with all of these tags alone.
    #[serde(default)]
    #[schemars(length(max = 8), inner(length(max = 96)))]
    tags: Vec<String>,
    /// Entries of the log, or events, from this day or moment on, such as `2026-11-22`.
    #[schemars(length(max = 40))]
    after: Option<String>,
    /// And before this one.
    #[schemars(length(max = 40))]
    before: Option<String>,
    /// Of pages and documents: those with `any` word, `all`, or the `phrase`.
    #[serde(default, rename = "match")]
    matching: WordMatching,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u64,
    #[schemars(length(max = 200))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    20
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum SearchKind {
    #[default]
    Wiki,
    Raw,
    Log,
    Event,
}

/// Which texts are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum WordMatching {
    #[default]
    Any,
    All,
    Phrase,
}

impl From<WordMatching> for WordMatch {
    fn from(matching: WordMatching) -> Self {
        match matching {
            WordMatching::Any => Self::Any,
            WordMatching::All => Self::All,
            WordMatching::Phrase => Self::Phrase,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchResult {
    hits: Vec<SearchHit>,
    /// `no_index` if the files were read, because no index can be used; `no_streams`; `cut` if not all was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// The best hits, the best first.
struct FoundHits {
    hits: Vec<SearchHit>,
    /// Whether the index may hold more: a page without a path is no hit.
    has_more: bool,
    notice: Option<String>,
}

/// Where a search goes on. It fits as long as the hits above stay the same.
#[derive(Debug, Default, Serialize, Deserialize)]
struct HitPosition {
    /// How many hits were shown.
    shown: usize,
    /// A mark of all of them.
    mark: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SearchHit {
    /// Of an event the id, as in `events`.
    path: String,
    /// Outside words: the kind of the page, the type of the entry of the log or of the event, or `raw`.
    kind: OutsideWords,
    /// Outside words: the title of the page or document, or the subject of the entry or event.
    title: OutsideWords,
    /// Higher is better; 0 for entries of the log.
    score: f64,
    /// Outside words: the first line that holds one of the words.
    snippet: OutsideWords,
    /// Its line in the page, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// When the entry of the log was made, or the event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

fn search(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<SearchArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 100)?;
    let SearchArguments { query, kind, path, tags, after, before, matching, .. } = &arguments;
    let filters = (&workspace.name, query, kind, path, tags, after, before, matching);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let position = cursors.read(arguments.cursor.as_deref())?;
    let JsonPosition(begin) = position.unwrap_or(JsonPosition(HitPosition::default()));
    if *kind != SearchKind::Log && list_query_words(query).is_empty() {
        let fix = "Give words; `list` shows all pages";
        return Err(ToolError::new(ToolErrorCode::BadArguments, "the query holds no word", fix));
    }
    // One more than is shown, to know whether there are more.
    let wanted = (begin.shown + limit + 1).min(MAX_FOUND);
    let found = match kind {
        SearchKind::Log => search_log(&workspace, &arguments, wanted)?,
        SearchKind::Raw => search_raw(call, &workspace, &arguments, wanted)?,
        SearchKind::Event => search_events(call, &workspace, &arguments, wanted)?,
        SearchKind::Wiki => search_wiki(&workspace, &arguments, wanted)?,
    };
    answer_value(&cut_hits(&call.vault.fences, &cursors, found, &begin, limit)?)
}

/// The hits from a position on that fit into an answer.
fn cut_hits(
    key: &FenceKey,
    cursors: &ListCursors<'_>,
    found: FoundHits,
    begin: &HitPosition,
    limit: usize,
) -> Result<SearchResult, ToolError> {
    let total = found.hits.len();
    let (mut rows, mut mark, mut mark_of_begin) = (Vec::new(), String::new(), String::new());
    for (at, hit) in found.hits.into_iter().enumerate().take(begin.shown + limit) {
        mark = key.sign(&serde_json::to_vec(&(&mark, &hit.path, &hit.at)).unwrap_or_default());
        if at < begin.shown {
            mark_of_begin.clone_from(&mark);
            continue;
        }
        let position = HitPosition { shown: at + 1, mark: mark.clone() };
        rows.push(ListRow { row: hit, position: JsonPosition(position).to_string() });
    }
    if begin.shown > total || mark_of_begin != begin.mark {
        let what = "what the search finds has changed";
        return Err(ToolError::new(ToolErrorCode::BadCursor, what, "Begin again without a cursor"));
    }
    let next =
        (found.has_more || total > begin.shown + limit).then(|| rows.last().map(|row| row.position.clone())).flatten();
    let ListPart { rows, cursor } = cursors.cut(rows, next);
    let cut =
        (total == MAX_FOUND && cursor.is_none()).then(|| format!("cut: the best {MAX_FOUND} hits alone are shown"));
    let notices: Vec<String> = found.notice.into_iter().chain(cut).collect();
    Ok(SearchResult { hits: rows, notice: (!notices.is_empty()).then(|| notices.join("; ")), cursor })
}

/// Searches the pages. A search for all words, for a phrase or for several tags looks at the best pages that hold one word.
fn search_wiki(workspace: &Workspace<'_>, arguments: &SearchArguments, limit: usize) -> Result<FoundHits, ToolError> {
    let SearchArguments { query, path, tags, .. } = arguments;
    let path = path.as_ref().map(|path| to_file(&format!("{}x", path.trim_start_matches('/')))).transpose()?;
    let filter = PageFilter {
        kind: None,
        tag: tags.first().cloned(),
        path: path.map(|mut path| {
            path.pop();
            path
        }),
    };
    let is_narrow = arguments.matching != WordMatching::Any || tags.len() > 1;
    let looked_at = if is_narrow { MAX_CANDIDATES } else { limit };
    let (found, mut notice) = match search_index(workspace, query, &filter, looked_at) {
        Some(hits) => (hits, None),
        None => {
            let hits = search_pages(&workspace.folder.read().pages, query, &filter, looked_at);
            (hits, Some("no_index".to_owned()))
        }
    };
    if is_narrow && found.len() == MAX_CANDIDATES {
        let cut = format!("cut: of the pages that hold one word the best {MAX_CANDIDATES} were looked at");
        notice = Some(notice.map_or(cut.clone(), |notice| format!("{notice}; {cut}")));
    }
    let has_more = !is_narrow && found.len() == looked_at && looked_at < MAX_FOUND;
    let is_meant = |hit: &PageHit| !is_narrow || fits_narrow(workspace, arguments, &hit.file);
    let hits = found.into_iter().filter(is_meant).filter_map(|hit| {
        Some(SearchHit {
            path: to_path(&hit.file)?,
            kind: hit.kind.into(),
            title: hit.title.into(),
            score: round_score(hit.score),
            snippet: hit.passage.into(),
            line: hit.line.map(|line| line as u64),
            tokens: Some(hit.bytes.div_ceil(BYTES_OF_TOKEN) as u64),
            at: None,
        })
    });
    Ok(FoundHits { hits: hits.take(limit).collect(), has_more, notice })
}

/// Whether a page has all of the tags, and its words as they are wanted.
fn fits_narrow(workspace: &Workspace<'_>, arguments: &SearchArguments, file: &str) -> bool {
    let bytes = workspace.folder.read_bytes(file, MAX_PAGE_BYTES).ok();
    let Some(page) = bytes.and_then(|bytes| read_page(file, &bytes).page) else { return false };
    arguments.tags.iter().all(|tag| page.tags.contains(tag))
        && WordMatch::from(arguments.matching).fits(list_page_words(&page), &arguments.query)
}

/// Searches the documents. Whoever reads many files at once takes the room for it.
fn search_raw(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    arguments: &SearchArguments,
    limit: usize,
) -> Result<FoundHits, ToolError> {
    let _permit = call.admit_more(CallCost::Heavy)?;
    let begin = arguments.path.as_deref().unwrap_or_default().trim_start_matches('/');
    let is_meant = |file: &str| to_path(file).is_some_and(|path| path.starts_with(begin));
    let found = search_documents(
        &workspace.folder,
        &arguments.query,
        arguments.matching.into(),
        Instant::now() + MAX_GREP_TIME,
        is_meant,
    );
    let hits = found.hits.into_iter().take(limit).filter_map(|hit| {
        Some(SearchHit {
            path: to_path(&hit.path)?,
            kind: "raw".into(),
            title: hit.title.into(),
            score: round_score(hit.score),
            snippet: hit.passage.into(),
            line: None,
            tokens: None,
            at: None,
        })
    });
    let notice = found.is_cut.then(|| "cut: not all documents were searched. Narrow the path".to_owned());
    Ok(FoundHits { hits: hits.collect(), has_more: false, notice })
}

/// Searches the newest events of the wiki's streams.
fn search_events(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    arguments: &SearchArguments,
    limit: usize,
) -> Result<FoundHits, ToolError> {
    let _permit = call.admit_more(CallCost::Heavy)?;
    let words = list_query_words(&arguments.query);
    let (since, until) = (arguments.after.as_deref(), arguments.before.as_deref());
    let selection = EventSelection { since, until, ..EventSelection::default() };
    let mut chosen = choose_events(workspace, selection)?;
    let read = chosen.read_from(workspace, 0, usize::MAX, |chosen, event| {
        let text = [event.subject.as_deref(), event.author.as_deref(), Some(&event.text)];
        let text = text.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let hit = SearchHit {
            path: chosen.id().to_owned(),
            kind: chosen.split_pattern().0.into(),
            title: find_title(&event),
            score: 0.0,
            snippet: find_line(&text, &words).into(),
            line: None,
            tokens: None,
            at: Some(steward_domain::time::format_seconds(chosen.listed.at)),
        };
        Some((hit, WordCounts::new(split_words(&text), &words)))
    });
    let (hits, counts): (Vec<SearchHit>, Vec<WordCounts>) = read.rows.into_iter().map(|row| row.row).unzip();
    let ranked = hits.into_iter().zip(rank_texts(&counts, &words));
    let mut hits: Vec<SearchHit> =
        ranked.filter_map(|(hit, score)| Some(SearchHit { score: round_score(score?), ..hit })).collect();
    // Events of the same rank stay newest first.
    hits.sort_by(|a, b| b.score.total_cmp(&a.score));
    hits.truncate(limit);
    Ok(FoundHits { hits, has_more: false, notice: chosen.notice })
}

/// Digits that say nothing are left out.
fn round_score(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}

/// What the index finds; `None` if it cannot be used.
fn search_index(workspace: &Workspace<'_>, query: &str, filter: &PageFilter, limit: usize) -> Option<Vec<PageHit>> {
    let vault = workspace.vault;
    Handle::current().block_on(vault.wikis.search(vault.root(), &workspace.name, query, filter, limit))
}

fn search_log(workspace: &Workspace<'_>, arguments: &SearchArguments, limit: usize) -> Result<FoundHits, ToolError> {
    let after = arguments.after.as_deref().map(read_moment).transpose()?;
    let before = arguments.before.as_deref().map(read_moment).transpose()?;
    let log = workspace.folder.read_text(LOG_FILE, MAX_GENERATED_BYTES).map_err(ToolError::internal)?;
    let wanted = list_query_words(&arguments.query);
    let mut entries = read_log(&log.unwrap_or_default()).entries;
    entries.reverse();
    entries.retain(|entry| {
        let lines = std::iter::once(&entry.subject).chain(&entry.bullets);
        let held: BTreeSet<String> = lines.flat_map(|line| split_words(line)).collect();
        let is_then = after.is_none_or(|after| entry.at >= after) && before.is_none_or(|before| entry.at < before);
        wanted.is_subset(&held) && is_then
    });
    let hits = entries.into_iter().take(limit).map(|entry| SearchHit {
        path: "wiki/log.md".to_owned(),
        kind: entry.log_type.map(|log_type| log_type.to_string()).unwrap_or_default().into(),
        title: entry.subject.into(),
        score: 0.0,
        snippet: entry.bullets.join("\n").into(),
        line: None,
        tokens: None,
        at: Some(steward_domain::time::format_seconds(entry.at)),
    });
    Ok(FoundHits { hits: hits.collect(), has_more: false, notice: None })
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
