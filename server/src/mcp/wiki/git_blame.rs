//! `git_blame`: which commit wrote each line of a file of a clone that belongs to a wiki.
//!
//! The file is that of the commit and never that of the folder, so nothing that is not committed is read.

use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::git::{CommitId, check_clone_path, resolve_commit};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::keep_rows;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use chrono::DateTime;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

/// The most lines of a call.
const MAX_LINES: u64 = 400;
/// The last line that can be named.
const LAST_LINE: u64 = 10_000_000;
/// The most characters of a line.
const MAX_TEXT: usize = 400;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "git_blame",
    title: "Who wrote each line",
    description: "Shows for each line of a file in a git clone of this wiki the commit that wrote it, at most 400 lines. \
        Example: git_blame(source=\"infra\", path=\"auth.tf\", from_line=10, to_line=20)",
    kind: ToolKind::SEARCH_WIKI,
    arguments: describe_arguments::<GitBlameArguments>,
    result: Some(describe_result::<GitBlameResult>),
    run: blame_file,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitBlameArguments {
    /// The clone, by its name; needed if there are several.
    #[schemars(length(max = 128))]
    source: Option<String>,
    /// A file of the clone.
    #[schemars(length(min = 1, max = 512))]
    path: String,
    /// The id of a commit, a branch or a tag; the newest commit without it.
    #[schemars(length(min = 1, max = 200))]
    rev: Option<String>,
    /// From 1.
    #[serde(default = "default_line")]
    #[schemars(range(min = 1, max = 10_000_000))]
    from_line: u64,
    /// At most 399 more than `from_line`.
    #[schemars(range(min = 1, max = 10_000_000))]
    to_line: Option<u64>,
}

fn default_line() -> u64 {
    1
}

#[derive(Debug, Serialize, JsonSchema)]
struct GitBlameResult {
    lines: Vec<BlamedLine>,
    /// Whether there are more of the lines that were asked for: go on with `from_line`.
    truncated: bool,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct BlamedLine {
    /// From 1.
    line: u64,
    sha: String,
    /// Outside words: who wrote it.
    author: OutsideWords,
    at: String,
    /// Outside words: the line, at most 400 characters of it.
    text: OutsideWords,
}

fn blame_file(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<GitBlameArguments>()?;
    let from = arguments.from_line;
    check_range("from_line", from, 1, LAST_LINE)?;
    let to = arguments.to_line.unwrap_or(from + MAX_LINES - 1);
    check_range("to_line", to, from, from + MAX_LINES - 1)?;
    let git = workspace.open_clone(arguments.source.as_deref())?;
    let path = check_clone_path(&arguments.path)?;
    let commit = resolve_commit(&git, arguments.rev.as_deref().unwrap_or("HEAD"))?;
    let range = format!("-L{from},{to}");
    let command =
        ["blame", "--line-porcelain", "--no-textconv", "--encoding=UTF-8", &range, commit.as_str(), "--", path];
    let output = git.run(&command)?;
    if !output.is_ok() {
        let fix = "`git_log` shows the files of commits";
        let error = ToolError::new(ToolErrorCode::NotFound, "git cannot show these lines", fix);
        return Err(error.with_outside("git", &git.describe_complaint(&output)));
    }
    let found = parse_blame(&output.text());
    let total = found.len();
    let lines = keep_rows(found);
    answer_value(&GitBlameResult { truncated: lines.len() < total || output.is_cut, lines })
}

/// Reads the output of `git blame --line-porcelain`: headers, and then the line itself behind a tab.
fn parse_blame(text: &str) -> Vec<BlamedLine> {
    let (mut lines, mut line) = (Vec::new(), BlamedLine::default());
    for row in text.split('\n') {
        if let Some(words) = row.strip_prefix('\t') {
            line.text = words.chars().take(MAX_TEXT).collect::<String>().into();
            lines.push(std::mem::take(&mut line));
            continue;
        }
        let (name, value) = row.split_once(' ').unwrap_or((row, ""));
        match name {
            "author" => line.author = value.into(),
            "author-time" => {
                let moment = value.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
                line.at = moment.map(steward_domain::time::format_seconds).unwrap_or_default();
            }
            _ => {
                if let Some(sha) = CommitId::parse(name) {
                    line.sha = sha.as_str().to_owned();
                    line.line = value.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
                }
            }
        }
    }
    lines
}
