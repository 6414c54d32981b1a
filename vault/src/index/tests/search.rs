//! Everything is found by its words, and what somebody types is never an error.

use super::*;
use proptest::prelude::*;

async fn found(index: &Index, words: &str) -> Vec<String> {
    let page = index.search(words, &[], 0, 100).await.unwrap();
    page.rows.into_iter().map(|hit| hit.path.to_string()).collect()
}

async fn roofer() -> Bench {
    let bench = Bench::scanned().await;
    bench.put("matter/roof.md", "---\ntype: matter\nname: Repair of the Café roof\nstate: open\n---\n");
    bench.put("task/pay.md", "---\ntype: task\nname: Pay the roofer\nparent_matter: \"[[matter/roof]]\"\n---\n");
    bench.signal("s1", "task/pay.md", "");
    bench.action("a1", |d| {
        d.target = path("task/pay.md");
        cite(d, "signal/s1.md");
    });
    bench.sync("10:00:00").await;
    bench
}

#[tokio::test]
async fn matters_tasks_signals_and_actions_are_found_by_their_words() {
    let bench = roofer().await;
    let (index, action) = (&bench.index, "event/steward-action-a1.md");
    assert_eq!(found(index, "roof").await, ["matter/roof.md", "task/pay.md"], "the last word may be a beginning");
    assert_eq!(found(index, "roof repair").await, ["matter/roof.md"]);
    assert_eq!(found(index, "REPAIR cafe").await, ["matter/roof.md"], "case and accents make no difference");
    assert_eq!(found(index, "it is paid").await, ["signal/s1.md", action]);
    assert_eq!(found(index, "gmail").await, ["signal/s1.md", action]);
    assert_eq!(found(index, "pa").await, ["task/pay.md", "signal/s1.md", action]);
    assert_eq!(found(index, "pay nothing").await, [""; 0]);
    assert_eq!(found(index, "roo paid").await, [""; 0], "only the last word may be a beginning");
}

#[tokio::test]
async fn a_hit_says_what_it_is_and_what_it_is_about() {
    let bench = roofer().await;
    let page =
        bench.index.search("pa", &[RecordKind::Task, RecordKind::Signal, RecordKind::Event], 0, 9).await.unwrap();
    let told: Vec<_> = page.rows.iter().map(|h| (h.kind, h.title.as_str(), h.snippet.as_str())).collect();
    let wanted = [
        (RecordKind::Task, "Pay the roofer", "open"),
        (RecordKind::Signal, "it is paid", "gmail"),
        (RecordKind::Event, "Pay the roofer", "it is paid"),
    ];
    assert_eq!(told, wanted);
    let about: Vec<_> = page.rows.iter().map(|h| h.about.as_ref().map(RecordPath::as_str)).collect();
    assert_eq!(about, [Some("matter/roof.md"), Some("task/pay.md"), Some("task/pay.md")]);
    assert_eq!(page.rows[2].id, Some(ActionId::derive(&["a1"])));
    assert_eq!((page.rows[0].at, page.rows[2].at), (None, Some(noon("09:00:00"))));
    let only = bench.index.search("pa", &[RecordKind::Signal], 0, 9).await.unwrap();
    assert_eq!(only.rows.len(), 1);
}

#[tokio::test]
async fn what_changes_is_found_by_its_new_words_and_what_goes_by_none() {
    let bench = roofer().await;
    bench.put("task/pay.md", "---\ntype: task\nname: Thank the tiler\nparent_matter: \"[[matter/roof]]\"\n---\n");
    bench.sync("10:01:00").await;
    assert_eq!(found(&bench.index, "tiler").await, ["task/pay.md"]);
    assert_eq!(found(&bench.index, "roofer").await, [""; 0]);
    bench.put("task/pay.md", "---\nbroken: [\n---\n");
    bench.remove("signal/s1.md");
    bench.sync("10:02:00").await;
    assert_eq!(found(&bench.index, "tiler").await, [""; 0]);
    assert_eq!(found(&bench.index, "paid").await, ["event/steward-action-a1.md"], "the record keeps what it quotes");
}

#[tokio::test]
async fn hits_are_paged_and_signals_and_actions_come_newest_first() {
    let bench = Bench::scanned().await;
    for n in 0..7 {
        bench.action(&format!("a{n}"), |d| d.timestamp = noon(&format!("0{n}:00:00")));
        bench.put(&format!("matter/m{n}.md"), "---\ntype: matter\nname: T\n---\n");
    }
    bench.sync("10:00:00").await;
    let (mut all, mut skip) = (Vec::new(), Some(0));
    while let Some(from) = skip {
        let page = bench.index.search("t", &[], from, 3).await.unwrap();
        assert!(page.rows.len() <= 3 && page.more == page.next.is_some());
        all.extend(page.rows.into_iter().map(|h| h.path.slug().to_owned()));
        skip = page.next;
    }
    assert_eq!(all.len(), 14);
    let newest = (0..7).rev().map(|n| format!("steward-action-a{n}"));
    assert_eq!(all[7..], newest.collect::<Vec<_>>());
    assert!(bench.index.search("t", &[], u32::MAX, 3).await.unwrap().rows.is_empty());
}

