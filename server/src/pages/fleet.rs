//! The page "Fleet": the policy, the rate guard, the workers, the streams and everything that needs attention.
//!
//! The policy shown is that of the process that holds the vault. The rate guard is asked what it would say to the next
//! call. If Temporal does not answer, the page says so in that place and shows everything else.

use super::PageError;
use super::PageFrame;
use super::moment::{FactValue, WrittenMoment};
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::http::settings::DashboardSettings;
use crate::temporal::client::{QueueWorker, TemporalQueryError};
use crate::views::operator_events::{self, OperatorEventRow};
use crate::views::problems::{self, AttentionItem};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use steward_domain::steward::guard::{GuardStatus, LedgerStatus, WindowFill};
use steward_domain::time::format_age;
use steward_vault::gates::stop;
use steward_vault::index::StreamCount;
use steward_workflows::clerk_queue;
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;

/// Operator events that are listed; the newest.
const OPERATOR_EVENTS: usize = 12;

type LabeledValue = (&'static str, String);

/// One window of the rate guard.
struct GuardWindowRow {
    name: &'static str,
    used: u32,
    cap: u32,
    /// Up to this many calls the meter shows a calm window.
    low: u32,
    /// From this many calls on the meter shows a nearly full window.
    high: u32,
    /// When the next call is allowed.
    free: String,
}

struct FleetStreamRow {
    name: String,
    state: &'static str,
    new: u64,
    read: u64,
    parked: u64,
    newest: String,
    error: String,
}

#[derive(Template)]
#[template(path = "fleet.html")]
struct FleetPage {
    page: PageFrame,
    attention: Vec<AttentionItem>,
    refuses: Option<String>,
    windows: Vec<GuardWindowRow>,
    guard: Vec<(&'static str, FactValue)>,
    workers: Vec<LabeledValue>,
    index: Vec<LabeledValue>,
    streams: Vec<FleetStreamRow>,
    /// Each with its moment.
    events: Vec<(WrittenMoment, OperatorEventRow)>,
}

pub(crate) async fn show_fleet(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
) -> Result<Response, PageError> {
    let now = Utc::now();
    let (status, settings) = (app.read_guard_status().await, app.read_settings());
    let streams = app.views.list_stream_counts().await?;
    let fleet = FleetPage {
        attention: problems::list_attention_items(&app).await?,
        refuses: describe_guard_refusal(status.as_ref()),
        windows: status
            .iter()
            .filter_map(|status| status.ledger.as_ref())
            .flat_map(|l| build_guard_windows(l, now))
            .collect(),
        guard: status.iter().filter_map(|status| status.ledger.as_ref()).flat_map(|l| describe_guard(l, now)).collect(),
        workers: describe_workers(&app, &settings, now).await?,
        index: describe_index(&app, now).await?,
        events: operator_events::read_newest_events(app.views.root(), OPERATOR_EVENTS)
            .into_iter()
            .map(|event| (WrittenMoment::read(&event.at), event))
            .collect(),
        streams: streams.into_iter().map(|count| build_stream_row(count, now)).collect(),
        page: PageFrame::load(&app, &caller, "fleet", &uri).await?,
    };
    Ok(render_page(&fleet))
}

fn describe_guard_refusal(status: Option<&GuardStatus>) -> Option<String> {
    let Some(status) = status else { return Some("its ledger cannot be opened: see `steward status`".into()) };
    let refusal = status.refusal.as_ref()?;
    let clears = refusal.clears_at.map(|at| format!("; clears {}", format_age(at, Utc::now()))).unwrap_or_default();
    Some(format!("{}{clears}", refusal.reason))
}

fn build_guard_windows(ledger: &LedgerStatus, now: DateTime<Utc>) -> [GuardWindowRow; 3] {
    let window = |name, fill: &WindowFill| GuardWindowRow {
        name,
        used: fill.used,
        cap: fill.cap,
        low: fill.cap / 2,
        high: nearly_full_threshold(fill.cap),
        free: fill.next_free.map_or_else(|| "now".to_owned(), |at| format_age(at, now)),
    };
    [window("This minute", &ledger.minute), window("This hour", &ledger.hour), window("This day", &ledger.day)]
}

/// The number of calls at which a window counts as nearly full: nine tenths of the cap, rounded up.
fn nearly_full_threshold(cap: u32) -> u32 {
    cap - cap / 10
}

fn describe_guard(ledger: &LedgerStatus, now: DateTime<Utc>) -> Vec<(&'static str, FactValue)> {
    let mut facts: Vec<(&'static str, FactValue)> = Vec::new();
    if let Some(back_off) = &ledger.back_off {
        facts.push(("back-off", FactValue::from_moment(back_off.until, now)));
    }
    if ledger.probe.is_some() {
        facts.push(("probe", "one call tests whether the clerk answers again".into()));
    }
    let full = |paths: &[steward_domain::steward::guard::ExhaustedPath]| {
        let names: Vec<&str> = paths.iter().take(5).map(|exhausted| exhausted.path.as_str()).collect();
        let more = paths.len().saturating_sub(5);
        if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
    };
    if !ledger.full_tasks.is_empty() {
        facts.push(("tasks without calls left", full(&ledger.full_tasks).into()));
    }
    if !ledger.full_matters.is_empty() {
        facts.push(("matters without calls left", full(&ledger.full_matters).into()));
    }
    let usage = &ledger.day_usage;
    facts.push(("tokens in 24 h", format!("{} in, {} out", usage.prompt_tokens, usage.completion_tokens).into()));
    facts
}

async fn describe_workers(
    app: &SharedAppState,
    settings: &DashboardSettings,
    now: DateTime<Utc>,
) -> Result<Vec<LabeledValue>, PageError> {
    let queue = &settings.task_queue;
    let clerk_queue = clerk_queue(queue);
    let (stewards, clerks) = tokio::join!(
        app.temporal.list_queue_workers(queue, TaskQueueType::Workflow),
        app.temporal.list_queue_workers(&clerk_queue, TaskQueueType::Activity)
    );
    let describe = |listed: Result<Vec<QueueWorker>, TemporalQueryError>| match listed {
        Err(e) => e.to_string(),
        Ok(workers) if workers.is_empty() => "none in the last five minutes".into(),
        Ok(workers) => {
            let seen = |worker: &QueueWorker| {
                worker.seen_at.map(|at| format!(" ({})", format_age(at, now))).unwrap_or_default()
            };
            workers.iter().map(|worker| format!("{}{}", worker.name, seen(worker))).collect::<Vec<_>>().join(", ")
        }
    };
    let lag = app.views.measure_tick_lag(&settings.cadence, now).await?;
    let late = match (&lag.worst, lag.late) {
        _ if stop::is_stopped(app.views.root()) => "stopped: no matter is checked until the vault is resumed".into(),
        (Some((matter, seconds)), late) if late > 0 => {
            format!("{late} matters are late; {matter} is the latest, by {} min", seconds / 60)
        }
        _ => "none: every matter was checked on time".into(),
    };
    let mut facts = vec![("stewards", describe(stewards)), ("clerks", describe(clerks)), ("schedule lag", late)];
    if lag.never > 0 {
        facts.push(("never checked", format!("{} matters", lag.never)));
    }
    Ok(facts)
}

async fn describe_index(app: &SharedAppState, now: DateTime<Utc>) -> Result<Vec<LabeledValue>, PageError> {
    let counts = app.views.read().count_records(Utc::now()).await?;
    let synced = counts.last_sync_at.map_or_else(|| "never".into(), |at| format_age(at, now));
    Ok(vec![
        (
            "matters",
            format!("{} open, {} done, {} archived", counts.matters.open, counts.matters.done, counts.matters.archived),
        ),
        (
            "tasks",
            format!("{} open, {} done, {} archived", counts.tasks.open, counts.tasks.done, counts.tasks.archived),
        ),
        ("signals", format!("{}, {} new", counts.signals, counts.fresh_signals)),
        ("audit records", counts.actions.to_string()),
        ("records that cannot be used", counts.problems.to_string()),
        ("files read", synced),
    ])
}

fn build_stream_row(count: StreamCount, now: DateTime<Utc>) -> FleetStreamRow {
    FleetStreamRow {
        state: match (count.paused, &count.last_error) {
            (true, _) => "paused",
            (false, Some(_)) => "failing",
            (false, None) => "on",
        },
        name: count.source,
        new: count.new,
        read: count.extracted,
        parked: count.parked,
        newest: count.newest_at.map(|at| format_age(at, now)).unwrap_or_default(),
        error: count.last_error.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_with_a_small_cap_is_not_nearly_full_while_it_is_empty() {
        assert_eq!([0, 1, 5, 10, 60, u32::MAX].map(nearly_full_threshold), [0, 1, 5, 9, 54, 3_865_470_566]);
    }
}
