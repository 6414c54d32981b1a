//! The log of calls: `.steward/logs/mcp-<date>.jsonl`, one line for each call, refused ones too.
//!
//! A line holds no arguments and no content, and at most 4 KiB, whatever a client sends. The log is opened, and there must be space, before a call
//! runs; without a log no tool runs. The line is appended before the answer is sent. If that fails, the answer says so, and no tool runs until
//! the line could be appended.

use super::caller::McpCaller;
use super::fence::FenceKey;
use super::outside::escape_outside;
use chrono::{DateTime, Utc};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::time::Instant;
use steward_vault::files::day_log::DayLog;
use steward_vault::files::root::VaultRoot;

/// How the files of the log begin.
pub(crate) const CALL_LOG: &str = "mcp";

/// The key of a notice in the metadata of an answer.
pub(crate) const NOTICE_KEY: &str = "io.steward/notice";
/// The notice of an answer whose line could not be appended.
pub(crate) const LOG_INCOMPLETE: &str = "log_incomplete";
/// The argument that names a run, and the field of an answer with its whole id.
pub(super) const RUN_ID: &str = "run_id";

/// The most characters of the parts of a line. All of them together take less than 4 KiB, also if each takes four bytes.
const MAX_REQUEST_ID: usize = 64;
const MAX_WORKSPACE: usize = 96;
const MAX_TOOL: usize = 64;
const MAX_RUN: usize = 40;
const MAX_CALLER: usize = 160;
const MAX_CLIENT: usize = 60;
const MAX_PROTOCOL: usize = 40;

/// A request that is under way.
pub(crate) struct LoggedRequest<'a> {
    began: Instant,
    pub(crate) ts: DateTime<Utc>,
    caller: &'a McpCaller,
    context: &'a RequestContext<RoleServer>,
    transport: &'static str,
}

/// A request and its outcome.
pub(crate) struct LoggedCall<'a> {
    pub(crate) workspace: Option<&'a str>,
    pub(crate) tool: &'a str,
    /// The run that the answer names, or else the arguments.
    pub(crate) run_id: Option<&'a str>,
    /// An HMAC, by which the same call is recognised and none can be guessed.
    pub(crate) args_hash: String,
    /// `ok`, `refused:<code>`, `error:<code>` or `cancelled`.
    pub(crate) result: String,
    pub(crate) bytes: u64,
}

/// A line.
#[derive(Serialize)]
pub(crate) struct CallLine {
    ts: DateTime<Utc>,
    /// The id of the client's request.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    args_hash: String,
    latency_ms: u64,
    result: String,
    caller: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    transport: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    bytes: u64,
}

impl<'a> LoggedRequest<'a> {
    pub(crate) fn begin(
        caller: &'a McpCaller,
        context: &'a RequestContext<RoleServer>,
        transport: &'static str,
    ) -> Self {
        Self { began: Instant::now(), ts: Utc::now(), caller, context, transport }
    }

    /// The line of the request, which has ended.
    pub(crate) fn end(&self, call: LoggedCall<'_>) -> CallLine {
        let LoggedCall { workspace, tool, run_id, args_hash, result, bytes } = call;
        CallLine {
            ts: self.ts,
            id: shorten_part(&self.context.id.to_string(), MAX_REQUEST_ID),
            workspace: workspace.map(|name| shorten_part(name, MAX_WORKSPACE)),
            tool: shorten_part(tool, MAX_TOOL),
            run_id: run_id.map(|run| shorten_part(run, MAX_RUN)),
            args_hash,
            latency_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            result,
            caller: shorten_part(&self.caller.name, MAX_CALLER),
            client: self.context.client_info().map(|client| shorten_part(&client.name, MAX_CLIENT)),
            transport: self.transport,
            protocol: self.context.protocol_version().map(|it| shorten_part(it.as_str(), MAX_PROTOCOL)),
            bytes,
        }
    }
}

/// A part of a line: short, on one line, and with nothing hidden.
pub(super) fn shorten_part(text: &str, most: usize) -> String {
    // What is escaped takes more characters than before.
    let beginning: String = text.chars().take(most).collect();
    escape_outside(&beginning).replace(['\n', '\t'], " ").chars().take(most).collect()
}

/// What keeps the log from being complete; `None` if nothing does.
#[must_use]
pub fn find_call_log_fault(root: &VaultRoot) -> Option<String> {
    DayLog::new(root.clone(), CALL_LOG).find_fault()
}

/// The calls since a moment, oldest first, as their lines in the log say.
///
/// # Errors
/// The log cannot be read.
pub fn read_call_log(root: &VaultRoot, since: DateTime<Utc>) -> io::Result<Vec<Value>> {
    let mut lines = DayLog::new(root.clone(), CALL_LOG).read_lines(since.date_naive())?;
    let read_time = |line: &Value| line.get("ts")?.as_str()?.parse::<DateTime<Utc>>().ok();
    lines.retain(|line| read_time(line).is_some_and(|ts| ts >= since));
    // A line is appended when its call ends.
    lines.sort_by_key(read_time);
    Ok(lines)
}

/// The hash of arguments, whatever their order.
pub(crate) fn hash_arguments(key: &FenceKey, arguments: &serde_json::Map<String, Value>) -> String {
    key.sign(sort_keys(&Value::Object(arguments.clone())).to_string().as_bytes())
}

fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sort_keys).collect()),
        Value::Object(object) => {
            let mut pairs: Vec<(String, Value)> =
                object.iter().map(|(key, value)| (key.clone(), sort_keys(value))).collect();
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(pairs.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_arguments_does_not_matter() {
        let key = FenceKey::new("secret");
        let hash = |value: Value| hash_arguments(&key, value.as_object().unwrap());
        assert_eq!(hash(json!({"a": 1, "b": {"c": 2, "d": 3}})), hash(json!({"b": {"d": 3, "c": 2}, "a": 1})));
        assert_ne!(hash(json!({"a": 1})), hash(json!({"a": 2})));
    }

    #[test]
    fn a_line_has_at_most_4_kib_whatever_a_client_sends() {
        for filler in ["\u{10ffff}", "\u{202e}", "\"", "\\", "\n", "é", "🦀"] {
            let long = filler.repeat(10_000);
            let part = |most: usize| Some(shorten_part(&long, most));
            let line = CallLine {
                ts: Utc::now(),
                id: shorten_part(&long, MAX_REQUEST_ID),
                workspace: part(MAX_WORKSPACE),
                tool: shorten_part(&long, MAX_TOOL),
                run_id: part(MAX_RUN),
                args_hash: "0123456789ab".to_owned(),
                latency_ms: u64::MAX,
                result: "refused:workspace_not_accessible".to_owned(),
                caller: shorten_part(&long, MAX_CALLER),
                client: part(MAX_CLIENT),
                transport: "command",
                protocol: part(MAX_PROTOCOL),
                bytes: u64::MAX,
            };
            let text = serde_json::to_string(&line).unwrap();
            assert!(text.len() < 4096 && !text.contains('\u{202e}'), "{} bytes of {filler:?}", text.len());
        }
        assert_eq!(shorten_part("a\tb\u{202e}", 40), "a b\\u{202e}");
        assert_eq!(shorten_part("a\u{202e}", 4).chars().count(), 4);
    }
}
