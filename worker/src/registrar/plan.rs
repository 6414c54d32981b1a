//! Plans which schedules to create, update, pause, resume, delete or keep, from the lists of matters and schedules.
//!
//! A schedule is ours if its id begins with `al-steward-`, it starts `StewardWorkflow`, and it names no other vault.
//! A person's pause is kept; our own pause has a known note. Deletions cannot be undone, so they need certainty:
//! an unreadable record keeps its schedule, an empty list of matters deletes nothing, and deletions above the budget
//! wait for an operator while the rest of the plan is applied.
//!
//! The module is pure: it must not use a clock or the network. [`super::apply`] applies the plan.

mod budget;
mod foreign;
mod moved;
mod pause;

use super::ScheduleSettings;
use super::facts::{self, ScheduleFacts};
use super::owner::NamespaceConflict;
pub(crate) use budget::RefusedDeletions;
use foreign::{explain_foreign_schedule, is_ours};
use moved::{find_former_schedule, find_pause_left_behind, plan_moved_schedule};
use pause::plan_pause;
pub(crate) use pause::{CREATED_NOTE, DONE_NOTE, DRAINED_NOTE, REOPENED_NOTE, replace_own_note};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::record::path::RecordPath;
use steward_server::views::schedules::mark::ScheduleMark;
pub(crate) use steward_server::views::schedules::{DRAIN_NOTE, is_drain_pause, is_our_pause};
use temporalio_common::protos::temporal::api::schedule::v1::Schedule;

/// The state of a matter, as far as its schedule is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatterScheduleStatus {
    /// Its schedule runs.
    Open,
    /// Its schedule is paused until the matter is open again.
    Done,
    /// It has no schedule.
    Archived,
    /// Its record exists but cannot be read, so its schedule stays as it is.
    Unreadable,
    /// Its note is gone, but may only have been renamed elsewhere. A pause by a person is kept until that is known.
    Lost,
}

/// One matter of the vault and the cadence it should have.
#[derive(Clone, Debug)]
pub(crate) struct WantedMatter {
    /// `matter/<slug>.md`; a path of another kind is ignored with a warning.
    pub(crate) path: RecordPath,
    pub(crate) status: MatterScheduleStatus,
    /// Seconds between two ticks; 0 for the interval of the settings.
    pub(crate) interval_seconds: u32,
    /// The paths that it had before it was moved. A schedule under one of them is still its own.
    pub(crate) former_paths: Vec<RecordPath>,
}

/// The known contents of a schedule.
#[derive(Clone, Debug)]
pub(crate) enum ScheduleContents {
    /// Only what the listing shows: the cadence and the mark.
    Listed { cadence: String },
    /// All facts.
    Described(ScheduleFacts),
    /// The description failed, for this reason.
    Unread(String),
}

/// A schedule of the server whose id begins with `al-steward-`, of any workflow type.
#[derive(Clone, Debug)]
pub(crate) struct KnownSchedule {
    pub(crate) id: String,
    /// Empty if the listing does not show it; such a schedule is not treated as ours.
    pub(crate) workflow_type: String,
    pub(crate) paused: bool,
    pub(crate) note: String,
    /// The mark with the digest of its contents and its vault.
    pub(crate) mark: Option<ScheduleMark>,
    pub(crate) contents: ScheduleContents,
}

/// The change to one schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub(crate) enum ScheduleStepVerb {
    /// `paused` for a matter that is done, and during a drain.
    Create {
        paused: bool,
    },
    /// The matter was moved: creates its schedule with the pause and the note of the one that it had, then deletes that.
    Move {
        from_id: String,
        paused: bool,
        note: String,
        /// Another matter has the old path now, so the old schedule is not deleted.
        old_stays: bool,
    },
    /// Each difference as `<fact>: <found> → <wanted>`.
    Update {
        differences: Vec<String>,
    },
    /// For a matter that is done.
    Pause,
    /// Pauses while the vault is drained.
    Drain,
    Resume,
    Delete,
    Unchanged,
    /// Kept as it is, although the matter would need another state.
    Keep {
        why: String,
    },
}

