//! A vault with two wikis, `acme` and `home`, and calls of tools on it.
//!
//! What belongs to each wiki is for the test to say. Tools run on blocking threads, as in a server.

use crate::access::{SecretStore, Toolset, WikiRight};
use crate::mcp::attachments::{AttachedStream, AttachmentsByWiki, WikiAttachments};
use crate::mcp::error::ToolError;
use crate::mcp::tool::{ToolAnswer, ToolCall};
use crate::mcp::wiki::WIKI_TOOLS;
use crate::mcp::{ConnectHolder, McpCaller, McpVault};
use crate::views::wiki::{WikiIndex, fill_index};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use steward_domain::signals::stream::{IncomingEvent, StreamEvent};
use steward_domain::time;
use steward_domain::wiki::MANIFEST_FILE;
use steward_vault::files::root::VaultRoot;
use tempfile::TempDir;

pub(super) struct Bench {
    dir: TempDir,
    state: TempDir,
}

/// An event as a test writes it.
pub(super) struct EventDraft<'a> {
    pub(super) stream: &'a str,
    pub(super) pattern: &'a str,
    pub(super) origin: &'a str,
    pub(super) subject: &'a str,
    pub(super) text: &'a str,
}

/// What belongs to one wiki.
pub(super) fn attach(wiki: &str, streams: &[&str], clones: &[(&str, &Path)]) -> (String, WikiAttachments) {
    let streams = streams.iter().map(|stream| AttachedStream::try_from((*stream).to_owned()).unwrap()).collect();
    let clones = clones.iter().map(|(name, path)| ((*name).to_owned(), path.to_path_buf())).collect();
    (wiki.to_owned(), WikiAttachments { streams, clones })
}

impl Bench {
    pub(super) fn new() -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        for wiki in ["acme", "home"] {
            bench.put(&format!("wiki/{wiki}/{MANIFEST_FILE}"), "---\nname: x\n---\n");
        }
        bench
    }

    pub(super) fn put(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn put_event(&self, draft: &EventDraft<'_>) {
        let incoming = IncomingEvent {
            source_id: draft.text,
            pattern: draft.pattern,
            origin_at: time::parse(draft.origin),
            author: None,
            subject: Some(draft.subject),
            text: draft.text,
        };
        // Nothing is received before it happened.
        let received = time::parse("2026-11-21T12:00:00Z").max(incoming.origin_at).unwrap();
        let event = StreamEvent::new(draft.stream, &incoming, received);
        let path = event.record_path().unwrap();
        self.put(path.as_str(), event.render());
    }

    /// Opens the vault without an index.
    pub(super) fn open(&self, attachments: impl IntoIterator<Item = (String, WikiAttachments)>) -> Arc<McpVault> {
        self.open_with(WikiIndex::new(self.state.path()), attachments)
    }

    /// Opens the vault with an index that has read it.
    pub(super) async fn open_indexed(
        &self,
        attachments: impl IntoIterator<Item = (String, WikiAttachments)>,
    ) -> Arc<McpVault> {
        fill_index(self.state.path(), &VaultRoot::open(self.dir.path()).unwrap()).await;
        self.open_with(WikiIndex::new(self.state.path()), attachments)
    }

    fn open_with(
        &self,
        index: WikiIndex,
        attachments: impl IntoIterator<Item = (String, WikiAttachments)>,
    ) -> Arc<McpVault> {
        let connect: ConnectHolder = Arc::new(|| Box::pin(async { Err("nobody".to_owned()) }));
        let root = VaultRoot::open(self.dir.path()).unwrap();
        let vault = McpVault::new(root, SecretStore::new(self.state.path()), index, connect).unwrap();
        Arc::new(vault.with_attachments(AttachmentsByWiki(attachments.into_iter().collect())))
    }
}

/// Calls a tool as somebody who sees all wikis, or one.
pub(super) async fn call_as(
    vault: &Arc<McpVault>,
    pin: Option<&str>,
    tool: &str,
    arguments: Value,
) -> Result<ToolAnswer, ToolError> {
    let tool = WIKI_TOOLS.iter().find(|known| known.name == tool).unwrap();
    let caller = McpCaller::new("ann".to_owned(), pin.map(str::to_owned), &[Toolset::Wiki], WikiRight::Read, false);
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let call = ToolCall { vault: Arc::clone(vault), caller, arguments };
    tokio::task::spawn_blocking(move || (tool.run)(&call)).await.unwrap()
}

/// The value that a tool answers about `acme`.
pub(super) async fn ask(vault: &Arc<McpVault>, tool: &str, arguments: Value) -> Value {
    match call_as(vault, Some("acme"), tool, arguments).await.unwrap() {
        ToolAnswer::Value(value) => value,
        ToolAnswer::Text(blocks)
        | ToolAnswer::TextWithMeta { blocks, .. }
        | ToolAnswer::TextWithImages { blocks, .. } => json!(blocks),
    }
}

/// The error that a tool answers about `acme`.
pub(super) async fn refuse(vault: &Arc<McpVault>, tool: &str, arguments: Value) -> String {
    match call_as(vault, Some("acme"), tool, arguments.clone()).await {
        Err(error) => error.render(&vault.fences),
        Ok(_) => panic!("{tool} answers {arguments}"),
    }
}
