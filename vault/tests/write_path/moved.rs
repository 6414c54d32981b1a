//! Notes that people rename, move and swap between a change and its undo: everything follows the note.

use crate::desk::noon;
use crate::mapped::{MappedDesk, mapping, move_to, to_done};
use chrono::{DateTime, TimeDelta, Utc};
use std::fs;
use steward_domain::action::mutation::{Mutation, RelatedField};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::guard::{CallCaps, CallId, ReserveOutcome, ReserveRequest};
use steward_vault::action::moves::{follow_moves_in_ledger, settle_moves};
use steward_vault::action::preview;
use steward_vault::action::writer::ActionReceipt;
use steward_vault::steward::guard::Ledger;

const CALL: &str = "Aufgaben/Müller anrufen.md";
const PAY: &str = "Aufgaben/Rechnung zahlen.md";
const ROOF: &str = "Projects/Roof.md";
const CALL_TEXT: &str = "---\ntags: [task]\nstatus: todo  # since May\nproject: \"[[Roof]]\"\npeople:\n- \"[[Ann]]\"\n---\nCall about [[Roof]].\n";
const PAY_TEXT: &str = "---\ntags: [task]\nstatus: todo\nproject: \"[[Roof]]\"\n---\nPay it.\n";

fn desk() -> MappedDesk {
    MappedDesk::new(&[(CALL, CALL_TEXT), (PAY, PAY_TEXT), (ROOF, "A roof.\n"), ("People/Ann.md", "Ann.\n")])
}

impl MappedDesk {
    /// Notices what changed, a while after the start, as a running process does.
    fn settle(&self, minutes: i64) -> usize {
        let now = moment(minutes);
        self.runtime.block_on(self.index.sync_all(self.writer.root(), now)).unwrap();
        self.runtime.block_on(settle_moves(&self.writer, &self.index, now)).unwrap()
    }

    /// Notices only these files, as the watcher reports them.
    fn hint(&self, paths: &[&str], minutes: i64) -> usize {
        let (now, paths) = (moment(minutes), paths.iter().map(|p| RecordPath::parse(p).unwrap()).collect::<Vec<_>>());
        self.runtime.block_on(self.index.sync_paths(self.writer.root(), &paths, now)).unwrap();
        self.runtime.block_on(settle_moves(&self.writer, &self.index, now)).unwrap()
    }

    fn ledger(&self) -> Ledger {
        let (file, marker) = (self.desk.state().join("ledger.db"), self.desk.state().join("ledger.json"));
        Ledger::open(&file, CallCaps { per_task_day: 1, ..CallCaps::default() }, &marker).unwrap()
    }

    fn rename(&self, from: &str, to: &str) {
        fs::create_dir_all(self.desk.file(to).parent().unwrap()).unwrap();
        fs::rename(self.desk.file(from), self.desk.file(to)).unwrap();
    }

    /// Another machine renamed it: a sync tool writes a new file with the same bytes, and removes the old one.
    fn deliver(&self, from: &str, to: &str) {
        let bytes = fs::read(self.desk.file(from)).unwrap();
        fs::create_dir_all(self.desk.file(to).parent().unwrap()).unwrap();
        fs::write(self.desk.file(to), bytes).unwrap();
        fs::remove_file(self.desk.file(from)).unwrap();
    }

    /// Replaces a link in every note, as Obsidian does when a person renames a note.
    fn relink(&self, old: &str, new: &str) {
        let notes = self.writer.root().list_notes().unwrap();
        for note in notes.notes {
            let text = self.desk.read(&note.name);
            if text.contains(old) {
                self.desk.write(&note.name, text.replace(old, new).as_bytes());
            }
        }
    }

    fn finish(&mut self, name: &str) -> ActionReceipt {
        let receipt = self.change(name, &to_done());
        let paths = [RecordPath::parse(name).unwrap(), receipt.record.clone()];
        self.runtime.block_on(self.index.sync_paths(self.writer.root(), &paths, noon())).unwrap();
        receipt
    }

    /// The path under which the index lists an action's target.
    fn target_of(&self, receipt: &ActionReceipt) -> String {
        let row = self.runtime.block_on(self.index.actions().action_by_path(&receipt.record)).unwrap().unwrap();
        row.target.to_string()
    }
}

fn moment(minutes: i64) -> DateTime<Utc> {
    noon() + TimeDelta::minutes(minutes)
}

#[test]
fn a_renamed_task_is_undone_under_its_new_name() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    let new = "Aufgaben/Herrn Müller anrufen.md";
    desk.rename(CALL, new);
    assert_eq!(desk.settle(1), 1);
    assert_eq!(desk.target_of(&receipt), new);
    let preview = preview::preview_undo(desk.writer.root(), Some(&desk.index), &receipt.record, noon()).unwrap();
    assert_eq!((preview.target.as_str(), preview.refusal), (new, None));
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(new), CALL_TEXT);
    assert_eq!(desk.settle(2), 0, "it is recorded once");
    // A second undo of the same action finds the first.
    assert!(desk.undo(&receipt).is_ok(), "the same click gets the same receipt");
}

