//! Only one process writes a vault, and files or links that lie in it do not mislead it.

use crate::desk::{Desk, TASK, Wish, names, try_lock};
use std::os::unix::fs::symlink;
use steward_vault::action::writer::{LockError, VaultWriter};

#[test]
fn the_second_writer_is_told_who_holds_the_vault() {
    let desk = Desk::new();
    let writer = desk.writer();
    let error = VaultWriter::lock(desk.root()).unwrap_err();
    assert!(matches!(error, LockError::Held { .. }), "{error}");
    let holder = format!("process {}", std::process::id());
    assert!(error.to_string().starts_with(".steward/lock: ") && error.to_string().contains(&holder), "{error}");
    assert!(matches!(VaultWriter::lock(desk.root()), Err(LockError::Held { .. })), "asking takes nothing away");
    drop(writer);
    desk.writer();
}

#[test]
fn a_writer_whose_lock_was_removed_stops_writing() {
    let desk = Desk::new();
    let writer = desk.writer();
    std::fs::remove_dir_all(desk.file(".steward")).unwrap();
    let plan = Wish::done("pay", TASK.as_bytes(), "run-1").plan();
    let message = writer.apply_plan(plan.clone()).unwrap_err().to_string();
    assert!(message.starts_with(".steward/lock: was removed") && message.contains("restart"), "{message}");
    let second = desk.writer();
    assert!(writer.apply_plan(plan.clone()).is_err(), "now another one holds the vault");
    second.apply_plan(plan).unwrap();
    assert_eq!(desk.records().len(), 1);
}

#[test]
fn our_folder_keeps_itself_out_of_git() {
    let desk = Desk::new();
    desk.writer();
    assert_eq!(desk.read(".steward/.gitignore"), "*\n");
    desk.write(".steward/.gitignore", b"mine\n");
    desk.writer();
    assert_eq!(desk.read(".steward/.gitignore"), "mine\n");
}

#[test]
fn links_in_the_place_of_what_is_ours_are_refused_and_what_they_name_is_safe() {
    for (link, to) in [
        (".steward", "task"),
        (".steward/staged", "../task"),
        (".steward/journal", "../task"),
        (".steward/lock", "../task/pay.md"),
        (".steward", "/tmp"),
        (".steward/lock", "/etc/hostname"),
    ] {
        let desk = Desk::new();
        if link != ".steward" {
            std::fs::create_dir(desk.file(".steward")).unwrap();
        }
        symlink(to, desk.file(link)).unwrap();
        let message = try_lock(&desk.path()).unwrap_err().to_string();
        assert!(message.starts_with(".steward"), "{link} -> {to}: {message}");
        assert!(message.contains("link"), "{link} -> {to}: {message}");
        assert_eq!(desk.read("task/pay.md"), TASK, "{link} -> {to}");
        assert_eq!(names(&desk.file("task")), ["pay.md"], "{link} -> {to}");
    }
}

#[test]
fn links_in_the_place_of_our_files_are_replaced_and_not_followed() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file(".steward")).unwrap();
    for name in ["chain.json.tmp", ".gitignore"] {
        symlink("../task/pay.md", desk.file(".steward").join(name)).unwrap();
    }
    let writer = desk.writer();
    let shadow = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| w.policy = Default::default());
    writer.apply_plan(shadow.plan()).unwrap();
    assert_eq!(desk.read("task/pay.md"), TASK);
}

#[test]
fn an_intent_that_cannot_be_read_is_named_with_its_fix() {
    let desk = Desk::new();
    drop(desk.writer());
    desk.write(".steward/journal/000000000001-0011223344556677.json", b"{");
    let message = try_lock(&desk.path()).unwrap_err().to_string();
    assert!(message.contains(".steward/journal/000000000001-0011223344556677.json: "), "{message}");
    assert!(message.contains("move it away"), "{message}");
}

#[test]
fn what_a_crash_left_of_unfinished_files_is_swept() {
    let desk = Desk::new();
    drop(desk.writer());
    desk.write(".steward/journal/000000000001-0011223344556677.json.tmp", b"{");
    desk.write(".steward/staged/000000000001-0011223344556677", b"half a fi");
    desk.write(".steward/staged/000000000001-0011223344556677.record", b"---");
    drop(desk.writer());
    desk.is_tidy();
}
