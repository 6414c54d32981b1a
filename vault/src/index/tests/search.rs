//! Every record is found by its words, and no search text is an error.

use super::*;
use proptest::prelude::*;

async fn found(index: &Index, words: &str) -> Vec<String> {
    let page = index.read().search(words, &SearchFilter::default(), None, 100).await.unwrap();
    page.rows.into_iter().map(|hit| hit.path.to_string()).collect()
}

fn of_kind(kind: RecordKind) -> SearchFilter {
    SearchFilter { kind: Some(kind), ..SearchFilter::default() }
}

/// The names of all hits, read in pages with this limit.
async fn paged(index: &Index, words: &str, filter: &SearchFilter, limit: u32) -> Vec<String> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = index.read().search(words, filter, before, limit).await.unwrap();
        assert!(page.rows.len() <= limit as usize && page.more == page.next.is_some());
        all.extend(page.rows.into_iter().map(|hit| hit.path.slug().to_owned()));
        before = page.next;
        if before.is_none() {
            return all;
        }
    }
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
    let page = bench.index.read().search("pa", &SearchFilter::default(), None, 9).await.unwrap();
    let hits: Vec<_> = page.rows.iter().map(|h| (h.kind, h.title.as_str(), h.snippet.as_str())).collect();
    let wanted = [
        (RecordKind::Task, "Pay the roofer", "open"),
        (RecordKind::Signal, "it is paid", "gmail"),
        (RecordKind::Event, "Pay the roofer", "it is paid"),
    ];
    assert_eq!(hits, wanted);
    let about: Vec<_> = page.rows.iter().map(|h| h.about.as_ref().map(RecordPath::as_str)).collect();
    assert_eq!(about, [Some("matter/roof.md"), Some("task/pay.md"), Some("task/pay.md")]);
    assert_eq!(page.rows[2].id, Some(ActionId::derive(&["a1"])));
    assert_eq!((page.rows[0].at, page.rows[2].at), (None, Some(noon("09:00:00"))));
    let only = bench.index.read().search("pa", &of_kind(RecordKind::Signal), None, 9).await.unwrap();
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
    let all = paged(&bench.index, "t", &SearchFilter::default(), 3).await;
    assert_eq!(all.len(), 14);
    let newest = (0..7).rev().map(|n| format!("steward-action-a{n}"));
    assert_eq!(all[7..], newest.collect::<Vec<_>>());
    for place in [i64::MIN, 0] {
        assert!(
            bench.index.read().search("t", &SearchFilter::default(), Some(place), 3).await.unwrap().rows.is_empty()
        );
    }
}

#[tokio::test]
async fn the_newest_come_first_in_whatever_order_they_were_written() {
    let bench = Bench::scanned().await;
    for (n, clock) in [(0, "05:00:00"), (1, "07:00:00"), (2, "06:00:00")] {
        bench.action(&format!("a{n}"), |d| d.timestamp = noon(clock));
        bench.sync("10:00:00").await;
    }
    bench.put("signal/s.md", signal_text("task/t.md", "2026-11-01", ""));
    bench.put("signal/of-before.md", signal_text("task/t.md", "1066-10-14", ""));
    bench.sync("10:01:00").await;
    let all = paged(&bench.index, "t", &SearchFilter::default(), 2).await;
    assert_eq!(all, ["steward-action-a1", "steward-action-a2", "steward-action-a0"]);
    assert_eq!(paged(&bench.index, "paid", &SearchFilter::default(), 1).await, ["s", "of-before"]);
}

#[tokio::test]
async fn what_is_asked_for_beside_the_words_holds_too() {
    let bench = Bench::scanned().await;
    bench.matter("paid");
    bench.task("paid", "paid", "");
    bench.put("signal/old.md", signal_text("task/paid.md", "2026-11-01", ""));
    bench.put("signal/new.md", signal_text("task/paid.md", "2026-11-21T04:00:00.5Z", ""));
    for (n, disposition) in
        [Disposition::Live, Disposition::Pending, Disposition::Pending, Disposition::Shadow].into_iter().enumerate()
    {
        bench.action(&format!("a{n}"), |d| {
            (d.timestamp, d.disposition) = (noon(&format!("0{n}:00:00")), disposition);
            d.pending_confirmation = disposition == Disposition::Pending;
            d.class = Some([MutationClass::StateChange, MutationClass::Related][n % 2]);
            no_other_is_equal(d, n);
            cite(d, "signal/old.md");
            d.source_contributions.insert(["gmail", "bank"][n / 2].into(), 0.9);
        });
    }
    bench.action("a9", |d| answer(d, ActionKind::Dismissed, &ActionId::derive(&["a1"])));
    bench.sync("10:00:00").await;
    let all = SearchFilter::default();
    let table: [(SearchFilter, &[&str]); 10] = [
        (SearchFilter { disposition: Some(Disposition::Pending), ..all.clone() }, &["a2", "a1"]),
        (SearchFilter { waits: Some(tonight()), ..all.clone() }, &["a2"]),
        (SearchFilter { class: Some(MutationClass::Related), ..all.clone() }, &["a3", "a1"]),
        (SearchFilter { class: Some(MutationClass::StateChange), ..all.clone() }, &["new", "old", "a2", "a0"]),
        (SearchFilter { source: Some("bank".into()), ..all.clone() }, &["a3", "a2"]),
        (SearchFilter { source: Some("gmail".into()), ..all.clone() }, &["new", "old", "a3", "a2", "a1", "a0"]),
        (SearchFilter { since: Some(noon("02:00:00")), ..all.clone() }, &["new", "a3", "a2"]),
        (SearchFilter { since: Some(at("2026-11-21T04:00:00.7Z")), ..all.clone() }, &[]),
        (SearchFilter { disposition: Some(Disposition::Live), kind: Some(RecordKind::Signal), ..all.clone() }, &[]),
        (SearchFilter { since: Some(noon("00:00:00")), kind: Some(RecordKind::Matter), ..all }, &[]),
    ];
    for (filter, wanted) in table {
        for limit in [1, 2, 500] {
            let found = paged(&bench.index, "paid", &filter, limit).await;
            let found: Vec<&str> = found.iter().map(|name| name.trim_start_matches("steward-action-")).collect();
            assert_eq!(found, wanted, "{filter:?} by {limit}");
        }
    }
    let kinds = |filter: SearchFilter| filter.matching_kinds();
    assert_eq!(kinds(SearchFilter { waits: Some(tonight()), ..SearchFilter::default() }), [RecordKind::Event]);
    assert_eq!(kinds(SearchFilter { since: Some(noon("00:00:00")), ..SearchFilter::default() }).len(), 2);
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
                bench.index.read().search(text, &SearchFilter::default(), None, 9).await.unwrap();
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
        "DELETE FROM words WHERE rowid & 536870911 = (SELECT id FROM documents WHERE path = 'signal/s1.md')",
        "INSERT INTO documents (path, kind) VALUES ('matter/ghost.md', 'matter')",
    ] {
        sqlx::query(sql).execute(&bench.index.store.writer).await.unwrap();
    }
    let lines: Vec<String> =
        bench.index.compare_with_files(&bench.root).await.unwrap().iter().map(ToString::to_string).collect();
    let wanted = ["matter/ghost.md", "signal/s1.md", "task/pay.md"]
        .map(|path| format!("{path} and its search text in the index do not match"));
    assert_eq!(lines, wanted);
    bench.index.rebuild(&bench.root, noon("11:00:00")).await.unwrap();
    assert!(bench.index.compare_with_files(&bench.root).await.unwrap().is_empty());
    assert_eq!(bench.dump(&bench.index).await, good);
}
