use super::*;
use steward_domain::record::entity::{SignalEffect, SurfaceClass};
use steward_domain::steward::tick::TaskSkipReason;

/// A matter `m` with one task `t`, scanned at 01:00.
async fn one_task(more: &str) -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", more);
    bench.sync("01:00:00").await;
    bench
}

fn refs(seen: &MatterObservation) -> Vec<&str> {
    let looks = seen.task_checks.iter().flat_map(|l| &l.question.evidence);
    looks.map(|e| e.reference.slug()).collect()
}

#[tokio::test]
async fn a_look_before_the_first_scan_is_refused() {
    let bench = Bench::new().await;
    let error = bench.index.cursors().observe_due_tasks(&ask("matter/m.md", "l", "02:00:00")).await.unwrap_err();
    assert!(matches!(error, IndexError::Unfilled { .. }) && error.to_string().contains("first scan"), "{error}");
}

#[tokio::test]
async fn a_due_task_without_signals_is_stamped_and_counted_and_nobody_is_asked() {
    let bench = one_task("").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((seen.quiet, seen.task_checks.len(), seen.signals, seen.streak), (1, 0, 0, 1));
    assert_eq!(seen.observed_at, noon("02:00:00"));
    let task = &bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap()[0];
    assert_eq!(task.last_check_at, Some(noon("02:00:00")));
    assert_eq!(task.next_check_after, Some(noon("06:00:00")));
    assert_eq!((task.outcome.as_deref(), task.streak), (Some("still_active"), 1));
    let looks = bench.index.cursors().list_check_counts(noon("00:00:00").date_naive()).await.unwrap();
    assert_eq!((looks.len(), looks[0].reason.as_str(), looks[0].count), (1, "no_signals", 1));
    let seen = bench.look("matter/m.md", "l2", "02:30:00").await;
    assert_eq!(seen.skipped, BTreeMap::from([(TaskSkipReason::NotDue, 1)]));
    assert_eq!(bench.look("matter/m.md", "l3", "06:00:00").await.quiet, 1);
}

#[tokio::test]
async fn the_same_look_asked_for_again_gets_the_same_answer_and_moves_nothing() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.task("other", "m", "");
    bench.sync("01:01:00").await;
    let first = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((first.task_checks.len(), first.quiet), (1, 1));
    bench.signal("later", "task/t.md", "");
    bench.sync("02:01:00").await;
    assert_eq!(bench.look("matter/m.md", "l1", "03:00:00").await, first);
    let looks = bench.index.cursors().list_check_counts(noon("00:00:00").date_naive()).await.unwrap();
    assert_eq!(looks[0].count, 1);
    assert_eq!(bench.look("matter/m.md", "l2", "03:00:00").await.signals, 2);
}

#[tokio::test]
async fn a_look_carries_all_that_a_decision_needs() {
    let bench = one_task("state: Open\nsurface_class: low\ndue: 2026-12-01\n").await;
    bench.put("matter/m.md", "---\ntype: matter\nname: Farm\nsteward_ceiling: confirm\n---\n");
    bench.put("instinct/gmail.md", "---\ntype: instinct\nobservations: 12\nceiling: confirm\n---\n");
    bench.put(
        "signal/s.md",
        signal_text("task/t.md", "2026-11-20T10:00:00Z", "").replace("it is paid", &"ä".repeat(80)),
    );
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    let look = &seen.task_checks[0];
    let subject = &look.question.subject;
    assert_eq!((subject.task.as_str(), subject.task_name.as_str()), ("task/t.md", "Do it"));
    assert_eq!((subject.matter.as_str(), subject.matter_name.as_str()), ("matter/m.md", "Farm"));
    assert_eq!((subject.state, subject.surface_class), (RecordState::Open, SurfaceClass::Low));
    assert_eq!(subject.due, Some(at("2026-12-01")));
    assert_eq!(look.state_as_written.as_deref(), Some("Open"));
    assert_eq!(look.matter_ceiling, Ceiling::Confirm);
    assert_eq!(look.before, ContentHash::hash_bytes(&fs::read(bench.full("task/t.md")).unwrap()));
    assert_eq!((look.question.asked_at, &look.question.complaint), (noon("02:00:00"), &None));
    let piece = &look.question.evidence[0];
    assert_eq!((piece.source.as_str(), piece.reference.as_str()), ("gmail", "signal/s.md"));
    assert_eq!(piece.note, "ä".repeat(50));
    assert_eq!((piece.effect, piece.proposed_state), (SignalEffect::Mutation, Some(RecordState::Done)));
    assert_eq!((piece.target_confidence, piece.effect_confidence), (0.95, 0.91));
    assert_eq!((piece.observations, piece.ceiling), (12, Ceiling::Confirm));
}

