//! The chat completions API, as OpenAI publishes it and many servers offer it.
//!
//! `POST <base>/chat/completions` with a `response_format` of a strict JSON schema. The answer is
//! `choices[0].message.content`. OpenAI's current models refuse `max_tokens` and any `temperature` but their default,
//! while other servers know only these. So OpenAI's own server gets `max_completion_tokens`, with room for thinking,
//! which counts there too.

use super::CUT_OFF;
use super::ClerkWire;
use super::ModelCompletion;
use super::ModelTarget;
use super::TurnCompletion;
use super::WireWording;
use super::keep_unchanged;
use super::read_message;
use super::render_functions;
use super::render_messages;
use super::require_text;
use super::sum_tokens;
use crate::steward::clerks::remote::prompt::ClerkPrompt;
use serde_json::{Value, json};
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::conversation::{Conversation, ToolCall, ToolDefinition, ToolForm, ToolReply};

/// The host of OpenAI's own server.
const OPENAI_HOST: &str = "api.openai.com";
/// The factor on the tokens of an answer where thinking counts too: 4.
const THINKING_FACTOR: u32 = 4;

/// Any server with the OpenAI chat completions API.
pub const OPENAI: ClerkWire = ClerkWire {
    name: "openai",
    base_url: None,
    max_tokens: 1_024,
    path: "/chat/completions",
    headers: &[],
    key: ("authorization", "Bearer "),
    body,
    read,
    normalize_answer: keep_unchanged,
    turn_body,
    read_turn,
    words: WireWording {
        offers: "chat completions",
        response: "a chat completion",
        base_url: "ends in `/v1`",
        form: "a `response_format` of type `json_schema`",
        unknown_model: "check base URL and model",
    },
};

fn body(prompt: &ClerkPrompt, target: &ModelTarget<'_>) -> Value {
    let mut body = json!({
        "model": target.model,
        "messages": prompt.chat_messages(),
        "stream": false,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": prompt.name, "strict": true, "schema": prompt.schema},
        },
    });
    set_limit(&mut body, target, THINKING_FACTOR);
    body
}

fn set_limit(body: &mut Value, target: &ModelTarget<'_>, thinking_factor: u32) {
    if target.host == OPENAI_HOST {
        body["max_completion_tokens"] = json!(target.max_tokens.saturating_mul(thinking_factor));
    } else {
        body["max_tokens"] = json!(target.max_tokens);
        body["temperature"] = json!(0);
    }
}

fn turn_body(conversation: &Conversation, data: &str, target: &ModelTarget<'_>) -> Value {
    let reply =
        |call: &ToolCall, reply: &ToolReply| json!({"role": "tool", "tool_call_id": call.id, "content": reply.text});
    let mut body = json!({
        "model": target.model,
        "messages": render_messages(conversation, data, reply),
        "stream": false,
    });
    match conversation.form {
        // Some servers refuse an empty list.
        ToolForm::Native if conversation.tools.is_empty() => {}
        ToolForm::Native => body["tools"] = render_functions(conversation),
        ToolForm::Json => {
            body["response_format"] = json!({
                "type": "json_schema",
                "json_schema": {"name": "calls", "strict": true, "schema": ToolDefinition::build_form(&conversation.tools)},
            });
        }
    }
    // The limit of a turn has room for thinking already.
    set_limit(&mut body, target, 1);
    body
}

fn read_turn(response: &Value, form: ToolForm) -> Result<TurnCompletion, &'static str> {
    let message =
        response["choices"].as_array().ok_or("choices")?.first().map_or(&Value::Null, |choice| &choice["message"]);
    let message = if message.is_object() { message.clone() } else { json!({"role": "assistant", "content": ""}) };
    Ok(TurnCompletion { turn: read_message(message, form), usage: read_usage(response) })
}

fn read_usage(response: &Value) -> TokenUsage {
    let usage = &response["usage"];
    TokenUsage {
        prompt_tokens: sum_tokens(usage, &["prompt_tokens"]),
        completion_tokens: sum_tokens(usage, &["completion_tokens"]),
    }
}

fn read(response: &Value) -> Result<ModelCompletion, &'static str> {
    let choices = response["choices"].as_array().ok_or("choices")?;
    Ok(ModelCompletion { content: read_content(choices.first().unwrap_or(&Value::Null)), usage: read_usage(response) })
}

fn read_content(choice: &Value) -> Result<String, String> {
    let message = &choice["message"];
    if let Some(refusal) = message["refusal"].as_str() {
        return Err(format!("the model refused to answer: {refusal}"));
    }
    match choice["finish_reason"].as_str() {
        Some("length") => Err(CUT_OFF.to_owned()),
        Some("content_filter") => Err("the answer was withheld by the server's content filter".to_owned()),
        Some(_) | None => require_text(message["content"].as_str()),
    }
}
