//! The command line: every command with its options and examples.
//!
//! It declares arguments only; the modules below [`crate::commands`] run the commands.
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by a rule, 4 something wrong was found.

pub(crate) mod alike;
mod answers;
mod backup;
pub(crate) mod clerk;
mod deploy;
pub(crate) mod fleet;
pub(crate) mod mcp;
mod notes;
pub(crate) mod output;
mod records;
mod streams;
pub(crate) mod style;
pub(crate) mod table;
mod token;
mod trust;
pub(crate) mod wiki;

use clap::{Args, ColorChoice, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;
use steward_activities::wiki::reader::READ_DOCUMENT;
use steward_domain::wiki::source_text::SourceFormat;
use trust::BACKTEST;

pub(crate) use answers::{AnswerArgs, ConfirmArgs, ResolveArgs, RightArgs};
pub(crate) use backup::BackupCommand;
pub(crate) use deploy::{DrainArgs, PreflightArgs};
pub(crate) use notes::{InitArgs, MovedArgs};
pub(crate) use records::{AuditCommand, SignalsCommand};
pub(crate) use streams::StreamsCommand;
pub(crate) use token::{LoginArgs, TokenCommand, TokenScopeArg};
pub(crate) use trust::{BacktestArgs, RestoreTrustArgs, TrustCommand};

const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by a rule, 4 something wrong was found.";

/// Gives every matter of a vault its own steward.
#[derive(Debug, Parser)]
#[command(name = "steward", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Set the folder of the vault (STEWARD_VAULT)
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(crate) vault: Option<PathBuf>,
    /// Print one JSON value instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show ids, moments and long texts of tables in full, as a pipe gets them
    #[arg(long, global = true)]
    pub(crate) long: bool,
    /// Show states in colour: `auto`, unless NO_COLOR is set; `always`; or `never`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run everything: a worker, the schedules, the dashboard, and a Temporal server if none is configured
    #[command(after_help = "Examples:\n  steward up --vault ~/vault\n  steward up --vault ~/vault --once\n  \
        TEMPORAL_ADDRESS=temporal.example:7233 steward up --vault ~/vault\n\n\
        With --once: exits with 3 while stopped, with 4 when a record, a clerk or a tick failed.")]
    Up(UpArgs),
    /// Run a worker for a configured Temporal server; without a vault it serves clerk calls only
    #[command(after_help = "Examples:\n  TEMPORAL_ADDRESS=127.0.0.1:7233 steward worker --vault ~/vault\n  \
        TEMPORAL_ADDRESS=temporal.example:7233 STEWARD_CLERK=openai steward worker")]
    Worker,
    /// Serve the dashboard and the control API beside a worker that holds the vault
    #[command(
        after_help = "Examples:\n  steward serve --vault ~/vault\n  STEWARD_LISTEN=127.0.0.1:9000 steward serve\n\n\
        `steward up` serves both by itself."
    )]
    Serve,
    /// Manage the tokens of scripts that use the control API
    #[command(subcommand, after_help = "Example:\n  steward token create --scope act --name button")]
    Token(TokenCommand),
    /// Print a link that logs one person in to the dashboard, once
    #[command(after_help = "Examples:\n  steward login --open\n  steward login --name Ann --scope read")]
    Login(LoginArgs),
    /// Show and apply the schedules of all matters
    #[command(subcommand, after_help = "Example:\n  steward schedules plan")]
    Schedules(SchedulesCommand),
    /// Check one matter now
    #[command(
        after_help = "Examples:\n  steward tick matter/eagle-farm.md --wait\n  steward tick eagle-farm --wait --shadow\n\n\
        Exits with 3 while the vault is stopped; with --wait also with 4 when a record or a clerk failed."
    )]
    Tick(TickArgs),
    /// Show the signals that were read from events
    #[command(subcommand, after_help = "Example:\n  steward signals list --status skipped")]
    Signals(SignalsCommand),
    /// Show and verify the audit records
    #[command(subcommand, after_help = "Example:\n  steward audit list --limit 20")]
    Audit(AuditCommand),
    /// Explain a task, matter or action: its signals, the decision, the gates, and what would change it
    #[command(
        after_help = "Examples:\n  steward why pay-rent\n  steward why 3f9a1c22\n  steward why \"Pay the rent\"\n  \
        steward why matter/eagle-farm --json"
    )]
    Why {
        /// The name, title, path or link of a task or matter, or the id of an action
        record: String,
    },
    /// Undo a change within 7 days
    #[command(
        after_help = "Examples:\n  steward undo 3f9a1c22\n  steward undo 3f9a1c22 --reason \"not paid yet\" --json\n  steward undo 3f9a1c22 81d04e5b\n\n\
        Several actions are one batch: a refused one does not stop the others, and the batch counts as one case.\n\
        If nothing is running, the command starts what it needs and stops it again.\n\
        Exits with 3 when it is refused."
    )]
    Undo(ResolveArgs),
    /// Confirm a pending proposal
    #[command(after_help = "Examples:\n  steward confirm 3f9a1c22\n  steward confirm 3f9a1c22 --set archived\n\n\
        Exits with 3 when it is refused.")]
    Confirm(ConfirmArgs),
    /// Dismiss a pending proposal or a question
    #[command(after_help = "Example:\n  steward dismiss 3f9a1c22 --reason \"still open\"\n\n\
        Exits with 3 when it is refused.")]
    Dismiss(ResolveArgs),
    /// Say that a proposal made in Watch is right; it stays a proposal
    #[command(after_help = "Examples:\n  steward right 3f9a1c22\n  steward right 3f9a1c22 --done\n\n\
        Counts as a confirmation in `steward trust report`. Exits with 3 when it is refused.")]
    Right(RightArgs),
    /// Say that a proposal made in Watch is wrong; it is not proposed again from the same messages
    #[command(after_help = "Example:\n  steward wrong 3f9a1c22 --reason \"another invoice\"\n\n\
        Counts as a dismissal in `steward trust report`. Exits with 3 when it is refused.")]
    Wrong(AnswerArgs),
    /// Take back a dismissal, a `right` or a `wrong`, within 7 days
    #[command(after_help = "Example:\n  steward reopen 3f9a1c22\n\n\
        Names the action or its answer. Exits with 3 when it is refused.")]
    Reopen(AnswerArgs),
    /// Show and restore how far sources and classes are trusted
    #[command(subcommand, after_help = "Example:\n  steward trust report")]
    Trust(TrustCommand),
    /// Replay the recorded decisions under other settings (the same as `steward trust backtest`)
    #[command(after_help = BACKTEST)]
    Backtest(BacktestArgs),
    /// Show what stewards may do at a matter
    #[command(subcommand, after_help = "Example:\n  steward policy check eagle-farm")]
    Policy(PolicyCommand),
    /// Measure how well the clerk judges
    #[command(subcommand, after_help = "Example:\n  steward clerk eval\n\nSee docs/clerks.md.")]
    Clerk(clerk::ClerkCommand),
    /// Stop every worker of the vault within a second; undo and dismiss still work
    #[command(after_help = "Examples:\n  steward stop --reason \"something is off\"\n  steward stop --fleet\n\n\
        While stopped there are no clerk calls, no proposals and no changes.")]
    Stop {
        /// State a reason, which status and the dashboard show
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        scope: fleet::FleetScopeArgs,
    },
    /// End the stop; signals that arrived meanwhile are judged now
    #[command(after_help = "Examples:\n  steward resume\n  steward resume --fleet --tenant acme")]
    Resume {
        #[command(flatten)]
        scope: fleet::FleetScopeArgs,
    },
    /// Manage the vaults that share a database and a Temporal namespace
    #[command(after_help = "Example:\n  steward fleet status\n\nSee docs/fleet.md.")]
    Fleet(fleet::FleetArgs),
    /// Make and check wikis: pages that state what sources say
    #[command(after_help = "Example:\n  steward wiki lint allotment\n\nSee docs/wiki.md.")]
    Wiki(wiki::WikiArgs),
    /// Let an assistant use the wikis and ask the stewards, through the Model Context Protocol
    #[command(subcommand, after_help = "Example:\n  steward mcp serve --workspace allotment\n\nSee docs/mcp.md.")]
    Mcp(mcp::McpCommand),
    /// Take the text out of the document on the standard input, for the process that adds it to a wiki
    #[command(name = READ_DOCUMENT, hide = true)]
    ReadDocument {
        /// `html` or `pdf`
        format: SourceFormat,
    },
    /// Show the state of the vault, its process, the clerk, the rate guard and the schedules
    #[command(after_help = "Examples:\n  steward status --json | jq .guard\n  steward status --healthz\n\n\
        With --healthz: exits with 1 when the process does not answer or its main loop hangs.")]
    Status {
        /// Only ask the server of the running process for /healthz
        #[arg(long)]
        healthz: bool,
    },
    /// Find problems and print the fix for each
    #[command(after_help = "Examples:\n  steward doctor\n  steward doctor --accept-ledger-loss\n  \
        steward doctor --lift-back-off\n\nA finding is `ok`, a `note` that needs nothing, or `WRONG` with the fix. Before the \
        first start the command reads the notes itself. Exits with 4 when something is wrong.")]
    Doctor(DoctorArgs),
    /// Propose how the notes of a vault are read, show what that finds, and accept it after a yes
    #[command(after_help = "Examples:\n  steward init ~/notes\n  steward init ~/notes --yes\n  \
        steward init ~/notes --accept")]
    Init(InitArgs),
    /// Say where a note is that was renamed, or list the notes that Steward misses
    #[command(
        after_help = "Examples:\n  steward moved\n  steward moved \"Projects/Old name.md\" \"Archive/New name.md\"\n  \
        steward moved \"Projects/Old name.md\" --deleted\n\n\
        Most renames are noticed without it."
    )]
    Moved(MovedArgs),
    /// Print what completes the commands of `steward` in a shell
    #[command(
        after_help = "Examples:\n  steward completions bash > ~/.local/share/bash-completion/completions/steward\n  \
        steward completions zsh > ~/.zfunc/_steward\n  steward completions fish > ~/.config/fish/completions/steward.fish"
    )]
    Completions {
        /// Name of the shell
        shell: Shell,
    },
    /// Write a man page for every command into a folder
    #[command(after_help = "Example:\n  steward man ~/.local/share/man/man1 && man steward-undo")]
    Man {
        /// A folder; it is made if there is none
        folder: PathBuf,
    },
    /// Write an example vault into an empty folder
    #[command(after_help = "Example:\n  steward example ./demo/vault")]
    Example {
        /// An empty or new folder
        folder: PathBuf,
    },
    /// Write a vault with a simulated month into an empty folder, and its ground truth beside it
    #[command(after_help = "Examples:\n  steward simulate ./month\n  steward simulate --days 30 --seed 7 ./month\n\n\
        The same seed at the same moment gives the same vault. The ground truth is in <folder>.truth.json.")]
    Simulate(SimulateArgs),
    /// Make, check and restore backups of the vault
    #[command(subcommand, after_help = "Example:\n  steward backup create --to /srv/backup/home")]
    Backup(BackupCommand),
    /// Check or rebuild the index, which is derived from the files
    #[command(subcommand, after_help = "Example:\n  steward index check")]
    Index(IndexCommand),
    /// Manage the streams that bring events in: mail, calendars, webhooks, the drop folder
    #[command(subcommand, after_help = "Example:\n  steward streams list")]
    Streams(StreamsCommand),
    /// Let no new run begin and wait until the open ones have ended, before a new build takes over
    #[command(after_help = "Examples:\n  steward drain && echo now start the new build\n  steward drain --end\n\n\
        Exits with 0 when nothing is under way; the drain then stands until --end. After 5 minutes it ends by itself and \
        exits with 1.")]
    Drain(DrainArgs),
    /// Check whether this build can continue the open runs, before it is deployed
    #[command(after_help = "Examples:\n  steward preflight\n  steward preflight --hours 2 --json\n  \
        temporal workflow show -w al-steward-eagle-farm -o json > h.json && steward preflight --from h.json\n\n\
        Nothing is changed. Exits with 0 when every run is safe, with 4 when this build would break one, with 1 when not \
        everything could be checked, and with 3 when there are more runs than --max.")]
    Preflight(PreflightArgs),
}

