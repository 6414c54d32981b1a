//! Chat completions, as OpenAI publishes them and many servers speak them.
//!
//! `POST <base>/chat/completions` with a `response_format` of a strict JSON schema; the answer is
//! `choices[0].message.content`.

use super::{CUT_OFF, Completion, Wire, Words, as_it_is, text, tokens};
use crate::clerk::remote::prompt::Asking;
use serde_json::{Value, json};
use steward_domain::clerk::Usage;

/// Any server that speaks the OpenAI chat completions API.
pub const OPENAI: Wire = Wire {
    name: "openai",
    base_url: None,
    max_tokens: 1_024,
    path: "/chat/completions",
    headers: &[],
    key: ("authorization", "Bearer "),
    body,
    read,
    as_asked: as_it_is,
    words: Words {
        offers: "chat completions",
        response: "a chat completion",
        base_url: "ends in `/v1`",
        form: "a `response_format` of type `json_schema`",
        unknown_model: "check base URL and model",
    },
};

fn body(asking: &Asking, model: &str, max_tokens: u32) -> Value {
    json!({
        "model": model,
        "messages": asking.messages(),
        "temperature": 0,
        "max_tokens": max_tokens,
        "stream": false,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": asking.name, "strict": true, "schema": asking.schema},
        },
    })
}

fn read(response: &Value) -> Result<Completion, &'static str> {
    let choices = response["choices"].as_array().ok_or("choices")?;
    let usage = &response["usage"];
    let usage = Usage {
        prompt_tokens: tokens(usage, &["prompt_tokens"]),
        completion_tokens: tokens(usage, &["completion_tokens"]),
    };
    Ok(Completion { content: content(choices.first().unwrap_or(&Value::Null)), usage })
}

fn content(choice: &Value) -> Result<String, String> {
    let message = &choice["message"];
    if let Some(refusal) = message["refusal"].as_str() {
        return Err(format!("the model refused to answer: {refusal}"));
    }
    match choice["finish_reason"].as_str() {
        Some("length") => Err(CUT_OFF.to_owned()),
        Some("content_filter") => Err("the answer was withheld by the server's content filter".to_owned()),
        Some(_) | None => text(message["content"].as_str()),
    }
}
