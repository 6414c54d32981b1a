use super::*;
use proptest::prelude::*;
use steward_domain::signals::stream::{IncomingEvent, StreamEvent};

/// One step of a random history. There are few names, so that steps hit the same files.
#[derive(Clone, Debug)]
enum Step {
    Put { kind: usize, name: u8, content: u8 },
    Remove { kind: usize, name: u8 },
    Rename { kind: usize, from: u8, to: u8 },
    Scan,
    ScanContents,
    Hint,
}

fn step() -> impl Strategy<Value = Step> {
    let (kind, name) = (0..RecordKind::ALL.len(), 0..5u8);
    prop_oneof![
        6 => (kind.clone(), name.clone(), any::<u8>()).prop_map(|(kind, name, content)| Step::Put { kind, name, content }),
        2 => (kind.clone(), name.clone()).prop_map(|(kind, name)| Step::Remove { kind, name }),
        2 => (kind, name.clone(), name).prop_map(|(kind, from, to)| Step::Rename { kind, from, to }),
        1 => Just(Step::Scan),
        1 => Just(Step::ScanContents),
        3 => Just(Step::Hint),
    ]
}

fn file(kind: usize, name: u8) -> String {
    let kind = RecordKind::ALL[kind];
    match kind {
        RecordKind::Event => format!("event/steward-action-{name}.md"),
        RecordKind::Stream => format!("stream/s{}/n{name}.md", name % 2),
        // One name of each folder is invalid for a record.
        _ if name == 4 => format!("{}/odd name.md", kind.folder()),
        RecordKind::Matter | RecordKind::Task | RecordKind::Signal | RecordKind::Instinct => {
            format!("{}/n{name}.md", kind.folder())
        }
    }
}

fn put(bench: &Bench, kind: usize, name: u8, content: u8) {
    let path = file(kind, name);
    let variant = content / 8;
    if content.is_multiple_of(8) {
        return bench.put(&path, format!("---\nbroken: [{variant}\n---\n"));
    }
    match RecordKind::ALL[kind] {
        RecordKind::Matter => {
            let state = ["open", "done", "Archived", "what"][usize::from(variant % 4)];
            bench.put(&path, format!("---\ntype: matter\nname: {content}\nstate: {state}\n---\n"));
        }
        RecordKind::Task => {
            let more =
                format!("id: {}\nsurface_class: {}\n", variant % 6, ["low", "high", "none"][usize::from(variant % 3)]);
            bench.put(&path, task_text(&format!("n{}", variant % 5), &more));
        }
        RecordKind::Signal => {
            let more = if variant.is_multiple_of(3) { "status: applied\n" } else { "" };
            bench.put(&path, signal_text(&format!("task/n{}.md", variant % 5), "2026-11-01", more));
        }
        RecordKind::Instinct => bench.put(&path, format!("---\ntype: instinct\nobservations: {content}\n---\n")),
        RecordKind::Stream => {
            let text = format!("paid {variant}");
            let incoming = IncomingEvent { source_id: "1", pattern: "x:y", text: &text, ..IncomingEvent::default() };
            bench.put(&path, StreamEvent::new("s", &incoming, noon("12:00:00")).render());
        }
        RecordKind::Event => {
            bench.action(&name.to_string(), |d| {
                d.id = ActionId::derive(&[&content.to_string()]);
                d.pending_confirmation = variant.is_multiple_of(3);
                if variant % 3 == 1 {
                    answer(d, ActionKind::Dismissed, &ActionId::derive(&[&(content % 48).to_string()]));
                }
                for n in 0..variant % 4 {
                    cite(d, &format!("signal/n{n}.md"));
                }
            });
        }
    }
}