#[tokio::test]
async fn nothing_that_somebody_types_is_syntax() {
    let bench = roofer().await;
    for text in [
        "", "  ", "\0", "\"", "\"\"", "roof\"", "*", "a*", "^", "NEAR(", "text:", "-", "AND", "{", "()", "'", "%",
        "\u{301}",
    ] {
        for words in [text.to_owned(), format!("{text} roof"), format!("roof {text}")] {
            let hits = found(&bench.index, &words).await;
            assert!(hits.len() <= 2, "{words:?} found {hits:?}");
        }
    }
    for words in ["-- roofer", "\"roofer\"", "the\0roofer", "roofer.", "(roofer)"] {
        assert_eq!(found(&bench.index, words).await, ["task/pay.md"], "{words:?}");
    }
    for words in ["AND roofer", "NOT roofer", "x OR roofer", "text:roofer", "nobody* roofer"] {
        assert_eq!(found(&bench.index, words).await, [""; 0], "{words:?}");
    }
    assert_eq!(found(&bench.index, &"roofer ".repeat(5_000)).await, ["task/pay.md"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_at_all_is_answered(texts in prop::collection::vec("(\\PC|[\"*^():{}\\-+\\x00-\\x20]){0,40}", 60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bench = roofer().await;
            for text in &texts {
                bench.index.search(text, &[], 0, 9).await.unwrap();
            }
        });
    }
}

#[tokio::test]
async fn a_check_finds_words_that_are_missing_or_left_over_and_a_rebuild_mends_them() {
    let bench = roofer().await;
    let good = bench.dump(&bench.index).await;
    for sql in [
        "DELETE FROM documents WHERE path = 'task/pay.md'",
        "DELETE FROM words WHERE rowid = (SELECT id FROM documents WHERE path = 'signal/s1.md')",
        "INSERT INTO documents (path, kind) VALUES ('matter/ghost.md', 'matter')",
    ] {
        sqlx::query(sql).execute(&bench.index.store.writer).await.unwrap();
    }
    let lines: Vec<String> = bench.index.check(&bench.root).await.unwrap().iter().map(ToString::to_string).collect();
    let wanted = ["matter/ghost.md", "signal/s1.md", "task/pay.md"]
        .map(|path| format!("{path} is not found by its words as the index knows it"));
    assert_eq!(lines, wanted);
    bench.index.rebuild(&bench.root, noon("11:00:00")).await.unwrap();
    assert!(bench.index.check(&bench.root).await.unwrap().is_empty());
    assert_eq!(bench.dump(&bench.index).await, good);
}

#[tokio::test]
async fn an_index_of_before_there_was_a_search_is_read_anew_for_it_and_nothing_else_comes_of_that() {
    let bench = roofer().await;
    let good = bench.dump(&bench.index).await;
    let older = "DROP INDEX actions_that_ask; DROP INDEX actions_together; ALTER TABLE actions DROP COLUMN together;
        ALTER TABLE actions DROP COLUMN edited; DROP TABLE words; DROP TABLE documents; DROP INDEX actions_by_seq; DROP INDEX actions_that_wait;
        DROP INDEX actions_that_wait_by_target; DROP INDEX actions_that_live; DROP INDEX signals_by_source;
        DROP INDEX signals_by_time; DROP INDEX sources_by_time; ALTER TABLE action_sources DROP COLUMN at;
        DROP INDEX actions_by_time; CREATE INDEX actions_by_time ON actions (at);
        DROP INDEX signals_by_status; CREATE INDEX signals_by_status ON signals (status); PRAGMA user_version = 12";
    sqlx::raw_sql(older).execute(&bench.index.store.writer).await.unwrap();
    bench.index.close().await;
    let again = Index::open(&bench.dir.path().join("state")).await.unwrap();
    assert_eq!(found(&again, "roof").await, [""; 0], "nothing is found before it is read, and nothing fails");
    let report = again.sync_all(&bench.root, noon("11:00:00")).await.unwrap();
    assert_eq!((report.read, report.woken.len(), report.news), (4, 0, News::default()));
    assert_eq!(bench.dump(&again).await, good);
    assert_eq!(found(&again, "roof").await.len(), 2);
}
