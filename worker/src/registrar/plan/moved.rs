//! Plans the schedule of a matter whose note was renamed or moved.
//!
//! The new schedule gets the pause and the note of the old one, because both belong to a person. It must not create or
//! delete anything itself.

use super::{
    CREATED_NOTE, DONE_NOTE, DRAIN_NOTE, KnownSchedule, MatterScheduleStatus, SchedulePlan, ScheduleStepVerb,
    WantedMatter,
};
use super::{is_our_pause, is_ours};
use crate::registrar::{ScheduleSettings, facts};
use std::collections::BTreeMap;

/// The schedule of ours that the matter had under a former path, if no other matter has it now. The newest path counts.
pub(super) fn find_former_schedule<'k>(
    matter: &WantedMatter,
    wanted: &BTreeMap<String, WantedMatter>,
    known: &BTreeMap<&str, &'k KnownSchedule>,
    settings: &ScheduleSettings,
) -> Option<&'k KnownSchedule> {
    let ids = matter.former_paths.iter().map(facts::schedule_id);
    let is_free = |id: &String| wanted.get(id).is_none_or(|other| other.status == MatterScheduleStatus::Lost);
    let free = ids.filter(is_free);
    free.filter_map(|id| known.get(id.as_str()).copied()).find(|schedule| is_ours(schedule, settings))
}

/// The schedule of ours under a former path that another matter has taken since, if a person paused it. The pause was
/// made for the matter that moved, or nobody can tell, so it holds for both.
pub(super) fn find_pause_left_behind<'k>(
    matter: &WantedMatter,
    known: &BTreeMap<&str, &'k KnownSchedule>,
    settings: &ScheduleSettings,
) -> Option<&'k KnownSchedule> {
    let known = matter.former_paths.iter().filter_map(|path| known.get(facts::schedule_id(path).as_str()).copied());
    known.into_iter().find(|schedule| is_ours(schedule, settings) && schedule.paused && !is_our_pause(&schedule.note))
}

/// Plans a matter that was moved and whose schedule still has the old id. `old_stays` if another matter has it now.
pub(super) fn plan_moved_schedule(
    plan: &mut SchedulePlan,
    id: &str,
    matter: &WantedMatter,
    former: &KnownSchedule,
    old_stays: bool,
    settings: &ScheduleSettings,
) {
    let done = matter.status == MatterScheduleStatus::Done;
    let by_person = former.paused && !is_our_pause(&former.note);
    let note = match (by_person, done) {
        (true, _) => former.note.clone(),
        (false, true) => DONE_NOTE.to_owned(),
        (false, false) if settings.draining => DRAIN_NOTE.to_owned(),
        (false, false) => CREATED_NOTE.to_owned(),
    };
    let paused = by_person || done || settings.draining;
    let verb = ScheduleStepVerb::Move { from_id: former.id.clone(), paused, note, old_stays };
    plan.push_step(id, matter, verb);
}
