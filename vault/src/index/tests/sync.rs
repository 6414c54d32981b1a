use super::*;
use crate::files::root::FolderEntry;
use crate::index::store::check::{DifferenceKind, IndexDifference};
use crate::index::store::files::FileToRead;
use crate::index::store::sync::{BATCH_SIZE, split_into_batches};

#[tokio::test]
async fn an_empty_vault_is_no_error() {
    let bench = Bench::new().await;
    let report = bench.sync("01:00:00").await;
    assert!(report.complete && report.first && report.problems.is_empty() && !report.scan_changes.matters_changed);
    assert!(bench.index.read().list_matters(&Cadence::default()).await.unwrap().is_empty());
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
    assert!(bench.index.compare_with_files(&bench.root).await.unwrap().is_empty());
}

#[tokio::test]
async fn only_files_that_moved_are_read() {
    let bench = Bench::new().await;
    bench.matter("m");
    bench.task("t", "m", "");
    assert_eq!(bench.sync("01:00:00").await.read, 2);
    assert_eq!(bench.sync("01:01:00").await.read, 0);
    bench.task("t", "m", "state: done\n");
    let report = bench.sync("01:02:00").await;
    assert_eq!((report.read, report.changed, report.removed), (1, 1, 0));
    bench.remove("task/t.md");
    let report = bench.sync("01:03:00").await;
    assert_eq!((report.read, report.changed, report.removed), (0, 0, 1));
    assert!(bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_touched_file_is_not_a_changed_one() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    bench.signal("s", "task/t.md", "");
    let report = bench.sync("01:01:00").await;
    assert_eq!((report.read, report.changed, report.woken.len()), (1, 0, 0));
    assert_eq!(bench.sync("01:02:00").await.read, 0);
    assert_eq!(bench.look("matter/m.md", "l", "02:00:00").await.signals, 1);
}

#[tokio::test]
async fn an_edit_that_keeps_size_and_time_is_found_by_the_content_scan() {
    let bench = Bench::scanned().await;
    bench.put("matter/m.md", "---\ntype: matter\nname: aaa\n---\n");
    bench.sync("01:00:00").await;
    let full = bench.full("matter/m.md");
    let modified = fs::metadata(&full).unwrap().modified().unwrap();
    fs::write(&full, "---\ntype: matter\nname: bbb\n---\n").unwrap();
    File::options().write(true).open(&full).unwrap().set_modified(modified).unwrap();
    assert_eq!(bench.sync("01:01:00").await.read, 0, "the trap is not set");
    let difference = IndexDifference { path: "matter/m.md".into(), differs: DifferenceKind::Content };
    assert_eq!(bench.index.compare_with_files(&bench.root).await.unwrap(), [difference]);
    let report = bench.index.sync_contents(&bench.root, noon("01:02:00")).await.unwrap();
    assert_eq!((report.read, report.changed), (1, 1));
    assert_eq!(bench.index.read().list_matters(&Cadence::default()).await.unwrap()[0].name, "bbb");
    assert!(bench.index.compare_with_files(&bench.root).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_check_names_what_is_missing_on_either_side() {
    let bench = Bench::scanned().await;
    bench.matter("old");
    bench.sync("01:00:00").await;
    bench.remove("matter/old.md");
    bench.matter("new");
    let lines: Vec<String> =
        bench.index.compare_with_files(&bench.root).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["matter/new.md is not in the index", "matter/old.md is in the index but not in the vault"]);
}

#[tokio::test]
async fn each_broken_record_has_its_message_and_the_others_go_on() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("good", "m", "");
    let table: &[(&str, Vec<u8>, &str)] = &[
        ("task/yaml.md", b"---\ntype: [task\n---\n".to_vec(), "failed to read"),
        ("task/twice.md", b"---\ntype: task\nname: a\nname: b\n---\n".to_vec(), "name"),
        ("task/big.md", vec![b'x'; 10 * 1024 * 1024], "split it"),
        ("task/binary.md", b"---\ntype: task\n---\n\0\0\x01".to_vec(), "binary"),
        ("task/state.md", task_text("m", "state: paused\n").into_bytes(), "expected `open`, `done` or `archived`"),
        ("task/blank.md", task_text("m", "state:\n").into_bytes(), "remove the line"),
        ("task/bytes.md", b"---\ntype: task\nname: \xff\xfe\n---\n".to_vec(), "UTF-8"),
        ("task/bare.md", b"no frontmatter at all\n".to_vec(), "---"),
        ("task/empty.md", Vec::new(), "---"),
        ("task/alone.md", b"---\ntype: task\nname: x\n---\n".to_vec(), "`parent_matter` is missing: add it"),
        ("task/typed.md", b"---\ntype: note\n---\n".to_vec(), "set `type: task` or move the file"),
        ("task/orphan.md", task_text("gone", "").into_bytes(), "matter/gone.md does not exist: create that file"),
        ("task/My Task .md", task_text("m", "").into_bytes(), "rename it"),
        ("signal/odd.md", b"---\ntype: signal\n---\n".to_vec(), "is missing: add it"),
        ("event/steward-action-x.md", b"---\ntype: steward-action\n---\n".to_vec(), "steward audit verify"),
    ];
    for (path, bytes, _) in table {
        bench.put(path, bytes);
    }
    fs::create_dir(bench.full("task/folder.md")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", bench.full("task/link.md")).unwrap();
    let report = bench.sync("01:00:00").await;
    assert!(report.complete);
    for (path, _, part) in table {
        let message = bench.problem_of(path).await;
        assert!(message.contains(part), "{path}: {message}");
        assert!(!message.contains('\n') && !message.starts_with(path), "{path}: {message}");
    }
    assert!(bench.problem_of("task/folder.md").await.contains("not a regular file"));
    assert!(bench.problem_of("task/link.md").await.contains("symbolic link"));
    assert_eq!(bench.index.read().list_problems().await.unwrap().len(), table.len() + 2);
    assert_eq!(report.problems.len(), table.len() + 1, "an orphan is found only in the whole vault");
    let tasks = bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap();
    assert_eq!(tasks.iter().map(|t| t.path.as_str()).collect::<Vec<_>>(), ["task/good.md"]);
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!((seen.quiet, seen.problems.len()), (1, 0));
    assert_eq!(bench.index.read().count_records(tonight()).await.unwrap().problems, table.len() as u64 + 2);
}

#[tokio::test]
async fn every_fault_of_a_file_is_named_at_once_with_its_line() {
    let bench = Bench::scanned().await;
    bench.put("task/t.md", "---\nname: T\nstate: opne\ndue: soon\ntype: note\n---\n");
    bench.put("task/blank.md", "---\ntype: task\nstate:\ndue: soon\n---\n");
    bench.put("matter/m.md", "---\ntype: matter\nstate: opne\nsteward:\n  ceilng: act\n---\n");
    bench.put("signal/s.md", "---\ntype: signal\neffect: x\ntarget_kind: task\n---\n");
    bench.sync("01:00:00").await;
    for (path, parts) in [
        (
            "task/t.md",
            &["line 3: `state` is `opne`", "; line 4: `due`", "; line 5: `type` is", "; `parent_matter` is missing"][..],
        ),
        ("task/blank.md", &["line 3: `state`", "; line 4: `due`", "; `parent_matter` is missing: add it"]),
        ("matter/m.md", &["line 3: `state`", "; line 5: `steward.ceilng` is unknown"]),
        ("signal/s.md", &["line 3: `effect`", "`target_path`", "`source_type`", "`created`"]),
    ] {
        let message = bench.problem_of(path).await;
        for part in parts {
            assert!(message.contains(part), "{path}: no {part} in: {message}");
        }
    }
}

#[tokio::test]
async fn the_first_problems_are_of_every_sort_and_no_more_than_were_asked_for() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    for n in 0..7 {
        bench.put(&format!("task/broken{n}.md"), "---\nbroken: [\n---\n");
        bench.task(&format!("lost{n}"), "nowhere", "");
        bench.task(&format!("twin{n}"), "m", "id: x\n");
        let policy = "---\ntype: matter\nname: N\nsteward:\n  ceilng: act\n---\n";
        bench.put(&format!("matter/note{n}.md"), policy);
    }
    bench.sync("01:00:00").await;
    let index = &bench.index;
    let all = index.read().list_problems().await.unwrap();
    assert_eq!((all.len(), index.read().count_records(tonight()).await.unwrap().problems), (28, 28));
    let whole = index.read().list_first_problems(28).await.unwrap();
    assert_eq!((whole.rows, whole.more), (all.clone(), false));
    for limit in [1, 5, 27] {
        let some = index.read().list_first_problems(limit).await.unwrap();
        assert_eq!((some.rows.len(), some.more), (limit as usize, true));
        assert!(some.rows.iter().all(|problem| all.contains(problem)), "{some:?}");
    }
    assert!(
        index.read().find_file_problem(&path("task/broken3.md")).await.unwrap().unwrap().contains("failed to read")
    );
    assert_eq!(index.read().find_file_problem(&path("task/lost3.md")).await.unwrap(), None);
    assert_eq!(index.read().find_file_problem(&path("task/gone.md")).await.unwrap(), None);
}

#[tokio::test]
async fn a_file_name_that_is_no_text_is_a_problem_once() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::scanned().await;
    bench.matter("m");
    for byte in [0xfe, 0xff] {
        let name = [byte, b'.', b'm', b'd'];
        fs::write(bench.full("matter").join(std::ffi::OsStr::from_bytes(&name)), "x").unwrap();
    }
    bench.sync("01:00:00").await;
    let problems = bench.index.read().list_problems().await.unwrap();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("rename it"), "{problems:?}");
    assert_eq!(bench.index.read().list_matters(&Cadence::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn windows_line_endings_and_a_byte_order_mark_are_understood() {
    let bench = Bench::scanned().await;
    bench.put("matter/m.md", "\u{feff}---\r\ntype: matter\r\nname: Farm\r\n---\r\nbody\r\n");
    bench.sync("01:00:00").await;
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
    assert_eq!(bench.index.read().list_matters(&Cadence::default()).await.unwrap()[0].name, "Farm");
}

#[tokio::test]
async fn a_mended_record_comes_back() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "state: what\n");
    bench.sync("01:00:00").await;
    assert_eq!(bench.look("matter/m.md", "l1", "02:00:00").await.quiet, 0);
    bench.task("t", "m", "state: open\n");
    bench.sync("02:01:00").await;
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
    assert_eq!(bench.look("matter/m.md", "l2", "02:30:00").await.quiet, 1);
}

