//! The tools of a wiki, one file for each.
//!
//! All of them read alone. Their order is that of the list that clients see.

mod follow;
mod grep;
mod history;
mod list;
mod read;
mod search;
mod sources;
mod why;

use super::tool::ToolDefinition;

/// The tools, in the order of the list.
pub(crate) const WIKI_TOOLS: &[ToolDefinition] =
    &[list::TOOL, grep::TOOL, search::TOOL, read::TOOL, follow::TOOL, history::TOOL, sources::TOOL, why::TOOL];

#[cfg(test)]
mod tests;
