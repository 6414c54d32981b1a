//! Measures how true the pages of a wiki are to their quotes, by a sample of their claims.
//!
//! A quote that does not stand in its source fails by code. The rest is asked of the verifier, as it is asked about a run. The sample
//! takes as many claims of each topic as there are, one after the other, so that a large topic hides no small one. It is a report:
//! nothing of the wiki is changed.

use super::metrics::{MetricState, WikiMetric};
use super::verifier::{ClaimCheck, ClaimVerdict, Support};
use crate::action::plan::ContentHash;
use crate::steward::clerk::TokenUsage;
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvalMethod {
    /// How many claims their quotes carry.
    Fidelity,
    /// How many pairs of claims do not contradict each other.
    Consistency,
    /// What is wrong with pages, or missing.
    Review,
    /// How alike the answers to gold queries are. No verifier is asked.
    Gold,
    /// Which planted faults the verifier finds.
    #[default]
    Planted,
}

impl EvalMethod {
    #[must_use]
    pub fn is_planted(&self) -> bool {
        *self == Self::Planted
    }
}

/// A claim that the sample found not to be carried by its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedClaim {
    /// As in `plot-12#c6107d23f`.
    pub claim: String,
    /// The file of its page.
    pub file: String,
    /// Why. The words of a verifier are untrusted.
    pub reason: String,
}

/// What a sample came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FidelityReport {
    /// 8 hex digits.
    pub id: String,
    /// The name of the wiki.
    pub wiki: String,
    pub at: DateTime<Utc>,
    /// The person's name, as they gave it.
    pub by: String,
    /// The verifier, as in `openai/gpt-4.1`; empty if no quote was left to ask about.
    pub model: String,
    /// The claims of the sample, and those of them that their quotes carry.
    pub claims: u64,
    pub supported: u64,
    pub refused: Vec<RefusedClaim>,
    pub tokens: TokenUsage,
}

impl FidelityReport {
    /// The share of the claims that their quotes carry.
    #[must_use]
    pub fn fidelity(&self) -> RateEstimate {
        RateEstimate::new(self.supported, self.claims)
    }

    /// How the wiki stands by the share, whatever its interval.
    #[must_use]
    pub fn state(&self) -> MetricState {
        WikiMetric::Fidelity.judge(&self.fidelity())
    }
}

/// Takes at most so many claims, each with the topic of its page: one of each topic after the other. The same claims and seed give
/// the same sample.
#[must_use]
pub fn sample_claims(checks: Vec<(String, ClaimCheck)>, claims: usize, seed: &str) -> Vec<ClaimCheck> {
    let order = |text: &str| ContentHash::hash_bytes(format!("{seed}\0{text}").as_bytes());
    let mut topics: BTreeMap<String, Vec<ClaimCheck>> = BTreeMap::new();
    for (topic, check) in checks {
        topics.entry(topic).or_default().push(check);
    }
    let mut ranked: Vec<(usize, ContentHash, ClaimCheck)> = Vec::new();
    for (topic, mut checks) in topics {
        checks.sort_by_cached_key(|check| order(&check.id));
        ranked.extend(checks.into_iter().enumerate().map(|(rank, check)| (rank, order(&topic), check)));
    }
    ranked.sort_by(|a, b| (a.0, a.1.as_str()).cmp(&(b.0, b.1.as_str())));
    ranked.into_iter().take(claims).map(|(_, _, check)| check).collect()
}

/// Whether all quotes of a claim stand in their sources, so that a verifier can be asked about it.
#[must_use]
pub fn is_anchored(check: &ClaimCheck) -> bool {
    !check.quotes.is_empty() && check.context.len() == check.quotes.len()
}

/// The claims of a sample that their quotes do not carry. One without a verdict is not among them.
#[must_use]
pub fn list_refused(sample: &[ClaimCheck], verdicts: &[ClaimVerdict]) -> Vec<RefusedClaim> {
    let by_check: BTreeMap<&str, &ClaimVerdict> =
        verdicts.iter().map(|verdict| (verdict.check_sha256.as_str(), verdict)).collect();
    let find = |check: &ClaimCheck| {
        let reason = if is_anchored(check) {
            let verdict = by_check.get(check.hash().as_str()).filter(|it| it.support != Support::Supports)?;
            format!("{}: {}", verdict.support, verdict.reason)
        } else {
            "a quote does not stand in its source".to_owned()
        };
        Some(RefusedClaim { claim: check.id.clone(), file: check.file.clone(), reason })
    };
    sample.iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, quotes: usize, found: usize) -> ClaimCheck {
        ClaimCheck {
            id: id.to_owned(),
            page: "Plot 12".to_owned(),
            heading: String::new(),
            statement: format!("The statement of {id}."),
            quotes: vec!["The words of it.".to_owned(); quotes],
            context: vec!["The words of it.".to_owned(); found],
            file: "entities/plot-12.md".to_owned(),
            statement_sha256: String::new(),
        }
    }

    #[test]
    fn a_small_topic_is_in_the_sample_of_a_large_one() {
        let large = (0..40).map(|n| ("water".to_owned(), check(&format!("water#{n}"), 1, 1)));
        let small = (0..2).map(|n| ("lease".to_owned(), check(&format!("lease#{n}"), 1, 1)));
        let all: Vec<_> = large.chain(small).collect();
        let sample = sample_claims(all.clone(), 10, "a");
        let count = |name: &str| sample.iter().filter(|check| check.id.starts_with(name)).count();
        assert_eq!((count("water"), count("lease")), (8, 2));
        assert_eq!(sample, sample_claims(all.clone(), 10, "a"));
        assert_ne!(sample, sample_claims(all.clone(), 10, "b"), "another seed takes others");
        assert_eq!(sample_claims(all, 100, "a").len(), 42);
    }

    #[test]
    fn a_quote_that_does_not_stand_fails_without_a_verdict() {
        let sample = [check("a", 1, 1), check("b", 2, 1), check("c", 1, 1), check("d", 1, 1)];
        let verdict = |check: &ClaimCheck, support| ClaimVerdict {
            claim: check.id.clone(),
            statement_sha256: String::new(),
            check_sha256: check.hash(),
            support,
            reason: "No.".to_owned(),
        };
        let verdicts = [verdict(&sample[0], Support::Supports), verdict(&sample[2], Support::PartiallySupports)];
        let refused = list_refused(&sample, &verdicts);
        let reasons: Vec<(&str, &str)> = refused.iter().map(|it| (it.claim.as_str(), it.reason.as_str())).collect();
        assert_eq!(reasons, [("b", "a quote does not stand in its source"), ("c", "partially_supports: No.")]);
    }
}
