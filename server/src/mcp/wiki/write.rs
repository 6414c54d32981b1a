//! `write`: stages a change of a page in a run of the caller, or submits the run by the entry for the log.
//!
//! Nothing of the wiki changes here. What is staged is judged at once by the rules, and again before it is committed.

mod header;
mod result;
mod runs;
mod submit;

pub(super) use result::{ChangeResult, describe_change, render_diff};
pub(super) use runs::{RunChoice, abandon_run, discard_empty_run, open_run, refuse_ambiguous, refuse_change};

use crate::access::Toolset;
use crate::mcp::admission::CallCost;
use crate::mcp::caller::ToolNeed;
use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::outside::decode_outside;
use crate::mcp::paths::to_file;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::writer::draft::PageChange;
use steward_domain::wiki::writer::refusal::DraftFault;
use steward_domain::wiki::{INDEX_FILE, LOG_FILE, OVERVIEW_FILE, SOURCES_FOLDER};

/// A tool that stages.
pub(super) const STAGE_WIKI: ToolKind = ToolKind {
    toolset: Toolset::Wiki,
    need: ToolNeed::Write,
    cost: CallCost::Stage,
    read_only: false,
    // What is staged changes nothing, and what is committed can be taken back.
    destructive: false,
    idempotent: false,
    open_world: false,
    for_writers: false,
    needs_person: false,
};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "write",
    title: "Stage a change",
    description: "Stages a change of a page; each statement ends in a mark whose footnote quotes a source: `[^1]: <source> — \"its words\"`. \
        The first call opens a run; name its `run_id` in later ones. Appending the entry to wiki/log.md comes last and submits the run. \
        Example: write(op=\"append\", path=\"wiki/log.md\", run_id=\"3f9a1c22\", content=\"## [2026-11-24] ingest | RFC 34 | touched: summaries/summary-rfc-34.md\")",
    kind: STAGE_WIKI,
    arguments: describe_arguments::<WriteArguments>,
    result: Some(describe_result::<ChangeResult>),
    run: write,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    op: WriteOperation,
    /// `wiki/<folder of the kind>/<slug>.md`, or `wiki/log.md`.
    #[schemars(length(max = 512))]
    path: String,
    /// For create: frontmatter with `title` and `kind`, then the text. For append: the text, or the entry for the log.
    #[schemars(length(max = 262_144))]
    content: Option<String>,
    /// For str_replace: what stands on the page once.
    #[schemars(length(max = 65_536))]
    old_text: Option<String>,
    /// For str_replace: what shall stand there.
    #[schemars(length(max = 65_536))]
    new_text: Option<String>,
    /// The run, as an earlier answer named it. Without it a new run is opened.
    #[schemars(length(max = 40))]
    run_id: Option<String>,
    /// For a new run: `ingest` (the default with a source), `manual` (the default without), `lint` or `archive`.
    #[schemars(length(max = 20))]
    run_type: Option<String>,
    /// For a new run: the document that it ingests, by its id or path.
    #[schemars(length(max = 512))]
    source: Option<String>,
    /// With the entry for the log: pages of `should_touch` that need no change.
    #[serde(default)]
    #[schemars(length(max = 15))]
    no_change: Vec<UnchangedPage>,
    /// The sha256 that the page has now, as `read` shows it.
    #[schemars(length(max = 64))]
    base_sha256: Option<String>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum WriteOperation {
    /// A new page.
    Create,
    /// Other text in the place of one.
    StrReplace,
    /// Text at the end.
    Append,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct UnchangedPage {
    /// Its path.
    #[schemars(length(max = 512))]
    page: String,
    #[schemars(length(min = 1, max = 200))]
    reason: String,
}

fn write(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<WriteArguments>()?;
    let file = to_written_file(&arguments.path)?;
    if file == LOG_FILE {
        return answer_value(&submit::submit_run(call, &workspace, &arguments)?);
    }
    let change = read_change(&arguments, file)?;
    let choice = RunChoice {
        run: arguments.run_id.as_deref(),
        run_type: arguments.run_type.as_deref().map(read_run_type).transpose()?,
        source: arguments.source.as_deref(),
    };
    let (mut session, is_new) = open_run(call, &workspace, &choice)?;
    let base = arguments.base_sha256.as_deref();
    let staged = match session.change(&change, base) {
        Ok(staged) => staged,
        Err(error) => {
            if is_new {
                discard_empty_run(session)?;
            }
            return Err(refuse_change(error));
        }
    };
    let related = if is_new { session.list_related().map_err(|e| refuse_change(e.into()))? } else { Vec::new() };
    answer_value(&describe_change(&session, &staged, related))
}

/// The file that a path names, if assistants may write it.
pub(super) fn to_written_file(path: &str) -> Result<String, ToolError> {
    let shown = shorten_outside(path);
    let trimmed = path.trim_start_matches('/');
    let refuse = |code, what: String| {
        Err(ToolError::new(code, what, "Pages are `wiki/<folder of the kind>/<slug>.md`, and the log is `wiki/log.md`"))
    };
    if trimmed.split('/').any(|part| matches!(part, "." | "..")) || trimmed.contains(['\\', '\0']) {
        return refuse(ToolErrorCode::EscapesWorkspace, format!("`{shown}` leads out of its folder"));
    }
    if trimmed.starts_with("raw/") {
        return refuse(
            ToolErrorCode::RawIsReadOnly,
            format!("`{shown}` is a document, and documents are never changed"),
        );
    }
    if !trimmed.starts_with("wiki/") {
        return refuse(ToolErrorCode::PathNotWiki, format!("`{shown}` is no path of a page"));
    }
    let file = to_file(path)?;
    let is_source = file.split('/').next() == Some(SOURCES_FOLDER);
    let is_ours = file == INDEX_FILE || file == OVERVIEW_FILE || file.starts_with('_') && file != LOG_FILE;
    if is_source || is_ours {
        return refuse(ToolErrorCode::Draft(DraftFault::ProtectedFile), format!("`{shown}` is written by code alone"));
    }
    if file == LOG_FILE || file.ends_with(".md") {
        return Ok(file);
    }
    refuse(ToolErrorCode::PathNotWiki, format!("`{shown}` is no page"))
}

fn read_run_type(text: &str) -> Result<WikiRunType, ToolError> {
    match text.parse() {
        Ok(known @ (WikiRunType::Ingest | WikiRunType::Manual | WikiRunType::Lint | WikiRunType::Archive)) => Ok(known),
        Ok(WikiRunType::Rollback) | Err(_) => {
            let what = format!("`{}` is no type of a run", shorten_outside(text));
            Err(ToolError::new(ToolErrorCode::BadArguments, what, "Use ingest, manual, lint or archive"))
        }
    }
}

/// The change that the arguments ask for.
fn read_change(arguments: &WriteArguments, file: String) -> Result<PageChange, ToolError> {
    let WriteArguments { op, content, old_text, new_text, no_change, .. } = arguments;
    let refuse = |what: &str| {
        let fix = "create and append take `content`, str_replace takes `old_text` and `new_text`";
        Err(ToolError::new(ToolErrorCode::BadArguments, what, fix))
    };
    if !no_change.is_empty() {
        return refuse("`no_change` belongs to the entry for the log");
    }
    match (op, content, old_text, new_text) {
        (WriteOperation::Create, Some(content), None, None) => {
            Ok(PageChange::Create { file, content: decode_footnotes(content) })
        }
        (WriteOperation::Append, Some(content), None, None) => {
            Ok(PageChange::Append { file, content: decode_footnotes(content) })
        }
        (WriteOperation::StrReplace, None, Some(old), Some(new)) => {
            Ok(PageChange::Replace { file, old: decode_outside(old), new: decode_footnotes(new) })
        }
        (WriteOperation::Create | WriteOperation::Append, ..) => refuse("the arguments do not fit the operation"),
        (WriteOperation::StrReplace, ..) => refuse("the arguments do not fit `str_replace`"),
    }
}

/// The text with its quotes as they stand in the source: what we showed escaped is what it was.
fn decode_footnotes(text: &str) -> String {
    let is_footnote = |line: &str| line.trim_start().starts_with("[^") && line.contains("]:");
    let lines = text.split_inclusive('\n');
    lines.map(|line| if is_footnote(line) { decode_outside(line) } else { line.to_owned() }).collect()
}

#[cfg(test)]
mod tests;
