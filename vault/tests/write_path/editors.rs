//! Thousands of edits by people at the same time as thousands of changes by the vault writer.
//!
//! Every edit by a person leaves a word of its own. People edit a file one at a time, and know nothing about the
//! writer. In the end every word must be in its file, or in `conflict/` if two versions raced. Every change by the
//! writer must have its record, and every record its change.

use crate::desk::{Click, Desk, TASK, Wish, count, fast_dir, live, names, noon, settle};
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::DecisionPolicy;
use steward_domain::record::path::RecordPath;
use steward_vault::action::resolve::ResolutionError;
use steward_vault::action::writer::{ApplyError, VaultWriter};

const TASKS: usize = 24;
const PEOPLE: usize = 3;
const OPERATIONS: usize = 10_000;
/// The number of these that the writer makes, or as many as it can in [`BOX`], but at least a fifth.
const OURS: usize = 1_200;
/// How long people and the writer run side by side, once a fifth is done.
const BOX: Duration = Duration::from_secs(25);
/// The longest time until the people must have lost an edit. They need only a moment.
const PATIENCE: Duration = Duration::from_secs(600);

/// A small random generator. The scheduler decides the interleaving, so the runs differ in any case.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }
}

fn slug(n: usize) -> String {
    format!("task-{n}")
}

/// The people's shared state: a lock for each file, and the words that were saved into it.
struct People {
    words: Vec<Mutex<Vec<String>>>,
    next: AtomicUsize,
}

impl People {
    fn new() -> Self {
        Self { words: (0..TASKS).map(|_| Mutex::default()).collect(), next: AtomicUsize::new(0) }
    }

    /// One edit of one file by one person, saved in one of the ways of editors.
    fn edit(&self, vault: &Path, dice: &mut Dice) {
        let n = dice.roll(TASKS);
        let mut words = self.words[n].lock().unwrap();
        let way = dice.roll(6);
        // It ends in a mark, so that it is found even if a half-saved line follows without a break.
        let word = format!("word{}-{way};", self.next.fetch_add(1, Ordering::Relaxed));
        let path = vault.join("task").join(format!("{}.md", slug(n)));
        let seen = std::fs::read_to_string(&path).unwrap();
        pause(dice);
        match way {
            0 => save_over(&path, &format!("{seen}{word} over\n")),
            1 => save_into(&path, &format!("{seen}{word} into\n"), dice),
            2 => append(&path, &format!("{word} appended\n"), dice),
            3 => save_over(&path, &on_the_state_line(&seen, &word)),
            4 => save_into(&path, &on_the_state_line(&seen, &word), dice),
            _ => save_over(&path, &format!("{}{word} and the state\n", other_state(&seen, dice))),
        }
        words.push(word);
    }

    /// The words that are neither in their file nor in a kept version.
    fn lost(&self, vault: &Path) -> Vec<String> {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let conflicts = vault.join("conflict");
        let kept: String = names(&conflicts).iter().map(|name| read(&conflicts.join(name))).collect();
        let mut lost = Vec::new();
        for (n, words) in self.words.iter().enumerate() {
            let text = read(&vault.join("task").join(format!("{}.md", slug(n))));
            let words = words.lock().unwrap();
            lost.extend(words.iter().filter(|w| !text.contains(w.as_str()) && !kept.contains(w.as_str())).cloned());
        }
        lost
    }
}

fn pause(dice: &mut Dice) {
    for _ in 0..dice.roll(3) {
        std::thread::yield_now();
    }
}

fn save_over(path: &Path, text: &str) {
    let new = path.with_extension("md~");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

/// Opens the file, pauses, truncates it, writes a half, pauses, and writes the rest.
fn save_into(path: &Path, text: &str, dice: &mut Dice) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    pause(dice);
    file.set_len(0).unwrap();
    let (first, rest) = text.split_at(text.len() / 2);
    file.write_all(first.as_bytes()).unwrap();
    pause(dice);
    file.write_all(rest.as_bytes()).unwrap();
}

fn append(path: &Path, text: &str, dice: &mut Dice) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    pause(dice);
    file.write_all(text.as_bytes()).unwrap();
}

