//! Who calls a tool, and which wikis they may see.
//!
//! Over stdio that is the operating system's user who started the process.

/// A caller of tools.
#[derive(Clone, Debug)]
pub struct McpCaller {
    /// As the log names them.
    pub name: String,
    /// The one workspace that they see; all of the vault without it.
    pub workspace: Option<String>,
}
