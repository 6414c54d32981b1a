//! What the process that lands a plan allows at that moment.
//!
//! A plan may be decided by one process and landed by another, minutes later and under other settings. It lands no
//! livelier than the lower of both, and its record shows the gates that bound it. Nothing here makes a plan livelier:
//! one that was decided in shadow stays a shadow. A stop is no mode and does not pass here: under a stop nothing lands.

use crate::decide::{Closed, Gate, ceiling_gate, confidence, mode};
use crate::mode::{Ceiling, Policy};
use crate::plan::{Landing, Plan};
use crate::route;

/// The settings of the process that lands a plan.
#[derive(Clone, Copy, Debug)]
pub struct LandingLimits<'a> {
    /// Mode, thresholds and class ceilings of this process.
    pub policy: &'a Policy,
    /// The lowest ceiling that humans have set by now for the cited sources and the matters concerned.
    pub ceiling: Ceiling,
}

impl Plan {
    /// The same plan, no livelier than this process allows now.
    #[must_use]
    pub fn within_policy(mut self, limits: &LandingLimits<'_>) -> Self {
        let lower_mode = limits.policy.mode < self.draft.mode;
        self.draft.mode = self.draft.mode.min(limits.policy.mode);
        self.bind(mode(limits.policy), lower_mode);
        let bound = Policy { mode: self.draft.mode, ..limits.policy.clone() };
        self.bind(confidence(&bound, self.draft.confidence), lower_mode);
        if let Some(class) = self.draft.class {
            let ceiling = limits.ceiling.min(limits.policy.ceiling_of(class));
            self.bind(ceiling_gate(ceiling), ceiling == Ceiling::Ask);
            self.draft.confirmable &= ceiling > Ceiling::Ask;
        }
        let allowed = Closed::of(&self.draft.gates).landing(self.landing() != Landing::Recorded);
        if allowed < self.landing() {
            self.draft.landing = allowed;
            self.draft.pending_confirmation = allowed == Landing::Pending;
            if allowed == Landing::Shadow {
                route::rename_as_shadow(&mut self.draft);
            }
        }
        self
    }

    /// Replaces the gate that was decided with where this one binds: a closed gate before an open one, and of two that
    /// stand alike the lower one.
    fn bind(&mut self, gate: Gate, is_lower: bool) {
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
