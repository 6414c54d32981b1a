//! The pages of the vault's wikis, so that a search need not read ten thousand files.
//!
//! [`sync`] keeps the rows in line with the files, and [`search`] ranks pages by their words. The files are the truth: without
//! the index the commands read them and find the same.

mod scan;
mod search;
mod sync;

use crate::index::Index;

pub use search::IndexedPage;

/// The pages of the vault's wikis.
///
/// Borrowed from an index by [`Index::wiki`].
#[derive(Clone, Copy, Debug)]
pub struct WikiView<'a> {
    index: &'a Index,
}

/// A wiki whose rows are in line with its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScannedWiki {
    id: i64,
    /// Of the listing of the files.
    digest: u64,
}

impl Index {
    #[must_use]
    pub fn wiki(&self) -> WikiView<'_> {
        WikiView { index: self }
    }
}
