//! The report for a terminal: 100 columns, the advice first and the tables behind it.
//!
//! Names of sources came from outside; every line that may hold one goes through [`crate::cli::output::shown`].

use super::TrustReportDocument;
use super::settings::RecommendedSettings;
use crate::cli::output::escape_text;
use std::fmt::Write;
use steward_domain::gates::mode::Mode;
use steward_domain::time::format_seconds;
use steward_domain::trust::report::advice::format_precision;
use steward_domain::trust::report::newest::NEWEST;
use steward_domain::trust::report::reliability::ReliabilitySummary;
use steward_domain::trust::report::{TrustReport, TrustReportRow};
use steward_domain::trust::tally::{CaseTally, STEPS};
use steward_domain::trust::wilson::RateEstimate;

/// Sources, and classes from sources, that a person is shown.
const SHOWN: usize = 12;
/// Columns for the name of a row.
const NAME: usize = 26;
/// Columns for a line below a title: 100 less what it is set in.
const ROOM: usize = 98;

pub(super) fn describe_trust_report(told: &TrustReportDocument) -> String {
    let report = &told.report;
    let mut out = describe_totals(told);
    if report.records.is_none() {
        return out;
    }
    write_section(&mut out, "What the cases support", &describe_supported(report));
    write_section(&mut out, "What to set", &describe_settings(report, told.settings.as_ref()));
    let lowered = |one: &super::TrustReportDemotion| {
        let (subject, since) = (escape_text(&one.subject.describe(one.name.as_deref())), format_seconds(one.since));
        let record = one.record.as_ref().map(|record| format!(" ({record})")).unwrap_or_default();
        format!(
            "{subject} went down to {} at {since}{record};\n  back up: {}",
            one.mode.as_str(),
            escape_text(&one.command)
        )
    };
    write_section(
        &mut out,
        "Lowered, because it was undone too often",
        &told.lowered.iter().map(lowered).collect::<Vec<_>>(),
    );
    write_section(&mut out, "By class, source and stated confidence", &render_count_table(report));
    write_section(&mut out, "What each mode would act upon, % of all cases", &render_coverage_table(report));
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
        // Whatever was composed wrongly must not forge a line.
        for part in line.split('\n') {
            let _ = writeln!(out, "{}", format!("  {}", escape_text(part)).trim_end());
        }
    }
}

fn describe_totals(told: &TrustReportDocument) -> String {
    let (report, tally) = (&told.report, told.report.total.tally);
    let beware = super::describe_broken_chain(&told.chain)
        .map(|why| wrap_text(&format_chain_warning(&why)) + "\n\n")
        .unwrap_or_default();
    let Some(records) = report.records else {
        return format!("{beware}no change has been proposed yet: there is nothing to report");
    };
    format!(
        "{beware}{} changes were proposed from {} to {} (records {} to {}).\nDecided: {}, of which {} agreed and {} were wrong; \
         precision {}.\nOpen: {}{}.\n",
        tally.total_count(),
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
    )
}

/// What is said on top where somebody changed the records.
pub(super) fn format_chain_warning(why: &str) -> String {
    format!(
        "Beware: {why}. What follows was told from those records all the same; nothing should be set because of it."
    )
}

/// How many of the open ones nobody answered in time.
pub(super) fn describe_unanswered(tally: CaseTally) -> String {
    match tally.unanswered {
        0 => String::new(),
        old => format!(", {old} of them without an answer for 14 days"),
    }
}

/// The classes from sources, the supported ones first.
pub(super) fn sort_supported_first(report: &TrustReport) -> Vec<&TrustReportRow> {
    let (yes, no): (Vec<&TrustReportRow>, Vec<&TrustReportRow>) =
        report.class_sources.iter().partition(|row| row.supported.is_some());
    [yes, no].concat()
}

fn describe_supported(report: &TrustReport) -> Vec<String> {
    let said = |row: &TrustReportRow| wrap_text(&row.says);
    let mut lines: Vec<String> = sort_supported_first(report).into_iter().take(SHOWN).map(said).collect();
    let more = report.class_sources.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("{more} more: `steward trust report --json`"));
    }
    lines
}

fn describe_settings(report: &TrustReport, settings: Option<&RecommendedSettings>) -> Vec<String> {
    let Some(settings) = settings else {
        let least = report.bar.cases_at_least.map_or_else(String::new, |n| format!(" with at least {n} decided cases"));
        return vec![wrap_text(&format!(
            "nothing yet: no class from a source{least} keeps the lower end of its precision at {:.1} % or above, with what \
             nobody answered for 14 days counted as wrong and without having got worse lately. \
             `shadow` is right until then; answers (undo, confirm, dismiss) and changes by hand are what tells",
            report.bar.precision_at_least * 100.0
        ))];
    };
    let why = report.choice.as_ref().map(|choice| wrap_text(&format!("Why this mode: {}.", choice.why)));
    let mut lines: Vec<String> = why.into_iter().collect();
    for variable in &settings.variables {
        let set = format!("{}={}", variable.name, variable.value);
        let now = if variable.value == variable.now { "as it is".into() } else { format!("now {}", variable.now) };
        lines.push(format!("{set:<56} {now}"));
    }
    for file in settings.instincts.iter().take(SHOWN) {
        lines.push(format!("{:<56} {file}", "ceiling: act"));
    }
    let more = settings.instincts.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("ceiling: act, in {more} more: `steward trust report --json | jq .settings`"));
    }
    let keys: Vec<String> = settings.variables.iter().map(|v| format!("{} = \"{}\"", v.key, v.value)).collect();
    lines.push(wrap_text(&format!("or in steward.toml: {}; a worker takes it up when it starts", keys.join(", "))));
    lines.push("Replayed, and printed as TOML, by: steward backtest --recommended".into());
    lines
}

