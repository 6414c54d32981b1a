//! Actions and their resolutions as the audit records tell them.
//!
//! [`list`] pages through them, [`chain`] checks their order. Nothing here changes a record.

pub(crate) mod action;
pub(crate) mod batches;
pub(crate) mod chain;
pub(crate) mod charts;
pub(crate) mod clusters;
pub(crate) mod list;
