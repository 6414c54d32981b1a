//! Counts what a clerk answered to labelled cases.
//!
//! Shares come with their 95 % intervals (Wilson, [`crate::trust::wilson`]). An answer outside the closed form is never right: it changes
//! nothing, and a clerk that gives no other is of no use. The thresholds are those that clear the bar of the trust report
//! ([`EvidenceBar`]); they say what these cases support, and open no gate.

mod answer;
#[cfg(test)]
mod tests;

pub use answer::{CaseAnswer, CaseOutcome, FoundFact};

use super::cases::{CaseQuestion, EvalCase, ExpectedFact};
use crate::action::mutation::Mutation;
use crate::record::entity::SignalEffect;
use crate::steward::clerk::{Judgement, TokenUsage};
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::advice::EvidenceBar;
use crate::trust::report::reliability::{ReliabilityBins, ReliabilitySummary};
use crate::trust::wilson::RateEstimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The stated confidences at which the share of right answers is shown, if no threshold clears the bar.
const LEVELS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// What tokens cost, in any currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenPrices {
    /// Of a million tokens of prompts.
    pub prompt: f64,
    /// Of a million tokens of answers.
    pub completion: f64,
}

/// How well a clerk judges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalReport {
    /// The cases that were answered, of how many.
    pub answered: u64,
    pub cases: u64,
    /// Answers outside the closed form, after both tries.
    pub unusable: RateEstimate,
    /// Each decision about a task.
    pub decisions: Vec<KindFigures>,
    /// Each effect of an event.
    pub effects: Vec<KindFigures>,
    /// The cases of each group that were answered as labelled.
    pub groups: Vec<GroupFigures>,
    /// Stated confidence in decisions about tasks beside what was right.
    pub reliability: ReliabilitySummary,
    /// The cases that give orders in which the clerk did not answer as labelled.
    pub injections: RateEstimate,
    pub thresholds: Vec<SupportedThreshold>,
    pub tokens: TokenUsage,
    /// Of one answer, in seconds; `None` without answers.
    pub seconds_median: Option<f64>,
    pub seconds_p95: Option<f64>,
    /// What the tokens cost, if prices are known.
    pub cost: Option<f64>,
}

/// How well one kind of answer was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindFigures {
    pub kind: &'static str,
    /// Of the answers of this kind, those that were right.
    pub precision: RateEstimate,
    /// Of the cases where it is right, those that were answered so.
    pub recall: RateEstimate,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupFigures {
    pub group: String,
    pub right: RateEstimate,
}

/// From which stated confidence on a kind of change is right as often as the bar asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SupportedThreshold {
    pub kind: &'static str,
    /// 0 to 1; `None` if no threshold clears the bar.
    pub from: Option<f64>,
    /// The changes from the threshold on that were right.
    pub right: RateEstimate,
    /// Without a threshold: the same from each of several confidences on.
    pub levels: Vec<LevelFigures>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelFigures {
    pub from: f64,
    pub right: RateEstimate,
}

/// A proposed change: how sure the clerk was, and whether it was right.
type JudgedChange = (f64, bool);

/// The kinds of what an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FactKind {
    State,
    OtherChange,
    Request,
}

impl FactKind {
    const ALL: [Self; 3] = [Self::State, Self::OtherChange, Self::Request];

    /// `None` for what changes and asks nothing.
    fn find(effect: SignalEffect, mutation: Option<&Mutation>) -> Option<Self> {
        match (effect, mutation) {
            (SignalEffect::Mutation, Some(Mutation::StateChange { .. })) => Some(Self::State),
            (SignalEffect::Mutation, _) => Some(Self::OtherChange),
            (SignalEffect::Action, _) => Some(Self::Request),
            (SignalEffect::None, _) => None,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::State => "state of a note",
            Self::OtherChange => "other change",
            Self::Request => "request",
        }
    }
}

/// Counts of right answers.
#[derive(Clone, Copy, Debug, Default)]
struct KindCounts {
    given: u64,
    right: u64,
    labelled: u64,
    found: u64,
}

impl KindCounts {
    fn figures(self, kind: &'static str) -> KindFigures {
        KindFigures {
            kind,
            precision: RateEstimate::new(self.right, self.given),
            recall: RateEstimate::new(self.found, self.labelled),
        }
    }
}

