//! `steward backtest`: replays recorded decisions under other settings and compares them with the current ones.
//!
//! It reads the index and the chain of audit records. It must not ask a clerk or write a file. It prints the replayed
//! settings as TOML for `steward.toml`. If they are bolder than that file and the cases do not support them
//! ([`steward_domain::trust::report::clearance`]), it prints the reasons instead. It never sets the ceiling of a
//! source: a person adds that line to the source's instinct.

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

/// The backtest, with the settings to paste or the evidence that they lack.
#[derive(Serialize)]
struct BacktestRunReport {
    told_at: DateTime<Utc>,
    /// The verification of the records that were replayed.
    chain: ChainVerification,
    #[serde(flatten)]
    backtest: BacktestReport,
    bar: EvidenceBar,
    /// Why these settings are refused; empty if they are supported, or no bolder than the file.
    lacking: Vec<String>,
    /// Ceilings of sources among the replayed settings, which only a person sets.
    by_hand: Vec<ManualCeiling>,
    /// The lines for `steward.toml`; `None` if no key of that file was given, or the settings are refused.
    toml: Option<String>,
    /// Settings of that TOML that the environment overrides with another value.
    overruled: Vec<OverriddenSetting>,
}

/// A ceiling that a person writes into a source's instinct.
#[derive(Serialize)]
struct ManualCeiling {
    source: String,
    file: String,
    ceiling: Ceiling,
}

/// A setting that the environment overrides.
#[derive(Serialize)]
struct OverriddenSetting {
    name: String,
    /// The effective value.
    environment: String,
    /// The value in the TOML.
    file: String,
}

pub(super) async fn run(
    config: &StewardConfig,
    args: &cli::BacktestArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let now = config.decision_rules();
    let against = match &args.against {
        Some(file) => PolicyOverrides::read(file)?.apply_to(&now),
        None => now.clone(),
    };
    let (vault, told_at) = (super::super::open_read_only(config).await?, Utc::now());
    let overrides = if args.recommended {
        let Some(recommended) = find_recommendation(&vault.index, &now, config.reversal_budget, told_at).await? else {
            let why = "nothing is recommended: `steward trust report` says which evidence is missing";
            out.print_value(&json!({"lacking": [why], "toml": null}), || why.into())?;
            return Ok(CommandExit::Refused);
        };
        vec![recommended]
    } else {
        read_overrides(args)?
    };
    let apply_overrides =
        |rules: &ReplayRules| overrides.iter().fold(rules.clone(), |rules, overrides| overrides.apply_to(&rules));
    let rules = apply_overrides(&now);
    check_threshold_order(&rules)?;
    // The TOML must still be right without the environment of this command, so it is judged against the file alone.
    let file = config.file.clone();
    let before =
        if overrides.iter().all(|one| *one == PolicyOverrides::default()) { now } else { read_rules_file(&file)? };
    let pasted = apply_overrides(&before);
    check_threshold_order(&pasted)?;
    let bar = EvidenceBar::from_budget(config.reversal_budget.min(read_reversal_budget(&file)?));
    let mut backtest_pass = BacktestPass::new(rules, against, told_at);
    let mut clearance = SettingsClearance::new(pasted.clone(), before, told_at);
    let add_case = |case: &_| {
        backtest_pass.add_case(case);
        clearance.add_case(case);
    };
    vault.index.trust().for_each_case(told_at, add_case).await?;
    check_sources_cited(&clearance)?;
    let files = vault.index.trust().list_instinct_files().await?;
    let manual_ceiling =
        |(source, ceiling): (String, Ceiling)| ManualCeiling { file: instinct_path(&source, &files), source, ceiling };
    // Bolder settings need the chain of the files themselves; the index could be wrong.
    let chain = if clearance.is_bolder() { verify_chain(&vault.root) } else { read_known_chain(&vault).await };
    let backtest = backtest_pass.into_report();
    let entries = list_overridden_entries(&overrides, &pasted);
    let toml = (!entries.is_empty()).then(|| render_toml(&entries, &backtest, told_at));
    let mut lacking = list_missing_evidence(&clearance, &bar, &chain);
    lacking.extend(refuse_file_in_vault(&file, toml.as_deref().unwrap_or_default(), config.vault_folder()?)?);
    let report = BacktestRunReport {
        told_at,
        backtest,
        bar,
        by_hand: clearance.ceilings_to_set().into_iter().map(manual_ceiling).collect(),
        chain,
        toml: toml.filter(|_| lacking.is_empty()),
        overruled: if lacking.is_empty() { find_overridden_settings(&entries) } else { Vec::new() },
        lacking,
    };
    out.print_value(&report, || text::describe_backtest(&report))?;
    Ok(match (report.lacking.is_empty(), report.chain.faults.is_empty()) {
        (false, _) => CommandExit::Refused,
        (true, false) => CommandExit::Faults,
        (true, true) => CommandExit::Ok,
    })
}