/// The options of `steward doctor`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DoctorArgs {
    /// Allow clerk calls again although the number of today's calls is lost
    #[arg(long)]
    pub(crate) accept_ledger_loss: bool,
    /// End the back-off of the clerk's provider (429) early; one probe call goes first
    #[arg(long)]
    pub(crate) lift_back_off: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Tick every matter once, print the decisions, and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Tick every matter once, print the decisions, and keep running
    #[arg(long, conflicts_with = "once")]
    pub(crate) tick_now: bool,
    /// Do not print a login link, because others may read the output, as in a journal
    #[arg(long)]
    pub(crate) no_login_link: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TickArgs {
    /// The name, path, link or title of the matter
    pub(crate) matter: String,
    /// Wait for the result and print it
    #[arg(long)]
    pub(crate) wait: bool,
    /// Decide but change nothing, whatever the mode
    #[arg(long)]
    pub(crate) shadow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Set the number of days; the last one ends now
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// Set the seed of the random numbers
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// An empty or new folder
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// Show what would be created, updated, paused and deleted
    #[command(after_help = "Examples:\n  steward schedules plan\n  steward schedules plan --deep\n\n\
        Exits with 3 when deletions would be refused, or when the namespace holds another vault's schedules.")]
    Plan {
        /// Read every schedule in full, to find changes by others that a listing does not show
        #[arg(long)]
        deep: bool,
    },
    /// Create, update, pause and delete schedules as planned
    #[command(after_help = "Examples:\n  steward schedules apply\n  steward schedules apply --confirm-deletions\n\n\
        Exits with 3 when deletions are refused or the namespace holds another vault's schedules, with 4 when a schedule \
        could not be changed.")]
    Apply {
        /// Delete more schedules than the deletion budget allows
        #[arg(long)]
        confirm_deletions: bool,
        /// Read every schedule in full, to correct changes by others that a listing does not show
        #[arg(long)]
        deep: bool,
    },
    /// List the schedules with their next runs
    #[command(after_help = "Example:\n  steward schedules list --json")]
    List,
    /// Take over schedules that carry another vault's id or none
    ///
    /// For a vault whose `.steward/vault.json` was lost, or that replaces the vault it was copied from. Stop the
    /// process of the other vault first. The schedules are shown before anything is changed.
    #[command(after_help = "Examples:\n  steward schedules adopt\n  steward schedules adopt --yes\n\n\
        Exits with 3 when it was not confirmed or a process serves the other vault, with 4 when a schedule could not \
        be changed.")]
    Adopt {
        /// Skip the confirmation prompt
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show the policy of a matter and which line sets it; without a matter, of all that have a `steward:` block
    #[command(after_help = "Examples:\n  steward policy check eagle-farm\n  steward policy check --json\n\n\
        Exits with 4 when a note has an invalid line, or when a matter that a task names is missing.")]
    Check {
        /// The name, path, link or title of the matter
        matter: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Drop the index and read every file again
    #[command(after_help = "Example:\n  steward index rebuild")]
    Rebuild,
    /// Compare the index with every file
    #[command(after_help = "Example:\n  steward index check\n\nExits with 4 when they differ.")]
    Check,
}

#[cfg(test)]
mod tests;
