//! Actions and their resolutions, read from the audit records.
//!
//! [`list`] pages through them, and [`chain`] verifies their order. Nothing here changes a record.

pub(crate) mod action;
pub(crate) mod batches;
pub(crate) mod chain;
pub(crate) mod charts;
pub(crate) mod clusters;
pub(crate) mod list;
pub(crate) mod owed_deliveries;
pub(crate) mod waiting;

use crate::index::Index;

/// The audit records: actions, their resolutions, what is owed to the tracker.
///
/// Borrowed from an index by [`Index::actions`].
#[derive(Clone, Copy, Debug)]
pub struct ActionsView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn actions(&self) -> ActionsView<'_> {
        ActionsView { index: self }
    }
}