#[test]
fn two_tasks_that_changed_places_are_each_undone() {
    let mut desk = desk();
    let (call, pay) = (desk.finish(CALL), desk.finish(PAY));
    desk.rename(CALL, "away.md");
    desk.rename(PAY, CALL);
    desk.rename("away.md", PAY);
    assert_eq!(desk.settle(1), 2);
    assert_eq!((desk.target_of(&call).as_str(), desk.target_of(&pay).as_str()), (PAY, CALL));
    desk.undo(&call).unwrap();
    assert_eq!(desk.desk.read(PAY), CALL_TEXT);
    desk.undo(&pay).unwrap();
    assert_eq!(desk.desk.read(CALL), PAY_TEXT);
}

#[test]
fn a_new_note_at_the_old_path_inherits_nothing() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    desk.rename(CALL, "Aufgaben/Später.md");
    let taken = CALL_TEXT.replace("todo", "✅ done");
    desk.desk.write(CALL, taken.as_bytes());
    assert_eq!(desk.settle(1), 1);
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(CALL), taken, "the new note stays");
    assert_eq!(desk.desk.read("Aufgaben/Später.md"), CALL_TEXT);
}

#[test]
fn a_renamed_folder_takes_all_its_notes_with_it() {
    let mut desk = desk();
    let (call, pay) = (desk.finish(CALL), desk.finish(PAY));
    desk.rename("Aufgaben", "Tasks/2026");
    assert_eq!(desk.settle(1), 2);
    desk.undo(&pay).unwrap();
    desk.undo(&call).unwrap();
    assert_eq!(desk.desk.read("Tasks/2026/Müller anrufen.md"), CALL_TEXT);
    assert_eq!(desk.desk.read("Tasks/2026/Rechnung zahlen.md"), PAY_TEXT);
}

#[test]
fn a_rename_in_pieces_is_put_together_in_either_order() {
    for old_first in [true, false] {
        let mut desk = desk();
        let receipt = desk.finish(CALL);
        let new = "Neu/Anruf.md";
        let bytes = desk.desk.read(CALL);
        let add = || {
            fs::create_dir_all(desk.desk.file("Neu")).unwrap();
            desk.desk.write(new, bytes.as_bytes());
            desk.hint(&[new], 20)
        };
        let remove = |minutes| {
            fs::remove_file(desk.desk.file(CALL)).unwrap();
            desk.hint(&[CALL], minutes)
        };
        let found = if old_first { (remove(1), add()) } else { (add(), remove(30)) };
        assert_eq!(found, (0, 1), "old first: {old_first}");
        desk.undo(&receipt).unwrap();
        assert_eq!(desk.desk.read(new), CALL_TEXT);
    }
}

#[test]
fn a_rename_is_found_from_the_new_path_alone() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    let new = "Aufgaben/Anruf.md";
    desk.rename(CALL, new);
    assert_eq!(desk.hint(&[new], 1), 1, "the watcher may report the old path later");
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(new), CALL_TEXT);
}

#[test]
fn a_rename_while_nothing_runs_is_found_at_the_next_start() {
    for deliver in [false, true] {
        let mut desk = desk();
        let receipt = desk.finish(CALL);
        let new = "Archiv/Anruf.md";
        if deliver {
            desk.deliver(CALL, new)
        } else {
            desk.rename(CALL, new)
        }
        let desk = desk.remap(mapping());
        assert_eq!(desk.settle(60 * 24 * 3), 1, "delivered: {deliver}");
        desk.undo(&receipt).unwrap();
        assert_eq!(desk.desk.read(new), CALL_TEXT);
    }
}

#[test]
fn a_deleted_note_leaves_nothing_to_a_new_one() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    fs::remove_file(desk.desk.file(CALL)).unwrap();
    desk.desk.write("Aufgaben/Neu.md", PAY_TEXT.replace("Pay it", "Something else").as_bytes());
    assert_eq!(desk.settle(1), 0);
    assert_eq!(desk.target_of(&receipt), CALL);
    assert!(desk.undo(&receipt).is_err());
    assert!(desk.desk.read("Aufgaben/Neu.md").contains("todo"));
}

