//! Resolutions by people: undo, confirm and dismiss, clicked twice, late, at once, and over their own edits.

use crate::desk::{Click, Desk, TASK, Wish, count, faults, live, noon, settle};
use chrono::TimeDelta;
use std::sync::Barrier;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::Disposition;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordPath;
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::stop::{self, VaultStop};

fn applied(writer: &VaultWriter) -> RecordPath {
    writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan()).unwrap().record
}

fn pending(writer: &VaultWriter) -> RecordPath {
    let wish = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.confidence = 0.1);
    writer.apply_plan(wish.plan()).unwrap().record
}

fn refusal(result: Result<impl std::fmt::Debug, ResolutionError>) -> ResolutionRefusal {
    match result {
        Err(ResolutionError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn an_undo_keeps_what_a_human_edited_in_other_fields_and_on_the_same_line() {
    for (from, to) in [("owner: ann", "owner: bob # now"), ("# since May", "# since June"), ("word for word", "anew")] {
        let desk = Desk::new();
        let writer = desk.writer();
        let record = applied(&writer);
        desk.write("task/pay.md", desk.read("task/pay.md").replace(from, to).as_bytes());
        Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer).unwrap();
        assert_eq!(desk.read("task/pay.md"), TASK.replace(from, to));
    }
}

#[test]
fn an_undo_over_a_humans_own_state_is_a_conflict_and_changes_nothing() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let edited = desk.read("task/pay.md").replace("state: done", "state: archived");
    desk.write("task/pay.md", edited.as_bytes());
    let refused = refusal(Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer));
    assert_eq!(refused, ResolutionRefusal::Conflict { fields: vec!["state".into()] });
    assert_eq!((refused.http_status(), desk.read("task/pay.md"), desk.records().len()), (409, edited, 1));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_undo_of_what_a_human_put_back_leaves_a_record_and_no_change() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let by_hand = TASK.replace("# since May", "# I did it myself");
    desk.write("task/pay.md", by_hand.as_bytes());
    Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer).unwrap();
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (by_hand, 2));
}

#[test]
fn the_second_undo_is_told_who_was_first() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let first = Click::new(ResolutionKind::Undo, &record, "run-2");
    let receipt = first.ask(&writer).unwrap();
    let again = first.ask(&writer).unwrap();
    assert!(again.repeated && again.record == receipt.record, "the same run is answered the same");
    let refused = refusal(Click::new(ResolutionKind::Undo, &record, "run-3").ask(&writer));
    assert!(matches!(refused, ResolutionRefusal::AlreadyResolved { .. }), "{refused}");
    assert_eq!(refused.http_status(), 409);
    assert!(refused.to_string().contains("already undone by ann at 2026-11-21T13:00:00.000Z"), "{refused}");
    assert_eq!(count(&desk.records(), ActionKind::Reversed), 1);
    assert_eq!(desk.read("task/pay.md"), TASK);
}

#[test]
fn a_second_confirmation_names_what_can_be_undone_or_that_it_was() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let confirmed = Click::new(ResolutionKind::Confirm, &record, "run-2").ask(&writer).unwrap();
    let again = Click::new(ResolutionKind::Confirm, &record, "run-3");
    let refuse = |click: &Click<'_>| refusal(click.ask(&writer)).to_string();
    let advice = format!("; `steward undo {}` undoes that", confirmed.id);
    assert!(refuse(&again).ends_with(&advice), "{}", refuse(&again));
    let late = Click { now: again.now + TimeDelta::days(8), ..again };
    assert!(!refuse(&late).contains("steward undo"), "its window has ended: {}", refuse(&late));
    Click::new(ResolutionKind::Undo, &confirmed.record, "run-4").ask(&writer).unwrap();
    let told = refuse(&Click::new(ResolutionKind::Undo, &record, "run-5"));
    assert!(
        told.ends_with("confirmed by ann at 2026-11-21T13:00:00.000Z, and that was undone at 2026-11-21T13:00:00.000Z"),
        "{told}"
    );
}

