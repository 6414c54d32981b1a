//! The offline clerk: weighs the proposals that signals already carry, by fixed rules.
//!
//! It reads no note, and says in its reasoning that no model was asked. If the proposals agree, it repeats them with
//! their own confidence. If they contradict each other, or the newest signal asks something of the principal, it asks
//! for input. The same question always gets the same answer. It must not be cleverer than that, because the gates of
//! `decide` come after it. It reads raw events by the patterns of `extract`.

mod extract;

use super::sha256_hex;
use std::collections::BTreeMap;
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::{ExtractAnswer, ExtractOutcome, ExtractQuestion, ExtractReply};
use steward_domain::steward::clerk::{
    ClerkCallOutcome, ClerkMark, ClerkQuestion, ClerkReply, Judgement, SignalEvidence, Verdict,
};
use steward_domain::steward::guard::Reservation;

/// The name of this clerk among the providers.
pub const PROVIDER: &str = "rules";
/// The version of its rules, recorded in the place of a model.
pub const MODEL: &str = "proposals-1";

/// The version of its patterns for events, recorded in the place of a model.
pub const PATTERNS: &str = "patterns-1";

/// Judges by fixed rules; holds no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulesClerk;

impl RulesClerk {
    /// Judges a question. Always answers.
    #[must_use]
    pub fn ask(&self, _reservation: &Reservation, question: &ClerkQuestion) -> ClerkReply {
        ClerkReply {
            outcome: ClerkCallOutcome::Answered { verdict: judge_by_rules(question) },
            clerk: build_mark(MODEL, &self.render_prompt(question)),
        }
    }

    /// Reads an event by its patterns. Always answers.
    #[must_use]
    pub fn extract_signals(&self, _reservation: &Reservation, question: &ExtractQuestion) -> ExtractReply {
        let text = read_by_rules(question);
        let outcome = match ExtractAnswer::parse_answer(&text, question) {
            Ok(_) => ExtractOutcome::Answered { text },
            Err(e) => ExtractOutcome::BadAnswer { complaint: e.to_string() },
        };
        ExtractReply { outcome, clerk: build_mark(PATTERNS, &self.render_extract_prompt(question)) }
    }

    /// The bytes that take the place of a prompt.
    pub(super) fn render_prompt(&self, question: &ClerkQuestion) -> Vec<u8> {
        question.evidence_bytes()
    }

    /// The bytes that take the place of a prompt about an event.
    pub(super) fn render_extract_prompt(&self, question: &ExtractQuestion) -> Vec<u8> {
        serde_json::to_vec(question).unwrap_or_default()
    }
}

/// What the patterns find in an event, as the text of an answer. Nobody is asked.
pub(in crate::steward) fn read_by_rules(question: &ExtractQuestion) -> String {
    extract::render_answer(question)
}

pub(super) fn build_mark(model: &str, prompt: &[u8]) -> ClerkMark {
    ClerkMark {
        provider: PROVIDER.to_owned(),
        model: model.to_owned(),
        prompt_sha256: sha256_hex(prompt),
        ..ClerkMark::default()
    }
}

/// What the rules say about a task. Nobody is asked.
pub(in crate::steward) fn judge_by_rules(question: &ClerkQuestion) -> Verdict {
    // Of two signals with the same time, the one that asks the principal counts as the newer.
    let newest = question.evidence.iter().max_by_key(|e| (e.created, e.effect == SignalEffect::Action));
    let Some(newest) = newest else {
        return build_verdict(Judgement::StillActive, 1.0, &[], "there is no signal");
    };
    let proposals: Vec<(&SignalEvidence, RecordState)> =
        question.evidence.iter().filter_map(|e| Some((e, usable_proposal(e)?))).collect();
    let proposing: Vec<&SignalEvidence> = proposals.iter().map(|(e, _)| *e).collect();

    let mut verdict = if newest.effect == SignalEffect::Action {
        build_verdict(
            Judgement::NeedsInput,
            signal_strength(newest),
            &[newest],
            "the newest signal asks something of you",
        )
    } else if let Some((_, state)) = proposals.first() {
        if proposals.iter().any(|(_, other)| other != state) {
            let why = format!("the signals contradict each other: {}", describe_proposals(&proposals));
            build_verdict(Judgement::NeedsInput, signal_strength(newest), &proposing, &why)
        } else {
            let why = format!("{}, and none disagrees", describe_proposals(&proposals));
            build_verdict(judgement_for(*state), max_strength(&proposing), &proposing, &why)
        }
    } else {
        build_verdict(Judgement::StillActive, signal_strength(newest), &[], "no signal proposes a change of state")
    };
    verdict.source_contributions = collect_contributions(&question.evidence);
    verdict
}

fn build_verdict(decision: Judgement, confidence: f64, evidence: &[&SignalEvidence], why: &str) -> Verdict {
    let mut references: Vec<RecordPath> = Vec::new();
    for reference in evidence.iter().map(|e| &e.reference) {
        if !references.contains(reference) {
            references.push(reference.clone());
        }
    }
    Verdict {
        decision,
        confidence,
        reasoning: format!("Fixed rules, no model was asked: {why}."),
        evidence: references,
        source_contributions: BTreeMap::new(),
    }
}

fn usable_proposal(evidence: &SignalEvidence) -> Option<RecordState> {
    if evidence.effect == SignalEffect::Mutation { evidence.proposed_state } else { None }
}

fn judgement_for(state: RecordState) -> Judgement {
    match state {
        RecordState::Open => Judgement::StillActive,
        RecordState::Done => Judgement::LikelyDone,
        RecordState::Archived => Judgement::StaleArchiveCandidate,
    }
}

/// How certain one signal is of both its target and its effect, 0 to 1.
fn signal_strength(evidence: &SignalEvidence) -> f64 {
    clamp_confidence(evidence.target_confidence).min(clamp_confidence(evidence.effect_confidence))
}

fn max_strength(evidence: &[&SignalEvidence]) -> f64 {
    evidence.iter().map(|e| signal_strength(e)).fold(0.0, f64::max)
}

fn collect_contributions(evidence: &[SignalEvidence]) -> BTreeMap<String, f64> {
    let mut by_source = BTreeMap::new();
    for signal in evidence {
        let highest: &mut f64 = by_source.entry(signal.source.clone()).or_insert(0.0);
        *highest = highest.max(clamp_confidence(signal.effect_confidence));
    }
    by_source
}

/// Limits a confidence to 0 to 1. NaN counts as 0.
fn clamp_confidence(confidence: f64) -> f64 {
    if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) }
}

/// `2 signals propose done, 1 proposes open`
fn describe_proposals(proposals: &[(&SignalEvidence, RecordState)]) -> String {
    let counted = [RecordState::Done, RecordState::Archived, RecordState::Open].map(|state| {
        let count = proposals.iter().filter(|(_, s)| *s == state).count();
        match count {
            0 => None,
            1 => Some(format!("1 signal proposes {}", state.as_str())),
            _ => Some(format!("{count} signals propose {}", state.as_str())),
        }
    });
    counted.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
