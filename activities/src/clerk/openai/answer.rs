//! Reads a response with status 200: the completion around the answer, then the answer.
//!
//! The answer may stand in one Markdown fence that is all of the content, as many local servers
//! write it. Prose around it is refused, fenced or not: an object in the midst of a text may be
//! a quotation of the evidence rather than the answer. [`Verdict::check`] and [`Answer::check`] judge the
//! rest.

use super::Secret;
use super::text::{shown, without_key};
use serde_json::Value;
use steward_domain::clerk::{Question, Usage, Verdict};
use steward_domain::extract::{Answer, ExtractQuestion};

/// More tokens than this in one call is no count; keeps sums and databases in range.
const MAX_COUNTED_TOKENS: u64 = 1_000_000_000;

/// What was read from the content, or the complaint about it.
pub(super) type Read<T> = Result<T, String>;

/// What a response says, read by `judge` from the content.
///
/// # Errors
/// What came instead, for a body that is no chat completion at all: then the server is at fault
/// and not the model, and asking again more strictly would not help.
pub(super) fn read<T>(
    body: &[u8],
    key: Option<&Secret>,
    judge: impl FnOnce(&str) -> Read<T>,
) -> Result<(Read<T>, Usage), String> {
    let completion: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    let Some(choices) = completion.get("choices").and_then(Value::as_array) else {
        return Err(error_message(&completion).map_or_else(
            || "JSON without `choices`".to_owned(),
            |said| format!("the error \"{}\"", shown(said, key)),
        ));
    };
    let choice = choices.first().unwrap_or(&Value::Null);
    let read = content(choice).and_then(|text| judge(unfenced(text.trim())));
    Ok((read.map_err(|complaint| shown(&complaint, key)), usage(&completion)))
}

/// Reads a verdict.
pub(super) fn verdict(content: &str, question: &Question, key: Option<&Secret>) -> Read<Verdict> {
    let mut verdict = Verdict::check(content, question).map_err(|e| e.to_string())?;
    verdict.reasoning = without_key(&verdict.reasoning, key);
    Ok(verdict)
}

/// Reads what was found in an event; the words are kept, not what was read.
pub(super) fn findings(content: &str, question: &ExtractQuestion, key: Option<&Secret>) -> Read<String> {
    Answer::check(content, question).map_err(|e| e.to_string())?;
    // Looked for in the decoded words: it could be written in escapes.
    let mut decoded: Value = serde_json::from_str(content).map_err(|e| e.to_string())?;
    take_key_out(&mut decoded, key);
    let text = decoded.to_string();
    Answer::check(&text, question).map(|_| text).map_err(|e| e.to_string())
}

fn take_key_out(value: &mut Value, key: Option<&Secret>) {
    match value {
        Value::String(text) => *text = without_key(text, key),
        Value::Array(all) => all.iter_mut().for_each(|one| take_key_out(one, key)),
        Value::Object(fields) => fields.values_mut().for_each(|one| take_key_out(one, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The provider's own words in an error response, if it has any where they belong.
pub(super) fn error_message(response: &Value) -> Option<&str> {
    let error = response.get("error")?;
    error.get("message").unwrap_or(error).as_str()
}

fn content(choice: &Value) -> Result<&str, String> {
    let message = &choice["message"];
    if let Some(refusal) = message["refusal"].as_str() {
        return Err(format!("the model refused to answer: {refusal}"));
    }
    match choice["finish_reason"].as_str() {
        Some("length") => return Err("the answer was cut off at its limit of tokens: keep `reasoning` short".into()),
        Some("content_filter") => return Err("the answer was withheld by the server's content filter".into()),
        Some(_) | None => (),
    }
    match message["content"].as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text),
        Some(_) | None => Err("the answer has no content".into()),
    }
}

/// What stands inside, where one Markdown fence is all of the content.
fn unfenced(content: &str) -> &str {
    let Some(inside) = content.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return content };
    inside.strip_prefix("json").unwrap_or(inside)
}

fn usage(completion: &Value) -> Usage {
    let count = |name: &str| completion["usage"][name].as_u64().unwrap_or(0).min(MAX_COUNTED_TOKENS);
    Usage { prompt_tokens: count("prompt_tokens"), completion_tokens: count("completion_tokens") }
}
