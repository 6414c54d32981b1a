//! The fleet: what may be done, how full the guard is, who works, what comes in, what is wrong.
//!
//! Of the policy that of the process that holds the vault; of the guard what the next call would hear. A server that gives
//! no answer is told in its place and keeps nothing else from being shown.

use super::PageError;
use super::PageFrame;
use super::format_age;
use super::format_moment;
use super::format_written_moment;
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::http::app::{DashboardSettings, SharedAppState};
use crate::temporal::client::{QueueWorker, TemporalQueryError};
use crate::views::operator_events::{self, OperatorEventRow};
use crate::views::problems::{self, AttentionItem};
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use chrono::{DateTime, Utc};
use steward_domain::action::mutation::MutationClass;
use steward_domain::steward::guard::{GuardStatus, LedgerStatus, WindowFill};
use steward_domain::time;
use steward_vault::gates::stop;
use steward_vault::index::StreamCount;
use steward_workflows::clerk_queue;
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;

/// What people did to the fleet that is told; the newest.
const DEEDS: usize = 12;

type LabeledValue = (&'static str, String);

/// One window of the guard.
struct GuardWindowRow {
    name: &'static str,
    used: u32,
    cap: u32,
    /// Below it is calm, above the other nearly full.
    low: u32,
    high: u32,
    /// When the next call may go.
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
    troubles: Vec<AttentionItem>,
    modes: Vec<LabeledValue>,
    refuses: Option<String>,
    windows: Vec<GuardWindowRow>,
    guard: Vec<LabeledValue>,
    workers: Vec<LabeledValue>,
    index: Vec<LabeledValue>,
    streams: Vec<FleetStreamRow>,
    deeds: Vec<OperatorEventRow>,
}

pub(crate) async fn show_fleet(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
) -> Result<Response, PageError> {
    let now = Utc::now();
    let (status, settings) = (app.read_guard_status().await, app.read_settings());
    let streams = app.index.list_stream_counts().await?;
    let fleet = FleetPage {
        troubles: problems::list_attention_items(&app).await?,
        modes: describe_modes(&settings),
        refuses: describe_guard_refusal(status.as_ref()),
        windows: status
            .iter()
            .filter_map(|status| status.ledger.as_ref())
            .flat_map(|l| build_guard_windows(l, now))
            .collect(),
        guard: status.iter().filter_map(|status| status.ledger.as_ref()).flat_map(|l| describe_guard(l, now)).collect(),
        workers: describe_workers(&app, &settings, now).await?,
        index: describe_index(&app, now).await?,
        deeds: operator_events::read_newest_events(&app.root, DEEDS)
            .into_iter()
            .map(|deed| OperatorEventRow { at: format_written_moment(&deed.at), ..deed })
            .collect(),
        streams: streams.into_iter().map(|count| build_stream_row(count, now)).collect(),
        page: PageFrame::load(&app, &caller, "fleet", &uri).await?,
    };
    Ok(render_page(&fleet))
}

fn describe_modes(settings: &DashboardSettings) -> Vec<LabeledValue> {
    let policy = &settings.policy;
    let mut told = vec![
        ("mode", format!("{} (STEWARD_LIVE_MODE; nothing here raises it)", policy.mode.as_str())),
        (
            "confidence",
            format!(
                "{:.2} for live, {:.2} for high confidence only",
                policy.confidence_threshold, policy.high_confidence_threshold
            ),
        ),
    ];
    for class in MutationClass::ALL {
        let name = match class {
            MutationClass::StateChange => "state changes",
            MutationClass::ContextEdit => "context edits",
            MutationClass::ParentMatter => "moves of tasks",
            MutationClass::Related => "relations",
        };
        told.push((name, policy.class_ceiling(class).as_str().to_owned()));
    }
    told.push(("sources", format!("{} unless they say otherwise", settings.default_ceiling.as_str())));
    told
}

fn describe_guard_refusal(status: Option<&GuardStatus>) -> Option<String> {
    let Some(status) = status else { return Some("the count of calls cannot be opened: see `steward status`".into()) };
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

/// From where on a window is nearly full: nine tenths, and never less than one call.
fn nearly_full_threshold(cap: u32) -> u32 {
    cap - cap / 10
}

fn describe_guard(ledger: &LedgerStatus, now: DateTime<Utc>) -> Vec<LabeledValue> {
    let mut told = Vec::new();
    if let Some(back_off) = &ledger.back_off {
        told.push((
            "back-off",
            format!("until {}, {}", format_moment(back_off.until), format_age(back_off.until, now)),
        ));
    }
    if ledger.probe.is_some() {
        told.push(("probe", "one call is out to see whether the clerk answers again".into()));
    }
    let full = |paths: &[steward_domain::steward::guard::ExhaustedPath]| {
        let names: Vec<&str> = paths.iter().take(5).map(|one| one.path.as_str()).collect();
        let more = paths.len().saturating_sub(5);
        if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
    };
    if !ledger.full_tasks.is_empty() {
        told.push(("tasks without calls left", full(&ledger.full_tasks)));
    }
    if !ledger.full_matters.is_empty() {
        told.push(("matters without calls left", full(&ledger.full_matters)));
    }
    let usage = &ledger.day_usage;
    told.push(("tokens in 24 h", format!("{} in, {} out", usage.prompt_tokens, usage.completion_tokens)));
    told
}

async fn describe_workers(
    app: &SharedAppState,
    settings: &DashboardSettings,
    now: DateTime<Utc>,
) -> Result<Vec<LabeledValue>, PageError> {
    let queue = &settings.task_queue;
    let of_the_clerk = clerk_queue(queue);
    let (stewards, clerks) = tokio::join!(
        app.temporal.list_queue_workers(queue, TaskQueueType::Workflow),
        app.temporal.list_queue_workers(&of_the_clerk, TaskQueueType::Activity)
    );
    let said = |asked: Result<Vec<QueueWorker>, TemporalQueryError>| match asked {
        Err(away) => away.to_string(),
        Ok(some) if some.is_empty() => "nobody in the last five minutes".into(),
        Ok(some) => {
            let seen =
                |one: &QueueWorker| one.seen_at.map(|at| format!(" ({})", format_age(at, now))).unwrap_or_default();
            some.iter().map(|one| format!("{}{}", one.name, seen(one))).collect::<Vec<_>>().join(", ")
        }
    };
    let released = stop::list_stop_events(&app.root, 1).pop().filter(|turn| !turn.stopped);
    let released = released.and_then(|turn| time::parse(&turn.stop.at));
    let lag = app.index.measure_tick_lag(&settings.cadence, released, now).await?;
    let late = match (&lag.worst, lag.late) {
        _ if stop::is_stopped(&app.root) => "stopped: nobody is looked at until it is resumed".into(),
        (Some((matter, seconds)), late) if late > 0 => {
            format!("{late} matters are late, {matter} the most: by {} min", seconds / 60)
        }
        _ => "none: every matter was looked at in its time".into(),
    };
    let mut told = vec![("stewards", said(stewards)), ("clerks", said(clerks)), ("schedule lag", late)];
    if lag.never > 0 {
        told.push(("never looked at", format!("{} matters", lag.never)));
    }
    Ok(told)
}

async fn describe_index(app: &SharedAppState, now: DateTime<Utc>) -> Result<Vec<LabeledValue>, PageError> {
    let counts = app.index.count_records().await?;
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
    fn a_window_of_few_calls_is_not_nearly_full_while_it_is_empty() {
        assert_eq!([0, 1, 5, 10, 60, u32::MAX].map(nearly_full_threshold), [0, 1, 5, 9, 54, 3_865_470_566]);
    }
}
