//! The names of the gates, and the result of one gate.
//!
//! A result holds the value that was found and the value that was needed. Records, previews and screens show both. This
//! module must not decide anything: the other modules of [`crate::gates`] evaluate the gates.

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

/// A gate that is evaluated when a plan is applied, and the disposition that it allows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LandingGate {
    pub(crate) result: GateResult,
    /// The highest disposition that the gate allows: [`Disposition::Live`] if it is open.
    pub(crate) allows: Disposition,
}

impl LandingGate {
    /// A gate that makes the change wait for a person if it is closed.
    pub(crate) fn waiting(result: GateResult) -> Self {
        let allows = if result.open { Disposition::Live } else { Disposition::Pending };
        Self { result, allows }
    }
}

/// The name of a gate. Records list the gates in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GateName {
    /// Whether the caller requested a tick that changes nothing.
    Caller,
    /// The mode from the environment: shadow, live for high confidence only, or live.
    Mode,
    /// How certain the decision is.
    Confidence,
    /// How certain the evidence of each source is, against what its source must reach.
    Discretion,
    /// The lowest ceiling of class, sources and matters.
    Ceiling,
    /// Whether the clerk call was within the rate guard's limits.
    RateGuard,
    /// Whether the steward passed the proposal over while it weighed other messages. Such a proposal needs a person.
    Steward,
    /// How many live changes the sources of the change have caused in a day.
    SourceBudget,
    /// Whether the sources or the class of the change are demoted.
    Trust,
    /// Whether the matter's own note allows the change.
    Policy,
}

impl GateName {
    /// Every gate, in the order in which records list them.
    pub const ALL: [Self; 10] = [
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
    ];

    /// The word used in records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