#[tokio::test]
async fn a_source_nobody_knows_has_the_default_ceiling_and_no_observations() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let wary = ObservationQuery { default_ceiling: Ceiling::Confirm, ..ask("matter/m.md", "l", "02:00:00") };
    let seen = bench.index.cursors().observe_due_tasks(&wary).await.unwrap();
    let piece = &seen.task_checks[0].question.evidence[0];
    assert_eq!((piece.observations, piece.ceiling), (0, Ceiling::Confirm));
}

#[tokio::test]
async fn an_instinct_that_cannot_be_read_means_ask() {
    for file in ["instinct/gmail.md", "instinct/Gmail.md", "instinct/ gmail.md"] {
        let bench = one_task("").await;
        bench.signal("s", "task/t.md", "");
        bench.put(file, "---\nceiling: [\n---\n");
        bench.sync("01:01:00").await;
        let seen = bench.look("matter/m.md", "l", "02:00:00").await;
        let piece = &seen.task_checks[0].question.evidence[0];
        assert_eq!((piece.observations, piece.ceiling), (0, Ceiling::Ask), "{file}");
    }
}

#[tokio::test]
async fn only_signals_that_count_are_evidence() {
    let bench = one_task("").await;
    bench.signal("good", "task/t.md", "");
    bench.signal("action", "task/t.md", "effect: action\n");
    bench.signal("none", "task/t.md", "effect: none\n");
    bench.signal("applied", "task/t.md", "status: applied\n");
    bench.signal("elsewhere", "task/other.md", "");
    bench.signal("matter", "matter/m.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!((refs(&seen), seen.signals), (vec!["matter", "action", "good"], 3));
    assert_eq!(seen.task_checks[0].question.subject.task.as_str(), "matter/m.md");
}

#[tokio::test]
async fn signals_of_the_matter_itself_are_one_look_more_and_are_judged_once() {
    let bench = one_task("").await;
    bench.put("matter/m.md", "---\ntype: matter\nname: Farm\nstate: Open\nsteward_ceiling: confirm\n---\n");
    bench.signal("s", "matter/m.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((seen.task_checks.len(), seen.signals, seen.quiet, seen.streak), (1, 1, 1, 0));
    let look = &seen.task_checks[0];
    let subject = &look.question.subject;
    assert_eq!((subject.task.as_str(), subject.task_name.as_str()), ("matter/m.md", "Farm"));
    assert_eq!((subject.matter.as_str(), subject.state), ("matter/m.md", RecordState::Open));
    assert_eq!((look.state_as_written.as_deref(), look.matter_ceiling), (Some("Open"), Ceiling::Confirm));
    assert_eq!(look.before, ContentHash::hash_bytes(&fs::read(bench.full("matter/m.md")).unwrap()));
    let other = bench.look("matter/m.md", "other/1", "02:00:01").await;
    assert_eq!(
        (other.task_checks.len(), other.skipped.get(&TaskSkipReason::BeingJudged)),
        (0, Some(&1)),
        "it is leased"
    );
    bench.checked("matter/m.md", &seen, "l1").await;
    let after = bench.look("matter/m.md", "l2", "02:30:00").await;
    assert_eq!((after.task_checks.len(), after.signals), (0, 0));
    bench.signal("later", "matter/m.md", "");
    bench.sync("02:31:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l3", "03:00:00").await), ["later"]);
    bench.put("matter/m.md", "---\ntype: matter\nstate: done\n---\n");
    bench.signal("last", "matter/m.md", "");
    bench.sync("03:01:00").await;
    assert_eq!(bench.look("matter/m.md", "l4", "03:02:00").await.task_checks.len(), 0, "a closed matter is left alone");
}

#[tokio::test]
async fn what_the_router_has_done_or_holds_back_is_not_asked_about_and_what_it_only_said_is() {
    for (disposition, fresh) in [(Disposition::Live, 0), (Disposition::Pending, 0), (Disposition::Shadow, 1)] {
        let bench = one_task("").await;
        bench.signal("s", "task/t.md", "");
        bench.action("a", |draft| {
            cite(draft, "signal/s.md");
            (draft.disposition, draft.clerk) = (disposition, None);
        });
        bench.sync("01:01:00").await;
        assert_eq!(bench.look("matter/m.md", "l", "02:00:00").await.signals, fresh, "{disposition:?}");
    }
}

