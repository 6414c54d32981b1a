//! The backtest for a terminal: 100 columns.
//!
//! Names of sources came from outside; every line goes through [`section`], which shows them safely.

use super::{ByHand, Told};
use crate::commands::trust::broken;
use crate::commands::trust::text::{hundred, interval, section, wrapped};
use crate::config::rules::entries;
use std::fmt::Write;
use steward_domain::time::format_seconds;
use steward_domain::trust::advice::format_precision;
use steward_domain::trust::backtest::{BacktestDifference, BacktestOutcome};
use steward_domain::trust::risk::RiskCurve;

/// Reasons against writing that a person is shown.
const SHOWN: usize = 12;

pub(super) fn describe(told: &Told) -> String {
    let backtest = &told.backtest;
    let Some(records) = backtest.records else {
        let mut out = String::from("no change has been proposed yet: there is nothing to replay");
        section(&mut out, "Not written", &not_written(told));
        section(&mut out, "Written", &written(told));
        return out.trim_end().into();
    };
    let mut out = broken(&told.chain).map(|why| wrapped(&format!("Beware: {why}.")) + "\n\n").unwrap_or_default();
    let _ = write!(
        out,
        "{} recorded proposals from {} to {} (records {} to {}),\nreplayed; no clerk was asked.\n",
        backtest.policy.coverage.of,
        format_seconds(records.from),
        format_seconds(records.to),
        records.first_seq,
        records.last_seq
    );
    section(&mut out, "The settings asked about", &outcome(&backtest.policy));
    if backtest.against.rules == backtest.policy.rules {
        section(
            &mut out,
            "Compared with",
            &["the same settings: say others with --mode, --ceiling or --policy".into()],
        );
    } else {
        section(&mut out, "Compared with", &outcome(&backtest.against));
        section(&mut out, "Newly live", &difference(&backtest.newly_live));
        section(&mut out, "No longer live", &difference(&backtest.no_longer_live));
    }
    section(&mut out, "Risk and coverage by least confidence", &curve(&backtest.risk_coverage));
    let title = if told.refused { "Not written" } else { "Not reason enough to write it" };
    section(&mut out, title, &not_written(told));
    section(&mut out, "To set by hand, because a source's ceiling is yours alone", &by_hand(told));
    section(&mut out, "Written", &written(told));
    out.truncate(out.trim_end().len());
    out
}

fn outcome(outcome: &BacktestOutcome) -> Vec<String> {
    let rules = &outcome.rules;
    let sources = rules.sources.iter().map(|(key, to)| format!("source {key} = {}", to.as_str()));
    let set = entries(rules).into_iter().map(|(key, value)| format!("{key} = {value}")).chain(sources);
    let set = set.collect::<Vec<_>>().join(", ");
    let live = outcome.live;
    vec![
        wrapped(&set),
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
        format!("coverage {} %", interval(&outcome.coverage)),
    ]
}

fn difference(difference: &BacktestDifference) -> Vec<String> {
    let all = difference.all;
    let mut lines =
        vec![format!("{} in all: {} agreed, {} wrong, {} open", all.total_count(), all.agreed, all.wrong, all.open)];
    lines.extend(difference.classes.iter().map(|of| {
        let (class, tally) = (of.class.as_str(), of.tally);
        format!("  {class}: {} agreed, {} wrong, {} open", tally.agreed, tally.wrong, tally.open)
    }));
    lines
}

fn curve(curve: &RiskCurve) -> Vec<String> {
    let Some(area) = curve.area else {
        return vec!["nothing that is decided could be live".into()];
    };
    let mut lines = vec![format!("{:>10} {:>9} {:>11} {:>7}  risk %", "threshold", "decided", "coverage %", "wrong")];
    let mut last = None;
    for point in &curve.points {
        // Thresholds that let through no more than the one before say nothing new.
        if point.coverage.count == 0 || last == Some(point.coverage.count) {
            continue;
        }
        last = Some(point.coverage.count);
        lines.push(format!(
            "{:>10.2} {:>9} {:>11} {:>7}  {}",
            point.threshold,
            point.coverage.count,
            hundred(point.coverage.share),
            point.risk.count,
            interval(&point.risk)
        ));
    }
    lines.push(format!("area under the curve {area:.4} (0 is best), of {} decided cases", curve.decided));
    lines
}

fn not_written(told: &Told) -> Vec<String> {
    let mut lines: Vec<String> = told.lacking.iter().take(SHOWN).map(|why| wrapped(why)).collect();
    let more = told.lacking.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("{more} more: --json"));
    }
    lines
}

fn by_hand(told: &Told) -> Vec<String> {
    let line = |one: &ByHand| format!("{:<56} {}", format!("ceiling: {}", one.ceiling.as_str()), one.file);
    if told.refused { Vec::new() } else { told.by_hand.iter().map(line).collect() }
}

fn written(told: &Told) -> Vec<String> {
    let Some(file) = &told.written else { return Vec::new() };
    let mut lines =
        vec![wrapped(&format!("{} has the settings; a worker takes them up when it starts", file.display()))];
    lines.extend(told.overruled.iter().map(|one| {
        wrapped(&format!(
            "{} is set to `{}` in the environment, which counts more than `{}` in the file: change it there",
            one.name, one.environment, one.file
        ))
    }));
    lines
}