async fn walk(steps: &[Step]) {
    let bench = Bench::new().await;
    let mut touched = BTreeSet::new();
    for step in steps {
        match step {
            Step::Put { kind, name, content } => {
                put(&bench, *kind, *name, *content);
                touched.insert(file(*kind, *name));
            }
            Step::Remove { kind, name } => {
                let _ = fs::remove_file(bench.full(&file(*kind, *name)));
                touched.insert(file(*kind, *name));
            }
            Step::Rename { kind, from, to } => {
                let _ = fs::rename(bench.full(&file(*kind, *from)), bench.full(&file(*kind, *to)));
                touched.extend([file(*kind, *from), file(*kind, *to)]);
            }
            Step::Scan => drop(bench.sync("01:00:00").await),
            Step::ScanContents => drop(bench.index.sync_contents(&bench.root, noon("01:00:00")).await.unwrap()),
            Step::Hint => {
                let paths: Vec<RecordPath> =
                    std::mem::take(&mut touched).iter().filter_map(|p| RecordPath::parse(p).ok()).collect();
                bench.index.sync_paths(&bench.root, &paths, noon("01:00:00")).await.unwrap();
            }
        }
    }
    bench.sync("01:00:00").await;
    let grown = bench.dump(&bench.index).await;
    let fresh = Index::open(&bench.dir.path().join("fresh")).await.unwrap();
    fresh.sync_all(&bench.root, noon("01:00:00")).await.unwrap();
    assert_eq!(grown, bench.dump(&fresh).await, "grown step by step and read at once");
    bench.index.rebuild(&bench.root, noon("02:00:00")).await.unwrap();
    assert_eq!(grown, bench.dump(&bench.index).await, "grown step by step and rebuilt");
    assert!(bench.index.compare_with_files(&bench.root).await.unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happened_to_the_files_a_rebuild_says_the_same(steps in proptest::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(walk(&steps));
    }
}

/// The proposal and its resolutions are added and removed in several orders.
#[tokio::test]
async fn a_proposal_waits_as_long_as_nobody_has_answered_it() {
    let bench = Bench::scanned().await;
    let id = ActionId::derive(&["p"]);
    let waits = async || {
        bench.sync("10:00:00").await;
        assert!(bench.index.compare_with_files(&bench.root).await.unwrap().is_empty());
        bench.index.actions().count_pending_actions(tonight()).await.unwrap()
    };
    let dismiss = |name: &str| bench.action(name, |d| answer(d, ActionKind::Dismissed, &id));
    let propose = || bench.action("p", |d| (d.disposition, d.pending_confirmation) = (Disposition::Pending, true));
    let of = |name: &str| format!("event/steward-action-{name}.md");
    dismiss("a");
    assert_eq!(waits().await, 0);
    propose();
    assert_eq!(waits().await, 0, "the answer was there first");
    bench.remove(&of("a"));
    assert_eq!(waits().await, 1);
    dismiss("a");
    dismiss("b");
    assert_eq!(waits().await, 0);
    bench.remove(&of("a"));
    assert_eq!(waits().await, 0, "one answer is left");
    bench.put(&of("b"), "---\nbroken: [\n---\n");
    assert_eq!(waits().await, 1, "what cannot be read is no answer");
    bench.remove(&of("p"));
    assert_eq!(waits().await, 0);
    propose();
    dismiss("b");
    assert_eq!(waits().await, 0);
    let good = bench.dump(&bench.index).await;
    sqlx::query("UPDATE actions SET waits = 1").execute(&bench.index.store.writer).await.unwrap();
    bench.index.rebuild(&bench.root, noon("11:00:00")).await.unwrap();
    assert_eq!(bench.dump(&bench.index).await, good, "a rebuild mends it");
}

#[tokio::test]
async fn a_proposal_of_what_is_so_by_now_has_nothing_left_to_answer() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    for (n, name) in ["p1", "p2"].into_iter().enumerate() {
        bench.action(name, |d| {
            no_other_is_equal(d, n);
            (d.disposition, d.pending_confirmation, d.class) =
                (Disposition::Pending, true, Some(MutationClass::StateChange));
            cite(d, "signal/s.md");
            d.source_contributions.insert("gmail".into(), 0.9);
        });
    }
    let index = &bench.index;
    let waits = async |clock: &str| {
        bench.sync(clock).await;
        let page = index.actions().pending_actions_page(None, 10, tonight()).await.unwrap().rows.len() as u64;
        let cards =
            index.read().matters_page(&MatterFilter::default(), None, 10, tonight()).await.unwrap().rows[0].pending;
        let clusters =
            index.actions().list_pending_clusters(1, tonight()).await.unwrap().first().map_or(0, |one| one.count);
        let filter = SearchFilter { waits: Some(tonight()), ..SearchFilter::default() };
        let found = index.read().search("gmail", &filter, None, 10).await.unwrap().rows.len() as u64;
        let settled =
            index.actions().list_actions(None, None, 10).await.unwrap().iter().filter(|row| row.settled).count() as u64;
        let count = index.actions().count_pending_actions(tonight()).await.unwrap();
        assert_eq!([page, cards, clusters, found, 2 - settled], [count; 5]);
        count
    };
    assert_eq!(waits("10:00:00").await, 2);
    bench.task("t", "m", "state: done\n");
    assert_eq!(waits("11:00:00").await, 0);
    bench.task("t", "m", "state: open\n");
    assert_eq!(waits("12:00:00").await, 2, "it is not so any more");
}

#[tokio::test]
async fn a_rebuild_mends_rows_that_no_file_stands_behind() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    let good = bench.dump(&bench.index).await;
    for sql in [
        "INSERT INTO tasks SELECT 'task/ghost.md', parent, parent_link, parent_key, parent_fault, id, name, state, state_as_written, surface_class, due,
            snoozed_until, next_check_after, ceiling, has_unreadable_due, hash FROM tasks",
        "UPDATE matters SET name = 'forged'",
    ] {
        sqlx::query(sql).execute(&bench.index.store.writer).await.unwrap();
    }
    assert_ne!(bench.dump(&bench.index).await, good);
    bench.index.rebuild(&bench.root, noon("02:00:00")).await.unwrap();
    assert_eq!(bench.dump(&bench.index).await, good);
}