#[tokio::test]
async fn a_record_that_breaks_is_no_longer_acted_upon() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench.task("t", "m", "state: what\n");
    bench.hint(&["task/t.md"], "01:01:00").await;
    assert_eq!(bench.look("matter/m.md", "l1", "02:00:00").await.quiet, 0);
}

#[tokio::test]
async fn two_tasks_with_one_id_are_both_named_and_neither_is_looked_at() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.matter("n");
    bench.task("a", "m", "id: T-7\n");
    bench.task("b", "n", "id: \" T-7 \"\n");
    bench.task("c", "m", "id: T-8\n");
    bench.sync("01:00:00").await;
    let message = bench.problem_of("task/a.md").await;
    assert!(message.contains("T-7") && message.contains("task/b.md") && message.contains("its own"), "{message}");
    assert!(bench.problem_of("task/b.md").await.contains("task/a.md"));
    let seen = bench.look("matter/m.md", "l", "02:00:00").await;
    assert_eq!((seen.quiet, seen.problems.len()), (1, 1));
    assert!(seen.problems[0].starts_with("task/a.md: ") && seen.problems[0].contains("task/b.md"));
    assert_eq!(bench.look("matter/n.md", "l", "02:00:00").await.quiet, 0);
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_loses_nothing() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    fs::rename(bench.full("task"), bench.full("aside")).unwrap();
    fs::write(bench.full("task"), "a file where the folder was").unwrap();
    let report = bench.sync("01:01:00").await;
    assert!(!report.complete);
    assert_eq!((report.removed, report.problems[0].path.as_str()), (0, "task/"));
    assert_eq!(bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap().len(), 1);
    assert_eq!(bench.index.last_sync_at().await.unwrap(), Some(noon("01:00:00")), "it was no whole scan");
}