fn render_count_table(report: &TrustReport) -> Vec<String> {
    let head = format!("{:<NAME$} {:>7} {:>7} {:>6} {:>6}  precision %", "", "cases", "agreed", "wrong", "open");
    render_grouped_table(report, head, format_count_row)
}

/// How much each mode would have acted upon.
fn render_coverage_table(report: &TrustReport) -> Vec<String> {
    let [high, live] = STEPS.map(Mode::as_str);
    let line = |name: &str, row: &TrustReportRow| {
        let covered = |at: usize| row.modes.get(at).map(|m| format_interval(&m.coverage)).unwrap_or_default();
        format!("{:<NAME$} {:<27} {}", truncate_name(&escape_text(name)), covered(0), covered(1))
    };
    render_grouped_table(report, format!("{:<NAME$} {high:<27} {live}", ""), line)
}

/// The rows by class, by source and by confidence, an empty line between them.
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
    let sources = report.sources.iter().take(SHOWN).map(|row| line(row.name.as_deref().unwrap_or_default(), row));
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
        "{:<NAME$} {:>7} {:>7} {:>6} {:>6}  {}",
        truncate_name(&escape_text(name)),
        tally.total_count(),
        tally.agreed,
        tally.wrong,
        tally.open,
        format_interval(&tally.precision())
    )
}

fn truncate_name(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 1).chain(['…']).collect()
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
        format!("{:<14} {:^30}  {:^30}", "", "held back", "held back by it alone"),
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
        lines = vec!["none was ever closed".into()];
    }
    lines.push(wrap_text(&describe_let_through(report)));
    lines
}

/// What went through every gate.
pub(super) fn describe_let_through(report: &TrustReport) -> String {
    let made = report.let_through;
    format!(
        "{} went through every gate and were made without asking: {} agreed, {} were wrong, {} are open.",
        made.total_count(),
        made.agreed,
        made.wrong,
        made.open
    )
}

fn describe_reliability(told: &ReliabilitySummary) -> Vec<String> {
    let (Some(error), Some(brier)) = (told.expected_calibration_error, told.brier_score) else {
        return vec!["nothing is decided yet".into()];
    };
    let mut lines = vec![format!("{:<12} {:>8} {:>8}  right %", "stated", "decided", "mean")];
    for bin in told.bins.iter().filter(|bin| bin.right.of > 0) {
        let mean = bin.mean_confidence.map(|mean| format!("{mean:.3}")).unwrap_or_default();
        let stated = format!("{:.1} to {:.1}", bin.from, bin.to);
        lines.push(format!("{stated:<12} {:>8} {mean:>8}  {}", bin.right.of, format_interval(&bin.right)));
    }
    lines.push(format!(
        "expected calibration error {error:.3}, Brier score {brier:.3}; open cases ({}) are in neither",
        told.open
    ));
    lines
}

fn wrap_reader_notes(report: &TrustReport) -> Vec<String> {
    list_reader_notes(report).iter().map(|note| wrap_text(note)).collect()
}

/// What a reader must know, for the terminal and the page alike.
pub(super) fn list_reader_notes(report: &TrustReport) -> Vec<String> {
    let least = report.bar.cases_at_least.map_or_else(|| "no number of".into(), |n| format!("at least {n}"));
    vec![
        "Agreed: confirmed, left alone for the 7 days in which it could be undone, or later done by hand. Wrong: undone, \
         dismissed, or something else was done by hand. Of an open case nobody knows."
            .into(),
        "Brackets are 95 % intervals (Wilson): about one row in twenty lies outside its own. Only decided cases are in \
         them, and people do not decide at random."
            .into(),
        "Would act upon: the share of all cases that each mode would act upon with the \
         thresholds that are set, if nothing but ceilings on sources and matters held them back. What a source may \
         change in a day is not in it."
            .into(),
        format!(
            "Supported: of what the mode would act upon, {least} decided cases, and the lower end of their precision at \
             {:.1} % or above (1 less STEWARD_REVERSAL_BUDGET), also when every proposal that got no answer in the 14 days \
             in which it was watched is counted as wrong: who agrees does it by hand and is seen, who thinks it wrong often does \
             nothing.",
            report.bar.precision_at_least * 100.0
        ),
        format!(
            "Worse lately: of the {NEWEST} newest known cases so many were wrong that even the upper end of their 99 % \
             interval lies below that. Of a source of which 2 % are wrong, one look in 1,700 says so without reason; of 3 %, \
             one in 370."
        ),
        "Held back by it alone: no other gate stood closed but mode, caller and brake, which judge no single case. A case \
         that met several closed gates counts for each of them on the left."
            .into(),
    ]
}

/// Broken into lines that fit, the later ones set in. An interval stays whole.
pub(super) fn wrap_text(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(open) if open.starts_with('[') && !open.contains(']') => {
                open.push(' ');
                open.push_str(word);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > ROOM {
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
