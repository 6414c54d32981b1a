//! The page of one matter or task: when it is checked, why that often, and everything that happened.
//!
//! The rules of a tick say what the next check would do
//! ([`preview_task_checks`](steward_vault::index::ReadView::preview_task_checks)).
//! The next time and the last runs come from Temporal. If Temporal does not answer, the rest is shown without them.

use super::PageError;
use super::PageFrame;
use super::build_record_url;
use super::build_url;
use super::card::{ActionCard, read_cards};
use super::moment::FactValue;
use super::moved::LostNotePanel;
use super::note::{self, NoteLinks, NoteText};
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::{NO_SUCH_PAGE, SharedAppState};
use crate::views::{build_run_url, build_schedule_url, quote};
use askama::Template;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::collections::BTreeMap;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::plain_text::count_noun;
use steward_domain::steward::tick::MAX_CHECKS_PER_TICK;
use steward_domain::time::format_age;
use steward_domain::time::format_millis;
use steward_vault::gates::stop;
use steward_vault::index::{
    ActionRow, CheckDecision, LastTick, ObservationQuery, PageCursor, SignalRow, SubjectRow, TaskFilter, TimelineRow,
};
use steward_workflows::schedule_id;

/// Events of one page of the timeline.
const ROWS: u32 = 30;

/// Tasks of one page.
const TASKS: u32 = 50;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct RecordPageQuery {
    /// The cursor at which the previous page of the timeline ended; empty for the first page.
    before: String,
    /// The cursor at which the previous page of tasks ended; empty for the first page.
    tasks: String,
}

/// A signal of the timeline.
pub(crate) struct TimelineSignal {
    at: String,
    ago: String,
    quote: String,
    source: String,
    status: String,
    about: Option<String>,
    class: Option<String>,
}

pub(crate) enum TimelineEvent {
    Signal(TimelineSignal),
    Action(Box<ActionCard>),
}

struct ScheduledRunRow {
    ago: String,
    status: String,
    href: Option<String>,
}

struct TaskTableRow {
    path: String,
    name: String,
    state: &'static str,
    next: String,
    last: String,
    outcome: String,
}

/// One page of a matter's tasks.
#[derive(Default)]
struct TaskTable {
    rows: Vec<TaskTableRow>,
    /// The URL of the first page, if this is a later one.
    first: Option<String>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "record.html")]
struct RecordPage {
    page: PageFrame,
    name: String,
    state: String,
    /// Why the record cannot be read, with the fix.
    problem: Option<String>,
    /// Set if the note is gone from this path, and Steward does not know where it is.
    lost: Option<LostNotePanel>,
    path: String,
    /// The path of a task's matter; `None` for a matter.
    matter: Option<String>,
    links: NoteLinks,
    note: NoteText,
    /// The limits that the note of the matter sets.
    limits: Vec<String>,
    /// The matter that "Check now" checks; `None` if there is none that can be checked.
    checked: Option<String>,
    checks: Vec<(&'static str, FactValue)>,
    schedule: Option<String>,
    runs: Vec<ScheduledRunRow>,
    tasks: TaskTable,
    events: Vec<TimelineEvent>,
    next: Option<String>,
}

pub(crate) async fn show_record(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Path(path): Path<String>,
    Query(query): Query<RecordPageQuery>,
) -> Result<Response, PageError> {
    let not_found = || PageError::from(ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE));
    let path = RecordPath::parse(&path).map_err(|_| not_found())?;
    let subject = app.views.read().find_subject(&path).await?;
    let before: Option<PageCursor> = query.before.parse().ok();
    let (events, next) = read_timeline(&app, &path, before.as_ref()).await?;
    let here = build_record_url(&path);
    let next =
        next.map(|next| build_url(&here, &[("tasks", &query.tasks), ("before", &next.to_string())]) + "#timeline");
    let page = PageFrame::load(&app, &caller, "matters", &uri).await?;
    // A record that cannot be read has a page as well, and so has a deleted one that left a history.
    let problem = match &subject {
        Some(_) => None,
        None => app.views.read().find_file_problem(&path).await?,
    };
    if subject.is_none() && problem.is_none() && events.is_empty() {
        return Err(not_found());
    }
    let (root, file) = (app.views.root().clone(), path.clone());
    // Only the notes of the index are shown: a signal may name any file.
    let is_note = subject.is_some() || problem.is_some();
    let kind = app.views.read().find_note_kind(&path).await?;
    let (note_kind, schema) = (kind.unwrap_or(RecordKind::Task), app.views.note_schema());
    let read = move || if is_note { note::read_note(&root, &file, note_kind, &schema) } else { NoteText::default() };
    let note = tokio::task::spawn_blocking(read).await.unwrap_or_default();
    let lost = if subject.is_none() { app.views.list_lost_notes().await? } else { Vec::new() };
    let lost = lost.into_iter().find(|note| note.path == path.as_str()).map(LostNotePanel::from);
    let policies = app.views.list_matter_policies(&path).await?;
    let limits = policies.iter().filter(|_| subject.is_some()).flat_map(|(_, policy)| note::describe_policy(policy));
    let bare = RecordPage {
        page,
        links: NoteLinks::new(app.views.root(), path.as_str()),
        note,
        limits: limits.collect(),
        checked: None,
        name: subject.as_ref().map_or_else(|| path.slug().to_owned(), |subject| subject.name.clone()),
        state: match (&subject, &problem) {
            (Some(subject), _) => subject.state.as_str().to_owned(),
            (None, Some(_)) => "cannot be read".into(),
            (None, None) if lost.is_some() => "gone".into(),
            (None, None) => "deleted".into(),
        },
        problem,
        path: path.to_string(),
        lost,
        matter: None,
        checks: Vec::new(),
        schedule: None,
        runs: Vec::new(),
        tasks: TaskTable::default(),
        events,
        next,
    };
    let complete = if kind == Some(RecordKind::Matter) {
        let tasks = read_task_table(&app, &path, &query).await?;
        let bare = RecordPage { checked: subject.is_some().then(|| path.to_string()), ..bare };
        add_matter_schedule(&app, &path, RecordPage { tasks, ..bare }).await?
    } else {
        let names = app.views.read().list_record_labels(std::slice::from_ref(&path)).await?;
        let matter = names.get(&path).and_then(|named| named.matter.as_ref()).map(ToString::to_string);
        let checked = matter.clone().filter(|_| subject.is_some());
        RecordPage { matter, checked, checks: subject.as_ref().map(describe_task_checks).unwrap_or_default(), ..bare }
    };
    Ok(render_page(&complete))
}

