//! Prints the backtest for a terminal of 100 columns.
//!
//! Names of sources come from unknown senders, so every line that may hold one goes through [`write_section`], which
//! escapes them. Nothing is counted here: the numbers come from [`steward_domain::trust::backtest`].

use super::{BacktestRunReport, ManualCeiling, OverriddenSetting};
use crate::commands::trust::describe_broken_chain;
use crate::commands::trust::text::{format_interval, format_percent, wrap_text, write_section};
use crate::config::rules::list_policy_entries;
use std::fmt::Write;
use steward_domain::time::format_seconds;
use steward_domain::trust::backtest::{BacktestDifference, BacktestOutcome};
use steward_domain::trust::report::advice::format_precision;
use steward_domain::trust::report::risk::RiskCurve;

/// The most reasons against the settings that are printed.
const MAX_REASONS: usize = 12;
const REFUSED: &str = "Refused: there is nothing to paste, because";
const PASTE: &str = "To paste into steward.toml, above the first [table]; replace lines with the same keys";
const OVERRIDDEN: &str = "The environment overrides the file; change these settings there";

pub(super) fn describe_backtest(report: &BacktestRunReport) -> String {
    let backtest = &report.backtest;
    let Some(records) = backtest.records else {
        let mut out = String::from("no change has been proposed yet: there is nothing to replay");
        write_section(&mut out, REFUSED, &describe_missing_evidence(report));
        write_section(&mut out, PASTE, &describe_toml(report));
        write_section(&mut out, OVERRIDDEN, &describe_overridden_settings(report));
        return out.trim_end().into();
    };
    let mut out = describe_broken_chain(&report.chain)
        .map(|why| wrap_text(&format!("Warning: {why}.")) + "\n\n")
        .unwrap_or_default();
    let _ = write!(
        out,
        "Replayed {} proposals from {} to {} (records {} to {}).\nNo clerk was asked.\n",
        backtest.policy.coverage.of,
        format_seconds(records.from),
        format_seconds(records.to),
        records.first_seq,
        records.last_seq
    );
    write_section(&mut out, "The replayed settings", &describe_outcome(&backtest.policy));
    if backtest.against.rules == backtest.policy.rules {
        write_section(
            &mut out,
            "Compared with",
            &["the same settings: name others with --mode, --ceiling or --policy".into()],
        );
    } else {
        write_section(&mut out, "Compared with", &describe_outcome(&backtest.against));
        write_section(&mut out, "Newly live", &describe_difference(&backtest.newly_live));
        write_section(&mut out, "No longer live", &describe_difference(&backtest.no_longer_live));
    }
    write_section(&mut out, "Risk and coverage by confidence threshold", &describe_curve(&backtest.risk_coverage));
    write_section(&mut out, REFUSED, &describe_missing_evidence(report));
    write_section(
        &mut out,
        "To set by hand, because only a person sets the ceiling of a source",
        &describe_manual_ceilings(report),
    );
    write_section(&mut out, PASTE, &describe_toml(report));
    write_section(&mut out, OVERRIDDEN, &describe_overridden_settings(report));
    out.truncate(out.trim_end().len());
    out
}

fn describe_outcome(outcome: &BacktestOutcome) -> Vec<String> {
    let rules = &outcome.rules;
    let sources = rules.sources.iter().map(|(key, to)| format!("source {key} = {}", to.as_str()));
    let entries = list_policy_entries(rules).into_iter().map(|(key, value)| format!("{key} = {value}")).chain(sources);
    let entries = entries.collect::<Vec<_>>().join(", ");
    let live = outcome.live;
    vec![
        wrap_text(&entries),
        format!(
            "live {}, pending {}, shadow {}",
            live.total_count(),
            outcome.pending.total_count(),
            outcome.shadow.total_count()
        ),
        format!(
            "of the live ones {} agreed, {} were wrong, {} open ({} for 14 days): precision {}",
            live.agreed,
            live.wrong,
            live.open,
            live.unanswered,
            format_precision(live)
        ),
        format!("coverage {} %", format_interval(&outcome.coverage)),
    ]
}

fn describe_difference(difference: &BacktestDifference) -> Vec<String> {
    let all = difference.all;
    let mut lines =
        vec![format!("{} in all: {} agreed, {} wrong, {} open", all.total_count(), all.agreed, all.wrong, all.open)];
    lines.extend(difference.classes.iter().map(|row| {
        let (class, tally) = (row.class.as_str(), row.tally);
        format!("  {class}: {} agreed, {} wrong, {} open", tally.agreed, tally.wrong, tally.open)
    }));
    lines
}

fn describe_curve(curve: &RiskCurve) -> Vec<String> {
    let Some(area) = curve.area else {
        return vec!["no decided case could be live".into()];
    };
    let mut lines = vec![format!("{:>10} {:>9} {:>11} {:>7}  risk %", "threshold", "decided", "coverage %", "wrong")];
    let mut last = None;
    for point in &curve.points {
        // A threshold that lets through as many cases as the one before adds nothing.
        if point.coverage.count == 0 || last == Some(point.coverage.count) {
            continue;
        }
        last = Some(point.coverage.count);
        lines.push(format!(
            "{:>10.2} {:>9} {:>11} {:>7}  {}",
            point.threshold,
            point.coverage.count,
            format_percent(point.coverage.share),
            point.risk.count,
            format_interval(&point.risk)
        ));
    }
    lines.push(format!("area under the curve {area:.4} (0 is best), from {} decided cases", curve.decided));
    lines
}

fn describe_missing_evidence(report: &BacktestRunReport) -> Vec<String> {
    let mut lines: Vec<String> = report.lacking.iter().take(MAX_REASONS).map(|why| wrap_text(why)).collect();
    let more = report.lacking.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        lines.push(format!("{more} more: add --json to see all"));
    }
    lines
}

fn describe_manual_ceilings(report: &BacktestRunReport) -> Vec<String> {
    let line = |one: &ManualCeiling| format!("{:<56} {}", format!("ceiling: {}", one.ceiling.as_str()), one.file);
    if report.lacking.is_empty() { report.by_hand.iter().map(line).collect() } else { Vec::new() }
}

fn describe_toml(report: &BacktestRunReport) -> Vec<String> {
    let Some(toml) = &report.toml else { return Vec::new() };
    let mut lines: Vec<String> = toml.lines().map(str::to_owned).collect();
    lines.push("# a worker reads this file only when it starts".into());
    lines
}

fn describe_overridden_settings(report: &BacktestRunReport) -> Vec<String> {
    let line = |one: &OverriddenSetting| format!("{} is set to `{}`, not `{}`", one.name, one.environment, one.file);
    report.overruled.iter().map(|one| wrap_text(&line(one))).collect()
}
