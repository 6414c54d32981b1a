//! With 5,000 matters, 25,000 tasks, 10,000 signals and 10,000 actions no page reads a whole table.
//!
//! A plan that scans `actions` or `signals`, or sorts all of them, is a fault even if it is fast. So is a page that
//! tests more rows than it may.

use super::*;
use crate::index::actions::charts::PER_DAY;
use crate::index::actions::{clusters, list as actions, waiting};
use crate::index::cursors::task_check;
use crate::index::read::revision::REVISION;
use crate::index::read::{matters, overview, questions, search, signals, tasks};
use crate::index::signals::doubt;
use crate::index::store::words::{self, place};
use crate::index::trust::cases::CASES_SINCE;
use sqlx::AssertSqlSafe;
use std::time::Instant;
use steward_domain::signals::signal::SignalStatus;

/// Fills the index as a scan of a made-up vault would.
const FILL: &str = concat!("
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
    INSERT INTO matters (path, name, state, ceiling, hash) SELECT 'matter/m' || i || '.md', 'Repair of roof ' || i,
        CASE WHEN i % 50 = 0 THEN 'archived' ELSE 'open' END, 'act', '' FROM n;
    INSERT INTO files (path, kind, size, modified_ns, inode, hash) SELECT path, 'matter', 1, 1, 1, '' FROM matters;
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 24999)
    INSERT INTO tasks (path, parent, parent_link, parent_key, name, state, surface_class, hash)
    SELECT 'task/t' || i || '.md', 'matter/m' || (i / 5) || '.md', 'm' || (i / 5), 'm' || (i / 5), 'Pay the roofer ' || i, CASE i % 3 WHEN 0 THEN 'done' ELSE 'open' END, 'normal', ''
        FROM n;
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
    INSERT INTO signals (path, target, created, source, instinct, note, effect, target_confidence, effect_confidence,
        status, applied) SELECT 'signal/s' || i || '.md', 'task/t' || i || '.md', 1700000000000000 + i * 60000000,
        'mail:' || (i % 300), 'mail-' || (i % 300), 'the invoice is paid', 'mutation', 0.9, 0.9,
        CASE i % 4 WHEN 0 THEN 'unrouted' ELSE 'applied' END, i % 4 > 0 FROM n;
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
    INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, class, judged, closed,
        follows, resolves, proposal, seq)
    SELECT printf('event/steward-action-%05d.md', i), printf('%016x', i),
        CASE WHEN i % 10 = 9 THEN 'steward-action-dismissed' ELSE 'steward-action' END, 'task/t' || i || '.md',
        1700000000000000 + i * 60000000, 'likely_done', (i % 100) / 100.0,
        CASE i % 5 WHEN 0 THEN 'live' WHEN 1 THEN 'pending' WHEN 4 THEN 'recorded' ELSE 'shadow' END, 'live', i % 5 = 1,
        CASE WHEN i % 97 = 0 THEN 'related' ELSE 'state_change' END, 1, '',
        CASE WHEN i % 10 = 9 THEN printf('%016x', i - 3) END, CASE WHEN i % 10 = 9 THEN printf('%016x', i - 3) END,
        printf('%064x', i), i + 1 FROM n;
    INSERT INTO action_sources (action, source, name, contribution, cited, supports, proposal, seq, at)
    SELECT path, 'mail-' || (seq % 300), 'mail:' || (seq % 300), 0.9, 1, 1, proposal, seq, at FROM actions;
    INSERT INTO action_evidence (ref, action) SELECT 'signal/s' || (seq - 1) || '.md', path FROM actions;
    INSERT INTO documents (path, kind, at) SELECT path, 'matter', NULL FROM matters UNION ALL SELECT path, 'task', NULL
        FROM tasks UNION ALL SELECT path, 'signal', created FROM signals UNION ALL SELECT path, 'event', at FROM actions;
    INSERT INTO words (rowid, text) SELECT ", place!(), ", COALESCE(m.name, t.name, s.note || ' ' || s.source, 'mail invoice paid')
        FROM documents d LEFT JOIN matters m ON m.path = d.path LEFT JOIN tasks t ON t.path = d.path
        LEFT JOIN signals s ON s.path = d.path ORDER BY 1;");

/// A moment after the newest record.
fn after_all() -> DateTime<Utc> {
    at("2023-11-22T00:00:00Z")
}

