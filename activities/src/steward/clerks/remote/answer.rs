//! Reads the answer in a response with status 200, after the wire has found it there.
//!
//! The content may be one Markdown fence around the answer, as many local servers write it. Prose around the answer
//! must not be accepted, fenced or not: an object inside a text may be a quotation of the evidence and not the answer.
//! [`Verdict::parse_answer`] and [`ExtractAnswer::parse_answer`] check the rest.

use super::ClerkWire;
use super::Secret;
use super::text::{redact_key, sanitize_text};
use super::wire::TurnCompletion;
use serde_json::Value;
use steward_domain::signals::extract::{ExtractAnswer, ExtractQuestion};
use steward_domain::steward::clerk::{ClerkQuestion, TokenUsage, Verdict};
use steward_domain::steward::conversation::ToolForm;

/// The value that was read from the content, or the complaint about it.
pub(super) type ContentResult<T> = Result<T, String>;

/// Reads a response: `judge` turns its content into a value.
///
/// # Errors
/// A description of the body if it is no response of this wire. Then the server is at fault and not the model, and a
/// stricter second request would not help.
pub(super) fn read_response<T>(
    body: &[u8],
    wire: &ClerkWire,
    key: Option<&Secret>,
    judge: impl FnOnce(&str) -> ContentResult<T>,
) -> Result<(ContentResult<T>, TokenUsage), String> {
    let response: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    let completion = (wire.read)(&response).map_err(|missing| describe_missing(&response, missing, key))?;
    let content = completion.content.and_then(|text| judge(&(wire.normalize_answer)(strip_fence(text.trim()))));
    Ok((content.map_err(|complaint| sanitize_text(&complaint, key)), completion.usage))
}

/// Reads a response of a conversation with tools.
///
/// # Errors
/// As [`read_response`].
pub(super) fn read_turn_response(
    body: &[u8],
    wire: &ClerkWire,
    form: ToolForm,
    key: Option<&Secret>,
) -> Result<TurnCompletion, String> {
    let mut response: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    // What the model answers is kept and sent again.
    redact_value(&mut response, key);
    (wire.read_turn)(&response, form).map_err(|missing| describe_missing(&response, missing, key))
}

/// Describes a body that is no response of its wire.
fn describe_missing(response: &Value, missing: &str, key: Option<&Secret>) -> String {
    error_message(response).map_or_else(
        || format!("JSON without `{missing}`"),
        |message| format!("the error \"{}\"", sanitize_text(message, key)),
    )
}

/// Reads a verdict.
pub(super) fn read_verdict(content: &str, question: &ClerkQuestion, key: Option<&Secret>) -> ContentResult<Verdict> {
    let mut verdict = Verdict::parse_answer(content, question).map_err(|e| e.to_string())?;
    verdict.reasoning = redact_key(&verdict.reasoning, key);
    Ok(verdict)
}

/// Checks an answer about an event, and returns its text without the key.
pub(super) fn read_findings(content: &str, question: &ExtractQuestion, key: Option<&Secret>) -> ContentResult<String> {
    ExtractAnswer::parse_answer(content, question).map_err(|e| e.to_string())?;
    // The key is searched in the decoded text, because the answer could write it in escapes.
    let mut decoded: Value = serde_json::from_str(content).map_err(|e| e.to_string())?;
    redact_value(&mut decoded, key);
    let text = decoded.to_string();
    ExtractAnswer::parse_answer(&text, question).map(|_| text).map_err(|e| e.to_string())
}

fn redact_value(value: &mut Value, key: Option<&Secret>) {
    match value {
        Value::String(text) => *text = redact_key(text, key),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, key)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact_value(field, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The provider's message in an error response, if it is at the usual place.
pub(super) fn error_message(response: &Value) -> Option<&str> {
    let error = response.get("error")?;
    error.get("message").unwrap_or(error).as_str()
}

/// Strips the Markdown fence if one fence is all of the content.
fn strip_fence(content: &str) -> &str {
    let Some(inside) = content.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return content };
    inside.strip_prefix("json").unwrap_or(inside)
}
