//! `grep`: lines of pages and documents, by a regular expression.
//!
//! The search takes two seconds at most and reads every file that the glob means.

use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::OutsideWords;
use crate::mcp::paths::to_path;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::{MAX_ROW_TOKENS, count_fitting};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use crate::mcp::workspace::read_glob;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use steward_domain::wiki::grep::LinePattern;
use steward_vault::wiki::grep::{GrepHit, GrepPosition, GrepRequest, MAX_GREP_TIME, grep_wiki};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "grep",
    title: "Find lines",
    description: "Finds the lines in which a regular expression matches, in pages and documents. A pattern never matches across lines. \
        Example: grep(pattern=\"E4[0-9]{2}\", path=\"wiki/**\")",
    kind: ToolKind::SEARCH_WIKI,
    arguments: describe_arguments::<GrepArguments>,
    result: Some(describe_result::<GrepResult>),
    run: grep,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    #[schemars(length(min = 1, max = 1000))]
    pattern: String,
    /// A glob of paths; all files without it.
    #[schemars(length(max = 200))]
    path: Option<String>,
    /// Ignore upper and lower case.
    #[serde(default)]
    ignore_case: bool,
    /// Take the pattern as it is, not as an expression.
    #[serde(default)]
    fixed: bool,
    /// How many lines above and below are shown.
    #[serde(default)]
    #[schemars(range(max = 5))]
    context: u64,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 900))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    50
}

#[derive(Debug, Serialize, JsonSchema)]
struct GrepResult {
    hits: Vec<GrepLine>,
    files_searched: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct GrepLine {
    path: String,
    /// From 1.
    line: u64,
    /// Where the first match begins, in characters from 1.
    column: u64,
    /// Outside words: the line, at most 400 characters of it.
    text: OutsideWords,
    before: Vec<OutsideLine>,
    after: Vec<OutsideLine>,
}

/// A line around a hit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct OutsideLine {
    /// Outside words: the line.
    text: OutsideWords,
}

fn grep(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<GrepArguments>()?;
    let filters = (&workspace.name, &arguments.pattern, &arguments.path, arguments.ignore_case, arguments.fixed);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let after = cursors.read(arguments.cursor.as_deref())?.map(|JsonPosition(after)| after);
    let GrepArguments { pattern, path, ignore_case, fixed, context, limit, .. } = arguments;
    let context = check_range("context", context, 0, 5)?;
    let limit = check_range("limit", limit, 1, 200)?;
    let pattern = LinePattern::new(&pattern, fixed, ignore_case).map_err(|e| {
        let what = format!("`{}` is no pattern: {e}", shorten_outside(&pattern));
        ToolError::new(ToolErrorCode::BadPattern, what, "Use the syntax of ripgrep, or `fixed` for plain words")
    })?;
    let glob = path.as_deref().map(read_glob).transpose()?;
    let is_meant = |file: &str| to_path(file).is_some_and(|path| glob.as_ref().is_none_or(|glob| glob.matches(&path)));
    let request = GrepRequest { pattern, context, limit, after };
    let files = workspace.list_meant(is_meant);
    let found = grep_wiki(&workspace.folder, files, &request, Instant::now() + MAX_GREP_TIME);
    let wrap = |lines: Vec<String>| lines.into_iter().map(|text| OutsideLine { text: text.into() }).collect();
    let hits = found.hits.into_iter().filter_map(|GrepHit { path, hit }| {
        let mut row = GrepLine {
            path: to_path(&path)?,
            line: hit.line as u64,
            column: hit.column as u64,
            text: hit.text.into(),
            before: wrap(hit.before),
            after: wrap(hit.after),
        };
        // A line that is too much for a model with what stands around it is shown alone.
        if count_fitting(std::slice::from_ref(&row), MAX_ROW_TOKENS) == 0 {
            (row.before, row.after) = (Vec::new(), Vec::new());
        }
        Some(ListRow { position: JsonPosition(GrepPosition { path, line: hit.line }).to_string(), row })
    });
    let hits: Vec<ListRow<GrepLine>> = hits.collect();
    let next = found.next.map(|next| JsonPosition(next).to_string());
    let ListPart { rows, cursor } = cursors.cut(hits, next);
    answer_value(&GrepResult { hits: rows, files_searched: found.files as u64, truncated: cursor.is_some(), cursor })
}
