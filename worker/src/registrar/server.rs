//! What the server says of our schedules: the listing, which every face shows, and one schedule in full.
//!
//! A listing costs one call for a thousand schedules and may lag behind by moments; a description
//! is exact and costs a call each. A listing counts only when every page of it came. Nothing is
//! changed here: [`super::edit`] does that. Listing and descriptions go to [`super::plan`].

use super::ScheduleRegistrar;
use super::facts::{self, ScheduleFacts};
use super::owner::NamespaceConflict;
use super::plan::{KnownSchedule, ScheduleContents};
use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_server::views::schedules::{self, ScheduleListingError, ScheduleRow};
use temporalio_client::tonic::{Code, IntoRequest, Status};
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleListEntry;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// A server describes a schedule to one asker at a time and refuses the others, and the SDK does not
/// ask again: we do after 0.1 s, and up to 1.6 s later each time longer, together 3.1 s.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_millis(1_600);

/// Why schedules could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistrarError {
    /// Without a whole listing nothing was done.
    #[error(transparent)]
    Listing(#[from] ScheduleListingError),
    /// One call about one schedule failed.
    #[error("{what} schedule {id}: {}", format_status(source))]
    Call { what: &'static str, id: String, source: Box<Status> },
    /// Somebody else changed the schedule between our reading and our writing, every time.
    #[error("update schedule {id}: somebody else changes it at the same time; run it again")]
    Contended { id: String },
    /// The schedule is another vault's.
    #[error("change schedule {id}: it belongs to another vault; `steward schedules plan` says more")]
    OfAnother { id: String },
    /// The namespace is another vault's, or may be.
    #[error(transparent)]
    Conflict(#[from] Box<NamespaceConflict>),
}

impl ScheduleRegistrar {
    /// The schedules of this vault, by id; `now` tells which of the listed times is the next.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`].
    pub(crate) async fn list_schedules(&self, now: DateTime<Utc>) -> Result<Vec<ScheduleRow>, RegistrarError> {
        let mut rows = schedules::list_schedules(&self.client, schedules::EVERY_PREFIX, now).await?;
        rows.retain(|row| !self.settings.is_foreign_vault(row.vault));
        Ok(rows)
    }

    /// Every schedule whose id begins with ours, of whatever workflow type and vault.
    pub(super) async fn list_entries(&self) -> Result<Vec<ScheduleListEntry>, RegistrarError> {
        Ok(schedules::list_entries(&self.client, schedules::EVERY_PREFIX).await?)
    }

    /// One schedule in full; `None` when there is none.
    pub(super) async fn describe_schedule(
        &self,
        id: &str,
    ) -> Result<Option<svc::DescribeScheduleResponse>, RegistrarError> {
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
                answer => return none_if_missing("describe", id, answer.map(|it| it.into_inner())),
            }
        }
    }

    pub(super) fn namespace(&self) -> String {
        self.client.options().namespace.clone()
    }
}

/// What a description says, for the planner.
pub(super) fn known_from_description(id: &str, answer: svc::DescribeScheduleResponse) -> KnownSchedule {
    let schedule = answer.schedule.unwrap_or_default();
    let state = schedule.state.clone().unwrap_or_default();
    KnownSchedule {
        id: id.to_owned(),
        workflow_type: facts::find_workflow_type(&schedule).to_owned(),
        paused: state.paused,
        note: state.notes,
        mark: facts::find_mark(schedule.spec.as_ref()),
        contents: ScheduleContents::Described(ScheduleFacts::from_schedule(&schedule)),
    }
}

/// `None` for a schedule that is not there: listings lag, and others delete too.
pub(super) fn none_if_missing<T>(
    what: &'static str,
    id: &str,
    answer: Result<T, Status>,
) -> Result<Option<T>, RegistrarError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(status) if status.code() == Code::NotFound && !is_namespace_missing(&status) => Ok(None),
        Err(status) => Err(RegistrarError::Call { what, id: id.to_owned(), source: Box::new(status) }),
    }
}

/// Whether the whole namespace is gone, which the server tells by the same code as a schedule that is.
fn is_namespace_missing(status: &Status) -> bool {
    let failure = b"NamespaceNotFoundFailure";
    status.details().windows(failure.len()).any(|part| part == failure)
}

pub(super) fn known_from_listing(entry: ScheduleListEntry) -> KnownSchedule {
    let workflow_type = schedules::workflow_type(&entry).to_owned();
    let info = entry.info.unwrap_or_default();
    KnownSchedule {
        id: entry.schedule_id,
        workflow_type,
        paused: info.paused,
        note: info.notes,
        mark: facts::find_mark(info.spec.as_ref()),
        contents: ScheduleContents::Listed { cadence: facts::describe_cadence(info.spec.as_ref()) },
    }
}

/// A status as a person would read it: its code and the server's own words.
fn format_status(status: &Status) -> String {
    format!("{} ({})", status.message(), status.code())
}
