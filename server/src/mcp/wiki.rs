//! The tools of a wiki, one file for each.
//!
//! All but `write`, `delete` and a measurement of `eval` read alone. Their order is that of the list that clients see.

mod delete;
mod eval;
mod events;
mod excerpt;
mod follow;
mod git_blame;
mod git_log;
mod git_show;
mod grep;
mod guide;
mod history;
mod list;
mod overview;
mod read;
mod search;
mod sources;
mod stream_events;
mod subscriptions;
mod timeline;
mod why;
mod write;

use super::tool::ToolDefinition;
use std::time::Duration;

/// How long a call waits for the outcome of what it requested. That goes on without the call.
const PATIENCE: Duration = Duration::from_secs(20);

/// The tools, in the order of the list.
pub(crate) const WIKI_TOOLS: &[ToolDefinition] = &[
    guide::TOOL,
    overview::TOOL,
    list::TOOL,
    grep::TOOL,
    search::TOOL,
    read::TOOL,
    follow::TOOL,
    history::TOOL,
    write::TOOL,
    delete::TOOL,
    sources::TOOL,
    subscriptions::TOOL,
    events::TOOL,
    timeline::TOOL,
    eval::TOOL,
    git_log::TOOL,
    git_show::TOOL,
    git_blame::TOOL,
    why::TOOL,
];

#[cfg(test)]
mod tests;
