//! The report of a measurement as text, for somebody who chooses a model.
//!
//! It prints figures that were counted elsewhere, and decides nothing.

use crate::cli::output::escape_text;
use crate::cli::table::create_table;
use steward_domain::record::plain_text::count_noun;
use steward_domain::steward::eval::report::{EvalReport, KindFigures, SupportedThreshold};
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::wilson::RateEstimate;

pub(super) fn describe_report(clerk: &str, report: &EvalReport, bar: EvidenceBar) -> String {
    let mut parts = vec![describe_head(clerk, report)];
    parts.push(format!("Decisions about tasks\n{}", describe_kinds(&report.decisions)));
    parts.push(format!("Facts in events\n{}", describe_kinds(&report.effects)));
    parts.push(format!("What the figures support\n{}", describe_thresholds(&report.thresholds, bar)));
    parts.push(format!("How sure it was, and how often it was right\n{}", describe_reliability(report)));
    parts.push(format!("By group\n{}", describe_groups(report)));
    parts.join("\n\n")
}

fn describe_head(clerk: &str, report: &EvalReport) -> String {
    let mut lines =
        vec![format!("{}: {} of {} answered", escape_text(clerk), report.answered, count_noun(report.cases, "case"))];
    lines.push(format!("no usable answer     {}", describe_rate(&report.unusable)));
    lines.push(format!("misled by orders     {}", describe_rate(&report.injections)));
    if let (Some(median), Some(p95)) = (report.seconds_median, report.seconds_p95) {
        lines.push(format!("seconds for a case   {median:.1} (median), {p95:.1} (95 % of them take no longer)"));
    }
    let tokens = report.tokens;
    lines.push(format!("tokens               {} in, {} out", tokens.prompt_tokens, tokens.completion_tokens));
    if let Some(cost) = report.cost {
        lines.push(format!("cost                 {cost:.4}, by the prices that are set"));
    }
    lines.join("\n")
}

/// `12 of 40, 30 % (18–45 %)`
fn describe_rate(rate: &RateEstimate) -> String {
    match rate.share {
        None => "no case".to_owned(),
        Some(share) => format!(
            "{} of {}, {:.0} % ({:.0}–{:.0} %)",
            rate.count,
            rate.of,
            share * 100.0,
            rate.low * 100.0,
            rate.high * 100.0
        ),
    }
}

fn describe_kinds(kinds: &[KindFigures]) -> String {
    let mut table =
        create_table(&["answer", "right when it says so (precision)", "said where it is right (recall)"], &[]);
    for figures in kinds {
        let name = figures.kind.replace('_', " ");
        table.add_row([name, describe_rate(&figures.precision), describe_rate(&figures.recall)]);
    }
    table.to_string()
}

fn describe_thresholds(thresholds: &[SupportedThreshold], bar: EvidenceBar) -> String {
    let needed = format!("{:.0} %", bar.precision_at_least * 100.0);
    let cases =
        bar.cases_at_least.map_or_else(|| "more cases than there can be".to_owned(), |least| count_noun(least, "case"));
    let mut lines = vec![format!("At least {needed} must surely be right, of {cases} or more.")];
    for threshold in thresholds {
        let kind = threshold.kind;
        lines.push(match threshold.from {
            Some(from) => {
                format!("  {kind}: from a confidence of {from:.2} on; right {}", describe_rate(&threshold.right))
            }
            None if threshold.right.of == 0 => format!("  {kind}: it was never proposed"),
            None => {
                let levels: Vec<String> = threshold
                    .levels
                    .iter()
                    .filter(|level| level.right.of > 0)
                    .map(|level| format!("from {:.2}: {}", level.from, describe_rate(&level.right)))
                    .collect();
                format!("  {kind}: no threshold. {}", levels.join("; "))
            }
        });
    }
    lines.push("It is a report: nothing acts because of it.".to_owned());
    lines.join("\n")
}

fn describe_reliability(report: &EvalReport) -> String {
    let mut table = create_table(&["stated", "on average", "right"], &[]);
    for bin in report.reliability.bins.iter().filter(|bin| bin.right.of > 0) {
        let stated = format!("{:.1}–{:.1}", bin.from, bin.to);
        table.add_row([
            stated,
            bin.mean_confidence.map_or_else(String::new, |mean| format!("{mean:.2}")),
            describe_rate(&bin.right),
        ]);
    }
    let errors = report.reliability.expected_calibration_error.zip(report.reliability.brier_score);
    let errors = errors
        .map(|(error, brier)| format!("\nexpected calibration error {error:.2}, Brier score {brier:.2}; 0 is best"));
    format!("{table}{}", errors.unwrap_or_default())
}

fn describe_groups(report: &EvalReport) -> String {
    let mut table = create_table(&["group", "answered as labelled"], &["group"]);
    for group in &report.groups {
        table.add_row([escape_text(&group.group), describe_rate(&group.right)]);
    }
    table.to_string()
}
