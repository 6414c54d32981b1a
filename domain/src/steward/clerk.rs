//! The question to a clerk and its checked answer.
//!
//! A clerk sees `{source, ref, note}` of each signal and nothing source-specific. Its answer is a closed form.
//! [`Verdict::parse_answer`] checks it against the question before anything uses it. Text from a model must never name
//! a file, a field or a value that the code did not offer.

use crate::action::plan::ContentHash;
use crate::gates::mode::Ceiling;
use crate::record::entity::{RecordState, SignalEffect, SurfaceClass};
use crate::record::path::{RecordKind, RecordPath};
use crate::record::plain_text::to_one_line;
use crate::steward::guard::estimate_tokens;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The longest reasoning of an answer, in characters. An answer with a longer one is refused.
pub const MAX_REASONING_CHARS: usize = 2_000;
/// The most signals that one question carries (S3-22).
pub const MAX_EVIDENCE: usize = 50;
/// The longest description of a note that a clerk sees, in characters. The rest is cut.
pub const MAX_DESCRIPTION_CHARS: usize = 300;

/// What an escaped byte is longer than the byte itself: 6.
const ESCAPED_BYTES: usize = 6;

/// One signal, as the question carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalEvidence {
    pub source: String,
    #[serde(rename = "ref")]
    pub reference: RecordPath,
    /// At most 50 characters, verbatim from the source. Untrusted.
    pub note: String,
    pub created: DateTime<Utc>,
    pub effect: SignalEffect,
    pub proposed_state: Option<RecordState>,
    /// 0 to 1.
    pub target_confidence: f64,
    /// 0 to 1.
    pub effect_confidence: f64,
    /// How often this source was right, as its instinct counts.
    pub observations: u32,
    /// The ceiling a human set for this source.
    pub ceiling: Ceiling,
}

/// The task a question is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionSubject {
    pub task: RecordPath,
    pub task_name: String,
    pub matter: RecordPath,
    pub matter_name: String,
    pub state: RecordState,
    pub surface_class: SurfaceClass,
    pub due: Option<DateTime<Utc>>,
    /// The hash of the note's `description`, as [`shorten_description`] gives it. The text itself is read where the clerk is asked, so no history
    /// holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_hash: Option<ContentHash>,
    /// What was decided last about this note. The same evidence is the same question whatever that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<LastDecision>,
}

/// An earlier decision about a note. Its reasons are left out, so that no model is led by another one's words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastDecision {
    pub decision: Judgement,
    /// 0 to 1.
    pub confidence: f64,
    pub at: DateTime<Utc>,
}

/// What a clerk sees of a note's `description`: one line of at most [`MAX_DESCRIPTION_CHARS`] characters; `None` if nothing is left.
#[must_use]
pub fn shorten_description(text: &str) -> Option<String> {
    let line = to_one_line(text);
    let short: String = line.chars().take(MAX_DESCRIPTION_CHARS).collect();
    (!short.is_empty()).then_some(short)
}

/// The hash by which a question names a description.
#[must_use]
pub fn hash_description(shortened: &str) -> ContentHash {
    ContentHash::hash_bytes(shortened.as_bytes())
}

impl QuestionSubject {
    /// Whether the question is about a task or about the matter itself.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        if self.task == self.matter { RecordKind::Matter } else { RecordKind::Task }
    }
}

/// One question to a clerk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClerkQuestion {
    pub subject: QuestionSubject,
    pub evidence: Vec<SignalEvidence>,
    /// The error of the first answer. It is set on the stricter second try.
    pub complaint: Option<String>,
    /// The moment of the check, so that a clerk needs no clock.
    pub asked_at: DateTime<Utc>,
}

impl ClerkQuestion {
    /// Everything that makes it another question, as JSON: all but the moment at which it is asked, and what was decided last.
    #[must_use]
    pub fn evidence_bytes(&self) -> Vec<u8> {
        let timeless = Self { asked_at: DateTime::UNIX_EPOCH, ..self.without_last_decision() };
        // Texts, numbers and lists are written to memory, so nothing can fail.
        serde_json::to_vec(&timeless).unwrap_or_default()
    }

    /// The same question, if nothing had been decided before.
    #[must_use]
    pub fn without_last_decision(&self) -> Self {
        let subject = QuestionSubject { last_decision: None, ..self.subject.clone() };
        Self { subject, ..self.clone() }
    }

