//! Edits by people at exactly the wrong moment, one moment after the other.
//!
//! A hook on a crash point plays the person, so every interleaving here happens in every run. A writer that reads,
//! compares and renames over the file would lose an edit in each of them, or leave a change without its record.

#[path = "../../../tests/write_path/desk.rs"]
#[allow(dead_code, reason = "these tests need a part of what is shared")]
mod desk;
mod disk;
mod runs;
mod timestamps;
#[path = "../../../tests/write_path/wiki_desk.rs"]
#[allow(dead_code, reason = "these tests need a part of what is shared")]
mod wiki_desk;

use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::crash::hook;
use desk::{Desk, TASK, Wish, faults, settle, task};
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::ResolutionKind;

const BOB: &str = "---\ntype: task\nname: Pay the invoice\nstate: open  # since May\nowner: bob\n---\n";
const EVE: &str = "---\ntype: task\nname: Pay the invoice, says Eve\nstate: open\nowner: eve\n---\n";

fn done(text: &str) -> String {
    text.replace("state: open", "state: done")
}

fn apply(writer: &VaultWriter) -> Result<ActionReceipt, ApplyError> {
    let receipt = writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan());
    assert!(hook::all_met(), "a moment that this test is about did not come");
    receipt
}

fn changed_meanwhile(writer: &VaultWriter) {
    let error = apply(writer).unwrap_err();
    assert!(matches!(error, ApplyError::ChangedMeanwhile { .. }), "{error}");
}

/// An editor that writes a new file and renames it over the old one.
fn save_over(path: &Path, text: &str) {
    let new = path.with_extension("md.new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// An editor that truncates the file and writes it again.
fn save_into(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

type Save = fn(&Path, &str);
const SAVES: [Save; 2] = [save_over, save_into];

fn pay(desk: &Desk) -> PathBuf {
    desk.file("task/pay.md")
}

#[test]
fn an_edit_between_the_last_look_and_the_swap_is_back_in_place_at_once() {
    for save in SAVES {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("before-swap", move || save(&path, BOB));
        changed_meanwhile(&writer);
        assert_eq!(desk.read("task/pay.md"), BOB);
        assert_eq!((desk.records().len(), desk.conflicts().len()), (0, 0));
        settle(&writer);
        assert_eq!(desk.read("task/pay.md"), BOB);
        desk.is_tidy();
        // Judged again, it is applied again.
        writer.apply_plan(Wish::done("pay", BOB.as_bytes(), "run-1").plan()).unwrap();
        assert_eq!(desk.read("task/pay.md"), done(BOB));
    }
}

#[test]
fn an_edit_before_the_last_look_is_never_moved_at_all() {
    for save in SAVES {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("after-journal", move || save(&path, BOB));
        changed_meanwhile(&writer);
        assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (BOB, 0));
        desk.is_tidy();
    }
}

#[test]
fn an_edit_through_a_handle_opened_before_the_swap_is_back_in_place_at_once() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().write(true).open(pay(&desk)).unwrap();
    hook::at("after-swap", move || {
        editor.set_len(0).unwrap();
        editor.write_all(BOB.as_bytes()).unwrap();
    });
    changed_meanwhile(&writer);
    assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (BOB, 0));
}

#[test]
fn a_save_that_is_half_done_when_the_files_change_places_is_finished_in_place() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().write(true).open(pay(&desk)).unwrap();
    let half = editor.try_clone().unwrap();
    hook::at("after-swap", move || half.set_len(0).unwrap());
    changed_meanwhile(&writer);
    editor.seek(SeekFrom::Start(0)).unwrap();
    editor.write_all(BOB.as_bytes()).unwrap();
    assert_eq!(desk.read("task/pay.md"), BOB);
    settle(&writer);
    assert_eq!((desk.read("task/pay.md").as_str(), desk.conflicts().len()), (BOB, 0));
}

