//! What a resource holds: the bytes of a file, or the findings of a check.
//!
//! A file is read up to a limit and never through a link. Text is sent as text, anything else in base64.

use super::uri::ResourceUri;
use super::{UNTRUSTED, mark_untrusted, open_visible, refuse_unknown};
use crate::mcp::caller::McpCaller;
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::paths::{to_file, to_path};
use crate::mcp::secrets::{remove_tokens, remove_tokens_from_value};
use crate::mcp::vault::McpVault;
use crate::mcp::workspace::Workspace;
use crate::views::wiki::list_wiki_findings;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::Utc;
use rmcp::model::{ErrorData, ResourceContents};
use serde_json::{Value, json};
use std::io::ErrorKind;
use steward_vault::wiki::folder::ReadFault;

/// The largest file, in bytes: it is held in memory, and a client's model takes far less.
const MAX_RESOURCE: usize = 10 * 1024 * 1024;
/// The most findings, so that a broken wiki is no flood.
const MAX_FINDINGS: usize = 1_000;

/// Reads a resource that the caller sees. `uri` is the address as the client wrote it, and stands in the answer.
pub(super) fn read_visible(
    vault: &McpVault,
    caller: &McpCaller,
    resource: &ResourceUri,
    uri: &str,
) -> Result<ResourceContents, ErrorData> {
    let workspace = open_visible(vault, caller, resource).ok_or_else(|| refuse_unknown(uri))?;
    let contents = match resource {
        ResourceUri::File { path, .. } => read_file(&workspace, path, uri)?,
        ResourceUri::Lint { .. } => read_findings(&workspace, uri)?,
        // Tools say what these hold.
        ResourceUri::Guide { .. } | ResourceUri::Today | ResourceUri::Matter { .. } | ResourceUri::Action { .. } => {
            return Err(refuse_unknown(uri));
        }
    };
    Ok(contents.with_meta(mark_untrusted()))
}

fn read_file(workspace: &Workspace<'_>, path: &str, uri: &str) -> Result<ResourceContents, ErrorData> {
    let file = to_file(path).map_err(|_| refuse_unknown(uri))?;
    let bytes = workspace.folder.read_bytes(&file, MAX_RESOURCE).map_err(|fault| match fault {
        ReadFault::TooLarge(_) => {
            let (what, fix) = ("the file has more than 10 MiB", "Read parts of its text by the tool `read`");
            ToolError::new(ToolErrorCode::TooLarge, what, fix).into_protocol_error()
        }
        ReadFault::Link | ReadFault::NotAFile => refuse_unknown(uri),
        ReadFault::Io(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => refuse_unknown(uri),
        ReadFault::Io(e) => ToolError::internal(e).into_protocol_error(),
    })?;
    let known = find_mime_type(path);
    Ok(match String::from_utf8(bytes) {
        Ok(text) => {
            let text = remove_tokens(&workspace.vault.secrets, &text).into_owned();
            ResourceContents::text(text, uri).with_mime_type(known.unwrap_or("text/plain"))
        }
        Err(e) => ResourceContents::blob(STANDARD.encode(e.as_bytes()), uri)
            .with_mime_type(known.filter(|it| !it.starts_with("text/")).unwrap_or("application/octet-stream")),
    })
}

/// The findings that need no model, each with its fix.
fn read_findings(workspace: &Workspace<'_>, uri: &str) -> Result<ResourceContents, ErrorData> {
    let failed = |e: &dyn ToString| ToolError::internal(e.to_string()).into_protocol_error();
    let findings = list_wiki_findings(workspace.vault.root(), &workspace.name, Utc::now()).map_err(|e| failed(&e))?;
    let total = findings.len();
    let shown = findings.into_iter().take(MAX_FINDINGS).map(|finding| {
        json!({
            "path": to_path(&finding.file).unwrap_or(finding.file),
            "line": finding.line,
            "code": finding.code,
            "severity": finding.severity,
            "problem": finding.problem,
            "fix": finding.fix,
        })
    });
    let mut value = json!({
        "workspace": workspace.name, "trust": UNTRUSTED, "total": total, "findings": shown.collect::<Vec<Value>>(),
    });
    remove_tokens_from_value(&workspace.vault.secrets, &mut value);
    Ok(ResourceContents::text(value.to_string(), uri).with_mime_type("application/json"))
}

/// The type of a file by its name, where it is known.
pub(super) fn find_mime_type(path: &str) -> Option<&'static str> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "md" => "text/markdown",
        "txt" => "text/plain",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    })
}
