//! Slack's Events API: messages as events, its question whether we are there, nothing else.
//!
//! A call carries the moment it was made, and that is signed: one that is old is not listened to. What
//! the text of a message asks for is never done here; it goes to the extractor as words.

use super::super::{Found, pattern};
use super::{Call, Refused, at};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// How old a call may be, as Slack advises: 5 min.
const WINDOW_SECONDS: u64 = 300;

/// Whether the call's own stamp is near enough to our clock.
pub(super) fn is_fresh(stamp: &str, now: DateTime<Utc>) -> bool {
    stamp.parse::<i64>().is_ok_and(|at| now.timestamp().abs_diff(at) <= WINDOW_SECONDS)
}

pub(super) fn read(json: &Value) -> Result<Call, Refused> {
    let missing = |what: &str| Refused::Unreadable(format!("`{what}` is missing"));
    match at(json, &["type"]) {
        Some("url_verification") => {
            at(json, &["challenge"]).map(|c| Call::Challenge(c.to_owned())).ok_or_else(|| missing("challenge"))
        }
        Some("event_callback") => {
            let id = at(json, &["event_id"]).ok_or_else(|| missing("event_id"))?;
            Ok(message(json, id))
        }
        Some(_) => Ok(Call::Nothing),
        None => Err(missing("type")),
    }
}

/// A message that somebody wrote; edits come as messages of their own.
fn message(json: &Value, id: &str) -> Call {
    let inner = |name| at(json, &["event", name]).or_else(|| at(json, &["event", "message", name]));
    let Some(text) = inner("text").filter(|text| !text.trim().is_empty()) else { return Call::Nothing };
    let (team, user) = (at(json, &["team_id"]).unwrap_or("unknown"), inner("user").or_else(|| inner("bot_id")));
    let who = format!("{team}/{}", user.unwrap_or("unknown"));
    let seconds = json.get("event_time").and_then(Value::as_i64);
    Call::Event(Box::new(Found {
        source_id: id.to_owned(),
        pattern: pattern("slack", Some(&who)),
        origin_at: seconds.and_then(|at| DateTime::from_timestamp(at, 0)),
        author: user.map(str::to_owned),
        subject: inner("channel").map(|channel| format!("Slack channel {channel}")),
        text: text.to_owned(),
    }))
}
