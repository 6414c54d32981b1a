//! Which schedules are ours.
//!
//! A schedule of another vault, or one that starts another workflow, must never be changed. It is only named.

use super::KnownSchedule;
use crate::registrar::{ScheduleSettings, facts};

pub(super) fn is_ours(schedule: &KnownSchedule, settings: &ScheduleSettings) -> bool {
    schedule.workflow_type == facts::WORKFLOW_TYPE && !is_foreign_schedule(schedule, settings)
}

fn is_foreign_schedule(schedule: &KnownSchedule, settings: &ScheduleSettings) -> bool {
    settings.is_foreign_vault(schedule.mark.as_ref().and_then(|mark| mark.vault))
}

pub(super) fn explain_foreign_schedule(schedule: &KnownSchedule, settings: &ScheduleSettings) -> String {
    if is_foreign_schedule(schedule, settings) {
        return "it belongs to another vault, so it is kept as it is; `steward schedules adopt` takes it over"
            .to_owned();
    }
    let starts = if schedule.workflow_type.is_empty() { "an unknown workflow type" } else { &schedule.workflow_type };
    format!(
        "it starts {starts}, not {}, so it is kept as it is; rename it if a matter needs its id",
        facts::WORKFLOW_TYPE
    )
}
