//! What the process that lands a plan allows at that moment.
//!
//! A plan may be decided by one process and landed by another, minutes later and under other settings. It lands no
//! livelier than the lower of both, and its record shows the gates that bound it. Nothing here makes a plan livelier:
//! one that was decided in shadow stays a shadow. A stop is no mode and does not pass here: under a stop nothing lands.

use crate::action::plan::{Disposition, Plan};
use crate::gates::mode::{Ceiling, DecisionPolicy};
use crate::signals::route;
use crate::steward::decide::{ClosedGates, GateResult, ceiling_gate, confidence_gate, mode_gate};

/// The settings of the process that lands a plan.
#[derive(Clone, Copy, Debug)]
pub struct DispositionLimits<'a> {
    /// Mode, thresholds and class ceilings of this process.
    pub policy: &'a DecisionPolicy,
    /// The lowest ceiling that humans have set by now for the cited sources and the matters concerned.
    pub ceiling: Ceiling,
}

impl Plan {
    /// The same plan, no livelier than this process allows now.
    #[must_use]
    pub fn cap_by_policy(mut self, limits: &DispositionLimits<'_>) -> Self {
        let lower_mode = limits.policy.mode < self.draft.mode;
        self.draft.mode = self.draft.mode.min(limits.policy.mode);
        self.tighten_gate(mode_gate(limits.policy), lower_mode);
        let bound = DecisionPolicy { mode: self.draft.mode, ..limits.policy.clone() };
        self.tighten_gate(confidence_gate(&bound, self.draft.confidence), lower_mode);
        if let Some(class) = self.draft.class {
            let ceiling = limits.ceiling.min(limits.policy.class_ceiling(class));
            self.tighten_gate(ceiling_gate(ceiling), ceiling == Ceiling::Ask);
            self.draft.confirmable &= ceiling > Ceiling::Ask;
        }
        let allowed =
            ClosedGates::from_gates(&self.draft.gates).decide_disposition(self.disposition() != Disposition::Recorded);
        if allowed < self.disposition() {
            self.draft.landing = allowed;
            self.draft.pending_confirmation = allowed == Disposition::Pending;
            if allowed == Disposition::Shadow {
                route::rename_as_shadow(&mut self.draft);
            }
        }
        self
    }

    /// Replaces the gate that was decided with where this one binds: a closed gate before an open one, and of two that
    /// stand alike the lower one.
    fn tighten_gate(&mut self, gate: GateResult, is_lower: bool) {
        match self.draft.gates.iter_mut().find(|decided| decided.gate == gate.gate) {
            Some(decided) if decided.open == gate.open && is_lower => *decided = gate,
            Some(decided) if decided.open && !gate.open => *decided = gate,
            Some(_) => {}
            None => self.draft.gates.push(gate),
        }
    }
}

#[cfg(test)]
mod tests;
