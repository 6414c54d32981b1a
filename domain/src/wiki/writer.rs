//! The writer: a model that makes pages of a source by calling tools.
//!
//! Nothing that it says reaches a page but through [`draft`], which finds every quote in the source and judges every change by
//! the rules. [`prompt`] is what it receives, [`transcript`] what it said so far and what comes next. Nothing here sends anything
//! or opens a file.

pub mod budget;
mod content;
mod dispute;
pub mod draft;
mod patch;
pub mod prompt;
pub mod refusal;
pub mod related;
mod tools;
pub mod transcript;
pub mod windows;

pub use tools::list_tools;