/// One step of a plan. A schedule has at most two consecutive steps: an update, then a pause or a resume.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ScheduleStep {
    /// The schedule's id.
    pub(crate) id: String,
    pub(crate) matter: RecordPath,
    /// The interval of the schedule after a creation or an update, in seconds.
    pub(crate) interval_seconds: u32,
    #[serde(flatten)]
    pub(crate) verb: ScheduleStepVerb,
}

/// The plan of one round, ordered by id.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SchedulePlan {
    pub(crate) steps: Vec<ScheduleStep>,
    /// The deletions if they are above the budget; then the steps contain no deletion.
    pub(crate) refused: Option<RefusedDeletions>,
    pub(crate) warnings: Vec<String>,
    /// The ids of the schedules that are kept because they could not be read.
    #[serde(skip)]
    pub(crate) unread: Vec<String>,
    /// The steps for the routines; [`plan_matter_schedules`] leaves them empty.
    pub(crate) routines: Vec<super::RoutineStep>,
    /// Why the plan must not be applied: the namespace belongs to another vault. [`plan_matter_schedules`] leaves it
    /// empty.
    pub(crate) conflict: Option<NamespaceConflict>,
}

/// Compares the matters of the vault with the schedules of the server.
///
/// `matters` must be the whole vault and `known` the complete listing, because an entry that is in only one of them is
/// created or deleted. Schedules that [`find_undescribed`] returns must be described, or they are kept as they are. The
/// order of both lists does not matter.
#[must_use]
pub(crate) fn plan_matter_schedules(
    matters: &[WantedMatter],
    known: &[KnownSchedule],
    settings: &ScheduleSettings,
) -> SchedulePlan {
    let mut plan = SchedulePlan::default();
    if matters.iter().all(|matter| matter.status == MatterScheduleStatus::Lost) {
        plan.warnings.push(format!(
            "the vault holds no matter, so its {} schedules are kept; if that is intended, delete them by hand",
            known.len()
        ));
        return plan;
    }
    let wanted = index_by_schedule_id(matters, settings, &mut plan.warnings);
    let known: BTreeMap<&str, &KnownSchedule> = known.iter().map(|each| (each.id.as_str(), each)).collect();
    let ours = known.values().filter(|each| is_ours(each, settings)).count();
    let mut moved: BTreeSet<&str> = BTreeSet::new();

    for (id, matter) in &wanted {
        let is_missing = !known.contains_key(id.as_str());
        let needs_one = matches!(matter.status, MatterScheduleStatus::Open | MatterScheduleStatus::Done);
        if let Some(former) =
            find_former_schedule(matter, &wanted, &known, settings).filter(|_| is_missing && needs_one)
            && moved.insert(&former.id)
        {
            plan_moved_schedule(&mut plan, id, matter, former, false, settings);
        } else if let Some(former) =
            find_pause_left_behind(matter, &known, settings).filter(|_| is_missing && needs_one)
        {
            plan_moved_schedule(&mut plan, id, matter, former, true, settings);
        } else if is_missing {
            plan_missing_schedule(&mut plan, id, matter, settings);
        }
    }
    for (id, matter) in &wanted {
        match known.get(id.as_str()) {
            Some(schedule) if !is_ours(schedule, settings) => {
                let why = explain_foreign_schedule(schedule, settings);
                plan.push_step(id, matter, ScheduleStepVerb::Keep { why });
            }
            Some(schedule) if moved.contains(schedule.id.as_str()) => {}
            Some(schedule) => plan_existing_schedule(&mut plan, id, matter, schedule, settings),
            None => {}
        }
    }
    let former_paths: BTreeSet<&RecordPath> = wanted.values().flat_map(|matter| &matter.former_paths).collect();
    let unreadable = wanted
        .iter()
        .filter(|(id, matter)| matter.status == MatterScheduleStatus::Unreadable && !known.contains_key(id.as_str()));
    let unreadable_paths: BTreeSet<&RecordPath> = unreadable.flat_map(|(_, matter)| &matter.former_paths).collect();
    for (&id, &schedule) in &known {
        if moved.contains(id) {
            continue;
        }
        match schedule.mark.as_ref().and_then(|mark| mark.matter.clone()) {
            _ if !is_ours(schedule, settings) => {
                plan.warnings.push(format!("{id}: {}", explain_foreign_schedule(schedule, settings)))
            }
            _ if wanted.contains_key(id) => {}
            None => plan.warnings.push(format!("{id}: it does not name its matter, so the schedule is kept")),
            // Its matter was moved and cannot be read there, so its pause is kept.
            Some(path) if unreadable_paths.contains(&path) => {
                let verb = ScheduleStepVerb::Keep { why: "its matter was moved and cannot be read".to_owned() };
                plan.steps.push(ScheduleStep { id: id.to_owned(), matter: path, interval_seconds: 0, verb });
            }
            Some(path) => {
                // What was moved is not lost, so it needs no confirmation.
                if former_paths.contains(&path) {
                    moved.insert(id);
                }
                let (id, verb) = (id.to_owned(), ScheduleStepVerb::Delete);
                plan.steps.push(ScheduleStep { id, matter: path, interval_seconds: 0, verb });
            }
        }
    }
    plan.enforce_deletion_budget(ours, &moved, settings);
    plan.steps.sort_by(|one, other| one.id.cmp(&other.id));
    plan
}

