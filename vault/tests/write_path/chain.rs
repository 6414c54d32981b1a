//! The audit chain: the faults that `audit verify` finds, and the cases in which it must find none.

use crate::desk::{Click, Desk, TASK, Wish, faults, names, noon, settle, try_lock};
use chrono::TimeDelta;
use std::sync::atomic::{AtomicBool, Ordering};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::mode::DecisionPolicy;
use steward_domain::record::path::RecordPath;
use steward_vault::action::chain::{ChainVerification, verify_chain};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

/// Five records: three in shadow, a change and its undo; their paths in the order of the chain.
fn five(desk: &Desk, writer: &VaultWriter) -> Vec<RecordPath> {
    let mut paths = Vec::new();
    for n in 0..3 {
        let wish = Wish::done("pay", TASK.as_bytes(), &format!("run-{n}"))
            .with(|w| w.policy = DecisionPolicy::default())
            .with(|w| w.at = noon() + TimeDelta::seconds(n));
        paths.push(writer.apply_plan(wish.plan()).unwrap().record);
    }
    let wish = Wish::done("pay", TASK.as_bytes(), "run-9").with(|w| w.at = noon() + TimeDelta::seconds(9));
    paths.push(writer.apply_plan(wish.plan()).unwrap().record);
    paths.push(Click::new(ResolutionKind::Undo, &paths[3], "run-10").ask(writer).unwrap().record);
    settle(writer);
    desk.is_tidy();
    paths
}

fn tampered(what: &str, tamper: impl Fn(&Desk, &[RecordPath])) -> Vec<String> {
    let desk = Desk::new();
    let writer = desk.writer();
    let paths = five(&desk, &writer);
    tamper(&desk, &paths);
    let found = verify_chain(&desk.root()).unwrap();
    assert!(!found.faults.is_empty(), "{what}: not found");
    assert_eq!(summary(&known(desk.root())), summary(&found), "{what}: the index finds the same");
    assert!(!found.head_unknown, "{what}");
    found.faults
}

/// The verification by the index, after it has read every file.
fn known(root: VaultRoot) -> ChainVerification {
    let state = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let index = Index::open(state.path()).await.unwrap();
        index.sync_all(&root, noon()).await.unwrap();
        index.actions().verify_indexed_chain(&root).await.unwrap()
    })
}

/// The numbers and faults of a verification. Files that are not records at all only count.
fn summary(found: &ChainVerification) -> (u64, bool, Vec<&str>) {
    let is_no_record = |fault: &str| fault.starts_with("unreadable: ") || fault.contains("not the name of a record");
    let faults = found.faults.iter().map(|fault| if is_no_record(fault) { "no record" } else { fault });
    let mut faults: Vec<&str> = faults.collect();
    faults.sort_unstable();
    (found.records, found.head_unknown, faults)
}

fn one(what: &str, expected: &str, tamper: impl Fn(&Desk, &[RecordPath])) {
    let faults = tampered(what, tamper);
    assert!(faults.len() == 1 && faults[0].contains(expected), "{what}: expected `{expected}`, got {faults:#?}");
}

fn change(desk: &Desk, path: &RecordPath, from: &str, to: &str) {
    let text = desk.read(path.as_str());
    assert_ne!(text.replacen(from, to, 1), text, "the test changes nothing");
    desk.write(path.as_str(), text.replacen(from, to, 1).as_bytes());
}

#[test]
fn an_untouched_chain_has_no_faults() {
    let desk = Desk::new();
    let writer = desk.writer();
    assert_eq!((verify_chain(&desk.root()).unwrap().records, faults(&desk.root())), (0, vec![]));
    five(&desk, &writer);
    let found = verify_chain(&desk.root()).unwrap();
    assert_eq!((found.records, found.head_unknown), (5, false));
    assert_eq!(known(desk.root()), found);
}