#[tokio::test]
async fn the_newest_fifty_signals_come_first() {
    let bench = one_task("").await;
    for n in 0..60 {
        let created = time::format_millis(noon("00:00:00") + chrono::TimeDelta::minutes(n));
        bench.put(&format!("signal/s{n:02}.md"), signal_text("task/t.md", &created, ""));
    }
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    let names = refs(&seen);
    assert_eq!((names.len(), names[0], names[49], seen.signals), (50, "s59", "s10", 60));
}

#[tokio::test]
async fn what_was_judged_is_not_fresh_and_what_came_meanwhile_is() {
    let bench = one_task("").await;
    bench.signal("one", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.signal("two", "task/t.md", "");
    bench.sync("02:00:30").await;
    bench.checked("task/t.md", &seen, "l1").await;
    let seen = bench.look("matter/m.md", "l2", "02:30:00").await;
    assert_eq!(refs(&seen), ["two"]);
}

#[tokio::test]
async fn a_look_that_nobody_answered_stays_due() {
    let bench = one_task("").await;
    bench.signal("one", "task/t.md", "");
    bench.sync("01:01:00").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l2", "02:30:00").await), ["one"]);
}

#[tokio::test]
async fn a_late_signal_is_fresh_however_old_it_says_it_is() {
    let bench = one_task("").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.put("signal/late.md", signal_text("task/t.md", "2026-01-01", ""));
    bench.sync("02:10:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l2", "02:30:00").await), ["late"]);
}

#[tokio::test]
async fn a_signal_changed_after_the_check_is_fresh_again() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.checked("task/t.md", &seen, "l1").await;
    bench.signal("s", "task/t.md", "reasoning: corrected by hand\n");
    bench.sync("02:10:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l2", "02:30:00").await), ["s"]);
}

#[tokio::test]
async fn a_signal_that_went_and_came_back_unchanged_is_not_judged_again() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.checked("task/t.md", &seen, "l1").await;
    bench.remove("signal/s.md");
    bench.sync("02:10:00").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("02:20:00").await;
    assert_eq!(bench.look("matter/m.md", "l2", "02:30:00").await.signals, 0);
}

#[tokio::test]
async fn a_scan_whose_clock_runs_behind_hides_no_signal_from_the_next_look() {
    let bench = one_task("").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:59:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l2", "02:30:00").await), ["s"]);
}

#[tokio::test]
async fn a_clock_that_went_back_hides_no_later_signal_from_a_task_that_was_checked_before() {
    let bench = one_task("").await;
    assert_eq!(bench.look("matter/m.md", "l1", "03:00:00").await.quiet, 1, "the task is checked at 03:00");
    bench.look("matter/m.md", "l2", "02:00:00").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("02:01:00").await;
    let seen = bench.look("matter/m.md", "l3", "02:02:00").await;
    assert_eq!(refs(&seen), ["s"]);
    bench.checked("task/t.md", &seen, "l3").await;
    assert_eq!(bench.look("matter/m.md", "l4", "02:30:00").await.signals, 0);
}

#[tokio::test]
async fn a_scan_whose_clock_runs_ahead_makes_nothing_be_judged_twice() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("03:00:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((refs(&seen), seen.observed_at), (vec!["s"], noon("03:00:00")));
    bench.checked("task/t.md", &seen, "l1").await;
    assert_eq!(bench.look("matter/m.md", "l2", "02:30:00").await.signals, 0);
}

#[tokio::test]
async fn evidence_of_a_live_action_on_this_task_is_claimed() {
    for (kind, disposition, target, fresh) in [
        (ActionKind::Action, Disposition::Live, "task/t.md", 0),
        (ActionKind::Confirmed, Disposition::Live, "task/t.md", 0),
        (ActionKind::Reversed, Disposition::Live, "task/t.md", 0),
        (ActionKind::Action, Disposition::Shadow, "task/t.md", 1),
        (ActionKind::Action, Disposition::Pending, "task/t.md", 1),
        (ActionKind::Action, Disposition::Recorded, "task/t.md", 1),
        (ActionKind::Action, Disposition::Live, "task/other.md", 1),
    ] {
        let bench = one_task("").await;
        bench.signal("s", "task/t.md", "");
        bench.action("a", |draft| {
            cite(draft, "signal/s.md");
            (draft.kind, draft.disposition, draft.target) = (kind, disposition, path(target));
        });
        bench.sync("01:01:00").await;
        let seen = bench.look("matter/m.md", "l", "02:00:00").await;
        assert_eq!((seen.signals, refs(&seen).len()), (fresh, fresh as usize), "{kind:?} {disposition:?} {target}");
    }
}

