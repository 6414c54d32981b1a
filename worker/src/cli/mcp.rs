//! The arguments of `steward mcp`.
//!
//! They are declared here and explained in `docs/mcp.md`.

use clap::Subcommand;

/// The options of `steward mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Speak the Model Context Protocol with one client over standard input and output
    #[command(
        after_help = "Examples:\n  claude mcp add steward -- steward mcp serve --vault ~/vault\n  steward mcp serve --workspace allotment\n\n\
        A client starts this command itself. It reads the wikis of the vault, needs no running steward, and ends with its input. The log goes \
        to standard error."
    )]
    Serve {
        /// Show this wiki alone
        #[arg(long, value_name = "WIKI")]
        workspace: Option<String>,
    },
}
