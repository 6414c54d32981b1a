//! The index of a vault's wikis for a process that may have none: it is opened when something is first searched.
//!
//! Without an index, and where it cannot be used, the caller reads the files and finds the same.

use std::path::{Path, PathBuf};
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
    opened: OnceCell<Option<Index>>,
}

impl WikiIndex {
    pub(crate) fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), opened: OnceCell::new() }
    }

    /// An index that is open already.
    pub(crate) fn opened(index: Index) -> Self {
        Self { state: PathBuf::new(), opened: OnceCell::new_with(Some(Some(index))) }
    }

    pub(super) async fn open(&self) -> Option<&Index> {
        let open = async || match self.state.join(FILE).exists() {
            true => Index::open(&self.state).await.ok(),
            false => None,
        };
        self.opened.get_or_init(open).await.as_ref()
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
