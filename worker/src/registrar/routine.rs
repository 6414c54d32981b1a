//! The schedules that belong to no matter: what runs for the whole vault.
//!
//! A fixed table, [`ROUTINES`]; the tracker's is there only while a tracker is set. Their ids do not begin as those of stewards do, so no plan for matters
//! ever lists or deletes them. They are created where they are missing and updated where what is ours in
//! them differs; a person's pause is kept, as is whatever else people set.

use super::edit::Edited;
use super::facts::{self, Facts};
use super::plan::Verb;
use super::server::RegistrarError;
use super::{Registrar, Settings};
use serde::Serialize;
use std::time::Duration;
use steward_workflows::{
    CALIBRATION_SCHEDULE, DRILL_SCHEDULE, EXTRACT_SCHEDULE, PURGE_SCHEDULE, ROUTER_SCHEDULE, TRACKER_SCHEDULE,
};
use temporalio_common::protos::temporal::api::schedule::v1 as spb;

/// One schedule of the vault as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Routine {
    pub(crate) id: &'static str,
    /// The workflow it starts, without arguments.
    pub(crate) workflow: &'static str,
    pub(crate) interval_seconds: u32,
    /// Seconds after midnight UTC; `None` for a place told by its id.
    pub(crate) phase_seconds: Option<u32>,
    /// What it is for, as the summary of its runs says.
    pub(crate) purpose: &'static str,
}

/// Every routine whose workflow this build has.
pub(crate) const ROUTINES: [Routine; 6] = [
    Routine {
        id: EXTRACT_SCHEDULE,
        workflow: "ExtractWorkflow",
        interval_seconds: 300,
        phase_seconds: None,
        purpose: "Reads new stream events",
    },
    Routine {
        id: ROUTER_SCHEDULE,
        workflow: "RouterWorkflow",
        interval_seconds: 120,
        phase_seconds: None,
        purpose: "Routes signals to the records they are about",
    },
    Routine {
        id: TRACKER_SCHEDULE,
        workflow: "TrackerWorkflow",
        interval_seconds: 300,
        phase_seconds: None,
        purpose: "Tells the tracker what was done to its issues",
    },
    Routine {
        id: CALIBRATION_SCHEDULE,
        workflow: "ReversalCalibrationWorkflow",
        interval_seconds: 600,
        phase_seconds: None,
        purpose: "Learns from what humans undid, confirmed and left alone",
    },
    Routine {
        id: DRILL_SCHEDULE,
        workflow: "ReversibilityDrillWorkflow",
        interval_seconds: 86_400,
        phase_seconds: Some(2 * 3_600),
        purpose: "Tries on canaries that every class of change can be taken back",
    },
    Routine {
        id: PURGE_SCHEDULE,
        workflow: "PurgeWorkflow",
        interval_seconds: 86_400,
        phase_seconds: Some(3 * 3_600),
        purpose: "Drops stream events that were extracted a week ago",
    },
];

/// What is to happen to one routine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoutineStep {
    /// The schedule's id.
    pub(crate) id: &'static str,
    pub(crate) workflow: &'static str,
    pub(crate) interval_seconds: u32,
    #[serde(flatten)]
    pub(crate) verb: Verb,
}

impl Registrar {
    /// Looks at every routine in full and says what to do. Nothing is changed.
    ///
    /// # Errors
    /// [`RegistrarError::Call`] when the server refuses or cannot be reached.
    pub(crate) async fn plan_routines(&self) -> Result<Vec<RoutineStep>, RegistrarError> {
        let mut steps = Vec::new();
        for routine in &ROUTINES {
            let Some(verb) = self.routine_verb(routine).await? else { continue };
            let Routine { id, workflow, interval_seconds, .. } = *routine;
            steps.push(RoutineStep { id, workflow, interval_seconds, verb });
        }
        Ok(steps)
    }

    /// `None` for one that is neither there nor wanted.
    async fn routine_verb(&self, routine: &Routine) -> Result<Option<Verb>, RegistrarError> {
        let wanted = routine.id != TRACKER_SCHEDULE || self.settings.tracker;
        let Some(found) = self.describe(routine.id).await? else {
            return Ok(wanted.then_some(Verb::Create { paused: false }));
        };
        let found = found.schedule.unwrap_or_default();
        let workflow = facts::workflow_type(&found);
        if workflow != routine.workflow {
            let why = format!("it starts {workflow}, not {}: rename it", routine.workflow);
            return Ok(Some(Verb::Keep { why }));
        }
        let mark = facts::mark_of(found.spec.as_ref());
        if self.settings.is_of_another(mark.as_ref().and_then(|mark| mark.vault)) {
            return Ok(Some(Verb::Keep { why: "it belongs to another vault".to_owned() }));
        }
        if !wanted {
            return Ok(Some(Verb::Delete));
        }
        let desired = desired(routine, &self.settings);
        let mut differences = Facts::of(&found).differences(&Facts::of(&desired));
        if differences.is_empty() && mark != facts::mark_of(desired.spec.as_ref()) {
            differences.push("mark: missing, or of before the vault was moved".to_owned());
        }
        if !differences.is_empty() {
            return Ok(Some(Verb::Update { differences }));
        }
        let state = found.state.unwrap_or_default();
        if state.paused {
            return Ok(Some(Verb::Keep { why: format!("paused by a person: {}", state.notes) }));
        }
        Ok(Some(Verb::Unchanged))
    }

    /// Carries one step out; `false` when there was nothing left to do.
    ///
    /// # Errors
    /// [`RegistrarError`]; the next round mends what failed.
    pub(crate) async fn apply_routine(&self, step: &RoutineStep) -> Result<bool, RegistrarError> {
        let Some(routine) = ROUTINES.iter().find(|r| r.id == step.id) else { return Ok(false) };
        let wanted = desired(routine, &self.settings);
        match &step.verb {
            Verb::Create { .. } => self.create_as(step.id, wanted).await,
            Verb::Update { .. } => {
                let edited = self.edit(step.id, |schedule| facts::adopt(schedule, &wanted)).await?;
                Ok(edited == Edited::Changed)
            }
            Verb::Delete => self.delete(step.id).await,
            // Nothing pauses or resumes a routine but a person.
            Verb::Pause | Verb::Resume | Verb::Unchanged | Verb::Keep { .. } => Ok(false),
        }
    }
}

/// The schedule a routine should have, not paused and without a note.
pub(super) fn desired(routine: &Routine, settings: &Settings) -> spb::Schedule {
    let mut schedule = facts::starting((routine.id, routine.workflow), Vec::new(), (routine.purpose, settings));
    let interval = routine.interval_seconds;
    let phase = routine.phase_seconds.unwrap_or_else(|| facts::phase_seconds(routine.id, interval));
    let (interval, phase) = (Duration::from_secs(interval.into()), Duration::from_secs(phase.into()));
    facts::set_interval(&mut schedule, interval, phase);
    facts::bound_each_run_alone(&mut schedule);
    facts::set_mark(&mut schedule, routine.id, settings.owner.as_ref());
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_server::facts::schedules::HOUSE;

    #[test]
    fn every_routine_is_listed_and_nothing_else_is() {
        assert_eq!(ROUTINES.map(|routine| (routine.id, routine.workflow)), HOUSE);
    }
}