#[tokio::test]
async fn a_new_signal_wakes_the_matter_of_its_target() {
    let bench = Bench::scanned().await;
    for matter in ["m", "n", "quiet"] {
        bench.matter(matter);
    }
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench.signal("one", "task/t.md", "");
    bench.signal("two", "matter/n.md", "");
    bench.signal("none", "matter/quiet.md", "effect: none\n");
    bench.signal("applied", "matter/quiet.md", "status: applied\n");
    bench.signal("lost", "task/nowhere.md", "");
    let report = bench.sync("01:01:00").await;
    assert_eq!(report.woken, BTreeSet::from([path("matter/m.md"), path("matter/n.md")]));
    assert!(!report.first && !report.scan_changes.matters_changed);
    assert!(bench.sync("01:02:00").await.woken.is_empty());
    bench.signal("one", "task/t.md", "reasoning: corrected by hand\n");
    assert_eq!(bench.hint(&["signal/one.md"], "01:03:00").await.woken, BTreeSet::from([path("matter/m.md")]));
}

#[tokio::test]
async fn a_wake_is_kept_until_it_was_acted_upon_whoever_saw_the_signal_first() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    assert!(bench.index.cursors().list_wake_marks().await.unwrap().is_empty());
    bench.signal("one", "task/t.md", "");
    let other = Index::open(&bench.dir.path().join("state")).await.unwrap();
    other.sync_all(&bench.root, noon("01:01:00")).await.unwrap();
    assert!(bench.sync("01:02:00").await.woken.is_empty(), "the other process has seen it");
    let marks = bench.index.cursors().list_wake_marks().await.unwrap();
    assert_eq!(marks.keys().map(RecordPath::slug).collect::<Vec<_>>(), ["m"]);
    let mark = marks[&path("matter/m.md")];
    bench.signal("two", "task/t.md", "");
    bench.sync("01:03:00").await;
    bench.index.cursors().clear_wake_mark(&path("matter/m.md"), mark).await.unwrap();
    let later = bench.index.cursors().list_wake_marks().await.unwrap();
    assert!(later[&path("matter/m.md")] > mark, "a signal came since");
    bench.index.cursors().clear_wake_mark(&path("matter/m.md"), later[&path("matter/m.md")]).await.unwrap();
    assert!(bench.index.cursors().list_wake_marks().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_standing_of_a_signal_is_nothing_new_and_taking_applied_back_is() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    for (more, woken) in [
        ("status: skipped\nreason: already so\n", 0),
        ("status: pending\n", 0),
        ("status: applied\n", 0),
        ("status: unrouted\n", 1),
    ] {
        bench.signal("s", "task/t.md", more);
        assert_eq!(bench.sync("01:01:00").await.woken.len(), woken, "{more}");
    }
}

