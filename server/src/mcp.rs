//! The Model Context Protocol (MCP): an assistant reads the wikis of a vault by tools.
//!
//! [`serve_stdio`] speaks with one client over pipes, and [`http`] with many. [`handler`] lists the tools that a caller may use ([`caller`]), and [`calls`] runs one, within limits
//! ([`admission`]) and with a line in the log ([`call_log`]). [`tool`] says what a tool is, and [`wiki`] holds those of a wiki. Outside words, such as those of pages, stand between marks that their author cannot
//! know ([`fence`]), or in fields that say so ([`outside`]). Mail and commits belong to a wiki as the configuration says
//! ([`attachments`]); commits are read by [`git`]. Nothing here writes the vault.

mod admission;
pub mod attachments;
mod call_log;
mod caller;
mod calls;
mod cursor;
mod error;
mod fence;
mod git;
mod handler;
pub(crate) mod http;
mod outside;
mod paths;
mod schema;
mod secrets;
mod stdio;
mod tokens;
mod tool;
mod vault;
mod wiki;
mod workspace;

pub use caller::McpCaller;
pub use stdio::serve_stdio;
pub use vault::{ConnectHolder, McpVault};
