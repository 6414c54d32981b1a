//! If two processes differ, the stricter one wins, and the record shows which gate it was.

use super::*;
use crate::gates::closed::ClosedGates;
use crate::gates::mode::Mode;
use crate::gates::result::GateName;
use crate::gates::source_budget::LIVE_PER_SOURCE_DAY;
use crate::steward::clerk::Judgement;
use crate::steward::decide::tests::{Wide, live, live_plan};
use proptest::prelude::*;
use proptest::sample::select;

fn in_mode(mode: Mode) -> DecisionPolicy {
    DecisionPolicy { mode, ..live() }
}

pub(crate) fn land(plan: Plan, policy: &DecisionPolicy, ceiling: Ceiling) -> Plan {
    plan.hold_by_policy(policy, ceiling)
}

/// Applies a plan in a live process in which only these facts could hold it.
fn land_with(plan: Plan, change: impl FnOnce(&mut LandingFacts)) -> Plan {
    land_within(plan, LIVE_PER_SOURCE_DAY, change)
}

fn land_within(plan: Plan, live_per_source_day: u32, change: impl FnOnce(&mut LandingFacts)) -> Plan {
    let policy = live();
    let settings = LandingSettings { policy: &policy, live_per_source_day };
    let mut facts = LandingFacts {
        ceiling: Ceiling::Act,
        supporters: Vec::new(),
        mode_caps: ModeCaps::new(),
        spendings: vec![SourceSpending { source: "bank".into(), changes: 0, unknown_changes: None }],
        matter_policies: Vec::new(),
    };
    change(&mut facts);
    plan.hold_at_landing(settings, &facts, "2026-11-21T12:00:00Z".parse().unwrap())
}

pub(crate) fn hold_by_budget(plan: Plan, spendings: &[SourceSpending], budget: u32) -> Plan {
    land_within(plan, budget, |facts| facts.spendings = spendings.to_vec())
}

pub(crate) fn hold_by_trust(plan: Plan, supporters: &[ChangeSupporter], caps: &ModeCaps) -> Plan {
    land_with(plan, |facts| {
        facts.supporters = supporters.to_vec();
        facts.mode_caps = caps.clone();
    })
}

pub(crate) fn hold_by_notes(plan: Plan, notes: &[MatterPolicyUsage], now: DateTime<Utc>) -> Plan {
    let policy = live();
    let settings = LandingSettings { policy: &policy, live_per_source_day: LIVE_PER_SOURCE_DAY };
    let facts = LandingFacts {
        ceiling: Ceiling::Act,
        supporters: Vec::new(),
        mode_caps: ModeCaps::new(),
        spendings: vec![SourceSpending { source: "bank".into(), changes: 0, unknown_changes: None }],
        matter_policies: notes.to_vec(),
    };
    plan.hold_at_landing(settings, &facts, now)
}

fn gate(plan: &Plan, name: GateName) -> GateResult {
    plan.draft().gates.iter().find(|gate| gate.gate == name).unwrap().clone()
}

#[test]
fn a_plan_of_a_live_process_lands_as_the_lower_mode_of_the_one_that_lands_it() {
    let table = [
        (Mode::Live, 0.7, Disposition::Live),
        (Mode::LiveHighConfidenceOnly, 0.9, Disposition::Live),
        (Mode::LiveHighConfidenceOnly, 0.7, Disposition::Pending),
        (Mode::Shadow, 0.9, Disposition::Shadow),
    ];
    for (mode, sure, disposition) in table {
        let decided = Wide::with(|w| w.verdict.confidence = sure).decide();
        assert_eq!(decided.disposition(), Disposition::Live);
        let landed = land(decided.clone(), &in_mode(mode), Ceiling::Act);
        let draft = landed.draft();
        assert_eq!((landed.disposition(), draft.mode), (disposition, mode), "{mode:?} {sure}");
        assert_eq!(draft.pending_confirmation, disposition == Disposition::Pending);
        assert_eq!(landed.has_record_change(), disposition == Disposition::Live);
        assert_eq!(gate(&landed, GateName::Mode).found, mode.as_str());
        let needed = if mode == Mode::LiveHighConfidenceOnly { ">= 0.85" } else { ">= 0.60" };
        assert_eq!(gate(&landed, GateName::Confidence).needed, needed);
        assert_eq!((landed.id(), draft.gates.len()), (decided.id(), decided.draft().gates.len()));
    }
}

