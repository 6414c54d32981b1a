//! Tests when a demotion is due, what it does to a plan, and how often it happens by chance.

use super::*;
use crate::action::plan::Disposition;
use crate::gates::landing::tests::hold_by_trust;
use crate::gates::result::GateName;
use crate::steward::decide::tests::{at, live_plan, shadow_plan};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

const NOW: &str = "2026-11-22T12:00:00Z";

/// A position in a chain to which a record is added every minute.
fn place(moment: DateTime<Utc>) -> u64 {
    moment.timestamp().cast_unsigned() / 60
}

fn cap(mode: Option<Mode>, since: DateTime<Utc>) -> ModeCap {
    ModeCap { mode, since, seq: place(since) }
}

fn speaker(source: &str) -> ChangeSupporter {
    ChangeSupporter { key: source.into(), name: source.into(), is_unknown: false }
}

fn unknown_source(source: &str) -> ChangeSupporter {
    ChangeSupporter { is_unknown: true, ..speaker(source) }
}

fn made(hours_ago: i64, source: &str, undone: bool) -> LiveChange {
    let moment = at(NOW) - TimeDelta::hours(hours_ago);
    let undone_at = moment + TimeDelta::minutes(10);
    let undo = LiveChangeUndo { seq: place(undone_at), at: undone_at, id: format!("{hours_ago:016x}") };
    LiveChange {
        seq: place(moment),
        at: moment,
        class: MutationClass::StateChange,
        sources: vec![speaker(source)],
        undone: undone.then_some(undo),
    }
}

fn marks(made: &[LiveChange], caps: &ModeCaps, mode: Mode) -> Vec<(String, Mode, Mode)> {
    let steps = find_demotions(made, caps, mode, REVERSAL_BUDGET, at(NOW));
    let marks = steps.into_iter().map(|s| match s.mark {
        TrustMark::Lowered { subject, from, to, .. } => (subject.to_string(), from, to),
        other => panic!("{other:?}"),
    });
    marks.collect()
}

fn lowered(source: &str, mode: Mode, hours_ago: i64) -> ModeCaps {
    let cap = cap(Some(mode), at(NOW) - TimeDelta::hours(hours_ago));
    ModeCaps::from([(TrustSubject::Source(source.into()), cap)])
}

fn some(n: i64, undone: i64) -> Vec<LiveChange> {
    (0..n).map(|hour| made(hour, "mail", hour < undone)).collect()
}

#[test]
fn two_undos_of_a_few_changes_are_a_step_and_one_is_none() {
    let none = ModeCaps::new();
    assert!(marks(&some(1, 1), &none, Mode::Live).is_empty(), "one click may be a mistake");
    let step = ("mail".to_owned(), Mode::Live, Mode::LiveHighConfidenceOnly);
    assert_eq!(marks(&some(2, 2), &none, Mode::Live), std::slice::from_ref(&step));
    assert_eq!(marks(&some(8, 2), &none, Mode::Live), [step]);
    assert!(marks(&some(9, 2), &none, Mode::Live).is_empty());
    assert_eq!(marks(&some(4, 2), &none, Mode::LiveHighConfidenceOnly)[0].2, Mode::Shadow);
    assert!(marks(&some(4, 2), &none, Mode::Shadow).is_empty(), "there is nothing below");
    let old: Vec<LiveChange> = (168..172).map(|hour| made(hour, "mail", true)).collect();
    assert!(marks(&old, &none, Mode::Live).is_empty(), "of 7 days");
}

#[test]
fn what_was_undone_before_the_last_mark_counts_no_more_and_the_next_step_starts_from_it() {
    let caps = lowered("mail", Mode::LiveHighConfidenceOnly, 3);
    assert!(marks(&some(5, 2)[3..], &caps, Mode::Live).is_empty());
    let again = [made(0, "mail", true), made(1, "mail", true), made(5, "mail", true)];
    let step = ("mail".to_owned(), Mode::LiveHighConfidenceOnly, Mode::Shadow);
    assert_eq!(marks(&again, &caps, Mode::Live), [step]);
    let raised = ModeCaps::from([(TrustSubject::Source("mail".into()), cap(None, at(NOW)))]);
    assert!(marks(&some(5, 5), &raised, Mode::Live).is_empty(), "nor for the class");
}

