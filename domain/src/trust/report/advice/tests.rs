use super::*;
use crate::gates::mode::DecisionPolicy;
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::newest::NewestCases;
use crate::trust::report::tests::{case, now};
use crate::trust::tally::TallyTable;

fn tally(agreed: u64, wrong: u64, open: u64) -> ActedTally {
    ActedTally { tally: CaseTally { agreed, wrong, open, unanswered: 0 }, newest: NewestCases::default() }
}

fn unanswered(agreed: u64, open: u64, unanswered: u64) -> ActedTally {
    ActedTally { tally: CaseTally { agreed, wrong: 0, open, unanswered }, newest: NewestCases::default() }
}

/// The same, with `wrong` of the 20 newest wrong.
fn lately(acted: ActedTally, wrong: u64) -> ActedTally {
    let mut newest = NewestCases::default();
    for seq in 0..20 {
        let lesson = if seq < wrong { ProposalFeedback::Dismissed } else { ProposalFeedback::Confirmed };
        newest.add_case(&case(seq, "gmail", lesson), now());
    }
    ActedTally { newest, ..acted }
}

/// All of it with high confidence.
fn high(acted: ActedTally) -> TallyCell {
    TallyCell { all: acted.tally, through: [acted.clone(), acted] }
}

/// In `live` alone.
fn low(acted: ActedTally) -> TallyCell {
    TallyCell { all: acted.tally, through: [ActedTally::default(), acted] }
}

fn bar() -> EvidenceBar {
    EvidenceBar::from_budget(0.05)
}

fn table(sources: &[(&str, [TallyCell; 4])]) -> TallyTable {
    let mut tallies = TallyTable::new(&DecisionPolicy::default(), now());
    for (name, classes) in sources {
        let source = SourceTally { name: (*name).to_owned(), classes: classes.clone() };
        tallies.sources.insert((*name).to_owned(), source);
    }
    tallies
}

#[test]
fn the_bar_is_what_the_budget_leaves_and_never_few_cases() {
    assert_eq!((bar().cases_at_least, EvidenceBar::from_budget(0.5).cases_at_least), (Some(73), Some(MIN_CASES)));
    assert_eq!(
        EvidenceBar::from_budget(0.0).cases_at_least,
        None,
        "no number of cases shows that nothing is ever wrong"
    );
    assert!(bar().is_cleared_by(&tally(73, 0, 900)) && !bar().is_cleared_by(&tally(72, 0, 900)));
    assert!(bar().is_cleared_by(&tally(398, 9, 0)) && !bar().is_cleared_by(&tally(390, 17, 0)));
    assert!(!EvidenceBar::from_budget(0.0).is_cleared_by(&tally(1_000_000, 0, 0)));
}

#[test]
fn what_nobody_answered_while_it_was_watched_counts_as_wrong_and_what_is_fresh_does_not() {
    assert!(bar().is_cleared_by(&unanswered(80, 2_000, 0)), "of fresh ones nobody knows yet");
    assert!(bar().is_cleared_by(&unanswered(200, 2, 2)) && !bar().is_cleared_by(&unanswered(80, 1, 1)));
    assert_eq!(
        bar().describe_support("state_change from gmail", &high(unanswered(80, 2_000, 2_000))),
        "state_change from gmail is not supported: 80 of 80 agreed, but 2,000 proposed more than 14 days ago got no answer; \
         counted as wrong they leave 3.8 % [3.1, 4.8], whose lower end must reach 95.0 %"
    );
    assert_eq!(
        bar().describe_support("it", &high(unanswered(400, 9, 2))),
        "live is supported for it: 400 of 400 agreed, precision 100.0 % [99.0, 100.0]; 9 open, 2 of them without an answer \
         for 14 days"
    );
}

#[test]
fn newest_cases_that_contradict_take_the_support_away() {
    let good = tally(1_459, 10, 0);
    assert!(bar().is_cleared_by(&lately(good.clone(), 3)) && !bar().is_cleared_by(&lately(good.clone(), 4)));
    let cell = high(lately(good.clone(), 12));
    assert_eq!(bar().highest_supported_mode(&cell), None);
    let text = bar().describe_support("state_change from gmail", &cell);
    assert!(text.ends_with("but it has got worse lately: 12 of the 20 newest were wrong"), "{text}");
    let none = TallyCell::default();
    assert_eq!(choose_settings(&table(&[("gmail", [cell, none.clone(), none.clone(), none])]), &bar()), None);
    let careful = TallyCell { all: good.tally, through: [lately(good.clone(), 0), lately(good, 12)] };
    assert_eq!(bar().highest_supported_mode(&careful), Some(Mode::LiveHighConfidenceOnly));
}

