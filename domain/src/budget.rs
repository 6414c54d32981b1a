//! What a source may change in a day without a human's word.
//!
//! A sender who convinces the clerk once convinces it a thousand times. So the live changes that rest on
//! one source are counted over 24 hours, those of all sources that nobody knows together, because a name
//! costs nothing; what is beyond the budget waits like any other pending change. So does the end of a whole
//! matter at a stranger's word: with it nothing would be heard of its tasks any more. The counts come from the
//! audit records ([`crate::audit`]) and are taken when a plan lands, one plan after the other.

use crate::decide::{Gate, GateName};
use crate::mutation::MutationClass;
use crate::path::RecordKind;
use crate::plan::{Landing, Plan};
use chrono::TimeDelta;

/// The window in which changes are counted: 24 h.
pub const BUDGET_WINDOW: TimeDelta = TimeDelta::hours(24);
/// Live changes of one source in the window (`STEWARD_LIVE_PER_SOURCE_DAY`): 20. Many more than one sender
/// settles in a day, and few enough to be taken back by hand.
pub const LIVE_PER_SOURCE_DAY: u32 = 20;

/// How much one source has changed lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Whose account it is, for people.
    pub source: String,
    /// It was right before.
    pub known: bool,
    /// Live changes within [`BUDGET_WINDOW`], this one not counted.
    pub changes: u32,
}

impl Plan {
    /// The same plan, held back for a human if every source that speaks for the change has used up its
    /// budget: a source that has not is not held back by the company it keeps. One that would not be
    /// live stays as it is.
    #[must_use]
    pub fn within_budget(mut self, spendings: &[Spending], budget: u32) -> Self {
        if spendings.is_empty() || self.landing() != Landing::Live {
            return self;
        }
        let draft = &self.draft;
        let ends_a_matter =
            draft.target.kind() == RecordKind::Matter && draft.class == Some(MutationClass::StateChange);
        let may = |s: &&Spending| s.changes < budget && (s.known || !ends_a_matter);
        let shown = spendings.iter().find(may).or_else(|| spendings.iter().min_by_key(|s| s.changes));
        let open = spendings.iter().any(|s| may(&s));
        let found = shown.map(|s| format!("{} live changes in 24 h from {}", s.changes, s.source)).unwrap_or_default();
        let known = if ends_a_matter { ", for a matter from a source that was right before" } else { "" };
        self.draft.gates.push(Gate::new(GateName::SourceBudget, open, found, format!("fewer than {budget}{known}")));
        if !open {
            self.draft.landing = Landing::Pending;
            self.draft.pending_confirmation = true;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::tests::live_plan;

    fn spent(changes: &[u32]) -> Vec<Spending> {
        changes.iter().map(|changes| Spending { source: "mail-a".into(), known: false, changes: *changes }).collect()
    }

    #[test]
    fn a_change_beyond_its_sources_budget_waits_and_says_why() {
        for (changes, landing) in [
            (&[0][..], Landing::Live),
            (&[19], Landing::Live),
            (&[20], Landing::Pending),
            (&[20, 500], Landing::Pending),
            (&[20, 3], Landing::Live),
            (&[], Landing::Live),
        ] {
            let plan = live_plan().within_budget(&spent(changes), 20);
            assert_eq!(plan.landing(), landing, "{changes:?}");
            assert_eq!(plan.draft().pending_confirmation, landing == Landing::Pending);
            let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::SourceBudget);
            let least = changes.iter().min();
            assert_eq!(gate.map(|g| g.open), least.map(|least| *least < 20), "{changes:?}");
            assert!(
                gate.is_none_or(|g| g.found.starts_with(&least.unwrap().to_string()) && g.needed == "fewer than 20")
            );
            assert_eq!(plan.changes_the_record(), landing == Landing::Live);
        }
    }

    #[test]
    fn a_matter_is_not_ended_by_a_strangers_word() {
        let mut plan = live_plan();
        plan.draft.target = crate::decide::tests::path("matter/house.md");
        let with = |known| {
            let spending = Spending { source: "bank".into(), known, changes: 0 };
            plan.clone().within_budget(&[spending], 20)
        };
        assert_eq!((with(false).landing(), with(true).landing()), (Landing::Pending, Landing::Live));
        let gate = with(false).draft().gates.last().cloned().unwrap();
        assert_eq!(gate.needed, "fewer than 20, for a matter from a source that was right before");
        plan.draft.class = Some(MutationClass::Related);
        assert_eq!(plan.within_budget(&spent(&[0]), 20).landing(), Landing::Live);
    }

    #[test]
    fn a_budget_opens_nothing() {
        let braked = live_plan().braked().within_budget(&spent(&[0]), 20);
        assert_eq!(braked, live_plan().braked());
        let held = live_plan().within_budget(&spent(&[1]), 0);
        assert_eq!(held.clone().within_budget(&spent(&[0]), 20), held);
        assert_eq!(held.landing(), Landing::Pending);
        assert_eq!(held.braked().landing(), Landing::Shadow);
    }
}
