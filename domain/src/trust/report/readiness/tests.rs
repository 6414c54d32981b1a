use super::*;
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::newest::NewestCases;
use crate::trust::report::tests::{case, now};
use crate::trust::tally::CaseTally;
use proptest::prelude::*;

fn tally(agreed: u64, wrong: u64, unanswered: u64) -> ActedTally {
    let tally = CaseTally { agreed, wrong, open: unanswered, unanswered };
    ActedTally { tally, newest: NewestCases::default() }
}

/// The same, with these newest cases, the oldest first.
fn lately(acted: ActedTally, are_wrong: &[bool]) -> ActedTally {
    let mut newest = NewestCases::default();
    for (seq, is_wrong) in (0..).zip(are_wrong) {
        let feedback = if *is_wrong { ProposalFeedback::Dismissed } else { ProposalFeedback::Confirmed };
        newest.add_case(&case(seq, "gmail", feedback), now());
    }
    ActedTally { newest, ..acted }
}

fn bar() -> EvidenceBar {
    EvidenceBar::from_budget(0.05)
}

#[test]
fn the_missing_cases_are_those_that_the_bar_asks_for() {
    let wrong_first = |wrong: usize| (0..20).map(|at| at < wrong).collect::<Vec<_>>();
    let wrong_last = |wrong: usize| (0..20).map(|at| at >= 20 - wrong).collect::<Vec<_>>();
    for (acted, missing) in [
        (tally(0, 0, 0), 73),
        (tally(60, 0, 0), 13),
        (tally(72, 0, 0), 1),
        (tally(73, 0, 0), 0),
        (tally(95, 1, 0), 14),
        (tally(100, 1, 0), 9),
        (tally(166, 6, 3), 162),
        (tally(80, 0, 1), 29),
        // What nobody answered stands against it for long.
        (tally(80, 0, 60), 1_395),
        // A wrong case counts until 20 newer ones are known.
        (lately(tally(1_459, 10, 0), &wrong_first(4)), 1),
        (lately(tally(1_459, 10, 0), &wrong_last(4)), 17),
        (lately(tally(1_459, 10, 0), &wrong_last(3)), 0),
    ] {
        assert_eq!(bar().count_missing_cases(&acted), Some(missing), "{:?}", acted.tally);
    }
    assert_eq!(
        EvidenceBar::from_budget(0.0).count_missing_cases(&tally(9_000, 0, 0)),
        None,
        "nothing shows perfection"
    );
    assert_eq!(EvidenceBar::from_budget(1.0).count_missing_cases(&tally(0, 9, 0)), Some(41), "never few cases");
}

#[test]
fn a_kind_is_near_if_few_cases_are_missing_and_it_has_not_got_worse() {
    let high = |acted: ActedTally| TallyCell { all: acted.tally, through: [acted.clone(), acted] };
    let low = |acted: ActedTally| TallyCell { all: acted.tally, through: [ActedTally::default(), acted] };
    let worse: Vec<bool> = (0..20).map(|at| at >= 16).collect();
    for (cell, readiness, mode, missing) in [
        (high(tally(90, 0, 0)), Readiness::Ready, Mode::Live, 0),
        (low(tally(90, 0, 0)), Readiness::Ready, Mode::Live, 0),
        (high(tally(53, 0, 0)), Readiness::Nearly, Mode::LiveHighConfidenceOnly, 20),
        (high(tally(52, 0, 0)), Readiness::TooEarly, Mode::LiveHighConfidenceOnly, 21),
        (low(tally(60, 0, 0)), Readiness::Nearly, Mode::Live, 13),
        (high(tally(100, 6, 0)), Readiness::TooEarly, Mode::LiveHighConfidenceOnly, 151),
        (high(lately(tally(1_459, 10, 0), &worse)), Readiness::TooEarly, Mode::LiveHighConfidenceOnly, 17),
    ] {
        let expected = NearestMode { readiness, mode, missing_cases: Some(missing) };
        assert_eq!(bar().find_nearest_mode(&cell), expected, "{:?}", cell.all);
    }
    let never = EvidenceBar::from_budget(0.0).find_nearest_mode(&high(tally(500, 0, 0)));
    assert_eq!((never.readiness, never.missing_cases), (Readiness::TooEarly, None));
}

proptest! {
    #[test]
    fn with_the_missing_cases_the_bar_is_cleared_and_with_one_fewer_it_is_not(
        agreed in 0_u64..600, wrong in 0_u64..40, unanswered in 0_u64..30,
        newest in prop::collection::vec(any::<bool>(), 0..20), budget in 0.005..0.6_f64,
    ) {
        let (bar, acted) = (EvidenceBar::from_budget(budget), lately(tally(agreed, wrong, unanswered), &newest));
        let missing = bar.count_missing_cases(&acted).unwrap();
        prop_assert!(bar.is_cleared_by(&acted.with_right_cases(missing)), "{missing}");
        if missing > 0 {
            let fewer = acted.with_right_cases(missing - 1);
            prop_assert!(!bar.is_cleared_by(&fewer), "{missing}");
            prop_assert!(bar.describe_shortfall(&fewer).is_some());
        }
    }

    #[test]
    fn a_further_right_case_leaves_one_fewer_missing(agreed in 0_u64..400, wrong in 0_u64..20) {
        let acted = tally(agreed, wrong, 0);
        let missing = bar().count_missing_cases(&acted).unwrap();
        let after = bar().count_missing_cases(&acted.with_right_cases(1)).unwrap();
        prop_assert_eq!(after, missing.saturating_sub(1));
    }
}
