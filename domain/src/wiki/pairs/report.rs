//! What a sample of pairs came to: the share that does not contradict, and the contradictions.
//!
//! It is kept, and nothing of the wiki is changed by it.

use crate::steward::clerk::TokenUsage;
use crate::trust::wilson::RateEstimate;
use crate::wiki::metrics::{MetricState, WikiMetric};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Two claims that contradict each other without a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradiction {
    /// As in `plot-12#c6107d23f`.
    pub first: String,
    pub second: String,
    /// The files of their pages.
    pub files: [String; 2],
    /// What is different. The words of a verifier are untrusted.
    pub reason: String,
}

/// What a sample of pairs came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsistencyReport {
    /// 8 hex digits.
    pub id: String,
    /// The name of the wiki.
    pub wiki: String,
    pub at: DateTime<Utc>,
    /// The person's name, as they gave it.
    pub by: String,
    /// The verifier, as in `openai/gpt-4.1`.
    pub model: String,
    /// The pairs of the sample, and those of them that do not contradict each other.
    pub pairs: u64,
    pub consistent: u64,
    pub contradictions: Vec<Contradiction>,
    pub tokens: TokenUsage,
}

impl ConsistencyReport {
    /// The share of the pairs that do not contradict each other.
    #[must_use]
    pub fn consistency(&self) -> RateEstimate {
        RateEstimate::new(self.consistent, self.pairs)
    }

    /// How the wiki stands by the share, whatever its interval.
    #[must_use]
    pub fn state(&self) -> MetricState {
        WikiMetric::Consistency.judge(&self.consistency())
    }
}
