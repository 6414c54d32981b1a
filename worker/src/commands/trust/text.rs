//! The trust report for a terminal: 100 columns, the advice first and then the tables.
//!
//! Names of sources come from unknown senders, so every line that may hold one goes through [`escape_text`]. Nothing is
//! counted here: the report comes from [`steward_domain::trust::report`].

use super::TrustReportDocument;
use super::settings::RecommendedSettings;
use crate::cli::output::escape_text;
use crate::cli::style::TextStyle;
use std::fmt::Write;
use steward_domain::gates::mode::Mode;
use steward_domain::record::plain_text::count_noun;
use steward_domain::time::format_seconds;
use steward_domain::trust::report::advice::format_precision;
use steward_domain::trust::report::newest::NEWEST;
use steward_domain::trust::report::reliability::ReliabilitySummary;
use steward_domain::trust::report::{TrustReport, TrustReportRow};
use steward_domain::trust::tally::{ACTING_MODES, CaseTally};
use steward_domain::trust::wilson::RateEstimate;

/// The most sources, or classes of sources, that are printed.
const MAX_ROWS: usize = 12;
/// Columns for the name of a row.
const NAME_WIDTH: usize = 26;
/// Columns for a line below a title: 100 less the indentation.
const LINE_WIDTH: usize = 98;

pub(super) fn describe_trust_report(document: &TrustReportDocument) -> String {
    let report = &document.report;
    let mut out = describe_totals(document);
    if report.records.is_none() {
        return out;
    }
    write_section(&mut out, "What the cases support", &describe_supported(report));
    write_section(&mut out, "What to set", &describe_settings(report, document.settings.as_ref()));
    let describe_demotion = |demotion: &super::TrustReportDemotion| {
        let subject = escape_text(&demotion.subject.describe(demotion.name.as_deref()));
        let since = format_seconds(demotion.since);
        let record = demotion.record.as_ref().map(|record| format!(" ({record})")).unwrap_or_default();
        format!(
            "{subject} was demoted to {} at {since}{record};\n  restore it with: {}",
            demotion.mode.as_str(),
            escape_text(&demotion.command)
        )
    };
    write_section(
        &mut out,
        "Demoted because of too many undos",
        &document.lowered.iter().map(describe_demotion).collect::<Vec<_>>(),
    );
    write_section(&mut out, "By class, source and stated confidence", &render_count_table(report));
    write_section(&mut out, "What each mode would act on, % of all cases", &render_coverage_table(report));
    write_section(&mut out, "What the gates did", &describe_gates(report));
    write_section(&mut out, "Stated confidence and truth", &describe_reliability(&report.reliability));
    write_section(&mut out, "How to read it", &wrap_reader_notes(report));
    out.truncate(out.trim_end().len());
    out
}

pub(super) fn write_section(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}\n");
    for line in lines {
        // Escaped again here, so that a mistake in a caller cannot forge a line.
        for part in line.split('\n') {
            let _ = writeln!(out, "{}", format!("  {}", escape_text(part)).trim_end());
        }
    }
}

fn describe_totals(document: &TrustReportDocument) -> String {
    let (report, tally) = (&document.report, document.report.total.tally);
    let warning = super::describe_broken_chain(&document.chain)
        .map(|why| wrap_text(&format_chain_warning(&why)) + "\n\n")
        .unwrap_or_default();
    let headline = wrap_text(&escape_text(&document.headline));
    let Some(records) = report.records else { return format!("{warning}{headline}") };
    let style = TextStyle::current();
    style.wrap_lines(&format!(
        "{warning}{headline}\n\n{} proposed from {} to {} (records {} to {}).\n\
         Decided: {}; agreed: {}; wrong: {}; precision {}.\nOpen: {}{}.\n",
        count_changes(tally.total_count()),
        format_seconds(records.from),
        format_seconds(records.to),
        records.first_seq,
        records.last_seq,
        tally.decided_count(),
        tally.agreed,
        tally.wrong,
        format_precision(tally),
        tally.open,
        describe_unanswered(tally)
    ))
}

/// The warning at the top of a report if somebody changed the records.
pub(super) fn format_chain_warning(why: &str) -> String {
    format!("Warning: {why}. The numbers below still come from those records: do not set anything because of them.")
}

/// How many of the open cases nobody answered in time.
pub(super) fn describe_unanswered(tally: CaseTally) -> String {
    match tally.unanswered {
        0 => String::new(),
        old => format!(", {old} of them without an answer for 14 days"),
    }
}

/// How many further right cases in a row a kind lacks. `None` if it is supported.
pub(super) fn describe_missing_cases(row: &TrustReportRow) -> Option<String> {
    let mode = row.nearest.mode.as_str();
    match row.nearest.missing_cases {
        Some(0) => None,
        Some(1) => Some(format!("1 more right case is missing for {mode}")),
        Some(missing) => Some(format!("{missing} more right cases in a row are missing for {mode}")),
        None => Some("no number of right cases is enough".to_owned()),
    }
}

