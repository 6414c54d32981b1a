//! The log of operator events: tokens created and revoked, streams paused and resumed, logins and logouts.
//!
//! Each event is one line in `.steward/operator.jsonl`. Resolutions of actions are in the audit chain instead, and
//! stops are in their own log ([`crate::gates::stop`]). If an event gives somebody more access and cannot be logged, it
//! must not happen. The callers ensure that.

use crate::files::json_lines;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::IpAddr;

const FILE: &str = "operator.jsonl";
/// The longest name of a person or of an object that is kept, in characters.
const MAX_NAME_CHARS: usize = 200;

/// The kind of an operator event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorEventKind {
    #[serde(rename = "stream.paused")]
    StreamPaused,
    #[serde(rename = "stream.resumed")]
    StreamResumed,
    #[serde(rename = "token.created")]
    TokenMade,
    #[serde(rename = "token.revoked")]
    TokenRevoked,
    #[serde(rename = "login")]
    Login,
    #[serde(rename = "logout")]
    Logout,
    #[serde(rename = "back_off.lifted")]
    BackOffLifted,
}

/// One event of one person or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEvent {
    /// RFC 3339, UTC.
    pub at: String,
    /// The person or script, as audit records name them.
    pub by: String,
    pub act: OperatorEventKind,
    /// The object of the event, in words: a stream, a token with its scope, or the scope of a login.
    pub on: String,
    /// The address that the request came from, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

/// An event cannot be logged.
#[derive(Debug, thiserror::Error)]
#[error("{OWN_FOLDER}/{FILE}: {0}: this log must be writable, because it records who did it")]
pub struct OperatorLogError(#[from] io::Error);

/// Logs an event and makes the line durable.
///
/// # Errors
/// [`OperatorLogError`] if the line cannot be written.
pub fn append_event(root: &VaultRoot, event: &OperatorEvent) -> Result<(), OperatorLogError> {
    let cut = |text: &str| text.chars().take(MAX_NAME_CHARS).collect::<String>();
    let event = OperatorEvent { by: cut(&event.by), on: cut(&event.on), ..event.clone() };
    Ok(json_lines::append_line(root, FILE, &event)?)
}

/// The last events, newest first, at most `limit`; empty if none can be read.
#[must_use]
pub fn list_events(root: &VaultRoot, limit: usize) -> Vec<OperatorEvent> {
    json_lines::read_newest_lines(root, FILE, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_reads_as_it_was_written_in_words_that_scripts_may_rely_on() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let from = Some("192.0.2.7".parse().unwrap());
        let event = OperatorEvent {
            at: "now".into(),
            by: "ann\n".into(),
            act: OperatorEventKind::TokenMade,
            on: "x".repeat(300),
            from,
        };
        append_event(&root, &event).unwrap();
        append_event(&root, &OperatorEvent { act: OperatorEventKind::Login, from: None, ..event.clone() }).unwrap();
        let listed = list_events(&root, 9);
        assert_eq!(
            listed.iter().map(|event| event.act).collect::<Vec<_>>(),
            [OperatorEventKind::Login, OperatorEventKind::TokenMade]
        );
        assert_eq!(listed[1], OperatorEvent { on: "x".repeat(MAX_NAME_CHARS), ..event });
        let text = std::fs::read_to_string(dir.path().join(OWN_FOLDER).join(FILE)).unwrap();
        assert!(text.starts_with(r#"{"at":"now","by":"ann\n","act":"token.created","on":"x"#), "{text}");
        assert!(text.lines().next().unwrap().ends_with(r#","from":"192.0.2.7"}"#), "{text}");
    }
}