#[tokio::test]
async fn schedules_need_a_look_only_when_matters_come_go_or_change_state() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    assert!(bench.sync("01:00:00").await.scan_changes.matters_changed);
    bench.task("t", "m", "");
    assert!(!bench.sync("01:01:00").await.scan_changes.matters_changed);
    bench.put("matter/m.md", "---\ntype: matter\nname: Other words\n---\n");
    assert!(!bench.hint(&["matter/m.md"], "01:02:00").await.scan_changes.matters_changed);
    bench.put("matter/m.md", "---\ntype: matter\nstate: archived\n---\n");
    assert!(bench.hint(&["matter/m.md"], "01:03:00").await.scan_changes.matters_changed);
    bench.put("matter/m.md", "---\nbroken\n---\n");
    assert!(bench.hint(&["matter/m.md"], "01:04:00").await.scan_changes.matters_changed);
    bench.remove("matter/m.md");
    assert!(bench.hint(&["matter/m.md"], "01:05:00").await.scan_changes.matters_changed);
}

#[tokio::test]
async fn news_are_kept_for_who_listens_whoever_scans() {
    let bench = Bench::scanned().await;
    let _ = bench.index.cursors().take_changes();
    bench.matter("m");
    bench.hint(&["matter/m.md"], "01:00:00").await;
    bench.put("stream/mail/e.md", "---\ntype: stream\nsource: mail\nsource_id: 1\npattern: mail:a\nreceived_at: 2026-11-20T09:00:00Z\nstatus: new\n---\nx\n");
    bench.hint(&["stream/mail/e.md"], "01:01:00").await;
    bench.sync("01:02:00").await;
    let expected = ScanChanges { matters_changed: true, events_arrived: true, ..ScanChanges::default() };
    assert_eq!(bench.index.cursors().wait_for_changes().await, expected);
    assert_eq!(bench.index.cursors().take_changes(), ScanChanges::default());
}