#[test]
fn a_changed_record_is_found() {
    one("in the middle", "120001000Z-pay.md was changed after", |desk, paths| change(desk, &paths[1], "0.9", "0.8"));
    one("the last", "was changed after it was written", |desk, paths| change(desk, &paths[4], "not yet", "of course"));
    one("the first, in its body", "120000000Z-pay.md was changed", |desk, paths| {
        change(desk, &paths[0], "the bank says so", "the bank says no");
    });
    one("by a line ending", "was changed after", |desk, paths| {
        let text = desk.read(paths[2].as_str()).replace('\n', "\r\n");
        desk.write(paths[2].as_str(), text.as_bytes());
    });
}

#[test]
fn a_missing_record_is_found() {
    let remove =
        |n: usize| move |desk: &Desk, paths: &[RecordPath]| std::fs::remove_file(desk.file(paths[n].as_str())).unwrap();
    one("the first", "1 record(s) missing between the beginning and", remove(0));
    one("in the middle", "1 record(s) missing between event/steward-action-20261121T120001000Z-pay.md and", remove(2));
    one("the last", "1 record(s) missing at the end, after event/steward-action-20261121T120009000Z-pay.md", remove(4));
    one("all", "5 record(s) missing at the end, after the beginning", |desk, _| {
        std::fs::remove_dir_all(desk.file("event")).unwrap();
    });
    one("several", "2 record(s) missing between", |desk, paths| {
        for path in &paths[1..3] {
            std::fs::remove_file(desk.file(path.as_str())).unwrap();
        }
    });
}

#[test]
fn records_in_another_order_are_found() {
    let faults = tampered("two change places", |desk, paths| {
        let (a, b) = (desk.read(paths[1].as_str()), desk.read(paths[2].as_str()));
        desk.write(paths[1].as_str(), b.as_bytes());
        desk.write(paths[2].as_str(), a.as_bytes());
    });
    assert_eq!(faults.iter().filter(|f| f.contains("not the name under which")).count(), 2, "{faults:#?}");
    let faults = tampered("two numbers change places", |desk, paths| {
        change(desk, &paths[1], "seq: 2\n", "seq: 3\n");
        change(desk, &paths[2], "seq: 3\n", "seq: 2\n");
    });
    assert!(faults.iter().any(|f| f.contains("was put in its place")), "{faults:#?}");
}

#[test]
fn a_doubled_record_is_found() {
    let faults = tampered("a copy under another name", |desk, paths| {
        let copy = desk.file("event/steward-action-20261121T120001001Z-pay.md");
        std::fs::copy(desk.file(paths[1].as_str()), copy).unwrap();
    });
    assert!(
        faults.iter().any(|f| f
            .contains("120001001Z-pay.md: number 2 is taken by event/steward-action-20261121T120001000Z-pay.md too")),
        "{faults:#?}"
    );
    one("a copy that a sync tool made", "event/steward-action-x (1).md: not the name of a record", |desk, paths| {
        std::fs::copy(desk.file(paths[1].as_str()), desk.file("event/steward-action-x (1).md")).unwrap();
    });
}

#[test]
fn a_renamed_record_is_found_because_answers_go_by_name() {
    one("the undo", "not the name under which this record was filed", |desk, paths| {
        let away = desk.file("event/steward-action-reversed-20261121T120009001Z-pay.md");
        std::fs::rename(desk.file(paths[4].as_str()), away).unwrap();
    });
}

#[test]
fn a_cut_record_is_found() {
    one("in its body", "was changed after", |desk, paths| {
        let text = desk.read(paths[1].as_str());
        desk.write(paths[1].as_str(), &text.as_bytes()[..text.len() - 5]);
    });
    let faults = tampered("in its fields", |desk, paths| {
        let text = desk.read(paths[1].as_str());
        desk.write(paths[1].as_str(), &text.as_bytes()[..text.len() / 2]);
    });
    assert!(faults[0].starts_with("unreadable: event/steward-action-20261121T120001000Z-pay.md: "), "{faults:#?}");
    assert!(faults[1].starts_with("1 record(s) missing between"), "{faults:#?}");
    let faults = tampered("to nothing", |desk, paths| desk.write(paths[4].as_str(), b""));
    assert!(faults.iter().any(|f| f.contains("missing at the end")), "{faults:#?}");
}