#[test]
fn a_plan_of_a_lower_mode_is_not_raised_by_a_process_that_allows_more() {
    for mode in [Mode::Shadow, Mode::LiveHighConfidenceOnly] {
        for sure in [0.7, 0.9] {
            let decided = Wide::with(|w| {
                w.policy.mode = mode;
                w.verdict.confidence = sure;
            });
            let decided = decided.decide();
            assert_eq!(land(decided.clone(), &live(), Ceiling::Act), decided, "{mode:?} {sure}");
        }
    }
    let asked_for_shadow = Wide::with(|w| w.caller_says_shadow = true).decide();
    assert_eq!(land(asked_for_shadow.clone(), &live(), Ceiling::Act), asked_for_shadow);
}

#[test]
fn a_higher_threshold_at_landing_holds_and_a_lower_one_opens_nothing() {
    let unsure = || Wide::with(|w| w.verdict.confidence = 0.7).decide();
    let stricter = DecisionPolicy { confidence_threshold: 0.8, ..live() };
    let held = land(unsure(), &stricter, Ceiling::Act);
    assert_eq!(
        (held.disposition(), gate(&held, GateName::Confidence).needed.as_str()),
        (Disposition::Pending, ">= 0.80")
    );
    let decided = Wide::with(|w| {
        w.policy = stricter.clone();
        w.verdict.confidence = 0.7;
    });
    let decided = decided.decide();
    assert_eq!(decided.disposition(), Disposition::Pending);
    assert_eq!(land(decided.clone(), &live(), Ceiling::Act), decided);
}

#[test]
fn a_ceiling_that_was_lowered_since_holds_the_change_and_its_confirmation() {
    for (of_humans, of_the_class, confirmable) in [
        (Ceiling::Confirm, Ceiling::Act, true),
        (Ceiling::Ask, Ceiling::Act, false),
        (Ceiling::Act, Ceiling::Confirm, true),
        (Ceiling::Act, Ceiling::Ask, false),
    ] {
        let policy = DecisionPolicy { state_change_ceiling: of_the_class, ..live() };
        let landed = land(live_plan(), &policy, of_humans);
        let lowest = of_humans.min(of_the_class);
        assert_eq!(
            (landed.disposition(), gate(&landed, GateName::Ceiling).found.as_str()),
            (Disposition::Pending, lowest.as_str())
        );
        assert_eq!((landed.draft().confirmable, landed.draft().pending_confirmation), (confirmable, true));
    }
}

#[test]
fn a_decision_that_changes_nothing_stays_recorded_and_says_the_lower_mode() {
    let recorded = Wide::with(|w| w.verdict.decision = Judgement::StillActive).decide();
    let landed = land(recorded, &in_mode(Mode::Shadow), Ceiling::Ask);
    assert_eq!((landed.disposition(), landed.draft().mode), (Disposition::Recorded, Mode::Shadow));
}

proptest! {
    /// The disposition is never higher than what either of two processes allows, and the gates show why.
    #[test]
    fn what_lands_is_the_lower_of_both(
        modes in (select(vec![Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live]), select(vec![Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live])),
        thresholds in (select(vec![0.5, 0.6, 0.8]), select(vec![0.5, 0.6, 0.8])),
        ceilings in (select(vec![Ceiling::Ask, Ceiling::Confirm, Ceiling::Act]), select(vec![Ceiling::Ask, Ceiling::Confirm, Ceiling::Act])),
        sure in select(vec![0.4, 0.55, 0.7, 0.9]),
    ) {
        let policy = |mode, confidence_threshold, state_change_ceiling| DecisionPolicy { mode, confidence_threshold, state_change_ceiling, ..live() };
        let decided_with = policy(modes.0, thresholds.0, ceilings.0);
        let landed_with = policy(modes.1, thresholds.1, ceilings.1);
        let decided_by = |policy: &DecisionPolicy| Wide::with(|w| { w.policy = policy.clone(); w.verdict.confidence = sure; }).decide();
        let (there, here) = (decided_by(&decided_with), decided_by(&landed_with));
        let landed = land(there.clone(), &landed_with, Ceiling::Act);
        prop_assert!(landed.disposition() <= there.disposition().min(here.disposition()), "{landed:?}");
        prop_assert_eq!(landed.draft().mode, modes.0.min(modes.1));
        prop_assert_eq!(ClosedGates::from_gates(&landed.draft().gates).decide_disposition(true), landed.disposition());
        prop_assert_eq!(landed.draft().confirmable, there.draft().confirmable && here.draft().confirmable);
        prop_assert_eq!(land(landed.clone(), &landed_with, Ceiling::Act), landed);
    }
}
