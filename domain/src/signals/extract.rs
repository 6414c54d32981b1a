//! What a clerk is asked about a stream event and what it may answer.
//!
//! The event's words are a stranger's. They stand in the question as data; the answer is a closed
//! form whose targets are picked from the [`TargetOffer`]s that code made ([`candidates`]), whose quotes
//! must stand in the event word for word, and whose changes are of the four classes. [`ExtractAnswer::check`]
//! holds that before anything believes it, and [`ExtractAnswer::signals`] makes the signals. Nothing here
//! writes anything, and no text of an event ever becomes an instruction.

pub mod candidates;
mod check;
mod quote;
mod schema;
mod signals;
mod words;

pub use check::ExtractAnswerError;
pub use quote::LEAST_LETTERS;
pub use schema::answer_schema;
pub use words::{fold_text, split_words};

use crate::action::mutation::Mutation;
use crate::record::entity::SignalEffect;
use crate::record::path::RecordPath;
use crate::signals::stream::StreamEvent;
use crate::steward::clerk::ClerkMark;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most signals that one event may give.
pub const MAX_SIGNALS: usize = 5;
/// Longest part of an event's text that a clerk is shown, in characters; what comes after is not read.
pub const MAX_ASKED_CHARS: usize = 20_000;
/// Longest reasoning of one signal, in characters; an answer with a longer one is refused.
pub const MAX_SIGNAL_REASONING_CHARS: usize = 500;
/// Two targets whose scores lie no further apart cannot be told from each other.
pub const AMBIGUOUS_WITHIN: f64 = 0.05;

/// A record that an event may be about, as it is offered to a clerk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetOffer {
    pub path: RecordPath,
    pub name: String,
    /// The name of a task's matter.
    pub matter_name: Option<String>,
    /// How far the event speaks of it by its words alone ([`candidates`]), 0 to 1.
    pub score: f64,
}

/// One question to a clerk: what does this event say, and of which of these records?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtractQuestion {
    /// Whose word it is, as in `mail:billing@vendor.example`.
    pub source: String,
    pub author: Option<String>,
    pub subject: Option<String>,
    /// At most [`MAX_ASKED_CHARS`] characters.
    pub text: String,
    /// At most 5, the likeliest first.
    pub offers: Vec<TargetOffer>,
    /// What was wrong with the first answer; set on the stricter second try.
    pub complaint: Option<String>,
}

impl ExtractQuestion {
    /// Asks about an event.
    #[must_use]
    pub fn new(event: &StreamEvent, offers: Vec<TargetOffer>) -> Self {
        Self {
            source: event.pattern.clone(),
            author: event.author.clone(),
            subject: event.subject.clone(),
            text: event.text.chars().take(MAX_ASKED_CHARS).collect(),
            offers,
            complaint: None,
        }
    }

    fn find_offer(&self, path: &RecordPath) -> Option<&TargetOffer> {
        self.offers.iter().find(|o| &o.path == path)
    }
}

/// One fact that a clerk found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtractFinding {
    /// A slice of the event's subject or text, at most 200 characters.
    pub quote: String,
    /// `None` where the clerk could not tell.
    pub target: Option<RecordPath>,
    /// How sure it is of each record that was offered, 0 to 1.
    pub scores: BTreeMap<RecordPath, f64>,
    pub effect: SignalEffect,
    /// What it would change; there exactly where the effect is a mutation.
    pub mutation: Option<Mutation>,
    /// 0 to 1.
    pub effect_confidence: f64,
    /// In the clerk's own words. Untrusted.
    pub reasoning: String,
}

/// An answer, checked against its question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtractAnswer {
    findings: Vec<ExtractFinding>,
}

impl ExtractAnswer {
    /// The facts, at most [`MAX_SIGNALS`].
    #[must_use]
    pub fn findings(&self) -> &[ExtractFinding] {
        &self.findings
    }
}

/// What came of one call. Every way it can end is a value, not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtractOutcome {
    /// Words that hold against the question; [`ExtractAnswer::check`] reads them again wherever they are kept.
    Answered { text: String },
    /// An answer outside the closed form; one stricter try is left.
    BadAnswer { complaint: String },
    /// The provider said 429; seconds until it may be asked again, if it said.
    RateLimited { retry_after_seconds: Option<u64> },
    /// No answer: time-out, connection, status 5xx, over the size limit, refused key.
    /// `slow` where it took too long, which other calls may have caused.
    Failed { reason: String, slow: bool },
    /// No request left the process, so the call costs nothing.
    NotSent { reason: String },
}

/// One call's outcome and its marks.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtractReply {
    pub outcome: ExtractOutcome,
    pub clerk: ClerkMark,
}

#[cfg(test)]
mod tests;
