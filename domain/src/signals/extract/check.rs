//! Checks an extraction answer against its question.
//!
//! Quotes must occur in the event, targets must be among the offers, and numbers must be in range. Changes must be of
//! the four classes and applicable to their target. Any error refuses the whole answer, because a model that errs or
//! obeys the event cannot be trusted with the rest.

use super::ExtractAnswer;
use super::ExtractFinding;
use super::ExtractQuestion;
use super::MAX_SIGNAL_REASONING_CHARS;
use super::MAX_SIGNALS;
use super::TargetOffer;
use super::quote;
use crate::action::mutation::{Mutation, MutationError};
use crate::record::entity::SignalEffect;
use crate::record::path::{RecordKind, RecordPath};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why an answer is invalid. The text goes back to the clerk on the stricter try.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExtractAnswerError {
    #[error("the answer is not the requested JSON object: {0}")]
    Form(String),
    #[error("there are more than {MAX_SIGNALS} signals: keep the most important ones")]
    TooMany,
    #[error("signal {0}: `quote` does not occur in the subject or text: copy it word for word")]
    InventedQuote(usize),
    #[error("signal {0}: another signal has the same `quote`: quote another part, or leave one out")]
    RepeatedQuote(usize),
    #[error("signal {0}: `target` is not one of the candidates")]
    InventedTarget(usize),
    #[error("signal {0}: `scores` names a record that is not one of the candidates")]
    InventedScore(usize),
    #[error("signal {at}: `scores` lacks `{path}`: name every candidate, with 0 if it is not meant")]
    MissingScore { at: usize, path: RecordPath },
    #[error("signal {at}: `{field}` is {value}, which is not a number from 0 to 1")]
    Range { at: usize, field: String, value: f64 },
    #[error("signal {0}: `mutation` must be set exactly if `effect` is `mutation`")]
    Effect(usize),
    #[error("signal {at}: `mutation`: {source}")]
    Mutation { at: usize, source: MutationError },
    #[error("signal {0}: `mutation` has an unknown field")]
    MutationField(usize),
    #[error("signal {at}: a {class} is not possible for its target")]
    Unfit { at: usize, class: &'static str },
    #[error("signal {0}: `parent_matter` is not one of the candidates")]
    InventedMatter(usize),
    #[error("signal {0}: `reasoning` is empty or longer than {MAX_SIGNAL_REASONING_CHARS} characters")]
    Reasoning(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExtractAnswer {
    signals: Vec<RawExtractFinding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExtractFinding {
    quote: String,
    #[serde(deserialize_with = "require_field")]
    target: Option<String>,
    scores: BTreeMap<String, f64>,
    effect: String,
    mutation: Value,
    effect_confidence: f64,
    reasoning: String,
}

/// Reads a field that may be null but must not be missing.
fn require_field<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

impl ExtractAnswer {
    /// Parses an answer and checks it against the question.
    ///
    /// # Errors
    /// [`ExtractAnswerError`] for anything outside the closed form.
    pub fn parse_answer(answer: &str, question: &ExtractQuestion) -> Result<Self, ExtractAnswerError> {
        let form = |e: serde_json::Error| ExtractAnswerError::Form(e.to_string());
        // Serde also reads a struct from a list. The schema forbids that.
        let shape: Value = serde_json::from_str(answer.trim()).map_err(form)?;
        let signals = shape.get("signals").and_then(Value::as_array);
        if !signals.is_some_and(|all| all.iter().all(Value::is_object)) {
            return Err(ExtractAnswerError::Form("`signals` is not a list of objects".to_owned()));
        }
        let raw: RawExtractAnswer = serde_json::from_str(answer.trim()).map_err(form)?;
        if raw.signals.len() > MAX_SIGNALS {
            return Err(ExtractAnswerError::TooMany);
        }
        let mut findings: Vec<ExtractFinding> = Vec::new();
        for (at, raw) in raw.signals.into_iter().enumerate() {
            let finding = read_finding(at + 1, raw, question)?;
            if findings.iter().any(|f| f.quote == finding.quote) {
                return Err(ExtractAnswerError::RepeatedQuote(at + 1));
            }
            findings.push(finding);
        }
        Ok(Self { findings })
    }
}

fn read_finding(
    at: usize,
    raw: RawExtractFinding,
    question: &ExtractQuestion,
) -> Result<ExtractFinding, ExtractAnswerError> {
    let subject = question.subject.as_deref().unwrap_or_default();
    let quote = quote::find_quote(&question.text, &raw.quote).or_else(|| quote::find_quote(subject, &raw.quote));
    let quote = quote.ok_or(ExtractAnswerError::InventedQuote(at))?.to_owned();
    let find_offered = |text: &str| question.offers.iter().map(|o| &o.path).find(|p| p.as_str() == text).cloned();
    let target = match raw.target {
        Some(text) => Some(find_offered(&text).ok_or(ExtractAnswerError::InventedTarget(at))?),
        None => None,
    };
    let mut scores = BTreeMap::new();
    for (name, value) in raw.scores {
        let path = find_offered(&name).ok_or(ExtractAnswerError::InventedScore(at))?;
        check_range(at, &name, value)?;
        scores.insert(path, value);
    }
    if let Some(missing) = question.offers.iter().find(|o| !scores.contains_key(&o.path)) {
        return Err(ExtractAnswerError::MissingScore { at, path: missing.path.clone() });
    }
    check_range(at, "effect_confidence", raw.effect_confidence)?;
    let effect = parse_effect(&raw.effect)?;
    let mutation = read_mutation(at, &raw.mutation, target.as_ref(), question)?;
    if (effect == SignalEffect::Mutation) != mutation.is_some() {
        return Err(ExtractAnswerError::Effect(at));
    }
    let length = raw.reasoning.chars().count();
    if raw.reasoning.trim().is_empty() || length > MAX_SIGNAL_REASONING_CHARS {
        return Err(ExtractAnswerError::Reasoning(at));
    }
    let (effect_confidence, reasoning) = (raw.effect_confidence, raw.reasoning);
    let score = |offer: &TargetOffer| scores.get(&offer.path).copied().unwrap_or(0.0);
    let likeliest =
        || question.offers.iter().max_by(|a, b| score(a).total_cmp(&score(b)).then_with(|| b.path.cmp(&a.path)));
    let about = target.as_ref().map_or_else(likeliest, |target| question.find_offer(target));
    let target_kind = about.map_or(RecordKind::Task, |offer| offer.kind);
    Ok(ExtractFinding { quote, target, target_kind, scores, effect, mutation, effect_confidence, reasoning })
}

fn check_range(at: usize, field: &str, value: f64) -> Result<(), ExtractAnswerError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(ExtractAnswerError::Range { at, field: field.to_owned(), value })
}

fn parse_effect(word: &str) -> Result<SignalEffect, ExtractAnswerError> {
    match word {
        "mutation" => Ok(SignalEffect::Mutation),
        "action" => Ok(SignalEffect::Action),
        "none" => Ok(SignalEffect::None),
        _ => Err(ExtractAnswerError::Form("`effect` is not `mutation`, `action` or `none`".to_owned())),
    }
}

fn read_mutation(
    at: usize,
    value: &Value,
    target: Option<&RecordPath>,
    question: &ExtractQuestion,
) -> Result<Option<Mutation>, ExtractAnswerError> {
    if value.is_null() {
        return Ok(None);
    }
    let mutation = Mutation::from_proposal(value).map_err(|source| ExtractAnswerError::Mutation { at, source })?;
    // `from_proposal` ignores fields that a person added to a signal. An answer must have none.
    if value.as_object().is_none_or(|fields| fields.len() != 2) {
        return Err(ExtractAnswerError::MutationField(at));
    }
    let fits = match target {
        Some(target) => question.find_offer(target).is_some_and(|o| mutation.is_applicable_to(o.kind)),
        None => question.offers.iter().any(|o| mutation.is_applicable_to(o.kind)),
    };
    if !fits {
        return Err(ExtractAnswerError::Unfit { at, class: mutation.class().as_str() });
    }
    match &mutation {
        Mutation::ParentMatter { to } if question.find_offer(to).is_none() => {
            Err(ExtractAnswerError::InventedMatter(at))
        }
        Mutation::ParentMatter { .. }
        | Mutation::StateChange { .. }
        | Mutation::ContextEdit { .. }
        | Mutation::Related { .. } => Ok(Some(mutation)),
    }
}
