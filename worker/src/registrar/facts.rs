//! What a schedule of ours holds, and how much of it is ours.
//!
//! Ours: cadence, workflow type, argument, task queue, timeouts, overlap, catch-up and summary. A
//! person's: whether it is paused, its note, limited actions, calendars, jitter and whatever else
//! they added; nothing here touches those. [`desired`] builds the schedule a matter should have,
//! [`Facts`] says what one holds, so that two can be compared field by field.
//!
//! A listing shows the cadence, but neither argument nor timeouts, nor whose schedule it is. So each schedule
//! carries a [`Mark`] with a digest of its facts and the id of its vault. It is not in the memo because most
//! servers let nobody change that afterwards.
//!
//! Pure: no clock, no network. Goes on to [`super::plan`] and [`super::edit`].

use super::Settings;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Duration;
use steward_domain::path::RecordPath;
use steward_server::facts::schedules::mark::Mark;
pub(crate) use steward_server::facts::schedules::{STEWARD as WORKFLOW_TYPE, matter_of};
use steward_vault::identity::VaultIdentity;
pub(crate) use steward_workflows::{SCHEDULE_PREFIX as ID_PREFIX, schedule_id};
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{ScheduleOverlapPolicy, TaskQueueKind};
use temporalio_common::protos::temporal::api::schedule::v1 as spb;
use temporalio_common::protos::temporal::api::sdk::v1::UserMetadata;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::NewWorkflowExecutionInfo;

/// The server accepts no catch-up window below this.
const LEAST_CATCH_UP: Duration = Duration::from_secs(10);

/// When inside its interval a matter ticks, in seconds: below `interval_seconds`.
///
/// The first eight bytes of the slug's SHA-256, read as a big-endian number, modulo the interval.
/// It depends on nothing else and must stay so for good: another rule would move every matter of
/// every vault. The ticks of a doubled interval are every other tick of the single one.
#[must_use]
pub(crate) fn phase_seconds(slug: &str, interval_seconds: u32) -> u32 {
    let digest = Sha256::digest(slug.as_bytes());
    let head = digest.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    u32::try_from(head % u64::from(interval_seconds.max(1))).unwrap_or(0)
}

/// The schedule a matter should have, not paused and without a note.
#[must_use]
pub(crate) fn desired(matter: &RecordPath, interval_seconds: u32, settings: &Settings) -> spb::Schedule {
    let id = schedule_id(matter.slug());
    let summary = format!("Steward of {matter}");
    let mut schedule = starting((&id, WORKFLOW_TYPE), vec![json_payload(matter.as_str())], (&summary, settings));
    set_cadence(&mut schedule, matter.slug(), interval_seconds);
    set_mark(&mut schedule, &id, settings.owner.as_ref());
    schedule
}

