//! The wires: how to write requests and read responses of each vendor's published API.
//!
//! A wire is one file with one table. The table defines where a question is sent, how a request is built, and where a
//! response holds the answer. A wire must not send anything or judge an answer. The text that it reads is untrusted and
//! goes on to `answer`.

mod anthropic;
mod ollama;
mod openai;

pub use anthropic::ANTHROPIC;
pub use ollama::OLLAMA;
pub use openai::OPENAI;

use super::prompt::ClerkPrompt;
use reqwest::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::{Value, json};
use std::borrow::Cow;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::conversation::{Conversation, ModelTurn, ToolCall, ToolDefinition, ToolForm, ToolReply};

/// Most tokens that are counted for one call. A larger count is invalid; the limit keeps sums in range.
const MAX_COUNTED_TOKENS: u64 = 1_000_000_000;
/// The complaint about an answer that reached its token limit.
const CUT_OFF: &str = "the answer was cut off at its limit of tokens: keep `reasoning` short";
/// The complaint about a missing answer.
const NO_CONTENT: &str = "the answer has no content";

/// How to use one vendor's API.
#[derive(Debug)]
pub struct ClerkWire {
    /// The name of the provider.
    pub name: &'static str,
    /// The address of the vendor's own server, used by default.
    pub base_url: Option<&'static str>,
    /// Most tokens of a verdict. An answer about an event may have twice as many.
    pub(super) max_tokens: u32,
    /// The path of the API below the base URL.
    pub(super) path: &'static str,
    /// The headers of every request.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The header of the key, and the prefix of its value.
    pub(super) key: (&'static str, &'static str),
    pub(super) body: fn(&ClerkPrompt, &ModelTarget<'_>) -> Value,
    /// Finds the answer in a response; or returns the missing field that every response of this vendor has.
    pub(super) read: fn(&Value) -> Result<ModelCompletion, &'static str>,
    /// Converts an answer to the form that the question asks for, if this wire uses another one.
    pub(super) normalize_answer: fn(&str) -> Cow<'_, str>,
    /// Writes a conversation with tools. The text is its data, rendered.
    pub(super) turn_body: fn(&Conversation, &str, &ModelTarget<'_>) -> Value,
    /// Finds an answer with calls in a response; or returns the missing field that every response of this vendor has.
    pub(super) read_turn: fn(&Value, ToolForm) -> Result<TurnCompletion, &'static str>,
    pub(super) words: WireWording,
}

/// The model that is asked, and the size of its answer.
pub(super) struct ModelTarget<'a> {
    pub(super) model: &'a str,
    pub(super) host: &'a str,
    pub(super) max_tokens: u32,
}

/// The words about a vendor's servers in reasons.
#[derive(Debug)]
pub(super) struct WireWording {
    /// The service of such a server.
    pub(super) offers: &'static str,
    /// The name of one response.
    pub(super) response: &'static str,
    /// How the base URL should look.
    pub(super) base_url: &'static str,
    /// The kind of request that a model must accept.
    pub(super) form: &'static str,
    /// The hint for an unknown model.
    pub(super) unknown_model: &'static str,
}

/// The content of a response.
pub(super) struct ModelCompletion {
    /// The answer, or the complaint about it.
    pub(super) content: Result<String, String>,
    pub(super) usage: TokenUsage,
}

/// The answer in a response of a conversation with tools.
pub(super) struct TurnCompletion {
    pub(super) turn: ModelTurn,
    pub(super) usage: TokenUsage,
}

impl ClerkWire {
    pub(super) fn key_header(&self, key: &str) -> Result<(HeaderName, HeaderValue), InvalidHeaderValue> {
        let (name, prefix) = self.key;
        let mut value = HeaderValue::from_str(&format!("{prefix}{key}"))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(name), value))
    }
}

/// The tools in the form that OpenAI published and others took over.
fn render_functions(conversation: &Conversation) -> Value {
    let render = |tool: &ToolDefinition| {
        json!({"type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
    };
    conversation.tools.iter().map(render).collect()
}

/// The rules, with the tools where the server gets the form instead of them.
fn render_rules(conversation: &Conversation) -> String {
    match conversation.form {
        ToolForm::Native => conversation.rules.to_owned(),
        ToolForm::Json => format!("{}{}", conversation.rules, ToolDefinition::describe_all(&conversation.tools)),
    }
}

/// The messages of a chat whose tools reply in messages of their own, by `reply`. With the form, one message of the user has all
/// replies.
fn render_messages(
    conversation: &Conversation,
    data: &str,
    reply: impl Fn(&ToolCall, &ToolReply) -> Value,
) -> Vec<Value> {
    let user = |text: &str| json!({"role": "user", "content": text});
    let mut messages = vec![json!({"role": "system", "content": render_rules(conversation)}), user(data)];
    for past in &conversation.past {
        messages.push(past.turn.message.clone());
        match conversation.form {
            ToolForm::Native => {
                messages.extend(past.turn.calls.iter().zip(&past.replies).map(|(call, answer)| reply(call, answer)));
            }
            ToolForm::Json if !past.replies.is_empty() => {
                let replies: Vec<&str> = past.replies.iter().map(|reply| reply.text.as_str()).collect();
                messages.push(user(&json!({"replies": replies}).to_string()));
            }
            ToolForm::Json => {}
        }
        messages.extend(past.reminder.map(user));
    }
    messages
}

/// Reads a message of the model, whose calls are in the form that was asked for.
fn read_message(message: Value, form: ToolForm) -> ModelTurn {
    match form {
        ToolForm::Native => ModelTurn { calls: read_functions(&message), message },
        ToolForm::Json => {
            let text = message["content"].as_str().unwrap_or_default().to_owned();
            ModelTurn::from_form(message, &text)
        }
    }
}

/// Reads the calls of a message in the form that OpenAI published and others took over.
fn read_functions(message: &Value) -> Vec<ToolCall> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let read = |call: &Value| {
        let arguments = &call["function"]["arguments"];
        ToolCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
            // A text by the published form, and an object with some servers.
            arguments: match arguments {
                Value::String(text) => serde_json::from_str(text).ok(),
                Value::Object(fields) => Some(fields.clone()),
                _ => None,
            },
        }
    };
    calls.map(read).collect()
}

/// Returns an answer unchanged.
fn keep_unchanged(answer: &str) -> Cow<'_, str> {
    Cow::Borrowed(answer)
}

/// Returns the text if it is not blank.
fn require_text(text: Option<&str>) -> Result<String, String> {
    text.filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or_else(|| NO_CONTENT.to_owned())
}

/// Adds up the token counts of these fields. An invalid count is 0.
fn sum_tokens(usage: &Value, names: &[&str]) -> u64 {
    let count = |name: &&str| usage[*name].as_u64().unwrap_or(0).min(MAX_COUNTED_TOKENS);
    names.iter().map(count).sum::<u64>().min(MAX_COUNTED_TOKENS)
}
