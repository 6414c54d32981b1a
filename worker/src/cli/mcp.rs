//! The arguments of `steward mcp`.
//!
//! They are declared here and explained in `docs/mcp.md`.

use clap::{Subcommand, ValueEnum};
use steward_server::access::{Toolset, WikiRight};

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
        /// Offer these tools alone: wiki reads and writes pages, steward shows what the stewards did
        #[arg(long, value_enum, value_delimiter = ',')]
        tools: Vec<ToolsetArg>,
        /// Set what is allowed: read shows, write also stages changes of wikis, act also resolves actions of stewards
        #[arg(long, value_enum, default_value = "write")]
        allow: AllowArg,
    },
}

/// A toolset, as options name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolsetArg {
    Wiki,
    Steward,
}

/// What an assistant may do with wikis, as options name it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WikiRightArg {
    Read,
    Write,
}

/// What a client of `serve` may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum AllowArg {
    Read,
    Write,
    Act,
}

impl From<ToolsetArg> for Toolset {
    fn from(arg: ToolsetArg) -> Self {
        match arg {
            ToolsetArg::Wiki => Self::Wiki,
            ToolsetArg::Steward => Self::Steward,
        }
    }
}

impl From<WikiRightArg> for WikiRight {
    fn from(arg: WikiRightArg) -> Self {
        match arg {
            WikiRightArg::Read => Self::Read,
            WikiRightArg::Write => Self::Write,
        }
    }
}
