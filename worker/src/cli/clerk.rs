//! The arguments of `steward clerk`.
//!
//! They are declared here and explained in `docs/clerks.md`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The options of `steward clerk`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClerkCommand {
    /// Ask the clerk labelled cases, and show how well it judges
    #[command(
        after_help = "Examples:\n  steward clerk eval\n  steward clerk eval --cases ./my-cases\n  steward clerk eval --from-records --json\n\n\
        300 cases are part of the program. Ctrl-C ends it, and the same command goes on where it ended. A measurement takes at most half of \
        the calls that the rate guard allows, and it changes nothing: no gate opens because of it.\nExits with 1 when not all cases were answered."
    )]
    Eval(EvalArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Take the cases in the YAML files of this folder, instead of those of the program
    #[arg(long, value_name = "DIR", conflicts_with = "from_records")]
    pub(crate) cases: Option<PathBuf>,
    /// Take decisions of this vault that a person answered
    #[arg(long)]
    pub(crate) from_records: bool,
    /// Forget the answers of an earlier measurement of the same cases
    #[arg(long)]
    pub(crate) again: bool,
}