async fn large() -> Bench {
    let bench = Bench::scanned().await;
    let mut tx = bench.index.begin_write().await.unwrap();
    sqlx::raw_sql(FILL).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    bench
}

/// The steps of SQLite's query plan.
async fn plan(index: &Index, sql: &str) -> Vec<String> {
    let explained: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
        .fetch_all(&index.store.writer)
        .await
        .unwrap();
    explained.into_iter().map(|(.., step)| step).collect()
}

/// The steps that read a whole large table, under any alias.
fn scans(plan: &[String]) -> Vec<&String> {
    let large =
        ["a", "b", "s", "q", "t", "d", "actions", "signals", "tasks", "documents", "action_sources", "action_evidence"];
    let is_scan = |step: &&String| {
        let mut words = step.split(' ');
        words.next() == Some("SCAN") && words.next().is_some_and(|table| large.contains(&table))
    };
    plan.iter().filter(is_scan).collect()
}

/// Whether more than the rows of the page are sorted.
fn sorts_all(plan: &[String]) -> bool {
    let chosen = plan.iter().position(|step| step == "SCAN p").unwrap_or_else(|| panic!("{plan:#?}"));
    plan[..chosen].iter().any(|step| step.contains("ORDER BY"))
}

#[test]
fn a_scan_is_told_from_a_search() {
    let steps = |all: &[&str]| all.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        scans(&steps(&["SCAN a USING INDEX actions_by_time", "SCAN signals", "SEARCH a USING PRIMARY KEY"])).len(),
        2
    );
    assert!(sorts_all(&steps(&["SEARCH a", "USE TEMP B-TREE FOR ORDER BY", "SCAN p"])));
    assert!(scans(&steps(&["SCAN p", "SCAN j VIRTUAL TABLE INDEX 1:", "USE TEMP B-TREE FOR ORDER BY"])).is_empty());
}

#[tokio::test]
async fn no_page_of_actions_scans_or_sorts_them() {
    let bench = large().await;
    let place = PageCursor { at: at("2023-11-18T00:00:00Z"), path: path("event/steward-action-05000.md") };
    let none = ActionFilter::default();
    let (target, matter) = (Some(path("task/t7.md")), Some(path("matter/m7.md")));
    let oldest = PageCursor { at: at("2023-11-15T00:00:00Z"), path: path("event/steward-action-00001.md") };
    let source = Some("mail-7".to_owned());
    let filters = [
        (none.clone(), "actions_by_time"),
        (
            ActionFilter { disposition: Some(Disposition::Recorded), source: source.clone(), ..none.clone() },
            "sources_by_time",
        ),
        (ActionFilter { disposition: Some(Disposition::Shadow), ..none.clone() }, "actions_by_time"),
        (ActionFilter { kinds: vec![ActionKind::Reversed], ..none.clone() }, "actions_by_time"),
        (ActionFilter { only: ActionSubset::Waiting(after_all()), source, ..none.clone() }, "actions_that_wait"),
        (ActionFilter { since: Some(at("2023-11-18T00:00:00Z")), ..none.clone() }, "actions_by_time"),
        (ActionFilter { class: Some(MutationClass::Related), ..none.clone() }, "actions_by_time"),
        (ActionFilter { disposition: Some(Disposition::Live), ..none.clone() }, "actions_that_live"),
        (ActionFilter { only: ActionSubset::Undoable, ..none.clone() }, "actions_that_live"),
        (ActionFilter { only: ActionSubset::Waiting(after_all()), ..none.clone() }, "actions_that_wait"),
        (ActionFilter { source: Some("mail-7".into()), ..none.clone() }, "sources_by_time"),
        (ActionFilter { target, ..none.clone() }, "actions_by_target"),
        (ActionFilter { matter, ..none }, "actions_by_target"),
    ];
    for (filter, by) in filters {
        let plain = [
            none_of(&filter),
            ActionFilter { disposition: Some(Disposition::Live), ..none_of(&filter) },
            ActionFilter { only: ActionSubset::Waiting(after_all()), ..none_of(&filter) },
            ActionFilter { source: filter.source.clone(), ..none_of(&filter) },
        ];
        let passes_over = !plain.contains(&filter) && by != "actions_by_target";
        for before in [None, Some(&place)] {
            let last = actions::page_bound_query(&filter, before);
            if let Some(last) = &last {
                let plan = plan(&bench.index, last.sql().as_str()).await;
                let narrow = plan.len() == 1 && plan[0].contains(by) && plan[0].contains("COVERING");
                assert!(narrow, "{filter:?}: the SQL index alone finds the end of a page: {plan:#?}");
            }
            assert_eq!(last.is_some(), passes_over, "{filter:?}");
            let last = last.and(Some(&oldest));
            let plan = plan(&bench.index, actions::action_page_query(&filter, before, last, 50).sql().as_str()).await;
            let walks = plan.iter().any(|step| step.contains(by));
            // In the order of its SQL index the query stops at the end of the page.
            let ordered: Vec<_> = scans(&plan).into_iter().filter(|step| !step.contains(by)).collect();
            assert!(walks && ordered.is_empty(), "{filter:?}: {plan:#?}");
            assert!(filter.matter.is_some() || !sorts_all(&plan), "{filter:?}: {plan:#?}");
        }
    }
}

