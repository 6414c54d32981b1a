//! The gate `source_budget`: limits the live changes that one source may cause in 24 hours.
//!
//! A sender who convinces the clerk once can convince it a thousand times. So the live changes of each source are
//! counted, and a change beyond the budget waits for a person. All unknown sources share one budget, because a new
//! name costs its sender nothing. Each of them may use a quarter of it, so that one sender cannot use up the whole.
//! An unknown source must not close a matter, because nothing more would be heard of the matter's tasks. The counts
//! come from the audit records ([`crate::action::audit`]). They are taken when a plan is applied, one after the other.

use crate::action::audit::AuditDraft;
use crate::action::mutation::MutationClass;
use crate::gates::result::{GateName, GateResult, LandingGate};
use crate::record::path::RecordKind;
use chrono::TimeDelta;
use std::fmt::Write;

/// The window in which changes are counted: 24 h.
pub const BUDGET_WINDOW: TimeDelta = TimeDelta::hours(24);
/// The limit of live changes per source in the window (`STEWARD_LIVE_PER_SOURCE_DAY`): 20. One sender needs far fewer
/// in a day, and a person can still undo 20 changes by hand.
pub const LIVE_PER_SOURCE_DAY: u32 = 20;
/// One unknown source may use this part of the shared budget: a quarter, rounded up.
const UNKNOWN_SOURCE_DIVISOR: u32 = 4;

/// How many live changes one source has caused lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpending {
    /// The name of the source's instinct.
    pub source: String,
    /// Its live changes within [`BUDGET_WINDOW`], without this one.
    pub changes: u32,
    /// The live changes of all unknown sources (never right before). `None` if this source was right before.
    pub unknown_changes: Option<u32>,
}

impl SourceSpending {
    fn has_room(&self, budget: u32) -> bool {
        match self.unknown_changes {
            None => self.changes < budget,
            Some(all) => self.changes < budget.div_ceil(UNKNOWN_SOURCE_DIVISOR) && all < budget,
        }
    }
}

