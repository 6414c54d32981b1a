//! The command line: every command, its options and examples.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by a rule, 4 something wrong was found.

pub(crate) mod output;
mod token;
mod trust;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use trust::BACKTEST;

pub(crate) use token::{LoginArgs, TokenCommand, TokenScopeArg};
pub(crate) use trust::{BacktestArgs, RestoreTrustArgs, TrustCommand};

const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by a rule, 4 something wrong was found.";

/// Gives every matter of a vault its own steward.
#[derive(Debug, Parser)]
#[command(name = "steward", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// The vault's folder (STEWARD_VAULT)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) vault: Option<PathBuf>,
    /// Print one JSON value instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run everything: a Temporal server if none is set, a worker, the schedules
    #[command(after_help = "Examples:\n  steward up --vault ~/vault\n  steward up --vault ~/vault --once\n  \
        TEMPORAL_ADDRESS=temporal.example:7233 steward up --vault ~/vault\n\n\
        With --once: 3 while stopped, 4 when a record, a clerk or a tick failed.")]
    Up(UpArgs),
    /// Run a worker for a Temporal server that is set; without a vault it serves clerk calls only
    #[command(after_help = "Examples:\n  TEMPORAL_ADDRESS=127.0.0.1:7233 steward worker --vault ~/vault\n  \
        TEMPORAL_ADDRESS=temporal.example:7233 STEWARD_CLERK=openai steward worker")]
    Worker,
    /// The dashboard and the control API alone, beside a worker that holds the vault
    #[command(
        after_help = "Examples:\n  steward serve --vault ~/vault\n  STEWARD_LISTEN=127.0.0.1:9000 steward serve\n\n\
        `steward up` serves them too."
    )]
    Serve,
    /// Tokens for scripts that use the control API
    #[command(subcommand, after_help = "Example:\n  steward token create --scope act --name button")]
    Token(TokenCommand),
    /// Print an address that logs you, or whom you give it to, in to the dashboard, once
    #[command(after_help = "Examples:\n  xdg-open $(steward login --json | jq -r .link)\n  \
        steward login --name Ann --scope read")]
    Login(LoginArgs),
    /// The schedules of all matters
    #[command(subcommand, after_help = "Example:\n  steward schedules plan")]
    Schedules(SchedulesCommand),
    /// Look at one matter now
    #[command(
        after_help = "Examples:\n  steward tick matter/eagle-farm.md --wait\n  steward tick eagle-farm --wait --shadow\n\n\
        With --wait: 3 while stopped, 4 when a record or a clerk failed."
    )]
    Tick(TickArgs),
    /// What was read from outside
    #[command(subcommand, after_help = "Example:\n  steward signals list --status skipped")]
    Signals(SignalsCommand),
    /// The audit records
    #[command(subcommand, after_help = "Example:\n  steward audit list --limit 20")]
    Audit(AuditCommand),
    /// Why a task or matter stands as it does: what was seen, what was decided, what would change it
    #[command(after_help = "Examples:\n  steward why pay-rent\n  steward why matter/eagle-farm --json")]
    Why {
        /// `task/<slug>.md`, `matter/<slug>.md` or a task's slug
        record: String,
    },
    /// Take a change back (within 7 days)
    #[command(
        after_help = "Examples:\n  steward undo 3f9a1c22\n  steward undo 3f9a1c22 --reason \"not paid yet\" --json\n  steward undo 3f9a1c22 81d04e5b\n\n\
        Several are answered with one click: a refused one stops no other, and together they are one lesson.\n\
        With nothing running, the command starts what it needs and ends it again.\n\
        Exits with 3 when it is refused."
    )]
    Undo(ResolveArgs),
    /// Let a pending proposal happen
    #[command(after_help = "Examples:\n  steward confirm 3f9a1c22\n  steward confirm 3f9a1c22 --set archived\n\n\
        Exits with 3 when it is refused.")]
    Confirm(ConfirmArgs),
    /// Turn a pending proposal down, or set a question aside
    #[command(after_help = "Example:\n  steward dismiss 3f9a1c22 --reason \"still open\"\n\n\
        Exits with 3 when it is refused.")]
    Dismiss(ResolveArgs),
    /// How far sources and classes are trusted
    #[command(subcommand, after_help = "Example:\n  steward trust report")]
    Trust(TrustCommand),
    /// Replay the recorded decisions under other settings (the same as `steward trust backtest`)
    #[command(after_help = BACKTEST)]
    Backtest(BacktestArgs),
    /// What stewards may do at a matter
    #[command(subcommand, after_help = "Example:\n  steward policy check eagle-farm")]
    Policy(PolicyCommand),
    /// Stop every worker of the vault within a second: no clerk calls, proposals or changes; undo and dismiss still work
    #[command(after_help = "Example:\n  steward stop --reason \"something is off\"")]
    Stop {
        /// Why, for those who find it stopped
        #[arg(long)]
        reason: Option<String>,
    },
    /// Release the brake; signals that arrived meanwhile are judged now
    #[command(after_help = "Example:\n  steward resume")]
    Resume,
    /// How everything stands
    #[command(after_help = "Example:\n  steward status --json | jq .guard")]
    Status,
    /// Find what is wrong and say the mend
    #[command(after_help = "Examples:\n  steward doctor\n  steward doctor --accept-ledger-loss\n  \
        steward doctor --lift-back-off\n\nExits with 4 when something is wrong.")]
    Doctor(DoctorArgs),
    /// Write an example vault into an empty folder
    #[command(after_help = "Example:\n  steward example ./demo/vault")]
    Example {
        /// A folder that is empty or not there yet
        folder: PathBuf,
    },
    /// Write a vault with a simulated month into an empty folder, and the truth about it beside that
    #[command(after_help = "Examples:\n  steward simulate ./month\n  steward simulate --days 30 --seed 7 ./month\n\n\
        The same seed at the same moment writes the same vault. The truth is kept in <folder>.truth.json.")]
    Simulate(SimulateArgs),
    /// The index, derived from the files
    #[command(subcommand, after_help = "Example:\n  steward index check")]
    Index(IndexCommand),
    /// What brings events in: mails, calendars, webhooks, the drop folder
    #[command(subcommand, after_help = "Example:\n  steward streams list")]
    Streams(StreamsCommand),
    /// Replay recorded workflow histories against this build
    #[command(
        after_help = "Example:\n  temporal workflow show -w al-steward-eagle-farm -o json > h.json && steward replay h.json\n\n\
        Exits with 4 when a history does not replay."
    )]
    Replay {
        /// Histories as `temporal workflow show -o json` prints them
        #[arg(required = true)]
        histories: Vec<PathBuf>,
    },
}

