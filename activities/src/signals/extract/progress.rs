//! How far the extraction of an event has come: how its calls ended, the answer in use, and the event's status.
//!
//! This file only builds values and field edits. It writes nothing.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::FieldEdit;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::TargetOffer;
use steward_domain::signals::stream::{EventStatus, StreamEvent};

/// An answer whose signals are being written, and the targets that it could choose from.
#[derive(Serialize, Deserialize)]
pub(super) struct AnswerInProgress {
    pub(super) offers: Vec<TargetOffer>,
    pub(super) text: String,
}

/// How the reading of an event ended.
pub(super) enum EventReading {
    Answer {
        text: String,
        cached: bool,
    },
    /// The clerk's answers were invalid, which counts against the event.
    Bad(String),
    Unanswered {
        reason: String,
        /// The call took too long while other calls were under way.
        crowded: bool,
    },
    Held {
        reason: String,
        /// How long to wait within this run, in seconds; `None` if the next run tries again.
        wait_seconds: Option<u32>,
    },
    /// The share of its sender or of its stream is used up.
    OverShare(String),
}

/// How one call ended.
pub(super) enum ExtractCallOutcome {
    Text(String),
    Complaint(String),
    Ends(EventReading),
}

/// Rounds up to whole seconds, at least 1: a call that comes too early gets another 429.
pub(super) fn whole_seconds(wait: TimeDelta) -> Option<u32> {
    u32::try_from(wait.num_milliseconds().max(1).unsigned_abs().div_ceil(1000)).ok()
}

/// The key of an event's answer: everything that its signals are made from.
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
