//! `timeline`: how much came by the streams of a wiki in each day, week or month, and the newest titles of each.
//!
//! Days, weeks and months are those of UTC; a week begins on Monday. Spans without events are left out.

use super::search::read_moment;
use super::stream_events::{ChosenEvent, EventSelection, choose_events, find_title};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tokens::keep_rows;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use crate::mcp::workspace::Workspace;
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, TimeDelta, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far back a call looks without `since`, in days.
const DEFAULT_DAYS: i64 = 30;
/// The most spans of one call.
const MAX_BUCKETS: usize = 120;
/// The most titles of a span.
const MAX_HIGHLIGHTS: usize = 5;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "timeline",
    title: "Timeline",
    description: "Counts what came by the streams of this wiki by day, week or month, newest first, with up to five titles each. \
        Example: timeline(grain=\"week\")",
    kind: ToolKind::READ_WIKI,
    arguments: describe_arguments::<TimelineArguments>,
    result: Some(describe_result::<TimelineResult>),
    run: draw_timeline,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimelineArguments {
    #[serde(default)]
    grain: TimelineGrain,
    /// From this day or moment on; 30 days ago without it.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// Before this day or moment; now without it.
    #[schemars(length(max = 40))]
    until: Option<String>,
    /// A stream, such as `imap:work`.
    #[schemars(length(max = 140))]
    source: Option<String>,
}

/// How long a span is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum TimelineGrain {
    #[default]
    Day,
    Week,
    Month,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TimelineResult {
    /// Newest first.
    buckets: Vec<TimelineBucket>,
    /// Whether older ones are left out.
    truncated: bool,
    /// `no_streams`, `no_index` or `cut`.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TimelineBucket {
    /// The first day.
    begin: String,
    total: u64,
    counts: Vec<TimelineCount>,
    highlights: Vec<TimelineHighlight>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TimelineCount {
    source: String,
    /// Outside words: what they are, such as `mail`.
    #[serde(rename = "type")]
    event_type: OutsideWords,
    count: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TimelineHighlight {
    /// As in `events`.
    id: String,
    /// Outside words: the subject, or the first line.
    title: OutsideWords,
}

impl TimelineGrain {
    /// The first day of the span that a day lies in.
    fn find_begin(self, day: NaiveDate) -> NaiveDate {
        match self {
            Self::Day => day,
            Self::Week => day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())).unwrap_or(day),
            Self::Month => day.checked_sub_days(Days::new(day.day0().into())).unwrap_or(day),
        }
    }

    /// The first day of the span after the one that begins there.
    fn find_next(self, begin: NaiveDate) -> Option<NaiveDate> {
        match self {
            Self::Day => begin.checked_add_days(Days::new(1)),
            Self::Week => begin.checked_add_days(Days::new(7)),
            Self::Month => begin.checked_add_months(Months::new(1)),
        }
    }

    /// Whether so long a time has at most as many spans as a call may ask for.
    fn has_room(self, since: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        let begins = std::iter::successors(Some(self.find_begin(since.date_naive())), |begin| self.find_next(*begin));
        begins.take(MAX_BUCKETS + 1).take_while(|begin| *begin <= until.date_naive()).count() <= MAX_BUCKETS
    }
}

fn draw_timeline(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<TimelineArguments>()?;
    let until = arguments.until.as_deref().map(read_moment).transpose()?.unwrap_or_else(Utc::now);
    let since = match arguments.since.as_deref().map(read_moment).transpose()? {
        Some(since) => since,
        None => until.checked_sub_signed(TimeDelta::days(DEFAULT_DAYS)).unwrap_or(DateTime::<Utc>::UNIX_EPOCH),
    };
    let grain = arguments.grain;
    if !grain.has_room(since, until) {
        let what = format!("the time has more than {MAX_BUCKETS} spans");
        return Err(ToolError::new(ToolErrorCode::BadArguments, what, "Use a larger `grain`, or a later `since`"));
    }
    let (since, until) = (since.to_rfc3339(), until.to_rfc3339());
    let selection = EventSelection {
        source: arguments.source.as_deref(),
        since: Some(&since),
        until: Some(&until),
        ..EventSelection::default()
    };
    let chosen = choose_events(&workspace, selection)?;
    let mut spans: BTreeMap<NaiveDate, Vec<&ChosenEvent>> = BTreeMap::new();
    for event in &chosen.events {
        spans.entry(grain.find_begin(event.listed.at.date_naive())).or_default().push(event);
    }
    let buckets: Vec<TimelineBucket> =
        spans.iter().rev().map(|(begin, events)| describe_bucket(&workspace, *begin, events)).collect();
    let all = buckets.len();
    let buckets = keep_rows(buckets);
    answer_value(&TimelineResult { truncated: buckets.len() < all, buckets, notice: chosen.notice })
}

fn describe_bucket(workspace: &Workspace<'_>, begin: NaiveDate, events: &[&ChosenEvent]) -> TimelineBucket {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for event in events {
        *counts.entry((&event.source, event.split_pattern().0)).or_default() += 1;
    }
    let counts = counts.into_iter().map(|((source, event_type), count)| TimelineCount {
        source: source.to_owned(),
        event_type: event_type.into(),
        count,
    });
    let highlights = events.iter().take(MAX_HIGHLIGHTS).filter_map(|event| {
        let title = find_title(&event.read(workspace)?);
        Some(TimelineHighlight { id: event.id().to_owned(), title })
    });
    TimelineBucket {
        begin: begin.to_string(),
        total: events.len() as u64,
        counts: counts.collect(),
        highlights: highlights.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday_and_a_call_has_at_most_120_spans() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        assert_eq!(TimelineGrain::Week.find_begin(day("2026-11-22")), day("2026-11-16"));
        assert_eq!(TimelineGrain::Week.find_begin(day("2026-11-16")), day("2026-11-16"));
        assert_eq!(TimelineGrain::Month.find_begin(day("2026-11-30")), day("2026-11-01"));
        let at = |text: &str| day(text).and_time(chrono::NaiveTime::MIN).and_utc();
        for (grain, since, has_room) in [
            (TimelineGrain::Day, "2026-07-26", true),
            (TimelineGrain::Day, "2026-07-25", false),
            (TimelineGrain::Month, "2017-01-01", true),
            (TimelineGrain::Month, "0001-01-01", false),
        ] {
            assert_eq!(grain.has_room(at(since), at("2026-11-22")), has_room, "{grain:?} {since}");
        }
    }
}
