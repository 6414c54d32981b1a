//! Makes pages of a source by fixed rules, without a model. Nothing is understood: every statement is a sentence of the
//! source, with itself as the quote.
//!
//! The same source, wiki and moment give the same bytes. It finds no contradiction, and says so on every page.

pub mod rules;
mod sections;
mod terms;

pub use terms::WordCounts;
pub(super) use terms::split_words;

/// The first line of everything that is made here.
pub const EXTRACT_LINE: &str = "An extract by fixed rules; nothing here was understood.";
