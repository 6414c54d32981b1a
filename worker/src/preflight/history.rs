//! Reads recorded workflow histories: from files, and the parts that a check needs.
//!
//! Files hold the protobuf JSON that the Temporal CLI and Web UI write. A [`RunShape`] tells histories of one path from
//! those of another. This module must not judge a history: [`super::replay`] and [`super::payloads`] do that.

use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use temporalio_protos::temporal::api::enums::v1::EventType;
use temporalio_protos::temporal::api::history::v1::{History, HistoryEvent, history_event::Attributes};

/// The protocol's descriptors. They are needed because the SDK's own JSON reader rejects the output of the CLI.
static DESCRIPTORS: LazyLock<Result<DescriptorPool, String>> = LazyLock::new(|| {
    let bytes: &[u8] = include_bytes!(env!("TEMPORAL_DESCRIPTORS"));
    DescriptorPool::decode(bytes).map_err(|e| e.to_string())
});

/// Reads a history from the protobuf JSON that the Temporal CLI and Web UI write.
///
/// Fields that a newer server wrote are skipped.
///
/// # Errors
/// The text is not a history; the message names the place.
pub(crate) fn parse_history(json: &str) -> Result<History, String> {
    let pool = DESCRIPTORS.as_ref().map_err(Clone::clone)?;
    let descriptor = pool
        .get_message_by_name("temporal.api.history.v1.History")
        .ok_or("this build's protocol descriptors lack the history")?;
    let mut reader = serde_json::Deserializer::from_str(json);
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(descriptor, &mut reader, &lenient)
        .and_then(|message| reader.end().map(|()| message))
        .map_err(|e| e.to_string())?;
    let history = History::decode(message.encode_to_vec().as_slice()).map_err(|e| e.to_string())?;
    if history.events.is_empty() { Err("it has no events".into()) } else { Ok(history) }
}

/// The path of a run: its workflow type, and the types of its events with the names of its activities.
///
/// Two runs of one shape differ only in their payloads and times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunShape {
    /// Empty if the first event names none.
    pub(crate) workflow_type: String,
    pub(crate) events: usize,
    digest: [u8; 16],
}

impl RunShape {
    pub(crate) fn of_history(history: &History) -> Self {
        let mut digest = Sha256::new();
        for event in &history.events {
            digest.update(event.event_type.to_be_bytes());
            digest.update(read_activity_name(event).unwrap_or_default());
            digest.update([0]);
        }
        let mut first = [0; 16];
        first.iter_mut().zip(digest.finalize()).for_each(|(first, byte)| *first = byte);
        Self {
            workflow_type: find_workflow_type(history).unwrap_or_default().to_owned(),
            events: history.events.len(),
            digest: first,
        }
    }
}

/// The workflow type that the first event names.
pub(crate) fn find_workflow_type(history: &History) -> Option<&str> {
    match history.events.first()?.attributes.as_ref()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => Some(&started.workflow_type.as_ref()?.name),
        _ => None,
    }
}

/// The task queue of the run, which its workflow sees.
pub(crate) fn find_task_queue(history: &History) -> Option<&str> {
    match history.events.first()?.attributes.as_ref()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => Some(&started.task_queue.as_ref()?.name),
        _ => None,
    }
}

/// Whether a worker has completed a workflow task of this run. Without one, nothing of the run's path is recorded.
pub(crate) fn has_completed_task(history: &History) -> bool {
    history.events.iter().any(|event| event.event_type() == EventType::WorkflowTaskCompleted)
}

/// Whether the run has not ended, as far as its history goes.
pub(crate) fn is_open(history: &History) -> bool {
    let ends = |event: &HistoryEvent| {
        matches!(
            event.event_type(),
            EventType::WorkflowExecutionCompleted
                | EventType::WorkflowExecutionFailed
                | EventType::WorkflowExecutionTimedOut
                | EventType::WorkflowExecutionTerminated
                | EventType::WorkflowExecutionCanceled
                | EventType::WorkflowExecutionContinuedAsNew
        )
    };
    !history.events.last().is_some_and(ends)
}

/// The part of the SDK's record of a local activity that is needed here.
#[derive(Deserialize)]
pub(crate) struct LocalActivityMarker {
    pub(crate) seq: i64,
    pub(crate) activity_type: String,
}

/// Reads the marker of a local activity; `None` for any other event.
pub(crate) fn read_local_activity(event: &HistoryEvent) -> Option<LocalActivityMarker> {
    let Some(Attributes::MarkerRecordedEventAttributes(marker)) = &event.attributes else { return None };
    serde_json::from_slice(&marker.details.get("data")?.payloads.first()?.data).ok()
}

/// The name of the activity that an event schedules, or records as done locally.
pub(crate) fn read_activity_name(event: &HistoryEvent) -> Option<String> {
    match &event.attributes {
        Some(Attributes::ActivityTaskScheduledEventAttributes(task)) => Some(task.activity_type.as_ref()?.name.clone()),
        _ => read_local_activity(event).map(|marker| marker.activity_type),
    }
}

/// Renames the activity that an event schedules, or records as done locally.
pub(crate) fn set_activity_name(event: &mut HistoryEvent, name: &str) {
    match &mut event.attributes {
        Some(Attributes::ActivityTaskScheduledEventAttributes(task)) => {
            task.activity_type.get_or_insert_default().name = name.to_owned();
        }
        Some(Attributes::MarkerRecordedEventAttributes(marker)) => {
            let data = marker.details.get_mut("data").and_then(|data| data.payloads.first_mut());
            let Some(data) = data else { return };
            if let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(&data.data) {
                value["activity_type"] = name.into();
                data.data = value.to_string().into_bytes();
            }
        }
        _ => {}
    }
}

/// The type of an event as Temporal's pages write it: `ActivityTaskScheduled`.
pub(crate) fn format_event_type(event: &HistoryEvent) -> String {
    format!("{:?}", event.event_type())
}
