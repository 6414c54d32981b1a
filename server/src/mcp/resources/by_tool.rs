//! Resources that say what a tool says: the guide of a wiki, and what the stewards did.
//!
//! Who does not see the tool does not find the resource. The answer has the words and the fences of the tool, and only a valid token of
//! ours is taken out of it.

use super::uri::{ResourceUri, find_matter_path};
use super::{mark_untrusted, refuse_unknown};
use crate::mcp::caller::McpCaller;
use crate::mcp::error::ToolErrorCode;
use crate::mcp::handler::all_tools;
use crate::mcp::schema::WORKSPACE;
use crate::mcp::secrets::{remove_tokens, remove_tokens_from_value};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolVisibility};
use crate::mcp::vault::McpVault;
use rmcp::model::{ErrorData, JsonObject, ResourceContents};
use serde_json::json;
use std::sync::Arc;

/// The tool of this name, if a caller has it.
pub(crate) fn find_listed_tool(name: &str, caller: &McpCaller) -> Option<&'static ToolDefinition> {
    all_tools().find(|tool| tool.name == name && tool.check_visibility(caller) == ToolVisibility::Listed)
}

/// A tool, and what it is asked.
pub(super) struct ToolResource {
    tool: &'static str,
    arguments: JsonObject,
}

impl ToolResource {
    /// The tool that says what a resource holds; `None` for a file and for findings.
    pub(super) fn find(resource: &ResourceUri) -> Option<Self> {
        let ask = |tool: &'static str, name: &str, value: String| Self {
            tool,
            arguments: [(name.to_owned(), json!(value))].into_iter().collect(),
        };
        Some(match resource {
            ResourceUri::File { .. } | ResourceUri::Lint { .. } => return None,
            ResourceUri::Guide { workspace } => ask("guide", WORKSPACE, workspace.clone()),
            ResourceUri::Today => Self { tool: "steward_today", arguments: JsonObject::new() },
            ResourceUri::Matter { name } => ask("steward_matters", "id", find_matter_path(name)),
            ResourceUri::Action { id } => ask("steward_actions", "id", id.clone()),
        })
    }

    /// Reads the resource on a blocking thread.
    ///
    /// # Errors
    /// The caller does not see it, or it cannot be read now.
    pub(super) fn read(
        self,
        vault: Arc<McpVault>,
        caller: &McpCaller,
        uri: &str,
    ) -> Result<ResourceContents, ErrorData> {
        let tool = find_listed_tool(self.tool, caller).ok_or_else(|| refuse_unknown(uri))?;
        let call = ToolCall { vault, caller: caller.clone(), arguments: self.arguments };
        let answer = (tool.run)(&call).map_err(|e| match e.code {
            ToolErrorCode::NotFound | ToolErrorCode::BadArguments | ToolErrorCode::WorkspaceNotAccessible => {
                refuse_unknown(uri)
            }
            _ => e.into_protocol_error(),
        })?;
        let contents = match answer {
            ToolAnswer::Value(mut value) => {
                remove_tokens_from_value(&call.vault.secrets, &mut value);
                ResourceContents::text(value.to_string(), uri).with_mime_type("application/json")
            }
            ToolAnswer::Text(blocks)
            | ToolAnswer::TextWithMeta { blocks, .. }
            | ToolAnswer::TextWithImages { blocks, .. } => {
                let text = remove_tokens(&call.vault.secrets, &blocks.join("\n\n")).into_owned();
                ResourceContents::text(text, uri).with_mime_type("text/plain")
            }
        };
        Ok(contents.with_meta(mark_untrusted()))
    }
}
