use super::*;
use crate::trust::case::{CaseSupporter, CitedSource};
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::tests::now;
use proptest::prelude::*;

fn bar() -> EvidenceBar {
    EvidenceBar::from_budget(0.05)
}

fn case(seq: u64, sender: &str, feedback: ProposalFeedback) -> TrustCase {
    let cited = vec![CitedSource { key: sender.into(), ceiling: None }];
    let supporters = vec![CaseSupporter { key: sender.into(), name: sender.into() }];
    TrustCase { cited, supporters, ..crate::trust::report::tests::case(seq, sender, feedback) }
}

fn count_cases(policy: &DecisionPolicy, cases: &[TrustCase]) -> SenderPass {
    let mut pass = SenderPass::new(policy, now());
    cases.iter().for_each(|case| pass.add_case(case));
    pass
}

fn right(count: u64, sender: &str) -> Vec<TrustCase> {
    (0..count).map(|seq| case(seq, sender, ProposalFeedback::Confirmed)).collect()
}

#[test]
fn a_sender_needs_73_right_cases_whatever_the_mode_is() {
    for mode in [Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live] {
        let policy = DecisionPolicy { mode, ..DecisionPolicy::default() };
        let judge = |count| count_cases(&policy, &right(count, "vendor")).judge_sender("vendor", None, &bar());
        let (lacking, ready) = (judge(60), judge(73));
        assert_eq!((lacking.missing_cases, lacking.readiness), (Some(13), Readiness::Nearly), "{lacking:?}");
        assert_eq!(lacking.classes[0].missing_cases, Some(13));
        assert!(lacking.shortfalls[0].contains("60 decided cases, at least 73 are needed"), "{lacking:?}");
        assert_eq!((ready.missing_cases, ready.readiness), (Some(0), Readiness::Ready), "{ready:?}");
        assert!(ready.shortfalls.is_empty());
        let unknown = judge(73);
        assert_eq!(unknown.name, "vendor");
    }
    let nobody = count_cases(&DecisionPolicy::default(), &right(73, "vendor")).judge_sender("other", None, &bar());
    assert_eq!((nobody.missing_cases, nobody.readiness), (Some(73), Readiness::TooEarly));
}

#[test]
fn every_class_of_a_sender_must_be_supported() {
    let mut cases = right(80, "vendor");
    cases.push(TrustCase { class: MutationClass::Related, ..case(90, "vendor", ProposalFeedback::Confirmed) });
    let judged = count_cases(&DecisionPolicy::default(), &cases).judge_sender("vendor", None, &bar());
    let missing: Vec<_> = judged.classes.iter().map(|row| (row.class.as_str(), row.missing_cases)).collect();
    assert_eq!(missing, [("state_change", Some(0)), ("related", Some(72))]);
    assert_eq!(judged.missing_cases, Some(72));
    assert!(judged.shortfalls.iter().any(|why| why.starts_with("related: 1 decided cases")), "{judged:?}");
    // The operator leaves this class to people, so the sender would not act in it.
    let policy = DecisionPolicy { related_ceiling: Ceiling::Confirm, ..DecisionPolicy::default() };
    assert!(count_cases(&policy, &cases).judge_sender("vendor", None, &bar()).shortfalls.is_empty());
}

#[test]
fn the_record_of_another_sender_does_not_let_this_one_act() {
    let mut cases = right(200, "old");
    cases.iter_mut().for_each(|case| case.cited[0].ceiling = Some(Ceiling::Act));
    cases.extend(right(3, "new"));
    let pass = count_cases(&DecisionPolicy::default(), &cases);
    let judged = pass.judge_sender("new", None, &bar());
    assert_eq!((judged.missing_cases, judged.shortfalls.len()), (Some(70), 1), "{judged:?}");
    assert!(pass.judge_sender("old", Some(Ceiling::Act), &bar()).shortfalls.is_empty(), "it may act already");
    assert_eq!(pass.list_senders(), ["old", "new"]);
}

#[test]
fn two_senders_behind_one_change_must_both_be_let_act() {
    let mut cases = right(80, "a");
    cases.iter_mut().for_each(|case| case.cited.push(CitedSource { key: "b".into(), ceiling: None }));
    let pass = count_cases(&DecisionPolicy::default(), &cases);
    assert_eq!(pass.judge_sender("a", None, &bar()).missing_cases, Some(73), "b still waits for a person");
}

#[test]
fn a_class_that_is_bad_refuses_although_other_gates_hold_it_today() {
    let mut cases = right(80, "vendor");
    // Its edits are too unsure to be made, and most of them are wrong.
    for seq in 100..104 {
        let edit = TrustCase {
            class: MutationClass::ContextEdit,
            confidence: 0.5,
            ..case(seq, "vendor", ProposalFeedback::Dismissed)
        };
        cases.push(edit);
    }
    let judged = count_cases(&DecisionPolicy::default(), &cases).judge_sender("vendor", None, &bar());
    assert_eq!(judged.shortfalls, ["context_edit: 0 of 4 were right, and other gates held all of them"]);
    assert_eq!(judged.missing_cases, Some(73));
}