#[test]
fn few_cases_can_show_that_something_is_bad_but_a_single_one_cannot() {
    let missed = |agreed, wrong| bar().is_missed_by(&tally(agreed, wrong, 0));
    assert!(!missed(0, 0) && !missed(0, 1) && missed(0, 2) && missed(5, 12));
    assert!(!missed(30, 2) && bar().is_missed_by(&unanswered(0, 4, 4)) && !bar().is_missed_by(&unanswered(0, 4, 0)));
}

#[test]
fn the_highest_mode_that_holds_is_named_in_words() {
    let says = |cell| bar().describe_support("state_change from gmail", &cell);
    assert_eq!(
        says(TallyCell { all: tally(450, 60, 3).tally, through: [tally(398, 9, 2), tally(440, 50, 3)] }),
        "live_high_confidence_only is supported for state_change from gmail: 398 of 407 agreed, precision 97.8 % \
         [95.9, 98.8]; 2 open"
    );
    assert_eq!(bar().highest_supported_mode(&high(tally(398, 9, 0))), Some(Mode::Live));
    assert_eq!(
        says(high(tally(10, 2, 0))),
        "state_change from gmail is not supported: 12 decided cases, at least 73 are needed"
    );
    assert_eq!(
        says(high(tally(80, 20, 0))),
        "state_change from gmail is not supported: 80 of 100 agreed, precision 80.0 % [71.1, 86.7], whose lower end must \
         reach 95.0 %"
    );
    let none = TallyCell { all: tally(5, 0, 4).tally, ..TallyCell::default() };
    assert_eq!(says(none), "state_change from gmail is not supported: none of its 9 proposals would be applied");
}

#[test]
fn what_may_act_is_chosen_so_that_all_of_it_is_supported() {
    let none = TallyCell::default;
    let good = || high(tally(300, 3, 5));
    let (few, bad) = (|| high(tally(9, 0, 0)), || high(tally(90, 20, 0)));
    let choice = |sources: &[(&str, [TallyCell; 4])]| choose_settings(&table(sources), &bar());
    assert_eq!(choice(&[("a", [few(), none(), none(), none()]), ("b", [bad(), bad(), none(), none()])]), None);

    let chosen = choice(&[
        ("gmail", [good(), none(), none(), few()]),
        ("slack", [good(), bad(), none(), none()]),
        ("noise", [bad(), none(), none(), none()]),
        ("new", [few(), none(), none(), none()]),
    ])
    .unwrap();
    assert_eq!(chosen.mode, Mode::LiveHighConfidenceOnly, "of as many cases the more careful mode");
    assert!(chosen.why.starts_with("live would rest on the same 606 decided cases"), "{}", chosen.why);
    assert_eq!(chosen.classes, [MutationClass::StateChange]);
    assert_eq!(chosen.sources, ["gmail", "slack"]);

    let late = low(tally(900, 5, 0));
    let bolder = choice(&[("gmail", [late, none(), none(), none()]), ("slack", [good(), none(), none(), none()])]);
    let bolder = bolder.unwrap();
    assert_eq!((bolder.mode, bolder.sources), (Mode::Live, vec!["gmail".to_owned(), "slack".to_owned()]));
    assert_eq!(bolder.why, "live rests on 1208 decided cases, live_high_confidence_only on 303");

    let weaker = TallyCell { all: tally(390, 70, 0).tally, through: [tally(300, 3, 0), tally(390, 70, 0)] };
    let careful = choice(&[("gmail", [weaker, none(), none(), none()])]).unwrap();
    assert_eq!(
        (careful.mode, careful.why.as_str()),
        (Mode::LiveHighConfidenceOnly, "live is supported for no combination of classes and sources")
    );

    let (sure, some) = (high(tally(80, 0, 0)), few());
    let both = choice(&[("gmail", [good(), good(), none(), none()]), ("slack", [some, sure, none(), none()])]).unwrap();
    assert_eq!(both.classes, [MutationClass::StateChange, MutationClass::ContextEdit]);
    assert_eq!(both.sources, ["gmail"], "a source may act in every class that is open, or not at all");
}

#[test]
fn a_name_in_a_sentence_is_one_short_line() {
    let named = |name: &str| source_label("key", &SourceTally { name: name.into(), ..SourceTally::default() });
    assert_eq!((named("gmail").as_str(), named(" \n ").as_str()), ("gmail", "key"));
    assert!(!named("a\nb\u{202e}c\u{1b}[2J").contains(['\n', '\u{202e}', '\u{1b}']));
    assert_eq!(named(&"é".repeat(900)).chars().count(), 61);
}

#[test]
fn what_just_misses_the_bar_does_not_read_as_if_it_reached_it() {
    let just = RateEstimate { count: 97, of: 100, share: Some(0.97), low: 0.949_89, high: 0.983 };
    assert_eq!(format_missed_precision(0.95, &just), "97.0 % [94.989, 98.3]");
    assert_eq!(format_missed_precision(0.95, &RateEstimate { low: 0.94, ..just }), "97.0 % [94.0, 98.3]");
}