#[test]
fn what_was_made_before_a_raise_and_undone_after_it_counts() {
    let raised = |hours_ago| {
        let since = at(NOW) - TimeDelta::hours(hours_ago);
        ModeCaps::from([(TrustSubject::Source("mail".into()), cap(None, since))])
    };
    // All were made before the restore. Two were undone before it, others are undone now.
    let mut all: Vec<LiveChange> = (24..34).map(|hour| made(hour, "mail", hour < 26)).collect();
    assert!(marks(&all, &raised(10), Mode::Live).is_empty());
    for one in &mut all[4..7] {
        let moment = at(NOW) - TimeDelta::minutes(30);
        one.undone = Some(LiveChangeUndo { seq: place(moment), at: moment, id: "now".into() });
    }
    let step = ("mail".to_owned(), Mode::Live, Mode::LiveHighConfidenceOnly);
    assert_eq!(marks(&all, &raised(10), Mode::Live), [step]);
}

#[test]
fn undos_go_on_to_count_after_a_step_however_old_the_changes_are() {
    let mut all = some(10, 0);
    let mut caps = ModeCaps::new();
    let mut told = Vec::new();
    for undone in 0..10_u64 {
        let moment = at(NOW) + TimeDelta::minutes(undone.cast_signed());
        all[undone as usize].undone = Some(LiveChangeUndo { seq: place(moment), at: moment, id: undone.to_string() });
        for step in find_demotions(&all, &caps, Mode::Live, REVERSAL_BUDGET, moment) {
            let TrustMark::Lowered { subject, to, .. } = step.mark else { panic!() };
            told.push((undone + 1, to));
            caps.insert(subject, cap(Some(to), moment));
        }
    }
    assert_eq!(told, [(3, Mode::LiveHighConfidenceOnly), (5, Mode::Shadow)]);
}

#[test]
fn a_clock_that_once_ran_ahead_holds_no_step_back() {
    // The human's restore has a timestamp a month ahead of every later record.
    let raised = ModeCap { mode: None, since: at(NOW) + TimeDelta::days(30), seq: place(at(NOW)) - 600 };
    let caps = ModeCaps::from([(TrustSubject::Source("mail".into()), raised)]);
    assert_eq!(marks(&some(4, 2), &caps, Mode::Live).len(), 1);
}

#[test]
fn a_class_answers_for_what_no_source_has_answered_for() {
    let none = ModeCaps::new();
    let of_one = some(4, 3);
    let subjects = |made: &[LiveChange], caps: &ModeCaps| {
        marks(made, caps, Mode::Live).into_iter().map(|m| m.0).collect::<Vec<_>>()
    };
    assert_eq!(subjects(&of_one, &none), ["mail"]);
    assert!(subjects(&of_one, &lowered("mail", Mode::Shadow, -1)).is_empty());
    let of_many: Vec<LiveChange> = (0..6).map(|n| made(n, &format!("source-{n}"), n < 4)).collect();
    assert_eq!(subjects(&of_many, &none), ["state_change"]);
}

#[test]
fn a_step_names_the_newest_undo_that_counted_in_whatever_order_they_come() {
    let mut all = some(6, 3);
    let cause = |all: &[LiveChange]| find_demotions(all, &ModeCaps::new(), Mode::Live, 0.05, at(NOW))[0].cause.clone();
    let newest = cause(&all);
    let undo = all[0].undone.clone().unwrap();
    assert_eq!(newest, (undo.id, undo.at));
    all.reverse();
    assert_eq!(cause(&all), newest);
}

