//! `steward backtest`: recorded decisions under other settings, compared with the present ones.
//!
//! Reads the index and the chain of records, asks no clerk and writes nothing. It prints the settings that were asked
//! about as TOML for `steward.toml`, unless they are bolder than that file and the cases do not support them
//! ([`steward_domain::trust::report::clearance`]): then it prints the reasons instead. A ceiling of a source is a line that a
//! human adds to its instinct.

mod text;

use super::describe_broken_chain;
use super::read_known_chain;
use super::settings::instinct_path;
use super::verify_chain;
use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::rules::{
    PolicyOverrides, check_threshold, check_threshold_order, list_overridden_entries, parse_mode, read_reversal_budget,
    read_rules_file, refuse_file_in_vault,
};
use crate::config::{self, StewardConfig};
use anyhow::bail;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use steward_domain::gates::mode::Ceiling;
use steward_domain::time::format_seconds;
use steward_domain::trust::backtest::{BacktestPass, BacktestReport};
use steward_domain::trust::case::ReplayRules;
use steward_domain::trust::report::TrustReportPass;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::report::clearance::SettingsClearance;
use steward_vault::action::chain::ChainVerification;
use steward_vault::index::Index;

/// The backtest, and the settings to paste or what they lack.
#[derive(Serialize)]
struct BacktestRunReport {
    told_at: DateTime<Utc>,
    /// Whether the records are whole that were replayed.
    chain: ChainVerification,
    #[serde(flatten)]
    backtest: BacktestReport,
    bar: EvidenceBar,
    /// Why these settings are refused; empty if they are supported, or no bolder than the file's.
    lacking: Vec<String>,
    /// Ceilings of sources that were asked about and that only a human sets.
    by_hand: Vec<ManualCeiling>,
    /// What to paste into `steward.toml`; `None` if nothing of that file was asked about, or it is refused.
    toml: Option<String>,
    /// Settings of that TOML that the environment sets to another value.
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
    /// The value that holds.
    environment: String,
    /// The value in the TOML.
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
    let (look, told_at) = (super::super::open_read_only(config).await?, Utc::now());
    let wishes = if ask.recommended {
        let Some(wish) = find_recommendation(&look.index, &now, config.reversal_budget, told_at).await? else {
            let why = "nothing is recommended: `steward trust report` says what is lacking";
            out.print_value(&json!({"lacking": [why], "toml": null}), || why.into())?;
            return Ok(CommandExit::Refused);
        };
        vec![wish]
    } else {
        read_wishes(ask)?
    };
    let apply_wishes = |rules: &ReplayRules| wishes.iter().fold(rules.clone(), |rules, wish| wish.apply_to(&rules));
    let rules = apply_wishes(&now);
    check_threshold_order(&rules)?;
    // The TOML must hold when the environment of this one command is gone, so it is judged by the file alone.
    let file = config::locate_config_file().0;
    let before =
        if wishes.iter().all(|wish| *wish == PolicyOverrides::default()) { now } else { read_rules_file(&file)? };
    let pasted = apply_wishes(&before);
    check_threshold_order(&pasted)?;
    let bar = EvidenceBar::from_budget(config.reversal_budget.min(read_reversal_budget(&file)?));
    let mut backtesting = BacktestPass::new(rules, against, told_at);
    let mut clearance = SettingsClearance::new(pasted.clone(), before, told_at);
    let each = |case: &_| {
        backtesting.add_case(case);
        clearance.add_case(case);
    };
    look.index.for_each_case(told_at, each).await?;
    check_sources_cited(&clearance)?;
    let files = look.index.list_instinct_files().await?;
    let line =
        |(source, ceiling): (String, Ceiling)| ManualCeiling { file: instinct_path(&source, &files), source, ceiling };
    // Bolder settings rest on the files themselves.
    let chain = if clearance.is_bolder() { verify_chain(&look.root) } else { read_known_chain(&look).await };
    let backtest = backtesting.into_report();
    let entries = list_overridden_entries(&wishes, &pasted);
    let toml = (!entries.is_empty()).then(|| render_toml(&entries, &backtest, told_at));
    let mut lacking = list_missing_evidence(&clearance, &bar, &chain);
    lacking.extend(refuse_file_in_vault(&file, toml.as_deref().unwrap_or_default(), config.vault_folder()?)?);
    let told = BacktestRunReport {
        told_at,
        backtest,
        bar,
        by_hand: clearance.ceilings_to_set().into_iter().map(line).collect(),
        chain,
        toml: toml.filter(|_| lacking.is_empty()),
        overruled: if lacking.is_empty() { find_overridden_settings(&entries) } else { Vec::new() },
        lacking,
    };
    out.print_value(&told, || text::describe_backtest(&told))?;
    Ok(match (told.lacking.is_empty(), told.chain.faults.is_empty()) {
        (false, _) => CommandExit::Refused,
        (true, false) => CommandExit::Faults,
        (true, true) => CommandExit::Ok,
    })
}

/// The settings as lines for `steward.toml`, with a comment that says what they rest on.
fn render_toml(entries: &[(&str, toml_edit::Value)], backtest: &BacktestReport, told_at: DateTime<Utc>) -> String {
    let records = backtest.records.map(|records| format!(", records {} to {}", records.first_seq, records.last_seq));
    let head = format!("# steward backtest at {}{}\n", format_seconds(told_at), records.unwrap_or_default());
    entries.iter().fold(head, |toml, (key, value)| format!("{toml}{key} = {value}\n"))
}

/// The settings that the environment sets to another value; it counts more than the file.
fn find_overridden_settings(entries: &[(&str, toml_edit::Value)]) -> Vec<OverriddenSetting> {
    let differs = |(key, value): &(&str, toml_edit::Value)| {
        let environment = config::read_environment_value(key)?;
        let file = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = format!("STEWARD_{}", key.to_ascii_uppercase());
        (environment.trim() != file.trim()).then_some(OverriddenSetting { name, environment, file })
    };
    entries.iter().filter_map(differs).collect()
}

/// What the report recommends under the thresholds of these settings, if anything.
async fn find_recommendation(
    index: &Index,
    rules: &ReplayRules,
    budget: f64,
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
