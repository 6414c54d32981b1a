//! Plans whether a schedule is paused: for a matter that is done, and during a drain.
//!
//! Each pause of Steward has a known note. A person's pause must be kept.

use super::{DRAIN_NOTE, KnownSchedule, SchedulePlan, ScheduleStepVerb, is_our_pause};
use crate::registrar::ScheduleSettings;

/// The note of a pause by Steward for a matter that is done.
pub(crate) const DONE_NOTE: &str = "Paused by Steward: the matter is done. Set its state to open to resume.";
/// The note after a drain.
pub(crate) const DRAINED_NOTE: &str = "Resumed by Steward: the drain has ended.";
/// The note after Steward has ended its own pause.
pub(crate) const REOPENED_NOTE: &str = "Resumed by Steward: the matter is open again.";

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
        (true, true) if schedule.note == DRAIN_NOTE => Some(ScheduleStepVerb::Pause),
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