#[test]
fn a_forged_record_is_found_even_where_it_fits() {
    // The very next number, with the right hash of its predecessor: another vault's sixth record.
    let twin = Desk::new();
    let writer = twin.writer();
    five(&twin, &writer);
    let wish = Wish::done("pay", TASK.as_bytes(), "run-11").with(|w| w.at = noon() + TimeDelta::days(1));
    let sixth = writer.apply_plan(wish.plan()).unwrap().record;
    let text = twin.read(sixth.as_str());
    one("at the end", "was not written by Steward, the chain ends at number 5", |desk, _| {
        desk.write(sixth.as_str(), text.as_bytes());
    });
    let faults = tampered("in between", |desk, _| {
        desk.write(sixth.as_str(), text.replace("seq: 6\n", "seq: 3\n").as_bytes());
    });
    assert!(
        faults
            .iter()
            .any(|f| f
                .contains("20261122T120000000Z-pay.md: number 3 is taken by event/steward-action-20261121T120002000Z")),
        "{faults:#?}"
    );
    one("number 0", "no record has the number 0", |desk, _| {
        desk.write(sixth.as_str(), text.replace("seq: 6\n", "seq: 0\n").as_bytes());
    });
}

#[test]
fn without_its_head_a_chain_goes_on_and_says_what_it_cannot_tell() {
    let desk = Desk::new();
    let writer = desk.writer();
    five(&desk, &writer);
    drop(writer);
    // A clone of the vault has everything but our own folder.
    std::fs::remove_dir_all(desk.file(".steward")).unwrap();
    let found = verify_chain(&desk.root()).unwrap();
    assert_eq!((found.head_unknown, found.faults.as_slice(), found.records), (true, [].as_slice(), 5));
    let writer = desk.writer();
    let wish = Wish::done("pay", TASK.as_bytes(), "run-11").with(|w| w.at = noon() + TimeDelta::days(1));
    let sixth = writer.apply_plan(wish.plan()).unwrap().record;
    assert_eq!(desk.records()[sixth.as_str()].seq, 6);
    let found = verify_chain(&desk.root()).unwrap();
    assert_eq!((found.head_unknown, found.faults.as_slice()), (false, [].as_slice()));
}

#[test]
fn a_head_that_cannot_be_read_is_named_with_its_fix() {
    let desk = Desk::new();
    let writer = desk.writer();
    five(&desk, &writer);
    drop(writer);
    desk.write(".steward/chain.json", b"{\"seq\": 5");
    let message = verify_chain(&desk.root()).unwrap_err().to_string();
    assert!(message.starts_with(".steward/chain.json: not readable") && message.contains("remove it"), "{message}");
    let message = try_lock(&desk.path()).unwrap_err().to_string();
    assert!(message.starts_with(".steward/chain.json: not readable"), "{message}");
    std::fs::remove_file(desk.file(".steward/chain.json")).unwrap();
    desk.writer();
    assert_eq!(faults(&desk.root()), Vec::<String>::new());
}

#[test]
fn a_walk_beside_a_writer_finds_nothing_wrong() {
    let desk = Desk::new();
    let writer = desk.writer();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..150 {
                let wish = Wish::done("pay", TASK.as_bytes(), &format!("run-{n}"))
                    .with(|w| w.policy = DecisionPolicy::default())
                    .with(|w| w.at = noon() + TimeDelta::milliseconds(n));
                writer.apply_plan(wish.plan()).unwrap();
                if n % 10 == 0 {
                    settle(&writer);
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut walks = 0;
        while !done.load(Ordering::Acquire) || walks == 0 {
            assert_eq!(faults(&desk.root()), Vec::<String>::new());
            walks += 1;
        }
    });
    assert_eq!(verify_chain(&desk.root()).unwrap().records, 150);
}

#[test]
fn a_walk_needs_nothing_written_and_writes_nothing() {
    let desk = Desk::new();
    let before = names(&desk.path());
    verify_chain(&desk.root()).unwrap();
    assert_eq!(names(&desk.path()), before);
}