#[tokio::test]
async fn what_was_only_shadowed_is_judged_again_once_changes_may_happen_and_then_no_more() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.checked("task/t.md", &seen, "l1").await;
    bench.action("a", |draft| {
        cite(draft, "signal/s.md");
        (draft.disposition, draft.mode) = (Disposition::Shadow, Mode::Shadow);
    });
    bench.sync("02:01:00").await;
    let live = |look: &str, clock: &str| {
        let policy = DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() };
        ObservationQuery { policy, ..ask("matter/m.md", look, clock) }
    };
    assert!(refs(&bench.look("matter/m.md", "l2", "02:02:00").await).is_empty(), "still shadow");
    let again = bench.index.cursors().observe_due_tasks(&live("l3", "02:03:00")).await.unwrap();
    assert_eq!((again.signals, refs(&again)), (1, vec!["s"]));
    bench.checked("task/t.md", &again, "l3").await;
    for (name, disposition) in [("b", Disposition::Pending), ("c", Disposition::Recorded)] {
        bench.action(name, |draft| {
            cite(draft, "signal/s.md");
            draft.disposition = disposition;
        });
        bench.sync("02:04:00").await;
        assert!(
            refs(&bench.index.cursors().observe_due_tasks(&live(name, "02:05:00")).await.unwrap()).is_empty(),
            "{disposition:?}"
        );
    }
}

#[tokio::test]
async fn what_a_human_answered_in_shadow_is_not_judged_again_once_changes_may_happen() {
    for kind in [ActionKind::DoneAnyway, ActionKind::Opposed] {
        let bench = one_task("").await;
        bench.signal("s", "task/t.md", "");
        bench.sync("01:01:00").await;
        let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
        bench.checked("task/t.md", &seen, "l1").await;
        let id = bench.action("a", |draft| {
            cite(draft, "signal/s.md");
            (draft.disposition, draft.mode) = (Disposition::Shadow, Mode::Shadow);
        });
        bench.action("b", |draft| answer(draft, kind, &id));
        bench.sync("02:01:00").await;
        let policy = DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() };
        let live = ObservationQuery { policy, ..ask("matter/m.md", "l2", "02:02:00") };
        assert!(refs(&bench.index.cursors().observe_due_tasks(&live).await.unwrap()).is_empty(), "{kind:?}");
    }
}

#[tokio::test]
async fn when_the_state_is_lost_evidence_that_no_record_cites_is_new_and_the_rest_is_not() {
    let bench = one_task("").await;
    bench.signal("judged", "task/t.md", "");
    bench.signal("missed", "task/t.md", "");
    bench.action("a", |draft| {
        cite(draft, "signal/judged.md");
        draft.disposition = Disposition::Recorded;
    });
    let elsewhere = tempfile::tempdir().unwrap();
    let anew = Index::open(elsewhere.path()).await.unwrap();
    anew.sync_all(&bench.root, noon("10:00:00")).await.unwrap();
    assert_eq!(
        refs(&anew.cursors().observe_due_tasks(&ask("matter/m.md", "l", "10:01:00")).await.unwrap()),
        ["missed"]
    );
}

#[tokio::test]
async fn a_snoozed_task_is_left_alone_even_with_fresh_signals() {
    let bench = one_task("snoozed_until: 2026-11-22\n").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((seen.skipped, seen.signals, seen.streak), (BTreeMap::from([(TaskSkipReason::Snoozed, 1)]), 0, 1));
    let awake = ObservationQuery { now: at("2026-11-22"), ..ask("matter/m.md", "l2", "00:00:00") };
    assert_eq!(refs(&bench.index.cursors().observe_due_tasks(&awake).await.unwrap()), ["s"]);
}

