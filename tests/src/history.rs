//! Workflow histories, fetched from the server or read in the format of the Temporal CLI.

use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage};
use temporalio_common::protos::temporal::api::enums::v1::{EventType, TimeoutType};
use temporalio_common::protos::temporal::api::failure::v1::failure::FailureInfo;
use temporalio_common::protos::temporal::api::history::v1::{History, HistoryEvent, history_event::Attributes};

/// Reads the output of `temporal workflow show -o json`.
///
/// # Panics
/// When it is not a history.
#[must_use]
pub fn read(json: &str) -> History {
    let descriptors: &[u8] = include_bytes!(env!("TEMPORAL_DESCRIPTORS"));
    let pool = DescriptorPool::decode(descriptors).unwrap();
    let kind = pool.get_message_by_name("temporal.api.history.v1.History").unwrap();
    let mut reader = serde_json::Deserializer::from_str(json);
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(kind, &mut reader, &lenient).unwrap();
    History::decode(message.encode_to_vec().as_slice()).unwrap()
}

/// The number of events of a type.
#[must_use]
pub fn count(events: &[HistoryEvent], kind: EventType) -> usize {
    events.iter().filter(|event| event.event_type() == kind).count()
}

/// The time-outs that ended activities for good, in order.
#[must_use]
pub fn timeouts(events: &[HistoryEvent]) -> Vec<TimeoutType> {
    let failures = events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::ActivityTaskTimedOutEventAttributes(timed_out)) => timed_out.failure.as_ref(),
        _ => None,
    });
    let timeout = |info: &FailureInfo| match info {
        FailureInfo::TimeoutFailureInfo(timeout) => Some(timeout.timeout_type()),
        _ => None,
    };
    failures.filter_map(|failure| failure.failure_info.as_ref().and_then(timeout)).collect()
}

/// The types of the local activities that left a marker, in order.
#[must_use]
pub fn local_activities(events: &[HistoryEvent]) -> Vec<String> {
    let markers = events.iter().filter_map(|event| match &event.attributes {
        Some(Attributes::MarkerRecordedEventAttributes(marker)) => Some(marker),
        _ => None,
    });
    markers
        .map(|marker| {
            let data = marker.details.get("data").and_then(|d| d.payloads.first()).unwrap();
            let data: serde_json::Value = serde_json::from_slice(&data.data).unwrap();
            data["activity_type"].as_str().unwrap_or_default().to_owned()
        })
        .collect()
}
