//! The form of a verifier's answers: one call of a tool, with lists of closed objects.
//!
//! All questions share it. An answer that has another form cannot be used, and is asked for again.

use crate::record::plain_text::to_one_line;
use crate::steward::conversation::{Conversation, ModelTurn, ToolDefinition, ToolForm};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The most tokens of an answer.
const MAX_TOKENS: u32 = 4_000;
/// The longest words of an answer that are kept, in characters.
const MAX_WORDS: usize = 300;

/// A question that is answered by one call of a tool.
pub(in crate::wiki) struct ReportQuestion {
    pub(in crate::wiki) rules: &'static str,
    pub(in crate::wiki) data: Value,
    /// The tool by which it is answered, and what that is for.
    pub(in crate::wiki) tool: &'static str,
    pub(in crate::wiki) description: &'static str,
    /// The lists of the answer, each with the schema of its items.
    pub(in crate::wiki) lists: Vec<(&'static str, Value)>,
}

impl ReportQuestion {
    pub(in crate::wiki) fn build_conversation(self, form: ToolForm) -> Conversation {
        let required: Vec<&str> = self.lists.iter().map(|(name, _)| *name).collect();
        let lists = self.lists.iter().map(|(name, item)| ((*name).to_owned(), json!({"type": "array", "items": item})));
        let parameters = json!({
            "type": "object", "additionalProperties": false, "required": required,
            "properties": lists.collect::<serde_json::Map<String, Value>>(),
        });
        Conversation {
            rules: self.rules,
            data: self.data,
            tools: vec![ToolDefinition { name: self.tool, description: self.description, parameters }],
            form,
            past: Vec::new(),
            max_tokens: MAX_TOKENS,
        }
    }
}

/// The schema of an object that has these fields and no other.
pub(in crate::wiki) fn describe_item(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    json!({
        "type": "object", "additionalProperties": false, "required": names,
        "properties": properties.collect::<serde_json::Map<String, Value>>(),
    })
}

/// The schema of a text.
pub(in crate::wiki) fn describe_text() -> Value {
    json!({"type": "string"})
}

/// The schema of one of some texts.
pub(in crate::wiki) fn describe_choice(texts: &[&str]) -> Value {
    json!({"type": "string", "enum": texts})
}

/// Reads what a turn reports by a tool.
///
/// # Errors
/// Why it cannot be used.
pub(in crate::wiki) fn read_reported<T: DeserializeOwned>(turn: &ModelTurn, tool: &str) -> Result<T, String> {
    let call = turn.calls.iter().find(|call| call.name == tool).ok_or("it reported nothing")?;
    let arguments = call.arguments.clone().ok_or("its report was cut off")?;
    serde_json::from_value(Value::Object(arguments)).map_err(|_| "its report has another form".to_owned())
}

/// The one item of a report that answers a question.
///
/// # Errors
/// There is none, or more than one.
pub(in crate::wiki) fn find_once<'r, T>(reported: &'r [T], id: &str, read_id: fn(&T) -> &str) -> Result<&'r T, String> {
    let mut found = reported.iter().filter(|item| read_id(item) == id);
    match (found.next(), found.next()) {
        (Some(item), None) => Ok(item),
        _ => Err(format!("it does not report {id} once")),
    }
}

/// Words of a model as one line of bounded length.
pub(in crate::wiki) fn shorten_words(words: &str) -> String {
    to_one_line(words).chars().take(MAX_WORDS).collect()
}