/// Finds the schedules that must be described, because the listing alone is not enough to plan them.
#[must_use]
pub(crate) fn find_undescribed(
    matters: &[WantedMatter],
    known: &[KnownSchedule],
    settings: &ScheduleSettings,
) -> Vec<String> {
    let wanted = index_by_schedule_id(matters, settings, &mut Vec::new());
    let needs_description = |schedule: &&KnownSchedule| {
        let (ScheduleContents::Listed { cadence }, Some(matter)) = (&schedule.contents, wanted.get(&schedule.id))
        else {
            return false;
        };
        match matter.status {
            MatterScheduleStatus::Archived | MatterScheduleStatus::Unreadable | MatterScheduleStatus::Lost => {
                schedule.workflow_type.is_empty()
            }
            MatterScheduleStatus::Open | MatterScheduleStatus::Done if is_ours(schedule, settings) => {
                settings.describe_all || !is_listing_current(matter, schedule, cadence, settings)
            }
            MatterScheduleStatus::Open | MatterScheduleStatus::Done => schedule.workflow_type.is_empty(),
        }
    };
    known.iter().filter(needs_description).map(|schedule| schedule.id.clone()).collect()
}

/// Whether the cadence and the mark of a listed schedule show that its contents are as wanted.
fn is_listing_current(
    matter: &WantedMatter,
    schedule: &KnownSchedule,
    cadence: &str,
    settings: &ScheduleSettings,
) -> bool {
    let wanted = build_wanted_schedule(matter, settings);
    cadence == facts::describe_cadence(wanted.spec.as_ref()) && schedule.mark == facts::find_mark(wanted.spec.as_ref())
}

/// Plans a matter that has a schedule of ours.
fn plan_existing_schedule(
    plan: &mut SchedulePlan,
    id: &str,
    matter: &WantedMatter,
    schedule: &KnownSchedule,
    settings: &ScheduleSettings,
) {
    let done = match matter.status {
        MatterScheduleStatus::Open => false,
        MatterScheduleStatus::Done => true,
        MatterScheduleStatus::Lost if schedule.paused && !is_our_pause(&schedule.note) => {
            let why = "its note is gone, and may have been renamed elsewhere".to_owned();
            return plan.push_step(id, matter, ScheduleStepVerb::Keep { why });
        }
        MatterScheduleStatus::Archived | MatterScheduleStatus::Lost => {
            return plan.push_step(id, matter, ScheduleStepVerb::Delete);
        }
        MatterScheduleStatus::Unreadable => {
            let verb = match (settings.draining, schedule.paused) {
                (true, false) => ScheduleStepVerb::Drain,
                (false, true) if is_drain_pause(&schedule.note) => ScheduleStepVerb::Resume,
                _ => ScheduleStepVerb::Keep { why: format!("{} cannot be read", matter.path) },
            };
            return plan.push_step(id, matter, verb);
        }
    };
    let differences = match &schedule.contents {
        ScheduleContents::Described(found) => find_schedule_differences(found, matter, schedule, settings),
        ScheduleContents::Listed { cadence } if is_listing_current(matter, schedule, cadence, settings) => Vec::new(),
        // The listing shows whether it is paused, which is enough for a drain.
        ScheduleContents::Listed { .. } | ScheduleContents::Unread(_) if settings.draining && !schedule.paused => {
            return plan.push_step(id, matter, ScheduleStepVerb::Drain);
        }
        ScheduleContents::Listed { .. } => {
            return plan.keep_unread_schedule(id, matter, "the listing does not show its contents");
        }
        ScheduleContents::Unread(why) => return plan.keep_unread_schedule(id, matter, why),
    };
    let changed = !differences.is_empty();
    if changed {
        plan.push_step(id, matter, ScheduleStepVerb::Update { differences });
    }
    let state = plan_pause(done, schedule, changed, settings);
    match state {
        Some(verb) => plan.push_step(id, matter, verb),
        None if changed => {}
        None => plan.push_step(id, matter, ScheduleStepVerb::Unchanged),
    }
}

