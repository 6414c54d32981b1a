//! Resources: the files of wikis as they are, what a check of a wiki finds, its guide, and what the stewards say, for programs.
//!
//! A file has no fence, because it is the exact bytes. It is marked as untrusted instead. What a tool says as well has the words of the tool.
//! Only a valid token of ours is taken out of a text. What a caller does not see is not found. A read is a line in the log, as a call is.

mod by_tool;
mod contents;
mod list;
pub(crate) mod uri;

use super::admission::CallCost;
use super::call_log::{LoggedCall, LoggedRequest, NOTICE_KEY, hash_arguments};
use super::caller::McpCaller;
use super::calls::{describe_notice, report_missing_line};
use super::error::{ERROR_KEY, ToolError, ToolErrorCode};
use super::requests::run_request;
use super::vault::McpVault;
use super::workspace::Workspace;
use crate::access::Toolset;
use by_tool::ToolResource;
use rmcp::RoleServer;
use rmcp::model::{CacheScope, ErrorData, MetaObject, ReadResourceResult, ResourceContents};
use rmcp::service::RequestContext;
use serde_json::json;
use std::sync::Arc;
use uri::ResourceUri;
pub(crate) use uri::name_matter;

pub(crate) use by_tool::find_listed_tool;
pub(crate) use list::{RESOURCE_TEMPLATES, list_resources, list_templates, list_workspaces};

/// The key that says how far a resource can be trusted.
const TRUST_KEY: &str = "io.steward/trust";
const UNTRUSTED: &str = "untrusted";
/// The name of a read in the log.
const READ: &str = "resources/read";

/// How a client is answered: the words of a page may change at any moment.
const RESOURCE_TTL_MS: u64 = 0;

/// What marks a resource as the words of others.
fn mark_untrusted() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0.insert(TRUST_KEY.to_owned(), json!(UNTRUSTED));
    meta
}

/// The answer about a resource that is not there, or that the caller does not see.
pub(crate) fn refuse_unknown(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
}

/// Opens the workspace of a resource; `None` if the caller does not see it.
pub(crate) fn open_visible<'v>(
    vault: &'v McpVault,
    caller: &McpCaller,
    resource: &ResourceUri,
) -> Option<Workspace<'v>> {
    let is_seen = caller.tools.contains(&Toolset::Wiki);
    let workspace = resource.workspace().filter(|_| is_seen)?;
    vault.open_workspace(caller, Some(workspace)).ok()
}

/// Reads a resource, and logs it.
///
/// # Errors
/// It is not there, too large, or cannot be read now.
pub(crate) async fn read_resource(
    vault: &Arc<McpVault>,
    caller: &McpCaller,
    uri: &str,
    context: &RequestContext<RoleServer>,
    transport: &'static str,
) -> Result<ReadResourceResult, ErrorData> {
    let request = LoggedRequest::begin(caller, context, transport);
    let mut log = vault.log.open(request.ts).map_err(|e| ToolError::without_log(&e).into_protocol_error())?;
    let resource = ResourceUri::parse(uri);
    let read = match &resource {
        None => Err(refuse_unknown(uri)),
        Some(resource) => read_contents(vault, caller, resource, uri).await,
    };
    let arguments = [("uri".to_owned(), json!(uri))].into_iter().collect();
    let line = LoggedCall {
        workspace: resource.as_ref().and_then(ResourceUri::workspace),
        tool: READ,
        run_id: None,
        args_hash: hash_arguments(&vault.fences, &arguments),
        result: match &read {
            Ok(_) => "ok".to_owned(),
            Err(e) => describe_refusal(e),
        },
        bytes: read.as_ref().map_or(0, count_bytes),
    };
    let appended = log.append_or_owe(&request.end(line)).inspect_err(report_missing_line);
    let mut result = ReadResourceResult::new(vec![read?]);
    result.ttl_ms = Some(RESOURCE_TTL_MS);
    result.cache_scope = Some(CacheScope::Private);
    if appended.is_err() {
        result.meta.get_or_insert_default().0.insert(NOTICE_KEY.to_owned(), describe_notice());
    }
    Ok(result)
}

async fn read_contents(
    vault: &Arc<McpVault>,
    caller: &McpCaller,
    resource: &ResourceUri,
    uri: &str,
) -> Result<ResourceContents, ErrorData> {
    let cost = match resource {
        ResourceUri::Lint { .. } => CallCost::Heavy,
        _ => CallCost::Light,
    };
    let (own_vault, resource, uri) = (Arc::clone(vault), resource.clone(), uri.to_owned());
    let read = move |_: &McpVault, caller: &McpCaller| match ToolResource::find(&resource) {
        Some(named) => named.read(own_vault, caller, &uri),
        None => contents::read_visible(&own_vault, caller, &resource, &uri),
    };
    run_request(vault, caller, cost, read).await
}

/// A refusal in the words of the log.
fn describe_refusal(e: &ErrorData) -> String {
    let code = e.data.as_ref().and_then(|data| data.get(ERROR_KEY)?.get("code")?.as_str());
    match code {
        Some("internal") => "error:internal".to_owned(),
        Some(code) => format!("refused:{code}"),
        None => format!("refused:{}", ToolErrorCode::NotFound),
    }
}

/// How much of a resource is sent.
fn count_bytes(contents: &ResourceContents) -> u64 {
    let bytes = match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    };
    bytes as u64
}

#[cfg(test)]
mod tests;
