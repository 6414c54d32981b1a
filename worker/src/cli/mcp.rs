//! The arguments of `steward mcp`.
//!
//! They are declared here and explained in `docs/mcp.md`.

use crate::cli::wiki::parse_day_begin;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use steward_server::access::{Toolset, WikiRight};

/// The options of `steward mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Speak the Model Context Protocol with one client over standard input and output
    #[command(
        after_help = "Examples:\n  claude mcp add steward -- steward mcp serve --vault ~/vault\n  steward mcp serve --workspace allotment\n\n\
        A client starts this command itself. It reads the wikis of the vault, needs no running steward, and ends with its input. To submit pages, \
        `steward up` runs elsewhere, or --up is given. The log goes to standard error."
    )]
    Serve {
        /// Hold the vault as well, as `steward up` does, while the client is connected and no other process holds it
        #[arg(long)]
        up: bool,
        #[command(flatten)]
        rights: McpRightsArgs,
    },
    /// Print what connects a client to this vault; changes no file
    #[command(
        after_help = "Examples:\n  steward mcp install claude-code\n  steward mcp install cursor --workspace allotment --allow read\n  \
        steward mcp install vscode --http"
    )]
    Install {
        /// The client
        #[arg(value_enum)]
        client: McpClientArg,
        /// Connect to a running steward with a token, instead of starting a process
        #[arg(long)]
        http: bool,
        /// Have the client's process hold the vault as well, so that `steward up` need not run
        #[arg(long, conflicts_with = "http")]
        up: bool,
        #[command(flatten)]
        rights: McpRightsArgs,
    },
    /// Call a tool once, as an assistant would; without a tool, list the tools
    #[command(after_help = "Examples:\n  steward mcp call\n  steward mcp call guide workspace=allotment\n  \
        steward mcp call search workspace=allotment query=\"end of the lease\" limit=3\n\n\
        A value is JSON where the tool takes no text, such as limit=3. Give a key several times for a list. Exits with 3 when the call is refused.")]
    Call {
        /// The tool
        tool: Option<String>,
        /// Its arguments, as key=value
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        #[command(flatten)]
        rights: McpRightsArgs,
    },
    /// Show the calls of assistants, oldest first
    #[command(after_help = "Examples:\n  steward mcp log\n  steward mcp log --tool write --since 2026-11-24 --json")]
    Log {
        /// Show calls of this tool alone
        #[arg(long)]
        tool: Option<String>,
        /// Show calls from this day on, such as `2026-11-24`, or from this moment on [default: 24 hours ago]
        #[arg(long, value_name = "TIME", value_parser = parse_day_begin)]
        since: Option<DateTime<Utc>>,
    },
}

/// What a client sees and may do.
#[derive(Debug, Args)]
pub(crate) struct McpRightsArgs {
    /// Show this wiki alone
    #[arg(long, value_name = "WIKI")]
    pub(crate) workspace: Option<String>,
    /// Offer these tools alone: wiki reads and writes pages, steward shows what the stewards did
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) tools: Vec<ToolsetArg>,
    /// Set what is allowed: read shows, write also stages changes of wikis, act also resolves actions of stewards
    #[arg(long, value_enum, default_value = "write")]
    pub(crate) allow: AllowArg,
}

/// A client that can be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClientArg {
    ClaudeCode,
    ClaudeDesktop,
    Vscode,
    Cursor,
    Codex,
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
