//! One matter or task: when it is looked at and why so often, and everything that happened around it.
//!
//! What the next look would do is told by the very rules of a tick ([`steward_vault::index::Index::standings`]); the next
//! time and the last runs are Temporal's, and where it gives no answer the rest is shown without.

use super::card::{Card, cards};
use super::{Oops, Page, ago, link, moment, shown};
use crate::access::Caller;
use crate::api::problem::Problem;
use crate::app::Shared;
use crate::facts::{quote, run_address, schedule_address};
use askama::Template;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use std::collections::BTreeMap;
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::plan::ActionId;
use steward_domain::tick::MAX_LOOKS;
use steward_domain::time::format_millis;
use steward_vault::brake;
use steward_vault::index::{
    ActionRow, CheckDecision, LastTick, ObservationQuery, PageCursor, SignalRow, SubjectRow, TaskFilter, TimelineRow,
};
use steward_workflows::schedule_id;

/// Things of a page.
const ROWS: u32 = 30;

/// Tasks of a page.
const TASKS: u32 = 50;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Asked {
    /// Where the page of the timeline before ended.
    before: String,
    /// Where the page of tasks before ended.
    tasks: String,
}

/// A signal in the timeline.
pub(crate) struct Signal {
    at: String,
    ago: String,
    quote: String,
    source: String,
    standing: String,
    about: Option<String>,
    class: Option<String>,
}

pub(crate) enum Event {
    Signal(Signal),
    Action(Box<Card>),
}

struct Run {
    ago: String,
    status: String,
    href: Option<String>,
}

struct Task {
    path: String,
    name: String,
    state: &'static str,
    next: String,
    last: String,
    outcome: String,
}

/// A page of the tasks of a matter.
#[derive(Default)]
struct Tasks {
    rows: Vec<Task>,
    /// Where this is not the first page.
    first: Option<String>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "record.html")]