/// The settings as lines for `steward.toml`, with a comment that names the records behind them.
fn render_toml(entries: &[(&str, toml_edit::Value)], backtest: &BacktestReport, told_at: DateTime<Utc>) -> String {
    let records = backtest.records.map(|records| format!(", records {} to {}", records.first_seq, records.last_seq));
    let head = format!("# steward backtest at {}{}\n", format_seconds(told_at), records.unwrap_or_default());
    entries.iter().fold(head, |toml, (key, value)| format!("{toml}{key} = {value}\n"))
}

/// The settings to which the environment gives another value; the environment overrides the file.
fn find_overridden_settings(entries: &[(&str, toml_edit::Value)]) -> Vec<OverriddenSetting> {
    let differs = |(key, value): &(&str, toml_edit::Value)| {
        let environment = config::read_environment_value(key)?;
        let file = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let name = format!("STEWARD_{}", key.to_ascii_uppercase());
        (environment.trim() != file.trim()).then_some(OverriddenSetting { name, environment, file })
    };
    entries.iter().filter_map(differs).collect()
}

/// The recommendation of the report under the thresholds of these settings, if there is one.
async fn find_recommendation(
    index: &Index,
    rules: &ReplayRules,
    budget: f64,
    now: DateTime<Utc>,
) -> anyhow::Result<Option<PolicyOverrides>> {
    let mut pass = TrustReportPass::new(&rules.policy, now);
    index.trust().for_each_case(now, |case| pass.add_case(case)).await?;
    Ok(pass.into_report(budget).choice.map(|choice| PolicyOverrides::from_choice(&choice, &rules.policy)))
}

/// Refuses a source that no proposal cites: the replay would silently ignore its ceiling.
fn check_sources_cited(clearance: &SettingsClearance) -> anyhow::Result<()> {
    match clearance.uncited_sources().first() {
        None => Ok(()),
        Some(key) => bail!(
            "no proposal cites a source `{}`: `steward trust report --json | jq -r '.sources[].source'` lists \
             the sources that are cited",
            escape_text(key)
        ),
    }
}

fn list_missing_evidence(clearance: &SettingsClearance, bar: &EvidenceBar, chain: &ChainVerification) -> Vec<String> {
    let mut lacking = clearance.list_shortfalls(bar);
    if clearance.is_bolder() {
        if chain.head_unknown && chain.records > 0 {
            lacking.insert(0, "the head of the chain is lost, so missing records at the end would not be seen".into());
        }
        lacking.splice(0..0, describe_broken_chain(chain));
    }
    lacking
}

/// The settings to replay: those of the file first, then the options, which override them.
fn read_overrides(args: &cli::BacktestArgs) -> anyhow::Result<Vec<PolicyOverrides>> {
    let mut all = Vec::new();
    if let Some(file) = &args.policy {
        all.push(PolicyOverrides::read(file)?);
    }
    let mut options = PolicyOverrides {
        mode: args.mode.as_deref().map(parse_mode).transpose()?,
        confidence: args.confidence.map(|n| check_threshold("--confidence", n)).transpose()?,
        high_confidence: args.high_confidence.map(|n| check_threshold("--high-confidence", n)).transpose()?,
        ..PolicyOverrides::default()
    };
    for pair in &args.ceilings {
        options.add_ceiling(pair)?;
    }
    all.push(options);
    Ok(all)
}
