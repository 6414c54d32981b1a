//! Two pictures: what each day came to, and whether it is as right as it says.
//!
//! Drawn as SVG from counts, with the same in words for who does not see it and in numbers for who wants them. The second
//! folds over all cases of a month, so other pages load this one apart.

use super::PageError;
use super::PageFrame;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_vault::index::{ConfidenceBin, DailyActionCount};
use tokio::sync::Mutex;

/// Days that are drawn.
const DAYS: i64 = 30;
/// The drawing area of both, in their own units.
const LEFT: f64 = 40.0;
const TOP: f64 = 10.0;
const WIDTH: f64 = 570.0;
const HEIGHT: f64 = 180.0;

/// How long what was read is drawn again: 60 s.
const KEPT: Duration = Duration::from_secs(60);

/// What both are drawn from.
pub(crate) struct ChartCounts {
    days: Vec<DailyActionCount>,
    bins: Vec<ConfidenceBin>,
}

/// The last of them, and when it was read.
pub(crate) type ChartCountsCache = Mutex<Option<(Instant, Arc<ChartCounts>)>>;

struct ChartBar {
    class: &'static str,
    x: String,
    y: String,
    width: String,
    height: String,
    told: String,
}

#[derive(Template)]
#[template(path = "charts.html")]
struct ChartsPage {
    page: PageFrame,
    days: i64,
    daily: Vec<ChartBar>,
    daily_told: String,
    labels: Vec<(String, String)>,
    most: u64,
    calibration: Vec<ChartBar>,
    calibration_told: String,
    tenths: Vec<(String, String)>,
    bins: Vec<(String, u64, u64, u64)>,
}

pub(crate) async fn show_charts(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
) -> Result<Response, PageError> {
    let now = Utc::now();
    let first = (now - TimeDelta::days(DAYS - 1)).date_naive();
    let since = first.and_time(chrono::NaiveTime::MIN).and_utc();
    let drawn = read_chart_counts(&app, since, now).await?;
    let (counts, bins) = (&drawn.days, &drawn.bins);
    let (daily, most) = draw_daily_bars(first, counts);
    let sum = |words: &[&str]| counts.iter().filter(|c| words.contains(&c.what)).map(|c| c.count).sum::<u64>();
    let decided: u64 = bins.iter().map(|bin| bin.right + bin.wrong).sum();
    let right: u64 = bins.iter().map(|bin| bin.right).sum();
    Ok(render_page(&ChartsPage {
        page: PageFrame::load(&app, &caller, "fleet", &uri).await?,
        days: DAYS,
        daily_told: format!(
            "In {DAYS} days: {} changed or confirmed, {} asked, {} only said, {} undone or dismissed",
            sum(&["live", "confirmed"]),
            sum(&["pending"]),
            sum(&["shadow"]),
            sum(&UNDONE)
        ),
        labels: draw_day_labels(first),
        most,
        daily,
        calibration: draw_calibration_bars(bins),
        calibration_told: format!("Of {decided} proposals that are decided {right} were right"),
        tenths: (0..=10)
            .map(|n| (format_coordinate(LEFT + f64::from(n) * WIDTH / 10.0), format!("{:.1}", f64::from(n) / 10.0)))
            .collect(),
        bins: bins
            .iter()
            .map(|bin| (format!("{:.1} to {:.1}", bin.from, bin.to), bin.right, bin.wrong, bin.open))
            .collect(),
    }))
}

