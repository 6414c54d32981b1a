//! The options and examples of `steward token …` and `steward login`.
//!
//! It declares arguments only; [`crate::commands::token`] runs the commands.

use crate::cli::mcp::{ToolsetArg, WikiRightArg};
use clap::{Args, Subcommand};
use steward_server::access::{TokenLimits, Toolset, WikiRight};

/// Who may log in with the link.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Name of the person; it appears in audit records [default: STEWARD_OPERATOR]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Set what is allowed: read shows, act also resolves and stops, operate also resumes and pauses streams
    #[arg(long, value_enum, default_value = "operate")]
    pub(crate) scope: TokenScopeArg,
    /// Open the link in the browser of this computer
    #[arg(long)]
    pub(crate) open: bool,
}

/// What narrows a token. One with any of these limits opens `/mcp` alone.
#[derive(Debug, Args)]
pub(crate) struct TokenLimitArgs {
    /// For an assistant: offer these tools alone, and open `/mcp` alone
    #[arg(long, value_enum, value_delimiter = ',')]
    tools: Vec<ToolsetArg>,
    /// For an assistant: show this wiki alone, and open `/mcp` alone
    #[arg(long, value_name = "WIKI")]
    workspace: Option<String>,
    /// For an assistant: set whether it may write pages, and open `/mcp` alone [default: write with the scope act, else read]
    #[arg(long, value_enum)]
    wiki: Option<WikiRightArg>,
}

impl TokenLimitArgs {
    pub(crate) fn read(&self) -> TokenLimits {
        let mut tools: Vec<Toolset> = self.tools.iter().copied().map(Toolset::from).collect();
        tools.sort();
        tools.dedup();
        TokenLimits { tools, workspace: self.workspace.clone(), wiki: self.wiki.map(WikiRight::from) }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it once
    #[command(
        after_help = "Example:\n  curl -H \"Authorization: Bearer $(steward token create --scope read --json | jq -r .token)\" \\\n    \
        http://127.0.0.1:8420/api/v1/steward/recent-actions\n  \
        steward token create --scope read --workspace allotment --name assistant"
    )]
    Create {
        /// Set what is allowed: read shows, act also resolves and stops, operate also resumes and pauses streams
        #[arg(long, value_enum)]
        scope: TokenScopeArg,
        /// Name the purpose of the token; audit records show `token:<name>#<id>`
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limits: TokenLimitArgs,
    },
    /// List the tokens without their secrets
    #[command(after_help = "Example:\n  steward token list")]
    List,
    /// Revoke a token at once
    #[command(after_help = "Example:\n  steward token revoke 3f9a1c22")]
    Revoke {
        /// Id of the token, as `steward token list` shows it
        id: String,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum TokenScopeArg {
    Read,
    Act,
    Operate,
}
