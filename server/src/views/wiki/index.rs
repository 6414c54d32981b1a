//! The index of a vault for a process that may have none: it is opened when something is first searched.
//!
//! Without an index, and where it cannot be used, the caller reads the files and finds the same.

use crate::views::VaultViews;
use std::path::{Path, PathBuf};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::schema::NoteSchema;
use steward_domain::wiki::search::{PageFilter, PageHit};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{FILE, Index};
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::search::search_indexed;
use steward_vault::wiki::why::WhyPages;
use tokio::sync::OnceCell;

/// The index in a state folder, if this process may use one there.
pub(crate) struct WikiIndex {
    state: PathBuf,
    mapping: Option<NoteMapping>,
    opened: OnceCell<Index>,
}

/// How notes are read, and the hashes of all mappings that were ever accepted.
#[derive(Clone)]
pub(crate) struct NoteMapping {
    pub(crate) schema: NoteSchema,
    pub(crate) accepted: Vec<ContentHash>,
}

impl WikiIndex {
    pub(crate) fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), mapping: None, opened: OnceCell::new() }
    }

    /// An index that is open already.
    pub(crate) fn opened(index: Index) -> Self {
        Self { state: PathBuf::new(), mapping: None, opened: OnceCell::new_with(Some(index)) }
    }

    /// Reads notes by the mapping of the vault.
    pub(crate) fn with_mapping(self, mapping: NoteMapping) -> Self {
        Self { mapping: Some(mapping), ..self }
    }

    /// What the interfaces show of the vault; `None` without an index.
    pub(crate) async fn open_views(&self, root: &VaultRoot) -> Option<VaultViews> {
        self.open().await.map(|index| VaultViews::new(root.clone(), index.clone()))
    }

    pub(super) async fn open(&self) -> Option<&Index> {
        let open = async || match self.state.join(FILE).exists() {
            true => {
                let index = Index::open_beside(&self.state).await.ok()?;
                match self.mapping.clone() {
                    Some(mapping) => Some(index.with_schema(mapping.schema, mapping.accepted)),
                    None => Some(index),
                }
            }
            false => None,
        };
        // That there is none yet is not kept: a process that starts makes it.
        self.opened.get_or_try_init(async || open().await.ok_or(())).await.ok()
    }

    /// The best pages for a query; `None` without an index that knows the wiki.
    pub(crate) async fn search(
        &self,
        root: &VaultRoot,
        wiki: &str,
        query: &str,
        filter: &PageFilter,
        limit: usize,
    ) -> Option<Vec<PageHit>> {
        search_indexed(self.open().await?, root, wiki, query, filter, limit).await.ok().flatten()
    }

    /// The files of the pages that have the quote of a label; `None` without an index that knows the wiki.
    pub(crate) async fn list_citing(&self, root: &VaultRoot, wiki: &str, label: &str) -> Option<Vec<String>> {
        let index = self.open().await?;
        index.sync_wiki(root, wiki).await.ok()?;
        index.wiki().list_citing(wiki, label).await.ok().flatten()
    }

    /// The pages that a question about a wiki may mean; `None` without an index that knows the wiki.
    pub(crate) async fn find_why_pages(
        &self,
        root: &VaultRoot,
        wiki: &str,
        folder: &WikiFolder,
        what: &str,
    ) -> Option<WhyPages> {
        WhyPages::find(self.open().await?, root, wiki, folder, what).await.ok().flatten()
    }
}

/// Reads a whole vault into the index of a state folder.
#[cfg(test)]
pub(crate) async fn fill_index(state: &Path, root: &VaultRoot) {
    let index = Index::open(state).await.unwrap();
    index.sync_all(root, chrono::Utc::now()).await.unwrap();
}