#[test]
fn an_edit_on_top_of_the_change_stands_and_the_change_keeps_its_record() {
    for save in SAVES {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("after-swap", move || save(&path, &done(BOB)));
        let receipt = apply(&writer).unwrap();
        settle(&writer);
        assert_eq!(desk.read("task/pay.md"), done(BOB));
        assert_eq!((desk.records().len(), desk.conflicts().len()), (1, 0));
        desk::Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
        assert_eq!(desk.read("task/pay.md"), BOB, "an undo keeps the edit");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn of_two_people_around_the_swap_both_versions_are_kept() {
    for first in SAVES {
        for second in SAVES {
            let desk = Desk::new();
            let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
            hook::at("before-swap", move || first(&a, BOB));
            hook::at("after-swap", move || second(&b, EVE));
            apply(&writer).unwrap();
            assert_eq!((desk.read("task/pay.md").as_str(), desk.conflicts()), (EVE, vec![BOB.to_owned()]));
            assert_eq!(desk.records().len(), 1, "ours was in place for a moment");
            settle(&writer);
            desk.is_tidy();
        }
    }
}

#[test]
fn a_file_removed_or_moved_around_the_swap_blocks_nothing() {
    let remove: Save = |path, _| std::fs::remove_file(path).unwrap();
    let away: Save = |path, _| std::fs::rename(path, path.with_file_name("moved.md")).unwrap();
    for (point, edited_first) in [("before-swap", false), ("after-swap", false), ("after-swap", true)] {
        for vanish in [remove, away] {
            let desk = Desk::new();
            let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
            if edited_first {
                hook::at("before-swap", move || save_over(&a, BOB));
            }
            hook::at(point, move || vanish(&b, ""));
            let applied = apply(&writer);
            assert_eq!(applied.is_ok(), point == "after-swap", "{applied:?}");
            assert_eq!(desk.conflicts(), if edited_first { vec![BOB.to_owned()] } else { vec![] });
            assert_eq!(desk.records().len(), usize::from(applied.is_ok()));
            assert!(!pay(&desk).exists(), "what a human removed stays removed");
            drop(writer);
            let writer = desk.writer();
            settle(&writer);
            desk.is_tidy();
        }
    }
}

#[test]
fn a_link_or_a_folder_put_in_the_place_of_the_file_is_put_back() {
    let link: Save = |path, _| {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("../matter/elsewhere.md", path).unwrap();
    };
    let folder: Save = |path, _| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    for (put, kept) in [(link, "link"), (folder, "folder")] {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        desk.write("matter/elsewhere.md", TASK.as_bytes());
        hook::at("before-swap", move || put(&path, ""));
        changed_meanwhile(&writer);
        let kind = std::fs::symlink_metadata(pay(&desk)).unwrap().file_type();
        assert!(if kept == "link" { kind.is_symlink() } else { kind.is_dir() }, "the {kept} is back");
        assert_eq!((desk.read("matter/elsewhere.md").as_str(), desk.records().len()), (TASK, 0));
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_save_through_an_old_handle_is_found_when_it_comes_and_given_its_place() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().append(true).open(pay(&desk)).unwrap();
    apply(&writer).unwrap();
    assert_eq!(writer.settle_swaps().unwrap(), []);
    editor.write_all(b"late words\n").unwrap();
    assert_eq!(desk.read("task/pay.md"), done(TASK), "nobody has looked yet");
    assert_eq!(writer.settle_swaps().unwrap(), [task("pay").into()]);
    assert_eq!(desk.read("task/pay.md"), format!("{TASK}late words\n"));
    editor.write_all(b"and later ones\n").unwrap();
    assert_eq!(desk.read("task/pay.md"), format!("{TASK}late words\nand later ones\n"), "the handle is at home again");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_late_save_whose_place_is_taken_is_kept_beside_and_still_reached_by_its_handle() {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut editor = OpenOptions::new().append(true).open(pay(&desk)).unwrap();
    apply(&writer).unwrap();
    save_over(&pay(&desk), EVE);
    editor.write_all(b"late words\n").unwrap();
    assert_eq!(settle(&writer), [task("pay").into()]);
    assert_eq!(desk.read("task/pay.md"), EVE);
    editor.write_all(b"later words\n").unwrap();
    assert_eq!(desk.conflicts(), [format!("{TASK}late words\nlater words\n")]);
    desk.is_tidy();
}

#[test]
fn who_opened_our_content_in_the_moment_it_stood_there_loses_nothing_either() {
    let desk = Desk::new();
    let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
    let opened = std::rc::Rc::new(std::cell::RefCell::new(None));
    let keep = std::rc::Rc::clone(&opened);
    hook::at("before-swap", move || save_over(&a, BOB));
    hook::at("after-swap", move || {
        *keep.borrow_mut() = Some(OpenOptions::new().append(true).open(&b).unwrap());
    });
    changed_meanwhile(&writer);
    // Another attempt at the same action stages under another name.
    writer.apply_plan(Wish::done("pay", BOB.as_bytes(), "run-1").plan()).unwrap();
    opened.borrow_mut().as_mut().unwrap().write_all(b"words into ours\n").unwrap();
    assert_eq!(settle(&writer), [task("pay").into()]);
    assert_eq!(desk.read("task/pay.md"), done(BOB));
    assert_eq!(desk.conflicts(), [format!("{}words into ours\n", done(TASK))]);
    desk.is_tidy();
}

#[test]
fn an_edit_that_a_second_human_could_not_see_is_kept_when_they_save_over_it() {
    for save in SAVES {
        let desk = Desk::new();
        let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
        let seen = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
        let see = std::rc::Rc::clone(&seen);
        hook::at("before-swap", move || save_over(&a, BOB));
        hook::at("after-swap", move || *see.borrow_mut() = std::fs::read_to_string(&b).unwrap());
        changed_meanwhile(&writer);
        assert_eq!(desk.read("task/pay.md"), BOB);
        let stale = format!("{}words of Eve\n", seen.borrow());
        save(&pay(&desk), &stale);
        assert_eq!(settle(&writer), [task("pay").into()]);
        assert_eq!((desk.read("task/pay.md"), desk.conflicts()), (stale, vec![BOB.to_owned()]));
        desk.is_tidy();
    }
}

#[test]
fn a_save_that_is_finished_while_it_is_given_back_is_kept_whole() {
    let desk = Desk::new();
    let (writer, path) = (desk.writer(), pay(&desk));
    let mut editor = OpenOptions::new().write(true).open(&path).unwrap();
    let mut first = editor.try_clone().unwrap();
    let (half, rest) = BOB.split_at(BOB.len() / 2);
    hook::at("before-swap", move || {
        first.set_len(0).unwrap();
        first.write_all(half.as_bytes()).unwrap();
    });
    let seen = done(TASK) + "words of Eve\n";
    hook::at("after-giving-back", move || editor.write_all(rest.as_bytes()).unwrap());
    changed_meanwhile(&writer);
    save_into(&path, &seen);
    settle(&writer);
    assert_eq!(desk.read("task/pay.md"), seen);
    assert!(desk.conflicts().contains(&BOB.to_owned()), "{:?}", desk.conflicts());
    desk.is_tidy();
}

#[test]
fn an_edit_between_the_two_steps_back_is_kept_beside() {
    let desk = Desk::new();
    let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
    let opened = std::rc::Rc::new(std::cell::RefCell::new(None));
    let keep = std::rc::Rc::clone(&opened);
    hook::at("before-swap", move || save_over(&a, BOB));
    hook::at("after-swap", move || {
        *keep.borrow_mut() = Some(OpenOptions::new().append(true).open(&b).unwrap());
    });
    hook::at("after-giving-back", move || {
        opened.borrow_mut().as_mut().unwrap().write_all(b"words\n").unwrap();
    });
    changed_meanwhile(&writer);
    assert_eq!((desk.read("task/pay.md").as_str(), desk.conflicts()), (BOB, vec![format!("{}words\n", done(TASK))]));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_undo_reads_a_file_that_is_being_saved_again_instead_of_giving_up() {
    let desk = Desk::new();
    let writer = desk.writer();
    let record = apply(&writer).unwrap().record;
    let (path, edited) = (pay(&desk), done(TASK).replace("ann", "bob"));
    let now = edited.clone();
    hook::at("before-swap", move || save_into(&path, &now));
    desk::Click::new(ResolutionKind::Undo, &record, "run-2").ask(&writer).unwrap();
    assert!(hook::all_met());
    assert_eq!(desk.read("task/pay.md"), edited.replace("state: done", "state: open"));
    assert_eq!(desk::count(&desk.records(), ActionKind::Reversed), 1);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_panic_in_the_middle_is_recovered_like_a_crash() {
    let desk = Desk::new();
    let writer = desk.writer();
    hook::at("before-filing", || panic!("a bug"));
    let broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| apply(&writer)));
    assert!(broken.is_err());
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (done(TASK), 0));
    assert!(apply(&writer).unwrap().repeated);
    assert_eq!(desk.records().len(), 1);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_crash_after_two_people_raced_the_swap_keeps_both_versions_too() {
    for point in ["before-filing", "after-filing", "after-chain-head"] {
        let desk = Desk::new();
        let (writer, a, b) = (desk.writer(), pay(&desk), pay(&desk));
        hook::at("before-swap", move || save_over(&a, BOB));
        hook::at("after-swap", move || save_over(&b, EVE));
        hook::at(point, || panic!("the power goes out"));
        let crashed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| apply(&writer)));
        assert!(crashed.is_err());
        drop(writer);
        let writer = desk.writer();
        settle(&writer);
        assert_eq!((desk.read("task/pay.md").as_str(), desk.conflicts()), (EVE, vec![BOB.to_owned()]), "{point}");
        assert_eq!((desk.records().len(), faults(&desk.root())), (1, vec![]), "{point}");
        desk.is_tidy();
    }
}

#[test]
fn a_crash_while_a_humans_edit_is_given_back_keeps_it() {
    for point in ["after-swap", "after-giving-back"] {
        let desk = Desk::new();
        let (writer, path) = (desk.writer(), pay(&desk));
        hook::at("before-swap", move || save_over(&path, BOB));
        hook::at(point, || panic!("the power goes out"));
        let crashed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| apply(&writer)));
        assert!(crashed.is_err());
        drop(writer);
        let writer = desk.writer();
        assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (BOB, 0), "{point}");
        settle(&writer);
        assert_eq!(desk.conflicts(), Vec::<String>::new());
        desk.is_tidy();
    }
}

#[test]
fn a_name_that_is_taken_under_conflict_is_not_overwritten() {
    let desk = Desk::new();
    let writer = desk.writer();
    for (n, run) in ["run-1", "run-2"].into_iter().enumerate() {
        desk.write("task/pay.md", TASK.as_bytes());
        let (a, b) = (pay(&desk), pay(&desk));
        hook::at("before-swap", move || save_over(&a, BOB));
        hook::at("after-swap", move || save_over(&b, EVE));
        let at = desk::noon() + chrono::TimeDelta::seconds(i64::try_from(n).unwrap());
        writer.apply_plan(Wish::done("pay", TASK.as_bytes(), run).with(|w| w.at = at).plan()).unwrap();
    }
    assert_eq!(desk.conflicts(), [BOB, BOB]);
}
