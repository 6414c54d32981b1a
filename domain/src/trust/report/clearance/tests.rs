use super::*;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::trust::case::{CaseSupporter, CitedSource};
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::tests::now;

fn rules(mode: Mode) -> ReplayRules {
    ReplayRules {
        policy: DecisionPolicy { mode, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: BTreeMap::new(),
    }
}

/// Changes of the state, from named sources.
fn narrow(mode: Mode) -> ReplayRules {
    let mut rules = ReplayRules { default_ceiling: Ceiling::Confirm, ..rules(mode) };
    rules.policy.context_edit_ceiling = Ceiling::Confirm;
    rules.policy.parent_matter_ceiling = Ceiling::Confirm;
    rules.policy.related_ceiling = Ceiling::Confirm;
    rules
}

/// A case of a source with the ceiling `act`.
fn case(seq: u64, source: &str, lesson: ProposalFeedback) -> TrustCase {
    let cited = vec![CitedSource { key: source.into(), ceiling: Some(Ceiling::Act) }];
    let voices = vec![CaseSupporter { key: source.into(), name: source.into() }];
    TrustCase { cited, supporters: voices, ..crate::trust::report::tests::case(seq, source, lesson) }
}

fn right(count: u64, source: &str) -> Vec<TrustCase> {
    (0..count).map(|seq| case(seq, source, ProposalFeedback::Confirmed)).collect()
}

fn counted(rules: ReplayRules, before: ReplayRules, cases: &[TrustCase]) -> SettingsClearance {
    let mut clearance = SettingsClearance::new(rules, before, now());
    cases.iter().for_each(|case| clearance.add_case(case));
    clearance
}

fn lacking(rules: ReplayRules, before: ReplayRules, cases: &[TrustCase]) -> Vec<String> {
    counted(rules, before, cases).list_shortfalls(&EvidenceBar::from_budget(0.05))
}

#[test]
fn bolder_settings_need_cases_and_more_careful_ones_do_not() {
    let (shadow, live) = (narrow(Mode::Shadow), narrow(Mode::Live));
    let none = lacking(live.clone(), shadow.clone(), &[]);
    assert_eq!(none.len(), 2, "all cases, and the class: {none:?}");
    assert_eq!(none[0], "all cases that would be live: 0 decided cases, at least 73 are needed");
    assert_eq!(lacking(live.clone(), shadow.clone(), &right(72, "gmail")).len(), 2, "all cases, and the class");
    assert!(lacking(live.clone(), shadow.clone(), &right(73, "gmail")).is_empty());
    assert!(lacking(shadow, live.clone(), &[]).is_empty() && lacking(live.clone(), live, &[]).is_empty());
}

#[test]
fn what_is_opened_must_stand_by_itself() {
    let careful = rules(Mode::LiveHighConfidenceOnly);
    let related = |seq, lesson| TrustCase { class: MutationClass::Related, ..case(seq, "gmail", lesson) };
    let mut held = careful.clone();
    held.policy.related_ceiling = Ceiling::Confirm;
    let mut cases = right(1_400, "gmail");
    let never = lacking(careful.clone(), held.clone(), &cases);
    assert_eq!(never, ["related: 0 decided cases, at least 73 are needed"], "a class is opened by its own cases");
    cases.extend((0..30).map(|seq| related(seq, ProposalFeedback::Confirmed)));
    assert_eq!(lacking(careful.clone(), held.clone(), &cases), ["related: 30 decided cases, at least 73 are needed"]);
    cases.extend((30..80).map(|seq| related(seq, ProposalFeedback::Confirmed)));
    assert!(lacking(careful.clone(), held, &cases).is_empty());

    let weak = (0..10).map(|seq| TrustCase { confidence: 0.7, ..case(seq, "gmail", ProposalFeedback::Dismissed) });
    cases.extend(weak);
    let shortfalls = lacking(rules(Mode::Live), careful, &cases);
    let expected = "state_change is known to be below the bar: 0 agreed, 10 wrong";
    assert!(shortfalls.iter().any(|why| why.starts_with(expected)), "{shortfalls:?}");
}

#[test]
fn a_bad_source_does_not_hide_behind_good_ones() {
    let mut cases = right(1_400, "gmail");
    cases.extend((0..5).map(|seq| case(seq, "noise", ProposalFeedback::Dismissed)));
    let shortfalls = lacking(narrow(Mode::Live), narrow(Mode::Shadow), &cases);
    assert_eq!(shortfalls.len(), 1, "{shortfalls:?}");
    assert!(shortfalls[0].starts_with("state_change from noise is known to be below the bar"), "{shortfalls:?}");
    let mut held = narrow(Mode::Live);
    held.sources = [("noise".to_owned(), Ceiling::Confirm)].into();
    let shortfalls = lacking(held, narrow(Mode::Shadow), &cases);
    assert_eq!(shortfalls, ["noise: set `ceiling: confirm` in its instinct first"]);
}

#[test]
fn a_source_may_be_opened_by_name_and_what_is_to_be_set_is_told() {
    let shut = narrow(Mode::Live);
    let mut open = shut.clone();
    open.sources = [("gmail".to_owned(), Ceiling::Act)].into();
    let unset = |case: TrustCase| {
        let cited = case.cited.iter().map(|source| CitedSource { ceiling: None, ..source.clone() }).collect();
        TrustCase { cited, ..case }
    };
    let right = |count, source| right(count, source).into_iter().map(unset).collect::<Vec<_>>();
    let few = counted(open.clone(), shut.clone(), &right(9, "gmail"));
    assert!(
        few.is_bolder() && !few.list_shortfalls(&EvidenceBar::from_budget(0.05)).is_empty(),
        "to open a source is bolder"
    );
    let many = counted(open.clone(), shut.clone(), &right(90, "gmail"));
    assert!(many.list_shortfalls(&EvidenceBar::from_budget(0.05)).is_empty());
    assert_eq!((many.ceilings_to_set(), many.uncited_sources()), (open.sources.clone(), Vec::new()));
    let other = counted(open, shut, &right(90, "slack"));
    assert_eq!(other.uncited_sources(), ["gmail"]);
}

#[test]
fn a_mode_that_opens_is_no_reason_for_what_never_had_a_case() {
    let cases = right(400, "gmail");
    assert!(lacking(narrow(Mode::Live), narrow(Mode::Shadow), &cases).is_empty());
    let mut wide = narrow(Mode::Live);
    wide.policy.context_edit_ceiling = Ceiling::Act;
    let mut was = narrow(Mode::Shadow);
    was.policy.context_edit_ceiling = Ceiling::Act;
    assert_eq!(lacking(wide, was, &cases), ["context_edit: 0 decided cases, at least 73 are needed"]);
    let anybody = |mode| ReplayRules { default_ceiling: Ceiling::Act, ..narrow(mode) };
    let shortfalls = lacking(anybody(Mode::Live), anybody(Mode::Shadow), &cases);
    assert!(shortfalls.len() == 1 && shortfalls[0].contains("unnamed sources"), "{shortfalls:?}");
    let shortfalls = lacking(anybody(Mode::Live), narrow(Mode::Live), &cases);
    assert!(shortfalls[0].contains("unnamed sources"), "to open them is bolder as well: {shortfalls:?}");
}

#[test]
fn a_threshold_goes_no_lower_than_what_was_ever_decided() {
    let at = |confidence| {
        let mut rules = narrow(Mode::Live);
        (rules.policy.confidence_threshold, rules.policy.high_confidence_threshold) = (confidence, 0.95);
        rules
    };
    let cases: Vec<TrustCase> = right(400, "gmail")
        .into_iter()
        .map(|case| TrustCase { confidence: 0.7 + case.seq as f64 / 1_500.0, ..case })
        .collect();
    assert!(lacking(at(0.7), at(0.9), &cases).is_empty());
    let shortfalls = lacking(at(0.0), at(0.9), &cases);
    assert!(
        shortfalls.iter().any(|why| why.contains("no decided case that would be live lies below 0.70")),
        "{shortfalls:?}"
    );
    let shortfalls = lacking(at(0.65), at(0.7), &cases);
    assert!(shortfalls.iter().any(|why| why.starts_with("a threshold of 0.65")), "{shortfalls:?}");
    let high = right(400, "gmail");
    let shortfalls = lacking(at(0.85), at(0.9), &high);
    assert!(shortfalls.iter().any(|why| why.contains("threshold")), "nothing newly live is no reason: {shortfalls:?}");
}
