//! Plans whether a schedule is paused: for a matter that is done, and during a drain.
//!
//! Each pause of Steward has a known note. A person's pause must be kept.

use super::{KnownSchedule, SchedulePlan, ScheduleStepVerb, is_drain_pause, is_our_pause};
use crate::registrar::ScheduleSettings;

/// The note of a pause by Steward for a matter that is done.
pub(crate) const DONE_NOTE: &str = "Paused by Steward: the matter is done. Set its state to open to resume.";
/// The note of a new schedule.
pub(crate) const CREATED_NOTE: &str =
    "Made by Steward. A person's pause here stops its runs until a person resumes it.";
/// The note after a drain.
pub(crate) const DRAINED_NOTE: &str = "Resumed by Steward: the drain has ended.";
/// The note after Steward has ended its own pause.
pub(crate) const REOPENED_NOTE: &str = "Resumed by Steward: the matter is open again.";

/// Writes a note of Steward in place of its last one. What a person wrote there stays below it.
pub(crate) fn replace_own_note(notes: &mut String, own: &str) {
    let is_own = |part: &&str| {
        ["Made by Steward.", "Paused by Steward:", "Resumed by Steward:"].iter().any(|start| part.starts_with(start))
    };
    let others = notes.split("\n\n").filter(|part| !is_own(part) && !part.trim().is_empty());
    *notes = std::iter::once(own).chain(others).collect::<Vec<_>>().join("\n\n");
}

/// The step that gives the schedule of an open or done matter its right state; `None` if it has that already.
pub(super) fn plan_pause(
    done: bool,
    schedule: &KnownSchedule,
    changed: bool,
    settings: &ScheduleSettings,
) -> Option<ScheduleStepVerb> {
    let ours = is_our_pause(&schedule.note);
    match (done, schedule.paused) {
        (true, false) => Some(ScheduleStepVerb::Pause),
        (false, false) if settings.draining => Some(ScheduleStepVerb::Drain),
        (false, false) => None,
        // The next pause, or the end of this one, follows from the matter's state after the drain.
        (_, true) if ours && settings.draining => None,
        (true, true) if is_drain_pause(&schedule.note) => Some(ScheduleStepVerb::Pause),
        (true, true) if ours => None,
        (false, true) if ours => Some(ScheduleStepVerb::Resume),
        (_, true) if changed => None,
        (_, true) => Some(ScheduleStepVerb::Keep { why: format!("paused by a person: {}", schedule.note) }),
    }
}

impl SchedulePlan {
    /// Leaves out every step but pauses and resumptions. For a command that must not bring its own settings into the
    /// schedules.
    pub(crate) fn retain_pauses(&mut self) {
        let changes_pause = |verb: &ScheduleStepVerb| {
            matches!(verb, ScheduleStepVerb::Pause | ScheduleStepVerb::Drain | ScheduleStepVerb::Resume)
        };
        self.steps.retain(|step| changes_pause(&step.verb));
        self.routines.retain(|step| changes_pause(&step.verb));
        self.refused = None;
    }
}
