//! A signal as an audit record keeps it.
//!
//! It is copied when the decision is made, because the signal's own file may be edited or removed later.
//! Its note and source are untrusted.

use crate::record::path::RecordPath;
use crate::steward::clerk::SignalEvidence;
use serde::{Deserialize, Serialize};

/// A signal that a decision rests on, as the record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CitedSignal {
    #[serde(rename = "ref")]
    pub reference: RecordPath,
    pub source: String,
    /// At most 50 characters, verbatim. Untrusted.
    pub note: String,
    pub target_confidence: f64,
    pub effect_confidence: f64,
    /// It supports what was decided; left out of the file where it does.
    #[serde(default = "says_so", skip_serializing_if = "Clone::clone")]
    pub speaks: bool,
}

fn says_so() -> bool {
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
            speaks: true,
        }
    }
}
