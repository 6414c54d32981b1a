//! A vault with one wiki in a temporary folder, for the tests of tools.
//!
//! Its caller over standard input and output may write. Tools run on the thread of the test.

use super::caller::McpCaller;
use super::error::ToolError;
use super::handler::all_tools;
use super::tool::ToolCall;
use super::vault::McpVault;
use crate::access::WikiRight;
use rmcp::model::CallToolResult;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::template::render_wiki;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::accept::read_acceptable;
use steward_vault::wiki::create::create_wiki;
use steward_vault::wiki::request::WikiRunRequest;
use steward_vault::wiki::sources::SourceDocument;
use tempfile::TempDir;

pub(crate) struct TestWiki {
    dir: TempDir,
    name: &'static str,
    folder: PathBuf,
    root: VaultRoot,
    /// Tools wait for the process that holds the vault.
    runtime: tokio::runtime::Runtime,
    pub(crate) vault: Arc<McpVault>,
}

impl TestWiki {
    /// A new wiki that nobody has accepted.
    pub(crate) fn new(name: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (vault, state) = (dir.path().join("vault"), dir.path().join("state"));
        std::fs::create_dir_all(&vault).unwrap();
        let root = VaultRoot::open(&vault).unwrap();
        let folder =
            create_wiki(&root, name, &render_wiki(name, "2026-11-01T09:00:00Z".parse().unwrap()).unwrap()).unwrap();
        let connect = Arc::new(|| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(async { Err("nobody is there".to_owned()) })
        });
        let vault = Arc::new(McpVault::open(root.clone(), &state, connect).unwrap());
        Self { dir, name, folder, root, runtime: tokio::runtime::Runtime::new().unwrap(), vault }
    }

    /// A new wiki that a person has accepted.
    pub(crate) fn accepted(name: &'static str) -> Self {
        let wiki = Self::new(name);
        wiki.accept(0);
        wiki
    }

    /// The folder of the wiki.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the state of the process.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Accepts the files of the wiki as they are.
    pub(crate) fn accept(&self, minute: u32) {
        let files = read_acceptable(&self.root, &format!("wiki/{}", self.name)).unwrap();
        let seen: BTreeMap<String, ContentHash> =
            files.iter().map(|it| (it.file.to_owned(), ContentHash::hash_bytes(it.text.as_bytes()))).collect();
        let at = format!("2026-11-01T10:{minute:02}:00Z").parse().unwrap();
        let request = WikiRunRequest { wiki: self.name, by: "ann", at, workflow: WorkflowRef::default() };
        VaultWriter::lock_without_folder(self.root.clone()).unwrap().accept_wiki(&request, &seen).unwrap();
    }

    /// Adds a file below `sources/` to the registry.
    pub(crate) fn register(&self, path: &str) {
        let at = "2026-11-01T11:00:00Z".parse().unwrap();
        let request = WikiRunRequest { wiki: self.name, by: "ann", at, workflow: WorkflowRef::default() };
        let document = SourceDocument { path, bytes: None, decoded: None };
        VaultWriter::lock_without_folder(self.root.clone()).unwrap().add_source(&request, document).unwrap();
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn append(&self, file: &str, text: &str) {
        let before = std::fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        self.write(file, &(before + text));
    }

    /// The text of a page with these lines in its frontmatter.
    pub(crate) fn render_page(slug: &str, kind: &str, extra: &str, body: &str) -> String {
        format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: \"The {slug}\"\nupdated_at: \"2026-11-22T09:15:04Z\"\n{extra}---\n# The {slug}\n\n{body}"
        )
    }

    /// Calls a tool as the handler does.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ToolError> {
        self.call_as("ann via mcp", tool, arguments)
    }

    /// Calls a tool for somebody.
    pub(crate) fn call_as(&self, caller: &str, tool: &str, mut arguments: Value) -> Result<CallToolResult, ToolError> {
        arguments["workspace"] = self.name.into();
        let _entered = self.runtime.enter();
        let tool = all_tools().find(|it| it.name == tool).unwrap();
        let caller = McpCaller::new(caller.to_owned(), None, &[], WikiRight::Write, false);
        let arguments = arguments.as_object().unwrap().clone();
        let answer = (tool.run)(&ToolCall { vault: Arc::clone(&self.vault), caller, arguments })?;
        Ok(super::calls::render(&self.vault, tool, answer))
    }
}
