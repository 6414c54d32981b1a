//! The options and examples of `steward token …` and `steward login`.
//!
//! It declares arguments only; [`crate::commands::token`] runs the commands.

use clap::{Args, Subcommand};

/// Who may log in with the link.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Name of the person; it appears in audit records [default: STEWARD_OPERATOR]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Set what is allowed: read shows, act also resolves and stops, operate also resumes and pauses streams
    #[arg(long, value_enum, default_value = "operate")]
    pub(crate) scope: TokenScopeArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it once
    #[command(
        after_help = "Example:\n  curl -H \"Authorization: Bearer $(steward token create --scope read --json | jq -r .token)\" \\\n    \
        http://127.0.0.1:8420/api/v1/steward/recent-actions"
    )]
    Create {
        /// Set what is allowed: read shows, act also resolves and stops, operate also resumes and pauses streams
        #[arg(long, value_enum)]
        scope: TokenScopeArg,
        /// Name the purpose of the token; audit records show `token:<name>#<id>`
        #[arg(long)]
        name: Option<String>,
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
