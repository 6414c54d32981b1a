//! The options and examples of `steward trust …` and `steward backtest`.
//!
//! It declares arguments only; [`crate::commands::trust`] runs the commands.

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const BACKTEST: &str = "Settings that are not given stay as they are now. No clerk is asked: the records \
    hold its answers and the values of the gates. Ceilings of sources and matters apply as they are now, except for sources \
    that are named here. The daily budget of a source is not replayed.\n\n\
    The command writes nothing. It prints the given settings as TOML to paste into steward.toml. Settings that are less \
    restrictive than that file are refused (3), with the reasons, if the cases do not support them or if the audit chain \
    is broken. Ceilings of sources are printed as lines for you to set.\n\n\
    Examples:\n  steward backtest --mode live_high_confidence_only\n  \
    steward backtest --mode live --confidence 0.7 --ceiling related=confirm\n  \
    steward backtest --policy bolder.toml --against careful.toml --json\n  \
    steward backtest --ceiling default=confirm --ceiling source:gmail=act\n  \
    steward backtest --recommended";

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Restore a source, a class or all unknown sources after a demotion for too many undos
    #[command(after_help = "Examples:\n  steward trust raise gmail\n  steward trust raise state_change --by ann\n  \
        steward trust raise unknown_sources\n\n\
        Exits with 3 when it is refused.")]
    Raise(RestoreTrustArgs),
    /// Show how often the steward was right, with confidence intervals, and the mode that this supports
    #[command(after_help = "Examples:\n  steward trust report\n  steward trust report --html report.html\n  \
        steward trust report --json | jq .choice")]
    Report {
        /// Write an HTML page with plots into this file instead
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Replay the recorded decisions under other settings and compare the outcomes
    #[command(after_help = BACKTEST)]
    Backtest(BacktestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BacktestArgs {
    /// Set the mode: shadow, live_high_confidence_only or live
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// Set the minimum confidence for live, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,
    /// Set the minimum confidence for live_high_confidence_only, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    pub(crate) high_confidence: Option<f64>,
    /// Set the ceiling (ask, confirm or act) of a class (state_change, context_edit, parent_matter, related), of one
    /// source (`source:NAME`), or of all sources without a ceiling of their own (`default`)
    #[arg(long = "ceiling", value_name = "CLASS=WORD")]
    pub(crate) ceilings: Vec<String>,
    /// Read settings from a file like steward.toml; options override it
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Use the settings that the trust report recommends
    #[arg(long, conflicts_with_all = ["mode", "confidence", "high_confidence", "ceilings", "policy"])]
    pub(crate) recommended: bool,
    /// Compare with the settings of this file instead of the current ones
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreTrustArgs {
    /// A source as `steward status` names it, a class (state_change, context_edit, parent_matter, related), or
    /// unknown_sources (all unknown sources)
    pub(crate) subject: String,
    /// State a reason for the record
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Name the person who restores it (STEWARD_OPERATOR, else USER)
    #[arg(long)]
    pub(crate) by: Option<String>,
}
