//! Changes one schedule: creates, deletes, triggers or edits it, and keeps the settings that belong to people.
//!
//! An edit reads the schedule, changes the copy, and writes it back with the conflict token of the reading. The server
//! answers a late write with "ok" and drops it. So every edit is read again, and repeated if it is missing.
//! [`super::apply`] and the cadence of a matter use edits. A schedule of another vault must be neither changed nor
//! triggered.

use super::ScheduleRegistrar;
use super::ScheduleStep;
use super::facts::{self, ScheduleFacts};
use super::plan::is_our_pause;
use super::server::{RegistrarError, none_if_missing};
use serde::Serialize;
use steward_domain::record::path::RecordPath;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_common::protos::temporal::api::enums::v1::ScheduleOverlapPolicy;
use temporalio_common::protos::temporal::api::schedule::v1 as spb;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;
use uuid::Uuid;

/// How often an edit is tried while others write at the same moment.
const ATTEMPTS: usize = 3;

/// The outcome of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleEditOutcome {
    /// The schedule was changed, and was read again to make sure.
    Changed,
    /// The schedule already had the wanted contents.
    Same,
    /// There is no such schedule.
    Missing,
}

/// The outcome of triggering a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScheduleTriggerOutcome {
    /// The schedule starts a run now, or one more after the open run.
    Triggered,
    /// A person has paused the schedule; no run is started.
    Paused,
    /// Steward has paused the schedule, for a drain or while its matter was done; no run is started.
    PausedByUs,
    /// There is no such schedule.
    Missing,
    /// The schedule with this id belongs to another vault; no run is started.
    OfAnother,
}

impl ScheduleRegistrar {
    /// Starts a tick of this matter now, or as soon as a running one ends; never two at once.
    ///
    /// However often it is triggered during a run, one more run follows. A paused schedule starts nothing.
    ///
    /// # Errors
    /// [`RegistrarError::Call`] when the server refuses or cannot be reached.
    pub(crate) async fn trigger_matter(&self, matter: &RecordPath) -> Result<ScheduleTriggerOutcome, RegistrarError> {
        self.trigger_schedule(&facts::schedule_id(matter)).await
    }

