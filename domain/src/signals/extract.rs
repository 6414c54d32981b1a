//! The extraction: the question to a clerk about a stream event, and its checked answer.
//!
//! The event's words are untrusted and are passed as data. The answer is a closed form. Its targets come from the
//! [`TargetOffer`]s that the code made ([`candidates`]), its quotes must occur verbatim in the event, and its
//! changes must be of the four classes. [`ExtractAnswer::parse_answer`] checks that before anything uses the answer,
//! and [`ExtractAnswer::to_signals`] makes the signals. Nothing here writes a file. No text of an event may become
//! an instruction.

pub mod candidates;
mod check;
mod quote;
mod schema;
mod signals;
mod words;

pub use check::ExtractAnswerError;
pub use quote::MIN_QUOTE_LETTERS;
pub use schema::answer_schema;
pub use words::{fold_text, split_words};

use crate::action::mutation::Mutation;
use crate::record::entity::SignalEffect;
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::stream::StreamEvent;
use crate::steward::clerk::ClerkMark;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most signals that one event may give.
pub const MAX_SIGNALS: usize = 5;
/// The longest part of an event's text that a clerk sees, in characters. The rest is not read.
pub const MAX_QUESTION_CHARS: usize = 20_000;
/// The longest reasoning of one signal, in characters. An answer with a longer one is refused.
pub const MAX_SIGNAL_REASONING_CHARS: usize = 500;
/// If the scores of two targets differ by no more than this, the target is ambiguous.
pub const AMBIGUOUS_WITHIN: f64 = 0.05;

/// A record that an event may be about, as a clerk is offered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetOffer {
    pub path: RecordPath,
    pub kind: RecordKind,
    pub name: String,
    /// The name of a task's matter.
    pub matter_name: Option<String>,
    /// How well the words of the event match the record ([`candidates`]), 0 to 1.
    pub score: f64,
}

/// One question to a clerk: which facts does this event state, and about which of these records?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtractQuestion {
    /// The pattern of the source, as in `mail:billing@vendor.example`.
    pub source: String,
    pub author: Option<String>,
    pub subject: Option<String>,
    /// At most [`MAX_QUESTION_CHARS`] characters.
    pub text: String,
    /// The offered targets, the likeliest first. There are at most 5.
    pub offers: Vec<TargetOffer>,
    /// The error of the first answer. It is set on the stricter second try.
    pub complaint: Option<String>,
}

impl ExtractQuestion {
    /// Builds the question about an event.
    #[must_use]
    pub fn new(event: &StreamEvent, offers: Vec<TargetOffer>) -> Self {
        Self {
            source: event.pattern.clone(),
            author: event.author.clone(),
            subject: event.subject.clone(),
            text: event.text.chars().take(MAX_QUESTION_CHARS).collect(),
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
    /// `None` if the clerk could not decide.
    pub target: Option<RecordPath>,
    /// The kind of the target or, without one, of the likeliest record.
    pub target_kind: RecordKind,
    /// How sure the clerk is of each offered record, 0 to 1.
    pub scores: BTreeMap<RecordPath, f64>,
    pub effect: SignalEffect,
    /// The proposed change. It is set exactly if the effect is a mutation.
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

/// The outcome of one call. Every possible end is a value and not an error.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtractOutcome {
    /// An answer that is valid for the question. [`ExtractAnswer::parse_answer`] checks it again wherever it is stored.
    Answered { text: String },
    /// An answer outside the closed form. One stricter try is left.
    BadAnswer { complaint: String },
    /// The provider answered 429, perhaps with the seconds to wait.
    RateLimited { retry_after_seconds: Option<u64> },
    /// No answer came: time-out, connection, status 5xx, over the size limit, refused key.
    /// `slow` is set if the call took too long, which other calls may have caused.
    Failed { reason: String, slow: bool },
    /// No request left the process, so the call costs nothing.
    NotSent { reason: String },
}

/// The outcome of one call and the clerk that was called.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtractReply {
    pub outcome: ExtractOutcome,
    pub clerk: ClerkMark,
}

#[cfg(test)]
mod tests;
