//! How far the reading of an event has come: the answer that is being written down, and what its file says.
//!
//! Nothing is written here.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::FieldEdit;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::TargetOffer;
use steward_domain::signals::stream::{EventStatus, StreamEvent};

/// An answer whose signals are being written, and what it was given to choose from.
#[derive(Serialize, Deserialize)]
pub(super) struct AnswerInProgress {
    pub(super) offers: Vec<TargetOffer>,
    pub(super) text: String,
}

/// Rounded up, and at least a second: too early is another 429.
pub(super) fn whole_seconds(wait: TimeDelta) -> Option<u32> {
    u32::try_from(wait.num_milliseconds().max(1).unsigned_abs().div_ceil(1000)).ok()
}

/// Names an event by all that its signals are made of.
pub(super) fn answer_key(path: &RecordPath, event: &StreamEvent) -> String {
    format!("event/{path}/{}", ContentHash::hash_bytes(event.render().as_bytes()).as_str())
}

pub(super) fn extracted_edits(reason: &str) -> Vec<FieldEdit> {
    let reason = if reason.is_empty() { Value::Null } else { json!(reason) };
    vec![field_edit("status", json!(EventStatus::Extracted.as_str())), field_edit("reason", reason)]
}

pub(super) fn field_edit(field: &str, value: Value) -> FieldEdit {
    FieldEdit { field: field.to_owned(), value: Some(value) }
}
