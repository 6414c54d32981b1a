//! The Model Context Protocol (MCP): an assistant reads the wikis of a vault by tools.
//!
//! [`serve_stdio`] speaks with one client over pipes, and [`http`] with many. A tool is called by [`handler`], which lists and logs it ([`call_log`]); [`tool`] says what a
//! tool is, and [`wiki`] holds those of a wiki. Outside words, such as those of pages, stand between marks that their author cannot
//! know ([`fence`]), or in fields that say so ([`outside`]). Nothing here writes the vault.

mod call_log;
mod caller;
mod cursor;
mod error;
mod fence;
mod handler;
pub(crate) mod http;
mod outside;
mod paths;
mod schema;
mod stdio;
mod tokens;
mod tool;
mod vault;
mod wiki;
mod workspace;

pub use caller::McpCaller;
pub use stdio::serve_stdio;
pub use vault::McpVault;
