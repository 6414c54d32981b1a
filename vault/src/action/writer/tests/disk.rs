//! A disk that fails in the middle: the record cannot be filed although the content is in place.

use super::BOB;
use super::apply;
use super::desk::{Desk, TASK, Wish, faults, settle};
use super::done;
use super::pay;
use super::save_over;
use crate::files::crash::hook;
use std::path::PathBuf;
use steward_domain::record::path::RecordPath;

/// Replaces the folder of records by a file, so that filing fails whatever our privileges are.
fn block(desk: &Desk) -> impl FnOnce() + 'static {
    let events = desk.file("event");
    move || {
        let _ = std::fs::rename(&events, aside(&events));
        std::fs::write(&events, "a file where a folder should be").unwrap();
    }
}

fn unblock(desk: &Desk) {
    let events = desk.file("event");
    std::fs::remove_file(&events).unwrap();
    std::fs::rename(aside(&events), &events).unwrap();
}

fn aside(events: &std::path::Path) -> PathBuf {
    events.with_file_name("event.aside")
}

#[test]
fn a_change_whose_record_cannot_be_filed_is_put_back() {
    let desk = Desk::new();
    let writer = desk.writer();
    hook::at("before-filing", block(&desk));
    let message = apply(&writer).unwrap_err().to_string();
    assert!(message.starts_with("task/pay.md: "), "{message}");
    assert_eq!(desk.read("task/pay.md"), TASK, "nothing half done");
    unblock(&desk);
    assert_eq!(desk.records().len(), 0);
    assert!(!apply(&writer).unwrap().repeated, "works again afterwards");
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (done(TASK), 1));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_change_that_can_neither_be_filed_nor_put_back_goes_before_everything_else() {
    let desk = Desk::new();
    let (writer, path) = (desk.writer(), pay(&desk));
    desk.write("task/other.md", TASK.as_bytes());
    hook::at("after-swap", move || save_over(&path, &done(BOB)));
    hook::at("before-filing", block(&desk));
    apply(&writer).unwrap_err();
    let other = Wish::done("other", TASK.as_bytes(), "run-9").with(|w| w.at += chrono::TimeDelta::hours(1)).plan();
    let message = writer.apply_plan(other.clone()).unwrap_err().to_string();
    assert!(message.starts_with("task/pay.md: "), "{message}");
    assert_eq!(desk.read("task/other.md"), TASK);
    writer.settle_swaps().unwrap_err();
    unblock(&desk);
    writer.apply_plan(other).unwrap();
    let records = desk.records();
    let targets: Vec<&RecordPath> = records.values().map(|r| &r.draft.target).collect();
    assert_eq!(targets.iter().map(|t| t.slug()).collect::<Vec<_>>(), ["pay", "other"]);
    assert!(apply(&writer).unwrap().repeated, "asking again finds it done");
    assert_eq!((desk.read("task/pay.md"), faults(&desk.root())), (done(BOB), vec![]));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_restart_finishes_what_could_neither_be_filed_nor_put_back() {
    let desk = Desk::new();
    let (writer, path) = (desk.writer(), pay(&desk));
    hook::at("after-swap", move || save_over(&path, &done(BOB)));
    hook::at("before-filing", block(&desk));
    apply(&writer).unwrap_err();
    drop(writer);
    unblock(&desk);
    let writer = desk.writer();
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (done(BOB), 1));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_lost_staged_record_is_put_right_where_it_can_be_and_named_where_not() {
    for edited in [false, true] {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("before-filing", || panic!("the power goes out"));
        let crashed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| apply(&writer)));
        assert!(crashed.is_err());
        drop(writer);
        for name in super::desk::names(&desk.file(".steward/staged")).iter().filter(|n| n.ends_with(".record")) {
            std::fs::remove_file(desk.file(".steward/staged").join(name)).unwrap();
        }
        if edited {
            save_over(&path, &done(BOB));
            let message = crate::action::writer::VaultWriter::lock(desk.root()).unwrap_err().to_string();
            assert!(message.contains("task/pay.md: was changed, but its audit record is lost"), "{message}");
            assert!(message.contains("then remove .steward/journal/000000000001-"), "{message}");
        } else {
            let writer = desk.writer();
            assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (TASK, 0));
            settle(&writer);
            desk.is_tidy();
        }
    }
}

#[test]
fn what_cannot_be_settled_is_tried_again_and_holds_nothing_else_up() {
    let desk = Desk::new();
    let writer = desk.writer();
    desk.write("task/other.md", TASK.as_bytes());
    let mut editor = std::fs::OpenOptions::new().append(true).open(pay(&desk)).unwrap();
    apply(&writer).unwrap();
    writer.apply_plan(Wish::done("other", TASK.as_bytes(), "run-1").plan()).unwrap();
    save_over(&pay(&desk), BOB);
    std::io::Write::write_all(&mut editor, b"late words\n").unwrap();
    desk.write("conflict", b"a file where a folder should be");
    for _ in 0..2 {
        let message = writer.settle_swaps_older_than(std::time::Duration::ZERO).unwrap_err().to_string();
        assert!(message.starts_with("task/pay.md: "), "{message}");
    }
    assert_eq!(super::desk::names(&desk.file(".steward/journal")).len(), 1, "the other one has settled");
    std::fs::remove_file(desk.file("conflict")).unwrap();
    settle(&writer);
    assert_eq!(desk.conflicts(), [format!("{TASK}late words\n")]);
    desk.is_tidy();
}