/// The classes of each source, the supported ones first.
pub(super) fn sort_supported_first(report: &TrustReport) -> Vec<&TrustReportRow> {
    let (supported, others): (Vec<&TrustReportRow>, Vec<&TrustReportRow>) =
        report.class_sources.iter().partition(|row| row.supported.is_some());
    [supported, others].concat()
}

fn describe_supported(report: &TrustReport) -> Vec<String> {
    let describe = |row: &TrustReportRow| match describe_missing_cases(row) {
        Some(missing) => wrap_text(&format!("{}; {missing}", row.summary)),
        None => wrap_text(&row.summary),
    };
    let mut lines: Vec<String> = sort_supported_first(report).into_iter().take(MAX_ROWS).map(describe).collect();
    let more = report.class_sources.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        lines.push(format!("{more} more: `steward trust report --json`"));
    }
    lines
}

fn describe_settings(report: &TrustReport, settings: Option<&RecommendedSettings>) -> Vec<String> {
    let Some(settings) = settings else {
        let least = report.bar.cases_at_least.map_or_else(String::new, |n| format!(" with at least {n} decided cases"));
        return vec![wrap_text(&format!(
            "nothing yet: no class from a source{least} has a precision whose lower bound is {:.1} % or more while \
             proposals without an answer for 14 days count as wrong, and has not got worse lately. Keep `shadow` until \
             then. The evidence comes from undo, confirm and dismiss, and from changes by hand.",
            report.bar.precision_at_least * 100.0
        ))];
    };
    let why = report.choice.as_ref().map(|choice| wrap_text(&format!("Why this mode: {}.", choice.why)));
    let mut lines: Vec<String> = why.into_iter().collect();
    for variable in &settings.variables {
        let set = format!("{}={}", variable.name, variable.value);
        let now = if variable.value == variable.now { "unchanged".into() } else { format!("now {}", variable.now) };
        lines.push(format!("{set:<56} {now}"));
    }
    for file in settings.instincts.iter().take(MAX_ROWS) {
        lines.push(format!("{:<56} {file}", "ceiling: act"));
    }
    let more = settings.instincts.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        lines.push(format!("ceiling: act, in {more} more files: `steward trust report --json | jq .settings`"));
    }
    let keys: Vec<String> = settings.variables.iter().map(|v| format!("{} = \"{}\"", v.key, v.value)).collect();
    lines.push(wrap_text(&format!("or in steward.toml: {}; a worker reads it when it starts", keys.join(", "))));
    lines.push("To replay these settings and print them as TOML: steward backtest --recommended".into());
    lines
}

fn render_count_table(report: &TrustReport) -> Vec<String> {
    let head = format!("{:<NAME_WIDTH$} {:>7} {:>7} {:>6} {:>6}  precision %", "", "cases", "agreed", "wrong", "open");
    render_grouped_table(report, head, format_count_row)
}

/// The share of cases on which each mode would have acted.
fn render_coverage_table(report: &TrustReport) -> Vec<String> {
    let [high, live] = ACTING_MODES.map(Mode::as_str);
    let line = |name: &str, row: &TrustReportRow| {
        let covered = |at: usize| row.modes.get(at).map(|m| format_interval(&m.coverage)).unwrap_or_default();
        format!("{:<NAME_WIDTH$} {:<27} {}", truncate_name(&escape_text(name)), covered(0), covered(1))
    };
    render_grouped_table(report, format!("{:<NAME_WIDTH$} {high:<27} {live}", ""), line)
}

/// The rows by class, by source and by confidence, with an empty line between the groups.
fn render_grouped_table(
    report: &TrustReport,
    head: String,
    line: impl Fn(&str, &TrustReportRow) -> String,
) -> Vec<String> {
    let mut lines = vec![head];
    let mut group = |rows: &mut dyn Iterator<Item = String>| {
        lines.extend(rows);
        lines.push(String::new());
    };
    group(&mut report.classes.iter().map(|row| line(row.class.map(|c| c.as_str()).unwrap_or_default(), row)));
    let others = report.other_sources.iter().map(|row| line("all other sources", row));
    let sources = report.sources.iter().take(MAX_ROWS).map(|row| line(row.name.as_deref().unwrap_or_default(), row));
    group(&mut sources.chain(others));
    let band =
        |row: &TrustReportRow| row.band.map(|b| format!("confidence {:.2} to {:.2}", b.from, b.to)).unwrap_or_default();
    group(&mut report.confidence_bands.iter().map(|row| line(&band(row), row)));
    lines.pop();
    lines
}

fn format_count_row(name: &str, row: &TrustReportRow) -> String {
    let tally = row.tally;
    format!(
        "{:<NAME_WIDTH$} {:>7} {:>7} {:>6} {:>6}  {}",
        truncate_name(&escape_text(name)),
        tally.total_count(),
        tally.agreed,
        tally.wrong,
        tally.open,
        format_interval(&tally.precision())
    )
}

fn truncate_name(name: &str) -> String {
    if name.chars().count() <= NAME_WIDTH {
        return name.to_owned();
    }
    name.chars().take(NAME_WIDTH - 1).chain(['…']).collect()
}

pub(super) fn format_percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), |share| format!("{:.1}", share * 100.0))
}

