//! People at the files of a run at exactly the wrong moment.

use super::desk::{Desk, settle};
use super::wiki_desk::{WIKI, after, before, commit, plan, read_wiki, record_path, run, trash, wiki, wiki_records};
use super::{SAVES, Save, save_over};
use crate::action::writer::{ApplyError, VaultWriter};
use crate::files::crash::hook;
use std::path::PathBuf;
use std::time::Duration;
use steward_domain::wiki::run::WikiRunType;

/// The number of files that are exchanged before the page is: the source, and the two new pages.
const PAGE: &str = "entities/page-00.md";
const MINE: &str = "# Mine\n";

fn file(desk: &Desk, name: &str) -> PathBuf {
    desk.file(&format!("{WIKI}/{name}"))
}

fn commit_at_moments(writer: &VaultWriter) -> Result<bool, ApplyError> {
    let ended = commit(writer);
    assert!(hook::all_met(), "a moment that this test is about did not come");
    ended
}

/// Runs an action at the n-th exchange that follows another.
fn at_exchange(number: usize, action: impl FnOnce() + 'static) {
    for _ in 1..number {
        hook::at("between-exchanges", || {});
    }
    hook::at("between-exchanges", action);
}

#[test]
fn a_person_at_a_later_file_takes_back_those_before_it() {
    for save in SAVES {
        for name in ["_index.md", "_log.md", "entities/page-11.md", "entities/old-2.md"] {
            let (desk, at) = (wiki(), name.to_owned());
            let (writer, path) = (desk.writer(), file(&desk, name));
            at_exchange(4, move || save(&path, MINE));
            assert!(matches!(commit_at_moments(&writer), Err(ApplyError::ChangedMeanwhile { .. })), "{at}");
            let mut expected = before();
            expected.insert(at.clone(), MINE.into());
            assert_eq!((read_wiki(&desk), wiki_records(&desk).len(), trash(&desk).len()), (expected, 0, 0), "{at}");
            settle(&writer);
            desk.is_tidy();
        }
    }
}

#[test]
fn a_person_who_takes_the_name_of_a_new_file_keeps_it() {
    let desk = wiki();
    let (writer, path) = (desk.writer(), file(&desk, "entities/page-12.md"));
    let taken = file(&desk, "entities/new-1.md");
    at_exchange(1, move || save_over(&taken, MINE));
    assert!(matches!(commit_at_moments(&writer), Err(ApplyError::ChangedMeanwhile { .. })));
    assert!(!path.exists());
    let mut expected = before();
    expected.insert("entities/new-1.md".into(), MINE.into());
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len()), (expected, 0));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_person_between_the_comparison_and_the_exchange_gets_the_file_back_and_the_run_is_taken_back() {
    for save in SAVES {
        for name in ["entities/old-0.md", PAGE] {
            let desk = wiki();
            let (writer, path) = (desk.writer(), file(&desk, name));
            // The moment right before each exchange comes once for each file.
            let index = before_position(name);
            for _ in 0..index {
                hook::at("before-swap", || {});
            }
            hook::at("before-swap", move || save(&path, MINE));
            assert!(matches!(commit_at_moments(&writer), Err(ApplyError::ChangedMeanwhile { .. })), "{name}");
            let mut expected = before();
            expected.insert(name.into(), MINE.into());
            assert_eq!((read_wiki(&desk), wiki_records(&desk).len(), trash(&desk).len()), (expected, 0, 0), "{name}");
            settle(&writer);
            desk.is_tidy();
        }
    }
}

/// How many files are exchanged before this one: the source, then the pages by name.
fn before_position(name: &str) -> usize {
    let mut pages: Vec<String> =
        before().into_keys().chain(after().into_keys()).filter(|file| file.starts_with("entities/")).collect();
    pages.sort();
    pages.dedup();
    1 + pages.iter().position(|page| page == name).unwrap()
}