#[tokio::test]
async fn a_matter_that_cannot_be_read_stays_in_the_list_and_is_marked() {
    let bench = Bench::scanned().await;
    bench.matter("fine");
    bench.matter("broken");
    bench.sync("01:00:00").await;
    bench.put("matter/broken.md", "---\ntype: [\n---\n");
    bench.put("matter/Bad Name .md", "---\ntype: matter\n---\n");
    bench.sync("01:01:00").await;
    let matters = bench.index.read().list_matters(&Cadence::default()).await.unwrap();
    let states: Vec<_> = matters.iter().map(|m| (m.path.as_str(), m.state)).collect();
    assert_eq!(states, [("matter/broken.md", None), ("matter/fine.md", Some(RecordState::Open))]);
    assert!(bench.problem_of("matter/Bad Name .md").await.contains("rename it"));
    bench.task("t", "broken", "");
    bench.sync("01:02:00").await;
    assert!(bench.problem_of("task/t.md").await.contains("cannot be read: fix that file first"));
}

#[tokio::test]
async fn events_that_are_no_audit_records_are_none_of_ours() {
    let bench = Bench::scanned().await;
    bench.put("event/birthday.md", "not even frontmatter");
    let report = bench.sync("01:00:00").await;
    assert_eq!((report.read, report.problems.len()), (0, 0));
    assert_eq!(bench.hint(&["event/birthday.md"], "01:01:00").await.read, 0);
}

#[tokio::test]
async fn a_record_whose_access_was_mended_is_read_without_a_new_time() {
    let bench = Bench::scanned().await;
    bench.put("matter/m.md", vec![b'x'; 2 * 1024 * 1024]);
    bench.sync("01:00:00").await;
    assert_eq!(bench.sync("01:01:00").await.read, 1, "what could not be read is tried again");
    assert_eq!(bench.sync("01:01:00").await.changed, 0);
}

#[test]
fn batches_hold_every_file_once_in_order_and_no_room_for_others() {
    let wanted = |n: usize| {
        let entry = FolderEntry { name: format!("{n}.md"), size: 1, modified_ns: 1, inode: 1, born_ns: 1 };
        FileToRead { path: format!("task/{n}.md"), entry, known: None }
    };
    let all = 20 * BATCH_SIZE + 3;
    let batches = split_into_batches((0..all).map(wanted).collect());
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [vec![BATCH_SIZE; 20], vec![3]].concat());
    let room: usize = batches.iter().map(Vec::capacity).sum();
    assert!(room <= all + BATCH_SIZE, "room for {room} in place of {all}");
    assert!(batches.iter().flatten().enumerate().all(|(n, w)| w.path == format!("task/{n}.md")));
}

#[tokio::test]
async fn how_far_a_scan_has_come_is_told_of_that_scan_alone() {
    let bench = Bench::scanned().await;
    assert_eq!(bench.index.scan_progress(), (0, 0));
    for n in 0..3 {
        bench.matter(&format!("m{n}"));
    }
    bench.sync("01:00:00").await;
    assert_eq!(bench.index.scan_progress(), (3, 3));
    bench.sync("01:01:00").await;
    assert_eq!(bench.index.scan_progress(), (0, 0), "nothing had to be read");
    bench.index.rebuild(&bench.root, noon("01:02:00")).await.unwrap();
    assert_eq!(bench.index.scan_progress(), (3, 3));
}
