//! `steward_today`: what failed, what waits, what was changed, what would have been changed, and what was resolved.
//!
//! It is the page Today. Of equal proposals the newest is shown, and checks that found nothing are counted alone.

use super::READ_STEWARD;
use super::facts::{open_views, read_moment, wait_for};
use super::lines::{ActionLine, ShownAction};
use super::status::{Trouble, list_troubles, note_cut};
use super::wiki_runs::{list_seen_runs, list_waiting, show_line};
use crate::mcp::error::ToolError;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tokens::count_fitting;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::day::DayFilters;
use chrono::{TimeDelta, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steward_domain::time::format_seconds;
use steward_vault::index::{ActionFilter, ActionRow};

/// The period without `since`, in hours: that of the page Today.
const HOURS: i64 = 24;
/// Rows that are read for a section; many may be equal proposals.
const ROWS: u32 = 200;
/// The most actions of a section, as on the page.
const MAX_SECTION: usize = 20;
/// What a section may take of the result, the runs that wait, and the troubles, in tokens: these eight stay under 8,000.
const MAX_SECTION_TOKENS: usize = 920;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_today",
    title: "Today",
    description: "Says what needs attention, what waits for a person, what was or would have been changed, and what was resolved, in 24 hours or since a moment. \
        `steward_why` explains one action. Example: steward_today()",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<TodayArguments>,
    result: Some(describe_result::<TodayResult>),
    run: show_today,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodayArguments {
    /// From this moment on, such as `2026-11-23T08:00:00Z`.
    #[schemars(length(max = 40))]
    since: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TodayResult {
    since: String,
    troubles: Vec<Trouble>,
    /// Actions by section, each section newest first.
    sections: Vec<TodaySection>,
    /// Checks of this day that led to no action.
    quiet_checks: u64,
    /// What is left out.
    notices: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TodaySection {
    /// `waiting`, `questions`, `changed`, `would_change`, `resolved` or `wiki_runs`.
    section: String,
    /// Outside words: rows of steward_actions.
    actions: Vec<ShownAction<ActionLine>>,
}

fn show_today(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: TodayArguments = call.read_arguments()?;
    let views = open_views(call)?;
    let now = Utc::now();
    let since = match arguments.since.as_deref() {
        Some(since) => read_moment("since", since)?,
        None => now - TimeDelta::hours(HOURS),
    };
    let day = DayFilters::new(since, now);
    let mut notices = Vec::new();
    let mut troubles = list_troubles(call, &views)?;
    note_cut(&mut troubles, MAX_SECTION_TOKENS, &mut notices);
    let questions = wait_for(views.read().list_open_questions(MAX_SECTION as u32 + 1, now))?;
    let mut would = list_newest(&views, &day.shadow)?;
    would.retain(|row| row.resolution.is_none());
    let sections = [
        ("waiting", list_newest(&views, &day.waiting)?),
        ("questions", questions),
        ("changed", list_newest(&views, &day.changed)?),
        ("would_change", would),
        ("resolved", list_newest(&views, &day.resolved)?),
    ];
    let runs = list_seen_runs(call)?;
    let mut shown = Vec::new();
    for (name, mut rows) in sections {
        let found = rows.len();
        rows.truncate(MAX_SECTION);
        let read = wait_for(views.read_actions(rows, now))?;
        let lines = read.iter().map(|action| show_line(&runs, action)).collect();
        let mut actions = keep_lines(lines, found, name, "`steward_actions` lists them", &mut notices);
        if name == "waiting" {
            let waiting = list_waiting(&runs, None);
            let found = waiting.len();
            actions.extend(keep_lines(waiting, found, "waiting_runs", "`history` lists them", &mut notices));
        }
        shown.push(TodaySection { section: name.to_owned(), actions });
    }
    let news = runs.iter().filter(|run| run.is_committed() && run.at >= since).map(ActionLine::of_wiki_run);
    let news: Vec<ActionLine> = news.collect();
    let found = news.len();
    let actions = keep_lines(news, found, "wiki_runs", "`history` lists them", &mut notices);
    shown.push(TodaySection { section: "wiki_runs".to_owned(), actions });
    let checks = wait_for(views.list_check_counts(now.date_naive()))?;
    let quiet_checks = checks.iter().map(|check| check.count).sum();
    answer_value(&TodayResult { since: format_seconds(since), troubles, sections: shown, quiet_checks, notices })
}

/// The newest rows, one of equal proposals.
fn list_newest(views: &VaultViews, filter: &ActionFilter) -> Result<Vec<ActionRow>, ToolError> {
    let mut rows = wait_for(views.actions().actions_page(filter, None, ROWS))?.rows;
    let mut seen = BTreeSet::new();
    rows.retain(|row| row.proposal.clone().is_none_or(|proposal| seen.insert((row.kind.as_str(), proposal))));
    Ok(rows)
}

/// The first lines that fit into a section. `found` is how many there are.
fn keep_lines(
    lines: Vec<ActionLine>,
    found: usize,
    what: &str,
    fix: &str,
    notices: &mut Vec<String>,
) -> Vec<ShownAction<ActionLine>> {
    let mut shown: Vec<_> = lines.into_iter().take(MAX_SECTION).map(ShownAction).collect();
    shown.truncate(count_fitting(&shown, MAX_SECTION_TOKENS));
    if shown.len() < found {
        notices.push(format!("more_{what}: not all are shown; {fix}"));
    }
    shown
}
