//! What a tool is: a name, a description that never changes while the process runs, schemas, and the function that answers.
//!
//! A tool runs on a blocking thread, because it reads files. Its answer is a value, whose text copy stands in a fence, or a text that was
//! fenced where it was made.

use super::admission::{CallCost, CallPermit};
use super::caller::{McpCaller, ToolNeed};
use super::error::{ToolError, ToolErrorCode, shorten_outside};
use super::schema::WORKSPACE;
use super::vault::McpVault;
use super::workspace::Workspace;
use crate::access::Toolset;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

/// A tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolDefinition {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) kind: ToolKind,
    pub(crate) arguments: fn() -> JsonObject,
    /// `None` for a tool that answers in text.
    pub(crate) result: Option<fn() -> JsonObject>,
    pub(crate) run: fn(&ToolCall) -> Result<ToolAnswer, ToolError>,
}

/// Where a tool belongs, what it needs and takes, and what a client may expect of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolKind {
    pub(crate) toolset: Toolset,
    pub(crate) need: ToolNeed,
    pub(crate) cost: CallCost,
    pub(crate) read_only: bool,
    pub(crate) destructive: bool,
    pub(crate) idempotent: bool,
    /// Whether it may reach other services.
    pub(crate) open_world: bool,
    /// Whether a caller who may write pages has it although they do not see its toolset.
    pub(crate) for_writers: bool,
    /// Whether its result may wait for a person, to whom a client shows an address.
    pub(crate) needs_person: bool,
}

impl ToolKind {
    /// A tool of wikis that reads.
    pub(crate) const READ_WIKI: Self = Self {
        toolset: Toolset::Wiki,
        need: ToolNeed::Read,
        cost: CallCost::Light,
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
        for_writers: false,
        needs_person: false,
    };
    /// A tool of wikis that searches many files or starts a program.
    pub(crate) const SEARCH_WIKI: Self = Self { cost: CallCost::Heavy, ..Self::READ_WIKI };
}

/// Whether a caller sees a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolVisibility {
    Listed,
    /// Their rights do not suffice.
    Forbidden,
    /// For them there is no such tool.
    Absent,
}

/// A call of a tool.
#[derive(Clone)]
pub(crate) struct ToolCall {
    pub(crate) vault: Arc<McpVault>,
    pub(crate) caller: McpCaller,
    pub(crate) arguments: JsonObject,
}

/// What a tool answers.
pub(crate) enum ToolAnswer {
    /// Blocks of text; outside words in them are fenced.
    Text(Vec<String>),
    /// The same, with facts about them for programs.
    TextWithMeta {
        blocks: Vec<String>,
        meta: JsonObject,
    },
    /// The same, and then pictures.
    TextWithImages {
        blocks: Vec<String>,
        images: Vec<AnswerImage>,
    },
    Value(Value),
}

/// A picture for a model.
pub(crate) struct AnswerImage {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl ToolDefinition {
    /// Whether a caller sees the tool.
    pub(crate) fn check_visibility(&self, caller: &McpCaller) -> ToolVisibility {
        let is_writer = caller.tools.contains(&Toolset::Wiki) && caller.has(ToolNeed::Write);
        match caller.tools.contains(&self.kind.toolset) || (self.kind.for_writers && is_writer) {
            false => ToolVisibility::Absent,
            true if caller.has(self.kind.need) => ToolVisibility::Listed,
            true => ToolVisibility::Forbidden,
        }
    }

    /// The tool as clients see it.
    pub(crate) fn describe(&self) -> Tool {
        let kind = &self.kind;
        let hints = ToolAnnotations::from_raw(
            Some(self.title.to_owned()),
            Some(kind.read_only),
            Some(kind.destructive),
            Some(kind.idempotent),
            Some(kind.open_world),
        );
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

    /// Takes the room of dearer work than the tool itself is, until the permit is dropped.
    ///
    /// # Errors
    /// [`ToolErrorCode::TooFast`].
    pub(crate) fn admit_more(&self, cost: CallCost) -> Result<CallPermit, ToolError> {
        self.vault.limits.admit(&self.caller.name, cost, Instant::now())
    }

    /// Opens the workspace, and reads the arguments.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadArguments`], and those of [`McpVault::open_workspace`].
    pub(crate) fn open<A: DeserializeOwned>(&self) -> Result<(Workspace<'_>, A), ToolError> {
        if self.arguments.get(WORKSPACE).is_some_and(|value| !value.is_string()) {
            return Err(refuse_arguments(format!("`{WORKSPACE}` is not a text")));
        }
        let workspace = self.vault.open_workspace(&self.caller, self.named_workspace())?;
        Ok((workspace, self.read_arguments()?))
    }

    /// Reads the arguments beside the workspace.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadArguments`].
    pub(crate) fn read_arguments<A: DeserializeOwned>(&self) -> Result<A, ToolError> {
        let mut arguments = self.arguments.clone();
        arguments.shift_remove(WORKSPACE);
        let read = serde_json::from_value(Value::Object(arguments));
        read.map_err(|e| refuse_arguments(shorten_outside(&e.to_string())))
    }
}

fn refuse_arguments(what: String) -> ToolError {
    ToolError::new(ToolErrorCode::BadArguments, what, "The schema of the tool says which arguments it takes")
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