/// Evaluates the gate for a change that would be live.
///
/// The gate is closed if every source that supports the change has used up its budget. One source with budget left is
/// enough to open it. If all cited signals are gone, the gate is closed. If no signal was ever cited, there is no gate.
pub(crate) fn source_budget_gate(draft: &AuditDraft, spendings: &[SourceSpending], budget: u32) -> Option<LandingGate> {
    let ends_a_matter = draft.target_kind == RecordKind::Matter && draft.class == Some(MutationClass::StateChange);
    let is_allowed = |s: &&SourceSpending| s.has_room(budget) && (s.unknown_changes.is_none() || !ends_a_matter);
    let with_room = spendings.iter().find(is_allowed);
    let Some(shown) = with_room.or_else(|| spendings.iter().min_by_key(|s| s.changes)) else {
        let (found, needed) = ("the signals it rests on are gone", "a signal that supports it");
        let gone = GateResult::new(GateName::SourceBudget, false, found, needed);
        return (!draft.evidence.is_empty()).then(|| LandingGate::waiting(gone));
    };
    let mut found = format!("{} live changes in 24 h from {}", shown.changes, shown.source);
    let mut needed = format!("fewer than {budget}");
    if let Some(all) = shown.unknown_changes {
        let _ = write!(found, ", {all} from all unknown sources");
        needed = format!("fewer than {} and {budget}", budget.div_ceil(UNKNOWN_SOURCE_DIVISOR));
    }
    if ends_a_matter {
        needed += "; only a source that was right before may close a matter";
    }
    Some(LandingGate::waiting(GateResult::new(GateName::SourceBudget, with_room.is_some(), found, needed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::plan::Disposition;
    use crate::gates::landing::tests::hold_by_budget;
    use crate::steward::decide::tests::{live_plan, shadow_plan};

    fn known(changes: u32) -> SourceSpending {
        SourceSpending { source: "bank".into(), changes, unknown_changes: None }
    }

    fn unknown_source(changes: u32, all: u32) -> SourceSpending {
        SourceSpending { source: "mail-a".into(), changes, unknown_changes: Some(all) }
    }

    #[test]
    fn a_change_beyond_its_sources_budget_waits_and_says_why() {
        for (spendings, disposition, found) in [
            (&[known(0)][..], Disposition::Live, "0 live changes in 24 h from bank"),
            (&[known(19)], Disposition::Live, "19 live changes"),
            (&[known(20)], Disposition::Pending, "20 live changes"),
            (&[known(20), known(500)], Disposition::Pending, "20 live changes"),
            (&[known(20), known(3)], Disposition::Live, "3 live changes"),
            (
                &[unknown_source(4, 19)],
                Disposition::Live,
                "4 live changes in 24 h from mail-a, 19 from all unknown sources",
            ),
            (&[unknown_source(5, 5)], Disposition::Pending, "5 live changes in 24 h from mail-a, 5 from all"),
            (&[unknown_source(0, 20)], Disposition::Pending, "0 live changes in 24 h from mail-a, 20 from all"),
            (&[unknown_source(0, 20), known(3)], Disposition::Live, "3 live changes in 24 h from bank"),
        ] {
            let plan = hold_by_budget(live_plan(), spendings, 20);
            assert_eq!(plan.disposition(), disposition, "{spendings:?}");
            assert_eq!(plan.draft().pending_confirmation, disposition == Disposition::Pending);
            let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::SourceBudget).unwrap();
            assert_eq!(gate.open, disposition == Disposition::Live, "{spendings:?}");
            let needed = if gate.found.contains("unknown") { "fewer than 5 and 20" } else { "fewer than 20" };
            assert!(gate.found.starts_with(found) && gate.needed == needed, "{gate:?}");
            assert_eq!(plan.has_record_change(), disposition == Disposition::Live);
        }
    }

    #[test]
    fn a_change_whose_signals_are_gone_waits_and_one_without_any_does_not() {
        let held = hold_by_budget(live_plan(), &[], 20);
        assert_eq!((held.disposition(), held.draft().pending_confirmation), (Disposition::Pending, true));
        let gate = held.draft().gates.last().unwrap();
        assert_eq!((gate.gate, gate.open), (GateName::SourceBudget, false));
        assert_eq!(gate.found, "the signals it rests on are gone");
        let mut without = live_plan();
        without.draft.evidence.clear();
        assert_eq!(hold_by_budget(without.clone(), &[], 20), without);
        let mut nothing = live_plan();
        nothing.change = crate::action::plan::PlannedChange::Nothing;
        assert_eq!(hold_by_budget(nothing.clone(), &[], 20), nothing);
    }

    #[test]
    fn a_small_budget_leaves_an_unknown_source_something_and_none_nothing() {
        let disposition =
            |changes, all, budget| hold_by_budget(live_plan(), &[unknown_source(changes, all)], budget).disposition();
        assert_eq!(
            (disposition(0, 0, 1), disposition(1, 1, 1), disposition(0, 0, 0)),
            (Disposition::Live, Disposition::Pending, Disposition::Pending)
        );
    }

    #[test]
    fn a_matter_is_not_ended_by_the_word_of_an_unknown_source() {
        let mut plan = live_plan();
        plan.draft.target = crate::steward::decide::tests::path("matter/house.md");
        plan.draft.target_kind = RecordKind::Matter;
        let with = |spending| hold_by_budget(plan.clone(), &[spending], 20);
        assert_eq!(
            (with(unknown_source(0, 0)).disposition(), with(known(0)).disposition()),
            (Disposition::Pending, Disposition::Live)
        );
        let gate = with(unknown_source(0, 0)).draft().gates.last().cloned().unwrap();
        assert_eq!(gate.needed, "fewer than 5 and 20; only a source that was right before may close a matter");
        plan.draft.class = Some(MutationClass::Related);
        assert_eq!(hold_by_budget(plan, &[unknown_source(0, 0)], 20).disposition(), Disposition::Live);
    }

    #[test]
    fn a_budget_opens_nothing() {
        assert_eq!(hold_by_budget(shadow_plan(), &[known(0)], 20), shadow_plan());
        let held = hold_by_budget(live_plan(), &[known(1)], 0);
        assert_eq!(hold_by_budget(held.clone(), &[known(0)], 20), held);
        assert_eq!(held.disposition(), Disposition::Pending);
    }
}