#[test]
fn people_at_an_earlier_and_a_later_file_both_keep_their_words_and_the_record_names_the_missing_one() {
    let edits: [Save; 2] = SAVES;
    for save in edits {
        let desk = wiki();
        let (writer, page, index) = (desk.writer(), file(&desk, "entities/new-0.md"), file(&desk, "_index.md"));
        at_exchange(6, move || {
            save(&page, MINE);
            save(&index, MINE);
        });
        assert!(!commit_at_moments(&writer).unwrap(), "the run is committed");
        let mut expected = after();
        expected.insert("entities/new-0.md".into(), MINE.into());
        expected.insert("_index.md".into(), MINE.into());
        assert_eq!(read_wiki(&desk), expected);
        assert_eq!(wiki_records(&desk)[0].missing_files, [format!("{WIKI}/_index.md")]);
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_late_save_into_a_file_that_was_exchanged_or_removed_is_given_back() {
    for (name, kept) in [(PAGE, PAGE), ("entities/old-0.md", "entities/old-0.md")] {
        let desk = wiki();
        let writer = desk.writer();
        let mut editor = std::fs::OpenOptions::new().append(true).open(file(&desk, name)).unwrap();
        assert!(!commit(&writer).unwrap());
        std::io::Write::write_all(&mut editor, b"late words\n").unwrap();
        let late = settle(&writer);
        assert_eq!(late.iter().map(ToString::to_string).collect::<Vec<_>>(), [format!("{WIKI}/{kept}")]);
        let mut expected = after();
        expected.insert(name.into(), format!("{}late words\n", before()[name]));
        assert_eq!(read_wiki(&desk), expected, "{name}");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_file_that_was_there_for_a_moment_and_that_somebody_wrote_into_is_given_back() {
    let desk = wiki();
    let (writer, new, index) = (desk.writer(), file(&desk, "entities/new-0.md"), file(&desk, "_index.md"));
    let editor = std::rc::Rc::new(std::cell::RefCell::new(None));
    let opened = std::rc::Rc::clone(&editor);
    at_exchange(6, move || {
        *opened.borrow_mut() = Some(std::fs::OpenOptions::new().append(true).open(&new).unwrap());
        save_over(&index, MINE);
    });
    assert!(commit_at_moments(&writer).is_err());
    assert!(!file(&desk, "entities/new-0.md").exists(), "it was taken back");
    std::io::Write::write_all(editor.borrow_mut().as_mut().unwrap(), b"mine\n").unwrap();
    settle(&writer);
    assert_eq!(desk.read(&format!("{WIKI}/entities/new-0.md")), "# New 0\nmine\n");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_late_save_into_a_removed_file_whose_name_is_taken_is_a_conflict_and_settling_ends() {
    let desk = wiki();
    let writer = desk.writer();
    let mut editor = std::fs::OpenOptions::new().append(true).open(file(&desk, "entities/old-0.md")).unwrap();
    assert!(!commit(&writer).unwrap());
    std::io::Write::write_all(&mut editor, b"late words\n").unwrap();
    save_over(&file(&desk, "entities/old-0.md"), MINE);
    // The other files of the run are still waited for.
    assert_eq!(writer.settle_swaps_older_than(Duration::from_secs(60)).unwrap().len(), 1);
    assert_eq!(writer.settle_swaps_older_than(Duration::from_secs(60)).unwrap(), []);
    settle(&writer);
    assert_eq!(desk.read(&format!("{WIKI}/entities/old-0.md")), MINE);
    let [conflict] = desk.conflicts().try_into().unwrap();
    assert!(conflict.ends_with("late words\n"), "{conflict}");
    desk.is_tidy();
}

#[test]
fn two_late_saves_while_others_are_waited_for_are_both_kept() {
    let desk = wiki();
    let writer = desk.writer();
    let mut editor = std::fs::OpenOptions::new().append(true).open(file(&desk, PAGE)).unwrap();
    assert!(!commit(&writer).unwrap());
    std::io::Write::write_all(&mut editor, b"late words\n").unwrap();
    save_over(&file(&desk, PAGE), MINE);
    let late = writer.settle_swaps_older_than(Duration::from_secs(60)).unwrap();
    assert_eq!(late.len(), 1);
    assert_eq!((desk.read(&format!("{WIKI}/{PAGE}")).as_str(), desk.conflicts().len()), (MINE, 1));
    assert_eq!(writer.settle_swaps_older_than(Duration::from_secs(60)).unwrap(), []);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_attempt_that_was_taken_back_does_not_bring_back_what_a_later_one_removed() {
    let desk = wiki();
    let (writer, index) = (desk.writer(), file(&desk, "_index.md"));
    // The first attempt removes a file, and is taken back.
    let taken = index.clone();
    hook::at("between-exchanges", || {});
    at_exchange(17, move || save_over(&taken, MINE));
    assert!(commit_at_moments(&writer).is_err());
    assert!(file(&desk, "entities/old-0.md").exists());
    // A person edits the file, and the run is planned again on what stands now.
    save_over(&file(&desk, "entities/old-0.md"), "# Old 0, edited\n");
    save_over(&index, "# Index\n");
    let mut now = before();
    now.insert("entities/old-0.md".into(), "# Old 0, edited\n".into());
    writer.commit_run(&plan(run(WikiRunType::Manual, "a"), &now, &after())).unwrap();
    assert_eq!(writer.settle_swaps_older_than(Duration::from_secs(60)).unwrap(), []);
    settle(&writer);
    assert_eq!(read_wiki(&desk), after());
    desk.is_tidy();
}

#[test]
fn a_stop_that_comes_while_a_run_is_staged_ends_it() {
    let desk = wiki();
    let (writer, root) = (desk.writer(), desk.root());
    hook::at("after-journal", move || {
        let stop = crate::gates::stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
        crate::gates::stop::stop_vault(&root, &stop).unwrap();
    });
    assert!(matches!(commit_at_moments(&writer), Err(ApplyError::Stopped)));
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len(), trash(&desk).len()), (before(), 0, 0));
    desk.is_tidy();
}

#[test]
fn a_file_that_somebody_else_puts_under_the_name_of_the_record_is_not_the_record() {
    let desk = wiki();
    let (writer, foreign) = (desk.writer(), desk.file(&record_path()));
    let put = foreign.clone();
    hook::at("before-filing", move || std::fs::write(put, "not ours").unwrap());
    assert!(matches!(commit_at_moments(&writer), Err(ApplyError::Io { .. })));
    assert_eq!((read_wiki(&desk), trash(&desk).len()), (before(), 0), "all is taken back");
    std::fs::remove_file(foreign).unwrap();
    assert!(!commit(&writer).unwrap());
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_trash_that_is_a_link_is_refused_before_anything_moves() {
    let desk = wiki();
    let (writer, outside) = (desk.writer(), desk.file("task"));
    std::os::unix::fs::symlink(&outside, file(&desk, ".trash")).unwrap();
    let error = commit(&writer).unwrap_err().to_string();
    assert!(error.contains("link"), "{error}");
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len()), (before(), 0));
    std::fs::remove_file(file(&desk, ".trash")).unwrap();
    assert!(!commit(&writer).unwrap());
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn an_error_names_the_file_that_a_person_changed() {
    let desk = wiki();
    let (writer, index) = (desk.writer(), file(&desk, "_index.md"));
    at_exchange(4, move || save_over(&index, MINE));
    let error = commit_at_moments(&writer).unwrap_err().to_string();
    assert!(error.starts_with("wiki/plot/_index.md: changed"), "{error}");
}
