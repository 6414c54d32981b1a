//! `steward trust …` and `steward backtest`: their options and examples.
//!
//! Words only; what they do is below [`crate::commands::trust`].

use clap::{Args, Subcommand};
use std::path::PathBuf;

pub(super) const BACKTEST: &str = "What is not said stays as it is set now. Nothing is asked of a clerk: what it answered, and what \
    the gates found, stand in the records. Ceilings that people set on sources and matters hold as they are now, but for \
    sources that are asked about; what a source may change in a day is not replayed.\n\n\
    It writes nothing. It prints what was asked for as TOML to paste into steward.toml. Settings that are bolder than \
    that file are refused (3), with the reasons, if the cases do not support them or the audit chain is broken. Ceilings \
    of sources are yours to set: the lines are told.\n\n\
    Examples:\n  steward backtest --mode live_high_confidence_only\n  \
    steward backtest --mode live --confidence 0.7 --ceiling related=confirm\n  \
    steward backtest --policy bolder.toml --against careful.toml --json\n  \
    steward backtest --ceiling default=confirm --ceiling source:gmail=act\n  \
    steward backtest --recommended";

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Let a source, a class or all strangers that were undone too often go as far as the mode allows again
    #[command(after_help = "Examples:\n  steward trust raise gmail\n  steward trust raise state_change --by ann\n  \
        steward trust raise strangers\n\n\
        Exits with 3 when it is refused.")]
    Raise(RestoreTrustArgs),
    /// Say how right the steward would have been, with how sure that is, and which switch that supports
    #[command(after_help = "Examples:\n  steward trust report\n  steward trust report --html report.html\n  \
        steward trust report --json | jq .choice")]
    Report {
        /// Write a page with plots into this file instead
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Replay the recorded decisions under other settings, and compare
    #[command(after_help = BACKTEST)]
    Backtest(BacktestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BacktestArgs {
    /// shadow, live_high_confidence_only or live
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// Least confidence for live, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,
    /// Least confidence for live_high_confidence_only, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    pub(crate) high_confidence: Option<f64>,
    /// The ceiling of a class (state_change, context_edit, parent_matter, related), of one source (`source:NAME`), or
    /// `default` for sources without one of their own; ask, confirm or act
    #[arg(long = "ceiling", value_name = "CLASS=WORD")]
    pub(crate) ceilings: Vec<String>,
    /// A file with settings as in steward.toml; options count more
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Ask about what the trust report recommends, and nothing else
    #[arg(long, conflicts_with_all = ["mode", "confidence", "high_confidence", "ceilings", "policy"])]
    pub(crate) recommended: bool,
    /// Compare with the settings of this file instead of the present ones
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreTrustArgs {
    /// A source as `steward status` names it, a class (state_change, context_edit, parent_matter, related), or strangers
    pub(crate) subject: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Who says so (STEWARD_OPERATOR, else USER)
    #[arg(long)]
    pub(crate) by: Option<String>,
}
