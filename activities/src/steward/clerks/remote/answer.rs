//! Reads a response with status 200: its wire finds the answer in it, here the answer is read.
//!
//! The answer may stand in one Markdown fence that is all of the content, as many local servers
//! write it. Prose around it is refused, fenced or not: an object in the midst of a text may be
//! a quotation of the evidence rather than the answer. [`Verdict::check`] and [`Answer::check`] judge the
//! rest.

use super::ClerkWire;
use super::Secret;
use super::text::{redact_key, sanitize_text};
use serde_json::Value;
use steward_domain::signals::extract::{ExtractAnswer, ExtractQuestion};
use steward_domain::steward::clerk::{ClerkQuestion, TokenUsage, Verdict};

/// What was read from the content, or the complaint about it.
pub(super) type ContentResult<T> = Result<T, String>;

/// What a response says, read by `judge` from the content.
///
/// # Errors
/// What came instead, for a body that is no response of the wire at all: then the server is at fault
/// and not the model, and asking again more strictly would not help.
pub(super) fn read_response<T>(
    body: &[u8],
    wire: &ClerkWire,
    key: Option<&Secret>,
    judge: impl FnOnce(&str) -> ContentResult<T>,
) -> Result<(ContentResult<T>, TokenUsage), String> {
    let response: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    let completion = (wire.read)(&response).map_err(|missing| {
        error_message(&response).map_or_else(
            || format!("JSON without `{missing}`"),
            |said| format!("the error \"{}\"", sanitize_text(said, key)),
        )
    })?;
    let read = completion.content.and_then(|text| judge(&(wire.as_asked)(strip_fence(text.trim()))));
    Ok((read.map_err(|complaint| sanitize_text(&complaint, key)), completion.usage))
}

/// Reads a verdict.
pub(super) fn read_verdict(content: &str, question: &ClerkQuestion, key: Option<&Secret>) -> ContentResult<Verdict> {
    let mut verdict = Verdict::parse_answer(content, question).map_err(|e| e.to_string())?;
    verdict.reasoning = redact_key(&verdict.reasoning, key);
    Ok(verdict)
}

/// Reads what was found in an event; the words are kept, not what was read.
pub(super) fn read_findings(content: &str, question: &ExtractQuestion, key: Option<&Secret>) -> ContentResult<String> {
    ExtractAnswer::parse_answer(content, question).map_err(|e| e.to_string())?;
    // Looked for in the decoded words: it could be written in escapes.
    let mut decoded: Value = serde_json::from_str(content).map_err(|e| e.to_string())?;
    redact_value(&mut decoded, key);
    let text = decoded.to_string();
    ExtractAnswer::parse_answer(&text, question).map(|_| text).map_err(|e| e.to_string())
}

fn redact_value(value: &mut Value, key: Option<&Secret>) {
    match value {
        Value::String(text) => *text = redact_key(text, key),
        Value::Array(all) => all.iter_mut().for_each(|one| redact_value(one, key)),
        Value::Object(fields) => fields.values_mut().for_each(|one| redact_value(one, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The provider's own words in an error response, if it has any where they belong.
pub(super) fn error_message(response: &Value) -> Option<&str> {
    let error = response.get("error")?;
    error.get("message").unwrap_or(error).as_str()
}

/// What stands inside, where one Markdown fence is all of the content.
fn strip_fence(content: &str) -> &str {
    let Some(inside) = content.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return content };
    inside.strip_prefix("json").unwrap_or(inside)
}