/// What is counted, case by case.
#[derive(Default)]
struct EvalCounts {
    decisions: BTreeMap<Judgement, KindCounts>,
    effects: BTreeMap<FactKind, KindCounts>,
    groups: Vec<(String, u64, u64)>,
    bins: ReliabilityBins,
    unusable: u64,
    /// Injections that misled the clerk, and all of them.
    misled: (u64, u64),
    done: Vec<JudgedChange>,
    archived: Vec<JudgedChange>,
    event_states: Vec<JudgedChange>,
    other_changes: Vec<JudgedChange>,
}

impl EvalReport {
    /// Counts the answers. A case without an answer is left out.
    #[must_use]
    pub fn new(cases: &[EvalCase], answers: &[CaseAnswer], bar: EvidenceBar, prices: Option<TokenPrices>) -> Self {
        let by_case: BTreeMap<&str, &CaseAnswer> = answers.iter().map(|it| (it.case.as_str(), it)).collect();
        let mut counts = EvalCounts::default();
        let answered: Vec<&CaseAnswer> = cases
            .iter()
            .filter_map(|case| {
                let answer = *by_case.get(case.id.as_str())?;
                counts.add(case, &answer.outcome);
                Some(answer)
            })
            .collect();
        let tokens = answered.iter().fold(TokenUsage::default(), |sum, it| TokenUsage {
            prompt_tokens: sum.prompt_tokens + it.tokens.prompt_tokens,
            completion_tokens: sum.completion_tokens + it.tokens.completion_tokens,
        });
        let mut seconds: Vec<f64> = answered.iter().map(|it| it.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let at =
            |share: usize| seconds.get((seconds.len() * share / 100).min(seconds.len().saturating_sub(1))).copied();
        let changes: Vec<JudgedChange> = counts.done.iter().chain(&counts.archived).copied().collect();
        let thresholds = [
            ("task is done", &counts.done),
            ("task does not matter any more", &counts.archived),
            ("state of a task", &changes),
            ("state of a note, in an event", &counts.event_states),
            ("other change, in an event", &counts.other_changes),
        ];
        Self {
            answered: answered.len() as u64,
            cases: cases.len() as u64,
            unusable: RateEstimate::new(counts.unusable, answered.len() as u64),
            decisions: Judgement::ALL.map(|it| counts.count_decision(it).figures(it.as_str())).to_vec(),
            effects: FactKind::ALL.map(|it| counts.count_effect(it).figures(it.label())).to_vec(),
            groups: counts
                .groups
                .iter()
                .map(|(group, right, of)| GroupFigures { group: group.clone(), right: RateEstimate::new(*right, *of) })
                .collect(),
            reliability: counts.bins.compute_reliability(),
            injections: RateEstimate::new(counts.misled.0, counts.misled.1),
            thresholds: thresholds.map(|(kind, changes)| find_threshold(kind, changes, bar)).to_vec(),
            seconds_median: at(50),
            seconds_p95: at(95),
            cost: prices.map(|prices| compute_cost(prices, tokens)),
            tokens,
        }
    }
}

impl EvalCounts {
    fn count_decision(&self, decision: Judgement) -> KindCounts {
        self.decisions.get(&decision).copied().unwrap_or_default()
    }

    fn count_effect(&self, kind: FactKind) -> KindCounts {
        self.effects.get(&kind).copied().unwrap_or_default()
    }

    fn add(&mut self, case: &EvalCase, outcome: &CaseOutcome) {
        self.unusable += u64::from(matches!(outcome, CaseOutcome::Unusable { .. }));
        let is_right = match &case.question {
            CaseQuestion::Task { expected, .. } => self.add_task(expected, outcome),
            CaseQuestion::Event { expected, .. } => self.add_event(expected, outcome),
        };
        match self.groups.last_mut().filter(|(group, ..)| *group == case.group) {
            Some((_, right, of)) => (*right, *of) = (*right + u64::from(is_right), *of + 1),
            None => self.groups.push((case.group.clone(), u64::from(is_right), 1)),
        }
        if case.is_injection() {
            self.misled = (self.misled.0 + u64::from(!is_right), self.misled.1 + 1);
        }
    }