#[tokio::test]
async fn closed_tasks_are_skipped_in_any_case_and_their_signals_wake_nothing() {
    let bench = one_task("state: DONE\n").await;
    bench.task("a", "m", "state: Archived\n");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!(seen.skipped, BTreeMap::from([(TaskSkipReason::Done, 1), (TaskSkipReason::Archived, 1)]));
    assert_eq!((seen.signals, seen.streak), (0, 1));
}

#[tokio::test]
async fn the_later_of_the_human_time_and_ours_wins() {
    for (human, due_at_05, due_at_07) in
        [("2026-11-21T03:00:00Z", false, true), ("2026-11-21T08:00:00Z", false, false), ("soon", false, true)]
    {
        let bench = one_task("").await;
        bench.look("matter/m.md", "l0", "02:00:00").await;
        bench.task("t", "m", &format!("next_check_after: {human}\n"));
        bench.sync("02:01:00").await;
        let quiet = |clock| bench.look("matter/m.md", clock, clock);
        assert_eq!(quiet("05:00:00").await.quiet == 1, due_at_05, "{human}");
        assert_eq!(quiet("07:00:00").await.quiet == 1, due_at_07, "{human}");
    }
}

#[tokio::test]
async fn a_human_time_alone_counts_and_a_fresh_signal_overrides_it() {
    let bench = one_task("next_check_after: 2026-11-21 08:00\n").await;
    assert_eq!(
        bench.look("matter/m.md", "l1", "02:00:00").await.skipped,
        BTreeMap::from([(TaskSkipReason::NotDue, 1)])
    );
    bench.signal("s", "task/t.md", "");
    bench.sync("02:01:00").await;
    assert_eq!(refs(&bench.look("matter/m.md", "l2", "02:30:00").await), ["s"]);
}

#[tokio::test]
async fn a_high_task_needs_a_clerk_without_signals() {
    let bench = one_task("surface_class: high\n").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert_eq!((seen.task_checks.len(), seen.quiet, seen.signals, seen.streak), (1, 0, 0, 1));
    assert!(seen.task_checks[0].question.evidence.is_empty());
    assert_eq!(seen.task_checks[0].state_as_written, None);
}

#[tokio::test]
async fn what_one_tick_cannot_take_stays_due_and_the_oldest_look_goes_first() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in ["a", "b", "c"] {
        bench.task(task, "m", "surface_class: high\n");
    }
    bench.sync("01:00:00").await;
    let seen = bench.look("matter/m.md", "l0", "01:30:00").await;
    bench.checked("task/a.md", &seen, "l0").await;
    let few = |look_id: &str| ObservationQuery { max_checks: 2, ..ask("matter/m.md", look_id, "08:00:00") };
    let seen = bench.index.cursors().observe_due_tasks(&few("l1")).await.unwrap();
    let tasks: Vec<_> = seen.task_checks.iter().map(|l| l.question.subject.task.slug()).collect();
    assert_eq!((tasks, seen.left_due), (vec!["b", "c"], 1));
    for task in ["task/b.md", "task/c.md"] {
        bench.checked(task, &seen, "l1").await;
    }
    let seen = bench.index.cursors().observe_due_tasks(&few("l2")).await.unwrap();
    assert_eq!((seen.task_checks[0].question.subject.task.slug(), seen.left_due), ("a", 0));
}

#[tokio::test]
async fn a_tick_takes_no_more_to_the_clerk_than_temporal_carries_and_the_rest_stays_due() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in 0..64 {
        bench.task(&format!("t{task:02}"), "m", "");
        for n in 0..50 {
            let text = signal_text(&format!("task/t{task:02}.md"), "2026-11-20T10:00:00Z", "");
            let quote = format!("raw_quote: \"{}\"", "💶".repeat(200));
            let lines = text.lines().map(|l| if l.starts_with("raw_quote:") { quote.as_str() } else { l });
            bench.put(&format!("signal/t{task:02}-{n}.md"), lines.collect::<Vec<_>>().join("\n") + "\n");
        }
    }
    bench.sync("01:00:00").await;
    let (mut taken, mut left) = (0, 64);
    for tick in 0..20 {
        let seen = bench.look("matter/m.md", &format!("l{tick}"), "08:00:00").await;
        let bytes = serde_json::to_vec(&seen).unwrap().len();
        assert!((500_000..1_200_000).contains(&bytes) || seen.left_due == 0, "{bytes}");
        assert_eq!(seen.task_checks[0].question.evidence.len(), 50);
        taken += seen.task_checks.len();
        left -= seen.task_checks.len();
        assert_eq!(seen.left_due as usize, left);
        for look in &seen.task_checks {
            bench.checked(look.question.subject.task.as_str(), &seen, &format!("l{tick}")).await;
        }
        if left == 0 {
            break;
        }
    }
    assert_eq!(taken, 64);
}

