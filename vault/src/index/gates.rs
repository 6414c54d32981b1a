//! The facts that gates need from the index.
//!
//! [`landing`] gathers all of them when a plan lands: what the notes of the matters allow, what each source changed in a
//! day, who is demoted. The gates themselves are evaluated in `steward_domain::gates`.

mod landing;
pub(crate) mod matter_policy;
pub(crate) mod source_budget;

use crate::index::Index;

/// The facts that the gates weigh.
///
/// Borrowed from an index by [`Index::gates`].
#[derive(Clone, Copy, Debug)]
pub struct GatesView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn gates(&self) -> GatesView<'_> {
        GatesView { index: self }
    }
}