#[test]
fn two_notes_of_equal_content_are_a_matter_for_a_person() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    let bytes = desk.desk.read(CALL);
    fs::remove_file(desk.desk.file(CALL)).unwrap();
    desk.desk.write("Aufgaben/A.md", bytes.as_bytes());
    desk.desk.write("Aufgaben/B.md", bytes.as_bytes());
    assert_eq!(desk.settle(1), 0);
    assert!(desk.undo(&receipt).is_err());
    let gone = desk.runtime.block_on(desk.index.list_lost_notes()).unwrap();
    let [lost] = gone.as_slice() else { panic!("{gone:?}") };
    assert_eq!((lost.path.as_str(), lost.candidates.len()), (CALL, 2));
    let (old, new) = (RecordPath::parse(CALL).unwrap(), RecordPath::parse("Aufgaben/B.md").unwrap());
    desk.runtime.block_on(desk.index.say_moved(desk.writer.root(), &old, &new, "Ann")).unwrap().unwrap();
    assert_eq!(desk.settle(2), 1);
    assert!(desk.runtime.block_on(desk.index.list_lost_notes()).unwrap().is_empty());
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read("Aufgaben/B.md"), CALL_TEXT);
    assert_eq!(desk.desk.read("Aufgaben/A.md"), bytes);
}

#[test]
fn a_copy_of_a_sync_tool_is_not_the_note_that_it_copies() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    // Syncthing renames the local file and puts the one of the other machine in its place.
    let done = desk.desk.read(CALL);
    desk.rename(CALL, "Aufgaben/Müller anrufen.sync-conflict-20261124-100000-ABC.md");
    desk.desk.write(CALL, done.replace("Call about", "Phone about").as_bytes());
    assert_eq!(desk.settle(1), 0);
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(CALL), CALL_TEXT.replace("Call about", "Phone about"));
}

#[test]
fn an_editor_that_saves_through_another_file_moves_nothing() {
    let mut desk = desk();
    let receipt = desk.finish(CALL);
    let done = desk.desk.read(CALL);
    desk.desk.write("Aufgaben/draft.md", done.replace("Call about", "Phone about").as_bytes());
    assert_eq!(desk.settle(1), 0);
    desk.rename("Aufgaben/draft.md", CALL);
    assert_eq!(desk.settle(2), 0);
    desk.undo(&receipt).unwrap();
    assert_eq!(desk.desk.read(CALL), CALL_TEXT.replace("Call about", "Phone about"));
}

#[test]
fn a_note_that_another_one_was_moved_over_is_no_more() {
    let mut desk = desk();
    let (call, pay) = (desk.finish(CALL), desk.finish(PAY));
    desk.rename(PAY, CALL);
    assert_eq!(desk.settle(1), 2);
    let refusal = desk.undo(&call).unwrap_err().to_string();
    assert!(refusal.contains("another note was moved"), "{refusal}");
    desk.undo(&pay).unwrap();
    assert_eq!(desk.desk.read(CALL), PAY_TEXT);
}

#[test]
fn a_note_from_a_template_is_not_the_one_before_it() {
    for is_deleted in [false, true] {
        let mut desk = desk();
        let (first, second) = ("Aufgaben/Erste.md", "Aufgaben/Zweite.md");
        let template = CALL_TEXT.replace("Call about", "What?");
        desk.desk.write(first, template.as_bytes());
        desk.settle(1);
        // The first one is saved by an exchange of files: by an editor that fills it in, and by Steward.
        if !is_deleted {
            desk.desk.write("tmp", CALL_TEXT.replace("Call about", "Filled in").as_bytes());
            desk.rename("tmp", first);
            desk.settle(2);
        }
        let receipt = desk.finish(first);
        desk.settle(3);
        desk.desk.write(second, template.as_bytes());
        assert_eq!(desk.settle(4), 0);
        if is_deleted {
            fs::remove_file(desk.desk.file(first)).unwrap();
            assert_eq!(desk.settle(5), 0, "the version that went had other content");
        }
        assert_eq!(desk.target_of(&receipt), first);
    }
}

#[test]
fn links_that_obsidian_rewrote_are_compared_by_the_note_that_they_name() {
    let mut desk = desk();
    let moved = desk.change(CALL, &move_to("Projects/Shed.md"));
    let ann = Mutation::Related { field: RelatedField::RelatedTo, member: "[[Ann]]".into(), present: false };
    let removed = desk.change(CALL, &ann);
    desk.settle(1);
    // The person renames the new project, the old one and Ann, and Obsidian rewrites every link.
    for (old, new) in [
        ("Projects/Shed", "Projects/Garden shed"),
        ("Projects/Roof", "Archive/Old roof"),
        ("People/Ann", "People/Ann Lee"),
    ] {
        desk.rename(&format!("{old}.md"), &format!("{new}.md"));
        let name = |path: &str| format!("[[{}]]", path.rsplit('/').next().unwrap());
        desk.relink(&name(old), &name(new));
    }
    assert!(desk.desk.read(CALL).contains("[[Garden shed]]"), "{}", desk.desk.read(CALL));
    assert_eq!(desk.settle(2), 3);
    desk.undo(&removed).unwrap();
    desk.undo(&moved).unwrap();
    let expected = CALL_TEXT.replace("[[Roof]]", "[[Old roof]]").replace("[[Ann]]", "[[Ann Lee]]");
    assert_eq!(desk.desk.read(CALL), expected);
}

