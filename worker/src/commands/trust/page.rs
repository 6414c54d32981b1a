//! The report as one page that stands by itself: no script, nothing from elsewhere, light and dark.
//!
//! Every text goes through [`escaped`] on its way into the page, ours too: a source's name came from outside. The
//! page forbids itself whatever it does not need, so that a name that got through all the same could load nothing.

use super::TrustReportDocument;
use super::describe_broken_chain;
use super::plot;
use super::text::{
    describe_let_through, describe_unanswered, format_chain_warning, format_interval, list_reader_notes,
    sort_supported_first,
};
use std::fmt::Write;
use steward_domain::time::format_seconds;
use steward_domain::trust::report::advice::format_precision;
use steward_domain::trust::report::{GateReportRow, TrustReport, TrustReportRow};

/// Rows that one table holds; the JSON has them all.
const SHOWN: usize = 40;
const STYLE: &str = include_str!("page.css");

/// Text as HTML shows it, in an element or in a quoted attribute.
pub(super) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

pub(super) fn render_page(told: &TrustReportDocument) -> String {
    let report = &told.report;
    let beware = describe_broken_chain(&told.chain)
        .map(|why| format!("<p class=\"beware\" role=\"alert\">{}</p>", escape_html(&format_chain_warning(&why))));
    let mut body = format!("<h1>How right the steward is</h1>{}{}", beware.unwrap_or_default(), render_summary(told));
    if report.records.is_some() {
        body.push_str(&render_supported(report));
        body.push_str(&render_settings(told));
        body.push_str(&render_demotions(told));
        let _ = write!(
            body,
            "<h2>Stated confidence and truth</h2><figure class=\"square\">{}<figcaption class=\"soft\">{}</figcaption></figure>",
            plot::plot_reliability(&report.reliability),
            escape_html(&describe_calibration(report))
        );
        body.push_str(&render_precision_tables(report));
        let _ = write!(
            body,
            "<h2>Day by day</h2><figure class=\"flat\">{}<figcaption class=\"soft\"><span class=\"key agreed\"></span>agreed\
             <span class=\"key wrong\"></span>wrong<span class=\"key open\"></span>open</figcaption></figure>",
            plot::plot_days(&report.days)
        );
        body.push_str(&render_gate_table(report));
        let notes: String =
            list_reader_notes(report).iter().map(|note| format!("<li>{}</li>", escape_html(note))).collect();
        let _ = write!(body, "<h2>How to read it</h2><ul>{notes}</ul>");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Steward: trust report of {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>{body}</main>\n</body>\n</html>\n",
        format_seconds(told.told_at)
    )
}

fn render_summary(told: &TrustReportDocument) -> String {
    let (report, tally) = (&told.report, told.report.total.tally);
    let Some(records) = report.records else {
        return "<p>No change has been proposed yet: there is nothing to report.</p>".into();
    };
    format!(
        "<p class=\"soft\">As of {}: {} changes proposed from {} to {}, records {} to {}.</p>\
         <p>Decided: {}, of which {} agreed and {} were wrong; precision <strong>{}</strong>. Open: {}{}.</p>",
        format_seconds(told.told_at),
        tally.total_count(),
        format_seconds(records.from),
        format_seconds(records.to),
        records.first_seq,
        records.last_seq,
        tally.decided_count(),
        tally.agreed,
        tally.wrong,
        escape_html(&format_precision(tally)),
        tally.open,
        describe_unanswered(tally)
    )
}

fn render_supported(report: &TrustReport) -> String {
    let rows = sort_supported_first(report);
    let says: String =
        rows.iter().take(SHOWN).map(|row| format!("<li><bdi>{}</bdi></li>", escape_html(&row.says))).collect();
    format!("<h2>What the cases support</h2><ul>{says}</ul>{}", render_remainder(rows.len()))
}

fn render_remainder(rows: usize) -> String {
    match rows.saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("<p class=\"soft\">{more} more: <code>steward trust report --json</code></p>"),
    }
}

fn render_settings(told: &TrustReportDocument) -> String {
    let Some(settings) = &told.settings else {
        return "<h2>What to set</h2><p>Nothing yet: <code>shadow</code> is right until a class from a source is supported. \
                Answers (undo, confirm, dismiss) and changes by hand are what tells.</p>"
            .into();
    };
    let mut lines: String =
        settings.variables.iter().map(|v| format!("{}={}   # now {}\n", v.name, v.value, v.now)).collect();
    for file in settings.instincts.iter().take(SHOWN) {
        let _ = writeln!(lines, "ceiling: act   # in {file}");
    }
    let why = told.report.choice.as_ref().map(|choice| format!("<p>Why this mode: {}.</p>", escape_html(&choice.why)));
    format!(
        "<h2>What to set</h2>{}<p>In the environment, or in <code>steward.toml</code> in lower case and without \
         <code>STEWARD_</code>; <code>ceiling</code> in the frontmatter of the instinct. A worker takes it up when it \
         starts. <code>steward backtest --recommended</code> replays it.</p><pre>{}</pre>{}",
        why.unwrap_or_default(),
        escape_html_lines(&lines),
        render_remainder(settings.instincts.len())
    )
}

fn escape_html_lines(text: &str) -> String {
    text.lines().map(escape_html).collect::<Vec<_>>().join("\n")
}

