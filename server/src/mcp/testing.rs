//! A vault with two small wikis for unit tests, in a folder that is removed with it.
//!
//! It has no index and nobody holds it, as a process over standard input and output finds it.

use super::caller::McpCaller;
use super::vault::{ConnectHolder, McpVault};
use crate::access::WikiRight;
use futures_util::FutureExt;
use std::sync::Arc;
use steward_vault::files::root::VaultRoot;

/// The wikis `acme` and `other`, each with a page.
pub(crate) struct TestVault {
    pub(crate) folder: tempfile::TempDir,
    _state: tempfile::TempDir,
    pub(crate) vault: Arc<McpVault>,
}

impl TestVault {
    pub(crate) fn new() -> Self {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = VaultRoot::open(folder.path()).unwrap();
        let connect: ConnectHolder = Arc::new(|| async { Err("nobody holds it".to_owned()) }.boxed());
        let vault = Arc::new(McpVault::open(root, state.path(), connect).unwrap());
        let test = Self { folder, _state: state, vault };
        for (wiki, page) in [("acme", "a"), ("other", "b")] {
            test.write(&format!("{wiki}/KNOWLEDGE.md"), "---\ntitle: A wiki\n---\n");
            test.write(&format!("{wiki}/concepts/{page}.md"), "# A page\n\n## Terms\n");
        }
        test
    }

    /// Writes a file below the folder of wikis.
    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder.path().join("wiki").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn caller(&self, workspace: Option<&str>) -> McpCaller {
        McpCaller::new("ann".to_owned(), workspace.map(str::to_owned), &[], WikiRight::Write, true)
    }
}
