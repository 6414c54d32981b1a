//! The routines: schedules that run for the whole vault and belong to no matter.
//!
//! They are a fixed table, [`ROUTINES`]. The tracker's routine exists only while a tracker is configured. Their ids
//! have another prefix than those of stewards, so a plan for matters never lists or deletes them. A missing routine is
//! created, and one whose own fields differ is updated. A person's pause and other settings of people must be kept.

use super::ScheduleRegistrar;
use super::ScheduleSettings;
use super::apply;
use super::edit::ScheduleEditOutcome;
use super::facts::{self, ScheduleFacts};
use super::plan::{SchedulePlan, ScheduleStepVerb, is_drain_pause, is_our_pause};
use super::server::RegistrarError;
use serde::Serialize;
use std::time::Duration;
use steward_workflows::CALIBRATION_SCHEDULE;
use steward_workflows::DRILL_SCHEDULE;
use steward_workflows::EXTRACT_SCHEDULE;
use steward_workflows::PURGE_SCHEDULE;
use steward_workflows::ROUTER_SCHEDULE;
use steward_workflows::TRACKER_SCHEDULE;
use temporalio_common::protos::temporal::api::schedule::v1 as spb;

/// One routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoutineSchedule {
    pub(crate) id: &'static str,
    /// The workflow it starts, without arguments.
    pub(crate) workflow: &'static str,
    pub(crate) interval_seconds: u32,
    /// Seconds after midnight UTC; `None` for a phase derived from the id.
    pub(crate) phase_seconds: Option<u32>,
    /// The purpose, which is the summary of its runs.
    pub(crate) purpose: &'static str,
}

/// Every routine whose workflow this build has.
pub(crate) const ROUTINES: [RoutineSchedule; 6] = [
    RoutineSchedule {
        id: EXTRACT_SCHEDULE,
        workflow: "ExtractWorkflow",
        interval_seconds: 300,
        phase_seconds: None,
        purpose: "Reads new stream events",
    },
    RoutineSchedule {
        id: ROUTER_SCHEDULE,
        workflow: "RouterWorkflow",
        interval_seconds: 120,
        phase_seconds: None,
        purpose: "Routes signals to the records they are about",
    },
    RoutineSchedule {
        id: TRACKER_SCHEDULE,
        workflow: "TrackerWorkflow",
        interval_seconds: 300,
        phase_seconds: None,
        purpose: "Reports changes of tasks to the tracker",
    },
    RoutineSchedule {
        id: CALIBRATION_SCHEDULE,
        workflow: "ReversalCalibrationWorkflow",
        interval_seconds: 600,
        phase_seconds: None,
        purpose: "Learns from changes that people undid, confirmed or left alone",
    },
    RoutineSchedule {
        id: DRILL_SCHEDULE,
        workflow: "ReversibilityDrillWorkflow",
        interval_seconds: 86_400,
        phase_seconds: Some(2 * 3_600),
        purpose: "Checks on test records that every class of change can be undone",
    },
    RoutineSchedule {
        id: PURGE_SCHEDULE,
        workflow: "PurgeWorkflow",
        interval_seconds: 86_400,
        phase_seconds: Some(3 * 3_600),
        purpose: "Removes stream events that were extracted a week ago",
    },
];

/// The step of a plan for one routine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoutineStep {
    /// The schedule's id.
    pub(crate) id: &'static str,
    pub(crate) workflow: &'static str,
    pub(crate) interval_seconds: u32,
    #[serde(flatten)]
    pub(crate) verb: ScheduleStepVerb,
}

impl SchedulePlan {
    /// Shows the first routine as created. The claim of the namespace created it, before this plan was made.
    pub(crate) fn include_claim(&mut self) {
        if let Some(first) = self.routines.first_mut().filter(|first| first.id == ROUTINES[0].id) {
            first.verb = ScheduleStepVerb::Create { paused: false };
        }
    }
}

impl ScheduleRegistrar {
    /// Describes every routine in full and plans its step. Nothing is changed.
    ///
    /// # Errors
    /// [`RegistrarError::Call`] when the server refuses or cannot be reached.
    pub(crate) async fn plan_routines(&self) -> Result<Vec<RoutineStep>, RegistrarError> {
        let mut steps = Vec::new();
        for routine in &ROUTINES {
            let Some(verb) = self.plan_routine(routine).await? else { continue };
            let RoutineSchedule { id, workflow, interval_seconds, .. } = *routine;
            steps.push(RoutineStep { id, workflow, interval_seconds, verb });
        }
        Ok(steps)
    }

