use super::*;
use crate::mode::Policy;
use crate::trust::tally::Tallies;

fn tally(agreed: u64, wrong: u64, open: u64) -> Tally {
    Tally { agreed, wrong, open }
}

/// All of it within high confidence.
fn high(tally: Tally) -> Cell {
    Cell { all: tally, through: [tally, tally] }
}

/// Within `live` alone.
fn low(tally: Tally) -> Cell {
    Cell { all: tally, through: [Tally::default(), tally] }
}

fn bar() -> Bar {
    Bar::of(0.05)
}

fn of(sources: &[(&str, [Cell; 4])]) -> Tallies {
    let mut tallies = Tallies::new(&Policy::default());
    for (name, classes) in sources {
        let source = OfSource { name: (*name).to_owned(), classes: *classes };
        tallies.sources.insert((*name).to_owned(), source);
    }
    tallies
}

#[test]
fn the_bar_is_what_the_budget_leaves_and_never_few_cases() {
    assert_eq!((bar().cases_at_least, Bar::of(0.5).cases_at_least), (Some(73), Some(MIN_CASES)));
    assert_eq!(Bar::of(0.0).cases_at_least, None, "no number of cases shows that nothing is ever wrong");
    assert!(bar().is_cleared_by(tally(73, 0, 0)) && !bar().is_cleared_by(tally(72, 0, 900)));
    assert!(bar().is_cleared_by(tally(398, 9, 0)) && !bar().is_cleared_by(tally(390, 17, 0)));
    assert!(!Bar::of(0.0).is_cleared_by(tally(1_000_000, 0, 0)));
}

#[test]
fn the_highest_mode_that_holds_is_named_in_words() {
    let says = |cell| bar().says("state_change from gmail", &cell);
    assert_eq!(
        says(Cell { all: tally(450, 60, 3), through: [tally(398, 9, 2), tally(440, 50, 3)] }),
        "live_high_confidence_only is supported for state_change from gmail: 398 of 407 agreed, precision 97.8 % \
         [95.9, 98.8]; 2 open"
    );
    assert_eq!(bar().supports(&high(tally(398, 9, 0))), Some(Mode::Live));
    assert_eq!(
        says(high(tally(10, 2, 0))),
        "state_change from gmail is not supported: 12 decided cases, at least 73 are needed"
    );
    assert_eq!(
        says(high(tally(80, 20, 0))),
        "state_change from gmail is not supported: 80 of 100 agreed, precision 80.0 % [71.1, 86.7], whose lower end must \
         reach 95.0 %"
    );
    let none = Cell { all: tally(5, 0, 4), ..Cell::default() };
    assert_eq!(says(none), "state_change from gmail is not supported: none of its 9 proposals would be acted upon");
}

#[test]
fn what_may_act_is_chosen_so_that_all_of_it_is_supported() {
    let none = Cell::default();
    let (good, few, bad) = (high(tally(300, 3, 5)), high(tally(9, 0, 0)), high(tally(90, 20, 0)));
    let choice = |sources: &[(&str, [Cell; 4])]| choose(&of(sources), &bar());
    assert_eq!(choice(&[("a", [few, none, none, none]), ("b", [bad, bad, none, none])]), None);

    let chosen = choice(&[
        ("gmail", [good, none, none, few]),
        ("slack", [good, bad, none, none]),
        ("noise", [bad, none, none, none]),
        ("new", [few, none, none, none]),
    ])
    .unwrap();
    assert_eq!(chosen.mode, Mode::LiveHighConfidenceOnly, "of as many cases the more careful mode");
    assert_eq!(chosen.classes, [MutationClass::StateChange]);
    assert_eq!(chosen.sources, ["gmail", "slack"]);

    let bolder = choice(&[("gmail", [low(tally(900, 5, 0)), none, none, none]), ("slack", [good, none, none, none])]);
    let bolder = bolder.unwrap();
    assert_eq!((bolder.mode, bolder.sources), (Mode::Live, vec!["gmail".to_owned(), "slack".to_owned()]));

    let both =
        choice(&[("gmail", [good, good, none, none]), ("slack", [few, high(tally(80, 0, 0)), none, none])]).unwrap();
    assert_eq!(both.classes, [MutationClass::StateChange, MutationClass::ContextEdit]);
    assert_eq!(both.sources, ["gmail"], "a source may act in every class that is open, or not at all");
}

#[test]
fn a_name_in_a_sentence_is_one_short_line() {
    let named = |name: &str| label("key", &OfSource { name: name.into(), ..OfSource::default() });
    assert_eq!((named("gmail").as_str(), named(" \n ").as_str()), ("gmail", "key"));
    assert!(!named("a\nb\u{202e}c\u{1b}[2J").contains(['\n', '\u{202e}', '\u{1b}']));
    assert_eq!(named(&"é".repeat(900)).chars().count(), 61);
}
