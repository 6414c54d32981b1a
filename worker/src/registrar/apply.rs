//! Applies a plan, a few schedules at a time, and counts the outcomes.
//!
//! A failed step does not stop the others. A step may find its work already done, because the plan's listing may be
//! moments old. The steps of one schedule run in order. This module must not decide anything; the next round tries a
//! failed step again.

use super::ScheduleRegistrar;
use super::edit::ScheduleEditOutcome;
use super::facts;
use super::owner::NamespaceConflict;
use super::plan::{
    CREATED_NOTE, DONE_NOTE, DRAIN_NOTE, DRAINED_NOTE, REOPENED_NOTE, RefusedDeletions, SchedulePlan, ScheduleStep,
    ScheduleStepVerb, is_drain_pause, is_our_pause, replace_own_note,
};
use super::server::RegistrarError;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use steward_domain::record::path::RecordPath;
use temporalio_common::protos::temporal::api::schedule::v1 as spb;

/// How many schedules are changed at once: 8; more would only queue up in the server.
pub(super) const AT_ONCE: usize = 8;

/// One step that failed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ScheduleStepError {
    /// The schedule's id.
    pub(crate) id: String,
    pub(crate) matter: RecordPath,
    /// The message, which reads after "failed to".
    pub(crate) message: String,
}

/// The outcome of a plan, as numbers of steps.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RegistrationOutcome {
    pub(crate) created: usize,
    pub(crate) moved: usize,
    pub(crate) updated: usize,
    pub(crate) paused: usize,
    pub(crate) resumed: usize,
    pub(crate) deleted: usize,
    pub(crate) unchanged: usize,
    pub(crate) kept: usize,
    /// Steps that found their work already done, or their schedule gone.
    pub(crate) overtaken: usize,
    /// Ordered by id.
    pub(crate) errors: Vec<ScheduleStepError>,
    pub(crate) refused: Option<RefusedDeletions>,
    /// Routines that were created, updated or deleted.
    pub(crate) routines_changed: usize,
    pub(crate) routine_errors: Vec<String>,
    /// Why nothing was done at all: the namespace belongs to another vault.
    pub(crate) conflict: Option<NamespaceConflict>,
}

impl ScheduleRegistrar {
    /// Applies all steps of a plan. A failed step does not stop the others.
    pub(crate) async fn apply_steps(&self, plan: SchedulePlan) -> RegistrationOutcome {
        let mut outcome = RegistrationOutcome { refused: plan.refused, ..RegistrationOutcome::default() };
        for step in &plan.routines {
            match self.apply_routine(step).await {
                Ok(changed) => outcome.routines_changed += usize::from(changed),
                Err(error) => outcome.routine_errors.push(error.to_string()),
            }
        }
        let schedules: Vec<&[ScheduleStep]> = plan.steps.chunk_by(|one, next| one.id == next.id).collect();
        let mut progress = self.start_progress("schedules registered", schedules.len());
        let mut results = stream::iter(schedules)
            .map(|steps| async move {
                let mut results = Vec::new();
                for step in steps {
                    results.push((step, self.apply_step(step).await));
                }
                results
            })
            .buffer_unordered(AT_ONCE);
        while let Some(results) = results.next().await {
            progress.advance();
            for (step, result) in results {
                outcome.count_step(step, result);
            }
        }
        outcome.errors.sort_by(|one, other| one.id.cmp(&other.id));
        outcome
    }

    /// Applies one step; `false` if there was nothing left to do.
    async fn apply_step(&self, step: &ScheduleStep) -> Result<bool, RegistrarError> {
        let edited = match &step.verb {
            ScheduleStepVerb::Unchanged | ScheduleStepVerb::Keep { .. } => return Ok(true),
            ScheduleStepVerb::Create { paused } => {
                return self.create_matter_schedule(step, initial_state(*paused, self.settings.draining)).await;
            }
            ScheduleStepVerb::Move { from_id, paused, note, old_stays } => {
                let state = spb::ScheduleState { paused: *paused, notes: note.clone(), ..Default::default() };
                let created = self.create_matter_schedule(step, state).await?;
                if *old_stays {
                    return Ok(created);
                }
                return self.delete_schedule(from_id).await;
            }
            ScheduleStepVerb::Delete => return self.delete_schedule(&step.id).await,
            ScheduleStepVerb::Update { .. } => {
                let wanted = self.build_matter_schedule(&step.matter, step.interval_seconds);
                self.edit_own_schedule(&step.id, |schedule| facts::copy_own_fields(schedule, &wanted)).await
            }
            ScheduleStepVerb::Pause => self.edit_own_schedule(&step.id, pause_schedule).await,
            ScheduleStepVerb::Drain => self.edit_own_schedule(&step.id, drain_schedule).await,
            ScheduleStepVerb::Resume => self.edit_own_schedule(&step.id, resume_schedule).await,
        };
        Ok(edited? == ScheduleEditOutcome::Changed)
    }
}

/// Pauses the schedule of a matter that is done. A person's pause is kept: the listing may not show a new one yet.
pub(super) fn pause_schedule(schedule: &mut spb::Schedule) {
    let state = schedule.state.get_or_insert_default();
    if !state.paused || is_drain_pause(&state.notes) {
        state.paused = true;
        replace_own_note(&mut state.notes, DONE_NOTE);
    }
}

/// Pauses a schedule during a drain, unless it is already paused.
pub(super) fn drain_schedule(schedule: &mut spb::Schedule) {
    let state = schedule.state.get_or_insert_default();
    if !state.paused {
        state.paused = true;
        replace_own_note(&mut state.notes, DRAIN_NOTE);
    }
}

/// Ends a pause of Steward, and no other.
pub(super) fn resume_schedule(schedule: &mut spb::Schedule) {
    let state = schedule.state.get_or_insert_default();
    if state.paused && is_our_pause(&state.notes) {
        state.paused = false;
        let note = if is_drain_pause(&state.notes) { DRAINED_NOTE } else { REOPENED_NOTE };
        replace_own_note(&mut state.notes, note);
    }
}

/// The state of a new schedule.
pub(super) fn initial_state(paused: bool, draining: bool) -> spb::ScheduleState {
    let notes = match (paused, draining) {
        (true, true) => DRAIN_NOTE,
        (true, false) => DONE_NOTE,
        (false, _) => CREATED_NOTE,
    };
    spb::ScheduleState { paused, notes: notes.to_owned(), ..Default::default() }
}

impl RegistrationOutcome {
    fn count_step(&mut self, step: &ScheduleStep, result: Result<bool, RegistrarError>) {
        let counter = match (result, &step.verb) {
            (Err(error), _) => {
                let (id, matter) = (step.id.clone(), step.matter.clone());
                return self.errors.push(ScheduleStepError { id, matter, message: error.to_string() });
            }
            (Ok(false), _) => &mut self.overtaken,
            (Ok(true), ScheduleStepVerb::Create { .. }) => &mut self.created,
            (Ok(true), ScheduleStepVerb::Move { .. }) => &mut self.moved,
            (Ok(true), ScheduleStepVerb::Update { .. }) => &mut self.updated,
            (Ok(true), ScheduleStepVerb::Pause | ScheduleStepVerb::Drain) => &mut self.paused,
            (Ok(true), ScheduleStepVerb::Resume) => &mut self.resumed,
            (Ok(true), ScheduleStepVerb::Delete) => &mut self.deleted,
            (Ok(true), ScheduleStepVerb::Unchanged) => &mut self.unchanged,
            (Ok(true), ScheduleStepVerb::Keep { .. }) => &mut self.kept,
        };
        *counter += 1;
    }
}
