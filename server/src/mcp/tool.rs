//! What a tool is: a name, a description that never changes while the process runs, schemas, and the function that answers.
//!
//! A tool runs on a blocking thread, because it reads files. Its answer is a value, whose text copy stands in a fence, or a text that was
//! fenced where it was made.

use super::caller::McpCaller;
use super::error::{ToolError, ToolErrorCode, shorten_outside};
use super::schema::WORKSPACE;
use super::vault::McpVault;
use super::workspace::Workspace;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// A tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) arguments: fn() -> JsonObject,
    /// `None` for a tool that answers in text.
    pub(crate) result: Option<fn() -> JsonObject>,
    pub(crate) run: fn(&ToolCall) -> Result<ToolAnswer, ToolError>,
}

/// A call of a tool.
pub(crate) struct ToolCall {
    pub(crate) vault: Arc<McpVault>,
    pub(crate) caller: McpCaller,
    pub(crate) arguments: JsonObject,
}

/// What a tool answers.
pub(crate) enum ToolAnswer {
    /// Blocks of text; outside words in them are fenced.
    Text(Vec<String>),
    Value(Value),
}

impl ToolDefinition {
    /// The tool as clients see it. All tools read alone.
    pub(crate) fn describe(&self) -> Tool {
        let hints =
            ToolAnnotations::from_raw(Some(self.title.to_owned()), Some(true), Some(false), Some(true), Some(false));
        let tool = Tool::new(self.name, self.description, Arc::new((self.arguments)()));
        let tool = tool.with_title(self.title).with_annotations(hints);
        match self.result {
            Some(result) => tool.with_raw_output_schema(Arc::new(result())),
            None => tool,
        }
    }
}

impl ToolCall {
    /// The workspace that the call names, if it names one.
    pub(crate) fn named_workspace(&self) -> Option<&str> {
        self.arguments.get(WORKSPACE).and_then(Value::as_str)
    }

    /// Opens the workspace, and reads the arguments.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadArguments`], and those of [`McpVault::open_workspace`].
    pub(crate) fn open<A: DeserializeOwned>(&self) -> Result<(Workspace<'_>, A), ToolError> {
        let bad = |what: String| {
            ToolError::new(ToolErrorCode::BadArguments, what, "The schema of the tool says which arguments it takes")
        };
        if self.arguments.get(WORKSPACE).is_some_and(|value| !value.is_string()) {
            return Err(bad(format!("`{WORKSPACE}` is not a text")));
        }
        let workspace = self.vault.open_workspace(&self.caller, self.named_workspace())?;
        let mut arguments = self.arguments.clone();
        arguments.shift_remove(WORKSPACE);
        let read = serde_json::from_value(Value::Object(arguments));
        Ok((workspace, read.map_err(|e| bad(shorten_outside(&e.to_string())))?))
    }
}

/// The answer of a tool with structured results.
pub(crate) fn answer_value<R: Serialize>(result: &R) -> Result<ToolAnswer, ToolError> {
    serde_json::to_value(result).map(ToolAnswer::Value).map_err(ToolError::internal)
}

/// Checks that a number of an argument lies in its range, as its schema says.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`].
pub(crate) fn check_range(name: &str, value: u64, least: u64, most: u64) -> Result<usize, ToolError> {
    let number = usize::try_from(value).ok().filter(|_| (least..=most).contains(&value));
    number.ok_or_else(|| {
        let what = format!("`{name}` is {value}");
        ToolError::new(ToolErrorCode::BadArguments, what, format!("Give a number from {least} to {most}"))
    })
}
