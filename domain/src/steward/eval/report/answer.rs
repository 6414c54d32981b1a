//! What a clerk answered to a labelled case.
//!
//! It is kept as it was given. Whether it was right is counted in the report.

use crate::action::mutation::Mutation;
use crate::record::entity::SignalEffect;
use crate::record::path::RecordPath;
use crate::signals::extract::ExtractAnswer;
use crate::steward::clerk::{Judgement, TokenUsage, Verdict};
use serde::{Deserialize, Serialize};

/// What a clerk answered to a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseAnswer {
    /// The id of the case.
    pub case: String,
    pub outcome: CaseOutcome,
    /// Of all tries.
    pub tokens: TokenUsage,
    /// From the question to the answer, of all tries, in seconds.
    pub seconds: f64,
    /// How often it was asked: a second time if the first answer was outside the form.
    pub tries: u32,
}

/// How the last try ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CaseOutcome {
    Decided {
        decision: Judgement,
        /// 0 to 1.
        confidence: f64,
    },
    Found {
        facts: Vec<FoundFact>,
    },
    /// No answer that fits the form.
    Unusable {
        reason: String,
    },
}

/// A fact that a clerk found in an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundFact {
    /// `None` if the clerk could not tell.
    pub target: Option<RecordPath>,
    pub effect: SignalEffect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
    /// The confidence in the effect, 0 to 1.
    pub confidence: f64,
}

impl From<&Verdict> for CaseOutcome {
    fn from(verdict: &Verdict) -> Self {
        Self::Decided { decision: verdict.decision, confidence: verdict.confidence }
    }
}

impl From<&ExtractAnswer> for CaseOutcome {
    fn from(answer: &ExtractAnswer) -> Self {
        let facts = answer.findings().iter().map(|finding| FoundFact {
            target: finding.target.clone(),
            effect: finding.effect,
            mutation: finding.mutation.clone(),
            confidence: finding.effect_confidence,
        });
        Self::Found { facts: facts.collect() }
    }
}
