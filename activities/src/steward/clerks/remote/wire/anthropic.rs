//! The Messages API, as Anthropic publishes it.
//!
//! `POST <base>/v1/messages` with the JSON schema in `output_config.format`. A forced tool would exclude thinking,
//! which newer models do unasked. Whether `output_config.format` is as strict is not published. It accepts neither
//! numeric ranges nor lengths: [`steward_domain::steward::clerk::Verdict::parse_answer`] checks those. Field names may
//! hold only letters, digits and `_.-`. So a field that is named after data (a `source`, a `ref`) is asked for as a
//! pair in a list, and becomes a field again before anything reads it. Neither `temperature` nor thinking is set,
//! because newer models refuse the first and some older ones the second.

use super::CUT_OFF;
use super::ClerkWire;
use super::ModelCompletion;
use super::ModelTarget;
use super::TurnCompletion;
use super::WireWording;
use super::require_text;
use super::sum_tokens;
use crate::steward::clerks::remote::prompt::ClerkPrompt;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::conversation::{Conversation, ModelTurn, ToolCall, ToolDefinition, ToolForm};

/// Anthropic's API, and other servers with the same API.
pub const ANTHROPIC: ClerkWire = ClerkWire {
    name: "anthropic",
    base_url: Some("https://api.anthropic.com"),
    // The limit includes the tokens of thinking.
    max_tokens: 8_192,
    path: "/v1/messages",
    headers: &[("anthropic-version", "2023-06-01")],
    key: ("x-api-key", ""),
    body,
    read,
    normalize_answer: restore_fields,
    turn_body,
    read_turn,
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
/// Keywords of a schema that this API refuses.
const REFUSED: [&str; 3] = ["minimum", "maximum", "maxItems"];

const PAIRS: &str = "

The schema of your answer writes `source_contributions` and `scores` as lists of objects, one for each field that is \
asked for: `name` is the field's name (a `source` or a `ref`), `value` its number.";

fn body(prompt: &ClerkPrompt, target: &ModelTarget<'_>) -> Value {
    json!({
        "model": target.model,
        "max_tokens": target.max_tokens,
        "system": format!("{}{PAIRS}", prompt.rules),
        "messages": [{"role": "user", "content": prompt.data}],
        "output_config": {"format": {"type": "json_schema", "schema": convert_schema(&prompt.schema)}},
    })
}

/// Converts a schema to the keywords that this API accepts.
fn convert_schema(schema: &Value) -> Value {
    let Some(keywords) = schema.as_object() else { return schema.clone() };
    let accepted = keywords.iter().filter(|(keyword, _)| !REFUSED.contains(&keyword.as_str()));
    let converted = accepted.map(|(keyword, inner)| {
        let inner = match (keyword.as_str(), inner) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, schema)| (name.clone(), convert_property(name, schema))).collect()
            }
            ("anyOf", Value::Array(forms)) => forms.iter().map(convert_schema).collect(),
            ("items", form) => convert_schema(form),
            (_, other) => other.clone(),
        };
        (keyword.clone(), inner)
    });
    Value::Object(converted.collect())
}

fn convert_property(name: &str, schema: &Value) -> Value {
    if NAMED_AFTER_DATA.contains(&name) { build_pair_schema(schema) } else { convert_schema(schema) }
}

fn build_pair_schema(schema: &Value) -> Value {
    let names = &schema["required"];
    let is_empty = names.as_array().is_none_or(Vec::is_empty);
    let name = if is_empty { json!({"type": "string"}) } else { json!({"type": "string", "enum": names}) };
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

/// Turns the pairs of an answer into fields. An answer of another form stays as it is, and the check refuses it.
fn restore_fields(answer: &str) -> Cow<'_, str> {
    let Ok(mut value) = serde_json::from_str::<Value>(answer) else { return Cow::Borrowed(answer) };
    unpair_value(&mut value);
    Cow::Owned(value.to_string())
}

fn unpair_value(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unpair_value),
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner.as_array().and_then(|items| collect_pairs(items)) {
                    Some(pairs) if NAMED_AFTER_DATA.contains(&name.as_str()) => *inner = Value::Object(pairs),
                    Some(_) | None => unpair_value(inner),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects pairs as fields; `None` if an item is no pair, or if a name occurs twice.
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
    Ok(ModelCompletion { content: read_content(response, blocks), usage: read_usage(response) })
}

fn read_usage(response: &Value) -> TokenUsage {
    let usage = &response["usage"];
    TokenUsage {
        prompt_tokens: sum_tokens(usage, &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]),
        completion_tokens: sum_tokens(usage, &["output_tokens"]),
    }
}

/// Every model of this vendor knows tools, so there is no other form.
fn turn_body(conversation: &Conversation, data: &str, target: &ModelTarget<'_>) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut messages = vec![json!({"role": "user", "content": [text(data)]})];
    for past in &conversation.past {
        // The vendor refuses a message without content.
        let said = match past.turn.message.as_array() {
            Some(blocks) if blocks.is_empty() => json!([text("(nothing)")]),
            _ => past.turn.message.clone(),
        };
        messages.push(json!({"role": "assistant", "content": said}));
        let results = past.turn.calls.iter().zip(&past.replies).map(|(call, reply)| {
            json!({"type": "tool_result", "tool_use_id": call.id, "content": reply.text, "is_error": reply.is_error})
        });
        let answer: Vec<Value> = results.chain(past.reminder.map(text)).collect();
        messages.push(json!({"role": "user", "content": answer}));
    }
    let tool = |tool: &ToolDefinition| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
    // The rules and the tools are the same for every run: the vendor keeps them.
    let rules = json!([{"type": "text", "text": conversation.rules, "cache_control": {"type": "ephemeral"}}]);
    let mut body =
        json!({"model": target.model, "max_tokens": target.max_tokens, "system": rules, "messages": messages});
    if !conversation.tools.is_empty() {
        body["tools"] = conversation.tools.iter().map(tool).collect();
    }
    body
}

fn read_turn(response: &Value, _: ToolForm) -> Result<TurnCompletion, &'static str> {
    let blocks = response["content"].as_array().ok_or("content")?;
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| ToolCall {
        id: block["id"].as_str().unwrap_or_default().to_owned(),
        name: block["name"].as_str().unwrap_or_default().to_owned(),
        arguments: block["input"].as_object().cloned(),
    });
    let turn = ModelTurn { calls: calls.collect(), message: Value::Array(blocks.clone()) };
    Ok(TurnCompletion { turn, usage: read_usage(response) })
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