fn on_the_state_line(text: &str, word: &str) -> String {
    let line = |line: &str| if line.starts_with("state:") { format!("{line} {word}\n") } else { format!("{line}\n") };
    text.lines().map(line).collect()
}

/// People archive and reopen tasks. Only the writer writes `done`.
fn other_state(text: &str, dice: &mut Dice) -> String {
    let to = ["state: open", "state: open", "state: archived"][dice.roll(3)];
    ["state: open", "state: done", "state: archived"].iter().fold(text.to_owned(), |text, from| {
        if text.contains(from) && *from != to { text.replacen(from, to, 1) } else { text }
    })
}

/// The writer's operations and their outcomes.
#[derive(Default)]
struct Log {
    operations: usize,
    changed: usize,
    undone: usize,
    refused: usize,
    /// The record of every action that was carried out, by the action's id.
    done: BTreeMap<ActionId, RecordPath>,
    failed: BTreeSet<ActionId>,
    /// Live changes that are not undone yet, with the number of their task.
    open: Vec<(usize, RecordPath)>,
    /// How often people were locked out of a file, so that the exact change could be checked.
    watched: usize,
}

/// The writer's two threads. Only one of them works on a file at a time, so that each can check its own change.
struct Hands<'a> {
    writer: &'a VaultWriter,
    people: &'a People,
    busy: Vec<Mutex<()>>,
    log: Mutex<Log>,
    vault: PathBuf,
}

impl Hands<'_> {
    fn path(&self, n: usize) -> PathBuf {
        self.vault.join("task").join(format!("{}.md", slug(n)))
    }

    /// Does something to a task. Every third time people are locked out of it, and then the file must show exactly the
    /// change that the result names.
    fn at(&self, n: usize, dice: &mut Dice, work: impl FnOnce(&[u8]) -> Option<Done>) {
        let _mine = self.busy[n].lock().unwrap();
        let away = (dice.roll(3) == 0).then(|| self.people.words[n].lock().unwrap());
        let before = std::fs::read(self.path(n)).unwrap();
        let done = work(&before);
        if away.is_none() {
            return;
        }
        let (before, after) = (String::from_utf8(before).unwrap(), std::fs::read_to_string(self.path(n)).unwrap());
        match done {
            Some(Done::Set(from, to)) => {
                assert_eq!(after, before.replacen(&format!("state: {from}"), &format!("state: {to}"), 1), "task {n}");
                assert_ne!(after, before, "a record says that task {n} was changed");
            }
            Some(Done::PutBack) if before.contains("state: done") => {
                assert_eq!(after, before.replacen("state: done", "state: open", 1), "task {n}");
            }
            Some(Done::PutBack | Done::Nothing) | None => assert_eq!(after, before, "task {n} changed without a word"),
        }
        self.log.lock().unwrap().watched += 1;
    }
}

/// The change of the file that a result of the writer stands for.
enum Done {
    Set(&'static str, &'static str),
    PutBack,
    Nothing,
}

/// One change or undo of a random task, as its file is now.
fn keep(hands: &Hands<'_>, dice: &mut Dice) {
    let (writer, log) = (hands.writer, &hands.log);
    let number = {
        let mut log = log.lock().unwrap();
        log.operations += 1;
        log.operations
    };
    if dice.roll(2) == 0 {
        let record = {
            let mut log = log.lock().unwrap();
            let open = log.open.len();
            (open > 0).then(|| log.open.swap_remove(dice.roll(open)))
        };
        if let Some((n, record)) = record {
            return hands.at(n, dice, |_| undo(writer, log, record, &format!("undo-{number}")));
        }
    }
    let (n, only_shadow) = (dice.roll(TASKS), dice.roll(20) == 0);
    hands.at(n, dice, |bytes| change(hands, n, number, only_shadow, bytes));
}

