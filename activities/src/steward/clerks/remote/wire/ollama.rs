//! The native chat API, as Ollama publishes it.
//!
//! `POST <base>/api/chat` with the JSON schema as `format`. A prompt beyond the server's context is cut
//! there without a word unless one asks for more: so each request asks for a context that holds it, and for
//! an error instead of a cut. Contexts come in steps, because another size loads the model anew.

use super::CUT_OFF;
use super::ClerkWire;
use super::ModelCompletion;
use super::ModelTarget;
use super::WireWording;
use super::keep_unchanged;
use super::require_text;
use super::sum_tokens;
use crate::steward::clerks::remote::prompt::ClerkPrompt;
use serde_json::{Value, json};
use steward_domain::steward::clerk::TokenUsage;

/// A server of Ollama's; one of one's own wants no key.
pub const OLLAMA: ClerkWire = ClerkWire {
    name: "ollama",
    base_url: Some("http://127.0.0.1:11434"),
    max_tokens: 1_024,
    path: "/api/chat",
    headers: &[],
    key: ("authorization", "Bearer "),
    body,
    read,
    as_asked: keep_unchanged,
    words: WireWording {
        offers: "chats",
        response: "a chat",
        base_url: "ends before `/api`",
        form: "a JSON schema as `format`, and that its context can hold the prompt",
        unknown_model: "check the base URL, or fetch the model with `ollama pull`",
    },
};

/// A context is a multiple of so many tokens.
const CONTEXT_STEP: usize = 8_192;
/// Tokens that a chat's template may add.
const TEMPLATE_TOKENS: usize = 256;

fn body(asking: &ClerkPrompt, to: &ModelTarget<'_>) -> Value {
    json!({
        "model": to.model,
        "messages": asking.chat_messages(),
        "stream": false,
        "think": false,
        "truncate": false,
        "shift": false,
        "format": asking.schema,
        "options": {"temperature": 0, "num_predict": to.max_tokens, "num_ctx": count_context_tokens(asking, to.max_tokens)},
    })
}

/// Tokens of prompt and answer; a token of common languages stands for two bytes or more.
fn count_context_tokens(asking: &ClerkPrompt, max_tokens: u32) -> usize {
    let prompt = (asking.rules.len() + asking.data.len()).div_ceil(2);
    let answer = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    prompt.saturating_add(answer).saturating_add(TEMPLATE_TOKENS).div_ceil(CONTEXT_STEP).saturating_mul(CONTEXT_STEP)
}

fn read(response: &Value) -> Result<ModelCompletion, &'static str> {
    let message = response.get("message").filter(|m| m.is_object()).ok_or("message")?;
    let content = match response["done_reason"].as_str() {
        Some("length") => Err(CUT_OFF.to_owned()),
        Some(_) | None => require_text(message["content"].as_str()),
    };
    let usage = TokenUsage {
        prompt_tokens: sum_tokens(response, &["prompt_eval_count"]),
        completion_tokens: sum_tokens(response, &["eval_count"]),
    };
    Ok(ModelCompletion { content, usage })
}
