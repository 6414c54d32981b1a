//! The stewards' cursors: what they have seen, and which task or source comes next.
//!
//! [`observe`] is one check of one matter. A cursor moves only when the result of the check is safe on disk.

pub(crate) mod clerk_answers;
pub(crate) mod lease;
pub(crate) mod news;
pub(crate) mod observe;
pub(crate) mod snoozes;
pub(crate) mod state;
pub(crate) mod task_check;
pub(crate) mod timestamps;
pub(crate) mod turns;
pub(crate) mod unfinished;
pub(crate) mod wake;

use crate::index::Index;

/// What the stewards have seen, and what comes next.
///
/// Borrowed from an index by [`Index::cursors`].
#[derive(Clone, Copy, Debug)]
pub struct CursorsView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn cursors(&self) -> CursorsView<'_> {
        CursorsView { index: self }
    }
}