#[test]
fn a_proposal_is_confirmed_for_the_note_that_moved() {
    let mut desk = desk();
    let plan = desk.plan(CALL, &move_to("Projects/Shed.md"), Ceiling::Confirm).unwrap();
    let receipt = desk.writer.apply_plan(plan).unwrap();
    desk.settle(1);
    desk.rename(CALL, "Aufgaben/Anruf.md");
    desk.rename("Projects/Shed.md", "Projects/Garden shed.md");
    desk.rename(ROOF, "Projects/Big roof.md");
    desk.relink("[[Roof]]", "[[Big roof]]");
    assert_eq!(desk.settle(2), 3);
    crate::desk::Click::new(steward_domain::action::undo::ResolutionKind::Confirm, &receipt.record, "yes")
        .ask(&desk.writer)
        .unwrap();
    let text = desk.desk.read("Aufgaben/Anruf.md");
    assert!(text.contains("project: \"[[Garden shed]]\""), "{text}");
}

#[test]
fn a_renamed_task_gets_no_new_calls() {
    let desk = desk();
    let new = "Aufgaben/Anruf.md";
    let reserve = |call: &str, task: &str, minutes| {
        let request = ReserveRequest {
            call_id: CallId(call.to_owned()),
            task: Some(task.to_owned()),
            ..ReserveRequest::default()
        };
        desk.runtime.block_on(desk.ledger().reserve(&request, moment(minutes)))
    };
    assert!(matches!(reserve("one", CALL, 0), ReserveOutcome::Reserved(_)));
    desk.settle(1);
    desk.rename(CALL, new);
    assert_eq!(desk.settle(2), 1);
    for _ in 0..2 {
        desk.runtime.block_on(follow_moves_in_ledger(&desk.index, &desk.ledger())).unwrap();
    }
    assert!(matches!(reserve("two", new, 3), ReserveOutcome::Refused(_)), "its cap is one call a day");
    assert!(matches!(reserve("three", CALL, 3), ReserveOutcome::Reserved(_)), "a new note has calls of its own");
}

/// A sync tool puts the content of a file into another one, with its time of change.
fn replace_with(desk: &MappedDesk, path: &str, bytes: &[u8], modified: std::time::SystemTime) {
    let (file, staged) = (desk.desk.file(path), desk.desk.file("incoming"));
    fs::write(&staged, bytes).unwrap();
    fs::File::options().write(true).open(&staged).unwrap().set_modified(modified).unwrap();
    fs::rename(staged, file).unwrap();
}

#[test]
fn a_swap_that_a_sync_tool_delivers_is_recognised() {
    let mut desk = desk();
    let (call, pay) = (desk.finish(CALL), desk.finish(PAY));
    let read = |path: &str| {
        let file = desk.desk.file(path);
        (fs::read(&file).unwrap(), fs::metadata(&file).unwrap().modified().unwrap())
    };
    let ((call_text, call_time), (pay_text, pay_time)) = (read(CALL), read(PAY));
    replace_with(&desk, CALL, &pay_text, pay_time);
    replace_with(&desk, PAY, &call_text, call_time);
    assert_eq!(desk.settle(1), 2);
    desk.undo(&call).unwrap();
    assert_eq!((desk.desk.read(PAY).as_str(), desk.desk.read(CALL).as_bytes()), (CALL_TEXT, pay_text.as_slice()));
    desk.undo(&pay).unwrap();
    assert_eq!(desk.desk.read(CALL), PAY_TEXT);
}

#[test]
fn an_equal_link_counts_only_if_it_names_the_same_note() {
    let mut desk = desk();
    let moved = desk.change(CALL, &move_to("Projects/Shed.md"));
    desk.settle(1);
    // The person swaps the names of both projects, and Obsidian rewrites the link to the shed.
    desk.rename(ROOF, "Projects/x.md");
    desk.rename("Projects/Shed.md", ROOF);
    desk.rename("Projects/x.md", "Projects/Shed.md");
    desk.desk.write(CALL, desk.desk.read(CALL).replace("project: \"[[Shed]]\"", "project: \"[[Roof]]\"").as_bytes());
    assert_eq!(desk.settle(2), 2);
    desk.undo(&moved).unwrap();
    assert!(desk.desk.read(CALL).contains("project: \"[[Shed]]\""), "{}", desk.desk.read(CALL));
}