#[test]
fn of_many_clicks_at_once_one_wins() {
    for kinds in [
        [ResolutionKind::Undo; 6],
        [
            ResolutionKind::Confirm,
            ResolutionKind::Dismiss,
            ResolutionKind::Confirm,
            ResolutionKind::Dismiss,
            ResolutionKind::Dismiss,
            ResolutionKind::Confirm,
        ],
    ] {
        for round in 0..12 {
            let desk = Desk::new();
            let writer = desk.writer();
            let record = if kinds[0] == ResolutionKind::Undo { applied(&writer) } else { pending(&writer) };
            let start = Barrier::new(kinds.len());
            let won = std::thread::scope(|scope| {
                let clicks: Vec<_> = (0..kinds.len())
                    .map(|n| {
                        let (writer, record, start) = (&writer, &record, &start);
                        scope.spawn(move || {
                            let run = format!("click-{round}-{n}");
                            start.wait();
                            match Click::new(kinds[n], record, &run).ask(writer) {
                                Ok(receipt) => !receipt.repeated,
                                Err(ResolutionError::Refused(ResolutionRefusal::AlreadyResolved { .. })) => false,
                                Err(e) => panic!("{e}"),
                            }
                        })
                    })
                    .collect();
                clicks.into_iter().map(|click| usize::from(click.join().unwrap())).sum::<usize>()
            });
            assert_eq!((won, desk.records().len()), (1, 2), "round {round}");
        }
    }
}

#[test]
fn after_a_week_the_record_stays_and_the_recipe_is_not_honoured() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let mut click = Click::new(ResolutionKind::Undo, &record, "run-2");
    click.now = noon() + TimeDelta::days(7);
    assert_eq!(click.refused(&writer), 410);
    assert!(desk.read("task/pay.md").contains("state: done"));
    click.now = noon() + TimeDelta::days(7) - TimeDelta::milliseconds(1);
    click.ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), TASK);
}

#[test]
fn only_a_change_can_be_undone_and_only_a_record_can_be_answered() {
    let desk = Desk::new();
    let writer = desk.writer();
    let shadow = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.policy = DecisionPolicy::default());
    let shadow = writer.apply_plan(shadow.plan()).unwrap().record;
    assert_eq!(Click::new(ResolutionKind::Undo, &shadow, "run-2").refused(&writer), 400);
    assert_eq!(Click::new(ResolutionKind::Confirm, &shadow, "run-2").refused(&writer), 400);
    let unknown = RecordPath::parse("event/steward-action-20260101T000000000Z-pay.md").unwrap();
    assert_eq!(Click::new(ResolutionKind::Undo, &unknown, "run-2").refused(&writer), 404);
    desk.write("event/steward-action-note.md", b"---\ntype: note\n---\n");
    let note = RecordPath::parse("event/steward-action-note.md").unwrap();
    assert_eq!(Click::new(ResolutionKind::Undo, &note, "run-2").refused(&writer), 422);
    assert_eq!(desk.records_without_notes(), 1);
}

#[test]
fn a_record_under_another_name_is_not_answered_a_second_time() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let copy = RecordPath::parse("event/steward-action-20261121T120000001Z-pay.md").unwrap();
    std::fs::copy(desk.file(record.as_str()), desk.file(copy.as_str())).unwrap();
    Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer).unwrap();
    assert_eq!(Click::new(ResolutionKind::Undo, &copy, "run-3").refused(&writer), 422);
}

#[test]
fn a_confirmation_applies_the_proposal_and_can_be_undone_for_a_new_week() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    assert_eq!(desk.read("task/pay.md"), TASK);
    let mut click = Click::new(ResolutionKind::Confirm, &record, "run-2");
    click.now = noon() + TimeDelta::days(30);
    let confirmed = click.ask(&writer).unwrap();
    assert_eq!(confirmed.disposition, Disposition::Live);
    assert_eq!(desk.read("task/pay.md"), TASK.replace("state: open", "state: done"));
    assert!(click.ask(&writer).unwrap().repeated);
    assert_eq!(Click::new(ResolutionKind::Confirm, &record, "run-3").refused(&writer), 409);
    assert_eq!(Click::new(ResolutionKind::Dismiss, &record, "run-3").refused(&writer), 409);
    assert_eq!(
        Click::new(ResolutionKind::Undo, &record, "run-3").refused(&writer),
        409,
        "the confirmation is what to undo"
    );

    let mut undo = Click::new(ResolutionKind::Undo, &confirmed.record, "run-4");
    undo.now = noon() + TimeDelta::days(36);
    undo.ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), TASK);
    let records = desk.records();
    assert_eq!((count(&records, ActionKind::Confirmed), count(&records, ActionKind::Reversed)), (1, 1));
}