struct Record {
    page: Page,
    name: String,
    state: String,
    /// Why it cannot be read, with the mend.
    problem: Option<String>,
    path: String,
    /// Of a task.
    matter: Option<String>,
    looks: Vec<(&'static str, String)>,
    schedule: Option<String>,
    runs: Vec<Run>,
    tasks: Tasks,
    events: Vec<Event>,
    next: Option<String>,
}

pub(crate) async fn page(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    Path((folder, file)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Result<Response, Oops> {
    let nothing = || Oops::from(Problem::new(StatusCode::NOT_FOUND, "there is nothing here"));
    let path = RecordPath::parse(&format!("{folder}/{file}")).map_err(|_| nothing())?;
    let subject = app.index.find_subject(&path).await?;
    let before: Option<PageCursor> = asked.before.parse().ok();
    let (events, next) = timeline(&app, &path, before.as_ref()).await?;
    let here = format!("/records/{path}");
    let next = next.map(|next| link(&here, &[("tasks", &asked.tasks), ("before", &next.to_string())]) + "#timeline");
    let page = Page::of(&app, &caller, "matters", &uri).await?;
    // One that cannot be read, or is gone and left a history, has a page all the same.
    let problem = match &subject {
        Some(_) => None,
        None => app.index.find_file_problem(&path).await?,
    };
    if subject.is_none() && problem.is_none() && events.is_empty() {
        return Err(nothing());
    }
    let bare = Record {
        page,
        name: subject.as_ref().map_or_else(|| path.slug().to_owned(), |subject| subject.name.clone()),
        state: match (&subject, &problem) {
            (Some(subject), _) => subject.state.as_str().to_owned(),
            (None, Some(_)) => "cannot be read".into(),
            (None, None) => "not there any more".into(),
        },
        problem,
        path: path.to_string(),
        matter: None,
        looks: Vec::new(),
        schedule: None,
        runs: Vec::new(),
        tasks: Tasks::default(),
        events,
        next,
    };
    let whole = if path.kind() == RecordKind::Matter {
        let tasks = tasks(&app, &path, &asked).await?;
        of_a_matter(&app, &path, Record { tasks, ..bare }).await?
    } else {
        let names = app.index.list_record_labels(std::slice::from_ref(&path)).await?;
        let matter = names.get(&path).and_then(|named| named.matter.as_ref()).map(ToString::to_string);
        Record { matter, looks: subject.as_ref().map(of_a_task).unwrap_or_default(), ..bare }
    };
    Ok(shown(&whole))
}

async fn of_a_matter(app: &Shared, path: &RecordPath, bare: Record) -> Result<Record, Oops> {
    let (now, ui) = (Utc::now(), app.house.temporal_ui.as_deref());
    let id = schedule_id(path.slug());
    let mut looks = Vec::new();
    let mut runs = Vec::new();
    match app.temporal.schedule(&id).await {
        Err(away) => looks.push(("next look", away.to_string())),
        Ok(None) => looks.push(("next look", "it has no schedule".into())),
        Ok(Some(schedule)) => {
            looks.push((
                "next look",
                match schedule.next {
                    _ if schedule.paused => format!("paused: {}", schedule.note),
                    Some(at) => format!("{}, {}", ago(at, now), moment(at)),
                    None => "not known".into(),
                },
            ));
            runs = schedule
                .recent
                .into_iter()
                .map(|run| Run {
                    ago: run.at.map(|at| ago(at, now)).unwrap_or_default(),
                    status: if run.late_seconds > 1 {
                        format!("{}, {} s late", run.status, run.late_seconds)
                    } else {
                        run.status
                    },
                    href: ui.map(|ui| run_address(ui, &run.workflow, &run.run)),
                })
                .collect();
        }
    }
    match app.index.last_tick(path, &app.house.cadence).await? {
        None => looks.push(("last look", "never".into())),
        Some(tick) => looks.extend(last(&tick, now)),
    }
    Ok(Record { looks, schedule: ui.map(|ui| schedule_address(ui, &id)), runs, ..bare })
}

fn last(tick: &LastTick, now: DateTime<Utc>) -> Vec<(&'static str, String)> {
    let mut told = vec![("last look", format!("{}, {}", ago(tick.at, now), moment(tick.at)))];
    let found =
        format!("{} new signals; {} tasks went to a clerk, {} were quiet", tick.signals, tick.looks, tick.quiet);
    told.push(("it found", found));
    if tick.left_due > 0 {
        told.push(("left for the next", tick.left_due.to_string()));
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
        told.push(("passed over", skipped.join(", ")));
    }
    let interval = &tick.interval;
    let why = match (interval.streak, interval.grows_after) {
        (0, _) => "because something was new".to_owned(),
        (streak, Some(more)) => format!("after {streak} looks without news; {more} more and it comes half as often"),
        (streak, None) => format!("after {streak} looks without news; it does not get rarer"),
    };
    told.push(("every", format!("{} min, {why}", interval.seconds / 60)));
    told
}

fn of_a_task(subject: &SubjectRow) -> Vec<(&'static str, String)> {
    let now = Utc::now();
    let when = |at: Option<DateTime<Utc>>, never: &str| {
        at.map_or_else(|| never.to_owned(), |at| format!("{}, {}", ago(at, now), moment(at)))
    };
    let mut told = vec![
        ("last look", when(subject.last_check_at, "never")),
        ("due for a look", when(subject.next_check_after, "at the next look at its matter")),
    ];
    if subject.snoozed_until.is_some() {
        told.push(("put off until", when(subject.snoozed_until, "")));
    }
    told
}

async fn tasks(app: &Shared, matter: &RecordPath, asked: &Asked) -> Result<Tasks, Oops> {
    let filter = TaskFilter { matter: Some(matter.clone()), state: None };
    let after = Some(asked.tasks.as_str()).filter(|after| !after.is_empty());
    let page = app.index.tasks_page(&filter, after, TASKS).await?;
    let at =
        |place: &str| link(&format!("/records/{matter}"), &[("tasks", place), ("before", &asked.before)]) + "#tasks";
    let back = after.map(|_| at(""));
    let (Some(first), Some(last)) = (page.rows.first(), page.rows.last()) else {
        return Ok(Tasks { first: back, ..Tasks::default() });
    };
    let now = Utc::now();
    let ask = ObservationQuery {
        matter: matter.clone(),
        look_id: String::new(),
        now,
        cadence: app.house.cadence,
        policy: app.policy(),
        stopped: brake::is_stopped(&app.root),
        max_looks: MAX_LOOKS,
        default_ceiling: app.house.default_ceiling,
    };
    let standings = app.index.preview_task_checks(&ask, Some((&first.path, &last.path))).await?.into_iter();
    let turns: BTreeMap<String, CheckDecision> = standings.map(|one| (one.path.to_string(), one.turn)).collect();
    let next = page.next.as_deref().map(at);
    let rows = page.rows.into_iter().map(|task| Task {
        next: turns.get(task.path.as_str()).map(told).unwrap_or_default(),
        path: task.path.to_string(),
        name: task.name,
        state: task.state.as_str(),
        last: task.last_check_at.map_or_else(|| "never".into(), |at| ago(at, now)),
        outcome: task.outcome.unwrap_or_default().replace('_', " "),
    });
    Ok(Tasks { rows: rows.collect(), first: back, next })
}

fn told(turn: &CheckDecision) -> String {
    match turn {
        CheckDecision::Twin => "is refused: another task has its id".into(),
        CheckDecision::Clerk => "asks the clerk".into(),
        CheckDecision::Quiet => "finds nothing new so far".into(),
        CheckDecision::Skipped(reason) => {
            let word = serde_json::to_value(reason).ok().and_then(|word| word.as_str().map(|w| w.replace('_', " ")));
            format!("passes it over: {}", word.unwrap_or_default())
        }
    }
}

async fn timeline(
    app: &Shared,
    path: &RecordPath,
    before: Option<&PageCursor>,
) -> Result<(Vec<Event>, Option<PageCursor>), Oops> {
    let page = app.index.timeline_page(path, before, ROWS).await?;
    let next = page.next;
    let of_actions: Vec<ActionRow> = page.rows.iter().filter_map(row).cloned().collect();
    let ids: Vec<ActionId> = of_actions.iter().map(|row| row.id.clone()).collect();
    let drawn = cards(&app.root, &app.index, of_actions).await?;
    let mut drawn: BTreeMap<ActionId, Card> = ids.into_iter().zip(drawn).collect();
    let event = |row: TimelineRow| match row {
        TimelineRow::Signal(row) => Some(Event::Signal(signal(row))),
        TimelineRow::Action(row) => drawn.remove(&row.id).map(|card| Event::Action(Box::new(card))),
    };
    Ok((page.rows.into_iter().filter_map(event).collect(), next))
}

fn row(row: &TimelineRow) -> Option<&ActionRow> {
    match row {
        TimelineRow::Action(row) => Some(row),
        TimelineRow::Signal(_) => None,
    }
}

fn signal(row: SignalRow) -> Signal {
    let SignalRow { signal, target } = row;
    let reason = signal.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Signal {
        at: format_millis(signal.created),
        ago: ago(signal.created, Utc::now()),
        quote: quote::kept(&signal.note),
        source: signal.source,
        standing: format!("{}{reason}", signal.status.as_str().replace('_', " ")),
        about: target.map(|target| target.to_string()),
        class: signal.class.map(|class| class.as_str().replace('_', " ")),
    }
}
