//! The gate `discretion`: how certain the evidence of a change must be.
//!
//! Each source has a threshold. The threshold is lower the more often the source was right
//! ([`crate::gates::mode::discretion_threshold`]). Every signal that supports a change must reach the threshold of its
//! source.

use crate::gates::mode::{discretion_threshold, format_exact};
use crate::gates::result::{GateName, GateResult};
use crate::steward::clerk::SignalEvidence;

/// How certain one signal is, and what its source has shown so far.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceWeight<'a> {
    /// The source, as the signal names it. Untrusted.
    pub source: &'a str,
    /// The lower of the confidence in the target and the confidence in the effect, 0 to 1.
    pub confidence: f64,
    /// How often the source was right before.
    pub observations: u32,
}

impl EvidenceWeight<'_> {
    fn threshold_margin(&self) -> f64 {
        self.confidence - discretion_threshold(self.observations)
    }
}

impl<'a> From<&'a SignalEvidence> for EvidenceWeight<'a> {
    fn from(evidence: &'a SignalEvidence) -> Self {
        let confidence = evidence.target_confidence.min(evidence.effect_confidence);
        Self { source: &evidence.source, confidence, observations: evidence.observations }
    }
}

/// The gate shows the signal with the smallest margin over its threshold. A change that no cited signal supports does
/// not pass.
pub(crate) fn discretion_gate(weights: &[EvidenceWeight<'_>]) -> GateResult {
    match weights.iter().min_by(|a, b| a.threshold_margin().total_cmp(&b.threshold_margin())) {
        None => GateResult::new(GateName::Discretion, false, "no evidence", "evidence"),
        Some(w) => GateResult::new(
            GateName::Discretion,
            w.threshold_margin() >= 0.0,
            format!("{}{} observations)", describe_signal(w.confidence, w.source), w.observations),
            format!(">= {}", format_exact(discretion_threshold(w.observations))),
        ),
    }
}

fn describe_signal(confidence: f64, source: &str) -> String {
    format!("{} from {source} (", format_exact(confidence))
}

/// Whether the value that this gate found is about a signal of this confidence (0 to 1) and source.
#[must_use]
pub fn names_signal(found: &str, confidence: f64, source: &str) -> bool {
    found.starts_with(&describe_signal(confidence, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_names_the_signal_that_closes_it() {
        let weight = |source, confidence| EvidenceWeight { source, confidence, observations: 62 };
        let gate = discretion_gate(&[weight("gmail", 0.97), weight("gmail", 0.5), weight("bank", 0.9)]);
        assert!(!gate.open && names_signal(&gate.found, 0.5, "gmail"), "{gate:?}");
        for (confidence, source) in [(0.97, "gmail"), (0.5, "bank"), (0.5, "gmai")] {
            assert!(!names_signal(&gate.found, confidence, source), "{source}");
        }
    }
}
