//! The steward of one matter as a workflow.
//!
//! [`tick`] checks one matter. [`evaluate`] judges one of its tasks: reserve, ask, settle, decide, apply. [`eval`] measures
//! the clerk, and [`run_details`] shows a tick in the Temporal UI. None of them sees a clock or a file but through an activity.

pub(crate) mod eval;
pub(crate) mod evaluate;
mod run_details;
pub(crate) mod tick;
