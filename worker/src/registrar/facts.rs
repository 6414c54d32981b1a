//! The contents of a schedule: which fields are ours, and which belong to people.
//!
//! Ours are cadence, workflow type, argument, task queue, timeouts, overlap, catch-up and summary. People own the
//! pause, its note, limited actions, calendars, jitter and everything else; this module must not touch those.
//! [`build_matter_schedule`] builds the schedule that a matter should have. [`ScheduleFacts`] holds the own fields of a
//! schedule, so that two can be compared field by field.
//!
//! A listing shows the cadence, but neither the argument, nor the timeouts, nor the vault. So each schedule carries a
//! [`ScheduleMark`] with a digest of its facts and the id of its vault. The mark is not in the memo, because most
//! servers do not allow to change the memo later. The module is pure: it uses no clock and no network.

use super::ScheduleSettings;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::time::Duration;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_server::views::schedules::TENANT_ATTRIBUTE;
pub(crate) use steward_server::views::schedules::TICK_WORKFLOW as WORKFLOW_TYPE;
use steward_server::views::schedules::mark::ScheduleMark;
use steward_vault::files::identity::VaultIdentity;
use steward_workflows::MATTER_ATTRIBUTE;
pub(crate) use steward_workflows::SCHEDULE_PREFIX as ID_PREFIX;
pub(crate) use steward_workflows::schedule_id;
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads, SearchAttributes, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{ScheduleOverlapPolicy, TaskQueueKind};
use temporalio_common::protos::temporal::api::schedule::v1 as spb;
use temporalio_common::protos::temporal::api::sdk::v1::UserMetadata;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::NewWorkflowExecutionInfo;

/// The shortest catch-up window that the server accepts: 10 s.
const MIN_CATCH_UP: Duration = Duration::from_secs(10);

/// Computes the offset of a matter's ticks in its interval, in seconds: below `interval_seconds`.
///
/// It is the first eight bytes of the slug's SHA-256, read as a big-endian number, modulo the interval. It must not
/// depend on anything else and must never change: another rule would move the ticks of every matter of every vault.
/// The ticks of a doubled interval are every second tick of the original one.
#[must_use]
pub(crate) fn compute_phase_seconds(slug: &str, interval_seconds: u32) -> u32 {
    let digest = Sha256::digest(slug.as_bytes());
    let head = digest.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
    u32::try_from(head % u64::from(interval_seconds.max(1))).unwrap_or(0)
}

/// Builds the schedule that a matter should have, not paused and without a note.
#[must_use]
pub(crate) fn build_matter_schedule(
    matter: &RecordPath,
    interval_seconds: u32,
    settings: &ScheduleSettings,
) -> spb::Schedule {
    let id = schedule_id(matter);
    let summary = format!("Steward of {matter}");
    let arguments = vec![build_json_payload(matter.as_str())];
    let mut schedule = build_schedule(&id, WORKFLOW_TYPE, arguments, &summary, settings);
    set_cadence(&mut schedule, matter, interval_seconds);
    set_mark(&mut schedule, settings.owner.as_ref());
    schedule
}

