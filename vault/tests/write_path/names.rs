//! Notes of any name, and audit records whose names never meet.

use crate::desk::{Click, Desk, TASK, Wish, faults, settle};
use proptest::prelude::*;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::path::{RecordKind, RecordPath};

/// Names as people give them, and the longest that a file can have.
fn names() -> Vec<String> {
    let long = |c: &str| c.repeat(252 / c.len());
    [
        "Überweisung",
        "📌 Plan",
        "-x",
        "#1",
        "Wait… what?",
        "[[a]] | b ^c",
        "a\\b",
        "x..y",
        " x",
        "50 % of \"it\"",
        "日本",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([long("x"), long("ä"), long("日")])
    .collect()
}

#[test]
fn a_note_of_any_name_is_changed_and_undone_to_the_byte() {
    for name in names() {
        let desk = Desk::new();
        let path = format!("task/{name}.md");
        desk.write(&path, TASK.as_bytes());
        let writer = desk.writer();
        let receipt = writer.apply_plan(Wish::done(&name, TASK.as_bytes(), "run-1").plan()).unwrap();
        assert_eq!(desk.read(&path), TASK.replace("open", "done"), "{name}");
        assert!(receipt.record.file_name().len() <= 255 && receipt.record.file_name().is_ascii(), "{}", receipt.record);
        Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
        assert_eq!(desk.read(&path), TASK, "{name}");
        settle(&writer);
        assert_eq!(faults(writer.root()), Vec::<String>::new(), "{name}");
        desk.is_tidy();
    }
}

#[test]
fn two_actions_at_one_instant_do_not_take_each_others_name_and_each_is_filed_once() {
    let desk = Desk::new();
    let writer = desk.writer();
    let plan = |run: &str| Wish::done("pay", TASK.as_bytes(), run).with(|w| w.confidence = 0.1).plan();
    let first = writer.apply_plan(plan("run-1")).unwrap();
    let second = writer.apply_plan(plan("run-2")).unwrap();
    assert_ne!(first.record, second.record);
    for (run, receipt) in [("run-1", &first), ("run-2", &second)] {
        let again = writer.apply_plan(plan(run)).unwrap();
        assert!(again.repeated && again.record == receipt.record, "{run}");
    }
    assert_eq!(desk.records().len(), 2);
    // Each has a resolution of its own.
    for receipt in [&first, &second] {
        Click::new(ResolutionKind::Dismiss, &receipt.record, "run-3").ask(&writer).unwrap();
    }
    settle(&writer);
    assert_eq!((desk.records().len(), faults(writer.root())), (4, Vec::new()));
    desk.is_tidy();
}

proptest! {
    #[test]
    fn names_in_files_and_ids_are_plain_and_differ_where_the_paths_do(
        notes in proptest::collection::btree_set("([A-Zä ]{1,6}x/){0,2}[a-zÜ📌 #]{0,70}y\\.md", 2..12),
    ) {
        let notes: Vec<RecordPath> = notes.iter().map(|note| RecordPath::parse(note).unwrap()).collect();
        let plain: std::collections::BTreeSet<String> =
            notes.iter().map(|note| note.plain_name(RecordKind::Matter)).collect();
        prop_assert_eq!(plain.len(), notes.len());
        for name in plain {
            prop_assert!(name.len() <= 69 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
        }
    }
}
