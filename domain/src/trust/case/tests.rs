use super::*;
use crate::gates::landing::tests::hold_by_trust;
use crate::gates::mode::Mode;
use crate::gates::result::GateName;
use crate::steward::clerk::Judgement;
use crate::steward::decide::tests::{at, build_check, clerk, evidence, run, verdict};
use crate::steward::decide::{DecisionCase as Decided, decide};
use crate::trust::demotion::{ChangeSupporter, ModeCap, ModeCaps};
use proptest::prelude::*;

fn ceiling() -> impl Strategy<Value = Ceiling> {
    prop_oneof![2 => Just(Ceiling::Act), 1 => Just(Ceiling::Confirm), 1 => Just(Ceiling::Ask)]
}

fn rules() -> impl Strategy<Value = ReplayRules> {
    let mode = prop_oneof![Just(Mode::Shadow), Just(Mode::LiveHighConfidenceOnly), Just(Mode::Live)];
    (mode, 0.0..=1.0, 0.0..=1.0, ceiling()).prop_map(|(mode, confidence, high, state_change_ceiling)| ReplayRules {
        policy: DecisionPolicy {
            mode,
            confidence_threshold: confidence,
            high_confidence_threshold: high,
            state_change_ceiling,
            ..DecisionPolicy::default()
        },
        default_ceiling: Ceiling::Act,
        sources: BTreeMap::new(),
    })
}

/// The input of a decision, besides the policy.
#[derive(Clone, Copy, Debug)]
struct DecisionInput {
    confidence: f64,
    effect: f64,
    observations: u32,
    source: Ceiling,
    matter: Ceiling,
    shadow: bool,
}

/// A signal about which everything is sure.
const SURE: DecisionInput = DecisionInput {
    confidence: 0.9,
    effect: 0.97,
    observations: 60,
    source: Ceiling::Act,
    matter: Ceiling::Act,
    shadow: false,
};

fn input() -> impl Strategy<Value = DecisionInput> {
    (0.0..=1.0_f64, 0.5..=1.0_f64, 0_u32..80, ceiling(), ceiling(), prop::bool::weighted(0.1)).prop_map(
        |(confidence, effect, observations, source, matter, shadow)| DecisionInput {
            confidence,
            effect,
            observations,
            source,
            matter,
            shadow,
        },
    )
}

/// A decision with the lowest ceiling that humans had set for it.
fn decided(policy: &DecisionPolicy, input: DecisionInput) -> TrustCase {
    let DecisionInput { confidence, effect, observations, source, matter, shadow } = input;
    let mut cited = evidence("gmail", effect, observations);
    cited.ceiling = source;
    let mut check = build_check(b"bytes", Some("open"), vec![cited]);
    check.matter_ceiling = matter;
    let plan = decide(&Decided {
        check: &check,
        policy,
        matter_policy: None,
        verdict: &verdict(Judgement::LikelyDone, confidence, &check),
        clerk: &clerk(),
        caller_says_shadow: shadow,
        workflow: run("run-1"),
        at: at("2026-11-21T09:30:15.123Z"),
    });
    TrustCase::from_draft(plan.draft(), source.min(matter)).unwrap()
}

prop_compose! {
    fn settled()(rules in rules(), input in input()) -> (ReplayRules, TrustCase) {
        let case = decided(&rules.policy, input);
        (rules, case)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_decision_replayed_under_its_own_settings_lands_as_it_did((rules, case) in settled()) {
        prop_assert_eq!(rules.replay_case(&case), case.disposition);
        prop_assert_eq!(rules.closed_gates(&case), case.closed);
    }

    #[test]
    fn a_decision_replayed_under_other_settings_lands_as_if_taken_under_them(
        input in input(),
        (then, other) in (rules(), rules()),
    ) {
        let recorded = decided(&then.policy, input);
        prop_assert_eq!(other.replay_case(&recorded), decided(&other.policy, input).disposition);
    }

    #[test]
    fn more_careful_settings_never_act_more((rules, case) in settled(), narrower in ceiling(), lower in 0.0..=1.0_f64) {
        let act = |policy: DecisionPolicy| ReplayRules { policy, ..rules.clone() }.replay_case(&case) == Disposition::Live;
        let policy = rules.policy.clone();
        prop_assume!(!act(policy.clone()));
        let shadow = DecisionPolicy { mode: Mode::Shadow, ..policy.clone() };
        let state_change_ceiling = narrower.min(policy.state_change_ceiling);
        let held = DecisionPolicy { state_change_ceiling, ..policy.clone() };
        let raised = |threshold: f64| threshold + (1.0 - threshold) * lower;
        let confidence_threshold = raised(policy.confidence_threshold);
        let high_confidence_threshold = raised(policy.high_confidence_threshold);
        let surer = DecisionPolicy { confidence_threshold, high_confidence_threshold, ..policy };
        prop_assert!(![shadow, held, surer].into_iter().any(act));
    }
}

fn wide() -> (ReplayRules, TrustCase) {
    let policy = DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() };
    let case = decided(&policy, SURE);
    (ReplayRules { policy, default_ceiling: Ceiling::Confirm, sources: BTreeMap::new() }, case)
}

