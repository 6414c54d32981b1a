//! Charts as inline SVG, for the dashboard and for the trust report.
//!
//! A chart has no script, font or colour of its own. Pages style its classes, so one chart serves the light and the dark
//! theme. Each chart has a title and a description in words. The template escapes every text.

use askama::Template;
use askama::filters::HtmlSafe;
use chrono::{NaiveDate, TimeDelta};
use std::ops::RangeInclusive;
use steward_domain::trust::report::reliability::ReliabilityBin;
use steward_domain::trust::wilson::RateEstimate;

/// The minimum distance of two labels, in days.
const LABEL_DAYS: i64 = 7;
/// The approximate number of labels below an axis of days.
const LABELS: i64 = 5;
/// The maximum width of a bar, in SVG units.
const BAR_LIMIT: f64 = 20.0;

/// A chart. Templates insert it unescaped.
#[derive(Template)]
#[template(path = "chart.html")]
pub struct Chart {
    width: f64,
    height: f64,
    title: String,
    summary: String,
    marks: Vec<ChartMark>,
}

impl HtmlSafe for Chart {}

/// One shape of a chart. All positions and sizes are in SVG units.
enum ChartMark {
    Line {
        class: &'static str,
        path: String,
    },
    Bar {
        class: &'static str,
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        summary: String,
    },
    Dot {
        x: f64,
        y: f64,
        radius: f64,
    },
    Label {
        anchor: &'static str,
        x: f64,
        y: f64,
        caption: String,
    },
    /// Rotated text beside the vertical axis.
    AxisTitle {
        x: f64,
        y: f64,
        caption: &'static str,
    },
}

/// The drawing area between the labels, in SVG units.
#[derive(Clone, Copy, Debug)]
pub struct PlotArea {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl PlotArea {
    fn x(&self, share: f64) -> f64 {
        self.left + share * self.width
    }

    fn y(&self, share: f64) -> f64 {
        self.top + (1.0 - share) * self.height
    }

    /// The whole chart: the drawing area, with room for labels below and on the right.
    fn enclose(&self, below: f64, title: &str, summary: String, marks: Vec<ChartMark>) -> Chart {
        let (width, height) = (self.left + self.width + 16.0, self.top + self.height + below);
        Chart { width, height, title: title.to_owned(), summary, marks }
    }
}

/// The stacked bar of one day, from the bottom up.
#[derive(Clone, Debug)]
pub struct DayStack {
    pub day: NaiveDate,
    pub parts: Vec<DayPart>,
}

/// A part of a day's bar.
#[derive(Clone, Debug)]
pub struct DayPart {
    /// The CSS class that gives the colour.
    pub class: &'static str,
    pub count: u64,
    /// The tooltip: what is counted.
    pub name: String,
}

/// Draws the counts of each day as stacked bars.
#[must_use]
pub fn draw_days(
    area: PlotArea,
    title: &str,
    summary: String,
    drawn: RangeInclusive<NaiveDate>,
    days: &[DayStack],
) -> Chart {
    let (first, span) = (*drawn.start(), (*drawn.end() - *drawn.start()).num_days().max(0) + 1);
    let total = |day: &DayStack| day.parts.iter().map(|part| part.count).sum::<u64>();
    let most = days.iter().map(total).max().unwrap_or(0).max(1);
    let slot = area.width / span as f64;
    let width = (slot * 0.85).clamp(0.8, BAR_LIMIT);
    let mut marks = Vec::new();
    for count in [0, most] {
        let y = area.y(count as f64 / most as f64);
        marks.push(ChartMark::Line { class: "grid", path: format!("M{} {y:.1}H{:.1}", area.left, area.x(1.0)) });
        marks.push(draw_label("end", area.left - 6.0, y + 4.0, count.to_string()));
    }
    for DayStack { day, parts } in days {
        let x = area.left + ((*day - first).num_days() as f64 + 0.5) * slot - width / 2.0;
        let mut ground = area.y(0.0);
        for DayPart { class, count, name } in parts.iter().filter(|part| part.count > 0) {
            let height = area.height * *count as f64 / most as f64;
            ground -= height;
            let summary = format!("{day}: {count} {name}");
            marks.push(ChartMark::Bar { class, x, y: ground, width, height, summary });
        }
    }
    let step = usize::try_from((span / LABELS + 1).max(LABEL_DAYS)).unwrap_or(usize::MAX);
    for day in (0..span).step_by(step) {
        let text = (first + TimeDelta::days(day)).to_string();
        marks.push(draw_label("middle", area.left + (day as f64 + 0.5) * slot, area.y(0.0) + 20.0, text));
    }
    area.enclose(28.0, title, summary, marks)
}

/// Draws how often each tenth of stated confidence was right, with intervals, against the diagonal.
#[must_use]
pub fn draw_reliability(area: PlotArea, bins: &[ReliabilityBin]) -> Chart {
    let mut marks = Vec::new();
    let (left, right, bottom, top) = (area.x(0.0), area.x(1.0), area.y(0.0), area.y(1.0));
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (x, y) = (area.x(share), area.y(share));
        let path = format!("M{left:.1} {y:.1}H{right:.1}M{x:.1} {bottom:.1}V{top:.1}");
        marks.push(ChartMark::Line { class: "grid", path });
        marks.push(draw_label("end", left - 6.0, y + 4.0, format!("{:.0}", share * 100.0)));
        marks.push(draw_label("middle", x, bottom + 18.0, format!("{:.0}", share * 100.0)));
    }
    marks.push(ChartMark::Line { class: "even", path: format!("M{left:.1} {bottom:.1}L{right:.1} {top:.1}") });
    let most = bins.iter().map(|bin| bin.right.of).max().unwrap_or(1).max(1) as f64;
    let mut summary = Vec::new();
    for bin in bins {
        let (Some(mean), Some(share)) = (bin.mean_confidence, bin.right.share) else { continue };
        let (x, low, high) = (area.x(mean), area.y(bin.right.low), area.y(bin.right.high));
        marks.push(ChartMark::Line { class: "range", path: format!("M{x:.1} {low:.1}V{high:.1}") });
        marks.push(ChartMark::Dot { x, y: area.y(share), radius: 3.0 + 6.0 * (bin.right.of as f64 / most).sqrt() });
        let (from, to, of) = (bin.from * 100.0, bin.to * 100.0, bin.right.of);
        summary.push(format!("{from:.0} to {to:.0} %: {:.1} % of {of} right", share * 100.0));
    }
    marks.push(draw_label("middle", area.x(0.5), bottom + 36.0, "stated confidence, %".into()));
    marks.push(ChartMark::AxisTitle { x: 11.0, y: area.y(0.5), caption: "were right, %" });
    area.enclose(44.0, "Stated confidence and truth", summary.join("; "), marks)
}