/// What an operator may change while looking for what is wrong.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DoctorArgs {
    /// Let clerk calls go on although it is not known how many were made today
    #[arg(long)]
    pub(crate) accept_ledger_loss: bool,
    /// Ask the clerk's provider again before the time that its 429 named; one call goes first as a probe
    #[arg(long)]
    pub(crate) lift_back_off: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Tick every matter once, print what was decided, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Tick every matter once, print what was decided, and stay up
    #[arg(long, conflicts_with = "once")]
    pub(crate) tick_now: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TickArgs {
    /// `matter/<slug>.md` or the slug
    pub(crate) matter: String,
    /// Wait for the result and print it
    #[arg(long)]
    pub(crate) wait: bool,
    /// Change nothing, whatever the mode
    #[arg(long)]
    pub(crate) shadow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// How many days; they end now
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// What is drawn follows from it
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// A folder that is empty or not there yet
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The action's id, or its first digits (at least 4); of several, up to 200, all are answered with one click
    #[arg(required = true, num_args = 1..=200, value_name = "ACTION")]
    pub(crate) actions: Vec<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Who answers (STEWARD_OPERATOR, else USER)
    #[arg(long)]
    pub(crate) by: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    pub(crate) answer: ResolveArgs,
    /// Let this happen instead of what is proposed: open, done or archived; a text; a matter; a member, as the proposal has it
    #[arg(long, value_name = "VALUE")]
    pub(crate) set: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// Say what would be created, updated, paused and deleted
    #[command(after_help = "Examples:\n  steward schedules plan\n  steward schedules plan --deep\n\n\
        Exits with 3 when deletions would be refused, or when the namespace holds another vault's schedules.")]
    Plan {
        /// Look at every schedule in full, to find changes that others made beneath our mark
        #[arg(long)]
        deep: bool,
    },
    /// Do it
    #[command(after_help = "Examples:\n  steward schedules apply\n  steward schedules apply --confirm-deletions\n\n\
        Exits with 3 when deletions are refused or the namespace holds another vault's schedules, with 4 when a schedule \
        could not be changed.")]
    Apply {
        /// Delete even more schedules than the budget allows
        #[arg(long)]
        confirm_deletions: bool,
        /// Look at every schedule in full, to mend changes that others made beneath our mark
        #[arg(long)]
        deep: bool,
    },
    /// List the schedules with their next runs
    #[command(after_help = "Example:\n  steward schedules list --json")]
    List,
    /// Take over schedules that bear another vault's id or none
    ///
    /// For a vault whose `.steward/vault.json` was lost, or that replaces the one it was copied from. The schedules are
    /// shown first; stop the other vault's steward before.
    #[command(after_help = "Examples:\n  steward schedules adopt\n  steward schedules adopt --yes\n\n\
        Exits with 3 when it was not confirmed or a process serves the other vault, with 4 when a schedule could not be changed.")]
    Adopt {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SignalsCommand {
    /// List signals, newest first
    #[command(after_help = "Examples:\n  steward signals list --status unrouted\n  \
        steward signals list --matter eagle-farm --json")]
    List {
        /// Only those that are unrouted, applied, skipped, pending or action_pending
        #[arg(long)]
        status: Option<String>,
        /// Only those about this matter or its tasks
        #[arg(long)]
        matter: Option<String>,
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Show one signal whole
    #[command(after_help = "Example:\n  steward signals show signal/20261120T080000000Z-1f2e3d4c.md")]
    Show {
        /// Its path or its slug
        path: String,
    },
    /// Say why a signal stands where it does, and what would change that
    #[command(after_help = "Example:\n  steward signals explain 20261120T080000000Z-1f2e3d4c")]
    Explain {
        /// Its path or its slug
        path: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List actions, newest first
    #[command(after_help = "Examples:\n  steward audit list --limit 20\n  steward audit list --task task/pay-rent.md")]
    List {
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Only actions about this record
        #[arg(long)]
        task: Option<String>,
    },
    /// Show one action whole
    #[command(after_help = "Example:\n  steward audit show 3f9a1c22")]
    Show {
        /// The action's id, or its first digits (at least 4)
        action: String,
    },
    /// Check the chain: changed, missing, reordered or cut off records
    #[command(after_help = "Example:\n  steward audit verify || echo somebody changed the records\n\n\
        Exits with 4 when the chain is broken.")]
    Verify,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say what holds at a matter, or at all whose notes have a `steward:` block, and which line says so
    #[command(after_help = "Examples:\n  steward policy check eagle-farm\n  steward policy check --json\n\n\
        Exits with 4 when something in a note cannot be understood, or a matter that a task names is missing.")]
    Check {
        /// `matter/<slug>.md` or the slug
        matter: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Drop what is derived and read every file anew
    #[command(after_help = "Example:\n  steward index rebuild")]
    Rebuild,
    /// Compare the index with every file
    #[command(after_help = "Example:\n  steward index check\n\nExits with 4 when they differ.")]
    Check,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StreamsCommand {
    /// List the streams with their counts, delays and last errors
    #[command(after_help = "Example:\n  steward streams list --json")]
    List,
    /// Write a stream into steward.toml; its secrets stay in the environment or in a file of yours
    #[command(after_help = "Examples:\n  steward streams add post --kind maildir --set path=/var/mail/ann\n  \
        steward streams add mail --kind imap --set host=imap.example.org --set user=ann --set password_file=/run/secrets/imap\n  \
        steward streams add github --kind webhook --set vendor=github --set secret_env=GITHUB_HOOK_SECRET")]
    Add {
        /// Its name, which becomes a folder below stream/
        name: String,
        /// inbox, maildir, ics, imap or webhook
        #[arg(long)]
        kind: String,
        /// One of the kind's own keys
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Bring nothing in from a stream until it is resumed
    #[command(after_help = "Example:\n  steward streams pause mail")]
    Pause { name: String },
    /// Let a paused stream go on
    #[command(after_help = "Example:\n  steward streams resume mail")]
    Resume { name: String },
    /// Read a stream once and print what would be stored; stores nothing
    #[command(after_help = "Example:\n  steward streams test mail")]
    Test { name: String },
}
