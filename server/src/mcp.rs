//! The Model Context Protocol (MCP): an assistant reads the wikis of a vault, and asks its stewards, by tools.
//!
//! [`serve_stdio`] speaks with one client over pipes, [`call_tool`] is one of our own for commands, and [`http`] speaks with many. [`handler`] lists the tools that a caller may use ([`caller`]), and [`calls`] runs one, within limits
//! ([`admission`]) and with a line in the log ([`call_log`]). [`tool`] says what a tool is, [`wiki`] holds those of a wiki and [`steward`] those of the stewards. Outside words, such as those of pages, stand between marks that their author cannot
//! know ([`fence`]), or in fields that say so ([`outside`]). [`guide`] is what a client reads first. Programs read the same files as [`resources`], and are notified when they change ([`updates`]); people start [`prompts`]. Nothing here writes the vault, but for the stop file and staged runs.
//! Mail and commits belong to a wiki as the configuration says ([`attachments`]); commits are read by [`git`].

mod admission;
pub mod attachments;
mod call_log;
mod call_span;
mod caller;
mod calls;
mod client_log;
mod command;
mod completions;
mod cursor;
mod elicitation;
mod error;
mod fence;
#[cfg(feature = "mcp-fixture")]
mod fixture;
mod git;
mod guide;
mod handler;
mod headings;
pub(crate) mod http;
mod outside;
mod paths;
mod prompts;
mod requests;
mod resources;
mod schema;
mod secrets;
mod stdio;
mod steward;
#[cfg(test)]
mod testing;
mod tokens;
mod tool;
mod updates;
mod vault;
mod wiki;
mod workspace;

pub use call_log::{find_call_log_fault, read_call_log};
pub use caller::McpCaller;
pub use command::{CommandAnswer, CommandTool, call_tool, list_command_tools};
pub use guide::list_guide_faults;
pub use stdio::serve_stdio;
pub use vault::{ConnectHolder, McpVault};

#[cfg(test)]
pub(crate) mod tests;
