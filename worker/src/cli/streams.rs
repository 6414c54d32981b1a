//! The arguments of `steward streams`.
//!
//! They are declared here, explained in `docs/streams.md`, and run by `crate::commands::streams`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum StreamsCommand {
    /// List the streams with their counts, delays and last errors
    #[command(after_help = "Example:\n  steward streams list --json")]
    List,
    /// Add a stream to steward.toml; its secrets stay in the environment or in a file of yours
    #[command(after_help = "Examples:\n  steward streams add post --kind maildir --set path=/var/mail/ann\n  \
        steward streams add mail --kind imap --set host=imap.example.org --set user=ann --set password_file=/run/secrets/imap\n  \
        steward streams add github --kind webhook --set vendor=github --set secret_env=GITHUB_HOOK_SECRET")]
    Add {
        /// Name of the stream, and of its folder below stream/
        name: String,
        /// Set the kind: inbox, maildir, ics, imap or webhook
        #[arg(long)]
        kind: String,
        /// Set a key of this kind; may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Pause a stream until it is resumed
    #[command(after_help = "Example:\n  steward streams pause mail")]
    Pause {
        /// Name of the stream
        name: String,
    },
    /// Resume a paused stream
    #[command(after_help = "Example:\n  steward streams resume mail")]
    Resume {
        /// Name of the stream
        name: String,
    },
    /// Read a stream once and print the events without storing them
    #[command(after_help = "Example:\n  steward streams test mail")]
    Test {
        /// Name of the stream
        name: String,
    },
}