/// The conditions that every SQL index covers.
fn none_of(filter: &ActionFilter) -> ActionFilter {
    ActionFilter { since: filter.since, until: filter.until, ..ActionFilter::default() }
}

/// A page tests a limited number of rows and returns where it ended. All pages together lose no row.
#[tokio::test]
async fn what_is_rare_is_found_by_pages_that_end() {
    let bench = large().await;
    let more = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000)
        INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, class, judged, closed,
            seq) SELECT printf('event/steward-action-old-%05d.md', i), printf('b%015x', i), 'steward-action', 'task/t1.md',
            1600000000000000 + i, 'likely_done', 0.9, CASE WHEN i IN (3, 20000) THEN 'recorded' ELSE 'live' END, 'live', 0,
            'state_change', 1, '', 100000 + i FROM n;
        INSERT INTO action_sources (action, source, name, cited, supports, seq, at)
            SELECT path, 'loud', 'Loud', 1, 1, seq, at FROM actions WHERE seq > 100000";
    sqlx::raw_sql(more).execute(&bench.index.store.writer).await.unwrap();
    let rare = ActionFilter {
        disposition: Some(Disposition::Recorded),
        source: Some("loud".into()),
        ..ActionFilter::default()
    };
    let (mut found, mut pages, mut before) = (Vec::new(), 0, None);
    loop {
        let page = bench.index.actions().actions_page(&rare, before.as_ref(), 50).await.unwrap();
        assert_eq!(page.more, page.next.is_some());
        found.extend(page.rows.iter().map(|row| row.path.slug().to_owned()));
        (pages, before) = (pages + 1, page.next);
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, ["steward-action-old-20000", "steward-action-old-00003"]);
    assert_eq!(pages, 3, "25,000 rows, 10,000 at a time");
    let rows = bench.index.actions().list_actions(Some(at("2020-01-01T00:00:00Z")), None, 1_200).await.unwrap();
    assert_eq!(rows.len(), 1_200);
}

#[tokio::test]
async fn what_waits_is_read_without_what_was_answered() {
    let bench = large().await;
    for sql in [
        waiting::count_waiting_sql(after_all()).as_str(),
        clusters::cluster_query(ActionSubset::Waiting(after_all()), None, 3).sql().as_str(),
    ] {
        let plan = plan(&bench.index, sql).await;
        let own: Vec<&String> = plan.iter().filter(|step| step.contains(" a USING")).collect();
        assert!(own.len() == 1 && own[0].contains("actions_that_wait"), "{plan:#?}");
    }
    let rows: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM actions INDEXED BY actions_that_wait WHERE waits = 1")
        .fetch_one(&bench.index.store.reader)
        .await
        .unwrap();
    assert_eq!(rows, 1_000, "2,000 were proposed, and half of them answered");
}

