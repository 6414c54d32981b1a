//! Two charts: the decisions of each day, and how often a stated confidence was right.
//!
//! [`crate::charts`] draws them from counts, and a table gives the same numbers. The second chart reads all cases of a
//! month, so other pages load this page separately.

use super::PageError;
use super::PageFrame;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::charts::{Chart, DayPart, DayStack, PlotArea, draw_days, draw_reliability};
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
use steward_domain::trust::report::reliability::ReliabilityBin;
use steward_domain::trust::wilson::RateEstimate;
use steward_vault::index::{ConfidenceBin, DailyActionCount};
use tokio::sync::Mutex;

/// The number of days in the charts.
const DAYS: i64 = 30;
/// The drawing area of both charts.
const AREA: PlotArea = PlotArea { left: 40.0, top: 10.0, width: 570.0, height: 180.0 };

/// How long the counts are cached: 60 s.
const KEPT: Duration = Duration::from_secs(60);

/// The counts of both charts.
pub(crate) struct ChartCounts {
    days: Vec<DailyActionCount>,
    bins: Vec<ConfidenceBin>,
}

/// The cached counts, and when they were read.
pub(crate) type ChartCountsCache = Mutex<Option<(Instant, Arc<ChartCounts>)>>;

#[derive(Template)]
#[template(path = "charts.html")]
struct ChartsPage {
    page: PageFrame,
    days: i64,
    daily: Chart,
    calibration: Chart,
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
    let sum = |words: &[&str]| counts.iter().filter(|c| words.contains(&c.what)).map(|c| c.count).sum::<u64>();
    let summary = format!(
        "In {DAYS} days: {} changed or confirmed, {} pending, {} shadow, {} undone or dismissed",
        sum(&["live", "confirmed"]),
        sum(&["pending"]),
        sum(&["shadow"]),
        sum(&UNDONE)
    );
    Ok(render_page(&ChartsPage {
        page: PageFrame::load(&app, &caller, "fleet", &uri).await?,
        days: DAYS,
        daily: draw_days(AREA, "Decisions per day", summary, first..=now.date_naive(), &stack_days(counts)),
        calibration: draw_reliability(AREA, &bins.iter().map(estimate_bin).collect::<Vec<_>>()),
        bins: bins
            .iter()
            .map(|bin| (format!("{:.1} to {:.1}", bin.from, bin.to), bin.right, bin.wrong, bin.open))
            .collect(),
    }))
}

/// Returns the cached counts, and reads them again if they are old. Concurrent requests share one read, because it keeps
/// a connection of the index busy.
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
    let days = app.views.actions().actions_per_day(since).await?;
    let bins = app.views.actions().confidence_vs_outcome(since, now).await?;
    let counted = Arc::new(ChartCounts { days, bins });
    *kept = Some((Instant::now(), Arc::clone(&counted)));
    Ok(counted)
}

const UNDONE: [&str; 3] = ["reversed", "dismissed", "opposed"];
/// The stacked parts of a bar, from the bottom up.
const STACK: [(&str, &[&str]); 4] =
    [("live", &["live", "confirmed"]), ("pending", &["pending"]), ("shadow", &["shadow"]), ("wrong", &UNDONE)];

/// Builds the bar of each day.
fn stack_days(counts: &[DailyActionCount]) -> Vec<DayStack> {
    let mut days: BTreeMap<NaiveDate, [u64; STACK.len()]> = BTreeMap::new();
    for count in counts {
        if let Some(at) = STACK.iter().position(|(_, words)| words.contains(&count.what)) {
            days.entry(count.day).or_default()[at] += count.count;
        }
    }
    let parts = |counts: [u64; STACK.len()]| {
        let parts = STACK.iter().zip(counts);
        parts.map(|((class, words), count)| DayPart { class, count, name: words.join(" or ") }).collect()
    };
    days.into_iter().map(|(day, counts)| DayStack { day, parts: parts(counts) }).collect()
}

/// The share of right proposals in a bin. Their stated confidence is about the middle of the bin.
fn estimate_bin(bin: &ConfidenceBin) -> ReliabilityBin {
    let right = RateEstimate::new(bin.right, bin.right + bin.wrong);
    let mean_confidence = right.share.map(|_| (bin.from + bin.to) / 2.0);
    ReliabilityBin { from: bin.from, to: bin.to, mean_confidence, right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_holds_what_changed_what_is_shadow_and_what_was_undone() {
        let count =
            |day: i64, what, count| DailyActionCount { day: NaiveDate::default() + TimeDelta::days(day), what, count };
        let days = stack_days(&[
            count(0, "live", 2),
            count(0, "confirmed", 1),
            count(0, "shadow", 1),
            count(2, "reversed", 2),
            count(2, "tracked", 9),
        ]);
        let drawn: Vec<(i64, Vec<(&str, u64)>)> = days
            .iter()
            .map(|stack| {
                let parts = stack.parts.iter().filter(|part| part.count > 0).map(|part| (part.class, part.count));
                ((stack.day - NaiveDate::default()).num_days(), parts.collect())
            })
            .collect();
        assert_eq!(drawn, [(0, vec![("live", 3), ("shadow", 1)]), (2, vec![("wrong", 2)])]);
    }

    #[test]
    fn a_bin_is_as_high_as_it_was_right() {
        let bin =
            |from: f64, right, wrong| estimate_bin(&ConfidenceBin { from, to: from + 0.5, right, wrong, open: 5 });
        assert_eq!((bin(0.5, 3, 1).mean_confidence, bin(0.5, 3, 1).right.share), (Some(0.75), Some(0.75)));
        assert_eq!((bin(0.5, 0, 0).mean_confidence, bin(0.5, 0, 0).right.share), (None, None), "nothing is decided");
    }
}
