//! The Messages API, as Anthropic publishes it.
//!
//! `POST <base>/v1/messages` with the JSON schema in `output_config.format`, which takes neither numeric
//! ranges nor lengths: [`steward_domain::steward::clerk::Verdict::check`] holds those. A field that is named after data
//! (a `source`, a `ref`) is asked for as a pair in a list, because names of fields are letters, digits and
//! `_.-` there, and is written back as a field before anything reads it. No `temperature` is sent and no word
//! of thinking, because newer models refuse the first and some older ones the second.

use super::CUT_OFF;
use super::ClerkWire;
use super::ModelCompletion;
use super::ModelTarget;
use super::WireWording;
use super::require_text;
use super::sum_tokens;
use crate::steward::clerks::remote::prompt::ClerkPrompt;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use steward_domain::steward::clerk::TokenUsage;

/// Anthropic's API, and servers that speak it.
pub const ANTHROPIC: ClerkWire = ClerkWire {
    name: "anthropic",
    base_url: Some("https://api.anthropic.com"),
    // What a model thinks before it answers counts, too.
    max_tokens: 8_192,
    path: "/v1/messages",
    headers: &[("anthropic-version", "2023-06-01")],
    key: ("x-api-key", ""),
    body,
    read,
    as_asked: restore_fields,
    words: WireWording {
        offers: "messages",
        response: "a message",
        base_url: "ends before `/v1`",
        form: "a JSON schema in `output_config`, as models since Claude 4.5 do",
        unknown_model: "check base URL and model",
    },
};

/// The fields whose own fields are named after data.
const NAMED_AFTER_DATA: [&str; 2] = ["source_contributions", "scores"];
/// Words of a schema that this API refuses.
const REFUSED: [&str; 3] = ["minimum", "maximum", "maxItems"];

const PAIRS: &str = "

The schema of your answer writes `source_contributions` and `scores` as lists of objects, one for each field that is \
asked for: `name` is the field's name (a `source` or a `ref`), `value` its number.";

fn body(asking: &ClerkPrompt, to: &ModelTarget<'_>) -> Value {
    json!({
        "model": to.model,
        "max_tokens": to.max_tokens,
        "system": format!("{}{PAIRS}", asking.rules),
        "messages": [{"role": "user", "content": asking.data}],
        "output_config": {"format": {"type": "json_schema", "schema": convert_schema(&asking.schema)}},
    })
}

/// The schema in the words that this API takes.
fn convert_schema(schema: &Value) -> Value {
    let Some(words) = schema.as_object() else { return schema.clone() };
    let kept = words.iter().filter(|(word, _)| !REFUSED.contains(&word.as_str()));
    let taken = kept.map(|(word, inner)| {
        let inner = match (word.as_str(), inner) {
            ("properties", Value::Object(fields)) => fields.iter().map(convert_property).collect(),
            ("anyOf", Value::Array(forms)) => forms.iter().map(convert_schema).collect(),
            ("items", form) => convert_schema(form),
            (_, other) => other.clone(),
        };
        (word.clone(), inner)
    });
    Value::Object(taken.collect())
}

fn convert_property((name, schema): (&String, &Value)) -> (String, Value) {
    let schema =
        if NAMED_AFTER_DATA.contains(&name.as_str()) { build_pair_schema(schema) } else { convert_schema(schema) };
    (name.clone(), schema)
}

fn build_pair_schema(schema: &Value) -> Value {
    let names = &schema["required"];
    let none = names.as_array().is_none_or(Vec::is_empty);
    let name = if none { json!({"type": "string"}) } else { json!({"type": "string", "enum": names}) };
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["name", "value"],
            "properties": {"name": name, "value": {"type": "number"}},
        },
    })
}

/// The answer with its pairs as fields; as it is where it has another form, which the check then names.
fn restore_fields(answer: &str) -> Cow<'_, str> {
    let Ok(mut value) = serde_json::from_str::<Value>(answer) else { return Cow::Borrowed(answer) };
    unpair_value(&mut value);
    Cow::Owned(value.to_string())
}

fn unpair_value(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(unpair_value),
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner.as_array().and_then(|all| collect_pairs(all)) {
                    Some(written) if NAMED_AFTER_DATA.contains(&name.as_str()) => *inner = Value::Object(written),
                    Some(_) | None => unpair_value(inner),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `None` unless all are pairs, and no two of one name.
fn collect_pairs(pairs: &[Value]) -> Option<Map<String, Value>> {
    let mut fields = Map::new();
    for pair in pairs {
        let pair = pair.as_object().filter(|pair| pair.len() == 2)?;
        let (name, value) = (pair.get("name")?.as_str()?, pair.get("value")?);
        if fields.insert(name.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    Some(fields)
}

fn read(response: &Value) -> Result<ModelCompletion, &'static str> {
    let blocks = response["content"].as_array().ok_or("content")?;
    let usage = &response["usage"];
    let usage = TokenUsage {
        prompt_tokens: sum_tokens(usage, &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]),
        completion_tokens: sum_tokens(usage, &["output_tokens"]),
    };
    Ok(ModelCompletion { content: read_content(response, blocks), usage })
}

fn read_content(response: &Value, blocks: &[Value]) -> Result<String, String> {
    match response["stop_reason"].as_str() {
        Some("refusal") => {
            let why = response["stop_details"]["explanation"].as_str().unwrap_or("it gave no explanation");
            Err(format!("the model refused to answer: {why}"))
        }
        Some("max_tokens") => Err(CUT_OFF.to_owned()),
        Some("model_context_window_exceeded") => Err("the answer was cut off: the model's context is full".to_owned()),
        Some(_) | None => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            require_text(Some(&texts.filter_map(|block| block["text"].as_str()).collect::<String>()))
        }
    }
}

#[cfg(test)]
mod tests;
