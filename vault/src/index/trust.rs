//! The history of sources and classes, read from the audit records.
//!
//! [`cases`] are proposals with their outcome. [`demotions`] are sources and classes that were undone too often. The
//! folds themselves are in `steward_domain::trust`.

pub(crate) mod cases;
pub(crate) mod demotions;
pub(crate) mod drills;
pub(crate) mod numbers;
pub(crate) mod sources;

use crate::index::Index;

/// The history of sources and classes.
///
/// Borrowed from an index by [`Index::trust`].
#[derive(Clone, Copy, Debug)]
pub struct TrustView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn trust(&self) -> TrustView<'_> {
        TrustView { index: self }
    }
}
