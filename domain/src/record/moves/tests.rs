use super::*;
use crate::time;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

/// Moves as texts: from, to.
type MoveTexts<'a> = &'a [(&'a str, Option<&'a str>)];

fn history(records: &[(u64, MoveTexts<'_>)]) -> MoveHistory {
    MoveHistory::new(
        LinkScope::Vault,
        records.iter().map(|(seq, moves)| RecordedMoves {
            seq: *seq,
            at: moment(*seq),
            moves: moves.iter().map(|(from, to)| NoteMove { from: path(from), to: to.map(path) }).collect(),
        }),
    )
}

fn moment(seq: u64) -> DateTime<Utc> {
    time::parse(&format!("2026-11-24T10:{seq:02}:00Z")).unwrap()
}

#[test]
fn a_path_means_the_note_that_had_it_at_that_time() {
    let moves = history(&[(5, &[("a.md", Some("b.md"))]), (9, &[("b.md", Some("Work/c.md"))])]);
    assert_eq!(moves.find_current(&path("a.md"), PathTime::Seq(1)), Some(path("Work/c.md")));
    assert_eq!(moves.find_current(&path("b.md"), PathTime::Seq(5)), Some(path("Work/c.md")));
    // A note that stands at the old path since is another one.
    assert_eq!(moves.find_current(&path("a.md"), PathTime::Seq(6)), Some(path("a.md")));
    assert_eq!(moves.find_current(&path("a.md"), PathTime::At(moment(4))), Some(path("Work/c.md")));
    assert_eq!(moves.find_current(&path("a.md"), PathTime::At(moment(5))), Some(path("a.md")));
}

#[test]
fn two_notes_may_change_places() {
    let moves = history(&[(5, &[("a.md", Some("b.md")), ("b.md", Some("a.md"))])]);
    assert_eq!(moves.find_current(&path("a.md"), PathTime::Seq(1)), Some(path("b.md")));
    assert_eq!(moves.find_current(&path("b.md"), PathTime::Seq(1)), Some(path("a.md")));
    assert_eq!(moves.list_former_paths(&path("a.md")), [path("b.md")]);
}

#[test]
fn a_note_that_another_one_was_moved_over_has_no_path() {
    let moves = history(&[(5, &[("a.md", Some("b.md")), ("b.md", None)])]);
    assert_eq!(moves.find_current(&path("b.md"), PathTime::Seq(1)), None);
    assert_eq!(moves.find_current(&path("a.md"), PathTime::Seq(1)), Some(path("b.md")));
}

#[test]
fn a_new_note_at_an_old_path_has_no_former_paths() {
    let moves = history(&[(5, &[("a.md", Some("b.md"))]), (7, &[("b.md", Some("c.md"))])]);
    assert!(moves.list_former_paths(&path("b.md")).is_empty());
    assert_eq!(moves.list_former_paths(&path("c.md")), [path("b.md"), path("a.md")]);
}

#[test]
fn an_old_link_names_the_note_that_moved_even_if_its_name_is_taken_again() {
    let moves = history(&[(5, &[("Projects/Old name.md", Some("Archive/New name.md"))])]);
    let resolve = |link: &str, seq| moves.resolve_moved(RecordKind::Matter, link, &path("t.md"), PathTime::Seq(seq));
    assert_eq!(resolve("[[old name]]", 1), Some(path("Archive/New name.md")));
    assert_eq!(resolve("[[Projects/Old name|Title]]", 1), Some(path("Archive/New name.md")));
    assert_eq!(resolve("[[Old name]]", 5), None);
    assert_eq!(resolve("[[New name]]", 1), None);
}

proptest! {
    /// Notes are moved about at random, as a person would, with a model that knows where each one is.
    #[test]
    fn every_note_is_found_by_every_path_that_it_ever_had(steps in prop::collection::vec((0_usize..6, 0_usize..6), 1..40)) {
        let names: Vec<RecordPath> = (0..6).map(|n| path(&format!("n{n}.md"))).collect();
        // The note at each path, and where every note was before each record.
        let mut there: BTreeMap<RecordPath, usize> = names.iter().take(4).cloned().zip(0..).collect();
        let (mut next, mut records, mut seen) = (4, Vec::new(), Vec::new());
        for (seq, (from, to)) in (1_u64..).zip(steps) {
            seen.extend(there.iter().map(|(path, note)| (seq - 1, path.clone(), *note)));
            let (from, to) = (names[from].clone(), names[to].clone());
            if from == to {
                // A new note, if the path is free.
                there.entry(from).or_insert_with(|| {
                    next += 1;
                    next
                });
                continue;
            }
            let Some(note) = there.remove(&from) else { continue };
            let mut moves = vec![NoteMove { from, to: Some(to.clone()) }];
            if there.insert(to.clone(), note).is_some() {
                moves.push(NoteMove { from: to, to: None });
            }
            records.push(RecordedMoves { seq, at: moment(seq), moves });
        }
        let history = MoveHistory::new(LinkScope::Vault, records);
        for (seq, path, note) in seen {
            let now = there.iter().find(|(_, there)| **there == note).map(|(path, _)| path.clone());
            // Sequence numbers count records; a path that was written after record `seq` is followed from there.
            prop_assert_eq!(history.find_current(&path, PathTime::Seq(seq)), now.clone());
            if let Some(now) = now.filter(|now| *now != path) {
                prop_assert!(history.list_former_paths(&now).contains(&path));
            }
        }
    }
}
