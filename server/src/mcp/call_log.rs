//! The log of calls: `.steward/logs/mcp-<date>.jsonl`, one line for each call, refused ones too.
//!
//! A line holds no arguments and no content. It is opened, and there must be space, before a call runs; without a log no tool runs. The line is
//! appended before the answer is sent.

use super::caller::McpCaller;
use super::fence::FenceKey;
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

/// The longest name of a workspace that a line holds, in bytes, and of a client, in characters.
const MAX_WORKSPACE: usize = 96;
const MAX_CLIENT: usize = 60;

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
    /// An HMAC, by which the same call is recognised and none can be guessed.
    pub(crate) args_hash: String,
    /// `ok`, `refused:<code>`, `error:<code>` or `cancelled`.
    pub(crate) result: String,
    pub(crate) bytes: u64,
}

/// A line.
#[derive(Serialize)]
pub(crate) struct CallLine<'a> {
    ts: DateTime<Utc>,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<&'a str>,
    tool: &'a str,
    args_hash: String,
    latency_ms: u64,
    result: String,
    caller: &'a str,
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
    pub(crate) fn end(&self, call: LoggedCall<'a>) -> CallLine<'a> {
        let LoggedCall { workspace, tool, args_hash, result, bytes } = call;
        CallLine {
            ts: self.ts,
            id: self.context.id.to_string(),
            workspace: workspace.filter(|name| name.len() <= MAX_WORKSPACE),
            tool,
            args_hash,
            latency_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            result,
            caller: &self.caller.name,
            client: self.context.client_info().map(|client| client.name.chars().take(MAX_CLIENT).collect()),
            transport: self.transport,
            protocol: self.context.protocol_version().map(|version| version.to_string()),
            bytes,
        }
    }
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
}