#[test]
fn a_plan_goes_as_far_as_its_class_and_its_furthest_source_may() {
    let plan = live_plan();
    let source = |name: &str, mode| (TrustSubject::Source(name.into()), cap(mode, at(NOW)));
    let class = |class, mode| (TrustSubject::Class(class), cap(Some(mode), at(NOW)));
    let both = [speaker("gmail"), speaker("slack")];
    let shadow = Some(Mode::Shadow);
    for (caps, disposition) in [
        (vec![], Disposition::Live),
        (vec![source("gmail", shadow)], Disposition::Live),
        (vec![source("gmail", shadow), source("slack", shadow)], Disposition::Shadow),
        (vec![source("gmail", shadow), source("slack", None)], Disposition::Live),
        (vec![class(MutationClass::StateChange, Mode::Shadow)], Disposition::Shadow),
        (vec![class(MutationClass::Related, Mode::Shadow)], Disposition::Live),
        (vec![class(MutationClass::StateChange, Mode::LiveHighConfidenceOnly)], Disposition::Live),
    ] {
        let caps: ModeCaps = caps.into_iter().collect();
        let landed = hold_by_trust(plan.clone(), &both, &caps);
        assert_eq!(landed.disposition(), disposition, "{caps:?}");
        assert_eq!(landed.id(), plan.id());
        let gate = landed.draft().gates.iter().find(|g| g.gate == GateName::Trust);
        assert!(gate.is_none_or(|g| g.open == (disposition == Disposition::Live)), "{gate:?}");
    }
    let mut unsure = plan.clone();
    unsure.draft.confidence = 0.8;
    let caps = ModeCaps::from([class(MutationClass::StateChange, Mode::LiveHighConfidenceOnly)]);
    let held = hold_by_trust(unsure, &both, &caps);
    assert_eq!((held.disposition(), held.draft().pending_confirmation), (Disposition::Pending, true));
    let shadow = shadow_plan();
    assert_eq!(hold_by_trust(shadow.clone(), &both, &caps), shadow, "it raises nothing");
}

