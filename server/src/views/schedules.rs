//! Lists Steward's schedules at Temporal, page by page.
//!
//! A listing costs one call per thousand schedules and may be a few moments old. It counts only if every page arrived.
//! Entries have plain ids, those of a tenant too; schedules of another tenant are left out. Nothing is changed here.

use chrono::{DateTime, Utc};
use mark::ScheduleMark;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use steward_domain::fleet::names::VaultNames;
use steward_vault::files::identity::VaultId;
use steward_workflows::CALIBRATION_SCHEDULE;
use steward_workflows::DRILL_SCHEDULE;
use steward_workflows::EXTRACT_SCHEDULE;
use steward_workflows::PURGE_SCHEDULE;
use steward_workflows::ROUTER_SCHEDULE;
use steward_workflows::SCHEDULE_PREFIX;
use steward_workflows::TRACKER_SCHEDULE;
use temporalio_client::Client;
use temporalio_client::tonic::{Request, Status};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleActionResult, ScheduleListEntry};
use temporalio_common::protos::temporal::api::workflowservice::v1::ListSchedulesRequest;

pub mod mark;
pub mod registered;

/// The workflow of a matter's ticks. A matter's schedule that starts any other workflow is not Steward's.
pub const TICK_WORKFLOW: &str = "StewardWorkflow";
/// The search attribute of a tenant's schedules and runs. A vault alone sets none.
pub const TENANT_ATTRIBUTE: &str = "StewardTenant";
/// The prefix of the ids of all Steward schedules, with or without a matter.
pub const SCHEDULE_ID_PREFIX: &str = "al-";
/// The schedules without a matter, each with the workflow that it starts.
pub const VAULT_SCHEDULES: [(&str, &str); 6] = [
    (EXTRACT_SCHEDULE, "ExtractWorkflow"),
    (ROUTER_SCHEDULE, "RouterWorkflow"),
    (TRACKER_SCHEDULE, "TrackerWorkflow"),
    (CALIBRATION_SCHEDULE, "ReversalCalibrationWorkflow"),
    (DRILL_SCHEDULE, "ReversibilityDrillWorkflow"),
    (PURGE_SCHEDULE, "PurgeWorkflow"),
];
/// Schedules per page of a listing; the server returns no more at once.
const PAGE: i32 = 1000;
/// Most pages of one listing: 100,000 schedules.
const PAGES: usize = 100;
/// How long the server may take for one page: 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why schedules could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleListingError {
    /// The listing failed before its last page; nothing was done.
    #[error(
        "list the schedules (page {page}): {} ({}); nothing was changed, the next round tries again",
        source.message(),
        source.code()
    )]
    Broken {
        /// Counted from 1.
        page: usize,
        source: Box<Status>,
    },
    /// The server returned a page twice; nothing was done.
    #[error("list the schedules: the server repeats page {page}; nothing was changed, the next round tries again")]
    Repeats {
        /// Counted from 1.
        page: usize,
    },
    /// The server took too long for a page; nothing was done.
    #[error(
        "list the schedules (page {page}): no answer within {} s; nothing was changed, the next round tries again",
        PATIENCE.as_secs()
    )]
    Late {
        /// Counted from 1.
        page: usize,
    },
    /// There are more than 100,000; nothing was done.
    #[error(
        "list the schedules: more than {PAGES} pages of {PAGE}; nothing was changed: \
         check whether all of them are Steward's"
    )]
    Endless,
}

/// The note of a pause during a drain.
pub const DRAIN_NOTE: &str =
    "Paused by Steward: the vault is drained for a new build. `steward drain --end` resumes it.";

/// Whether Steward paused a schedule with this note: its matter is done, or the vault is drained. A person made any
/// other pause.
///
/// The text is the beginning of the notes that the worker writes.
#[must_use]
pub fn is_our_pause(note: &str) -> bool {
    note.starts_with("Paused by Steward:")
}

/// Whether the drain of the vault paused a schedule with this note.
#[must_use]
pub fn is_drain_pause(note: &str) -> bool {
    note.starts_with(DRAIN_NOTE)
}