    /// Starts a run of a schedule now, or as soon as a running one ends; never two at once.
    ///
    /// # Errors
    /// As [`ScheduleRegistrar::trigger_matter`].
    pub(crate) async fn trigger_schedule(&self, id: &str) -> Result<ScheduleTriggerOutcome, RegistrarError> {
        // Read first, because the server would start a run of a paused schedule too.
        let Some(found) = self.describe_schedule(id).await? else { return Ok(ScheduleTriggerOutcome::Missing) };
        let schedule = found.schedule.unwrap_or_default();
        if self.is_marked_foreign(&schedule) {
            return Ok(ScheduleTriggerOutcome::OfAnother);
        }
        let state = schedule.state.unwrap_or_default();
        if state.paused {
            let ours = is_our_pause(&state.notes);
            return Ok(if ours { ScheduleTriggerOutcome::PausedByUs } else { ScheduleTriggerOutcome::Paused });
        }
        self.check_ownership(id).await?;
        // Not Skip: a signal that arrives after the open tick has read its signals would wait for the next interval.
        let overlap_policy = ScheduleOverlapPolicy::BufferOne.into();
        let trigger = spb::TriggerImmediatelyRequest { overlap_policy, ..Default::default() };
        let request = svc::PatchScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.settings.names.qualify_id(id),
            patch: Some(spb::SchedulePatch { trigger_immediately: Some(trigger), ..Default::default() }),
            request_id: create_request_id(),
            ..Default::default()
        };
        let response = self.client.connection().workflow_service().patch_schedule(request.into_request()).await;
        Ok(none_if_missing("trigger", id, response)?
            .map_or(ScheduleTriggerOutcome::Missing, |_| ScheduleTriggerOutcome::Triggered))
    }

    /// Sets the interval of this matter's schedule, with the phase and catch-up window that follow from it.
    ///
    /// `interval_seconds` is at least 1. Paused schedules stay paused; nothing else changes.
    ///
    /// # Errors
    /// [`RegistrarError::Call`], and [`RegistrarError::Contended`] if others keep writing.
    pub(crate) async fn set_matter_interval(
        &self,
        matter: &RecordPath,
        interval_seconds: u32,
    ) -> Result<ScheduleEditOutcome, RegistrarError> {
        let id = facts::schedule_id(matter);
        self.edit_own_schedule(&id, |schedule| facts::set_cadence(schedule, matter, interval_seconds.max(1))).await
    }

    /// Creates the schedule of a step; `false` if it exists already.
    pub(super) async fn create_matter_schedule(
        &self,
        step: &ScheduleStep,
        state: spb::ScheduleState,
    ) -> Result<bool, RegistrarError> {
        let schedule = self.build_matter_schedule(&step.matter, step.interval_seconds);
        self.create_schedule(&step.id, spb::Schedule { state: Some(state), ..schedule }).await
    }

    /// Creates a schedule; `false` if it exists already.
    pub(super) async fn create_schedule(&self, id: &str, schedule: spb::Schedule) -> Result<bool, RegistrarError> {
        self.check_ownership(id).await?;
        let request = svc::CreateScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.settings.names.qualify_id(id),
            search_attributes: facts::find_attributes(&schedule),
            schedule: Some(schedule),
            request_id: create_request_id(),
            ..Default::default()
        };
        match self.client.connection().workflow_service().create_schedule(request.into_request()).await {
            Ok(_) => Ok(true),
            Err(status) if status.code() == Code::AlreadyExists => Ok(false),
            Err(status) => Err(RegistrarError::Call { what: "create", id: id.to_owned(), source: Box::new(status) }),
        }
    }

    /// Deletes a schedule; `false` if it does not exist. Runs that it started continue.
    pub(super) async fn delete_schedule(&self, id: &str) -> Result<bool, RegistrarError> {
        // The plan's listing may be moments old, and a deletion cannot be undone.
        let Some(found) = self.describe_schedule(id).await? else { return Ok(false) };
        if self.is_marked_foreign(&found.schedule.unwrap_or_default()) {
            return Err(RegistrarError::OfAnother { id: id.to_owned() });
        }
        self.check_ownership(id).await?;
        let request = svc::DeleteScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.settings.names.qualify_id(id),
            ..Default::default()
        };
        let response = self.client.connection().workflow_service().delete_schedule(request.into_request()).await;
        Ok(none_if_missing("delete", id, response)?.is_some())
    }

    /// Edits one schedule by `change`, which must be idempotent.
    ///
    /// # Errors
    /// [`RegistrarError::OfAnother`] for a schedule of another vault, which is not changed.
    pub(super) async fn edit_own_schedule(
        &self,
        id: &str,
        change: impl Fn(&mut spb::Schedule),
    ) -> Result<ScheduleEditOutcome, RegistrarError> {
        let check = |schedule: &spb::Schedule| match self.is_marked_foreign(schedule) {
            true => Err(RegistrarError::OfAnother { id: id.to_owned() }),
            false => Ok(()),
        };
        self.edit_schedule_if(id, check, change).await
    }

    /// Edits one schedule by `change` if `check` allows it, and marks it as ours.
    pub(super) async fn edit_schedule_if(
        &self,
        id: &str,
        check: impl Fn(&spb::Schedule) -> Result<(), RegistrarError>,
        change: impl Fn(&mut spb::Schedule),
    ) -> Result<ScheduleEditOutcome, RegistrarError> {
        let mut written = false;
        for _ in 0..=ATTEMPTS {
            let Some(found) = self.describe_schedule(id).await? else { return Ok(ScheduleEditOutcome::Missing) };
            let before = found.schedule.unwrap_or_default();
            check(&before)?;
            let mut after = before.clone();
            change(&mut after);
            facts::set_mark(&mut after, self.settings.owner.as_ref());
            if is_same_schedule(&before, &after) {
                return Ok(if written { ScheduleEditOutcome::Changed } else { ScheduleEditOutcome::Same });
            }
            written |= self.write_schedule(id, after, found.conflict_token).await?;
        }
        Err(RegistrarError::Contended { id: id.to_owned() })
    }

    fn is_marked_foreign(&self, schedule: &spb::Schedule) -> bool {
        self.settings.is_foreign_vault(facts::find_mark(schedule.spec.as_ref()).and_then(|mark| mark.vault))
    }

    /// Sends one conditional update; `false` if the schedule was changed since it was read.
    async fn write_schedule(&self, id: &str, schedule: spb::Schedule, token: Vec<u8>) -> Result<bool, RegistrarError> {
        self.check_ownership(id).await?;
        let request = svc::UpdateScheduleRequest {
            namespace: self.namespace(),
            schedule_id: self.settings.names.qualify_id(id),
            schedule: Some(schedule),
            conflict_token: token,
            request_id: create_request_id(),
            ..Default::default()
        };
        match self.client.connection().workflow_service().update_schedule(request.into_request()).await {
            Ok(_) => Ok(true),
            // Some servers refuse a stale token with an error. A schedule that is gone is noticed by the next reading.
            Err(status) if matches!(status.code(), Code::FailedPrecondition | Code::NotFound) => Ok(false),
            Err(status) => Err(RegistrarError::Call { what: "update", id: id.to_owned(), source: Box::new(status) }),
        }
    }

    /// Builds the schedule that this matter should have, with our settings.
    pub(super) fn build_matter_schedule(&self, matter: &RecordPath, interval_seconds: u32) -> spb::Schedule {
        facts::build_matter_schedule(matter, interval_seconds, &self.settings)
    }
}

/// Whether two schedules are equal in our own fields, the mark and the state.
fn is_same_schedule(one: &spb::Schedule, other: &spb::Schedule) -> bool {
    let state = |schedule: &spb::Schedule| schedule.state.clone().unwrap_or_default();
    let mark = |schedule: &spb::Schedule| facts::find_mark(schedule.spec.as_ref());
    ScheduleFacts::from_schedule(one) == ScheduleFacts::from_schedule(other)
        && mark(one) == mark(other)
        && state(one) == state(other)
}

/// Creates an id for one call. The server treats two requests with one id as one request.
fn create_request_id() -> String {
    Uuid::new_v4().to_string()
}
