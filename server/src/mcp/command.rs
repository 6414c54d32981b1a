//! Calls tools from a command: a client and its server in one process.
//!
//! A call passes the same way as that of any client, so it has the same limits, the same words and its line in the log.

use super::caller::McpCaller;
use super::handler::{CallerSource, McpHandler, list_tools};
use super::tool::ToolDefinition;
use super::updates::ChangeSource;
use super::vault::McpVault;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, Implementation, JsonObject};
use rmcp::service::{RunningService, ServiceError};
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How many bytes are under way between the two at once.
const PIPE_BYTES: usize = 64 * 1024;

/// A tool as a command lists it.
#[derive(Clone, Debug)]
pub struct CommandTool {
    pub name: &'static str,
    pub title: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The names of its arguments, the required ones first.
    pub arguments: Vec<String>,
    /// How many of them are required.
    pub required: usize,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandAnswer {
    /// Blocks of text, with the marks around outside words.
    Text(Vec<String>),
    Value(Value),
    /// The call was refused, or failed: why, and how to ask.
    Refused(String),
}

/// The tools that a caller may use, in the order of the list.
#[must_use]
pub fn list_command_tools(caller: &McpCaller) -> Vec<CommandTool> {
    let describe = |tool: &ToolDefinition| {
        let schema = (tool.arguments)();
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut arguments: Vec<String> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        arguments.sort_by_key(|name| !required.contains(&name.as_str()));
        let required = arguments.iter().filter(|name| required.contains(&name.as_str())).count();
        let summary = tool.description.split_inclusive(". ").next().unwrap_or(tool.description).trim_end();
        CommandTool { name: tool.name, title: tool.title, summary, arguments, required }
    };
    list_tools(caller).into_iter().map(describe).collect()
}

/// Calls a tool. An argument is `key=value`: the value is JSON where the tool takes no text, and a key that takes several values may stand several times.
///
/// # Errors
/// An argument is not `key=value`, or the server cannot be reached within the process.
pub async fn call_tool(
    vault: McpVault,
    caller: McpCaller,
    tool: &str,
    arguments: &[String],
) -> Result<CommandAnswer, Box<dyn Error + Send + Sync>> {
    let schema = list_tools(&caller).into_iter().find(|known| known.name == tool).map(|known| (known.arguments)());
    let arguments = read_arguments(&schema.unwrap_or_default(), arguments)?;
    let (client, server) = connect(vault, caller).await?;
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let answer = client.call_tool(request).await;
    client.cancel().await?;
    server.await?;
    match answer {
        Ok(result) => Ok(read_answer(result)),
        Err(ServiceError::McpError(error)) => Ok(CommandAnswer::Refused(error.message.into_owned())),
        Err(e) => Err(e.into()),
    }
}

/// Connects a client to a server of its own.
async fn connect(
    vault: McpVault,
    caller: McpCaller,
) -> Result<(RunningService<RoleClient, ClientConfig>, JoinHandle<()>), Box<dyn Error + Send + Sync>> {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let handler = McpHandler::new(Arc::new(vault), CallerSource::Fixed(caller), ChangeSource::Files, "command");
    let server = tokio::spawn(async move {
        // A server that could not begin shows in the client.
        if let Ok(service) = handler.serve(far).await {
            let _ = service.waiting().await;
        }
    });
    let mut us = ClientConfig::default();
    us.client_info = Implementation::new("steward mcp call", env!("CARGO_PKG_VERSION"));
    Ok((us.serve(near).await?, server))
}

/// Reads `key=value` by the schema of a tool. An unknown key stays, so that the tool names it.
fn read_arguments(schema: &JsonObject, words: &[String]) -> Result<JsonObject, String> {
    let mut arguments = JsonObject::new();
    for word in words {
        let Some((key, text)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(format!("`{word}` is not key=value"));
        };
        let kind = schema.get("properties").and_then(|properties| properties.get(key)?.get("type")?.as_str());
        let parse = || serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let value = match kind {
            Some("integer" | "number" | "boolean" | "object") => parse(),
            Some("array") if text.starts_with('[') => parse(),
            Some("array") => Value::Array(vec![Value::from(text)]),
            _ => Value::from(text),
        };
        match (arguments.get_mut(key), value) {
            (None, value) => drop(arguments.insert(key.to_owned(), value)),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(_), _) => return Err(format!("`{key}` stands twice")),
        }
    }
    Ok(arguments)
}

fn read_answer(result: CallToolResult) -> CommandAnswer {
    let texts = result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone());
    let texts: Vec<String> = texts.collect();
    match (result.is_error, result.structured_content) {
        (Some(true), _) => CommandAnswer::Refused(texts.join("\n")),
        (_, Some(value)) => CommandAnswer::Value(value),
        (_, None) => CommandAnswer::Text(texts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(words: &[&str]) -> Result<Value, String> {
        let schema = json!({"properties": {
            "path": {"type": "string"}, "limit": {"type": "integer"}, "fixed": {"type": "boolean"},
            "paths": {"type": "array", "items": {"type": "string"}}, "no_change": {"type": "array"},
        }});
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        read_arguments(schema.as_object().unwrap(), &words).map(Value::Object)
    }

    #[test]
    fn values_are_read_by_the_schema_of_the_tool() {
        let mixed = read(&["path=12", "limit=3", "fixed=true", "other=1", "paths=a=b", "paths=c"]);
        let expected = json!({"path": "12", "limit": 3, "fixed": true, "other": "1", "paths": ["a=b", "c"]});
        assert_eq!(mixed, Ok(expected));
        let list = r#"no_change=[{"page": "x.md", "reason": "the same"}]"#;
        assert_eq!(read(&[list]), Ok(json!({"no_change": [{"page": "x.md", "reason": "the same"}]})));
        assert_eq!(read(&["limit=many"]), Ok(json!({"limit": "many"})), "the tool says what is wrong");
        assert_eq!(read(&["path="]), Ok(json!({"path": ""})));
    }

    #[test]
    fn a_word_without_a_key_and_a_key_that_stands_twice_are_named() {
        assert_eq!(read(&["x.md"]), Err("`x.md` is not key=value".to_owned()));
        assert_eq!(read(&["=x"]), Err("`=x` is not key=value".to_owned()));
        assert_eq!(read(&["path=a", "path=b"]), Err("`path` stands twice".to_owned()));
    }
}