fn change(hands: &Hands<'_>, n: usize, number: usize, only_shadow: bool, bytes: &[u8]) -> Option<Done> {
    // A file that cannot be parsed is just being saved, and is left out this time.
    let document = steward_domain::record::frontmatter::read_document(bytes).ok()?;
    let state = document.fields().get("state").and_then(|s| s.as_str())?;
    let shadow = state != "open" || only_shadow;
    let wish = Wish::done(&slug(n), bytes, &format!("run-{number}"))
        .with(|w| w.policy = if shadow { DecisionPolicy::default() } else { live() })
        .with(|w| w.at = noon() + TimeDelta::milliseconds(i64::try_from(number).unwrap()));
    let plan = wish.plan();
    let id = plan.id().clone();
    let applied = hands.writer.apply_plan(plan);
    let mut log = hands.log.lock().unwrap();
    match applied {
        Ok(receipt) => {
            let disposition = receipt.disposition;
            if disposition == Disposition::Live {
                log.changed += 1;
                log.open.push((n, receipt.record.clone()));
            }
            assert!(log.done.insert(id, receipt.record).is_none());
            Some(if disposition == Disposition::Live { Done::Set("open", "done") } else { Done::Nothing })
        }
        Err(ApplyError::ChangedMeanwhile { .. }) => {
            log.refused += 1;
            log.failed.insert(id);
            Some(Done::Nothing)
        }
        Err(e) => panic!("{e}"),
    }
}