/// Builds a schedule that starts a workflow of this id and type with these arguments, without a cadence yet.
pub(super) fn build_schedule(
    id: &str,
    workflow: &str,
    arguments: Vec<Payload>,
    summary: &str,
    settings: &ScheduleSettings,
) -> spb::Schedule {
    let action = NewWorkflowExecutionInfo {
        workflow_id: settings.names.qualify_id(id),
        search_attributes: build_attributes(settings, arguments.first()),
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
        user_metadata: Some(UserMetadata { summary: Some(build_json_payload(summary)), ..Default::default() }),
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

/// The search attributes of a schedule and its runs. `matter` is the argument of a tick. They help people to search the
/// Temporal UI. Nothing relies on them alone.
fn build_attributes(settings: &ScheduleSettings, matter: Option<&Payload>) -> Option<SearchAttributes> {
    let tenant = settings.names.tenant().map(|tenant| (TENANT_ATTRIBUTE, build_json_payload(tenant.as_str())));
    // The namespace of a fleet was prepared for both.
    let has_matter = settings.has_search_attributes || tenant.is_some();
    let matter = matter.filter(|_| has_matter).map(|matter| (MATTER_ATTRIBUTE, matter.clone()));
    let indexed_fields: HashMap<String, Payload> =
        tenant.into_iter().chain(matter).map(|(name, value)| (name.to_owned(), value)).collect();
    (!indexed_fields.is_empty()).then_some(SearchAttributes { indexed_fields })
}

/// Sets the interval, the phase and the catch-up window of a schedule, and nothing else.
pub(crate) fn set_cadence(schedule: &mut spb::Schedule, matter: &RecordPath, interval_seconds: u32) {
    let interval = Duration::from_secs(interval_seconds.into());
    let phase =
        Duration::from_secs(compute_phase_seconds(&matter.plain_name(RecordKind::Matter), interval_seconds).into());
    set_interval(schedule, interval, phase);
}

/// As [`set_cadence`], with a given phase.
pub(super) fn set_interval(schedule: &mut spb::Schedule, interval: Duration, phase: Duration) {
    schedule.spec.get_or_insert_default().interval =
        vec![spb::IntervalSpec { interval: interval.try_into().ok(), phase: phase.try_into().ok() }];
    schedule.policies.get_or_insert_default().catchup_window = interval.max(MIN_CATCH_UP).try_into().ok();
}

/// Removes the execution timeout, because a workflow that continues as new may need any time.
pub(super) fn clear_execution_timeout(schedule: &mut spb::Schedule) {
    let action = schedule.action.as_mut().and_then(|action| action.action.as_mut());
    if let Some(spb::schedule_action::Action::StartWorkflow(action)) = action {
        action.workflow_execution_timeout = None;
    }
}

/// Copies our own fields of `wanted` into a schedule as the server described it.
///
/// State, calendars, jitter, time zone, retry policy, headers and other fields stay as they are.
pub(crate) fn copy_own_fields(schedule: &mut spb::Schedule, wanted: &spb::Schedule) {
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
    let Some(from) = find_start_action(wanted) else { return };
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

/// Our own fields of one schedule, each as text for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScheduleFacts(Vec<(&'static str, String)>);

impl ScheduleFacts {
    /// Reads a schedule, desired or described.
    #[must_use]
    pub(crate) fn from_schedule(schedule: &spb::Schedule) -> Self {
        let none = NewWorkflowExecutionInfo::default();
        let action = find_start_action(schedule).unwrap_or(&none);
        let policies = schedule.policies.unwrap_or_default();
        let arguments = action.input.as_ref().map_or(&[][..], |input| &input.payloads);
        let summary = action.user_metadata.as_ref().and_then(|metadata| metadata.summary.as_ref());
        let overlap = ScheduleOverlapPolicy::try_from(policies.overlap_policy);
        Self(vec![
            ("cadence", describe_cadence(schedule.spec.as_ref())),
            ("workflow type", find_workflow_type(schedule).to_owned()),
            ("workflow id", action.workflow_id.clone()),
            ("argument", arguments.iter().map(format_payload).collect::<Vec<_>>().join(", ")),
            ("task queue", action.task_queue.as_ref().map(|queue| queue.name.clone()).unwrap_or_default()),
            ("execution timeout", format_seconds(action.workflow_execution_timeout)),
            ("run timeout", format_seconds(action.workflow_run_timeout)),
            ("workflow task timeout", format_seconds(action.workflow_task_timeout)),
            ("overlap policy", overlap.map_or("unknown", |policy| policy.as_str_name()).to_owned()),
            ("catch-up window", format_seconds(policies.catchup_window)),
            ("summary", summary.map(format_payload).unwrap_or_default()),
        ])
    }

    /// Lists the changes that would turn these facts into `wanted`.
    #[must_use]
    pub(crate) fn list_differences(&self, wanted: &Self) -> Vec<String> {
        let pairs = self.0.iter().zip(&wanted.0);
        pairs
            .filter(|(found, wanted)| found != wanted)
            .map(|(found, wanted)| format!("{}: {} → {}", found.0, text_or_none(&found.1), text_or_none(&wanted.1)))
            .collect()
    }

    /// A digest of all facts, 32 hexadecimal digits.
    #[must_use]
    pub(crate) fn compute_digest(&self) -> String {
        let mut digest = Sha256::new();
        for (name, value) in &self.0 {
            digest.update(format!("{name}={value}\n"));
        }
        digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Replaces the mark of the schedule with this id: the digest of its facts, its vault, and for a routine the vault's
/// place.
///
/// Only routines carry the place. Otherwise moving a vault would change all its schedules.
pub(crate) fn set_mark(schedule: &mut spb::Schedule, owner: Option<&VaultIdentity>) {
    let matter = read_matter_argument(schedule);
    let is_of_matter = find_workflow_type(schedule) == WORKFLOW_TYPE;
    let mark = ScheduleMark {
        digest: ScheduleFacts::from_schedule(schedule).compute_digest(),
        vault: owner.map(|owner| owner.id),
        place: owner.filter(|_| !is_of_matter).map(|owner| owner.place.clone()),
        matter,
    };
    mark.write_into_spec(schedule.spec.get_or_insert_default());
}

/// The matter that a schedule's argument names; `None` for the schedule of a routine.
fn read_matter_argument(schedule: &spb::Schedule) -> Option<RecordPath> {
    let input = find_start_action(schedule)?.input.as_ref()?;
    input.payloads.first().and_then(|payload| serde_json::from_slice(&payload.data).ok())
}

/// Finds the mark of a schedule; `None` if it has none or more than one.
#[must_use]
pub(crate) fn find_mark(spec: Option<&spb::ScheduleSpec>) -> Option<ScheduleMark> {
    ScheduleMark::find_in_spec(spec)
}

/// Describes the cadence of a specification: `every 1800 s, offset 437 s`, or `none`.
#[must_use]
pub(crate) fn describe_cadence(spec: Option<&spb::ScheduleSpec>) -> String {
    let intervals = spec.map_or(&[][..], |spec| &spec.interval);
    let shown: Vec<String> = intervals
        .iter()
        .map(|each| format!("every {}, offset {}", format_seconds(each.interval), format_seconds(each.phase)))
        .collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(" and ") }
}

/// The workflow type that a schedule starts; empty if it starts none.
#[must_use]
pub(crate) fn find_workflow_type(schedule: &spb::Schedule) -> &str {
    find_start_action(schedule).and_then(|action| action.workflow_type.as_ref()).map_or("", |name| &name.name)
}

/// The search attributes of the runs of a schedule, which are those of the schedule itself.
pub(super) fn find_attributes(schedule: &spb::Schedule) -> Option<SearchAttributes> {
    find_start_action(schedule)?.search_attributes.clone()
}

fn find_start_action(schedule: &spb::Schedule) -> Option<&NewWorkflowExecutionInfo> {
    let spb::schedule_action::Action::StartWorkflow(action) = schedule.action.as_ref()?.action.as_ref()?;
    Some(action)
}

/// Encodes a text as Temporal clients do: `json/plain` and without a codec, so that any client can read it.
fn build_json_payload(text: &str) -> Payload {
    Payload {
        metadata: HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]),
        data: serde_json::Value::from(text).to_string().into_bytes(),
        ..Default::default()
    }
}

/// Formats a payload for a person; one that is not JSON is preceded by its encoding.
fn format_payload(payload: &Payload) -> String {
    let encoding = payload.metadata.get("encoding").map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    let data = String::from_utf8_lossy(&payload.data);
    if encoding == "json/plain" { data.into_owned() } else { format!("{encoding} {data}") }
}

/// Formats a duration of the protocol in seconds: `1800 s`, `0.5 s`. A missing or negative one is `0 s`.
fn format_seconds<D: TryInto<Duration>>(duration: Option<D>) -> String {
    let duration = duration.and_then(|duration| duration.try_into().ok()).unwrap_or_default();
    if duration.subsec_nanos() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} s", duration.as_secs_f64())
    }
}

fn text_or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