/// Draws one rate with its interval on a line from 0.5 to 1, with a mark at the required rate. A lower value is drawn
/// at the left end.
#[must_use]
pub fn draw_interval(title: String, rate: &RateEstimate, asked: f64) -> Chart {
    let x = |share: f64| 4.0 + (share.max(0.5) - 0.5) * 2.0 * 192.0;
    let line = |class, path| ChartMark::Line { class, path };
    let mut marks = vec![line("grid", "M4 10H196".into()), line("asked", format!("M{:.1} 2V18", x(asked)))];
    let mut summary = "nothing is decided".to_owned();
    if let Some(share) = rate.share {
        let class = if rate.low >= asked { "good" } else { "range" };
        marks.push(line(class, format!("M{:.1} 10H{:.1}", x(rate.low), x(rate.high))));
        marks.push(ChartMark::Dot { x: x(share), y: 10.0, radius: 4.0 });
        summary = format!("{:.1} %, from {:.1} to {:.1}", share * 100.0, rate.low * 100.0, rate.high * 100.0);
    }
    Chart { width: 200.0, height: 20.0, title, summary, marks }
}

fn draw_label(anchor: &'static str, x: f64, y: f64, caption: String) -> ChartMark {
    ChartMark::Label { anchor, x, y, caption }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: PlotArea = PlotArea { left: 40.0, top: 10.0, width: 570.0, height: 180.0 };

    #[test]
    fn a_day_is_stacked_to_its_count_and_the_highest_fills_the_height() {
        let part = |class, count| DayPart { class, count, name: class.to_owned() };
        let first = NaiveDate::default();
        let days = [
            DayStack { day: first, parts: vec![part("live", 3), part("pending", 0), part("shadow", 1)] },
            DayStack { day: first + TimeDelta::days(2), parts: vec![part("wrong", 2)] },
        ];
        let chart = draw_days(AREA, "Days", String::new(), first..=first + TimeDelta::days(29), &days);
        let bars = chart.marks.iter().filter_map(|mark| match mark {
            ChartMark::Bar { class, y, height, summary, .. } => Some((*class, *y, *height, summary.as_str())),
            _ => None,
        });
        let expected = [
            ("live", 55.0, 135.0, "1970-01-01: 3 live"),
            ("shadow", 10.0, 45.0, "1970-01-01: 1 shadow"),
            ("wrong", 100.0, 90.0, "1970-01-03: 2 wrong"),
        ];
        assert_eq!(bars.collect::<Vec<_>>(), expected);
        let labels =
            chart.marks.iter().filter(|mark| matches!(mark, ChartMark::Label { anchor: "middle", .. })).count();
        assert_eq!(labels, 5, "each seventh day");
        let nothing = draw_days(AREA, "Days", String::new(), first..=first, &[]);
        assert!(!nothing.to_string().contains("NaN"), "{nothing}");
    }

    #[test]
    fn a_bin_stands_where_it_was_right_and_an_empty_one_nowhere() {
        let bin = |mean_confidence, right, of| ReliabilityBin {
            from: 0.8,
            to: 0.9,
            mean_confidence,
            right: RateEstimate::new(right, of),
        };
        let chart = draw_reliability(AREA, &[bin(Some(0.85), 3, 4), bin(None, 0, 0)]);
        let dots: Vec<_> = chart.marks.iter().filter(|mark| matches!(mark, ChartMark::Dot { .. })).collect();
        assert!(matches!(dots[..], [ChartMark::Dot { x: 524.5, y: 55.0, radius: 9.0 }]));
        assert_eq!(chart.summary, "80 to 90 %: 75.0 % of 4 right");
    }

    #[test]
    fn a_hostile_name_stays_text() {
        let name = "</title><script>alert(1)</script>\" onload='x'";
        let svg = draw_interval(name.to_owned(), &RateEstimate::new(9, 10), 0.95).to_string();
        assert!(!svg.contains("<script") && !svg.contains("\" onload"), "{svg}");
        assert_eq!((svg.matches("<svg ").count(), svg.matches("</svg>").count()), (1, 1));
    }
}
