//! The report's pictures, as SVG that stands inside the page: no script, no font, no colour of its own.
//!
//! Colours and line widths are the page's classes, so that light and dark are one picture. Every picture has a title
//! and says in words what it shows. Numbers only come in from [`steward_domain::trust`]; a label goes through
//! [`super::page::escaped`].

use super::page::escape_html;
use std::fmt::Write;
use steward_domain::trust::report::DayTally;
use steward_domain::trust::report::reliability::ReliabilitySummary;
use steward_domain::trust::wilson::RateEstimate;

/// Days that are drawn, the newest: narrower bars could not be told apart on a phone.
const DAYS: usize = 60;

/// A picture of this size, with its title and what it shows in words.
fn render_svg((width, height): (f64, f64), (title, words): (&str, &str), body: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}. {1}\"><title>{0}</title><desc>{1}</desc>{body}</svg>",
        escape_html(title),
        escape_html(words)
    )
}

/// How often each tenth of stated confidence was right, with intervals, against the diagonal.
pub(super) fn plot_reliability(told: &ReliabilitySummary) -> String {
    let (left, top, side) = (44.0, 12.0, 300.0);
    let x = |v: f64| left + v * side;
    let y = |v: f64| top + (1.0 - v) * side;
    let mut body = String::new();
    for at in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = write!(
            body,
            "<path class=\"grid\" d=\"M{:.1} {:.1}H{:.1}M{:.1} {:.1}V{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{:.0}</text><text x=\"{:.1}\" y=\"{:.1}\" class=\"mid\">{:.0}</text>",
            x(0.0),
            y(at),
            x(1.0),
            x(at),
            y(0.0),
            y(1.0),
            left - 6.0,
            y(at) + 4.0,
            at * 100.0,
            x(at),
            top + side + 18.0,
            at * 100.0
        );
    }
    let _ = write!(body, "<path class=\"even\" d=\"M{} {}L{} {}\"/>", x(0.0), y(0.0), x(1.0), y(1.0));
    let most = told.bins.iter().map(|bin| bin.right.of).max().unwrap_or(1).max(1) as f64;
    let mut words = Vec::new();
    for bin in &told.bins {
        let (Some(mean), Some(share)) = (bin.mean_confidence, bin.right.share) else { continue };
        let radius = 3.0 + 6.0 * (bin.right.of as f64 / most).sqrt();
        let _ = write!(
            body,
            "<path class=\"range\" d=\"M{0:.1} {1:.1}V{2:.1}\"/><circle class=\"dot\" cx=\"{0:.1}\" cy=\"{3:.1}\" r=\"{radius:.1}\"/>",
            x(mean),
            y(bin.right.low),
            y(bin.right.high),
            y(share)
        );
        words.push(format!(
            "{:.0} to {:.0} %: {:.1} % of {} right",
            bin.from * 100.0,
            bin.to * 100.0,
            share * 100.0,
            bin.right.of
        ));
    }
    let _ = write!(
        body,
        "<text x=\"{}\" y=\"{}\" class=\"mid\">stated confidence, %</text><text class=\"mid\" transform=\"translate(11 {}) rotate(-90)\">were right, %</text>",
        x(0.5),
        top + side + 36.0,
        y(0.5)
    );
    render_svg((360.0, 356.0), ("Stated confidence and truth", &words.join("; ")), &body)
}

/// One rate with its interval, on a line from a half to 1 with a mark at what is asked for; what is less than a half
/// stands at its left end.
pub(super) fn plot_interval(what: &str, share: &RateEstimate, asked: f64) -> String {
    let x = |v: f64| 4.0 + (v.max(0.5) - 0.5) * 2.0 * 192.0;
    let mut body = format!("<path class=\"grid\" d=\"M4 10H196\"/><path class=\"asked\" d=\"M{:.1} 2V18\"/>", x(asked));
    let Some(rate) = share.share else {
        return render_svg((200.0, 20.0), (what, "nothing is decided"), &body);
    };
    let class = if share.low >= asked { "good" } else { "range" };
    let _ = write!(
        body,
        "<path class=\"{class}\" d=\"M{:.1} 10H{:.1}\"/><circle class=\"dot\" cx=\"{:.1}\" cy=\"10\" r=\"4\"/>",
        x(share.low),
        x(share.high),
        x(rate)
    );
    let words = format!("{:.1} %, from {:.1} to {:.1}", rate * 100.0, share.low * 100.0, share.high * 100.0);
    render_svg((200.0, 20.0), (what, &words), &body)
}

/// How many were proposed on each day and what became of them.
pub(super) fn plot_days(all: &[DayTally]) -> String {
    let days = &all[all.len().saturating_sub(DAYS)..];
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return String::new() };
    let (left, top, width, height) = (40.0, 10.0, 430.0, 150.0);
    let span = (last.day - first.day).num_days().clamp(0, 3_650) as f64 + 1.0;
    let most = days.iter().map(|d| d.tally.total_count()).max().unwrap_or(1).max(1);
    let bar = (width / span).min(24.0);
    let mut body = String::new();
    for part in [0, most] {
        let y = top + height * (1.0 - part as f64 / most as f64);
        let _ = write!(
            body,
            "<path class=\"grid\" d=\"M{left} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{part}</text>",
            left + width,
            left - 6.0,
            y + 4.0
        );
    }
    for day in days {
        let x = left + (day.day - first.day).num_days() as f64 * width / span;
        let mut y = top + height;
        for (class, count) in [("agreed", day.tally.agreed), ("wrong", day.tally.wrong), ("open", day.tally.open)] {
            let tall = height * count as f64 / most as f64;
            y -= tall;
            if count > 0 {
                let _ = write!(
                    body,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>",
                    (bar * 0.85).max(0.8)
                );
            }
        }
    }
    let _ = write!(
        body,
        "<text x=\"{left}\" y=\"{0}\">{1}</text><text x=\"{2}\" y=\"{0}\" class=\"end\">{3}</text>",
        top + height + 20.0,
        first.day,
        left + width,
        last.day
    );
    let sum = |of: fn(&DayTally) -> u64| days.iter().map(of).sum::<u64>();
    let words = format!(
        "{} to {}: {} agreed, {} were wrong, {} are open; at most {most} a day",
        first.day,
        last.day,
        sum(|d| d.tally.agreed),
        sum(|d| d.tally.wrong),
        sum(|d| d.tally.open)
    );
    render_svg((480.0, 188.0), ("Proposals a day", &words), &body)
}