/// Lists the Steward schedules that a person paused, by id. Reads at most `pages` pages of paused schedules, and
/// returns whether there are more.
///
/// # Errors
/// [`ScheduleListingError`].
pub(crate) async fn list_paused_by_hand(
    client: &Client,
    names: &VaultNames,
    pages: usize,
    now: DateTime<Utc>,
) -> Result<(Vec<ScheduleRow>, bool), ScheduleListingError> {
    let query = format!("{} AND TemporalSchedulePaused = true", build_query(names, SCHEDULE_ID_PREFIX));
    let (entries, more) = query_entries(client, query, pages).await?;
    let entries = keep_own_entries(entries, names).filter(is_steward_schedule);
    let rows = entries.map(|entry| parse_schedule_row(entry, names, now));
    // The server's filter may be older than the rows, so it is applied again.
    Ok((rows.filter(|row| row.paused && !is_our_pause(&row.note)).collect(), more))
}

/// One run that a schedule started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecentScheduleRun {
    /// When it was started.
    pub at: Option<DateTime<Utc>>,
    pub workflow_id: String,
    /// `started`, `completed`, `failed`, `timed_out`, …: as the schedule last saw it. A run that was started may have
    /// ended since.
    pub status: String,
}

/// One of Steward's schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScheduleRow {
    /// As it is at the server.
    pub id: String,
    /// The vault that its mark names; `None` if it names none.
    pub vault: Option<VaultId>,
    /// The matter that its id names; `None` for an id that no matter can have.
    pub matter: Option<String>,
    /// Seconds between two ticks; 0 when it has no interval or several.
    pub interval_seconds: u64,
    /// Seconds into the interval at which it ticks.
    pub phase_seconds: u64,
    pub paused: bool,
    /// Untrusted.
    pub note: String,
    /// `None` when it is paused, or when the listing has none yet.
    pub next_run: Option<DateTime<Utc>>,
    /// The newest first; the server keeps only the last few.
    pub recent: Vec<RecentScheduleRun>,
}

impl ScheduleRow {
    /// Whether it names another vault than `ours`; `None` stands for a vault without an id.
    #[must_use]
    pub fn is_of_other_vault(&self, ours: Option<VaultId>) -> bool {
        is_other_vault(self.vault, ours)
    }
}

/// Whether a schedule that names `vault` belongs to another vault than `ours`.
#[must_use]
pub fn is_other_vault(vault: Option<VaultId>, ours: Option<VaultId>) -> bool {
    vault.is_some() && vault != ours
}

/// Lists the Steward schedules of a vault whose plain ids begin with `prefix`, by id. The next run is the first listed
/// time after `now`.
///
/// # Errors
/// [`ScheduleListingError`].
pub async fn list_schedules(
    client: &Client,
    names: &VaultNames,
    prefix: &str,
    now: DateTime<Utc>,
) -> Result<Vec<ScheduleRow>, ScheduleListingError> {
    let entries = list_entries(client, names, prefix).await?.into_iter().filter(is_steward_schedule);
    Ok(entries.map(|entry| parse_schedule_row(entry, names, now)).collect())
}

/// Whether a schedule is one of Steward's, of any vault.
#[must_use]
pub fn is_steward_schedule(entry: &ScheduleListEntry) -> bool {
    let workflow = workflow_type(entry);
    let is_of_matter = entry.schedule_id.starts_with(SCHEDULE_PREFIX) && workflow == TICK_WORKFLOW;
    is_of_matter || VAULT_SCHEDULES.contains(&(entry.schedule_id.as_str(), workflow))
}

/// Lists all schedules whose plain ids begin with `prefix`, of any workflow, by id.
///
/// # Errors
/// [`ScheduleListingError`].
pub async fn list_entries(
    client: &Client,
    names: &VaultNames,
    prefix: &str,
) -> Result<Vec<ScheduleListEntry>, ScheduleListingError> {
    let (entries, more) = query_entries(client, build_query(names, prefix), PAGES).await?;
    if more {
        return Err(ScheduleListingError::Endless);
    }
    Ok(keep_own_entries(entries, names).filter(|entry| entry.schedule_id.starts_with(prefix)).collect())
}

/// Finds the tenant of any schedule in a namespace; `None` if no tenant uses it.
///
/// # Errors
/// [`ScheduleListingError`].
pub async fn find_any_tenant(client: &Client) -> Result<Option<String>, ScheduleListingError> {
    // Every vault has this routine, and it is created first.
    let query = format!("ScheduleId STARTS_WITH '{}'", VaultNames::qualify_prefix(EXTRACT_SCHEDULE));
    let (entries, _) = query_entries(client, query, 1).await?;
    Ok(entries.into_iter().find_map(|entry| Some(VaultNames::parse_id(&entry.schedule_id)?.1.to_string())))
}