/// Simulates months of one source with ten changes a day and a check every hour. Returns after how many hours the
/// source is demoted in each month.
fn lowered_after(rate: f64, months: u32) -> Vec<Option<i64>> {
    const MINUTES: i64 = 60;
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let start = at("2026-10-01T00:00:00Z");
    let mut month = || {
        // The minutes at which each change was made and undone.
        let all: Vec<(i64, Option<i64>)> = (0..300)
            .map(|n| n * 144)
            .map(|made| {
                let undo = made + random.random_range(0..48) * MINUTES;
                (made, random.random_bool(rate).then_some(undo))
            })
            .collect();
        let leaves = |made: i64| made + WINDOW.num_minutes();
        // The rate rises only when a change is undone or leaves the window, so other hours need no check.
        let moves = all.iter().flat_map(|(made, undone)| [Some(leaves(*made)), *undone]).flatten();
        let hours: BTreeSet<i64> = moves.map(|m| (m + MINUTES - 1).div_euclid(MINUTES)).filter(|h| *h < 720).collect();
        hours.into_iter().find(|hour| {
            let now = hour * MINUTES;
            let known = all.iter().filter(|(made, _)| *made <= now && leaves(*made) > now);
            let told = known.map(|(made, undone)| (made, undone.filter(|at| *at <= now)));
            // Fewer than two undos demote nothing. A test above asserts that.
            told.clone().filter(|(_, undone)| undone.is_some()).count() >= 2 && {
                let moment = |minute: i64| start + TimeDelta::minutes(minute);
                let told = told.map(|(made, undone)| LiveChange {
                    seq: place(moment(*made)),
                    at: moment(*made),
                    class: MutationClass::StateChange,
                    sources: vec![speaker("mail")],
                    undone: undone.map(moment).map(|at| LiveChangeUndo { seq: place(at), at, id: made.to_string() }),
                });
                !find_demotions(&told.collect::<Vec<_>>(), &ModeCaps::new(), Mode::Live, REVERSAL_BUDGET, moment(now))
                    .is_empty()
            }
        })
    };
    (0..months).map(|_| month()).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures, for whoever asks with --nocapture")]
fn it_comes_when_it_should_and_hardly_ever_when_it_should_not() {
    const MONTHS: u32 = 200;
    let share = |rate: f64, within_hours: i64| {
        let all = lowered_after(rate, MONTHS);
        let hit = all.iter().flatten().filter(|hours| **hours <= within_hours).count();
        let share = hit as f64 / f64::from(MONTHS);
        println!("undone {rate}: lowered within {within_hours} h in {share} of months");
        share
    };
    assert!(share(0.01, 720) <= 0.02);
    assert!(share(0.02, 720) <= 0.08);
    assert!(share(0.2, 168) >= 0.9);
    assert!(share(0.4, 72) >= 0.9);
}

fn by(made: LiveChange, sources: &[ChangeSupporter]) -> LiveChange {
    LiveChange { sources: sources.to_vec(), ..made }
}

fn subjects(made: &[LiveChange], caps: &ModeCaps) -> Vec<String> {
    marks(made, caps, Mode::Live).into_iter().map(|mark| mark.0).collect()
}

#[test]
fn unknown_sources_with_one_undone_change_each_lower_unknown_sources_and_no_class() {
    let none = ModeCaps::new();
    let addresses = |n: i64, undone: i64| -> Vec<LiveChange> {
        (0..n).map(|n| by(made(n, "", n < undone), &[unknown_source(&format!("mail-{n}"))])).collect()
    };
    assert_eq!(subjects(&addresses(6, 4), &none), ["unknown_sources"]);
    assert!(subjects(&addresses(6, 1), &none).is_empty());
    let lowered = ModeCaps::from([(TrustSubject::UnknownSources, cap(Some(Mode::Shadow), at(NOW)))]);
    assert!(subjects(&addresses(6, 4), &lowered).is_empty(), "they have answered, and there is nothing below");
    let raised = ModeCaps::from([(TrustSubject::UnknownSources, cap(None, at(NOW)))]);
    assert!(subjects(&addresses(6, 4), &raised).is_empty(), "a human's raise draws a line, for the class too");
    let one_address: Vec<LiveChange> = (0..4).map(|n| by(made(n, "", n < 3), &[unknown_source("mail-0")])).collect();
    assert_eq!(subjects(&one_address, &none), ["mail-0"], "one bad unknown source answers alone");
}

#[test]
fn unknown_sources_answer_for_what_they_carried() {
    let with = |n: i64, known: &str| by(made(n, "", true), &[unknown_source(&format!("mail-{n}")), speaker(known)]);
    let many: Vec<LiveChange> = (0..4).map(|n| with(n, &format!("known-{n}"))).collect();
    assert_eq!(subjects(&many, &ModeCaps::new()), ["state_change"], "known sources spoke as well");
    let shielded: Vec<LiveChange> = (0..4).map(|n| with(n, "known")).collect();
    let caps = lowered("known", Mode::Shadow, -1);
    assert_eq!(subjects(&shielded, &caps), ["unknown_sources"], "the known one was lowered, so they took it there");
}

#[test]
fn an_unknown_source_goes_no_further_than_all_of_them_and_a_known_source_does() {
    let unknown_sources = |mode| ModeCaps::from([(TrustSubject::UnknownSources, cap(mode, at(NOW)))]);
    for (speaking, mode, disposition, raise) in [
        (vec![unknown_source("a")], Some(Mode::Shadow), Disposition::Shadow, "`steward trust raise unknown_sources`"),
        (
            vec![unknown_source("a"), unknown_source("b")],
            Some(Mode::Shadow),
            Disposition::Shadow,
            "`steward trust raise unknown_sources`",
        ),
        (vec![unknown_source("a"), speaker("b")], Some(Mode::Shadow), Disposition::Live, ""),
        (vec![speaker("unknown_sources")], Some(Mode::Shadow), Disposition::Live, ""),
        (vec![unknown_source("a")], None, Disposition::Live, ""),
    ] {
        let plan = hold_by_trust(live_plan(), &speaking, &unknown_sources(mode));
        assert_eq!(plan.disposition(), disposition, "{speaking:?}");
        let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::Trust);
        assert_eq!(gate.map_or("", |g| g.needed.as_str()), raise, "{speaking:?}");
    }
    let mut caps = unknown_sources(Some(Mode::LiveHighConfidenceOnly));
    caps.extend(lowered("a", Mode::Shadow, 0));
    let plan = hold_by_trust(live_plan(), &[unknown_source("a")], &caps);
    assert_eq!(
        plan.draft().gates.iter().find(|gate| gate.gate == GateName::Trust).unwrap().needed,
        "`steward trust raise a`",
        "its own mark is the lower one"
    );
}