async fn add_matter_schedule(
    app: &SharedAppState,
    path: &RecordPath,
    bare: RecordPage,
) -> Result<RecordPage, PageError> {
    let (now, settings) = (Utc::now(), app.read_settings());
    let ui = settings.temporal_ui.as_deref();
    let id = schedule_id(path);
    let mut checks = Vec::new();
    let mut runs = Vec::new();
    match app.temporal.describe_schedule(&id).await {
        Err(e) => checks.push(("next check", e.to_string().into())),
        Ok(None) => checks.push(("next check", "it has no schedule".into())),
        Ok(Some(schedule)) => {
            checks.push((
                "next check",
                match schedule.next {
                    _ if schedule.paused => format!("paused: {}", schedule.note).into(),
                    Some(at) => FactValue::from_moment(at, now),
                    None => "unknown".into(),
                },
            ));
            runs = schedule
                .recent
                .into_iter()
                .map(|run| ScheduledRunRow {
                    ago: run.at.map(|at| format_age(at, now)).unwrap_or_default(),
                    status: if run.late_seconds > 1 {
                        format!("{}, {} s late", run.status, run.late_seconds)
                    } else {
                        run.status
                    },
                    href: ui.map(|ui| build_run_url(ui, &run.workflow, &run.run)),
                })
                .collect();
        }
    }
    match app.views.read().last_tick(path, &settings.cadence).await? {
        None => checks.push(("last check", "never".into())),
        Some(tick) => checks.extend(describe_last_tick(&tick, now)),
    }
    Ok(RecordPage {
        checks,
        schedule: ui.map(|ui| build_schedule_url(ui, &app.temporal.names().qualify_id(&id))),
        runs,
        ..bare
    })
}

fn describe_last_tick(tick: &LastTick, now: DateTime<Utc>) -> Vec<(&'static str, FactValue)> {
    let mut facts = vec![("last check", FactValue::from_moment(tick.at, now))];
    let found = format!(
        "{}; {} asked about, {} without news",
        count_noun(tick.signals.into(), "new signal"),
        count_noun(tick.task_checks.into(), "task"),
        tick.quiet
    );
    facts.push(("found", found.into()));
    if tick.left_due > 0 {
        facts.push(("left for the next check", count_noun(tick.left_due.into(), "task").into()));
    }
    let skipped: Vec<String> = tick
        .skipped
        .iter()
        .map(|(reason, count)| {
            let word = serde_json::to_value(reason).ok().and_then(|word| word.as_str().map(|w| w.replace('_', " ")));
            format!("{count} {}", word.unwrap_or_default())
        })
        .collect();
    if !skipped.is_empty() {
        facts.push(("skipped", skipped.join(", ").into()));
    }
    let interval = &tick.interval;
    let reason = match (interval.streak, interval.grows_after) {
        (0, _) => "because something was new".to_owned(),
        (streak, Some(more)) => format!("after {streak} checks without news; it doubles after {more} more"),
        (streak, None) => format!("after {streak} checks without news; it grows no further"),
    };
    facts.push(("interval", format!("{} min, {reason}", interval.seconds / 60).into()));
    facts
}

