//! `git_show`: a commit of a clone that belongs to a wiki, with its diff, as text in a fence.
//!
//! The revision is resolved to the id of a commit first, so it is never read as anything else.

use crate::mcp::error::ToolError;
use crate::mcp::git::{check_clone_path, resolve_commit};
use crate::mcp::schema::describe_arguments;
use crate::mcp::tokens::cut_to_tokens;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, check_range};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

const MAX_TOKENS: u64 = 20_000;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "git_show",
    title: "One commit",
    description: "Shows a commit of a git clone that belongs to this wiki, with its diff. Example: git_show(source=\"infra\", rev=\"3f9a1c2\")",
    kind: ToolKind::SEARCH_WIKI,
    arguments: describe_arguments::<GitShowArguments>,
    result: None,
    run: show_commit,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GitShowArguments {
    /// The clone, by its name; needed if there are several.
    #[schemars(length(max = 128))]
    source: Option<String>,
    /// The id of a commit, a branch or a tag.
    #[schemars(length(min = 1, max = 200))]
    rev: String,
    /// The part of the diff in this file or folder alone.
    #[schemars(length(max = 512))]
    path: Option<String>,
    #[serde(default = "default_tokens")]
    #[schemars(range(min = 100, max = 20_000))]
    max_tokens: u64,
}

fn default_tokens() -> u64 {
    6_000
}

fn show_commit(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<GitShowArguments>()?;
    let tokens = check_range("max_tokens", arguments.max_tokens, 100, MAX_TOKENS)?;
    let git = workspace.open_clone(arguments.source.as_deref())?;
    let path = arguments.path.as_deref().map(check_clone_path).transpose()?;
    let commit = resolve_commit(&git, &arguments.rev)?;
    let mut command = vec!["show", "--no-ext-diff", "--no-textconv", "--no-color", "--no-decorate", "--no-notes"];
    command.extend(["--no-show-signature", "--submodule=short", "--ignore-submodules=all", "--encoding=UTF-8"]);
    command.extend(["--format=fuller", "--date=iso-strict", "--end-of-options", commit.as_str(), "--"]);
    command.extend(path);
    let output = git.run(&command)?;
    if !output.is_ok() {
        return Err(git.refuse_folder(&output));
    }
    let text = output.text();
    let cut = cut_to_tokens(&text, tokens);
    let rest = match cut.len() < text.len() || output.is_cut {
        true => ", cut: name a `path`, or raise `max_tokens`",
        false => "",
    };
    let fenced = workspace.vault.fences.wrap("commit", cut);
    Ok(ToolAnswer::Text(vec![format!("commit {}{rest}\n{fenced}", commit.as_str())]))
}
