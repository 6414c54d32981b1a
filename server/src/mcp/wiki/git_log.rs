//! `git_log`: the commits of a clone that belongs to a wiki, newest first.
//!
//! Words are compared as they are, without patterns. The clone is read as it lies on the disk and is never fetched.

use super::excerpt::shorten_words;
use super::search::read_moment;
use crate::mcp::cursor::{JsonPosition, ListCursors, ListPart, ListRow};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::git::{CommitId, GitProcess, check_clone_path, describe_no_clone, resolve_commit};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value, check_range};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

/// The most files that are listed of a commit.
const MAX_FILES: usize = 30;
/// The most characters of a commit's words, of its first line, and of a name.
const MAX_BODY: usize = 2_000;
const MAX_SUBJECT: usize = 300;
const MAX_NAME: usize = 200;
/// A commit in the output: its fields end with NUL. No path of a tree begins with a slash, so the files end where the next commit begins.
const FORMAT: &str = "--format=/%H%x00%aI%x00%an%x00%s%x00%b";

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "git_log",
    title: "Commits",
    description: "Lists commits of a git clone that belongs to this wiki, newest first. Example: git_log(source=\"infra\", since=\"2026-10-01\")",
    kind: ToolKind::SEARCH_WIKI,
    arguments: describe_arguments::<GitLogArguments>,
    result: Some(describe_result::<GitLogResult>),
    run: list_commits,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitLogArguments {
    /// The clone; needed if there are several.
    #[schemars(length(max = 128))]
    source: Option<String>,
    /// From this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// Before this day or moment.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// A file or folder of the clone.
    #[schemars(length(max = 512))]
    path: Option<String>,
    /// Words in the message.
    #[schemars(length(max = 200))]
    grep: Option<String>,
    /// A part of the author.
    #[schemars(length(max = 200))]
    author: Option<String>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 200))]
    cursor: Option<String>,
}

fn default_limit() -> u64 {
    50
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct GitLogResult {
    commits: Vec<CommitEntry>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// `no_clone`, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CommitEntry {
    sha: String,
    at: String,
    /// Outside words: who wrote it.
    author: OutsideWords,
    /// Outside words: the first line of the message.
    subject: OutsideWords,
    /// Outside words: the rest of the message.
    body: OutsideWords,
    /// At most 30; none of a merge.
    files: Vec<CommitFile>,
    // How many files it touched.
    files_total: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CommitFile {
    /// Outside words: the path in the clone.
    path: OutsideWords,
}

fn list_commits(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<GitLogArguments>()?;
    let limit = check_range("limit", arguments.limit, 1, 200)?;
    if !workspace.has_clones() {
        return answer_value(&GitLogResult { notice: Some(describe_no_clone()), ..GitLogResult::default() });
    }
    let git = workspace.open_clone(arguments.source.as_deref())?;
    let mut options = build_options(&arguments, limit)?;
    let filters = (&workspace.name, &arguments.source, &arguments.since, &arguments.until);
    let filters = (filters, &arguments.path, &arguments.grep, &arguments.author);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let begin = cursors.read(arguments.cursor.as_deref())?.map(|JsonPosition::<LogPosition>(begin)| begin);
    // New commits come before the head of the first part, so they do not move what follows.
    let head = match resolve_commit(&git, begin.as_ref().map_or("HEAD", |begin| begin.head.as_str())) {
        Ok(head) => head,
        // A clone without a commit.
        Err(error) if error.code == ToolErrorCode::BadRev && begin.is_none() => {
            return answer_value(&GitLogResult::default());
        }
        Err(error) => return Err(error),
    };
    let skipped = begin.map_or(0, |begin| begin.skipped);
    options.push(format!("--skip={skipped}"));
    let mut commits = read_commits(&git, &options, &head, arguments.path.as_deref())?;
    let has_more = commits.len() > limit;
    commits.truncate(limit);
    let locate = |count: usize| {
        JsonPosition(LogPosition { head: head.as_str().to_owned(), skipped: skipped + count }).to_string()
    };
    let next = has_more.then(|| locate(commits.len()));
    let rows = commits.into_iter().enumerate().map(|(at, row)| ListRow { row, position: locate(at + 1) });
    let ListPart { rows, cursor } = cursors.cut(rows.collect(), next);
    answer_value(&GitLogResult { commits: rows, truncated: cursor.is_some(), cursor, notice: None })
}

/// Where a part begins: after so many commits below a head.
#[derive(Debug, Deserialize, Serialize)]
struct LogPosition {
    head: String,
    skipped: usize,
}

/// The options of `git log`. Each value is part of its option, so none is an option itself.
fn build_options(arguments: &GitLogArguments, limit: usize) -> Result<Vec<String>, ToolError> {
    let mut options = vec![format!("--max-count={}", limit + 1)];
    for (name, moment) in [("since", &arguments.since), ("until", &arguments.until)] {
        if let Some(moment) = moment {
            options.push(format!("--{name}={}", read_moment(moment)?.to_rfc3339()));
        }
    }
    for (name, words) in [("grep", &arguments.grep), ("author", &arguments.author)] {
        if let Some(words) = words {
            if words.contains('\0') {
                let what = format!("`{name}` holds a NUL");
                return Err(ToolError::new(ToolErrorCode::BadArguments, what, "Give words"));
            }
            options.push(format!("--{name}={words}"));
        }
    }
    Ok(options)
}

fn read_commits(
    git: &GitProcess,
    options: &[String],
    head: &CommitId,
    path: Option<&str>,
) -> Result<Vec<CommitEntry>, ToolError> {
    let path = path.map(check_clone_path).transpose()?;
    let mut command = vec!["log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"];
    command.extend([
        "--no-decorate",
        "--no-notes",
        "--no-show-signature",
        "--ignore-submodules=all",
        "--encoding=UTF-8",
    ]);
    command.extend(["--fixed-strings", "--regexp-ignore-case", FORMAT]);
    command.extend(options.iter().map(String::as_str));
    command.extend(["--end-of-options", head.as_str(), "--"]);
    command.extend(path);
    let output = git.run(&command)?;
    if !output.is_ok() {
        return Err(git.refuse_folder(&output));
    }
    Ok(parse_commits(&output.text()))
}

/// Reads commits from the output of `git log`.
fn parse_commits(text: &str) -> Vec<CommitEntry> {
    let mut fields = text.split('\0').peekable();
    let mut commits = Vec::new();
    while let Some(begin) = fields.next() {
        let sha = begin.trim_start_matches('\n').strip_prefix('/').and_then(CommitId::parse);
        let Some(sha) = sha else { continue };
        let (Some(at), Some(author), Some(subject), Some(body)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            break;
        };
        let mut files = Vec::new();
        while let Some(file) = fields.next_if(|field| !field.starts_with('/')) {
            files.push(file.trim_start_matches('\n'));
        }
        files.retain(|file| !file.is_empty());
        let listed = files.iter().take(MAX_FILES).map(|file| CommitFile { path: (*file).into() });
        commits.push(CommitEntry {
            sha: sha.as_str().to_owned(),
            at: at.to_owned(),
            author: shorten_words(author, MAX_NAME),
            subject: shorten_words(subject, MAX_SUBJECT),
            body: shorten_words(body.trim_end(), MAX_BODY),
            files_total: files.len() as u64,
            files: listed.collect(),
        });
    }
    commits
}
