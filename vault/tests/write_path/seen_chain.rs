//! Any damage to the audit records is found by whoever remembers the last record, also if the whole vault was set back.
//!
//! Somebody who can write the vault can also write the head of its chain. They cannot write what the fleet's database has
//! seen.

use crate::desk::{Desk, TASK, Wish, fast_dir, noon, settle};
use chrono::TimeDelta;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use steward_domain::action::audit::ChainHead;
use steward_domain::gates::mode::DecisionPolicy;
use steward_vault::action::chain::{read_head, verify_chain, verify_chain_beyond};
use steward_vault::files::root::VaultRoot;

/// The files of a vault's audit records and the head of the chain, by path.
type AuditFiles = BTreeMap<String, Vec<u8>>;

/// The audit files after no record, one record, and so on up to eight, and the last head.
static HISTORY: LazyLock<(Vec<AuditFiles>, ChainHead)> = LazyLock::new(|| {
    let desk = Desk::new();
    let writer = desk.writer();
    let mut history = vec![read_audit_files(&desk)];
    for n in 0..8 {
        let wish = Wish::done("pay", TASK.as_bytes(), &format!("run-{n}"))
            .with(|w| w.policy = DecisionPolicy::default())
            .with(|w| w.at = noon() + TimeDelta::seconds(n));
        writer.apply_plan(wish.plan()).unwrap();
        settle(&writer);
        history.push(read_audit_files(&desk));
    }
    (history, read_head(writer.root()).unwrap())
});

fn read_audit_files(desk: &Desk) -> AuditFiles {
    let mut files = AuditFiles::new();
    let records = crate::desk::names(&desk.file("event")).into_iter().map(|name| format!("event/{name}"));
    for path in records.chain([".steward/chain.json".to_owned()]).filter(|path| desk.file(path).exists()) {
        files.insert(path.clone(), std::fs::read(desk.file(&path)).unwrap());
    }
    files
}

/// What somebody does to the records.
#[derive(Clone, Debug)]
enum Damage {
    FlipBit(Index, Index, u8),
    Delete(Index),
    Swap(Index, Index),
    /// The newest records are removed.
    Truncate(usize),
    /// The newest records are removed, and the head is written as it was before them.
    SetBack(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<Index>(), 0..8_u8).prop_map(|(file, byte, bit)| Damage::FlipBit(file, byte, bit)),
        any::<Index>().prop_map(Damage::Delete),
        (any::<Index>(), any::<Index>())
            .prop_filter("two files", |(a, b)| a.index(8) != b.index(8))
            .prop_map(|(a, b)| Damage::Swap(a, b)),
        (1..=8_usize).prop_map(Damage::Truncate),
        (1..=8_usize).prop_map(Damage::SetBack),
    ]
}

fn apply(files: &mut AuditFiles, damage: &Damage) {
    let history = &HISTORY.0;
    let records: Vec<String> = files.keys().filter(|path| path.starts_with("event/")).cloned().collect();
    match damage {
        Damage::FlipBit(file, byte, bit) => {
            let bytes = files.get_mut(file.get(&records)).unwrap();
            let position = byte.index(bytes.len());
            bytes[position] ^= 1 << bit;
        }
        Damage::Delete(file) => drop(files.remove(file.get(&records))),
        Damage::Swap(a, b) => {
            let (a, b) = (a.get(&records), b.get(&records));
            let (first, second) = (files[a].clone(), files[b].clone());
            files.insert(a.clone(), second);
            files.insert(b.clone(), first);
        }
        Damage::Truncate(count) => records.iter().rev().take(*count).for_each(|path| drop(files.remove(path))),
        Damage::SetBack(count) => files.clone_from(&history[history.len() - 1 - count]),
    }
}

fn write_files(folder: &Path, files: &AuditFiles) -> VaultRoot {
    for inner in ["event", ".steward"] {
        std::fs::create_dir(folder.join(inner)).unwrap();
    }
    for (path, bytes) in files {
        std::fs::write(folder.join(path), bytes).unwrap();
    }
    VaultRoot::open(folder).unwrap()
}

fn case_count() -> u32 {
    std::env::var("STEWARD_CHAIN_CASES").ok().map_or(500, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count()))]

    #[test]
    fn any_damage_is_found_with_what_the_fleet_has_seen(damage in damage()) {
        let (history, seen) = &*HISTORY;
        let mut files = history.last().unwrap().clone();
        apply(&mut files, &damage);
        let folder = fast_dir();
        let root = write_files(folder.path(), &files);
        let found = verify_chain_beyond(&root, Some(seen)).unwrap();
        prop_assert!(!found.faults.is_empty(), "{damage:?}");
        // The vault alone cannot know that it was set back.
        if let Damage::SetBack(_) = damage {
            prop_assert_eq!(verify_chain(&root).unwrap().faults, Vec::<String>::new());
        }
    }
}

#[test]
fn a_chain_that_went_on_beyond_what_was_seen_has_no_fault() {
    for (records, files) in HISTORY.0.iter().enumerate() {
        let folder = fast_dir();
        let root = write_files(folder.path(), files);
        let seen = read_head(&root).unwrap();
        assert_eq!(seen.seq, records as u64);
        let later = fast_dir();
        let root = write_files(later.path(), HISTORY.0.last().unwrap());
        assert_eq!(verify_chain_beyond(&root, Some(&seen)).unwrap().faults, Vec::<String>::new());
    }
}