    /// Plans one routine; `None` if it neither exists nor is wanted.
    ///
    /// The tracker's routine is the only one that is ever deleted: without the tracker's activities its runs could only
    /// fail.
    async fn plan_routine(&self, routine: &RoutineSchedule) -> Result<Option<ScheduleStepVerb>, RegistrarError> {
        let wanted = routine.id != TRACKER_SCHEDULE || self.settings.tracker;
        let Some(found) = self.describe_schedule(routine.id).await? else {
            return Ok(wanted.then_some(ScheduleStepVerb::Create { paused: self.settings.draining }));
        };
        let found = found.schedule.unwrap_or_default();
        let workflow = facts::find_workflow_type(&found);
        if workflow != routine.workflow {
            let why = format!("it starts {workflow}, not {}: rename that schedule", routine.workflow);
            return Ok(Some(ScheduleStepVerb::Keep { why }));
        }
        let mark = facts::find_mark(found.spec.as_ref());
        if self.settings.is_foreign_vault(mark.as_ref().and_then(|mark| mark.vault)) {
            return Ok(Some(ScheduleStepVerb::Keep { why: "it belongs to another vault".to_owned() }));
        }
        // Before all else: the command that drains may not know of a tracker.
        let state = found.state.clone().unwrap_or_default();
        match (self.settings.draining, state.paused) {
            (true, false) => return Ok(Some(ScheduleStepVerb::Drain)),
            (false, true) if is_drain_pause(&state.notes) => return Ok(Some(ScheduleStepVerb::Resume)),
            _ => {}
        }
        if !wanted {
            return Ok(Some(ScheduleStepVerb::Delete));
        }
        let desired = build_routine_schedule(routine, &self.settings);
        let mut differences =
            ScheduleFacts::from_schedule(&found).list_differences(&ScheduleFacts::from_schedule(&desired));
        if differences.is_empty() && mark != facts::find_mark(desired.spec.as_ref()) {
            differences.push("mark: missing, or written before the vault was moved".to_owned());
        }
        if !differences.is_empty() {
            return Ok(Some(ScheduleStepVerb::Update { differences }));
        }
        if state.paused && !is_our_pause(&state.notes) {
            return Ok(Some(ScheduleStepVerb::Keep { why: format!("paused by a person: {}", state.notes) }));
        }
        Ok(Some(ScheduleStepVerb::Unchanged))
    }

    /// Applies one step; `false` if there was nothing left to do.
    ///
    /// # Errors
    /// [`RegistrarError`]; the next round tries again.
    pub(crate) async fn apply_routine(&self, step: &RoutineStep) -> Result<bool, RegistrarError> {
        let Some(routine) = ROUTINES.iter().find(|r| r.id == step.id) else { return Ok(false) };
        let wanted = build_routine_schedule(routine, &self.settings);
        match &step.verb {
            ScheduleStepVerb::Create { paused } => {
                let state = Some(apply::initial_state(*paused, self.settings.draining));
                self.create_schedule(step.id, spb::Schedule { state, ..wanted }).await
            }
            ScheduleStepVerb::Update { .. } => {
                self.edit_routine(step.id, |schedule| facts::copy_own_fields(schedule, &wanted)).await
            }
            ScheduleStepVerb::Drain => self.edit_routine(step.id, apply::drain_schedule).await,
            ScheduleStepVerb::Resume => self.edit_routine(step.id, apply::resume_schedule).await,
            ScheduleStepVerb::Delete => self.delete_schedule(step.id).await,
            // Except for a drain, only a person pauses a routine.
            ScheduleStepVerb::Pause
            | ScheduleStepVerb::Move { .. }
            | ScheduleStepVerb::Unchanged
            | ScheduleStepVerb::Keep { .. } => Ok(false),
        }
    }
}

impl ScheduleRegistrar {
    /// Edits a routine; `false` if there was nothing left to do.
    async fn edit_routine(&self, id: &str, change: impl Fn(&mut spb::Schedule)) -> Result<bool, RegistrarError> {
        Ok(self.edit_own_schedule(id, change).await? == ScheduleEditOutcome::Changed)
    }
}

/// Builds the schedule that a routine should have, not paused and without a note.
pub(super) fn build_routine_schedule(routine: &RoutineSchedule, settings: &ScheduleSettings) -> spb::Schedule {
    let mut schedule = facts::build_schedule(routine.id, routine.workflow, Vec::new(), routine.purpose, settings);
    let interval = routine.interval_seconds;
    let phase = routine.phase_seconds.unwrap_or_else(|| facts::compute_phase_seconds(routine.id, interval));
    let (interval, phase) = (Duration::from_secs(interval.into()), Duration::from_secs(phase.into()));
    facts::set_interval(&mut schedule, interval, phase);
    facts::clear_execution_timeout(&mut schedule);
    facts::set_mark(&mut schedule, settings.owner.as_ref());
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_server::views::schedules::VAULT_SCHEDULES;

    #[test]
    fn every_routine_is_listed_and_nothing_else_is() {
        assert_eq!(ROUTINES.map(|routine| (routine.id, routine.workflow)), VAULT_SCHEDULES);
    }
}
