//! `steward backtest`: recorded decisions under other settings, compared with the present ones.
//!
//! Reads the index and the chain of records and asks no clerk. With `--write` what was asked for goes into `steward.toml`
//! with what it rests on ([`written`]), unless it is bolder than what the file says and the cases are no reason for it
//! ([`steward_domain::trust::report::clearance`]). Ceilings of sources are told as lines for a human to set.

mod text;
mod written;

use super::describe_broken_chain;
use super::read_known_chain;
use super::settings::instinct_path;
use super::verify_chain;
use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::rules::{
    PolicyOverrides, check_threshold, check_threshold_order, parse_mode, read_reversal_budget, read_rules_file,
};
use crate::config::{self, StewardConfig};
use anyhow::bail;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use steward_domain::gates::mode::Ceiling;
use steward_domain::trust::backtest::{BacktestPass, BacktestReport};
use steward_domain::trust::case::ReplayRules;
use steward_domain::trust::report::TrustReportPass;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::report::clearance::SettingsClearance;
use steward_vault::action::chain::{self, ChainVerification};
use steward_vault::index::Index;

/// The backtest, and what was done with it.
#[derive(Serialize)]
struct BacktestRunReport {
    told_at: DateTime<Utc>,
    /// Whether the records are whole that were replayed.
    chain: ChainVerification,
    #[serde(flatten)]
    backtest: BacktestReport,
    bar: EvidenceBar,
    /// What the cases lack to be reason enough for these settings; nothing if they are no bolder than before.
    lacking: Vec<String>,
    /// Ceilings of sources that were asked about and that only a human sets.
    by_hand: Vec<ManualCeiling>,
    /// It was to be written and was not, because of what is lacking.
    refused: bool,
    /// The file that has the settings now; `None` where none was asked for.
    written: Option<PathBuf>,
    /// What the environment sets otherwise than the file that was written.
    overruled: Vec<OverriddenSetting>,
}

/// A line in an instinct.
#[derive(Serialize)]
struct ManualCeiling {
    source: String,
    file: String,
    ceiling: Ceiling,
}

/// A setting that the environment decides.
#[derive(Serialize)]
struct OverriddenSetting {
    name: String,
    /// What holds.
    environment: String,
    /// What was written.
    file: String,
}

pub(super) async fn run(
    config: &StewardConfig,
    ask: &cli::BacktestArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let now = config.decision_rules();
    let against = match &ask.against {
        Some(file) => PolicyOverrides::read(file)?.apply_to(&now),
        None => now.clone(),
    };
    // What is written must hold when the environment of this one command is gone.
    let before = if ask.write { read_rules_file(&config::locate_config_file().0)? } else { now };
    let (look, told_at) = (super::super::open_read_only(config).await?, Utc::now());
    let budget = if ask.write { read_lasting_budget(config)? } else { config.reversal_budget };
    let bar = EvidenceBar::from_budget(budget);
    let wishes = if ask.recommended {
        let Some(wish) = find_recommendation(&look.index, (&before, budget), told_at).await? else {
            let why = "nothing is recommended: `steward trust report` says what is lacking";
            out.print_value(&json!({"refused": true, "lacking": [why], "written": null}), || why.into())?;
            return Ok(CommandExit::Refused);
        };
        vec![wish]
    } else {
        read_wishes(ask)?
    };
    let rules = wishes.iter().fold(before.clone(), |rules, wish| wish.apply_to(&rules));
    check_threshold_order(&rules)?;
    // What is written rests on the files themselves.
    let chain = if ask.write { verify_chain(&look.root) } else { read_known_chain(&look).await };
    let mut backtesting = BacktestPass::new(rules.clone(), against, told_at);
    let mut clearance = SettingsClearance::new(rules.clone(), before, told_at);
    let each = |case: &_| {
        backtesting.add_case(case);
        clearance.add_case(case);
    };
    look.index.for_each_case(told_at, each).await?;
    check_sources_cited(&clearance)?;
    let files = look.index.list_instinct_files().await?;
    let line =
        |(source, ceiling): (String, Ceiling)| ManualCeiling { file: instinct_path(&source, &files), source, ceiling };
    let mut told = BacktestRunReport {
        told_at,
        backtest: backtesting.into_report(),
        bar,
        lacking: list_missing_evidence(&clearance, &bar, &chain),
        by_hand: clearance.ceilings_to_set().into_iter().map(line).collect(),
        chain,
        refused: false,
        written: None,
        overruled: Vec::new(),
    };
    if ask.write && told.lacking.is_empty() {
        let head = chain::read_head(&look.root)?;
        told.written = written::write_settings(config, &told, (&wishes, &rules), &head)?;
        told.overruled = written::find_overridden_settings(&wishes, &rules);
    }
    told.refused = ask.write && !told.lacking.is_empty();
    out.print_value(&told, || text::describe_backtest(&told))?;
    Ok(match (told.refused, told.chain.faults.is_empty()) {
        (true, _) => CommandExit::Refused,
        (false, false) => CommandExit::Faults,
        (false, true) => CommandExit::Ok,
    })
}

/// The budget that holds here, and no more than the file's: what is written must stand when the environment is gone.
fn read_lasting_budget(config: &StewardConfig) -> anyhow::Result<f64> {
    Ok(config.reversal_budget.min(read_reversal_budget(&config::locate_config_file().0)?))
}

/// What the report recommends under the thresholds of these settings, if anything.
async fn find_recommendation(
    index: &Index,
    (rules, budget): (&ReplayRules, f64),
    now: DateTime<Utc>,
) -> anyhow::Result<Option<PolicyOverrides>> {
    let mut reporting = TrustReportPass::new(&rules.policy, now);
    index.for_each_case(now, |case| reporting.add_case(case)).await?;
    Ok(reporting.into_report(budget).choice.map(|choice| PolicyOverrides::from_choice(&choice, &rules.policy)))
}

/// A name that nobody goes by would be replayed as if nothing had been asked.
fn check_sources_cited(clearance: &SettingsClearance) -> anyhow::Result<()> {
    match clearance.uncited_sources().first() {
        None => Ok(()),
        Some(key) => bail!(
            "no proposal cites a source `{}`: `steward trust report --json | jq -r '.sources[].source'` names those that \
             are",
            escape_text(key)
        ),
    }
}

fn list_missing_evidence(clearance: &SettingsClearance, bar: &EvidenceBar, chain: &ChainVerification) -> Vec<String> {
    let mut lacking = clearance.list_shortfalls(bar);
    if clearance.is_bolder() {
        if chain.head_unknown && chain.records > 0 {
            lacking.insert(0, "the chain's head is lost, so records missing at the end cannot be told".into());
        }
        lacking.splice(0..0, describe_broken_chain(chain));
    }
    lacking
}

/// What is asked about: the file first, then the options over it.
fn read_wishes(ask: &cli::BacktestArgs) -> anyhow::Result<Vec<PolicyOverrides>> {
    let mut wishes = Vec::new();
    if let Some(file) = &ask.policy {
        wishes.push(PolicyOverrides::read(file)?);
    }
    let mut wish = PolicyOverrides {
        mode: ask.mode.as_deref().map(parse_mode).transpose()?,
        confidence: ask.confidence.map(|n| check_threshold("--confidence", n)).transpose()?,
        high_confidence: ask.high_confidence.map(|n| check_threshold("--high-confidence", n)).transpose()?,
        ..PolicyOverrides::default()
    };
    for pair in &ask.ceilings {
        wish.add_ceiling(pair)?;
    }
    wishes.push(wish);
    Ok(wishes)
}
