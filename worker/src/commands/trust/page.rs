//! Renders the trust report as one HTML page without scripts or external resources.
//!
//! The names of sources come from unknown senders. So the template escapes every value, and characters that hide or
//! reorder text are shown as escapes. The page's Content-Security-Policy forbids everything that it does not need: a
//! name that got through anyway could load nothing. The charts are the dashboard's ([`steward_server::charts`]).

use super::settings::RecommendedSettings;
use super::text::{
    describe_let_through, describe_missing_cases, describe_unanswered, format_chain_warning, format_interval,
    list_reader_notes, sort_supported_first,
};
use super::{TrustReportDemotion, TrustReportDocument, describe_broken_chain};
use crate::cli::output::escape_text;
use askama::Template;
use steward_domain::time::format_seconds;
use steward_domain::trust::report::advice::format_precision;
use steward_domain::trust::report::readiness::Readiness;
use steward_domain::trust::report::{DayTally, RecordSpan, TrustReport, TrustReportRow};
use steward_domain::trust::tally::CaseTally;
use steward_server::charts::{Chart, DayPart, DayStack, PlotArea, draw_days, draw_interval, draw_reliability};

/// The most rows of one table; the JSON has all rows.
const MAX_ROWS: usize = 40;
/// The most days that are drawn, the newest: narrower bars would be too thin on a phone.
const MAX_DAYS: usize = 60;
const RELIABILITY_AREA: PlotArea = PlotArea { left: 44.0, top: 12.0, width: 300.0, height: 300.0 };
const DAYS_AREA: PlotArea = PlotArea { left: 40.0, top: 10.0, width: 430.0, height: 150.0 };

#[derive(Template)]
#[template(path = "trust_report.html")]
struct ReportPage<'a> {
    told_at: String,
    warning: Option<String>,
    headline: String,
    /// `None` while no change was proposed.
    content: Option<ReportContent<'a>>,
}

/// The content for a vault in which changes were proposed.
struct ReportContent<'a> {
    report: &'a TrustReport,
    records: RecordSpan,
    from: String,
    to: String,
    precision: String,
    unanswered: String,
    advice: Vec<AdviceGroup>,
    why: Option<String>,
    settings: Option<ShownRows>,
    demotions: Vec<DemotionRow>,
    reliability: Chart,
    calibration: String,
    /// The precision that a recommendation needs, in percent.
    needed_precision: String,
    tables: Vec<PrecisionTable>,
    days: Chart,
    let_through: String,
    notes: Vec<String>,
}

/// The kinds that are equally far from support.
struct AdviceGroup {
    title: &'static str,
    /// Whether the group is folded, because nothing can be done about it yet.
    is_folded: bool,
    lines: Vec<AdviceLine>,
    more: usize,
}

impl AdviceGroup {
    fn count_all(&self) -> usize {
        self.lines.len() + self.more
    }
}

/// One class of one source.
struct AdviceLine {
    name: String,
    /// As in `198 of 200`.
    right: String,
    mode: &'static str,
    missing: Option<String>,
    /// What the support rests on, or what is missing for it.
    reason: String,
}

/// The first rows, and the number of the other ones.
struct ShownRows {
    shown: Vec<String>,
    more: usize,
}

struct DemotionRow {
    subject: String,
    mode: &'static str,
    since: String,
    record: Option<String>,
    command: String,
}

/// The precision of each class, source or band, as a chart and in numbers.
struct PrecisionTable {
    caption: &'static str,
    /// The heading of the names.
    names: &'static str,
    rows: Vec<PrecisionRow>,
    more: usize,
}

struct PrecisionRow {
    name: String,
    interval: Chart,
    precision: String,
    tally: CaseTally,
    coverage: Vec<String>,
    supported: &'static str,
}