#[tokio::test]
async fn of_many_problems_a_tick_names_some_and_counts_the_rest() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for task in 0..200 {
        bench.task(&format!("t{task:03}"), "m", "id: same\n");
    }
    bench.sync("01:00:00").await;
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!((seen.problems.len(), seen.problems[20].as_str()), (21, "matter/m.md: 180 more like these"));
    assert!(seen.problems.iter().all(|p| p.len() < 500), "{:?}", seen.problems);
}

/// Writes a signal of a source, created some minutes after 10:00.
fn put_signal(bench: &Bench, slug: &str, target: &str, source: &str, minute: u32) {
    let text = signal_text(target, &format!("2026-11-20T{:02}:{:02}:00Z", 10 + minute / 60, minute % 60), "");
    bench.put(&format!("signal/{slug}.md"), text.replace("gmail", source));
}

#[tokio::test]
async fn a_flood_of_one_source_pushes_no_other_out_of_the_evidence() {
    let bench = one_task("").await;
    put_signal(&bench, "genuine", "task/t.md", "bank", 0);
    put_signal(&bench, "shy", "task/t.md", "slack", 1);
    for n in 0..120 {
        put_signal(&bench, &format!("junk{n:03}"), "task/t.md", "gmail", n + 2);
    }
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    let refs = refs(&seen);
    assert_eq!((refs.len(), refs[0], refs[47]), (50, "junk119", "junk072"));
    assert_eq!(refs[48..], ["shy", "genuine"], "newest first, and the oldest two are there");
}

#[tokio::test]
async fn a_source_that_is_known_is_heard_among_any_number_of_names() {
    let bench = one_task("").await;
    bench.put("instinct/bank.md", "---\ntype: instinct\nobservations: 1\n---\n");
    put_signal(&bench, "genuine", "task/t.md", "bank", 0);
    for n in 0..90 {
        put_signal(&bench, &format!("junk{n:03}"), "task/t.md", &format!("mail:forged{n}@b.example"), n + 2);
    }
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!((refs(&seen).len(), refs(&seen)[49]), (50, "genuine"));
}

#[tokio::test]
async fn tasks_that_one_source_asks_for_keep_no_other_from_its_turn() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for n in 0..9 {
        bench.task(&format!("junk{n}"), "m", "");
        put_signal(&bench, &format!("j{n}"), &format!("task/junk{n}.md"), "gmail", n);
    }
    for task in ["shy", "both"] {
        bench.task(task, "m", "");
        put_signal(&bench, &format!("of-{task}"), &format!("task/{task}.md"), "bank", 40);
    }
    put_signal(&bench, "beside", "task/both.md", "gmail", 41);
    bench.sync("01:00:00").await;
    // The tasks of the flood have waited longer: those of the other source were checked before.
    let seen = bench.look("matter/m.md", "l0", "01:30:00").await;
    for task in ["shy", "both"] {
        bench.checked(&format!("task/{task}.md"), &seen, "l0").await;
        put_signal(&bench, &format!("again-{task}"), &format!("task/{task}.md"), "bank", 50);
    }
    bench.index.cursors().release_leases("l0").await.unwrap();
    bench.sync("02:00:00").await;
    let few = ObservationQuery { max_checks: 4, ..ask("matter/m.md", "l1", "08:00:00") };
    let seen = bench.index.cursors().observe_due_tasks(&few).await.unwrap();
    let mut tasks: Vec<_> = seen.task_checks.iter().map(|l| l.question.subject.task.slug()).collect();
    tasks.sort_unstable();
    assert_eq!((tasks, seen.left_due), (vec!["both", "junk0", "junk1", "shy"], 7));
}