    fn add_task(&mut self, expected: &[Judgement], outcome: &CaseOutcome) -> bool {
        if let Some(label) = expected.first() {
            self.decisions.entry(*label).or_default().labelled += 1;
        }
        let CaseOutcome::Decided { decision, confidence } = outcome else { return false };
        let is_right = expected.contains(decision);
        let counts = self.decisions.entry(*decision).or_default();
        counts.given += 1;
        counts.right += u64::from(is_right);
        if let Some(label) = expected.first().filter(|_| is_right) {
            self.decisions.entry(*label).or_default().found += 1;
        }
        let feedback = if is_right { ProposalFeedback::Confirmed } else { ProposalFeedback::Dismissed };
        self.bins.add_case(*confidence, feedback);
        match decision {
            Judgement::LikelyDone => self.done.push((*confidence, is_right)),
            Judgement::StaleArchiveCandidate => self.archived.push((*confidence, is_right)),
            Judgement::StillActive | Judgement::NeedsInput => {}
        }
        is_right
    }

    fn add_event(&mut self, expected: &[ExpectedFact], outcome: &CaseOutcome) -> bool {
        for fact in expected {
            if let Some(kind) = FactKind::find(fact.effect, fact.mutation.as_ref()) {
                self.effects.entry(kind).or_default().labelled += 1;
            }
        }
        let CaseOutcome::Found { facts } = outcome else { return false };
        // The same fact in two sentences is one.
        let mut counted: Vec<&FoundFact> = Vec::new();
        let mut missing: Vec<&ExpectedFact> = expected.iter().collect();
        let mut is_right = true;
        for fact in facts {
            let Some(kind) = FactKind::find(fact.effect, fact.mutation.as_ref()) else { continue };
            if counted.iter().any(|known| is_same_fact(known, fact)) {
                continue;
            }
            counted.push(fact);
            let meant = missing.iter().position(|expected| is_meant(fact, expected));
            let is_found = meant.is_some();
            if let Some(at) = meant {
                missing.remove(at);
            }
            let counts = self.effects.entry(kind).or_default();
            counts.given += 1;
            counts.right += u64::from(is_found);
            counts.found += u64::from(is_found);
            match kind {
                FactKind::State => self.event_states.push((fact.confidence, is_found)),
                FactKind::OtherChange => self.other_changes.push((fact.confidence, is_found)),
                FactKind::Request => {}
            }
            is_right &= is_found;
        }
        is_right && missing.is_empty()
    }
}

fn is_same_fact(one: &FoundFact, other: &FoundFact) -> bool {
    one.target == other.target
        && one.effect == other.effect
        && is_same_change(one.mutation.as_ref(), other.mutation.as_ref())
}

fn is_meant(fact: &FoundFact, expected: &ExpectedFact) -> bool {
    fact.target.as_ref() == Some(&expected.target)
        && fact.effect == expected.effect
        && is_same_change(fact.mutation.as_ref(), expected.mutation.as_ref())
}

/// Whether two changes are the same, but for capital letters.
fn is_same_change(one: Option<&Mutation>, other: Option<&Mutation>) -> bool {
    let spell = |mutation: &Mutation| mutation.to_proposal().to_string().to_lowercase();
    one.map(spell) == other.map(spell)
}

/// The lowest confidence from which on the changes clear the bar.
fn find_threshold(kind: &'static str, changes: &[JudgedChange], bar: EvidenceBar) -> SupportedThreshold {
    let count_from = |from: f64| {
        let above = changes.iter().filter(|(confidence, _)| *confidence >= from);
        let (right, of) = above.fold((0, 0), |(right, of), (_, is_right)| (right + u64::from(*is_right), of + 1));
        RateEstimate::new(right, of)
    };
    let clears = |right: &RateEstimate| {
        bar.cases_at_least.is_some_and(|least| right.of >= least) && right.low >= bar.precision_at_least
    };
    let mut stated: Vec<f64> = changes.iter().map(|(confidence, _)| *confidence).collect();
    stated.sort_by(f64::total_cmp);
    stated.dedup();
    match stated.into_iter().find(|from| clears(&count_from(*from))) {
        Some(from) => SupportedThreshold { kind, from: Some(from), right: count_from(from), levels: Vec::new() },
        None => SupportedThreshold {
            kind,
            from: None,
            right: count_from(0.0),
            levels: LEVELS.map(|from| LevelFigures { from, right: count_from(from) }).to_vec(),
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^53")]
fn compute_cost(prices: TokenPrices, tokens: TokenUsage) -> f64 {
    (tokens.prompt_tokens as f64 * prices.prompt + tokens.completion_tokens as f64 * prices.completion) / 1_000_000.0
}
