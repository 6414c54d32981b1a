//! A conversation with a model that may call tools: what it received, what it answered, and what the tools replied.
//!
//! Each turn sends the whole conversation. What the model answered is kept as its server gave it, because servers want their
//! own words back. Nothing here sends anything or runs a tool.

use super::clerk::ClerkMark;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// How a server is asked for calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolForm {
    /// By the tools of its API.
    #[default]
    Native,
    /// By a closed JSON form, because it knows no tools.
    Json,
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The server's name for the call; empty if it gives none.
    #[serde(default)]
    pub id: String,
    pub name: String,
    /// `None` if the arguments are not a JSON object, as when an answer was cut off.
    pub arguments: Option<Map<String, Value>>,
}

/// One answer of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// The message as the server gave it, with everything that belongs to it.
    pub message: Value,
    /// In their order. Without any, the model has ended.
    pub calls: Vec<ToolCall>,
}

/// What a tool replied to one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReply {
    pub text: String,
    pub is_error: bool,
}

/// A turn that was answered, with the replies to its calls in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredTurn {
    pub turn: ModelTurn,
    pub replies: Vec<ToolReply>,
    /// What is said to the model after it, if it made no call.
    pub reminder: Option<&'static str>,
}

/// Everything that is sent with the next turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Fixed text, the same for every run.
    pub rules: &'static str,
    /// All outside text, as one JSON object.
    pub data: Value,
    pub tools: Vec<ToolDefinition>,
    pub form: ToolForm,
    pub past: Vec<AnsweredTurn>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
}

/// How one turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnOutcome {
    Answered(ModelTurn),
    /// The server knows no tools. The JSON form may work.
    NoTools {
        reason: String,
    },
    /// 429 or 529, with the seconds to wait if the server sent them.
    RateLimited {
        retry_after_seconds: Option<u64>,
    },
    Failed {
        reason: String,
    },
    /// No request left this process.
    NotSent {
        reason: String,
    },
}

/// The outcome of a turn, and who answered.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReply {
    pub outcome: TurnOutcome,
    pub clerk: ClerkMark,
}

impl ToolDefinition {
    /// The tools of the form for servers that know none: the schema of an answer with a list of calls.
    #[must_use]
    pub fn build_form(tools: &[Self]) -> Value {
        let call = |tool: &Self| {
            let mut schema = tool.parameters.clone();
            schema["properties"]["tool"] = json!({"type": "string", "enum": [tool.name]});
            if let Some(required) = schema["required"].as_array_mut() {
                required.insert(0, "tool".into());
            }
            schema
        };
        json!({
            "type": "object", "additionalProperties": false, "required": ["calls"],
            "properties": {"calls": {"type": "array", "items": {"anyOf": tools.iter().map(call).collect::<Vec<_>>()}}},
        })
    }

    /// What the tools are for, as a model reads it that gets the form.
    #[must_use]
    pub fn describe_all(tools: &[Self]) -> String {
        let lines: String = tools.iter().map(|tool| format!("- `{}`: {}\n", tool.name, tool.description)).collect();
        format!(
            "\n\nYour answer is one JSON object `{{\"calls\": [...]}}`. Each call has `tool`, the name of one of these tools, and \
             its arguments. An empty list ends your work.\n{lines}"
        )
    }
}

impl ModelTurn {
    /// The text of the answer beside its calls, as any of the vendors gives it.
    #[must_use]
    pub fn text(&self) -> String {
        let content = if self.message.is_object() { &self.message["content"] } else { &self.message };
        match content {
            Value::Array(blocks) => {
                let texts = blocks.iter().filter(|block| block["type"] == "text");
                texts.filter_map(|block| block["text"].as_str()).collect()
            }
            other => other.as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Reads an answer in the JSON form. What is no such form holds no call.
    #[must_use]
    pub fn from_form(message: Value, text: &str) -> Self {
        let form: Option<Value> = serde_json::from_str(text.trim()).ok();
        let items = form.as_ref().and_then(|form| form["calls"].as_array()).cloned().unwrap_or_default();
        let read = |item: Value| {
            let Value::Object(mut arguments) = item else { return None };
            let name = arguments.remove("tool")?.as_str()?.to_owned();
            Some(ToolCall { id: String::new(), name, arguments: Some(arguments) })
        };
        let calls: Vec<ToolCall> = items.into_iter().filter_map(read).collect();
        // An answer that was cut off within its form wanted to call something.
        let is_cut = form.is_none() && text.trim_start().starts_with('{');
        let cut = is_cut.then(|| ToolCall { id: String::new(), name: String::new(), arguments: None });
        Self { message, calls: calls.into_iter().chain(cut).collect() }
    }
}

impl ToolReply {
    #[must_use]
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ToolDefinition> {
        let parameters = json!({"type": "object", "additionalProperties": false, "required": ["slug"],
            "properties": {"slug": {"type": "string"}}});
        vec![ToolDefinition { name: "read_page", description: "Reads a page.", parameters }]
    }

    #[test]
    fn the_form_offers_every_tool_and_reads_back() {
        let form = ToolDefinition::build_form(&tools());
        let call = &form["properties"]["calls"]["items"]["anyOf"][0];
        assert_eq!(call["required"], json!(["tool", "slug"]));
        assert_eq!(call["properties"]["tool"]["enum"], json!(["read_page"]));
        let turn =
            ModelTurn::from_form(Value::Null, r#"{"calls":[{"tool":"read_page","slug":"plot-12"},{"slug":"x"},3]}"#);
        let [call] = turn.calls.as_slice() else { panic!("{turn:?}") };
        assert_eq!((call.name.as_str(), &call.arguments.as_ref().unwrap()["slug"]), ("read_page", &json!("plot-12")));
    }

    #[test]
    fn the_text_of_an_answer_is_found_in_every_vendors_form() {
        let blocks = json!([{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "Two "}, {"type": "text", "text": "parts."}]);
        for (message, expected) in [
            (json!({"role": "assistant", "content": "One part."}), "One part."),
            (json!({"role": "assistant", "content": blocks}), "Two parts."),
            (blocks, "Two parts."),
            (json!({"role": "assistant", "content": null}), ""),
            (Value::Null, ""),
        ] {
            assert_eq!(ModelTurn { message, calls: Vec::new() }.text(), expected);
        }
    }

    #[test]
    fn an_answer_that_is_no_form_ends_and_one_that_was_cut_off_does_not() {
        for text in ["", "I am done.", "{}", r#"{"calls":[]}"#, r#"{"calls":7}"#] {
            assert_eq!(ModelTurn::from_form(Value::Null, text).calls, [], "{text}");
        }
        let cut = ModelTurn::from_form(Value::Null, r#"{"calls":[{"tool":"read_page","#);
        assert_eq!(cut.calls.len(), 1);
        assert_eq!(cut.calls[0].arguments, None);
    }
}
