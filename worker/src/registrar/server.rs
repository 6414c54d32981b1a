//! What the server says of our schedules: the listing, page by page, and one schedule in full.
//!
//! A listing costs one call for a thousand schedules and may lag behind by moments; a description
//! is exact and costs a call each. A listing counts only when every page of it came. Nothing is
//! changed here: [`super::edit`] does that. Listing and descriptions go to [`super::plan`].

use super::Registrar;
use super::facts::{self, Facts};
use super::plan::{Contents, KnownSchedule};
use super::routine::routine;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use temporalio_client::tonic::{Code, IntoRequest, Request, Status};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleActionResult, ScheduleListEntry};
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// Schedules in one page of a listing; the server gives no more at once.
const PAGE: i32 = 1000;

/// A server describes a schedule to one asker at a time and refuses the others, and the SDK does not
/// ask again: we do after 0.1 s, and up to 1.6 s later each time longer, together 3.1 s.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_millis(1_600);

/// Why schedules could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistrarError {
    /// The listing failed before its last page; nothing was done.
    #[error("list the schedules (page {page}): {}; nothing was changed, the next round tries again", said(source))]
    Listing {
        /// Counted from 1.
        page: usize,
        source: Box<Status>,
    },
    /// The server answered with a page it had given before; nothing was done.
    #[error("list the schedules: the server repeats page {page}; nothing was changed, the next round tries again")]
    ListingRepeats {
        /// Counted from 1.
        page: usize,
    },
    /// One call about one schedule failed.
    #[error("{what} schedule {id}: {}", said(source))]
    Call { what: &'static str, id: String, source: Box<Status> },
    /// Somebody else changed the schedule between our reading and our writing, every time.
    #[error("update schedule {id}: somebody else changes it at the same time; run it again")]
    Contended { id: String },
}

/// One run that a schedule started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecentRun {
    /// When it was started.
    pub(crate) at: Option<DateTime<Utc>>,
    pub(crate) workflow_id: String,
    /// `running`, `completed`, `failed`, `timed_out`, …: as the schedule last saw it.
    pub(crate) status: String,
}

/// One schedule of ours, as `steward schedules list` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScheduleRow {
    pub(crate) id: String,
    /// The path its id names; `None` for an id that no matter can have.
    pub(crate) matter: Option<String>,
    /// Seconds between two ticks; 0 when it has no interval, or more than one.
    pub(crate) interval_seconds: u64,
    /// Seconds into the interval at which it ticks.
    pub(crate) phase_seconds: u64,
    pub(crate) paused: bool,
    pub(crate) note: String,
    /// `None` when it is paused, or when the listing knows of none yet.
    pub(crate) next_run: Option<DateTime<Utc>>,
    /// Newest first; the server keeps the last few.
    pub(crate) recent: Vec<RecentRun>,
}

impl Registrar {
    /// The schedules of ours, by id; `now` tells which of the listed times is the next.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`] and [`RegistrarError::ListingRepeats`].
    pub(crate) async fn list(&self, now: DateTime<Utc>) -> Result<Vec<ScheduleRow>, RegistrarError> {
        let entries = self.entries(facts::EVERY_PREFIX).await?;
        let ours = entries.into_iter().filter(|entry| {
            let steward =
                entry.schedule_id.starts_with(facts::ID_PREFIX) && workflow_type(entry) == facts::WORKFLOW_TYPE;
            steward || routine(&entry.schedule_id, workflow_type(entry)).is_some()
        });
        Ok(ours.map(|entry| row(entry, now)).collect())
    }

    /// Every schedule whose id begins with ours, of whatever workflow type.
    pub(super) async fn known(&self) -> Result<Vec<KnownSchedule>, RegistrarError> {
        Ok(self.entries(facts::ID_PREFIX).await?.into_iter().map(known).collect())
    }

