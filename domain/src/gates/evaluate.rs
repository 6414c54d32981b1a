//! Evaluates every gate of a change when it is decided.
//!
//! A tick and the router evaluate a change with the facts that they observed ([`ChangeFacts::evaluate`]). The command
//! `steward policy check` does the same for the best change that is possible. [`super::landing`] evaluates the gates
//! again when the plan is applied. `replay_closed_gates` evaluates a recorded decision under other settings, and
//! [`allows_confirmation`] a proposal that a person confirms. A closed gate must not end the evaluation, because the
//! record shows all values.

use crate::action::mutation::{Mutation, MutationClass};
use crate::action::plan::Disposition;
use crate::gates::closed::ClosedGates;
use crate::gates::evidence::{EvidenceWeight, discretion_gate};
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{
    Ceiling, DecisionPolicy, can_act, ceiling_gate, confidence_gate, mode_gate, needed_confidence,
};
use crate::gates::result::{GateName, GateResult};
use chrono::{DateTime, Utc};

/// How the clerk's answer to a change was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClerkCall {
    /// The clerk was asked. The rate guard had reserved the call.
    Reserved,
    /// An earlier answer to the same question was used.
    Remembered,
    /// The change needs no clerk.
    NotNeeded,
}

/// Everything that the gates need to know about a change when it is decided.
#[derive(Clone, Copy, Debug)]
pub struct ChangeFacts<'a> {
    /// `None` if the decision changes nothing.
    pub mutation: Option<&'a Mutation>,
    /// The caller asked for a tick that changes nothing.
    pub is_shadow_requested: bool,
    /// Mode, thresholds and the ceilings of the classes.
    pub policy: &'a DecisionPolicy,
    /// 0 to 1.
    pub confidence: f64,
    /// The signals that support the change.
    pub evidence: &'a [EvidenceWeight<'a>],
    /// The sources of all signals that the decision cites.
    pub sources: &'a [&'a str],
    /// The lowest ceiling that people set for these sources and for the matters concerned.
    pub ceiling: Ceiling,
    pub clerk_call: ClerkCall,
    /// The steward did not act on the proposal while it weighed other messages.
    pub passed_over: bool,
    /// The policies in the notes of the matters concerned.
    pub matter_policies: &'a [&'a MatterPolicy],
    pub at: DateTime<Utc>,
}

/// The results of all gates, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct GateEvaluation {
    pub gates: Vec<GateResult>,
    pub disposition: Disposition,
    /// Whether a person may confirm the change.
    pub is_confirmable: bool,
}

impl ChangeFacts<'_> {
    /// Evaluates every gate that can be evaluated when the change is decided.
    #[must_use]
    pub fn evaluate(&self) -> GateEvaluation {
        let ceiling = self.lowest_ceiling();
        let requested_mode = if self.is_shadow_requested { "shadow" } else { "any" };
        let call = match self.clerk_call {
            ClerkCall::Reserved => "reserved",
            ClerkCall::Remembered => "remembered, no clerk asked",
            ClerkCall::NotNeeded => "no clerk asked",
        };
        let discretion = match self.mutation {
            Some(_) => discretion_gate(self.evidence),
            None => GateResult::new(GateName::Discretion, true, "no change", "evidence of a change"),
        };
        let mut gates = vec![
            GateResult::new(GateName::Caller, !self.is_shadow_requested, requested_mode, "any"),
            mode_gate(self.policy),
            confidence_gate(self.policy, self.confidence),
            discretion,
            ceiling_gate(ceiling),
            GateResult::new(GateName::RateGuard, true, call, "reserved where a clerk is asked"),
        ];
        if self.passed_over {
            // A message must not make another one disappear. So a person sees what the steward did not act on.
            let (found, needed) = ("passed over while other messages spoke", "a decision by the steward");
            gates.push(GateResult::new(GateName::Steward, false, found, needed));
        }
        if let Some(mutation) = self.mutation {
            for policy in self.matter_policies {
                gates.extend(policy.evaluate_gates(mutation, self.sources, self.at));
            }
        }
        let disposition = ClosedGates::from_gates(&gates).decide_disposition(self.mutation.is_some());
        let is_confirmable = allows_confirmation(ceiling, self.mutation, self.matter_policies);
        GateEvaluation { gates, disposition, is_confirmable }
    }

    fn lowest_ceiling(&self) -> Ceiling {
        let class = self.mutation.map_or(MutationClass::StateChange, Mutation::class);
        let matters = self.matter_policies.iter().map(|policy| policy.effective_ceiling());
        matters.fold(self.ceiling.min(self.policy.class_ceiling(class)), Ceiling::min)
    }
}

/// Whether a person may confirm a change.
///
/// A ceiling of `ask`, or a note that forbids the change, leaves it to the person to make by hand.
#[must_use]
pub fn allows_confirmation(ceiling: Ceiling, mutation: Option<&Mutation>, policies: &[&MatterPolicy]) -> bool {
    let forbids = |policy: &&MatterPolicy| {
        policy.effective_ceiling() == Ceiling::Ask || mutation.is_some_and(|m| policy.forbids_mutation(m))
    };
    ceiling > Ceiling::Ask && !policies.iter().any(forbids)
}

/// The gates of a recorded decision that would be closed under other settings.
///
/// Mode, confidence and ceiling follow the settings. The gate `trust` depended on the moment, so it counts as open.
/// Every other gate stays as it was recorded.
pub(crate) fn replay_closed_gates(
    recorded: ClosedGates,
    policy: &DecisionPolicy,
    confidence: f64,
    ceiling: Ceiling,
) -> ClosedGates {
    recorded
        .set_gate(GateName::Mode, !can_act(policy))
        .set_gate(GateName::Confidence, confidence < needed_confidence(policy))
        .set_gate(GateName::Ceiling, ceiling < Ceiling::Act)
        .set_gate(GateName::Trust, false)
}

#[cfg(test)]
mod tests;
