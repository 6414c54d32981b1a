//! The native chat API, as Ollama publishes it.
//!
//! `POST <base>/api/chat` with the JSON schema as `format`. By default the server silently cuts a prompt that is larger
//! than its context. So each request asks for a context that holds the prompt, and for an error instead of a cut.
//! Context sizes come in steps, because another size makes the server load the model again.

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

/// Ollama's API. A local server requires no key.
pub const OLLAMA: ClerkWire = ClerkWire {
    name: "ollama",
    base_url: Some("http://127.0.0.1:11434"),
    max_tokens: 1_024,
    path: "/api/chat",
    headers: &[],
    key: ("authorization", "Bearer "),
    body,
    read,
    normalize_answer: keep_unchanged,
    turn_body,
    read_turn,
    words: WireWording {
        offers: "chats",
        response: "a chat",
        base_url: "ends before `/api`",
        form: "a JSON schema as `format`, and that its context can hold the prompt",
        unknown_model: "check the base URL, or fetch the model with `ollama pull`",
    },
};

/// The size of a context is a multiple of this many tokens.
const CONTEXT_STEP: usize = 8_192;
/// Tokens that a chat's template may add.
const TEMPLATE_TOKENS: usize = 256;

fn body(prompt: &ClerkPrompt, target: &ModelTarget<'_>) -> Value {
    let context_tokens = count_context_tokens(prompt, target.max_tokens);
    json!({
        "model": target.model,
        "messages": prompt.chat_messages(),
        "stream": false,
        "think": false,
        "truncate": false,
        "shift": false,
        "format": prompt.schema,
        "options": {"temperature": 0, "num_predict": target.max_tokens, "num_ctx": context_tokens},
    })
}

/// Counts the tokens of prompt and answer. A token of common languages has two bytes or more.
fn count_context_tokens(prompt: &ClerkPrompt, max_tokens: u32) -> usize {
    round_context(prompt.rules.len() + prompt.data.len(), max_tokens)
}

fn round_context(prompt_bytes: usize, max_tokens: u32) -> usize {
    let prompt_tokens = prompt_bytes.div_ceil(2);
    let answer_tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    let tokens = prompt_tokens.saturating_add(answer_tokens).saturating_add(TEMPLATE_TOKENS);
    tokens.div_ceil(CONTEXT_STEP).saturating_mul(CONTEXT_STEP)
}

fn read(response: &Value) -> Result<ModelCompletion, &'static str> {
    let message = response.get("message").filter(|m| m.is_object()).ok_or("message")?;
    let content = match response["done_reason"].as_str() {
        Some("length") => Err(CUT_OFF.to_owned()),
        Some(_) | None => require_text(message["content"].as_str()),
    };
    Ok(ModelCompletion { content, usage: read_usage(response) })
}

fn read_usage(response: &Value) -> TokenUsage {
    TokenUsage {
        prompt_tokens: sum_tokens(response, &["prompt_eval_count"]),
        completion_tokens: sum_tokens(response, &["eval_count"]),
    }
}

fn turn_body(conversation: &Conversation, data: &str, target: &ModelTarget<'_>) -> Value {
    let reply =
        |call: &ToolCall, reply: &ToolReply| json!({"role": "tool", "tool_name": call.name, "content": reply.text});
    let messages = render_messages(conversation, data, reply);
    let bytes: usize = messages.iter().map(|message| message.to_string().len()).sum();
    let mut body = json!({
        "model": target.model,
        "messages": messages,
        "stream": false,
        "truncate": false,
        "shift": false,
        "options": {
            "temperature": 0, "num_predict": target.max_tokens, "num_ctx": round_context(bytes, target.max_tokens),
        },
    });
    match conversation.form {
        // Some servers refuse an empty list.
        ToolForm::Native if conversation.tools.is_empty() => {}
        ToolForm::Native => body["tools"] = render_functions(conversation),
        ToolForm::Json => body["format"] = ToolDefinition::build_form(&conversation.tools),
    }
    body
}

fn read_turn(response: &Value, form: ToolForm) -> Result<TurnCompletion, &'static str> {
    let message = response.get("message").filter(|message| message.is_object()).ok_or("message")?.clone();
    Ok(TurnCompletion { turn: read_message(message, form), usage: read_usage(response) })
}
