//! The arguments of the commands by which a person answers actions.
//!
//! They only say what was typed. Whether an answer is allowed is decided where it is applied.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// Id of the action, or its first digits (at least 4); up to 200 actions are one batch
    #[arg(required = true, num_args = 1..=200, value_name = "ACTION")]
    pub(crate) actions: Vec<String>,
    /// State a reason for the record
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Name the person who decides (STEWARD_OPERATOR, else USER)
    #[arg(long)]
    pub(crate) by: Option<String>,
}

/// An answer to one action, by a person at this machine.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Id of the action, or its first digits (at least 4)
    #[arg(value_name = "ACTION")]
    pub(crate) action: String,
    /// State a reason for the record
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Name the person who decides (STEWARD_OPERATOR, else USER)
    #[arg(long)]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RightArgs {
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    /// Say that you have made the change yourself, so that it is not proposed again
    #[arg(long)]
    pub(crate) done: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    pub(crate) resolution: ResolveArgs,
    /// Set this value instead of the proposed one: open, done or archived, a text, a matter, or a list member
    #[arg(long, value_name = "VALUE")]
    pub(crate) set: Option<String>,
}