#[test]
fn a_gate_and_a_mark_tell_a_source_by_its_newest_name_and_its_key() {
    let key = crate::signals::signal::source_key("mail:Ann@b.example");
    let named = |name: &str| ChangeSupporter { key: key.clone(), name: name.into(), is_unknown: false };
    let all =
        [by(made(2, "", true), &[named("mail:ann@b.example")]), by(made(1, "", true), &[named("mail:Ann@b.example")])];
    let told = find_demotions(&all, &ModeCaps::new(), Mode::Live, 0.05, at(NOW))[0].mark.to_string();
    assert!(told.starts_with(&format!("mail:Ann@b.example ({key}) went from live")), "{told}");
    assert!(told.contains(&format!("`steward trust raise {key}`")), "{told}");
    let plan = hold_by_trust(live_plan(), &[named("mail:Ann@b.example")], &lowered(&key, Mode::Shadow, 0));
    let gate = plan.draft().gates.iter().find(|gate| gate.gate == GateName::Trust).unwrap();
    assert_eq!(gate.found, format!("shadow for mail:Ann@b.example ({key}), which was demoted"));
    assert_eq!(gate.needed, format!("`steward trust raise {key}`"));
}

/// Simulates ten days of throw-away addresses. Each hour brings one change of a new address, undone at `rate` within an
/// hour, and one of a known source, undone at `known_rate`, which began a week earlier. Returns the demoted subjects,
/// each with the hour.
fn throw_away(rate: f64, known_rate: f64, are_unknown: bool, random: &mut TestRng) -> Vec<(String, i64)> {
    let start = at("2026-11-01T00:00:00Z");
    let (mut all, mut caps, mut told) = (Vec::new(), ModeCaps::new(), Vec::new());
    for hour in -168..240 {
        let moment = start + TimeDelta::hours(hour);
        let mut change = |source: ChangeSupporter, rate: f64| {
            let undone_at = moment + TimeDelta::minutes(30);
            let undo = LiveChangeUndo { seq: place(undone_at), at: undone_at, id: format!("{hour}-{}", source.key) };
            let undone = random.random_bool(rate).then_some(undo);
            all.push(LiveChange {
                seq: place(moment),
                at: moment,
                class: MutationClass::StateChange,
                sources: vec![source],
                undone,
            });
        };
        let is_unknown = are_unknown;
        if hour >= 0 {
            change(ChangeSupporter { is_unknown, ..speaker(&format!("mail-{hour}")) }, rate);
        }
        change(speaker("bank"), known_rate);
        let now = moment + TimeDelta::minutes(59);
        for step in find_demotions(&all, &caps, Mode::Live, REVERSAL_BUDGET, now) {
            let TrustMark::Lowered { subject, to, .. } = step.mark else { panic!() };
            told.push((subject.to_string(), hour));
            caps.insert(subject, cap(Some(to), now));
        }
    }
    told
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures, for whoever asks with --nocapture")]
fn throw_away_addresses_lower_unknown_sources_and_known_sources_go_on() {
    const RUNS: usize = 100;
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let runs: Vec<_> = (0..RUNS).map(|_| throw_away(0.4, 0.01, true, &mut random)).collect();
    let share = |who: &str, within: i64| {
        let hit = |run: &&Vec<(String, i64)>| run.iter().any(|(one, hour)| one == who && *hour < within);
        runs.iter().filter(hit).count() as f64 / RUNS as f64
    };
    let (unknown_sources, class, bank) = (share("unknown_sources", 48), share("state_change", 240), share("bank", 240));
    println!(
        "within 48 h unknown sources are demoted in {unknown_sources}, ever the class in {class}, the known source in {bank}"
    );
    assert!(unknown_sources >= 0.99 && class <= 0.02 && bank <= 0.05, "{unknown_sources} {class} {bank}");
    let known = throw_away(0.4, 0.01, false, &mut random);
    assert!(
        known.iter().any(|(who, _)| who == "state_change"),
        "without their account the class would answer: {known:?}"
    );
    let good: Vec<_> = (0..RUNS).flat_map(|_| throw_away(0.01, 0.0, true, &mut random)).collect();
    assert!(good.len() <= 5, "good unknown sources are left alone: {good:?}");
}
