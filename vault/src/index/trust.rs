//! What the audit records say about sources.
//!
//! [`cases`] are proposals with their outcome, [`demotions`] are classes that were undone too often. The folds themselves
//! live in `steward_domain::trust`.

pub(crate) mod cases;
pub(crate) mod demotions;
pub(crate) mod drills;
pub(crate) mod sources;