fn describe_task_checks(subject: &SubjectRow) -> Vec<(&'static str, FactValue)> {
    let now = Utc::now();
    let when = |at: Option<DateTime<Utc>>, never: &str| {
        at.map_or_else(|| FactValue::from(never), |at| FactValue::from_moment(at, now))
    };
    let mut facts = vec![
        ("last check", when(subject.last_check_at, "never")),
        ("next check due", when(subject.next_check_after, "at the next check of its matter")),
    ];
    if subject.snoozed_until.is_some() {
        facts.push(("snoozed until", when(subject.snoozed_until, "")));
    }
    facts
}

async fn read_task_table(
    app: &SharedAppState,
    matter: &RecordPath,
    query: &RecordPageQuery,
) -> Result<TaskTable, PageError> {
    let filter = TaskFilter { matter: Some(matter.clone()), state: None };
    let after = Some(query.tasks.as_str()).filter(|after| !after.is_empty());
    let page = app.views.read().tasks_page(&filter, after, TASKS).await?;
    let page_url =
        |cursor: &str| build_url(&build_record_url(matter), &[("tasks", cursor), ("before", &query.before)]) + "#tasks";
    let first_page = after.map(|_| page_url(""));
    let (Some(first), Some(last)) = (page.rows.first(), page.rows.last()) else {
        return Ok(TaskTable { first: first_page, ..TaskTable::default() });
    };
    let (now, settings) = (Utc::now(), app.read_settings());
    let observation = ObservationQuery {
        matter: matter.clone(),
        check_id: String::new(),
        now,
        cadence: settings.cadence,
        policy: settings.policy,
        stopped: stop::is_stopped(app.views.root()),
        max_checks: MAX_CHECKS_PER_TICK,
        default_ceiling: settings.default_ceiling,
    };
    let checks = app.views.read().preview_task_checks(&observation, Some((&first.path, &last.path))).await?.into_iter();
    let decisions: BTreeMap<String, CheckDecision> = checks.map(|check| (check.path.to_string(), check.turn)).collect();
    let next = page.next.as_deref().map(page_url);
    let rows = page.rows.into_iter().map(|task| TaskTableRow {
        next: decisions.get(task.path.as_str()).map(describe_next_check).unwrap_or_default(),
        path: task.path.to_string(),
        name: task.name,
        state: task.state.as_str(),
        last: task.last_check_at.map_or_else(|| "never".into(), |at| format_age(at, now)),
        outcome: task.outcome.unwrap_or_default().replace('_', " "),
    });
    Ok(TaskTable { rows: rows.collect(), first: first_page, next })
}

fn describe_next_check(decision: &CheckDecision) -> String {
    match decision {
        CheckDecision::Twin => "refused: another task has the same id".into(),
        CheckDecision::Clerk => "asks the clerk".into(),
        CheckDecision::Quiet => "nothing new so far".into(),
        CheckDecision::Skipped(reason) => {
            let word = serde_json::to_value(reason).ok().and_then(|word| word.as_str().map(|w| w.replace('_', " ")));
            format!("skipped: {}", word.unwrap_or_default())
        }
    }
}

async fn read_timeline(
    app: &SharedAppState,
    path: &RecordPath,
    before: Option<&PageCursor>,
) -> Result<(Vec<TimelineEvent>, Option<PageCursor>), PageError> {
    let page = app.views.read().timeline_page(path, before, ROWS).await?;
    let next = page.next;
    let actions: Vec<ActionRow> = page.rows.iter().filter_map(as_action_row).cloned().collect();
    let ids: Vec<ActionId> = actions.iter().map(|row| row.id.clone()).collect();
    let cards = read_cards(&app.views, actions).await?;
    let mut cards: BTreeMap<ActionId, ActionCard> = ids.into_iter().zip(cards).collect();
    let mut events = Vec::with_capacity(page.rows.len());
    for row in page.rows {
        events.extend(match row {
            TimelineRow::Signal(row) => {
                let history = app.views.read_signal_history(&row.signal.path).await?;
                Some(TimelineEvent::Signal(build_timeline_signal(row, history.outcome_label())))
            }
            TimelineRow::Action(row) => cards.remove(&row.id).map(|card| TimelineEvent::Action(Box::new(card))),
        });
    }
    Ok((events, next))
}

fn as_action_row(row: &TimelineRow) -> Option<&ActionRow> {
    match row {
        TimelineRow::Action(row) => Some(row),
        TimelineRow::Signal(_) => None,
    }
}

/// `outcome` is what became of the signal. Without one, the status in its file is shown.
fn build_timeline_signal(row: SignalRow, outcome: Option<&str>) -> TimelineSignal {
    let SignalRow { signal, target } = row;
    let reason = signal.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let status = outcome.map(str::to_owned);
    TimelineSignal {
        at: format_millis(signal.created),
        ago: format_age(signal.created, Utc::now()),
        quote: quote::mark_cut_quote(&signal.note),
        source: signal.source,
        status: status.unwrap_or_else(|| format!("{}{reason}", signal.status.as_str().replace('_', " "))),
        about: target.map(|target| target.to_string()),
        class: signal.class.map(|class| class.as_str().replace('_', " ")),
    }
}
