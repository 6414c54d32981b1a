//! `steward token …` and `steward login`: their options and examples.
//!
//! Words only; what they do is [`crate::commands::token`].

use clap::{Args, Subcommand};

/// Whom the address lets in.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Who comes in; audit records say so [default: STEWARD_OPERATOR]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// read sees, act also answers and stops, operate also resumes and pauses streams
    #[arg(long, value_enum, default_value = "operate")]
    pub(crate) scope: TokenScopeArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once
    #[command(
        after_help = "Example:\n  curl -H \"Authorization: Bearer $(steward token create --scope read --json | jq -r .token)\" \\\n    \
        http://127.0.0.1:8420/api/v1/steward/recent-actions"
    )]
    Create {
        /// read sees, act also answers and stops, operate also resumes and pauses streams
        #[arg(long, value_enum)]
        scope: TokenScopeArg,
        /// What it is for; audit records say `token:<name>#<id>`
        #[arg(long)]
        name: Option<String>,
    },
    /// List them, without their secrets
    #[command(after_help = "Example:\n  steward token list")]
    List,
    /// Take one away, at once
    #[command(after_help = "Example:\n  steward token revoke 3f9a1c22")]
    Revoke {
        /// Its id, as `steward token list` says
        id: String,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum TokenScopeArg {
    Read,
    Act,
    Operate,
}
