//! What a source may change in a day without a human's word.
//!
//! A sender who convinces the clerk once convinces it a thousand times. So the live changes that rest on
//! one source are counted over 24 hours. All sources that nobody knows have one budget together, because a
//! name costs nothing, and each of them a quarter of it, so that the loudest does not speak for the rest;
//! what is beyond the budget waits like any other pending change. So does the end of a whole
//! matter at a stranger's word: with it nothing would be heard of its tasks any more. The counts come from the
//! audit records ([`crate::action::audit`]) and are taken when a plan lands, one plan after the other.

use crate::action::mutation::MutationClass;
use crate::action::plan::{Disposition, Plan};
use crate::record::path::RecordKind;
use crate::steward::decide::{GateName, GateResult};
use chrono::TimeDelta;
use std::fmt::Write;

/// The window in which changes are counted: 24 h.
pub const BUDGET_WINDOW: TimeDelta = TimeDelta::hours(24);
/// Live changes of one source in the window (`STEWARD_LIVE_PER_SOURCE_DAY`): 20. Many more than one sender
/// settles in a day, and few enough to be taken back by hand.
pub const LIVE_PER_SOURCE_DAY: u32 = 20;
/// One stranger has this part of the budget of all: a quarter, rounded up.
const A_STRANGERS_PART: u32 = 4;

/// How much one source has changed lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpending {
    /// The source, as its instinct is named.
    pub source: String,
    /// Live changes within [`BUDGET_WINDOW`], this one not counted.
    pub changes: u32,
    /// Those of all sources that were never right before; `None` if this one was.
    pub strangers: Option<u32>,
}

impl SourceSpending {
    fn has_room(&self, budget: u32) -> bool {
        match self.strangers {
            None => self.changes < budget,
            Some(all) => self.changes < budget.div_ceil(A_STRANGERS_PART) && all < budget,
        }
    }
}

impl Plan {
    /// The same plan, held back for a human if every source that speaks for the change has used up its
    /// budget: a source that has not is not held back by the company it keeps. One whose signals are all gone
    /// has nobody's budget left. One that would not be live stays as it is.
    #[must_use]
    pub fn cap_by_budget(mut self, spendings: &[SourceSpending], budget: u32) -> Self {
        if self.disposition() != Disposition::Live {
            return self;
        }
        let draft = &self.draft;
        let ends_a_matter =
            draft.target.kind() == RecordKind::Matter && draft.class == Some(MutationClass::StateChange);
        let may = |s: &&SourceSpending| s.has_room(budget) && (s.strangers.is_none() || !ends_a_matter);
        let may_one = spendings.iter().find(may);
        let Some(shown) = may_one.or_else(|| spendings.iter().min_by_key(|s| s.changes)) else {
            if self.has_record_change() && !self.draft.evidence.is_empty() {
                let (found, needed) = ("the signals it rests on are gone", "one that speaks for it");
                self.hold_for_confirmation(GateResult::new(GateName::SourceBudget, false, found, needed));
            }
            return self;
        };
        let (mut found, mut needed) =
            (format!("{} live changes in 24 h from {}", shown.changes, shown.source), format!("fewer than {budget}"));
        if let Some(all) = shown.strangers {
            let _ = write!(found, ", {all} from all sources that nobody knows");
            needed = format!("fewer than {} and {budget}", budget.div_ceil(A_STRANGERS_PART));
        }
        if ends_a_matter {
            needed += ", for a matter from a source that was right before";
        }
        let gate = GateResult::new(GateName::SourceBudget, may_one.is_some(), found, needed);
        if gate.open {
            self.draft.gates.push(gate);
        } else {
            self.hold_for_confirmation(gate);
        }
        self
    }

