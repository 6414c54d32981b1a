//! Reads schedules from the Temporal server: the listing of all, and the description of one.
//!
//! A listing costs one call for a thousand schedules and may lag behind by moments. A description is exact and costs
//! one call. A listing counts only if every page arrived. This module must not change schedules: [`super::edit`] does
//! that. Listing and descriptions go to [`super::plan`].

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

/// The first pause before a description is requested again: 0.1 s. Each further pause is twice as long.
///
/// A server describes a schedule to one client at a time and refuses the others, and the SDK does not try again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The last pause: 1.6 s, which makes 3.1 s in all.
const LAST_PAUSE: Duration = Duration::from_millis(1_600);

/// Why schedules could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistrarError {
    /// Without a complete listing nothing was done.
    #[error(transparent)]
    Listing(#[from] ScheduleListingError),
    /// One call about one schedule failed.
    #[error("{what} schedule {id}: {}", format_status(source))]
    Call { what: &'static str, id: String, source: Box<Status> },
    /// At every attempt somebody else changed the schedule between our reading and our writing.
    #[error("update schedule {id}: somebody else changes it at the same time; run the command again")]
    Contended { id: String },
    /// The schedule belongs to another vault.
    #[error("change schedule {id}: it belongs to another vault; see `steward schedules plan`")]
    OfAnother { id: String },
    /// The fleet does not let this process change it.
    #[error("change schedule {id}: {reason}")]
    NotPermitted { id: String, reason: String },
    /// The namespace belongs to another vault, or may belong to one.
    #[error(transparent)]
    Conflict(#[from] Box<NamespaceConflict>),
}

impl ScheduleRegistrar {
    /// Lists the schedules of this vault by id. `now` decides which of the listed times is the next.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`].
    pub(crate) async fn list_schedules(&self, now: DateTime<Utc>) -> Result<Vec<ScheduleRow>, RegistrarError> {
        let mut rows =
            schedules::list_schedules(&self.client, &self.settings.names, schedules::SCHEDULE_ID_PREFIX, now).await?;
        rows.retain(|row| !self.settings.is_foreign_vault(row.vault));
        Ok(rows)
    }

    /// Lists the plain ids of the schedules of this vault.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`].
    pub(crate) async fn list_plain_ids(&self) -> Result<Vec<String>, RegistrarError> {
        // Only the next runs depend on the time.
        let rows = self.list_schedules(DateTime::UNIX_EPOCH).await?;
        Ok(rows.iter().filter_map(|row| self.settings.names.plain_id(&row.id).map(str::to_owned)).collect())
    }

    /// Lists every schedule with our id prefix, of any workflow type and vault.
    pub(super) async fn list_entries(&self) -> Result<Vec<ScheduleListEntry>, RegistrarError> {
        Ok(schedules::list_entries(&self.client, &self.settings.names, schedules::SCHEDULE_ID_PREFIX).await?)
    }

    /// Describes one schedule in full; `None` if it does not exist.
    ///
    /// # Errors
    /// [`RegistrarError::Call`].
    pub(crate) async fn describe_schedule(
        &self,
        id: &str,
    ) -> Result<Option<svc::DescribeScheduleResponse>, RegistrarError> {
        let request = svc::DescribeScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.settings.names.qualify_id(id),
        };
        let mut service = self.client.connection().workflow_service();
        let mut pause = FIRST_PAUSE;
        loop {
            let response = service.describe_schedule(request.clone().into_request()).await;
            match response {
                Err(status) if status.code() == Code::ResourceExhausted && pause <= LAST_PAUSE => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                response => return none_if_missing("describe", id, response.map(|found| found.into_inner())),
            }
        }
    }

    pub(super) fn namespace(&self) -> String {
        self.client.options().namespace.clone()
    }
}

/// Converts a description for the planner.
pub(super) fn known_from_description(id: &str, description: svc::DescribeScheduleResponse) -> KnownSchedule {
    let schedule = description.schedule.unwrap_or_default();
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

/// Turns "not found" into `None`, because listings lag and others delete schedules too. `what` is the verb of the
/// error.
pub(super) fn none_if_missing<T>(
    what: &'static str,
    id: &str,
    response: Result<T, Status>,
) -> Result<Option<T>, RegistrarError> {
    match response {
        Ok(response) => Ok(Some(response)),
        Err(status) if status.code() == Code::NotFound && !is_namespace_missing(&status) => Ok(None),
        Err(status) => Err(RegistrarError::Call { what, id: id.to_owned(), source: Box::new(status) }),
    }
}

/// Whether the whole namespace is missing, which has the same status code as a missing schedule.
fn is_namespace_missing(status: &Status) -> bool {
    let failure = b"NamespaceNotFoundFailure";
    status.details().windows(failure.len()).any(|part| part == failure)
}

/// Converts an entry of a listing for the planner.
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

/// Formats a status for a person: the server's message and the code.
fn format_status(status: &Status) -> String {
    format!("{} ({})", status.message(), status.code())
}