#[test]
fn a_task_is_confirmed_to_move_only_to_a_matter_that_is_there() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let gone = Mutation::ParentMatter { to: RecordPath::parse("matter/gone.md").unwrap() };
    let click = Click { edited: Some(gone), ..Click::new(ResolutionKind::Confirm, &record, "run-2") };
    let refused = refusal(click.ask(&writer));
    assert!(refused.http_status() == 400 && refused.to_string().ends_with("there is no matter/gone.md"), "{refused}");
    assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (TASK, 1));
}

#[test]
fn a_dismissal_ends_a_proposal_without_touching_it() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let dismissed = Click::new(ResolutionKind::Dismiss, &record, "run-2").ask(&writer).unwrap();
    assert_eq!((dismissed.disposition, desk.read("task/pay.md").as_str()), (Disposition::Recorded, TASK));
    assert_eq!(Click::new(ResolutionKind::Confirm, &record, "run-3").refused(&writer), 409);
    assert_eq!(Click::new(ResolutionKind::Undo, &dismissed.record, "run-4").refused(&writer), 400);
}

#[test]
fn in_shadow_mode_or_after_a_stop_a_confirmation_is_refused_and_can_be_made_later() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let mut click = Click::new(ResolutionKind::Confirm, &record, "run-2");
    click.policy = DecisionPolicy::default();
    assert_eq!(click.refused(&writer), 409);
    // The stop came after the policy was read.
    stop::stop_vault(writer.root(), &VaultStop { at: "now".into(), by: "ops".into(), reason: None }).unwrap();
    click.policy = live();
    assert_eq!(refusal(click.ask(&writer)), ResolutionRefusal::Stopped);
    assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (TASK, 1));
    stop::resume_vault(writer.root(), &VaultStop { at: "now".into(), by: "ops".into(), reason: None }).unwrap();
    click.ask(&writer).unwrap();
    assert!(desk.read("task/pay.md").contains("state: done"));
}

#[test]
fn a_stop_does_not_hold_back_an_undo_or_a_dismissal() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    desk.write("task/other.md", TASK.as_bytes());
    let other = Wish::done("other", TASK.as_bytes(), "run-1").with(|w| w.confidence = 0.1);
    let other = writer.apply_plan(other.plan()).unwrap().record;
    stop::stop_vault(writer.root(), &VaultStop { at: "now".into(), by: "ops".into(), reason: None }).unwrap();
    let undone = Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer).unwrap();
    assert_eq!((undone.disposition, desk.read("task/pay.md").as_str()), (Disposition::Live, TASK));
    Click::new(ResolutionKind::Dismiss, &other, "run-2").ask(&writer).unwrap();
    assert_eq!(faults(&desk.root()), Vec::<String>::new());
}

#[test]
fn what_only_a_human_may_do_is_not_confirmed() {
    let desk = Desk::new();
    let writer = desk.writer();
    let wish = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.ceiling = Ceiling::Ask);
    let record = writer.apply_plan(wish.plan()).unwrap().record;
    let refused = refusal(Click::new(ResolutionKind::Confirm, &record, "run-2").ask(&writer));
    assert!(matches!(refused, ResolutionRefusal::HumanOnly { .. }), "{refused}");
    Click::new(ResolutionKind::Dismiss, &record, "run-3").ask(&writer).unwrap();
}

#[test]
fn an_answer_about_a_task_that_is_gone_or_broken_says_which_file() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = applied(&writer);
    let click = Click::new(ResolutionKind::Undo, &record, "run-2");
    desk.write("task/pay.md", b"---\nstate: [done\n---\n");
    let refused = refusal(click.ask(&writer));
    assert!(refused.http_status() == 422 && refused.to_string().starts_with("task/pay.md: "), "{refused}");
    std::fs::remove_file(desk.file("task/pay.md")).unwrap();
    let refused = refusal(click.ask(&writer));
    assert_eq!((refused.http_status(), refused.to_string().as_str()), (422, "task/pay.md: does not exist"));
    desk.write("task/pay.md", TASK.replace("state: open", "state: done").as_bytes());
    click.ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), TASK);
}
