//! `steward_status`: how the vault and its stewards are now, troubles first.
//!
//! A process without the server of the dashboard knows less; then a notice says what is left out.

use super::READ_STEWARD;
use super::facts::{open_views, show_path, wait_for};
use super::wiki_runs::count_waiting_runs;
use crate::http::holder::VaultHolder;
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tokens::count_fitting;
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use crate::views::problems::{list_attention_items, list_vault_items};
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::gates::mode::ModeName;
use steward_domain::steward::guard::{LedgerStatus, WindowFill};
use steward_domain::steward::tick::Cadence;
use steward_domain::time::format_seconds;
use steward_vault::gates::stop;
use steward_vault::index::StreamCount;

/// What the troubles and the streams may take of a result each, in tokens.
const MAX_PART_TOKENS: usize = 3_000;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_status",
    title: "Status",
    description: "Says what needs attention, the mode, a stop, how full the windows of model calls are, late checks, and the streams. \
        Example: steward_status()",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<StatusArguments>,
    result: Some(describe_result::<StatusResult>),
    run: show_status,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {}

#[derive(Debug, Serialize, JsonSchema)]
struct StatusResult {
    /// The worst first.
    troubles: Vec<Trouble>,
    /// Absent if no process runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopInForce>,
    /// Actions and runs that wait for a person.
    waiting: u64,
    guard: Vec<GuardWindow>,
    /// Outside words: why no model is asked now.
    #[serde(skip_serializing_if = "Option::is_none")]
    guard_refusal: Option<OutsideWords>,
    late_matters: u64,
    /// Outside words: the path of the matter that is latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_matter: Option<OutsideWords>,
    /// By how many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_seconds: Option<i64>,
    streams: Vec<StreamLine>,
    /// What is left out, and why.
    notices: Vec<String>,
}

/// Something that needs attention.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct Trouble {
    /// Outside words: what has it.
    subject: OutsideWords,
    /// Outside words: what it is, with the fix.
    problem: OutsideWords,
}

/// A stop: nothing is changed until a person resumes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct StopInForce {
    /// Outside words: since when.
    at: OutsideWords,
    /// Outside words: who stopped.
    by: OutsideWords,
    /// Outside words: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<OutsideWords>,
}

impl StopInForce {
    pub(super) fn read(call: &ToolCall) -> Option<Self> {
        let stop = stop::read_stop(call.vault.root())?;
        Some(Self { at: stop.at.into(), by: stop.by.into(), reason: stop.reason.map(Into::into) })
    }
}

/// The calls of models in a window, and how many it allows.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct GuardWindow {
    window: String,
    used: u64,
    cap: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_free: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct StreamLine {
    /// Outside words: its name.
    stream: OutsideWords,
    /// Events that wait.
    new: u64,
    read: u64,
    /// Events that could not be read.
    unreadable: u64,
    paused: bool,
    /// Outside words: why its last run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<OutsideWords>,
}

fn show_status(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let StatusArguments {} = call.read_arguments()?;
    let views = open_views(call)?;
    let now = Utc::now();
    let mut notices = Vec::new();
    let mode = read_mode(call, &views);
    if mode.is_none() {
        notices.push("no_process: no process serves the vault, so nothing is checked; `steward up` starts one".into());
    }
    let (guard, guard_refusal) = match read_guard(call) {
        Some(guard) => guard,
        None => {
            notices.push("guard_unknown: over stdio the windows are not read; `steward status` shows them".into());
            (Vec::new(), None)
        }
    };
    let lag = wait_for(views.measure_tick_lag(&read_cadence(call, &views), now))?;
    let (latest_matter, late_seconds) = lag.worst.map(|(path, seconds)| (show_path(&path), seconds)).unzip();
    let mut streams: Vec<StreamLine> =
        wait_for(views.list_streams(&[]))?.into_iter().map(|row| show_stream(row.count)).collect();
    let shown = count_fitting(&streams, MAX_PART_TOKENS);
    if shown < streams.len() {
        notices.push(format!("more_streams: {} more streams are not shown", streams.len() - shown));
        streams.truncate(shown);
    }
    let mut troubles = list_troubles(call, &views)?;
    note_cut(&mut troubles, MAX_PART_TOKENS, &mut notices);
    answer_value(&StatusResult {
        troubles,
        mode,
        stop: StopInForce::read(call),
        waiting: wait_for(views.actions().count_pending_actions(now))? + count_waiting_runs(call)?,
        guard,
        guard_refusal,
        late_matters: lag.late,
        latest_matter,
        late_seconds,
        streams,
        notices,
    })
}

/// Everything that is known to need attention, the worst first.
pub(super) fn list_troubles(call: &ToolCall, views: &VaultViews) -> Result<Vec<Trouble>, ToolError> {
    let items = match &call.vault.app {
        Some(app) => wait_for(list_attention_items(app))?,
        None => wait_for(list_vault_items(views))?,
    };
    Ok(items.into_iter().map(|item| Trouble { subject: item.subject.into(), problem: item.problem.into() }).collect())
}

/// Keeps as many troubles as fit, and notes how many do not.
pub(super) fn note_cut(troubles: &mut Vec<Trouble>, limit: usize, notices: &mut Vec<String>) {
    let shown = count_fitting(troubles, limit);
    if shown < troubles.len() {
        notices
            .push(format!("more_troubles: {} more need attention; the dashboard lists them", troubles.len() - shown));
        troubles.truncate(shown);
    }
}

/// The mode in force, as the dashboard names it; `None` over stdio if no process runs.
fn read_mode(call: &ToolCall, views: &VaultViews) -> Option<String> {
    let (mode, ceiling) = match &call.vault.app {
        Some(app) => {
            let settings = app.read_settings();
            (settings.policy.mode, settings.default_ceiling)
        }
        None => match views.holder() {
            VaultHolder::Runs(record) => (record.policy.mode, record.default_ceiling.unwrap_or_default()),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => return None,
        },
    };
    Some(ModeName::from_settings(mode, ceiling).as_str().to_owned())
}

/// How often the process that holds the vault checks.
pub(super) fn read_cadence(call: &ToolCall, views: &VaultViews) -> Cadence {
    if let Some(app) = &call.vault.app {
        return app.read_settings().cadence;
    }
    match views.holder() {
        VaultHolder::Runs(record) => record.cadence.unwrap_or_default(),
        VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => Cadence::default(),
    }
}

/// The windows of the rate guard, and why it would refuse a call; `None` if this process has no ledger.
fn read_guard(call: &ToolCall) -> Option<(Vec<GuardWindow>, Option<OutsideWords>)> {
    let status = wait_for(call.vault.app.as_ref()?.read_guard_status())?;
    let windows = status.ledger.as_ref().map(show_windows).unwrap_or_default();
    Some((windows, status.refusal.map(|refusal| refusal.reason.into())))
}

fn show_windows(ledger: &LedgerStatus) -> Vec<GuardWindow> {
    let show = |window: &str, fill: &WindowFill| GuardWindow {
        window: window.to_owned(),
        used: u64::from(fill.used),
        cap: u64::from(fill.cap),
        next_free: fill.next_free.map(format_seconds),
    };
    vec![show("minute", &ledger.minute), show("hour", &ledger.hour), show("day", &ledger.day)]
}

fn show_stream(count: StreamCount) -> StreamLine {
    StreamLine {
        stream: count.source.into(),
        new: count.new,
        read: count.extracted,
        unreadable: count.parked,
        paused: count.paused,
        error: count.last_error.map(Into::into),
    }
}
