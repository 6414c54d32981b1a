//! Lists and single records for people: matters, tasks, signals, questions, search.
//!
//! Everything here is read-only. Long lists come in pages, so that a vault with thousands of matters answers at once.

pub(crate) mod matter_status;
pub(crate) mod matters;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod questions;
pub(crate) mod revision;
pub(crate) mod search;
pub(crate) mod signals;
pub(crate) mod tasks;
pub(crate) mod why;

use crate::index::Index;

/// Lists and single records for people.
///
/// Borrowed from an index by [`Index::read`].
#[derive(Clone, Copy, Debug)]
pub struct ReadView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn read(&self) -> ReadView<'_> {
        ReadView { index: self }
    }
}
