//! The steward of a matter: its checks, its questions to a clerk, and its decisions.
//!
//! [`tick`] decides which tasks are due. [`clerk`] holds the question and its checked answer. [`guard`] decides whether
//! a clerk may be called now. [`mod@decide`] turns a checked answer into a plan. [`timestamps`] writes the last check
//! into the task's file. [`conversation`] is what a model with tools receives. [`eval`] counts how well a clerk
//! judges labelled cases.

pub mod clerk;
pub mod conversation;
pub mod decide;
pub mod eval;
pub mod guard;
pub mod tick;
pub mod timestamps;
