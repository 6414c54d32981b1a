//! `follow`: from a footnote to the very words of its source, compared at this moment.
//!
//! The words around the quote come from the source as it is now. Nothing is anchored anew.

use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::Workspace;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::grep::LinePattern;
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::quote::Anchor;
use steward_vault::wiki::grep::{GrepRequest, MAX_GREP_HITS, MAX_GREP_TIME, grep_wiki};
use steward_vault::wiki::quotes::{SourceTexts, read_changed_text, read_text};
use tokio::runtime::Handle;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "follow",
    title: "Follow a footnote",
    description: "Follows a footnote of a page to the words of its document, and says whether they stand there now. `footnote_id` is a label or a number. \
        Example: follow(from_page=\"wiki/concepts/token-lifetime.md\", footnote_id=\"c6107d23f\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<FollowArguments>,
    result: Some(describe_result::<FollowResult>),
    run: follow,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowArguments {
    #[schemars(length(max = 512))]
    from_page: String,
    /// The label of the footnote, such as `c6107d23f`, or its number on the page, from 1.
    #[schemars(length(max = 40))]
    footnote_id: String,
    /// How many characters around the quote are shown on each side.
    #[serde(default = "default_context")]
    #[schemars(range(max = 2000))]
    context: u64,
}

fn default_context() -> u64 {
    300
}

#[derive(Debug, Serialize, JsonSchema)]
struct FollowResult {
    /// Outside words: the label of the footnote.
    label: OutsideWords,
    /// Outside words: the id of the source.
    source: OutsideWords,
    /// The path of the document.
    path: String,
    /// Outside words: the quote as the footnote has it.
    quote: OutsideWords,
    /// The hash of the words as they stand in the source, or else of the quote.
    quote_sha256: String,
    /// `ok`; `moved` if the source was changed and the words still stand in it; `drifted` if they do not; `missing` if the source is gone; `edited` if the
    /// footnote was changed.
    verified: String,
    /// Where the words stand, in bytes of the source's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// The page of a PDF, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
    /// Outside words: the words of the source before the quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<OutsideWords>,
    /// Outside words: the words of the source after the quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<OutsideWords>,
    /// Outside words: the id of the source that replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<OutsideWords>,
    /// Other pages with the same quote.
    cited_by: Vec<String>,
}

fn follow(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<FollowArguments>()?;
    let context = check_range("context", arguments.context, 0, 2_000)?;
    let file = workspace.find_file(&arguments.from_page)?;
    let contents = workspace.folder.read_some(std::slice::from_ref(&file));
    let Some(page) = contents.pages.first() else {
        let what = format!("`{}` is no page", shorten_outside(&arguments.from_page));
        return Err(ToolError::new(ToolErrorCode::NotFound, what, "`list` shows the kind of each file"));
    };
    let claims = read_claims(page.document.body(), &page.body.disputed);
    let mut anchors: Vec<&Anchor> = claims.anchors.values().collect();
    // As a reader counts them: by their first marks, and not by the order of the footnotes below.
    anchors.sort_by_key(|anchor| page.document.body().find(&format!("[^{}]", anchor.label)));
    let wanted = arguments.footnote_id.trim().trim_start_matches("[^").trim_end_matches(']');
    let numbered = wanted.parse::<usize>().ok().and_then(|number| anchors.get(number.checked_sub(1)?).copied());
    let Some(anchor) = anchors.iter().find(|anchor| anchor.label == wanted).copied().or(numbered) else {
        let labels: Vec<&str> = anchors.iter().map(|anchor| anchor.label.as_str()).collect();
        let fix = match labels.as_slice() {
            [] => "The page has no footnote that quotes a source",
            _ => "Name one by its label, as below, or by its number",
        };
        let what = format!("there is no footnote `{}`", shorten_outside(wanted));
        return Err(ToolError::new(ToolErrorCode::NoFootnote, what, fix).with_outside("footnotes", &labels.join(", ")));
    };
    let Some(source) = contents.sources.get(&anchor.source) else {
        let (what, fix) = ("the source of the quote is not registered", "A person can add it by `steward wiki ingest`");
        return Err(ToolError::new(ToolErrorCode::SourceMissing, what, fix).with_outside("source", &anchor.source));
    };
    let texts = SourceTexts::read(&workspace.folder, &contents, [anchor.source.clone()].into());
    let checked = texts.index().check(anchor);
    let verified = match checked.fault.as_deref().and_then(|fault| fault.split(':').next()) {
        None => "ok",
        Some("source_drifted") => "drifted",
        Some("quote_edited") => "edited",
        Some("source_missing") => "missing",
        Some(_) => "drifted",
    };
    let mut result = FollowResult {
        label: anchor.label.as_str().into(),
        source: anchor.source.as_str().into(),
        path: to_path(&source.path).unwrap_or_default(),
        quote: anchor.quote.as_str().into(),
        quote_sha256: hash(&anchor.quote),
        verified: verified.to_owned(),
        offset: checked.offset.map(|offset| offset as u64),
        page: None,
        before: None,
        after: None,
        superseded_by: checked.superseded_by.map(Into::into),
        cited_by: list_citing(&workspace, anchor, &file),
    };
    let text = read_text(&workspace.folder, source).ok().or_else(|| read_changed_text(&workspace.folder, source));
    if let Some(text) = text
        && let Ok(slice) = text.finder().find_quote(&anchor.quote)
        && let Some((before, words, after)) = text.finder().split_around(slice)
    {
        if checked.fault.as_deref().is_some_and(|fault| fault.starts_with("source_mutated")) {
            result.verified = "moved".to_owned();
        }
        result.quote_sha256 = hash(words);
        result.page = text.as_str().contains('\u{c}').then(|| before.matches('\u{c}').count() as u64 + 1);
        let from = before.char_indices().rev().nth(context.saturating_sub(1)).map_or(0, |(at, _)| at);
        result.before = (context > 0).then(|| before[from..].into());
        result.after = (context > 0).then(|| after.chars().take(context).collect::<String>().into());
    }
    answer_value(&result)
}

fn hash(words: &str) -> String {
    ContentHash::hash_bytes(words.as_bytes()).as_str().to_owned()
}

/// The other pages that have the same quote, by its label.
fn list_citing(workspace: &Workspace<'_>, anchor: &Anchor, own: &str) -> Vec<String> {
    let vault = workspace.vault;
    let indexed = Handle::current().block_on(vault.wikis.list_citing(vault.root(), &workspace.name, &anchor.label));
    if let Some(files) = indexed {
        return files.iter().filter(|file| *file != own).filter_map(|file| to_path(file)).collect();
    }
    let Ok(pattern) = LinePattern::new(&format!("[^{}]:", anchor.label), true, false) else { return Vec::new() };
    let request = GrepRequest { pattern, context: 0, limit: MAX_GREP_HITS, after: None };
    let is_other = |file: &str| may_be_page(file) && file != own;
    let files = workspace.list_meant(is_other);
    let found = grep_wiki(&workspace.folder, files, &request, Instant::now() + MAX_GREP_TIME);
    found.hits.iter().filter_map(|hit| to_path(&hit.path)).collect()
}
