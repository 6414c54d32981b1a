//! What people did to the house itself: tokens made and taken away, streams paused, comings and goings.
//!
//! A line each in `.steward/operator.jsonl`. Answers to actions stand in the audit chain and turns of the brake in its own log
//! ([`crate::gates::stop`]), and not here. An act that gives anybody more than they had is not done where it cannot be
//! written down; who calls sees to that.

use crate::files::json_lines;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::IpAddr;

const FILE: &str = "operator.jsonl";
/// Longest name, of whoever did it or of what it was done to, that is kept, in characters.
const MOST: usize = 200;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorEventKind {
    #[serde(rename = "stream.paused")]
    StreamPaused,
    #[serde(rename = "stream.resumed")]
    StreamResumed,
    #[serde(rename = "token.made")]
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

/// One act of one person or script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEvent {
    /// RFC 3339, UTC.
    pub at: String,
    /// As audit records name them.
    pub by: String,
    pub act: OperatorEventKind,
    /// What it was done to, in words: a stream, a token with its scope, the scope of who came in.
    pub on: String,
    /// From where it was asked, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

/// An act cannot be written down.
#[derive(Debug, thiserror::Error)]
#[error("{OWN_FOLDER}/{FILE}: {0}: without a line there nobody would know who did it")]
pub struct OperatorLogError(#[from] io::Error);

/// Writes an act down, for good.
///
/// # Errors
/// [`OperatorLogError`] when the line cannot be written.
pub fn append_event(root: &VaultRoot, act: &OperatorEvent) -> Result<(), OperatorLogError> {
    let cut = |text: &str| text.chars().take(MOST).collect::<String>();
    let act = OperatorEvent { by: cut(&act.by), on: cut(&act.on), ..act.clone() };
    Ok(json_lines::append_line(root, FILE, &act)?)
}

/// The last acts, the newest first; nothing where none can be read.
#[must_use]
pub fn list_events(root: &VaultRoot, most: usize) -> Vec<OperatorEvent> {
    json_lines::read_newest_lines(root, FILE, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_reads_as_it_was_written_in_words_that_scripts_may_rely_on() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let from = Some("192.0.2.7".parse().unwrap());
        let act = OperatorEvent {
            at: "now".into(),
            by: "ann\n".into(),
            act: OperatorEventKind::TokenMade,
            on: "x".repeat(300),
            from,
        };
        append_event(&root, &act).unwrap();
        append_event(&root, &OperatorEvent { act: OperatorEventKind::Login, from: None, ..act.clone() }).unwrap();
        let told = list_events(&root, 9);
        assert_eq!(
            told.iter().map(|act| act.act).collect::<Vec<_>>(),
            [OperatorEventKind::Login, OperatorEventKind::TokenMade]
        );
        assert_eq!(told[1], OperatorEvent { on: "x".repeat(MOST), ..act });
        let text = std::fs::read_to_string(dir.path().join(OWN_FOLDER).join(FILE)).unwrap();
        assert!(text.starts_with(r#"{"at":"now","by":"ann\n","act":"token.made","on":"x"#), "{text}");
        assert!(text.lines().next().unwrap().ends_with(r#","from":"192.0.2.7"}"#), "{text}");
    }
}