#[test]
fn a_default_ceiling_holds_only_what_cites_a_source_without_one() {
    let (rules, case) = wide();
    assert_eq!(rules.replay_case(&case), Disposition::Live);
    let unset = TrustCase { cited: vec![CitedSource { key: "gmail".into(), ceiling: None }], ..case.clone() };
    assert_eq!(rules.replay_case(&unset), Disposition::Pending);
    let open = ReplayRules { default_ceiling: Ceiling::Act, ..rules };
    assert_eq!(open.replay_case(&unset), Disposition::Live);
}

#[test]
fn a_source_that_is_asked_about_has_the_ceiling_that_is_asked_for() {
    let (mut rules, mut case) = wide();
    let cites = |key: &str, ceiling| CitedSource { key: key.into(), ceiling };
    case.cited = vec![cites("gmail", None), cites("bank", Some(Ceiling::Act))];
    assert_eq!(rules.replay_case(&case), Disposition::Pending);
    rules.sources = [("gmail".to_owned(), Ceiling::Act)].into();
    assert_eq!(rules.replay_case(&case), Disposition::Live);
    rules.sources = [("gmail".to_owned(), Ceiling::Act), ("bank".to_owned(), Ceiling::Confirm)].into();
    assert_eq!(rules.replay_case(&case), Disposition::Pending, "the lowest of all cited ones holds");
    case.ceiling = Ceiling::Ask;
    rules.sources = [("gmail".to_owned(), Ceiling::Act)].into();
    assert_eq!(rules.replay_case(&case), Disposition::Pending, "a matter's own is not asked about");
}

#[test]
fn settings_are_bolder_where_any_part_of_them_is() {
    let (rules, _) = wide();
    let with = |change: fn(&mut ReplayRules)| {
        let mut other = rules.clone();
        change(&mut other);
        other
    };
    for bolder in [
        with(|r| r.policy.confidence_threshold -= 0.01),
        with(|r| r.policy.high_confidence_threshold -= 0.01),
        with(|r| r.default_ceiling = Ceiling::Act),
    ] {
        assert!(bolder.is_bolder_than(&rules) && !rules.is_bolder_than(&bolder), "{bolder:?}");
    }
    let careful = with(|r| r.policy.mode = Mode::LiveHighConfidenceOnly);
    assert!(rules.is_bolder_than(&careful) && !careful.is_bolder_than(&rules));
    let held = with(|r| r.policy.related_ceiling = Ceiling::Confirm);
    assert!(rules.is_bolder_than(&held) && !held.is_bolder_than(&rules));
    assert!(!rules.is_bolder_than(&rules));
}

#[test]
fn a_demotion_is_left_out_and_what_no_setting_moves_stays() {
    let (rules, case) = wide();
    let behind = |gate| rules.replay_case(&TrustCase { closed: case.closed.with_gate(gate), ..case.clone() });
    for gate in [GateName::Trust, GateName::Mode, GateName::Confidence, GateName::Ceiling] {
        assert_eq!(behind(gate), Disposition::Live, "{gate:?}");
    }
    assert_eq!(behind(GateName::Caller), Disposition::Shadow);
    for gate in [GateName::Discretion, GateName::Steward, GateName::SourceBudget, GateName::RateGuard] {
        assert_eq!(behind(gate), Disposition::Pending, "{gate:?}");
    }
    let caps = ModeCaps::from([(
        crate::trust::mark::TrustSubject::Source("gmail".into()),
        ModeCap { mode: Some(Mode::Shadow), since: at("2026-11-20T00:00:00Z"), seq: 1 },
    )]);
    let gmail = ChangeSupporter { key: "gmail".into(), name: "gmail".into(), is_unknown: false };
    let lowered = hold_by_trust(crate::steward::decide::tests::live_plan(), &[gmail], &caps);
    let recorded = TrustCase::from_draft(lowered.draft(), Ceiling::Act).unwrap();
    assert_eq!((recorded.disposition, rules.replay_case(&recorded)), (Disposition::Shadow, Disposition::Live));
}

#[test]
fn an_act_that_was_proposed_weakly_again_is_still_what_its_boldest_proposal_was() {
    let input = DecisionInput { confidence: 0.97, observations: 80, ..SURE };
    let sure = decided(&DecisionPolicy::default(), input);
    let weak = TrustCase { confidence: 0.55, ..sure.clone() };
    let before = EarlierProposal { confidence: sure.confidence, closed: sure.closed };
    let again = TrustCase { earlier: vec![before], ..weak.clone() };
    let live = ReplayRules {
        policy: DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: Default::default(),
    };
    assert_eq!(live.replay_case(&weak), Disposition::Pending);
    assert_eq!(live.replay_case(&again), Disposition::Live, "the first one would have been made at once");
    let held = EarlierProposal { closed: sure.closed.with_gate(GateName::Steward), ..before };
    assert_eq!(live.replay_case(&TrustCase { earlier: vec![held], ..weak }), Disposition::Pending);
}