    /// The most tokens of the question in any prompt. Untrusted words count as if each byte were escaped there, as in
    /// `\\u003c`.
    #[must_use]
    pub fn estimate_tokens(&self) -> u64 {
        let untrusted: usize = self.evidence.iter().map(|evidence| evidence.note.len() + evidence.source.len()).sum();
        let names = self.subject.task_name.len() + self.subject.matter_name.len();
        // A character has at most four bytes.
        let description = self.subject.description_hash.as_ref().map_or(0, |_| MAX_DESCRIPTION_CHARS * 4);
        let complaint = self.complaint.as_ref().map_or(0, String::len);
        estimate_tokens(self.evidence_bytes().len() + ESCAPED_BYTES * (untrusted + names + complaint + description))
    }
}

/// A clerk's judgement of a task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Judgement {
    StillActive,
    LikelyDone,
    NeedsInput,
    StaleArchiveCandidate,
}

impl Judgement {
    /// Every judgement, in the order of the schema.
    pub const ALL: [Self; 4] = [Self::StillActive, Self::LikelyDone, Self::NeedsInput, Self::StaleArchiveCandidate];

    /// The spelling in records, schemas and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The state that the task would get, or `None` if nothing would change.
    #[must_use]
    pub fn proposed_state(self) -> Option<RecordState> {
        match self {
            Self::StillActive | Self::NeedsInput => None,
            Self::LikelyDone => Some(RecordState::Done),
            Self::StaleArchiveCandidate => Some(RecordState::Archived),
        }
    }
}

/// A clerk's answer, checked against its question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub decision: Judgement,
    /// 0 to 1.
    pub confidence: f64,
    pub reasoning: String,
    /// The refs of the cited signals. Each was part of the question.
    pub evidence: Vec<RecordPath>,
    /// How much each source contributed, 0 to 1, by source name.
    pub source_contributions: BTreeMap<String, f64>,
}

/// Why an answer is invalid. The text goes back to the clerk on the stricter try.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VerdictError {
    #[error("the answer is not the requested JSON object: {0}")]
    Form(String),
    #[error("`{field}` is {value}, which is not a number from 0 to 1")]
    Range { field: String, value: f64 },
    #[error("`evidence` names a signal that was not given")]
    InventedEvidence,
    #[error("`evidence` names a signal twice")]
    RepeatedEvidence,
    #[error("`source_contributions` names a source that was not given")]
    InventedSource,
    #[error("`source_contributions` lacks `{0}`: name every source, with 0 if it contributed nothing")]
    MissingSource(String),
    #[error("`{0}` proposes a change without any evidence")]
    NoEvidence(&'static str),
    #[error("`reasoning` is empty or longer than {MAX_REASONING_CHARS} characters")]
    Reasoning,
}

impl Verdict {
    /// Parses an answer and checks it against the question.
    ///
    /// # Errors
    /// [`VerdictError`] for anything outside the closed form: unknown fields, numbers out of
    /// range, evidence or sources that were not given, or a change without evidence.
    pub fn parse_answer(answer: &str, question: &ClerkQuestion) -> Result<Self, VerdictError> {
        let form = |e: serde_json::Error| VerdictError::Form(e.to_string());
        let verdict: Self = serde_json::from_str(answer.trim()).map_err(form)?;
        // Serde also reads a struct from a list and a word from `{"word": null}`. The schema forbids both.
        let shape: Value = serde_json::from_str(answer.trim()).map_err(form)?;
        if !shape.get("decision").is_some_and(Value::is_string) {
            return Err(VerdictError::Form("`decision` is not a string field of an object".to_owned()));
        }
        verdict.check_ranges()?;
        verdict.check_references(question)?;
        let length = verdict.reasoning.chars().count();
        if verdict.reasoning.trim().is_empty() || length > MAX_REASONING_CHARS {
            return Err(VerdictError::Reasoning);
        }
        if verdict.decision.proposed_state().is_some() && verdict.evidence.is_empty() {
            return Err(VerdictError::NoEvidence(verdict.decision.as_str()));
        }
        Ok(verdict)
    }

    fn check_ranges(&self) -> Result<(), VerdictError> {
        let contributions = self.source_contributions.iter().map(|(k, v)| (k.as_str(), *v));
        for (field, value) in contributions.chain([("confidence", self.confidence)]) {
            if !(0.0..=1.0).contains(&value) {
                return Err(VerdictError::Range { field: field.to_owned(), value });
            }
        }
        Ok(())
    }

