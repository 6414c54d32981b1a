//! The log of calls: `.steward/logs/mcp-<date>.jsonl`, one line for each call, refused ones too.
//!
//! A line holds no arguments and no content. It is opened, and there must be space, before a call runs; without a log no tool runs. The line is
//! appended before the answer is sent.

use super::fence::FenceKey;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

/// How the files of the log begin.
pub(crate) const CALL_LOG: &str = "mcp";

/// A call, as its line says.
#[derive(Serialize)]
pub(crate) struct LoggedCall<'a> {
    pub(crate) ts: DateTime<Utc>,
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace: Option<&'a str>,
    pub(crate) tool: &'a str,
    /// An HMAC, by which the same call is recognised and none can be guessed.
    pub(crate) args_hash: String,
    pub(crate) latency_ms: u64,
    /// `ok`, `refused:<code>`, `error:<code>` or `cancelled`.
    pub(crate) result: String,
    pub(crate) caller: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<String>,
    pub(crate) transport: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    pub(crate) bytes: u64,
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
