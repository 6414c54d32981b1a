//! The schedules that belong to no matter: what runs for the whole vault.
//!
//! A fixed table, [`ROUTINES`]. Their ids do not begin as those of stewards do, so no plan for matters
//! ever lists or deletes them. They are created where they are missing and updated where what is ours in
//! them differs; a person's pause is kept, as is whatever else people set.

use super::edit::Edited;
use super::facts::{self, Facts};
use super::plan::Verb;
use super::server::RegistrarError;
use super::{Registrar, Settings};
use serde::Serialize;
use std::time::Duration;
use steward_workflows::{EXTRACT_SCHEDULE, PURGE_SCHEDULE, ROUTER_SCHEDULE};
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
pub(crate) const ROUTINES: [Routine; 3] = [
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

/// The routine that a schedule of this id and workflow type is.
#[must_use]
pub(crate) fn routine(id: &str, workflow_type: &str) -> Option<&'static Routine> {
    ROUTINES.iter().find(|r| r.id == id && r.workflow == workflow_type)
}

impl Registrar {
    /// Looks at every routine in full and says what to do. Nothing is changed.
    ///
    /// # Errors
    /// [`RegistrarError::Call`] when the server refuses or cannot be reached.
    pub(crate) async fn plan_routines(&self) -> Result<Vec<RoutineStep>, RegistrarError> {
        let mut steps = Vec::new();
        for routine in &ROUTINES {
            let verb = self.routine_verb(routine).await?;
            let Routine { id, workflow, interval_seconds, .. } = *routine;
            steps.push(RoutineStep { id, workflow, interval_seconds, verb });
        }
        Ok(steps)
    }

    async fn routine_verb(&self, routine: &Routine) -> Result<Verb, RegistrarError> {
        let Some(found) = self.describe(routine.id).await? else { return Ok(Verb::Create { paused: false }) };
        let found = found.schedule.unwrap_or_default();
        let workflow = facts::workflow_type(&found);
        if workflow != routine.workflow {
            return Ok(Verb::Keep { why: format!("it starts {workflow}, not {}: rename it", routine.workflow) });
        }
        let differences = Facts::of(&found).differences(&Facts::of(&desired(routine, &self.settings)));
        if !differences.is_empty() {
            return Ok(Verb::Update { differences });
        }
        let state = found.state.unwrap_or_default();
        if state.paused {
            return Ok(Verb::Keep { why: format!("paused by a person: {}", state.notes) });
        }
        Ok(Verb::Unchanged)
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
            // Nothing pauses, resumes or deletes a routine but a person.
            Verb::Pause | Verb::Resume | Verb::Delete | Verb::Unchanged | Verb::Keep { .. } => Ok(false),
        }
    }
}

/// The schedule a routine should have, not paused and without a note.
fn desired(routine: &Routine, settings: &Settings) -> spb::Schedule {
    let mut schedule = facts::starting((routine.id, routine.workflow), Vec::new(), (routine.purpose, settings));
    let interval = routine.interval_seconds;
    let phase = routine.phase_seconds.unwrap_or_else(|| facts::phase_seconds(routine.id, interval));
    let (interval, phase) = (Duration::from_secs(interval.into()), Duration::from_secs(phase.into()));
    facts::set_interval(&mut schedule, interval, phase);
    facts::bound_each_run_alone(&mut schedule);
    facts::set_mark(&mut schedule);
    schedule
}
