//! What `--write` puts into `steward.toml`: what was asked for, and as comments what it rests on.
//!
//! What the environment sets counts more than that file and is named, so that nobody believes a switch was turned that
//! was not; what it sets just now is not written, because it may be gone tomorrow.

use super::BacktestRunReport;
use super::OverriddenSetting;
use crate::config::rules::{PolicyOverrides, list_overridden_entries, set_toml_values};
use crate::config::{self, StewardConfig};
use anyhow::Context;
use std::path::PathBuf;
use steward_domain::time::format_seconds;
use steward_domain::trust::case::ReplayRules;
use steward_domain::trust::report::advice::format_precision;
use steward_vault::action::chain::ChainHead;

/// Writes what was asked for; `None` where nothing of it stands in that file.
pub(super) fn write_settings(
    config: &StewardConfig,
    told: &BacktestRunReport,
    (wishes, rules): (&[PolicyOverrides], &ReplayRules),
    head: &ChainHead,
) -> anyhow::Result<Option<PathBuf>> {
    let values = list_overridden_entries(wishes, rules);
    if values.is_empty() {
        return Ok(None);
    }
    let (path, _) = config::locate_config_file();
    let text = crate::commands::streams::read_config_file(&path)?;
    let text = set_toml_values((&path, &text), &values, &describe_evidence(told, head), config.vault_folder()?)
        .with_context(|| format!("failed to write into {}", path.display()))?;
    crate::commands::streams::write_config_file(&path, &text)
        .with_context(|| format!("failed to write {}", path.display()))?;
    Ok(Some(path))
}

/// What the settings rest on, for whoever reads the file later.
fn describe_evidence(told: &BacktestRunReport, head: &ChainHead) -> Vec<String> {
    let backtest = &told.backtest;
    let live = backtest.policy.live;
    let mut lines = vec![format!("chosen at {}", format_seconds(told.told_at))];
    if let Some(records) = backtest.records {
        lines.push(format!(
            "records {} to {} of the chain, {} to {}",
            records.first_seq,
            records.last_seq,
            format_seconds(records.from),
            format_seconds(records.to)
        ));
    }
    lines.push(format!("the chain's head was record {}, {}", head.seq, head.sha256.as_str()));
    if !told.chain.faults.is_empty() {
        lines.push("that chain was broken; these settings are no bolder than those before".into());
    }
    lines.push(format!("would have made {} of {} proposals live", live.total_count(), backtest.policy.coverage.of));
    lines.push(format!(
        "{} of {} decided ones agreed, precision {}; {} open, {} of them without an answer for 14 days",
        live.agreed,
        live.decided_count(),
        format_precision(live),
        live.open,
        live.unanswered
    ));
    lines.push(format!("asked for was a lower end of {:.1} %", told.bar.precision_at_least * 100.0));
    lines.extend(told.by_hand.iter().map(|one| format!("with `ceiling: {}` in {}", one.ceiling.as_str(), one.file)));
    lines
}

/// What of that the environment sets otherwise.
pub(super) fn find_overridden_settings(wishes: &[PolicyOverrides], rules: &ReplayRules) -> Vec<OverriddenSetting> {
    let file = |value: &toml_edit::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let differs = |(key, value): (&str, toml_edit::Value)| {
        let environment = config::read_environment_value(key)?;
        let file = file(&value);
        let name = format!("STEWARD_{}", key.to_ascii_uppercase());
        (environment.trim() != file.trim()).then_some(OverriddenSetting { name, environment, file })
    };
    list_overridden_entries(wishes, rules).into_iter().filter_map(differs).collect()
}