/// Renders the page.
///
/// # Errors
/// The template cannot be filled.
pub(super) fn render_page(document: &TrustReportDocument) -> askama::Result<String> {
    let warning = describe_broken_chain(&document.chain).map(|why| escape_text(&format_chain_warning(&why)));
    let content = document.report.records.map(|records| gather_content(document, records));
    let (told_at, headline) = (format_seconds(document.told_at), escape_text(&document.headline));
    ReportPage { told_at, warning, headline, content }.render()
}

fn gather_content(document: &TrustReportDocument, records: RecordSpan) -> ReportContent<'_> {
    let (report, tally) = (&document.report, document.report.total.tally);
    ReportContent {
        report,
        records,
        from: format_seconds(records.from),
        to: format_seconds(records.to),
        precision: format_precision(tally),
        unanswered: describe_unanswered(tally),
        advice: group_advice(report),
        why: report.choice.as_ref().map(|choice| escape_text(&choice.why)),
        settings: document.settings.as_ref().map(list_settings),
        demotions: document.lowered.iter().map(describe_demotion).collect(),
        reliability: draw_reliability(RELIABILITY_AREA, &report.reliability.bins),
        calibration: describe_calibration(report),
        needed_precision: format!("{:.1}", report.bar.precision_at_least * 100.0),
        tables: build_precision_tables(report),
        days: draw_report_days(&report.days),
        let_through: describe_let_through(report),
        notes: list_reader_notes(report),
    }
}

/// The classes of each source, by how far they are from support.
fn group_advice(report: &TrustReport) -> Vec<AdviceGroup> {
    let groups = [("Ready", Readiness::Ready), ("Nearly", Readiness::Nearly), ("Too early", Readiness::TooEarly)];
    groups.map(|(title, readiness)| group_rows(report, title, readiness)).into()
}

fn group_rows(report: &TrustReport, title: &'static str, readiness: Readiness) -> AdviceGroup {
    let mut rows: Vec<&TrustReportRow> =
        report.class_sources.iter().filter(|row| row.nearest.readiness == readiness).collect();
    if readiness == Readiness::Nearly {
        rows.sort_by_key(|row| row.nearest.missing_cases);
    }
    AdviceGroup {
        title,
        is_folded: readiness == Readiness::TooEarly,
        lines: rows.iter().take(MAX_ROWS).map(|row| describe_advice(row)).collect(),
        more: rows.len().saturating_sub(MAX_ROWS),
    }
}

fn describe_advice(row: &TrustReportRow) -> AdviceLine {
    let (name, acted) = (name_class_source(row), row.acted_in(row.nearest.mode));
    let reason = row.summary.strip_prefix(&format!("{name} is not supported: ")).unwrap_or(&row.summary);
    AdviceLine {
        name: escape_text(&name),
        right: format!("{} of {}", acted.agreed, acted.decided_count()),
        mode: row.nearest.mode.as_str(),
        missing: describe_missing_cases(row),
        reason: escape_text(reason),
    }
}

/// As in `state_change from gmail`. It may hold the name of a source.
fn name_class_source(row: &TrustReportRow) -> String {
    let class = row.class.map(|class| class.as_str()).unwrap_or_default();
    format!("{class} from {}", row.name.as_deref().unwrap_or_default())
}

fn list_settings(settings: &RecommendedSettings) -> ShownRows {
    let variables = settings.variables.iter().map(|v| format!("{}={}   # now {}", v.name, v.value, v.now));
    let instincts = settings.instincts.iter().take(MAX_ROWS).map(|file| format!("ceiling: act   # in {file}"));
    ShownRows {
        shown: variables.chain(instincts).map(|line| escape_text(&line)).collect(),
        more: settings.instincts.len().saturating_sub(MAX_ROWS),
    }
}

fn describe_demotion(one: &TrustReportDemotion) -> DemotionRow {
    DemotionRow {
        subject: escape_text(&one.subject.describe(one.name.as_deref())),
        mode: one.mode.as_str(),
        since: format_seconds(one.since),
        record: one.record.as_ref().map(|record| escape_text(record.as_str())),
        command: escape_text(&one.command),
    }
}