#[tokio::test]
async fn pages_of_matters_tasks_and_hits_are_read_in_their_order() {
    let bench = large().await;
    let matter = Some(path("matter/m7.md"));
    let state = Some(RecordState::Archived);
    let queries = [
        (
            tasks::task_page_query(&TaskFilter::default(), Some("task/t7.md"), 50).sql().as_str().to_owned(),
            "PRIMARY KEY",
        ),
        (
            tasks::task_page_query(&TaskFilter { matter, state }, Some("task/t7.md"), 50).sql().as_str().to_owned(),
            "tasks_by_parent",
        ),
        (
            matters::matter_page_query(&MatterFilter { text: None, state }, Some("matter/m7.md"), 50, after_all())
                .sql()
                .as_str()
                .to_owned(),
            "matters_by_state",
        ),
        (
            matters::matter_page_query(&MatterFilter::default(), Some("matter/m7.md"), 50, after_all())
                .sql()
                .as_str()
                .to_owned(),
            "files_by_kind",
        ),
        (search::PLACES.to_owned(), "VIRTUAL TABLE"),
        (overview::first_problems_sql(), "files_with_problems"),
    ];
    for (sql, by) in queries {
        let plan = plan(&bench.index, &sql).await;
        assert!(plan.iter().any(|step| step.contains(by)), "{sql}: {plan:#?}");
        let chosen = plan.iter().position(|step| step.starts_with("SCAN p")).unwrap_or(plan.len());
        let sorts = plan[..chosen].iter().any(|step| step.contains("TEMP B-TREE"));
        assert!(!sorts || by == "files_with_problems", "{sql}: {plan:#?}");
        // Missing matters and repeated ids are found by one walk over an SQL index.
        let walks = |step: &str| {
            ["tasks_by_parent", "tasks_by_id", "tasks_with_fault"].iter().any(|index| step.contains(index))
        };
        let scans = scans(&plan).into_iter().filter(|step| by != "files_with_problems" || !walks(step)).count();
        assert_eq!(scans, 0, "{sql}: {plan:#?}");
    }
}

#[tokio::test]
async fn no_other_page_scans_a_large_table() {
    let bench = large().await;
    let none = SignalFilter::default();
    let mut queries = vec![
        clusters::cluster_query(ActionSubset::Waiting(after_all()), None, 3).sql().as_str().to_owned(),
        clusters::cluster_query(ActionSubset::Undoable, Some(noon("00:00:00")), 3).sql().as_str().to_owned(),
        matters::matter_page_query(&MatterFilter::default(), Some("matter/m7.md"), 50, after_all())
            .sql()
            .as_str()
            .to_owned(),
        matters::matter_page_query(&MatterFilter { text: Some("roof".into()), state: None }, None, 50, after_all())
            .sql()
            .as_str()
            .to_owned(),
        matters::NAMES.to_owned(),
        task_check::TASKS.to_owned(),
        search::hits_sql(after_all()),
        search::PLACES.to_owned(),
        waiting::count_waiting_sql(after_all()),
        questions::asking_sql(after_all()),
        questions::WITHHELD.to_owned(),
        doubt::NEWER.to_owned(),
        doubt::OPEN.to_owned(),
        doubt::NEWEST_QUESTION.to_owned(),
        actions::BY_PATH.to_owned(),
        actions::BY_ID.to_owned(),
        actions::RESOLUTIONS.to_owned(),
        actions::AFTER_SEQ.to_owned(),
        CASES_SINCE.to_owned(),
        REVISION.to_owned(),
        PER_DAY.to_owned(),
    ];
    for filter in [
        SignalFilter { status: Some(SignalStatus::Unrouted), ..none.clone() },
        SignalFilter { source: Some("mail-7".into()), ..none.clone() },
        SignalFilter { target: Some(path("task/t7.md")), ..none.clone() },
        SignalFilter { matter: Some(path("matter/m7.md")), ..none },
    ] {
        queries.push(signals::signal_page_query(&filter, None, 50).sql().as_str().to_owned());
    }
    for sql in queries {
        let plan = plan(&bench.index, &sql).await;
        // A partial index of waiting or live actions contains no other rows.
        let partial = |step: &str| {
            ["actions_that_wait", "actions_that_live", "actions_that_ask"].iter().any(|index| step.contains(index))
        };
        assert!(scans(&plan).iter().all(|step| partial(step)), "{sql}: {plan:#?}");
    }
    let newest = signals::signal_page_query(&SignalFilter::default(), None, 50);
    let plan = plan(&bench.index, newest.sql().as_str()).await;
    assert!(plan.iter().any(|step| step.contains("signals_by_time")), "{plan:#?}");
    assert!(!sorts_all(&plan), "{plan:#?}");
}