fn undo(writer: &VaultWriter, log: &Mutex<Log>, record: RecordPath, run: &str) -> Option<Done> {
    let answered = Click::new(ResolutionKind::Undo, &record, run).ask(writer);
    let mut log = log.lock().unwrap();
    match answered {
        Ok(receipt) => {
            log.undone += 1;
            assert!(log.done.insert(receipt.id, receipt.record).is_none());
            Some(Done::PutBack)
        }
        // A person's state is kept, a newer change of ours is in place, or people kept changing the file.
        Err(
            ResolutionError::Refused(
                ResolutionRefusal::Conflict { .. }
                | ResolutionRefusal::NotTheNewest { .. }
                | ResolutionRefusal::Record { .. },
            )
            | ResolutionError::Apply(ApplyError::ChangedMeanwhile { .. }),
        ) => {
            log.refused += 1;
            Some(Done::Nothing)
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn of_ten_thousand_operations_by_people_and_the_writer_no_edit_is_lost() {
    let desk = Desk::new();
    for n in 0..TASKS {
        desk.write(&format!("task/{}.md", slug(n)), TASK.as_bytes());
    }
    let (writer, people) = (desk.writer(), People::new());
    let hands = Hands {
        writer: &writer,
        people: &people,
        busy: (0..TASKS).map(|_| Mutex::default()).collect(),
        log: Mutex::default(),
        vault: desk.path(),
    };
    let (edits, started) = (AtomicUsize::new(0), Instant::now());
    let ours = || hands.log.lock().unwrap().operations;
    let late = || started.elapsed() > BOX;
    let enough = || {
        let few = ours() < OURS / 5 || (ours() < OURS && !late());
        !few && ours() + edits.load(Ordering::Relaxed) >= OPERATIONS
    };
    std::thread::scope(|scope| {
        for person in 0..PEOPLE {
            let (people, edits, vault, enough, late) = (&people, &edits, desk.path(), &enough, &late);
            scope.spawn(move || {
                let mut dice = Dice(0x9e37_79b9 + u64::try_from(person).unwrap());
                while !enough() {
                    // People keep the ratio to the writer that they have in the end.
                    if !late() && edits.load(Ordering::Relaxed) * OURS > (ours() + 50) * (OPERATIONS - OURS) {
                        std::thread::yield_now();
                        continue;
                    }
                    people.edit(&vault, &mut dice);
                    edits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for hand in 0..2 {
            let (hands, enough) = (&hands, &enough);
            scope.spawn(move || {
                let mut dice = Dice(0xdead_beef + hand);
                while !enough() {
                    keep(hands, &mut dice);
                    if dice.roll(100) == 0 {
                        hands.writer.settle_swaps().unwrap();
                    }
                }
            });
        }
    });
    let at_the_end = settle(&writer).len();
    let (edits, log) = (edits.into_inner(), hands.log.into_inner().unwrap());
    println!(
        "{} operations in {:.1} s: {edits} human edits, {} by the writer ({} changes, {} undone, {} gave way, {} watched); \
         {at_the_end} late edits at the end, {} versions kept in conflict/",
        edits + log.operations,
        started.elapsed().as_secs_f64(),
        log.operations,
        log.changed,
        log.undone,
        log.refused,
        log.watched,
        desk.conflicts().len(),
    );
    assert!(edits + log.operations >= OPERATIONS && log.operations >= OURS / 5, "it ended before its time");
    assert!(
        log.changed > 40 && log.undone > 20 && log.refused > 5 && log.watched > 50,
        "too little happened at the same moment"
    );
    assert_eq!(people.lost(&desk.path()), Vec::<String>::new());
    every_change_has_its_record(&desk, &log);
    desk.is_tidy();
}

fn every_change_has_its_record(desk: &Desk, log: &Log) {
    let records = desk.records();
    assert_eq!(records.len(), log.done.len());
    for (id, path) in &log.done {
        assert_eq!(&records[path.as_str()].draft.id, id);
    }
    assert!(records.values().all(|r| !log.failed.contains(&r.draft.id)), "a change that gave way has a record");
    assert_eq!(count(&records, ActionKind::Reversed), log.undone);
    for n in 0..TASKS {
        let path = format!("task/{}.md", slug(n));
        let text = desk.read(&path);
        steward_domain::record::frontmatter::read_document(text.as_bytes()).unwrap();
        let ours =
            records.values().any(|r| r.draft.target.as_str() == path && r.draft.disposition == Disposition::Live);
        assert!(!text.contains("state: done") || ours, "{path}: done, and nobody says why");
    }
}

/// Reads, changes, compares and renames over: a writer without the swap.
fn naive(vault: &Path, dice: &mut Dice) {
    let path = vault.join("task").join(format!("{}.md", slug(dice.roll(TASKS))));
    let seen = std::fs::read_to_string(&path).unwrap();
    let new = match (seen.contains("state: open"), seen.contains("state: done")) {
        (true, _) => seen.replacen("state: open", "state: done", 1),
        (false, true) => seen.replacen("state: done", "state: open", 1),
        (false, false) => return,
    };
    let temporary = path.with_extension("md.ours");
    std::fs::write(&temporary, new).unwrap();
    if std::fs::read_to_string(&path).unwrap() == seen {
        std::fs::rename(temporary, path).unwrap();
    }
}

#[test]
fn the_same_people_lose_edits_to_a_writer_that_compares_and_renames() {
    let dir = fast_dir();
    std::fs::create_dir(dir.path().join("task")).unwrap();
    for n in 0..TASKS {
        std::fs::write(dir.path().join("task").join(format!("{}.md", slug(n))), TASK).unwrap();
    }
    let (people, started) = (People::new(), Instant::now());
    let (edits, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let enough = || lost.load(Ordering::Relaxed) > 0 || started.elapsed() > PATIENCE;
    std::thread::scope(|scope| {
        let (people, edits, vault, enough) = (&people, &edits, dir.path(), &enough);
        for person in 0..PEOPLE {
            scope.spawn(move || {
                let mut dice = Dice(0x9e37_79b9 + u64::try_from(person).unwrap());
                while !enough() {
                    people.edit(vault, &mut dice);
                    edits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(move || {
            let mut dice = Dice(0xdead_beef);
            while !enough() {
                naive(vault, &mut dice);
            }
        });
        while !enough() {
            // With every lock held, nobody is in the middle of a save.
            let words: Vec<_> = people.words.iter().map(|words| words.lock().unwrap()).collect();
            let missing = words.iter().enumerate().filter(|(n, words)| {
                let text = std::fs::read_to_string(vault.join("task").join(format!("{}.md", slug(*n)))).unwrap();
                words.iter().any(|word| !text.contains(word.as_str()))
            });
            lost.store(missing.count(), Ordering::Relaxed);
            drop(words);
            std::thread::yield_now();
        }
    });
    println!("a naive writer lost an edit within {} edits", edits.into_inner());
    assert!(lost.into_inner() > 0, "the people of this test would not notice a lost edit");
}