#[test]
fn how_far_a_sender_may_go_now_does_not_change_the_judgement() {
    for ceiling in [None, Some(Ceiling::Act), Some(Ceiling::Confirm), Some(Ceiling::Ask)] {
        let mut cases = right(73, "vendor");
        cases.iter_mut().for_each(|case| case.cited[0].ceiling = ceiling);
        let mut pass = SenderPass::for_sender("vendor", &DecisionPolicy::default(), now());
        cases.iter().for_each(|case| pass.add_case(case));
        let judged = pass.judge_sender("vendor", None, &bar());
        assert!(judged.shortfalls.is_empty(), "{ceiling:?}: {judged:?}");
        pass = SenderPass::for_sender("vendor", &DecisionPolicy::default(), now());
        cases[..72].iter().for_each(|case| pass.add_case(case));
        assert_eq!(pass.judge_sender("vendor", None, &bar()).missing_cases, Some(1), "{ceiling:?}");
    }
}

fn any_case() -> impl Strategy<Value = TrustCase> {
    let feedback = prop_oneof![
        12 => Just(ProposalFeedback::Confirmed),
        1 => Just(ProposalFeedback::Dismissed),
        1 => Just(ProposalFeedback::Open),
    ];
    let ceiling = prop_oneof![Just(None), Just(Some(Ceiling::Act)), Just(Some(Ceiling::Ask))];
    let source = (prop_oneof![4 => Just("a"), 1 => Just("b")], ceiling);
    let class = prop_oneof![8 => Just(MutationClass::StateChange), 1 => Just(MutationClass::Related)];
    (0..500_u64, feedback, prop::collection::vec(source, 1..3), class, 0.5..1.0_f64, prop::bool::weighted(0.1))
        .prop_map(|(seq, feedback, sources, class, confidence, is_repeated)| {
            // Every case of one source has the ceiling that the source has now.
            let ceiling_of = |key: &str, ceiling| if key == "a" { None } else { ceiling };
            let cited = sources
                .iter()
                .map(|(key, ceiling)| CitedSource { key: (*key).into(), ceiling: ceiling_of(key, *ceiling) })
                .collect();
            let supporters = sources
                .iter()
                .map(|(key, _)| CaseSupporter { key: (*key).into(), name: key.to_uppercase() })
                .take(1)
                .collect();
            TrustCase { class, confidence, cited, supporters, is_repeated, ..case(seq, "a", feedback) }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The pass over all senders refuses exactly what the clearance of these very settings refuses.
    #[test]
    fn it_refuses_as_the_report_does(cases in prop::collection::vec(any_case(), 0..250)) {
        let policy = DecisionPolicy::default();
        let rules = suggest_rules(&policy);
        let mut clearance = SettingsClearance::new(with_sender(&rules, "a"), rules, now());
        cases.iter().for_each(|case| clearance.add_case(case));
        let expected = clearance.list_shortfalls(&bar());
        let judged = count_cases(&policy, &cases).judge_sender("a", None, &bar()).shortfalls;
        // It refuses no less, and more only for a class that other gates held.
        prop_assert!(judged.starts_with(&expected), "{judged:?} {expected:?}");
        prop_assert!(judged[expected.len()..].iter().all(|why| why.contains("other gates held all of them")));
        let mut alone = SenderPass::for_sender("a", &policy, now());
        cases.iter().for_each(|case| alone.add_case(case));
        prop_assert_eq!(&alone.judge_sender("a", None, &bar()).shortfalls, &judged);
        prop_assert!(alone.list_senders().iter().all(|key| *key == "a"));
    }

    /// With the missing cases, all of them right and newer, a sender may act, if no other sender acts.
    #[test]
    fn the_missing_cases_are_enough(cases in prop::collection::vec(any_case(), 0..120)) {
        let policy = DecisionPolicy::default();
        let mut cases: Vec<TrustCase> = cases;
        cases.retain(|case| case.cited.iter().all(|source| source.key == "a"));
        let judged = count_cases(&policy, &cases).judge_sender("a", None, &bar());
        let Some(missing) = judged.missing_cases else { return Ok(()) };
        let rows: Vec<(MutationClass, u64)> =
            judged.classes.iter().map(|row| (row.class, row.missing_cases.unwrap_or(0))).collect();
        let by_class: u64 = rows.iter().map(|(_, count)| count).sum();
        let rest = (MutationClass::StateChange, missing.saturating_sub(by_class));
        for (class, count) in rows.into_iter().chain([rest]).filter(|_| missing > 0) {
            for _ in 0..count {
                let seq = 1_000 + cases.len() as u64;
                cases.push(TrustCase { class, ..case(seq, "a", ProposalFeedback::Confirmed) });
            }
        }
        let after = count_cases(&policy, &cases).judge_sender("a", None, &bar());
        prop_assert!(after.shortfalls.is_empty(), "{judged:?} then {after:?}");
    }
}