#[tokio::test]
async fn a_quiet_matter_backs_off_and_a_signal_resets_it() {
    let bench = one_task("").await;
    let mut intervals = Vec::new();
    for n in 1..=6 {
        let seen = bench.look("matter/m.md", &format!("l{n}"), &format!("0{n}:00:00")).await;
        intervals.push((seen.streak, seen.interval_seconds));
    }
    assert_eq!(intervals, [(1, 1_800), (2, 1_800), (3, 3_600), (4, 3_600), (5, 3_600), (6, 7_200)]);
    let cadence = Cadence::default();
    assert_eq!(bench.index.read().read_matter_interval(&path("matter/m.md"), &cadence).await.unwrap(), 7_200);
    assert_eq!(bench.index.read().list_matters(&cadence).await.unwrap()[0].interval_seconds, 7_200);
    bench.signal("s", "task/t.md", "");
    bench.sync("07:00:00").await;
    let seen = bench.look("matter/m.md", "l9", "08:00:00").await;
    assert_eq!((seen.streak, seen.interval_seconds), (0, 1_800));
}

#[tokio::test]
async fn a_stop_moves_nothing() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let stopped = ObservationQuery { stopped: true, ..ask("matter/m.md", "l1", "02:00:00") };
    let seen = bench.index.cursors().observe_due_tasks(&stopped).await.unwrap();
    assert!(seen.stopped && seen.task_checks.is_empty());
    assert_eq!((seen.streak, seen.quiet), (0, 0));
    assert_eq!(bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap()[0].last_check_at, None);
    assert_eq!(
        bench.look("matter/m.md", "l1", "02:00:01").await.signals,
        1,
        "the observation under a stop is not stored"
    );
}

#[tokio::test]
async fn a_matter_that_cannot_be_ticked_says_why() {
    let bench = Bench::scanned().await;
    bench.put("matter/done.md", "---\ntype: matter\nstate: Done\n---\n");
    bench.put("matter/old.md", "---\ntype: matter\nstate: archived\n---\n");
    bench.put("matter/broken.md", "---\ntype: matter\nstate: dnoe\n---\n");
    for matter in ["done", "old", "broken", "missing"] {
        bench.task(&format!("of-{matter}"), matter, "surface_class: high\n");
    }
    bench.sync("01:00:00").await;
    for (matter, part) in [
        ("done", "set `state: open`"),
        ("old", "its state is `archived`"),
        ("broken", "expected `open`, `done` or `archived`"),
        ("missing", "not in the vault"),
    ] {
        let file = format!("matter/{matter}.md");
        let seen = bench.look(&file, "l", "02:00:00").await;
        assert!(seen.task_checks.is_empty() && seen.quiet == 0 && seen.streak == 0);
        assert!(seen.problems[0].starts_with(&file) && seen.problems[0].contains(part), "{:?}", seen.problems);
    }
}

#[tokio::test]
async fn many_looks_and_scans_at_once_do_not_lock_each_other_out() {
    let bench = Bench::scanned().await;
    for n in 0..12 {
        bench.matter(&format!("m{n}"));
        bench.task(&format!("t{n}"), &format!("m{n}"), "");
    }
    bench.sync("01:00:00").await;
    let matters: Vec<String> = (0..12).map(|n| format!("matter/m{n}.md")).collect();
    let looks = futures_util::future::join_all(matters.iter().map(|m| bench.look(m, "l", "02:00:00")));
    let scans = futures_util::future::join_all((0..3).map(|_| bench.index.rebuild(&bench.root, noon("02:00:00"))));
    let (looks, scans) = futures_util::future::join(looks, scans).await;
    assert!(looks.iter().all(|l| l.quiet == 1));
    assert!(scans.iter().all(|s| s.as_ref().unwrap().complete));
}

#[tokio::test]
async fn a_look_opens_no_file() {
    let bench = one_task("").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    fs::remove_dir_all(bench.full("")).unwrap();
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!(refs(&seen), ["s"]);
}

#[tokio::test]
async fn a_look_asks_the_indexes_and_scans_no_table() {
    let bench = one_task("").await;
    for sql in [crate::index::cursors::task_check::TASKS, crate::index::cursors::task_check::EVIDENCE] {
        let plan: Vec<String> = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
            .bind("matter/m.md")
            .bind(true)
            .fetch_all(&bench.index.store.reader)
            .await
            .unwrap()
            .iter()
            .map(|row| sqlx::Row::get::<String, _>(row, "detail"))
            .collect();
        let scans = |line: &&String| {
            line.starts_with("SCAN")
                && !["SCAN n", "SCAN (subquery"].iter().any(|own| line.starts_with(own))
                && !line.contains("fresh")
        };
        assert!(!plan.iter().any(|l| scans(&l)), "{plan:#?}");
    }
}
