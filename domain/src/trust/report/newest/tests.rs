use super::*;
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::tests::{case, now};
use chrono::TimeDelta;

/// Numbers that look random and are the same in every run (the generator of Numerical Recipes).
fn rolls(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn known(seq: u64, is_wrong: bool) -> TrustCase {
    case(seq, "gmail", if is_wrong { ProposalFeedback::Dismissed } else { ProposalFeedback::Confirmed })
}

/// The share of false alarms if there is a check after every case.
fn false_alarms(wrong: f64, checks: u64) -> f64 {
    let mut roll = rolls(7);
    let mut newest = NewestCases::default();
    let mut alarms = 0;
    for seq in 0..checks {
        newest.add_case(&known(seq, roll() < wrong), now());
        alarms += u64::from(newest.count_wrong().is_surely_below(0.95));
    }
    alarms as f64 / checks as f64
}

#[test]
fn of_a_good_source_it_is_hardly_ever_said_that_it_got_worse() {
    for (wrong, at_least, at_most) in
        [(0.01, 0.0, 0.0002), (0.02, 0.0003, 0.001), (0.03, 0.0015, 0.004), (0.05, 0.012, 0.02)]
    {
        let share = false_alarms(wrong, 100_000);
        assert!((at_least..=at_most).contains(&share), "{wrong}: {share}");
    }
}

#[test]
fn a_source_that_goes_bad_is_found_within_a_week() {
    let mut roll = rolls(11);
    let mut first_alarm = |wrong: f64| {
        let mut newest = NewestCases::default();
        (0..100).for_each(|seq| newest.add_case(&known(seq, roll() < 0.01), now()));
        (1..200).find(|nth| {
            newest.add_case(&known(100 + nth, roll() < wrong), now());
            newest.count_wrong().is_surely_below(0.95)
        })
    };
    let mut median = |wrong: f64| {
        let mut cases: Vec<u64> = (0..1_000).map(|_| first_alarm(wrong).unwrap_or(u64::MAX)).collect();
        cases.sort_unstable();
        cases[500]
    };
    assert_eq!((median(0.6), median(0.3)), (6, 12));
}

/// Ten proposals a day, of which 2 % are wrong. In shadow, wrong ones are dismissed at once and right ones are done by
/// hand up to 5 days later. Live, right ones are known after 7 days.
#[test]
fn answers_that_come_later_than_others_raise_no_alarm() {
    let mut roll = rolls(13);
    for (disposition, wait) in [(Disposition::Shadow, 5.0), (Disposition::Live, 7.0)] {
        let outcomes: Vec<(bool, f64)> = (0..3_000)
            .map(|_| (roll() < 0.02, wait * if disposition == Disposition::Live { 1.0 } else { roll() }))
            .collect();
        let alarms = (10..300_u64).filter(|day| {
            let mut newest = NewestCases::default();
            for (seq, (is_wrong, wait)) in
                outcomes.iter().enumerate().take(10 * *day as usize).skip((10 * *day as usize).saturating_sub(150))
            {
                let age = *day as f64 - seq as f64 / 10.0;
                let feedback = match (is_wrong, age >= *wait) {
                    (true, _) => ProposalFeedback::Dismissed,
                    (false, true) => ProposalFeedback::DoneAnyway,
                    (false, false) => ProposalFeedback::Open,
                };
                newest.add_case(&TrustCase { disposition, ..case(seq as u64, "gmail", feedback) }, now());
            }
            newest.count_wrong().is_surely_below(0.95)
        });
        let alarms = alarms.count();
        assert!(alarms <= 3, "{disposition:?}: on {alarms} of 290 days");
    }
}

#[test]
fn only_what_is_known_counts_and_live_changes_that_nobody_took_back() {
    let lately = |cases: &[TrustCase]| {
        let mut newest = NewestCases::default();
        cases.iter().for_each(|case| newest.add_case(case, now()));
        newest.count_wrong()
    };
    let open = case(1, "gmail", ProposalFeedback::Open);
    assert_eq!(lately(std::slice::from_ref(&open)), NewestTally { of: 0, wrong: 0 });
    assert_eq!(
        lately(&[TrustCase { disposition: Disposition::Live, ..open.clone() }]),
        NewestTally { of: 1, wrong: 0 }
    );
    assert_eq!(lately(&[TrustCase { since: now() - TimeDelta::days(14), ..open }]), NewestTally { of: 1, wrong: 1 });
    let few: Vec<TrustCase> = (0..19).map(|seq| known(seq, true)).collect();
    assert!(!lately(&few).is_surely_below(0.95), "fewer than the kept number say nothing");
}

#[test]
fn the_newest_are_the_newest_in_whatever_order_they_come() {
    let all: Vec<TrustCase> = (0..50).map(|seq| known(seq, seq >= 30 && seq % 4 == 0)).collect();
    let newest_of = |cases: &mut dyn Iterator<Item = &TrustCase>| {
        let mut newest = NewestCases::default();
        cases.for_each(|case| newest.add_case(case, now()));
        newest
    };
    let forth = newest_of(&mut all.iter());
    assert_eq!(forth.count_wrong(), NewestTally { of: 20, wrong: 5 });
    assert_eq!(newest_of(&mut all.iter().rev()), forth);
    assert_eq!(newest_of(&mut all[..25].iter()).merge(&newest_of(&mut all[25..].iter())), forth);
}