    fn check_references(&self, question: &ClerkQuestion) -> Result<(), VerdictError> {
        for (i, reference) in self.evidence.iter().enumerate() {
            if !question.evidence.iter().any(|e| &e.reference == reference) {
                return Err(VerdictError::InventedEvidence);
            }
            if self.evidence[..i].contains(reference) {
                return Err(VerdictError::RepeatedEvidence);
            }
        }
        for source in self.source_contributions.keys() {
            if !question.evidence.iter().any(|e| &e.source == source) {
                return Err(VerdictError::InventedSource);
            }
        }
        // A missing source is not one that contributed nothing. Calibration would lower it for an error of form.
        let missing = question.evidence.iter().find(|e| !self.source_contributions.contains_key(&e.source));
        missing.map_or(Ok(()), |e| Err(VerdictError::MissingSource(e.source.clone())))
    }

    /// The verdict if no usable answer came: nothing changes, with confidence 0.3 (S3-25).
    #[must_use]
    pub fn fallback(reason: &str) -> Self {
        Self {
            decision: Judgement::StillActive,
            confidence: 0.3,
            reasoning: format!("fallback: {}", reason.chars().take(300).collect::<String>()),
            evidence: Vec::new(),
            source_contributions: BTreeMap::new(),
        }
    }
}

/// The JSON schema of an answer to this question. It is closed and lists the refs that were given.
///
/// It uses only what the strict mode of common servers accepts. Some servers refuse a whole schema with lengths of
/// texts, so [`Verdict::parse_answer`] checks those.
#[must_use]
pub fn answer_schema(question: &ClerkQuestion) -> Value {
    let mut refs: Vec<&str> = question.evidence.iter().map(|e| e.reference.as_str()).collect();
    refs.sort_unstable();
    refs.dedup();
    let mut sources: Vec<&str> = question.evidence.iter().map(|e| e.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    let contributions: serde_json::Map<String, Value> =
        sources.iter().map(|s| ((*s).to_owned(), json!({"type": "number", "minimum": 0, "maximum": 1}))).collect();
    let item = if refs.is_empty() { json!({"type": "string"}) } else { json!({"type": "string", "enum": refs}) };
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["decision", "confidence", "reasoning", "evidence", "source_contributions"],
        "properties": {
            "decision": {"type": "string", "enum": Judgement::ALL.map(Judgement::as_str)},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "reasoning": {"type": "string"},
            "evidence": {"type": "array", "items": item, "maxItems": refs.len()},
            "source_contributions": {
                "type": "object", "additionalProperties": false, "properties": contributions, "required": sources,
            },
        },
    })
}

/// The tokens that a provider reports as used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// The clerk that answered, for the audit record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClerkMark {
    pub provider: String,
    pub model: String,
    /// The first 16 hex digits of the SHA-256 of the server's address, because an address may name an account.
    /// It is empty without a server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The SHA-256 of the prompt that was sent, in hex.
    pub prompt_sha256: String,
    pub tokens: TokenUsage,
    /// The verdict is a fallback, because the clerk gave no usable answer.
    pub fallback: bool,
    /// The answer was given to the same evidence before. No clerk was asked, and no token was used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// A verdict and the clerk that gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttributedVerdict {
    pub verdict: Verdict,
    pub clerk: ClerkMark,
}

impl AttributedVerdict {
    /// The same verdict for the same evidence, marked as cached. `None` if it is invalid for the question.
    #[must_use]
    pub fn recall_for(self, question: &ClerkQuestion) -> Option<Self> {
        let answer = serde_json::to_string(&self.verdict).ok()?;
        let verdict = Verdict::parse_answer(&answer, question).ok()?;
        Some(Self { verdict, clerk: ClerkMark { tokens: TokenUsage::default(), cached: true, ..self.clerk } })
    }
}

/// The outcome of one call. Every possible end is a value and not an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClerkCallOutcome {
    /// An answer that is valid for its question.
    Answered { verdict: Verdict },
    /// An answer outside the closed form. One stricter try is left.
    BadAnswer { complaint: String },
    /// The provider answered 429, perhaps with the seconds to wait.
    RateLimited { retry_after_seconds: Option<u64> },
    /// No answer came: time-out, connection, status 5xx, over the size limit, refused key.
    Failed { reason: String },
    /// No request left the process, so the call costs nothing.
    NotSent { reason: String },
}

/// The outcome of one call and the clerk that was called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClerkReply {
    pub outcome: ClerkCallOutcome,
    pub clerk: ClerkMark,
}

#[cfg(test)]
mod tests;
