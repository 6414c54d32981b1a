//! Every gate, evaluated in one place.
//!
//! A tick and the router evaluate a change as they saw it ([`ChangeFacts::evaluate`]). A plan is evaluated once more when
//! it lands ([`super::landing`]), a recorded decision under other settings ([`replay_closed_gates`]), a proposal when a
//! person confirms it ([`allows_confirmation`]). `steward policy check` evaluates the best change that is possible. Every
//! gate is evaluated and kept, also behind a closed one, because a record must show all values.

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

/// What a call of the clerk cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClerkCall {
    /// The rate guard had reserved it.
    Reserved,
    /// The answer to the same evidence was remembered.
    Remembered,
    /// No clerk is asked for such a change.
    NotNeeded,
}

/// Everything that the gates need to know about a change before it lands.
#[derive(Clone, Copy, Debug)]
pub struct ChangeFacts<'a> {
    /// `None` where the decision changes nothing.
    pub mutation: Option<&'a Mutation>,
    /// The caller asked for a tick that changes nothing.
    pub caller_says_shadow: bool,
    /// Mode, thresholds and the ceilings of the classes.
    pub policy: &'a DecisionPolicy,
    /// 0 to 1.
    pub confidence: f64,
    /// The signals that support the change.
    pub evidence: &'a [EvidenceWeight<'a>],
    /// The sources of all signals that it cites.
    pub sources: &'a [&'a str],
    /// The lowest ceiling that people set for these sources and for the matters concerned.
    pub ceiling: Ceiling,
    pub clerk_call: ClerkCall,
    /// The steward passed the proposal over beside other messages.
    pub passed_over: bool,
    /// What the notes of the matters concerned allow.
    pub matter_policies: &'a [&'a MatterPolicy],
    pub at: DateTime<Utc>,
}

/// What all gates came to.
#[derive(Clone, Debug, PartialEq)]
pub struct GateEvaluation {
    pub gates: Vec<GateResult>,
    pub disposition: Disposition,
    /// Whether a person's confirmation may carry the change out.
    pub is_confirmable: bool,
}

impl ChangeFacts<'_> {
    /// Evaluates every gate that can be evaluated before a plan lands.
    #[must_use]
    pub fn evaluate(&self) -> GateEvaluation {
        let ceiling = self.lowest_ceiling();
        let caller = if self.caller_says_shadow { "shadow" } else { "any" };
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
            GateResult::new(GateName::Caller, !self.caller_says_shadow, caller, "any"),
            mode_gate(self.policy),
            confidence_gate(self.policy, self.confidence),
            discretion,
            ceiling_gate(ceiling),
            GateResult::new(GateName::RateGuard, true, call, "reserved where a clerk is asked"),
        ];
        if self.passed_over {
            // One message may turn another into a question, never into nothing: what the steward passed over is shown.
            let (found, needed) = ("not decided upon beside other messages", "its own decision");
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

/// Whether a person's confirmation may carry a change out: a ceiling of `ask`, or a note that does not allow the change,
/// leaves it to the person's own hands.
#[must_use]
pub fn allows_confirmation(ceiling: Ceiling, mutation: Option<&Mutation>, policies: &[&MatterPolicy]) -> bool {
    let forbids = |policy: &&MatterPolicy| {
        policy.effective_ceiling() == Ceiling::Ask || mutation.is_some_and(|m| policy.forbids_mutation(m))
    };
    ceiling > Ceiling::Ask && !policies.iter().any(forbids)
}

/// The gates of a recorded decision that would stand closed under other settings.
///
/// Mode, confidence and ceiling follow the settings. The gates `trust` and `brake` were of their moment and count as
/// open; every other gate stays as it was recorded.
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
        .set_gate(GateName::Brake, false)
}

#[cfg(test)]
mod tests;
