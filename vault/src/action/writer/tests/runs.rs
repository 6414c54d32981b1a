//! People at the files of a run at exactly the wrong moment.

use super::desk::{Desk, settle};
use super::wiki_desk::{WIKI, after, before, commit, read_wiki, trash, wiki, wiki_records};
use super::{SAVES, Save, save_over};
use crate::action::writer::{ApplyError, VaultWriter};
use crate::files::crash::hook;
use std::path::PathBuf;

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
