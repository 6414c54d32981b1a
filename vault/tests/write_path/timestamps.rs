//! Timestamp write-backs: they change only their own lines, file no record and do not disturb other changes.

use crate::desk::{Click, Desk, TASK, Wish, noon, settle, task, timestamped, timestamps};
use chrono::TimeDelta;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::steward::timestamps::CheckTimestamps;
use steward_vault::gates::stop::{self, VaultStop};
use steward_vault::steward::timestamps::{TimestampWriteError, TimestampWriteOutcome};

/// A text with the timestamps of a task that is done, which has no next check.
fn closed(text: &str) -> String {
    timestamped(text).replace("next_check_after: \"2026-11-21T16:00:00Z\"\n", "")
}

#[test]
fn a_stamp_adds_its_lines_and_files_nothing_however_often() {
    let desk = Desk::new();
    let writer = desk.writer();
    assert_eq!(writer.write_timestamps(&task("pay"), &timestamps()).unwrap(), TimestampWriteOutcome::Written);
    assert_eq!(desk.read("task/pay.md"), timestamped(TASK));
    let modified = || std::fs::metadata(desk.file("task/pay.md")).unwrap().modified().unwrap();
    let before = modified();
    assert_eq!(writer.write_timestamps(&task("pay"), &timestamps()).unwrap(), TimestampWriteOutcome::Unchanged);
    settle(&writer);
    assert_eq!((modified(), desk.records().len(), desk.conflicts().len()), (before, 0, 0));
    assert!(!desk.file(".steward/chain.json").exists(), "the chain does not know of it");
    desk.is_tidy();
}

#[test]
fn a_stamp_between_two_actions_leaves_the_chain_as_it_is() {
    let desk = Desk::new();
    let writer = desk.writer();
    writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan()).unwrap();
    writer.write_timestamps(&task("pay"), &timestamps()).unwrap();
    drop(writer);
    let writer = desk.writer();
    let now = desk.read("task/pay.md");
    let later = Wish::done("pay", now.as_bytes(), "run-2").with(|w| w.at = noon() + TimeDelta::hours(1));
    writer.apply_plan(later.plan()).unwrap();
    settle(&writer);
    assert_eq!(desk.read("task/pay.md"), closed(&TASK.replace("state: open", "state: done")));
    assert_eq!(desk.records().values().map(|r| r.seq).collect::<Vec<_>>(), [1, 2]);
    desk.is_tidy();
}

#[test]
fn an_undo_of_what_was_stamped_before_and_since_keeps_the_stamps() {
    let desk = Desk::new();
    let writer = desk.writer();
    writer.write_timestamps(&task("pay"), &timestamps()).unwrap();
    let receipt = writer.apply_plan(Wish::done("pay", timestamped(TASK).as_bytes(), "run-1").plan()).unwrap();
    let later = CheckTimestamps::new(noon() + TimeDelta::hours(1), None, []);
    assert_eq!(writer.write_timestamps(&task("pay"), &later).unwrap(), TimestampWriteOutcome::Written);
    Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), timestamped(TASK).replace("T12:00:00Z", "T13:00:00Z"));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_undo_of_a_state_that_was_added_before_the_stamp_keeps_the_stamp() {
    let desk = Desk::new();
    let without = TASK.replace("state: open  # since May\n", "");
    desk.write("task/pay.md", without.as_bytes());
    let writer = desk.writer();
    let receipt = writer.apply_plan(Wish::done("pay", without.as_bytes(), "run-1").plan()).unwrap();
    writer.write_timestamps(&task("pay"), &timestamps()).unwrap();
    Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), closed(&without));
}

#[test]
fn a_confirmation_of_what_was_stamped_since_keeps_the_stamp() {
    let desk = Desk::new();
    let writer = desk.writer();
    let unsure = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.confidence = 0.1);
    let receipt = writer.apply_plan(unsure.plan()).unwrap();
    writer.write_timestamps(&task("pay"), &timestamps()).unwrap();
    let click = Click::new(ResolutionKind::Confirm, &receipt.record, "run-2");
    let confirmed = click.ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), timestamped(&TASK.replace("state: open", "state: done")));
    Click::new(ResolutionKind::Undo, &confirmed.record, "run-3").ask(&writer).unwrap();
    assert_eq!(desk.read("task/pay.md"), timestamped(TASK));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_file_that_is_gone_or_cannot_be_read_is_left_alone() {
    let desk = Desk::new();
    let writer = desk.writer();
    for text in
        ["no frontmatter", "---\ntype: task\nname: [\n---\n", "---\n{type: task, parent_matter: matter/m.md}\n---\n"]
    {
        desk.write("task/odd.md", text.as_bytes());
        let error = writer.write_timestamps(&task("odd"), &timestamps()).unwrap_err();
        assert!(matches!(error, TimestampWriteError::Unusable(_)), "{error}");
        assert!(error.to_string().starts_with("task/odd.md: "), "{error}");
        assert_eq!(desk.read("task/odd.md"), text);
    }
    std::os::unix::fs::symlink(desk.file("task/pay.md"), desk.file("task/link.md")).unwrap();
    let error = writer.write_timestamps(&task("link"), &timestamps()).unwrap_err();
    assert!(matches!(error, TimestampWriteError::Unusable(_)), "{error}");
    assert_eq!(desk.read("task/pay.md"), TASK);
    let error = writer.write_timestamps(&task("gone"), &timestamps()).unwrap_err();
    assert!(matches!(error, TimestampWriteError::ChangedMeanwhile { .. }), "{error}");
    assert!(!desk.file("task/gone.md").exists());
    desk.is_tidy();
}

#[test]
fn a_stopped_vault_is_not_stamped() {
    let desk = Desk::new();
    let writer = desk.writer();
    stop::stop_vault(&desk.root(), &VaultStop { at: "now".into(), by: "ann".into(), reason: None }).unwrap();
    assert_eq!(writer.write_timestamps(&task("pay"), &timestamps()).unwrap(), TimestampWriteOutcome::Stopped);
    assert_eq!(desk.read("task/pay.md"), TASK);
    stop::resume_vault(&desk.root(), &VaultStop { at: "now".into(), by: "ops".into(), reason: None }).unwrap();
    assert_eq!(writer.write_timestamps(&task("pay"), &timestamps()).unwrap(), TimestampWriteOutcome::Written);
}

#[test]
fn a_stamp_over_a_stamp_changes_two_lines_and_a_humans_later_date_none() {
    let desk = Desk::new();
    let writer = desk.writer();
    writer.write_timestamps(&task("pay"), &timestamps()).unwrap();
    let (later, four) = (noon() + TimeDelta::hours(1), noon() + TimeDelta::hours(4));
    // A signal arrived, so the next check is earlier than planned.
    writer
        .write_timestamps(&task("pay"), &CheckTimestamps::new(later, Some(later + TimeDelta::hours(1)), [four]))
        .unwrap();
    let text = timestamped(TASK).replace("T12:00:00Z", "T13:00:00Z").replace("T16:00:00Z", "T14:00:00Z");
    assert_eq!(desk.read("task/pay.md"), text);
    let humans = text.replace("next_check_after: \"2026-11-21T14:00:00Z\"", "next_check_after: 2026-12-24");
    desk.write("task/pay.md", humans.as_bytes());
    let third = CheckTimestamps::new(later, Some(later + TimeDelta::hours(2)), [later + TimeDelta::hours(1), four]);
    assert_eq!(writer.write_timestamps(&task("pay"), &third).unwrap(), TimestampWriteOutcome::Unchanged);
    assert_eq!(desk.read("task/pay.md"), humans);
}