pub(super) fn format_interval(share: &RateEstimate) -> String {
    match share.share {
        None => "–".into(),
        Some(p) => format!("{:.1} [{:.1}, {:.1}]", p * 100.0, share.low * 100.0, share.high * 100.0),
    }
}

fn describe_gates(report: &TrustReport) -> Vec<String> {
    let mut lines = vec![
        format!("{:<14} {:^30}  {:^30}", "", "held", "held by this gate alone"),
        format!(
            "{:<14} {:>10} {:>9} {:>9}  {:>10} {:>9} {:>9}",
            "", "cases", "agreed", "wrong", "cases", "agreed", "wrong"
        ),
    ];
    lines.extend(report.gates.iter().map(|gate| {
        let (held, alone) = (gate.held, gate.held_alone);
        format!(
            "{:<14} {:>10} {:>9} {:>9}  {:>10} {:>9} {:>9}",
            gate.gate.as_str(),
            held.total_count(),
            held.agreed,
            held.wrong,
            alone.total_count(),
            alone.agreed,
            alone.wrong
        )
    }));
    if report.gates.is_empty() {
        lines = vec!["no gate was ever closed".into()];
    }
    lines.push(wrap_text(&describe_let_through(report)));
    lines
}

/// `1 change was`, and `2 changes were`.
fn count_changes(count: u64) -> String {
    format!("{} {}", count_noun(count, "change"), if count == 1 { "was" } else { "were" })
}

/// Describes the changes that passed every gate.
pub(super) fn describe_let_through(report: &TrustReport) -> String {
    let passed = report.let_through;
    format!(
        "{} made without a confirmation, because every gate was open: {} agreed, {} wrong, {} open.",
        count_changes(passed.total_count()),
        passed.agreed,
        passed.wrong,
        passed.open
    )
}

fn describe_reliability(summary: &ReliabilitySummary) -> Vec<String> {
    let (Some(error), Some(brier)) = (summary.expected_calibration_error, summary.brier_score) else {
        return vec!["no case is decided yet".into()];
    };
    let mut lines = vec![format!("{:<12} {:>8} {:>8}  right %", "stated", "decided", "mean")];
    for bin in summary.bins.iter().filter(|bin| bin.right.of > 0) {
        let mean = bin.mean_confidence.map(|mean| format!("{mean:.3}")).unwrap_or_default();
        let stated = format!("{:.1} to {:.1}", bin.from, bin.to);
        lines.push(format!("{stated:<12} {:>8} {mean:>8}  {}", bin.right.of, format_interval(&bin.right)));
    }
    lines.push(format!(
        "expected calibration error {error:.3}, Brier score {brier:.3}; open cases ({}) are in neither",
        summary.open
    ));
    lines
}

fn wrap_reader_notes(report: &TrustReport) -> Vec<String> {
    list_reader_notes(report).iter().map(|note| wrap_text(note)).collect()
}

/// Explanations for the reader, used by the terminal and the page alike.
pub(super) fn list_reader_notes(report: &TrustReport) -> Vec<String> {
    let enough = report
        .bar
        .cases_at_least
        .map_or_else(|| "no number of decided cases is enough".into(), |n| format!("at least {n} are decided"));
    vec![
        "Agreed: confirmed, left alone for the 7 days in which it could be undone, or later done by hand. Wrong: \
         undone, dismissed, or something else was done by hand. Open: neither is known yet."
            .into(),
        "Brackets hold 95 % intervals (Wilson): for about one row in twenty the true value is outside. They count \
         decided cases only, and people do not decide at random."
            .into(),
        "Would act on: the share of all cases on which each mode would act with the current thresholds, if nothing \
         but the ceilings of sources and matters held them. The daily budget of a source is not included."
            .into(),
        format!(
            "Supported: of the cases on which the mode would act, {enough}, and the lower bound of their precision \
             is {:.1} % or more (1 − STEWARD_REVERSAL_BUDGET). The same must hold if every proposal without an \
             answer within its 14 days counts as wrong: people who agree do it by hand and are seen, but people who \
             disagree often do nothing.",
            report.bar.precision_at_least * 100.0
        ),
        format!(
            "Worse lately: so many of the {NEWEST} newest known cases were wrong that even the upper bound of their \
             99 % interval is below that. For a source that is wrong in 2 % of cases, one check in 1,700 says \
             so by chance; for 3 %, one in 370."
        ),
        "Held by this gate alone: no other gate was closed except mode and caller, which judge no single case. A case with several closed gates counts for each of them on the left."
            .into(),
    ]
}

/// Breaks a text into lines that fit; the later lines are indented. An interval in brackets stays on one line.
pub(super) fn wrap_text(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            // The name of a source may hold a bracket that nothing closes.
            Some(open) if open.starts_with('[') && !open.contains(']') && word.contains(']') => {
                open.push(' ');
                open.push_str(word);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    let width = TextStyle::current().width.map_or(LINE_WIDTH, usize::from).min(LINE_WIDTH);
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push(format!("  {word}"));
        } else if let Some(line) = lines.last_mut() {
            if last > 0 {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.join("\n")
}
