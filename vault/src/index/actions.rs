//! Actions and their resolutions, read from the audit records.
//!
//! [`list`] pages through them, and [`chain`] verifies their order. Nothing here changes a record.

pub(crate) mod action;
pub(crate) mod batches;
pub(crate) mod chain;
pub(crate) mod charts;
pub(crate) mod clusters;
pub(crate) mod list;