/// The query for the schedules whose plain ids begin with `prefix`. The server's attribute only saves the reading of
/// other tenants' schedules: [`keep_own_entries`] decides.
fn build_query(names: &VaultNames, prefix: &str) -> String {
    let by_id = format!("ScheduleId STARTS_WITH '{prefix}'");
    match names.tenant() {
        Some(tenant) => format!("{TENANT_ATTRIBUTE} = '{tenant}' AND {by_id}"),
        None => by_id,
    }
}

/// The entries of a vault, with their plain ids.
fn keep_own_entries(entries: Vec<ScheduleListEntry>, names: &VaultNames) -> impl Iterator<Item = ScheduleListEntry> {
    entries.into_iter().filter_map(|mut entry| {
        entry.schedule_id = names.plain_id(&entry.schedule_id)?.to_owned();
        Some(entry)
    })
}

/// Runs a query, reads at most `pages` pages, and returns the schedules by id and whether there are more.
async fn query_entries(
    client: &Client,
    query: String,
    pages: usize,
) -> Result<(Vec<ScheduleListEntry>, bool), ScheduleListingError> {
    let mut service = client.connection().workflow_service();
    let mut found = BTreeMap::new();
    let mut token = Vec::new();
    for page in 1..=pages {
        let request = ListSchedulesRequest {
            namespace: client.options().namespace.clone(),
            maximum_page_size: PAGE,
            next_page_token: token.clone(),
            query: query.clone(),
        };
        let listed = tokio::time::timeout(PATIENCE, service.list_schedules(Request::new(request))).await;
        let listed = listed.map_err(|_| ScheduleListingError::Late { page })?;
        let response =
            listed.map_err(|status| ScheduleListingError::Broken { page, source: Box::new(status) })?.into_inner();
        found.extend(response.schedules.into_iter().map(|entry| (entry.schedule_id.clone(), entry)));
        if response.next_page_token.is_empty() {
            return Ok((found.into_values().collect(), false));
        }
        if response.next_page_token == token {
            return Err(ScheduleListingError::Repeats { page });
        }
        token = response.next_page_token;
    }
    Ok((found.into_values().collect(), true))
}

/// The workflow that a schedule starts; empty if the listing does not say.
#[must_use]
pub fn workflow_type(entry: &ScheduleListEntry) -> &str {
    let name = entry.info.as_ref().and_then(|info| info.workflow_type.as_ref());
    name.map_or("", |name| &name.name)
}

fn parse_schedule_row(entry: ScheduleListEntry, names: &VaultNames, now: DateTime<Utc>) -> ScheduleRow {
    let info = entry.info.unwrap_or_default();
    let mark = ScheduleMark::find_in_spec(info.spec.as_ref());
    let (vault, matter) = mark.map_or((None, None), |mark| (mark.vault, mark.matter));
    let intervals = info.spec.map(|spec| spec.interval).unwrap_or_default();
    let interval = if let [interval] = &intervals[..] { Some(interval) } else { None };
    let seconds = |seconds: Option<i64>| seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let times = info.future_action_times.iter().filter_map(|at| parse_timestamp(at.seconds, at.nanos));
    let next_run = times.filter(|at| *at > now).min();
    let mut recent: Vec<RecentScheduleRun> = info.recent_actions.into_iter().map(parse_recent_run).collect();
    recent.sort_by_key(|run| std::cmp::Reverse(run.at));
    ScheduleRow {
        matter: matter.map(String::from),
        id: names.qualify_id(&entry.schedule_id),
        vault,
        interval_seconds: seconds(interval.and_then(|spec| spec.interval).map(|span| span.seconds)),
        phase_seconds: seconds(interval.and_then(|spec| spec.phase).map(|span| span.seconds)),
        next_run: next_run.filter(|_| !info.paused),
        paused: info.paused,
        note: info.notes,
        recent,
    }
}

fn parse_recent_run(result: ScheduleActionResult) -> RecentScheduleRun {
    let at = result.actual_time.or(result.schedule_time);
    let status = WorkflowExecutionStatus::try_from(result.start_workflow_status);
    let name = match status {
        Ok(WorkflowExecutionStatus::Running) => "started",
        Ok(status) => status.as_str_name().trim_start_matches("WORKFLOW_EXECUTION_STATUS_"),
        Err(_) => "",
    };
    RecentScheduleRun {
        at: at.and_then(|at| parse_timestamp(at.seconds, at.nanos)),
        workflow_id: result.start_workflow_result.map(|run| run.workflow_id).unwrap_or_default(),
        status: name.to_ascii_lowercase(),
    }
}

fn parse_timestamp(seconds: i64, nanos: i32) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}
