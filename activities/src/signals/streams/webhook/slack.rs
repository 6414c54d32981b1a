//! Slack's Events API: reads messages as events, and answers the check of the address. It reads nothing else.
//!
//! A call carries the signed time at which it was made, and an old call is refused. A request in the text of a message
//! must not be followed here: the text only goes to the extractor.

use super::super::FoundMessage;
use super::super::source_pattern;
use super::WebhookCall;
use super::WebhookRefusal;
use super::find_text;
use chrono::{DateTime, Utc};
use serde_json::Value;

/// How old a call may be, in seconds: 300, as Slack advises.
const WINDOW_SECONDS: u64 = 300;

/// Reports whether the call's timestamp is near enough to our clock.
pub(super) fn is_fresh(timestamp: &str, now: DateTime<Utc>) -> bool {
    timestamp.parse::<i64>().is_ok_and(|at| now.timestamp().abs_diff(at) <= WINDOW_SECONDS)
}

pub(super) fn read_call(json: &Value) -> Result<WebhookCall, WebhookRefusal> {
    let missing = |what: &str| WebhookRefusal::Unreadable(format!("`{what}` is missing"));
    match find_text(json, &["type"]) {
        Some("url_verification") => find_text(json, &["challenge"])
            .map(|c| WebhookCall::Challenge(c.to_owned()))
            .ok_or_else(|| missing("challenge")),
        Some("event_callback") => {
            let id = find_text(json, &["event_id"]).ok_or_else(|| missing("event_id"))?;
            Ok(read_message(json, id))
        }
        Some(_) => Ok(WebhookCall::Nothing),
        None => Err(missing("type")),
    }
}

/// Reads a message. Slack sends an edit as a message of its own.
fn read_message(json: &Value, id: &str) -> WebhookCall {
    let inner = |name| find_text(json, &["event", name]).or_else(|| find_text(json, &["event", "message", name]));
    let Some(text) = inner("text").filter(|text| !text.trim().is_empty()) else { return WebhookCall::Nothing };
    let (team, user) = (find_text(json, &["team_id"]).unwrap_or("unknown"), inner("user").or_else(|| inner("bot_id")));
    let author = format!("{team}/{}", user.unwrap_or("unknown"));
    let seconds = json.get("event_time").and_then(Value::as_i64);
    WebhookCall::Event(Box::new(FoundMessage {
        source_id: id.to_owned(),
        pattern: source_pattern("slack", Some(&author)),
        origin_at: seconds.and_then(|at| DateTime::from_timestamp(at, 0)),
        author: user.map(str::to_owned),
        subject: inner("channel").map(|channel| format!("Slack channel {channel}")),
        text: text.to_owned(),
    }))
}