/// What is drawn, read at most once in a while however many ask: it takes a reader of the index for its whole fold.
async fn read_chart_counts(
    app: &SharedAppState,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Arc<ChartCounts>, PageError> {
    let mut kept = app.charts.lock().await;
    if let Some((read_at, counted)) = kept.as_ref()
        && read_at.elapsed() < KEPT
    {
        return Ok(Arc::clone(counted));
    }
    let days = app.index.actions_per_day(since).await?;
    let bins = app.index.confidence_vs_outcome(since, now).await?;
    let counted = Arc::new(ChartCounts { days, bins });
    *kept = Some((Instant::now(), Arc::clone(&counted)));
    Ok(counted)
}

const UNDONE: [&str; 3] = ["reversed", "dismissed", "opposed"];
/// What is stacked, from the ground up.
const STACK: [(&str, &[&str]); 4] =
    [("live", &["live", "confirmed"]), ("pending", &["pending"]), ("shadow", &["shadow"]), ("wrong", &UNDONE)];

/// The bars of each day, and the highest.
fn draw_daily_bars(first: NaiveDate, counts: &[DailyActionCount]) -> (Vec<ChartBar>, u64) {
    let mut days: BTreeMap<NaiveDate, [u64; STACK.len()]> = BTreeMap::new();
    for count in counts {
        if let Some(at) = STACK.iter().position(|(_, words)| words.contains(&count.what)) {
            days.entry(count.day).or_default()[at] += count.count;
        }
    }
    let most = days.values().map(|parts| parts.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    let width = WIDTH / DAYS as f64;
    let mut bars = Vec::new();
    for (day, parts) in days {
        let x = LEFT + (day - first).num_days() as f64 * width;
        let mut ground = TOP + HEIGHT;
        for ((class, words), count) in STACK.iter().zip(parts).filter(|(_, count)| *count > 0) {
            let height = HEIGHT * count as f64 / most as f64;
            ground -= height;
            let told = format!("{day}: {count} {}", words.join(" or "));
            bars.push(build_bar(class, (x + 1.0, ground, width - 2.0, height), told));
        }
    }
    (bars, most)
}

fn draw_calibration_bars(bins: &[ConfidenceBin]) -> Vec<ChartBar> {
    let width = WIDTH / 10.0;
    let decided = bins.iter().filter(|bin| bin.right + bin.wrong > 0);
    decided
        .map(|bin| {
            let all = bin.right + bin.wrong;
            let height = HEIGHT * bin.right as f64 / all as f64;
            let told = format!("{:.1} to {:.1}: {} of {all} were right", bin.from, bin.to, bin.right);
            build_bar(
                "live",
                (LEFT + bin.from * WIDTH + 4.0, TOP + HEIGHT - height, width - 8.0, height.max(1.0)),
                told,
            )
        })
        .collect()
}

fn build_bar(class: &'static str, (x, y, width, height): (f64, f64, f64, f64), told: String) -> ChartBar {
    ChartBar {
        class,
        x: format_coordinate(x),
        y: format_coordinate(y),
        width: format_coordinate(width),
        height: format_coordinate(height),
        told,
    }
}

/// Each seventh day by its name.
fn draw_day_labels(first: NaiveDate) -> Vec<(String, String)> {
    let width = WIDTH / DAYS as f64;
    let middle = |day: i64| format_coordinate(LEFT + (day as f64 + 0.5) * width);
    (0..DAYS).step_by(7).map(|day| (middle(day), (first + TimeDelta::days(day)).format("%b %-d").to_string())).collect()
}

fn format_coordinate(n: f64) -> String {
    format!("{n:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_stacked_to_its_count_and_the_highest_fills_the_height() {
        let first = NaiveDate::default();
        let count = |day: i64, what, count| DailyActionCount { day: first + TimeDelta::days(day), what, count };
        let (bars, most) = draw_daily_bars(
            first,
            &[
                count(0, "live", 2),
                count(0, "confirmed", 1),
                count(0, "shadow", 1),
                count(2, "reversed", 2),
                count(2, "tracked", 9),
            ],
        );
        assert_eq!(most, 4);
        let drawn: Vec<(&str, &str, &str)> = bars.iter().map(|b| (b.class, b.y.as_str(), b.height.as_str())).collect();
        assert_eq!(drawn, [("live", "55.0", "135.0"), ("shadow", "10.0", "45.0"), ("wrong", "100.0", "90.0")]);
    }

    #[test]
    fn a_bin_is_as_high_as_it_was_right() {
        let bin = |from: f64, right, wrong| ConfidenceBin { from, to: from + 0.1, right, wrong, open: 5 };
        let bars = draw_calibration_bars(&[bin(0.8, 3, 1), bin(0.9, 0, 0)]);
        assert_eq!(bars.len(), 1);
        assert_eq!((bars[0].height.as_str(), bars[0].x.as_str()), ("135.0", "500.0"));
    }
}