    /// One schedule in full; `None` when there is none.
    pub(super) async fn describe(&self, id: &str) -> Result<Option<svc::DescribeScheduleResponse>, RegistrarError> {
        let request = svc::DescribeScheduleRequest { namespace: self.namespace(), schedule_id: id.to_owned() };
        let mut service = self.client.connection().workflow_service();
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = service.describe_schedule(request.clone().into_request()).await;
            match answer {
                Err(status) if status.code() == Code::ResourceExhausted && pause <= LAST_PAUSE => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                answer => return unless_missing("describe", id, answer.map(|it| it.into_inner())),
            }
        }
    }

    pub(super) fn namespace(&self) -> String {
        self.client.options().namespace.clone()
    }

    async fn entries(&self, prefix: &str) -> Result<Vec<ScheduleListEntry>, RegistrarError> {
        let mut service = self.client.connection().workflow_service();
        let mut found = BTreeMap::new();
        let mut token = Vec::new();
        for page in 1.. {
            let request = svc::ListSchedulesRequest {
                namespace: self.namespace(),
                maximum_page_size: PAGE,
                next_page_token: token.clone(),
                query: format!("ScheduleId STARTS_WITH '{prefix}'"),
            };
            let answer = service.list_schedules(Request::new(request)).await;
            let answer =
                answer.map_err(|status| RegistrarError::Listing { page, source: Box::new(status) })?.into_inner();
            let ours = answer.schedules.into_iter().filter(|entry| entry.schedule_id.starts_with(prefix));
            found.extend(ours.map(|entry| (entry.schedule_id.clone(), entry)));
            if answer.next_page_token.is_empty() {
                break;
            }
            if answer.next_page_token == token {
                return Err(RegistrarError::ListingRepeats { page });
            }
            token = answer.next_page_token;
        }
        Ok(found.into_values().collect())
    }
}

/// What a description says, for the planner.
pub(super) fn described(id: &str, answer: svc::DescribeScheduleResponse) -> KnownSchedule {
    let schedule = answer.schedule.unwrap_or_default();
    let state = schedule.state.clone().unwrap_or_default();
    KnownSchedule {
        id: id.to_owned(),
        workflow_type: facts::workflow_type(&schedule).to_owned(),
        paused: state.paused,
        note: state.notes,
        mark: facts::mark_of(schedule.spec.as_ref()),
        contents: Contents::Described(Facts::of(&schedule)),
    }
}

/// `None` for a schedule that is not there: listings lag, and others delete too.
pub(super) fn unless_missing<T>(
    what: &'static str,
    id: &str,
    answer: Result<T, Status>,
) -> Result<Option<T>, RegistrarError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(RegistrarError::Call { what, id: id.to_owned(), source: Box::new(status) }),
    }
}

fn known(entry: ScheduleListEntry) -> KnownSchedule {
    let workflow_type = workflow_type(&entry).to_owned();
    let info = entry.info.unwrap_or_default();
    KnownSchedule {
        id: entry.schedule_id,
        workflow_type,
        paused: info.paused,
        note: info.notes,
        mark: facts::mark_of(info.spec.as_ref()),
        contents: Contents::Listed { cadence: facts::cadence(info.spec.as_ref()) },
    }
}

fn row(entry: ScheduleListEntry, now: DateTime<Utc>) -> ScheduleRow {
    let info = entry.info.unwrap_or_default();
    let intervals = info.spec.map(|spec| spec.interval).unwrap_or_default();
    let only = if let [only] = &intervals[..] { Some(only) } else { None };
    let seconds = |seconds: Option<i64>| seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let times = info.future_action_times.iter().filter_map(|at| time(at.seconds, at.nanos));
    let next_run = times.filter(|at| *at > now).min();
    let mut recent: Vec<RecentRun> = info.recent_actions.into_iter().map(recent_run).collect();
    recent.sort_by_key(|run| std::cmp::Reverse(run.at));
    ScheduleRow {
        matter: facts::matter_of(&entry.schedule_id).map(String::from),
        id: entry.schedule_id,
        interval_seconds: seconds(only.and_then(|it| it.interval).map(|it| it.seconds)),
        phase_seconds: seconds(only.and_then(|it| it.phase).map(|it| it.seconds)),
        next_run: next_run.filter(|_| !info.paused),
        paused: info.paused,
        note: info.notes,
        recent,
    }
}

fn recent_run(result: ScheduleActionResult) -> RecentRun {
    let at = result.actual_time.or(result.schedule_time);
    let status = WorkflowExecutionStatus::try_from(result.start_workflow_status);
    let name = status.map_or("", |status| status.as_str_name()).trim_start_matches("WORKFLOW_EXECUTION_STATUS_");
    RecentRun {
        at: at.and_then(|at| time(at.seconds, at.nanos)),
        workflow_id: result.start_workflow_result.map(|run| run.workflow_id).unwrap_or_default(),
        status: name.to_ascii_lowercase(),
    }
}

fn time(seconds: i64, nanos: i32) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}

fn workflow_type(entry: &ScheduleListEntry) -> &str {
    let name = entry.info.as_ref().and_then(|info| info.workflow_type.as_ref());
    name.map_or("", |name| &name.name)
}

/// A status as a person would read it: its code and the server's own words.
fn said(status: &Status) -> String {
    format!("{} ({})", status.message(), status.code())
}