fn build_wanted_schedule(matter: &WantedMatter, settings: &ScheduleSettings) -> Schedule {
    facts::build_matter_schedule(&matter.path, matter.effective_interval_seconds(settings), settings)
}

fn find_schedule_differences(
    found: &ScheduleFacts,
    matter: &WantedMatter,
    schedule: &KnownSchedule,
    settings: &ScheduleSettings,
) -> Vec<String> {
    let wanted = build_wanted_schedule(matter, settings);
    let mut differences = found.list_differences(&ScheduleFacts::from_schedule(&wanted));
    if differences.is_empty() && schedule.mark != facts::find_mark(wanted.spec.as_ref()) {
        differences.push("mark: missing or outdated; it lets a listing show that nothing changed".to_owned());
    }
    differences
}

/// Plans a matter that has no schedule.
fn plan_missing_schedule(plan: &mut SchedulePlan, id: &str, matter: &WantedMatter, settings: &ScheduleSettings) {
    match matter.status {
        MatterScheduleStatus::Open => {
            plan.push_step(id, matter, ScheduleStepVerb::Create { paused: settings.draining })
        }
        MatterScheduleStatus::Done => plan.push_step(id, matter, ScheduleStepVerb::Create { paused: true }),
        MatterScheduleStatus::Archived | MatterScheduleStatus::Lost => {}
        MatterScheduleStatus::Unreadable => {
            let why = format!("{} cannot be read, so it gets no schedule yet", matter.path);
            plan.push_step(id, matter, ScheduleStepVerb::Keep { why });
        }
    }
}

/// The matters by the id of their schedule. Two different entries for one matter count as unreadable.
fn index_by_schedule_id(
    matters: &[WantedMatter],
    settings: &ScheduleSettings,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, WantedMatter> {
    let mut wanted: BTreeMap<String, WantedMatter> = BTreeMap::new();
    for matter in matters {
        let matter = WantedMatter { interval_seconds: matter.effective_interval_seconds(settings), ..matter.clone() };
        let entry = wanted.entry(facts::schedule_id(&matter.path)).or_insert_with(|| matter.clone());
        if entry.path != matter.path {
            warnings.push(format!(
                "{} and {} would have one schedule, so neither is changed: rename one of them",
                entry.path, matter.path
            ));
            entry.status = MatterScheduleStatus::Unreadable;
        } else if entry.status != matter.status || entry.interval_seconds != matter.interval_seconds {
            warnings
                .push(format!("{} is listed twice with different values: its schedule is kept as it is", matter.path));
            entry.status = MatterScheduleStatus::Unreadable;
        }
    }
    wanted
}

impl WantedMatter {
    /// Seconds between two ticks, at least 1.
    fn effective_interval_seconds(&self, settings: &ScheduleSettings) -> u32 {
        let seconds = if self.interval_seconds == 0 { settings.interval_seconds } else { self.interval_seconds };
        seconds.max(1)
    }
}

impl SchedulePlan {
    fn push_step(&mut self, id: &str, matter: &WantedMatter, verb: ScheduleStepVerb) {
        let (matter, interval_seconds) = (matter.path.clone(), matter.interval_seconds);
        self.steps.push(ScheduleStep { id: id.to_owned(), matter, interval_seconds, verb });
    }

    /// Keeps a schedule that could not be read, with a warning.
    fn keep_unread_schedule(&mut self, id: &str, matter: &WantedMatter, why: &str) {
        self.unread.push(id.to_owned());
        self.warnings.push(format!("{id}: kept as it is, because it could not be read: {why}"));
        self.push_step(id, matter, ScheduleStepVerb::Keep { why: why.to_owned() });
    }
}

#[cfg(test)]
mod tests;
