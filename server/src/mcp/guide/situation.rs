//! Renders the second text of a guide: how things stand in a wiki now.
//!
//! All but the first part stands in one fence. Each part has an aim in tokens; the overview and the index take what the others leave. What is cut says so.

use super::cut::{cut_to_paragraph, fit_items};
use super::effort::describe_effort;
use super::log::render_log;
use super::{GuideBlock, GuidePart, GuideReader, MAX_SITUATION_TOKENS};
use crate::mcp::fence::FenceKey;
use crate::mcp::outside::escape_outside;
use crate::mcp::tokens::count_tokens;
use crate::views::wiki::guide::{OpenRun, WikiSituation};
use steward_domain::record::plain_text::{count_noun, to_one_line};
use steward_domain::wiki::metrics::{MetricReading, MetricState, WikiMetric};
use steward_vault::wiki::staged::RunState;

/// The most topics, runs and documents that are named.
const NAMED_TOPICS: usize = 8;
const NAMED_RUNS: usize = 5;
const NAMED_PARTIAL: usize = 5;
const NAMED_STREAMS: usize = 5;
/// The most characters of a topic, of the id of a document and of what a check found.
const MAX_TOPIC: usize = 24;
const MAX_SOURCE: usize = 40;
const MAX_FOUND: usize = 60;
/// What the parts should take at most, in tokens. Together with the log they leave room for the overview.
const COUNTS_TOKENS: usize = 80;
const QUEUES_TOKENS: usize = 100;
const STREAMS_TOKENS: usize = 40;
const WORK_TOKENS: usize = 120;
const OVERVIEW_TOKENS: usize = 500;
const INDEX_TOKENS: usize = 200;
/// What a cut part says at its end.
const OVERVIEW_CUT: &str = "\n(cut: the rest is in wiki/overview.md)";
const INDEX_CUT: &str = "\n(cut: the rest is in wiki/index.md)";

/// Renders the second text.
pub(super) fn render_situation(situation: &WikiSituation, reader: &GuideReader<'_>, fences: &FenceKey) -> GuideBlock {
    let effort = GuidePart::new("effort", describe_effort(reader.tools));
    let parts = vec![
        GuidePart::new("counts", describe_counts(situation)),
        GuidePart::new("queues", describe_queues(situation)),
        GuidePart::new("health", describe_health(situation)),
        render_log(&situation.log),
        GuidePart::new("work", describe_work(situation, reader)),
    ];
    let mut filler = PartFiller { effort, parts, fences };
    let overview = escape_outside(&situation.overview).into_owned();
    filler.add_text(&LongText {
        name: "overview",
        heading: "## Overview\n",
        text: if overview.is_empty() { "Nothing yet." } else { &overview },
        aim: OVERVIEW_TOKENS,
        mark: OVERVIEW_CUT,
        has_more: situation.is_overview_cut,
    });
    let index = escape_outside(&situation.index).into_owned();
    filler.add_text(&LongText {
        name: "index",
        heading: "## Contents\n",
        text: if index.is_empty() { "Nothing yet." } else { &index },
        aim: INDEX_TOKENS,
        mark: INDEX_CUT,
        has_more: situation.is_index_cut,
    });
    filler.close()
}

/// A text of which as much is shown as there is room for.
struct LongText<'a> {
    name: &'static str,
    heading: &'a str,
    text: &'a str,
    /// In tokens.
    aim: usize,
    /// What is added if it is cut.
    mark: &'a str,
    /// Whether there is more than `text`.
    has_more: bool,
}

/// Adds parts to the second text while there is room.
struct PartFiller<'a> {
    /// It stands before the fence.
    effort: GuidePart,
    parts: Vec<GuidePart>,
    fences: &'a FenceKey,
}

impl PartFiller<'_> {
    /// The text with these words after the other parts.
    fn render_with(&self, more: Option<&str>) -> String {
        let parts = self.parts.iter().map(|part| part.text.as_str()).chain(more);
        let state = self.fences.wrap("state", &parts.collect::<Vec<_>>().join("\n\n"));
        format!("{}\n\n{state}", self.effort.text)
    }

    /// Adds a text, cut so that the whole has room. Without any room it is left out, and counts as cut.
    fn add_text(&mut self, long: &LongText<'_>) {
        let used = count_tokens(&self.render_with(None));
        let mut limit = long.aim.min(MAX_SITUATION_TOKENS.saturating_sub(used));
        while limit > 0 {
            let room = limit.saturating_sub(count_tokens(long.heading) + count_tokens(long.mark));
            let shown = cut_to_paragraph(long.text, room);
            let is_cut = long.has_more || shown.len() < long.text.trim_end().len();
            let text = format!("{}{}{}", long.heading, shown.trim_end(), if is_cut { long.mark } else { "" });
            let excess = count_tokens(&self.render_with(Some(&text))).saturating_sub(MAX_SITUATION_TOKENS);
            if excess == 0 {
                return self.parts.push(GuidePart { name: long.name, text, is_cut });
            }
            limit = limit.saturating_sub(excess.max(8));
        }
        self.parts.push(GuidePart { name: long.name, text: String::new(), is_cut: true });
    }

    fn close(self) -> GuideBlock {
        let shown = Self { parts: self.parts.iter().filter(|part| !part.text.is_empty()).cloned().collect(), ..self };
        GuideBlock { text: shown.render_with(None), parts: std::iter::once(shown.effort).chain(self.parts).collect() }
    }
}

/// Outside words on one line, cut.
fn shorten(text: &str, most: usize) -> String {
    escape_outside(&to_one_line(text).chars().take(most).collect::<String>()).into_owned()
}