#[tokio::test]
async fn every_page_of_a_large_vault_is_whole() {
    let bench = large().await;
    let (actions, read) = (bench.index.actions(), bench.index.read());
    let mut lines = Vec::new();
    let mut begin = Instant::now();
    let mut show = |what: &str, rows: usize| {
        lines.push(format!("{what}: {rows} in {:?}", begin.elapsed()));
        begin = Instant::now();
        rows
    };
    let none = ActionFilter::default();
    for _ in 0..2 {
        assert_eq!(show("actions", actions.actions_page(&none, None, 100).await.unwrap().rows.len()), 100);
    }
    let rare = ActionFilter { class: Some(MutationClass::Related), ..none.clone() };
    assert_eq!(show("of a rare class", actions.actions_page(&rare, None, 500).await.unwrap().rows.len()), 104);
    let source = ActionFilter { source: Some("mail-7".into()), ..none.clone() };
    assert_eq!(show("of a source", actions.actions_page(&source, None, 100).await.unwrap().rows.len()), 34);
    assert_eq!(show("waiting", actions.pending_actions_page(None, 100, after_all()).await.unwrap().rows.len()), 100);
    let undoable = ActionFilter { only: ActionSubset::Undoable, ..none };
    assert_eq!(show("undoable", actions.actions_page(&undoable, None, 100).await.unwrap().rows.len()), 100);
    assert_eq!(show("how many wait", actions.count_pending_actions(after_all()).await.unwrap() as usize), 1_000);
    assert!(show("clusters", actions.list_pending_clusters(3, after_all()).await.unwrap().len()) > 0);
    assert!(
        show("live clusters", actions.list_undoable_clusters(at("2023-11-14T00:00:00Z"), 3).await.unwrap().len()) > 0
    );
    assert_eq!(show("timeline", read.timeline_page(&path("matter/m7.md"), None, 50).await.unwrap().rows.len()), 10);
    assert_eq!(show("signals", read.signals_page(&SignalFilter::default(), None, 100).await.unwrap().rows.len()), 100);
    assert_eq!(
        show("matters", read.matters_page(&MatterFilter::default(), None, 100, after_all()).await.unwrap().rows.len()),
        100
    );
    let text = MatterFilter { text: Some("roof 49".into()), state: Some(RecordState::Open) };
    assert_eq!(
        show("matters by text", read.matters_page(&text, None, 500, after_all()).await.unwrap().rows.len()),
        109
    );
    assert_eq!(
        show(
            "search for a few",
            read.search("roofer 7777", &SearchFilter::default(), None, 50).await.unwrap().rows.len()
        ),
        1
    );
    assert_eq!(
        show("search for all", read.search("r", &SearchFilter::default(), None, 50).await.unwrap().rows.len()),
        50
    );
    let deep = *words::place_range(RecordKind::Event, Some(at("2023-11-15T00:00:00Z"))).start();
    let found = read.search("paid", &SearchFilter::default(), Some(deep), 50).await.unwrap();
    assert_eq!(show("search deep", found.rows.len()), 50);
    let rare = SearchFilter { class: Some(MutationClass::Related), ..SearchFilter::default() };
    let found = read.search("paid", &rare, None, 500).await.unwrap();
    assert_eq!(show("search of a rare class", found.rows.len()), 0, "a page tests no more signals than its limit");
    assert_eq!(read.search("paid", &rare, found.next, 500).await.unwrap().rows.len(), 104);
    assert!(show("per day", actions.actions_per_day(at("2023-11-14T00:00:00Z")).await.unwrap().len()) > 7);
    assert_eq!(
        show("confidence", actions.confidence_vs_outcome(at("2023-11-14T00:00:00Z"), Utc::now()).await.unwrap().len()),
        10
    );
    assert_eq!(show("filed since", actions.list_actions_since(9_990, 500).await.unwrap().rows.len()), 10);
    assert_eq!(show("counts", read.count_records(after_all()).await.unwrap().actions as usize), 10_000);
    let mut watcher = read.open_watcher().await.unwrap();
    assert_eq!(show("first pulse", watcher.current_revision().await.unwrap().newest_action_seq as usize), 10_000);
    assert_eq!(show("pulse", watcher.current_revision().await.unwrap().newest_action_seq as usize), 10_000);
    // The times are shown with `--nocapture` and not tested.
    #[allow(clippy::print_stdout, reason = "a measurement, shown with --nocapture")]
    {
        println!("{}", lines.join("\n"));
    }
}
