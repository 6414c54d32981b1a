//! A manual outcome is filed once, even by several comparisons at once, and never beside a confirmation of the same
//! change.

use crate::desk::{Click, Desk, TASK, Wish, count, noon, settle};
use chrono::TimeDelta;
use std::sync::Barrier;
use steward_domain::action::audit::{ActionKind, WorkflowRef};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::path::RecordPath;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};

fn pending(writer: &VaultWriter) -> RecordPath {
    let wish = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.confidence = 0.1);
    writer.apply_plan(wish.plan()).unwrap().record
}

fn compared(writer: &VaultWriter, record: &RecordPath, hours: i64) -> Option<ActionReceipt> {
    let workflow = WorkflowRef { id: "al-reversal-calibration".into(), run_id: "r".into() };
    writer.file_manual_outcome(record, workflow, noon() + TimeDelta::hours(hours)).unwrap()
}

fn says(desk: &Desk, from: &str, to: &str) {
    desk.write("task/pay.md", desk.read("task/pay.md").replace(from, to).as_bytes());
}

#[test]
fn of_many_comparisons_and_confirmations_at_once_one_is_filed() {
    for round in 0..20 {
        let desk = Desk::new();
        let writer = desk.writer();
        let record = pending(&writer);
        says(&desk, "state: open", "state: done");
        let gate = Barrier::new(6);
        let filed: usize = std::thread::scope(|threads| {
            let run = |n: usize| {
                let (writer, record, gate) = (&writer, &record, &gate);
                threads.spawn(move || {
                    gate.wait();
                    if (n + round).is_multiple_of(2) {
                        compared(writer, record, 1).is_some_and(|receipt| !receipt.repeated)
                    } else {
                        Click::new(ResolutionKind::Confirm, record, &format!("click-{n}")).ask(writer).is_ok()
                    }
                })
            };
            let all: Vec<_> = (0..6).map(run).collect();
            all.into_iter().map(|one| usize::from(one.join().unwrap())).sum()
        });
        let records = desk.records();
        let both = count(&records, ActionKind::DoneAnyway) + count(&records, ActionKind::Confirmed);
        assert_eq!((filed, both, records.len()), (1, 1, 2), "round {round}");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn what_was_done_by_hand_is_not_confirmed_and_what_was_decided_otherwise_may_be() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    says(&desk, "owner: ann", "owner: ann\nsnoozed_until: 2999-01-01");
    assert!(compared(&writer, &record, 1).is_some());
    Click::new(ResolutionKind::Confirm, &record, "click").ask(&writer).unwrap();
    assert_eq!(count(&desk.records(), ActionKind::Confirmed), 1);

    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    says(&desk, "state: open", "state: done");
    assert!(compared(&writer, &record, 1).is_some());
    let refused = Click::new(ResolutionKind::Confirm, &record, "click").ask(&writer).unwrap_err().to_string();
    assert!(refused.contains("was already done anyway by hand"), "{refused}");
    Click::new(ResolutionKind::Dismiss, &record, "click").ask(&writer).unwrap();
}

#[test]
fn a_confirmation_that_is_written_back_by_hand_is_opposed_once() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let confirmed = Click::new(ResolutionKind::Confirm, &record, "click").ask(&writer).unwrap().record;
    assert!(compared(&writer, &record, 1).is_none(), "the proposal itself is answered");
    assert!(compared(&writer, &confirmed, 1).is_none(), "it stands as it was confirmed");
    says(&desk, "state: done", "state: open");
    let opposed = compared(&writer, &confirmed, 2).unwrap();
    assert!(compared(&writer, &confirmed, 3).is_none(), "once");
    let records = desk.records();
    let of = |path: &RecordPath| records[path.as_str()].draft.clone();
    assert_eq!(of(&opposed.record).kind, ActionKind::Opposed);
    assert_eq!(of(&opposed.record).resolution.unwrap().action_id, of(&confirmed).id, "it answers the confirmation");
    settle(&writer);
    desk.is_tidy();

    let desk = Desk::new();
    let writer = desk.writer();
    let record = pending(&writer);
    let confirmed = Click::new(ResolutionKind::Confirm, &record, "click").ask(&writer).unwrap().record;
    Click::new(ResolutionKind::Undo, &confirmed, "back").ask(&writer).unwrap();
    assert!(compared(&writer, &confirmed, 2).is_none(), "an undo has said so already");
}
