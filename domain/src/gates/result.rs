//! The gates by name, and what each of them found.
//!
//! A result keeps the value that was found and the value that was needed, so that records, previews and screens show
//! what decided. Nothing here decides.

use crate::action::plan::Disposition;
use serde::{Deserialize, Serialize};

/// One gate, with the value that was found and the value that was needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    pub gate: GateName,
    pub open: bool,
    pub found: String,
    pub needed: String,
}

impl GateResult {
    pub(crate) fn new(gate: GateName, open: bool, found: impl Into<String>, needed: impl Into<String>) -> Self {
        Self { gate, open, found: found.into(), needed: needed.into() }
    }
}

/// A gate that is evaluated when a plan lands, and how far a change may go behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LandingGate {
    pub(crate) result: GateResult,
    /// The liveliest disposition that the gate allows; [`Disposition::Live`] where it is open.
    pub(crate) allows: Disposition,
}

impl LandingGate {
    /// A gate behind which a change waits for a person where it is closed.
    pub(crate) fn waiting(result: GateResult) -> Self {
        let allows = if result.open { Disposition::Live } else { Disposition::Pending };
        Self { result, allows }
    }
}

/// The gates, in the order in which records show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// The caller may ask for a tick that changes nothing.
    Caller,
    /// Shadow, live for high confidence only, live.
    Mode,
    /// How sure the decision is.
    Confidence,
    /// How sure the evidence of each source must be, by how often the source was right.
    Discretion,
    /// The lowest ceiling of class, sources and matters.
    Ceiling,
    /// Room under the caps on clerk calls.
    RateGuard,
    /// A proposal that the steward passed over beside other messages needs a person.
    Steward,
    /// How much the sources of a change have changed in a day.
    SourceBudget,
    /// How far undos let the sources and the class of a change go.
    Trust,
    /// What the matter's own note allows.
    Policy,
    /// An operator's stop. No new record has it: under a stop nothing is filed.
    Brake,
}

impl GateName {
    /// Every gate, in the order in which they are listed.
    pub const ALL: [Self; 11] = [
        Self::Caller,
        Self::Mode,
        Self::Confidence,
        Self::Discretion,
        Self::Ceiling,
        Self::RateGuard,
        Self::Steward,
        Self::SourceBudget,
        Self::Trust,
        Self::Policy,
        Self::Brake,
    ];

    /// The word used in records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Mode => "mode",
            Self::Confidence => "confidence",
            Self::Discretion => "discretion",
            Self::Ceiling => "ceiling",
            Self::RateGuard => "rate_guard",
            Self::Steward => "steward",
            Self::SourceBudget => "source_budget",
            Self::Trust => "trust",
            Self::Policy => "policy",
            Self::Brake => "brake",
        }
    }
}
