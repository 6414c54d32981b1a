//! Evaluates the gates again when a plan is applied.
//!
//! One process may decide a plan, and another may apply it minutes later under other settings. The stricter of the two
//! wins, and the record shows the gates that held the change. This module must not raise a disposition: a plan that was
//! decided in shadow stays in shadow. A stop is not evaluated here, because under a stop no plan is applied.

use crate::action::plan::{Disposition, Plan};
use crate::gates::closed::ClosedGates;
use crate::gates::evaluate::allows_confirmation;
use crate::gates::matter_policy::{self, MatterPolicy, MatterPolicyUsage};
use crate::gates::mode::{Ceiling, DecisionPolicy, ceiling_gate, confidence_gate, mode_gate};
use crate::gates::result::{GateResult, LandingGate};
use crate::gates::source_budget::{SourceSpending, source_budget_gate};
use crate::gates::trust::trust_gate;
use crate::signals::route;
use crate::trust::demotion::{ChangeSupporter, ModeCaps};
use chrono::{DateTime, Utc};

/// What the vault knows about a change when its plan is applied.
#[derive(Clone, Debug)]
pub struct LandingFacts {
    /// The lowest ceiling that people set until now for the cited sources and the matters concerned.
    pub ceiling: Ceiling,
    /// The sources that support the change.
    pub supporters: Vec<ChangeSupporter>,
    /// The caps of the sources and classes that were demoted or restored.
    pub mode_caps: ModeCaps,
    /// How many live changes each of the sources has caused in a day.
    pub spendings: Vec<SourceSpending>,
    /// The policies of the matters concerned, and how much of their budgets is used.
    pub matter_policies: Vec<MatterPolicyUsage>,
}

/// The settings of the process that applies a plan.
#[derive(Clone, Copy, Debug)]
pub struct LandingSettings<'a> {
    /// Mode, thresholds and class ceilings of this process.
    pub policy: &'a DecisionPolicy,
    /// The limit of live changes per source in 24 h ([`super::source_budget::LIVE_PER_SOURCE_DAY`]).
    pub live_per_source_day: u32,
}

impl Plan {
    /// Lowers the plan to what the settings of this process and the vault allow now.
    #[must_use]
    pub fn hold_at_landing(self, settings: LandingSettings<'_>, facts: &LandingFacts, now: DateTime<Utc>) -> Self {
        let plan = self.hold_by_policy(settings.policy, facts.ceiling);
        if !plan.has_record_change() {
            return plan;
        }
        let draft = &plan.draft;
        let trust = trust_gate(draft, &facts.supporters, &facts.mode_caps, settings.policy);
        let budget = source_budget_gate(draft, &facts.spendings, settings.live_per_source_day);
        let notes = matter_policy::landing_gates(draft, &facts.matter_policies, now);
        let gates: Vec<LandingGate> = trust.into_iter().chain(budget).chain(notes).collect();
        plan.narrow_confirmation(&facts.matter_policies).hold_behind(gates)
    }

    /// Lowers the plan to what this process's mode, thresholds and ceilings allow.
    fn hold_by_policy(mut self, policy: &DecisionPolicy, ceiling: Ceiling) -> Self {
        let is_mode_lower = policy.mode < self.draft.mode;
        self.draft.mode = self.draft.mode.min(policy.mode);
        self.tighten_gate(mode_gate(policy), is_mode_lower);
        let lower_policy = DecisionPolicy { mode: self.draft.mode, ..policy.clone() };
        self.tighten_gate(confidence_gate(&lower_policy, self.draft.confidence), is_mode_lower);
        if let Some(class) = self.draft.class {
            let ceiling = ceiling.min(policy.class_ceiling(class));
            self.tighten_gate(ceiling_gate(ceiling), ceiling == Ceiling::Ask);
            self.draft.confirmable &= allows_confirmation(ceiling, None, &[]);
        }
        let changes_something = self.disposition() != Disposition::Recorded;
        let allowed = ClosedGates::from_gates(&self.draft.gates).decide_disposition(changes_something);
        if allowed < self.disposition() {
            self.set_disposition(allowed);
            if allowed == Disposition::Shadow {
                route::rename_as_shadow(&mut self.draft);
            }
        }
        self
    }

    /// Replaces the gate of the decision if the new one is stricter. A closed gate replaces an open one. If both are
    /// open or both are closed, the new one replaces the old one only if `is_lower`.
    fn tighten_gate(&mut self, gate: GateResult, is_lower: bool) {
        match self.draft.gates.iter_mut().find(|decided| decided.gate == gate.gate) {
            Some(decided) if decided.open == gate.open && is_lower => *decided = gate,
            Some(decided) if decided.open && !gate.open => *decided = gate,
            Some(_) => {}
            None => self.draft.gates.push(gate),
        }
    }

    /// Makes a proposal unconfirmable if a note no longer allows it.
    fn narrow_confirmation(mut self, notes: &[MatterPolicyUsage]) -> Self {
        let policies: Vec<&MatterPolicy> = notes.iter().map(|note| &note.policy).collect();
        let mutation = self.draft.proposal.as_ref().map(|proposal| &proposal.mutation);
        self.draft.confirmable &= allows_confirmation(Ceiling::Act, mutation, &policies);
        self
    }

    /// Adds these gates to the record, and lowers the plan to what the strictest of them allows.
    fn hold_behind(mut self, gates: Vec<LandingGate>) -> Self {
        let allowed = gates.iter().map(|gate| gate.allows).min();
        self.draft.gates.extend(gates.into_iter().map(|gate| gate.result));
        if let Some(allowed) = allowed.filter(|allowed| *allowed < self.disposition()) {
            self.set_disposition(allowed);
        }
        self
    }

    fn set_disposition(&mut self, disposition: Disposition) {
        self.draft.disposition = disposition;
        self.draft.pending_confirmation = disposition == Disposition::Pending;
    }
}

#[cfg(test)]
pub(crate) mod tests;