fn describe_counts(situation: &WikiSituation) -> String {
    let raw = match situation.last_ingest {
        Some(at) => format!("the last ingest was on {}", at.format("%Y-%m-%d")),
        None => "nothing was ingested yet".to_owned(),
    };
    let raw = format!("raw: sources {}, {} new; {raw}", situation.raw_files, situation.new_sources);
    fit_items(&situation.topics, NAMED_TOPICS, COUNTS_TOKENS, |topics, left| {
        let mut names: Vec<String> =
            topics.iter().map(|it| format!("{} {}", shorten(&it.topic, MAX_TOPIC), it.pages)).collect();
        names.extend((left > 0).then(|| format!("{left} more")));
        let names = if names.is_empty() { String::new() } else { format!("; topics: {}", names.join(", ")) };
        format!("## Counts\npages: {}{names}\n{raw}", situation.pages)
    })
}

/// What waits.
fn describe_queues(situation: &WikiSituation) -> String {
    let queues = fit_items(&situation.open_runs, NAMED_RUNS, QUEUES_TOKENS, |runs, left| {
        let mut names: Vec<String> = runs.iter().map(describe_run).collect();
        names.extend((left > 0).then(|| format!("{left} more")));
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("## Queues\nopen runs: {names}\nnew sources: {}", situation.new_sources)
    });
    let streams = fit_items(&situation.streams, NAMED_STREAMS, STREAMS_TOKENS, |streams, left| {
        let mut names: Vec<String> =
            streams.iter().map(|it| format!("{} {}", shorten(&it.name, MAX_SOURCE), it.events)).collect();
        names.extend((left > 0).then(|| format!("{left} more")));
        if names.is_empty() { String::new() } else { format!("\nevents in no page: {}", names.join(", ")) }
    });
    queues + &streams
}

fn describe_run(run: &OpenRun) -> String {
    // The name is that of a folder of ours, of which the form was checked.
    format!("{} {} {}", run.run, run.run_type, name_state(run))
}

fn describe_health(situation: &WikiSituation) -> String {
    let find = |metric| situation.metrics.iter().find(|reading| reading.metric == metric);
    let measured = |metric: WikiMetric| format!("{} {metric}: {}", metric.id(), describe_metric(find(metric)));
    let lines = [
        measured(WikiMetric::Fidelity),
        measured(WikiMetric::Coverage),
        measured(WikiMetric::Retroactive),
        "M4 cost: informs only".to_owned(),
        measured(WikiMetric::Consistency),
    ];
    let check = match &situation.last_check {
        Some(check) => format!("lint {}: {}", check.at.format("%m-%d"), shorten(&check.found, MAX_FOUND)),
        None => "lint: not measured yet".to_owned(),
    };
    let unreviewed = match (situation.is_accepted, situation.unreviewed.join(", ")) {
        (false, _) => "\nguide_unreviewed: nobody has accepted the wiki".to_owned(),
        (true, files) if files.is_empty() => String::new(),
        (true, files) => format!("\nguide_unreviewed: {files} changed since a person accepted it"),
    };
    format!("## Health\n{}\n{check}{unreviewed}", lines.join("; "))
}

fn describe_metric(reading: Option<&MetricReading>) -> String {
    let Some(reading) = reading.filter(|reading| reading.at.is_some()) else { return "not measured yet".to_owned() };
    let share = reading.rate.share.map(|share| format!(" {share:.2}")).unwrap_or_default();
    let held = match reading.state {
        MetricState::Broken if reading.metric.holds_attended() => ", so all runs wait for a person",
        MetricState::Broken => ", so unattended runs wait for a person",
        MetricState::Unknown | MetricState::Healthy | MetricState::Degraded => "",
    };
    format!("{}{share}{held}", reading.state)
}

fn describe_work(situation: &WikiSituation, reader: &GuideReader<'_>) -> String {
    let own: Vec<&OpenRun> = situation.open_runs.iter().filter(|run| run.by == reader.name).collect();
    let partial: Vec<&OpenRun> =
        situation.open_runs.iter().filter(|run| run.is_partial() && run.by != reader.name).collect();
    let week = format!(
        "## Own work\nlast 7 days, by all: {}, {}",
        count_noun(situation.recent_runs as u64, "run"),
        count_noun(situation.recent_pages as u64, "page")
    );
    let yours = fit_items(&own, NAMED_PARTIAL, WORK_TOKENS / 3, |runs, left| {
        let mut names: Vec<String> = runs
            .iter()
            .map(|run| format!("{} {}", run.run, if run.is_partial() { "partial ingest" } else { name_state(run) }))
            .collect();
        names.extend((left > 0).then(|| format!("{left} more")));
        if names.is_empty() { String::new() } else { format!("\nyours: {}", names.join(", ")) }
    });
    let theirs = fit_items(&partial, NAMED_PARTIAL, WORK_TOKENS / 2, |runs, left| {
        let mut names: Vec<String> = runs
            .iter()
            .map(|run| {
                let source = shorten(run.source.as_deref().unwrap_or("no source"), MAX_SOURCE);
                format!("{} {source}", run.began.format("%m-%d"))
            })
            .collect();
        names.extend((left > 0).then(|| format!("{left} more")));
        if names.is_empty() { String::new() } else { format!("\npartial ingests of others: {}", names.join(", ")) }
    });
    format!("{week}{yours}{theirs}")
}

fn name_state(run: &OpenRun) -> &'static str {
    match run.state {
        _ if run.waits => "awaits review",
        RunState::Verifying => "verifying",
        RunState::Pending | RunState::Committed | RunState::Rejected | RunState::Abandoned => "pending",
    }
}