fn describe_calibration(report: &TrustReport) -> String {
    let summary = &report.reliability;
    match (summary.expected_calibration_error, summary.brier_score) {
        (Some(error), Some(brier)) => format!(
            "Expected calibration error {error:.3}, Brier score {brier:.3}, {} decided cases. On the dashed line the \
             stated confidence is right; below it, the confidence is too high.",
            summary.decided
        ),
        (None, _) | (_, None) => "No case is decided yet.".into(),
    }
}

fn build_precision_tables(report: &TrustReport) -> Vec<PrecisionTable> {
    let class = |row: &TrustReportRow| row.class.map(|c| c.as_str().to_owned()).unwrap_or_default();
    let source = |row: &TrustReportRow| row.name.clone().unwrap_or_else(|| "all other sources".into());
    let band = |row: &TrustReportRow| row.band.map(|b| format!("{:.2} to {:.2}", b.from, b.to)).unwrap_or_default();
    let needed = report.bar.precision_at_least;
    let rows = |chosen: &mut dyn Iterator<Item = &TrustReportRow>, name: &dyn Fn(&TrustReportRow) -> String| {
        chosen.map(|row| build_precision_row(escape_text(&name(row)), row, needed)).collect()
    };
    let (sources, class_sources) = (&report.sources, sort_supported_first(report));
    vec![
        PrecisionTable { caption: "By class", names: "class", rows: rows(&mut report.classes.iter(), &class), more: 0 },
        PrecisionTable {
            caption: "By source; a case counts for every source that supported it",
            names: "source",
            rows: rows(&mut sources.iter().take(MAX_ROWS).chain(&report.other_sources), &source),
            more: sources.len().saturating_sub(MAX_ROWS),
        },
        PrecisionTable {
            caption: "By class and source",
            names: "class and source",
            rows: rows(&mut class_sources.iter().copied().take(MAX_ROWS), &name_class_source),
            more: class_sources.len().saturating_sub(MAX_ROWS),
        },
        PrecisionTable {
            caption: "By stated confidence",
            names: "confidence",
            rows: rows(&mut report.confidence_bands.iter(), &band),
            more: 0,
        },
    ]
}

fn build_precision_row(name: String, row: &TrustReportRow, needed: f64) -> PrecisionRow {
    PrecisionRow {
        interval: draw_interval(format!("Precision of {name}"), &row.tally.precision(), needed),
        name,
        precision: format_precision(row.tally),
        tally: row.tally,
        coverage: row.modes.iter().map(|mode| format_interval(&mode.coverage)).collect(),
        supported: row.supported.map_or("–", |mode| mode.as_str()),
    }
}

/// Draws how many changes were proposed on each day, and their outcomes.
fn draw_report_days(all: &[DayTally]) -> Chart {
    let days = &all[all.len().saturating_sub(MAX_DAYS)..];
    let (first, last) =
        (days.first().map(|d| d.day).unwrap_or_default(), days.last().map(|d| d.day).unwrap_or_default());
    let most = days.iter().map(|d| d.tally.total_count()).max().unwrap_or(0);
    let sum = |count: fn(&CaseTally) -> u64| days.iter().map(|d| count(&d.tally)).sum::<u64>();
    let summary = format!(
        "{first} to {last}: {} agreed, {} wrong, {} open; at most {most} a day",
        sum(|tally| tally.agreed),
        sum(|tally| tally.wrong),
        sum(|tally| tally.open)
    );
    let part = |class: &'static str, count| DayPart { class, count, name: class.to_owned() };
    let stack = |d: &DayTally| DayStack {
        day: d.day,
        parts: vec![part("agreed", d.tally.agreed), part("wrong", d.tally.wrong), part("open", d.tally.open)],
    };
    let stacks: Vec<DayStack> = days.iter().map(stack).collect();
    draw_days(DAYS_AREA, "Proposals a day", summary, first..=last, &stacks)
}

#[cfg(test)]
mod tests;