    pub(crate) fn hold_for_confirmation(&mut self, closed: GateResult) {
        self.draft.gates.push(closed);
        self.draft.landing = Disposition::Pending;
        self.draft.pending_confirmation = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steward::decide::tests::{live_plan, shadow_plan};

    fn known(changes: u32) -> SourceSpending {
        SourceSpending { source: "bank".into(), changes, strangers: None }
    }

    fn stranger(changes: u32, all: u32) -> SourceSpending {
        SourceSpending { source: "mail-a".into(), changes, strangers: Some(all) }
    }

    #[test]
    fn a_change_beyond_its_sources_budget_waits_and_says_why() {
        for (spendings, landing, found) in [
            (&[known(0)][..], Disposition::Live, "0 live changes in 24 h from bank"),
            (&[known(19)], Disposition::Live, "19 live changes"),
            (&[known(20)], Disposition::Pending, "20 live changes"),
            (&[known(20), known(500)], Disposition::Pending, "20 live changes"),
            (&[known(20), known(3)], Disposition::Live, "3 live changes"),
            (&[stranger(4, 19)], Disposition::Live, "4 live changes in 24 h from mail-a, 19 from all sources"),
            (&[stranger(5, 5)], Disposition::Pending, "5 live changes in 24 h from mail-a, 5 from all"),
            (&[stranger(0, 20)], Disposition::Pending, "0 live changes in 24 h from mail-a, 20 from all"),
            (&[stranger(0, 20), known(3)], Disposition::Live, "3 live changes in 24 h from bank"),
        ] {
            let plan = live_plan().cap_by_budget(spendings, 20);
            assert_eq!(plan.disposition(), landing, "{spendings:?}");
            assert_eq!(plan.draft().pending_confirmation, landing == Disposition::Pending);
            let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::SourceBudget).unwrap();
            assert_eq!(gate.open, landing == Disposition::Live, "{spendings:?}");
            let needed = if gate.found.contains("nobody") { "fewer than 5 and 20" } else { "fewer than 20" };
            assert!(gate.found.starts_with(found) && gate.needed == needed, "{gate:?}");
            assert_eq!(plan.has_record_change(), landing == Disposition::Live);
        }
    }

    #[test]
    fn a_change_whose_signals_are_gone_waits_and_one_without_any_does_not() {
        let held = live_plan().cap_by_budget(&[], 20);
        assert_eq!((held.disposition(), held.draft().pending_confirmation), (Disposition::Pending, true));
        let gate = held.draft().gates.last().unwrap();
        assert_eq!((gate.gate, gate.open), (GateName::SourceBudget, false));
        assert_eq!(gate.found, "the signals it rests on are gone");
        let mut without = live_plan();
        without.draft.evidence.clear();
        assert_eq!(without.clone().cap_by_budget(&[], 20), without);
        let mut nothing = live_plan();
        nothing.change = crate::action::plan::PlannedChange::Nothing;
        assert_eq!(nothing.clone().cap_by_budget(&[], 20), nothing);
    }

    #[test]
    fn a_small_budget_leaves_a_stranger_something_and_none_nothing() {
        let landing = |changes, all, budget| live_plan().cap_by_budget(&[stranger(changes, all)], budget).disposition();
        assert_eq!(
            (landing(0, 0, 1), landing(1, 1, 1), landing(0, 0, 0)),
            (Disposition::Live, Disposition::Pending, Disposition::Pending)
        );
    }

    #[test]
    fn a_matter_is_not_ended_by_a_strangers_word() {
        let mut plan = live_plan();
        plan.draft.target = crate::steward::decide::tests::path("matter/house.md");
        let with = |spending| plan.clone().cap_by_budget(&[spending], 20);
        assert_eq!(
            (with(stranger(0, 0)).disposition(), with(known(0)).disposition()),
            (Disposition::Pending, Disposition::Live)
        );
        let gate = with(stranger(0, 0)).draft().gates.last().cloned().unwrap();
        assert_eq!(gate.needed, "fewer than 5 and 20, for a matter from a source that was right before");
        plan.draft.class = Some(MutationClass::Related);
        assert_eq!(plan.cap_by_budget(&[stranger(0, 0)], 20).disposition(), Disposition::Live);
    }

    #[test]
    fn a_budget_opens_nothing() {
        assert_eq!(shadow_plan().cap_by_budget(&[known(0)], 20), shadow_plan());
        let held = live_plan().cap_by_budget(&[known(1)], 0);
        assert_eq!(held.clone().cap_by_budget(&[known(0)], 20), held);
        assert_eq!(held.disposition(), Disposition::Pending);
    }
}
