//! The commands that show signals and audit records.
//!
//! It declares arguments only; [`crate::commands::signals`] and [`crate::commands::audit`] run the commands. None of them
//! changes a record.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum SignalsCommand {
    /// List signals, newest first
    #[command(after_help = "Examples:\n  steward signals list --status unrouted\n  \
        steward signals list --matter eagle-farm --json")]
    List {
        /// Show only signals with this status: unrouted, applied, skipped, pending or action_pending
        #[arg(long)]
        status: Option<String>,
        /// Show only signals about this matter or its tasks: a name, a path or a title
        #[arg(long)]
        matter: Option<String>,
        /// Show at most this many signals
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show one signal in full
    #[command(after_help = "Example:\n  steward signals show signal/20261120T080000000Z-1f2e3d4c.md")]
    Show {
        /// The name or path of the signal, or a part of its name
        path: String,
    },
    /// Explain the status of a signal and what would change it
    #[command(after_help = "Example:\n  steward signals explain 20261120T080000000Z-1f2e3d4c")]
    Explain {
        /// The name or path of the signal, or a part of its name
        path: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List actions, newest first
    #[command(after_help = "Examples:\n  steward audit list --limit 20\n  steward audit list --task pay-rent")]
    List {
        /// Show at most this many actions
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Show only actions about this task or matter: a name, a path or a title
        #[arg(long)]
        task: Option<String>,
    },
    /// Show one action in full
    #[command(after_help = "Example:\n  steward audit show 3f9a1c22")]
    Show {
        /// Id of the action, or its first digits (at least 4)
        action: String,
    },
    /// Verify the chain: find changed, missing, reordered or cut-off records
    #[command(after_help = "Example:\n  steward audit verify || echo somebody changed the records\n\n\
        Exits with 4 when the chain is broken.")]
    Verify,
}
