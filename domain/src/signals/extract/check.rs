//! Holds an answer against its question.
//!
//! Quotes stand in the event, targets are among the offers, numbers are in range, changes are of the
//! four classes and fit what they change. Whatever else an answer holds refuses it as a whole: half an
//! answer of a model that errs or obeys the event is not worth more than none.

use super::ExtractAnswer;
use super::ExtractFinding;
use super::ExtractQuestion;
use super::MAX_SIGNAL_REASONING_CHARS;
use super::MAX_SIGNALS;
use super::quote;
use crate::action::mutation::{Mutation, MutationError};
use crate::record::entity::SignalEffect;
use crate::record::path::RecordPath;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is wrong with an answer; the text goes back to the clerk on the stricter try.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExtractAnswerError {
    #[error("the answer is not the JSON object asked for: {0}")]
    Form(String),
    #[error("there are more than {MAX_SIGNALS} signals: keep the most telling ones")]
    TooMany,
    #[error("signal {0}: `quote` does not stand in the subject or text: copy it word for word")]
    InventedQuote(usize),
    #[error("signal {0}: `quote` is that of another signal: quote another part, or leave one out")]
    RepeatedQuote(usize),
    #[error("signal {0}: `target` is none of the candidates")]
    InventedTarget(usize),
    #[error("signal {0}: `scores` names a record that is none of the candidates")]
    InventedScore(usize),
    #[error("signal {at}: `scores` misses `{path}`: name every candidate, with 0 where it is not meant")]
    MissingScore { at: usize, path: RecordPath },
    #[error("signal {at}: `{field}` is {value}, which is not a number from 0 to 1")]
    Range { at: usize, field: String, value: f64 },
    #[error("signal {0}: `mutation` is there without the effect `mutation`, or the other way round")]
    Effect(usize),
    #[error("signal {at}: `mutation`: {source}")]
    Mutation { at: usize, source: MutationError },
    #[error("signal {0}: `mutation` has a field that does not belong there")]
    MutationField(usize),
    #[error("signal {at}: a {class} is nothing that its target could take")]
    Unfit { at: usize, class: &'static str },
    #[error("signal {0}: `parent_matter` is none of the candidates")]
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
    #[serde(deserialize_with = "there")]
    target: Option<String>,
    scores: BTreeMap<String, f64>,
    effect: String,
    mutation: Value,
    effect_confidence: f64,
    reasoning: String,
}

/// A field that may be null and not be missing.
fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

impl ExtractAnswer {
    /// Reads an answer and holds it against the question.
    ///
    /// # Errors
    /// [`ExtractAnswerError`] for anything outside the closed form.
    pub fn parse_answer(answer: &str, question: &ExtractQuestion) -> Result<Self, ExtractAnswerError> {
        let form = |e: serde_json::Error| ExtractAnswerError::Form(e.to_string());
        // Serde reads a struct from a list, too; the schema does not.
        let shape: Value = serde_json::from_str(answer.trim()).map_err(form)?;
        let listed = shape.get("signals").and_then(Value::as_array);
        if !listed.is_some_and(|all| all.iter().all(Value::is_object)) {
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
    let offered = |text: &str| question.offers.iter().map(|o| &o.path).find(|p| p.as_str() == text).cloned();
    let target = match raw.target {
        Some(text) => Some(offered(&text).ok_or(ExtractAnswerError::InventedTarget(at))?),
        None => None,
    };
    let mut scores = BTreeMap::new();
    for (name, value) in raw.scores {
        let path = offered(&name).ok_or(ExtractAnswerError::InventedScore(at))?;
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
    Ok(ExtractFinding { quote, target, scores, effect, mutation, effect_confidence, reasoning })
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
        _ => Err(ExtractAnswerError::Form("`effect` is none of `mutation`, `action`, `none`".to_owned())),
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
    // `read` passes over what a person may have added to a signal; here nobody may.
    if value.as_object().is_none_or(|fields| fields.len() != 2) {
        return Err(ExtractAnswerError::MutationField(at));
    }
    let fits = match target {
        Some(target) => mutation.is_applicable_to(target.kind()),
        None => question.offers.iter().any(|o| mutation.is_applicable_to(o.path.kind())),
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