fn render_demotions(told: &TrustReportDocument) -> String {
    if told.lowered.is_empty() {
        return String::new();
    }
    let item = |one: &super::TrustReportDemotion| {
        let record =
            one.record.as_ref().map(|r| format!(", see <code>{}</code>", escape_html(r.as_str()))).unwrap_or_default();
        format!(
            "<li><strong><bdi>{}</bdi></strong> went down to <code>{}</code> at {}{record}. Back up: <code>{}</code></li>",
            escape_html(&one.subject.describe(one.name.as_deref())),
            one.mode.as_str(),
            format_seconds(one.since),
            escape_html(&one.command)
        )
    };
    let items: String = told.lowered.iter().map(item).collect();
    format!("<h2>Lowered, because it was undone too often</h2><ul>{items}</ul>")
}

fn describe_calibration(report: &TrustReport) -> String {
    let told = &report.reliability;
    match (told.expected_calibration_error, told.brier_score) {
        (Some(error), Some(brier)) => format!(
            "Expected calibration error {error:.3}, Brier score {brier:.3}, {} decided cases. On the dashed line confidence \
             means what it says; below it, it claims too much.",
            told.decided
        ),
        (None, _) | (_, None) => "Nothing is decided yet.".into(),
    }
}

/// The precision of each class, source and band, drawn and in figures.
fn render_precision_tables(report: &TrustReport) -> String {
    let mut out = String::from("<h2>Precision</h2>");
    let class = |row: &TrustReportRow| row.class.map(|c| c.as_str().to_owned()).unwrap_or_default();
    out.push_str(&render_table("By class", &report.classes, class, report));
    let name = |row: &TrustReportRow| row.name.clone().unwrap_or_else(|| "all other sources".into());
    let sources: Vec<TrustReportRow> =
        report.sources.iter().take(SHOWN).chain(&report.other_sources).cloned().collect();
    out.push_str(&render_table("By source; a case counts for every source that spoke for it", &sources, name, report));
    out.push_str(&render_remainder(report.sources.len()));
    let both = |row: &TrustReportRow| {
        format!(
            "{} from {}",
            row.class.map(|c| c.as_str()).unwrap_or_default(),
            row.name.as_deref().unwrap_or_default()
        )
    };
    let class_sources: Vec<TrustReportRow> = sort_supported_first(report).into_iter().take(SHOWN).cloned().collect();
    out.push_str(&render_table("By class and source", &class_sources, both, report));
    out.push_str(&render_remainder(report.class_sources.len()));
    let band = |row: &TrustReportRow| row.band.map(|b| format!("{:.2} to {:.2}", b.from, b.to)).unwrap_or_default();
    out.push_str(&render_table("By stated confidence", &report.confidence_bands, band, report));
    out
}

fn render_table(
    caption: &str,
    rows: &[TrustReportRow],
    name: impl Fn(&TrustReportRow) -> String,
    report: &TrustReport,
) -> String {
    let asked = report.bar.precision_at_least;
    let mut body = String::new();
    for row in rows {
        let (name, tally, precision) = (name(row), row.tally, row.tally.precision());
        let _ = write!(
            body,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"plot\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
            escape_html(&name),
            plot::plot_interval(&format!("Precision of {name}"), &precision, asked),
            escape_html(&format_precision(tally)),
            tally.total_count(),
            tally.agreed,
            tally.wrong,
            tally.open
        );
        for mode in &row.modes {
            let _ = write!(body, "<td>{}</td>", escape_html(&format_interval(&mode.coverage)));
        }
        let _ = write!(body, "<td>{}</td></tr>", row.supported.map_or("–", |mode| mode.as_str()));
    }
    format!(
        "<div class=\"wide\"><table><caption><span>{}; the mark is at {:.1} %</span></caption><thead><tr><th scope=\"col\"></th>\
         <th scope=\"col\">50 to 100 %</th><th scope=\"col\">precision</th><th scope=\"col\">cases</th><th scope=\"col\">agreed</th>\
         <th scope=\"col\">wrong</th><th scope=\"col\">open</th><th scope=\"col\">high acts %</th><th scope=\"col\">live acts %</th>\
         <th scope=\"col\">supported</th></tr></thead><tbody>{body}</tbody></table></div>",
        escape_html(caption),
        asked * 100.0
    )
}

fn render_gate_table(report: &TrustReport) -> String {
    let row = |gate: &GateReportRow| {
        let mut cells = String::new();
        for tally in [gate.held, gate.held_alone] {
            let _ = write!(cells, "<td>{}</td><td>{}</td><td>{}</td>", tally.total_count(), tally.agreed, tally.wrong);
        }
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>", gate.gate.as_str())
    };
    let body: String = report.gates.iter().map(row).collect();
    format!(
        "<h2>What the gates did</h2><div class=\"wide\"><table><caption><span>Cases that met a gate closed, and those of them \
         that it held back alone</span></caption><thead><tr><th scope=\"col\"></th><th scope=\"col\">held back</th>\
         <th scope=\"col\">of them agreed</th><th scope=\"col\">of them wrong</th><th scope=\"col\">by it alone</th>\
         <th scope=\"col\">of them agreed</th><th scope=\"col\">of them wrong</th></tr></thead>\
         <tbody>{body}</tbody></table></div><p>{}</p>",
        escape_html(&describe_let_through(report))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_text() {
        let name = "<script>alert(1)</script>\" onload='x' `&amp;\u{1b}]0;";
        let safe = escape_html(name);
        assert!(!safe.contains(['<', '>', '"', '\'', '`', '\u{1b}']), "{safe}");
        assert_eq!(escape_html("a & b"), "a &amp; b");
    }
}
