//! Which resources there are, in pages of 100, and how their addresses are made.
//!
//! A page of the list fits one state of it: when files come or go, its cursor is refused and a client begins again. Descriptions are constants.

use super::by_tool::find_listed_tool;
use super::contents::find_mime_type;
use super::uri::ResourceUri;
use super::{RESOURCE_TTL_MS, mark_untrusted};
use crate::access::Toolset;
use crate::mcp::caller::McpCaller;
use crate::mcp::cursor::ListState;
use crate::mcp::error::ToolError;
use crate::mcp::vault::McpVault;
use rmcp::model::{
    CacheScope, ErrorData, ListResourceTemplatesResult, ListResourcesResult, Resource, ResourceTemplate,
};

/// How many resources a page of the list has.
const PAGE: usize = 100;
/// The method, to which cursors belong.
const LIST: &str = "resources/list";

/// A template of addresses.
pub(crate) struct TemplateDefinition {
    pub(crate) template: &'static str,
    name: &'static str,
    /// The tool that says the same, or else one of a wiki that every reader has.
    tool: &'static str,
    description: &'static str,
    mime_type: Option<&'static str>,
}

/// The templates, in the order of the list.
pub(crate) const RESOURCE_TEMPLATES: [TemplateDefinition; 6] = [
    TemplateDefinition {
        template: "wiki://{workspace}/{+path}",
        name: "page",
        tool: "read",
        description: "A file of a wiki, such as a page. The exact bytes.",
        mime_type: None,
    },
    TemplateDefinition {
        template: "raw://{workspace}/{+path}",
        name: "document",
        tool: "read",
        description: "A document on which a wiki rests. The exact bytes.",
        mime_type: None,
    },
    TemplateDefinition {
        template: "lint://{workspace}",
        name: "findings",
        tool: "read",
        description: LINT,
        mime_type: Some(JSON),
    },
    TemplateDefinition {
        template: "guide://{workspace}",
        name: "guide",
        tool: "guide",
        description: GUIDE,
        mime_type: Some(TEXT),
    },
    TemplateDefinition {
        template: "steward://matter/{+name}",
        name: "matter",
        tool: "steward_matters",
        description: "A matter with its state and its last check.",
        mime_type: Some(JSON),
    },
    TemplateDefinition {
        template: "steward://action/{id}",
        name: "action",
        tool: "steward_actions",
        description: "An action with its change, its gates and its evidence.",
        mime_type: Some(JSON),
    },
];

const LINT: &str = "What a check of the wiki without a model finds now, each with its fix.";
const GUIDE: &str = "What a model reads first: what the wiki is about, which rules hold, and how things stand.";
const TODAY: &str = "What the stewards did in the last 24 hours, and what waits for a person.";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// A page of the list.
///
/// # Errors
/// The cursor does not fit, or the wikis cannot be listed.
pub(crate) fn list_resources(
    vault: &McpVault,
    caller: &McpCaller,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let (mut uris, mut sizes) = (Vec::new(), Vec::new());
    if find_listed_tool("steward_today", caller).is_some() {
        uris.push(ResourceUri::Today);
        sizes.push(None);
    }
    for workspace in list_workspaces(vault, caller).map_err(ToolError::into_protocol_error)? {
        let opened = vault.open_workspace(caller, Some(&workspace)).map_err(ToolError::into_protocol_error)?;
        uris.push(ResourceUri::Guide { workspace: workspace.clone() });
        uris.push(ResourceUri::Lint { workspace: workspace.clone() });
        sizes.extend([None, None]);
        for file in opened.list_files() {
            uris.push(ResourceUri::File { workspace: workspace.clone(), path: file.path });
            sizes.push(Some(file.file.bytes));
        }
    }
    let names: Vec<String> = uris.iter().map(ToString::to_string).collect();
    let state = ListState::new(&vault.fences, LIST, &caller.name, &names);
    let offset = state.read(cursor).map_err(ToolError::into_protocol_error)?.min(names.len());
    let shown = names.iter().zip(&uris).zip(&sizes).skip(offset).take(PAGE);
    let resources: Vec<Resource> = shown.map(|((name, uri), size)| describe_resource(name, uri, *size)).collect();
    let next_cursor = state.next(offset + resources.len(), names.len());
    let mut listed = ListResourcesResult::with_all_items(resources);
    listed.next_cursor = next_cursor;
    listed.ttl_ms = Some(RESOURCE_TTL_MS);
    listed.cache_scope = Some(CacheScope::Private);
    Ok(listed)
}

/// The workspaces that a caller sees.
pub(crate) fn list_workspaces(vault: &McpVault, caller: &McpCaller) -> Result<Vec<String>, ToolError> {
    if !caller.tools.contains(&Toolset::Wiki) {
        return Ok(Vec::new());
    }
    vault.list_workspaces(caller)
}

fn describe_resource(uri: &str, named: &ResourceUri, size: Option<u64>) -> Resource {
    let resource = match named {
        ResourceUri::File { path, .. } => {
            let resource = Resource::new(uri, path);
            match find_mime_type(path) {
                Some(mime_type) => resource.with_mime_type(mime_type),
                None => resource,
            }
        }
        ResourceUri::Lint { .. } => Resource::new(uri, "findings").with_description(LINT).with_mime_type(JSON),
        ResourceUri::Guide { .. } => Resource::new(uri, "guide").with_description(GUIDE).with_mime_type(TEXT),
        ResourceUri::Today => Resource::new(uri, "today").with_description(TODAY).with_mime_type(JSON),
        // These are many, so their templates are listed and not they.
        ResourceUri::Matter { .. } | ResourceUri::Action { .. } => Resource::new(uri, uri).with_mime_type(JSON),
    };
    let resource = resource.with_meta(mark_untrusted());
    match size {
        Some(size) => resource.with_size(size),
        None => resource,
    }
}

/// The templates that a caller has.
pub(crate) fn list_templates(caller: &McpCaller) -> ListResourceTemplatesResult {
    let seen = RESOURCE_TEMPLATES.iter().filter(|it| find_listed_tool(it.tool, caller).is_some());
    let templates = seen.map(|it| {
        let template =
            ResourceTemplate::new(it.template, it.name).with_description(it.description).with_meta(mark_untrusted());
        match it.mime_type {
            Some(mime_type) => template.with_mime_type(mime_type),
            None => template,
        }
    });
    let mut listed = ListResourceTemplatesResult::with_all_items(templates.collect());
    listed.ttl_ms = Some(RESOURCE_TTL_MS);
    listed.cache_scope = Some(CacheScope::Private);
    listed
}
