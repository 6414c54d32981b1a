//! The gate `discretion`: what the evidence of a change must weigh.
//!
//! Each source has a threshold that falls the more often the source was right
//! ([`crate::gates::mode::discretion_threshold`]). Every signal that supports the change must reach its source's threshold.

use crate::gates::mode::{discretion_threshold, format_exact};
use crate::gates::result::{GateName, GateResult};
use crate::steward::clerk::SignalEvidence;

/// What one signal weighs: no more than the weaker of what it is about and what it says.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceWeight<'a> {
    /// The source, as the signal names it. Untrusted.
    pub source: &'a str,
    /// 0 to 1.
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
    fn from(e: &'a SignalEvidence) -> Self {
        let confidence = e.target_confidence.min(e.effect_confidence);
        Self { source: &e.source, confidence, observations: e.observations }
    }
}

/// The signal that misses its threshold by most is shown. A change that no cited signal supports does not pass.
pub(crate) fn discretion_gate(weights: &[EvidenceWeight<'_>]) -> GateResult {
    match weights.iter().min_by(|a, b| a.threshold_margin().total_cmp(&b.threshold_margin())) {
        None => GateResult::new(GateName::Discretion, false, "no evidence", "evidence"),
        Some(w) => GateResult::new(
            GateName::Discretion,
            w.threshold_margin() >= 0.0,
            format!("{} from {} ({} observations)", format_exact(w.confidence), w.source, w.observations),
            format!(">= {}", format_exact(discretion_threshold(w.observations))),
        ),
    }
}
