//! The copy of a cited signal in an audit record.
//!
//! It is made at the decision, because the signal's own file may be edited or removed later.
//! Its note and source are untrusted.

use crate::record::path::RecordPath;
use crate::steward::clerk::SignalEvidence;
use serde::{Deserialize, Serialize};

/// A signal on which a decision rests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CitedSignal {
    #[serde(rename = "ref")]
    pub reference: RecordPath,
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub note: String,
    pub target_confidence: f64,
    pub effect_confidence: f64,
    /// Whether it supports the decision. The file omits `true`, because that is usual.
    #[serde(default = "default_support", skip_serializing_if = "Clone::clone")]
    pub supports: bool,
}

fn default_support() -> bool {
    true
}

impl From<&SignalEvidence> for CitedSignal {
    fn from(e: &SignalEvidence) -> Self {
        Self {
            reference: e.reference.clone(),
            source: e.source.clone(),
            note: e.note.clone(),
            target_confidence: e.target_confidence,
            effect_confidence: e.effect_confidence,
            supports: true,
        }
    }
}