/// A schedule that starts a workflow of this id and type with these arguments, without a cadence yet.
pub(super) fn starting(
    (id, workflow): (&str, &str),
    arguments: Vec<Payload>,
    (summary, settings): (&str, &Settings),
) -> spb::Schedule {
    let action = NewWorkflowExecutionInfo {
        workflow_id: id.to_owned(),
        workflow_type: Some(WorkflowType { name: workflow.to_owned() }),
        task_queue: Some(TaskQueue {
            name: settings.task_queue.clone(),
            kind: TaskQueueKind::Normal.into(),
            ..Default::default()
        }),
        input: (!arguments.is_empty()).then_some(Payloads { payloads: arguments }),
        workflow_execution_timeout: settings.execution_timeout.try_into().ok(),
        workflow_run_timeout: settings.run_timeout.try_into().ok(),
        workflow_task_timeout: settings.workflow_task_timeout.try_into().ok(),
        user_metadata: Some(UserMetadata { summary: Some(json_payload(summary)), ..Default::default() }),
        ..Default::default()
    };
    spb::Schedule {
        action: Some(spb::ScheduleAction { action: Some(spb::schedule_action::Action::StartWorkflow(action)) }),
        policies: Some(spb::SchedulePolicies {
            overlap_policy: ScheduleOverlapPolicy::Skip.into(),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Gives a schedule the interval, the phase and the catch-up window of a cadence; nothing else.
pub(crate) fn set_cadence(schedule: &mut spb::Schedule, slug: &str, interval_seconds: u32) {
    let interval = Duration::from_secs(interval_seconds.into());
    let phase = Duration::from_secs(phase_seconds(slug, interval_seconds).into());
    set_interval(schedule, interval, phase);
}

/// As [`set_cadence`], at a phase that is given.
pub(super) fn set_interval(schedule: &mut spb::Schedule, interval: Duration, phase: Duration) {
    schedule.spec.get_or_insert_default().interval =
        vec![spb::IntervalSpec { interval: interval.try_into().ok(), phase: phase.try_into().ok() }];
    schedule.policies.get_or_insert_default().catchup_window = interval.max(LEAST_CATCH_UP).try_into().ok();
}

/// Lets a workflow that goes on as new do so for as long as it has to.
pub(super) fn bound_each_run_alone(schedule: &mut spb::Schedule) {
    let action = schedule.action.as_mut().and_then(|action| action.action.as_mut());
    if let Some(spb::schedule_action::Action::StartWorkflow(action)) = action {
        action.workflow_execution_timeout = None;
    }
}

/// Writes what is ours in `wanted` into a schedule as the server described it.
///
/// State, calendars, jitter, time zone, retry policy, headers and the like stay as they are.
pub(crate) fn adopt(schedule: &mut spb::Schedule, wanted: &spb::Schedule) {
    if let (Some(spec), Some(from)) = (schedule.spec.as_mut(), &wanted.spec) {
        spec.interval.clone_from(&from.interval);
    } else {
        schedule.spec.clone_from(&wanted.spec);
    }
    if let (Some(policies), Some(from)) = (schedule.policies.as_mut(), &wanted.policies) {
        policies.overlap_policy = from.overlap_policy;
        policies.catchup_window = from.catchup_window;
    } else {
        schedule.policies.clone_from(&wanted.policies);
    }
    let Some(from) = action_of(wanted) else { return };
    match schedule.action.as_mut().and_then(|action| action.action.as_mut()) {
        Some(spb::schedule_action::Action::StartWorkflow(action)) => {
            action.workflow_id.clone_from(&from.workflow_id);
            action.workflow_type.clone_from(&from.workflow_type);
            action.task_queue.clone_from(&from.task_queue);
            action.input.clone_from(&from.input);
            action.workflow_execution_timeout = from.workflow_execution_timeout;
            action.workflow_run_timeout = from.workflow_run_timeout;
            action.workflow_task_timeout = from.workflow_task_timeout;
            let summary = from.user_metadata.as_ref().and_then(|metadata| metadata.summary.clone());
            action.user_metadata.get_or_insert_default().summary = summary;
        }
        None => schedule.action.clone_from(&wanted.action),
    }
}

/// What is ours in one schedule, each fact as a person would read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Facts(Vec<(&'static str, String)>);

impl Facts {
    /// Reads a schedule, desired or described.
    #[must_use]
    pub(crate) fn of(schedule: &spb::Schedule) -> Self {
        let none = NewWorkflowExecutionInfo::default();
        let action = action_of(schedule).unwrap_or(&none);
        let policies = schedule.policies.unwrap_or_default();
        let arguments = action.input.as_ref().map_or(&[][..], |input| &input.payloads);
        let summary = action.user_metadata.as_ref().and_then(|metadata| metadata.summary.as_ref());
        let overlap = ScheduleOverlapPolicy::try_from(policies.overlap_policy);
        Self(vec![
            ("cadence", cadence(schedule.spec.as_ref())),
            ("workflow type", workflow_type(schedule).to_owned()),
            ("workflow id", action.workflow_id.clone()),
            ("argument", arguments.iter().map(shown).collect::<Vec<_>>().join(", ")),
            ("task queue", action.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default()),
            ("execution timeout", seconds(action.workflow_execution_timeout)),
            ("run timeout", seconds(action.workflow_run_timeout)),
            ("workflow task timeout", seconds(action.workflow_task_timeout)),
            ("overlap policy", overlap.map_or("unknown", |policy| policy.as_str_name()).to_owned()),
            ("catch-up window", seconds(policies.catchup_window)),
            ("summary", summary.map(shown).unwrap_or_default()),
        ])
    }

    /// What would change if a schedule that holds these facts came to hold `wanted`.
    #[must_use]
    pub(crate) fn differences(&self, wanted: &Self) -> Vec<String> {
        let pairs = self.0.iter().zip(&wanted.0);
        pairs
            .filter(|(is, to)| is != to)
            .map(|(is, to)| format!("{}: {} → {}", is.0, word(&is.1), word(&to.1)))
            .collect()
    }

    /// A digest of all facts, 32 hexadecimal digits.
    #[must_use]
    pub(crate) fn mark(&self) -> String {
        let mut digest = Sha256::new();
        for (name, value) in &self.0 {
            digest.update(format!("{name}={value}\n"));
        }
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Marks the schedule of this id with what it holds now and whose it is, in place of any older mark.
///
/// Where the vault lies stands on the schedules of the vault as a whole alone: a vault that moves would else change them all.
pub(crate) fn set_mark(schedule: &mut spb::Schedule, id: &str, owner: Option<&VaultIdentity>) {
    let place = owner.filter(|_| !id.starts_with(ID_PREFIX)).map(|owner| owner.place.clone());
    let mark = Mark { digest: Facts::of(schedule).mark(), vault: owner.map(|owner| owner.id), place };
    mark.put_into(schedule.spec.get_or_insert_default());
}

/// The mark that a schedule carries; `None` when there is none, or more than one.
#[must_use]
pub(crate) fn mark_of(spec: Option<&spb::ScheduleSpec>) -> Option<Mark> {
    Mark::find(spec)
}

/// The cadence of a specification: `every 1800 s, offset 437 s`, or `none`.
#[must_use]
pub(crate) fn cadence(spec: Option<&spb::ScheduleSpec>) -> String {
    let intervals = spec.map_or(&[][..], |spec| &spec.interval);
    let shown: Vec<String> = intervals
        .iter()
        .map(|each| format!("every {}, offset {}", seconds(each.interval), seconds(each.phase)))
        .collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(" and ") }
}

/// The workflow type a schedule starts; empty when it starts none.
#[must_use]
pub(crate) fn workflow_type(schedule: &spb::Schedule) -> &str {
    action_of(schedule).and_then(|action| action.workflow_type.as_ref()).map_or("", |name| &name.name)
}

fn action_of(schedule: &spb::Schedule) -> Option<&NewWorkflowExecutionInfo> {
    let spb::schedule_action::Action::StartWorkflow(action) = schedule.action.as_ref()?.action.as_ref()?;
    Some(action)
}

/// A text as Temporal clients write it: `json/plain`, never through a codec, so that any of them can read it.
fn json_payload(text: &str) -> Payload {
    Payload {
        metadata: HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]),
        data: serde_json::Value::from(text).to_string().into_bytes(),
        ..Default::default()
    }
}

/// A payload as a person would read it; one that is not JSON is told by its encoding too.
fn shown(payload: &Payload) -> String {
    let encoding = payload.metadata.get("encoding").map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let data = String::from_utf8_lossy(&payload.data);
    if encoding == "json/plain" { data.into_owned() } else { format!("{encoding} {data}") }
}

/// A duration of the protocol in seconds: `1800 s`, `0.5 s`; one that is missing or negative is `0 s`.
fn seconds<D: TryInto<Duration>>(duration: Option<D>) -> String {
    let duration = duration.and_then(|duration| duration.try_into().ok()).unwrap_or_default();
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} s", duration.as_secs_f64())
    }
}

fn word(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
