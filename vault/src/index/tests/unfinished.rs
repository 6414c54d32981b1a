use super::*;

/// Stops the writer's connection from adding pages to the file, as on a full disk.
async fn fill_disk(index: &Index) {
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&index.store.writer).await.unwrap();
    limit_pages(index, pages).await;
}

async fn limit_pages(index: &Index, pages: i64) {
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::raw_sql(limit).execute(&index.store.writer).await.unwrap();
}

async fn keep(index: &Index, key: &str) -> Result<(), IndexError> {
    index.cursors().cache_answer(key, &"x".repeat(100_000), noon("12:00:00")).await
}

#[tokio::test]
async fn a_disk_that_was_full_is_written_again_as_soon_as_it_has_space() {
    let bench = Bench::scanned().await;
    fill_disk(&bench.index).await;
    let message = keep(&bench.index, "a").await.unwrap_err().to_string();
    assert!(message.contains("full"), "{message}");
    limit_pages(&bench.index, 1 << 30).await;
    keep(&bench.index, "a").await.unwrap();
    bench.sync("12:01:00").await;
    assert!(bench.index.cursors().find_cached_answer("a", noon("00:00:00")).await.unwrap().is_some());
}

#[tokio::test]
async fn what_failed_for_want_of_space_is_recorded_released_and_woken_once_it_can_be() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    let index = &bench.index;
    for (matter, mark) in index.cursors().list_wake_marks().await.unwrap() {
        index.cursors().clear_wake_mark(&matter, mark).await.unwrap();
    }
    assert_eq!(bench.look("matter/m.md", "run-a/1", "02:00:00").await.task_checks.len(), 1);
    index.cursors().release_leases_later("run-a/1");
    index.cursors().wake_later(&path("task/t.md"), noon("02:00:00"));
    bench.task("new", "m", "");
    index.cursors().read_files_later(&[path("task/new.md")]);
    index.cursors().finish_deferred_work(&bench.root, noon("02:00:05")).await.unwrap();
    assert!(index.read_known_files(RecordKind::Task, None).await.unwrap().contains_key("task/new.md"));
    assert!(index.cursors().list_wake_marks().await.unwrap().is_empty(), "a disk that has just failed is left alone");

    index.cursors().finish_deferred_work(&bench.root, noon("02:00:16")).await.unwrap();
    assert_eq!(index.cursors().list_wake_marks().await.unwrap().into_keys().collect::<Vec<_>>(), [path("matter/m.md")]);
    assert_eq!(bench.look("matter/m.md", "run-b/1", "02:00:17").await.task_checks.len(), 1, "its lease is released");
    index.cursors().clear_wake_mark(&path("matter/m.md"), i64::MAX).await.unwrap();
    index.cursors().finish_deferred_work(&bench.root, noon("02:01:00")).await.unwrap();
    assert!(index.cursors().list_wake_marks().await.unwrap().is_empty(), "once is enough");
}

#[tokio::test]
async fn what_waits_for_the_disk_waits_on_while_it_is_full() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    let texts: Vec<String> = (0..60).map(|n| format!("many-{n}")).collect();
    texts.iter().for_each(|name| bench.task(name, "m", ""));
    let waiting: Vec<RecordPath> = texts.iter().map(|name| path(&format!("task/{name}.md"))).collect();
    bench.index.cursors().read_files_later(&waiting);
    fill_disk(&bench.index).await;
    assert!(bench.index.cursors().finish_deferred_work(&bench.root, noon("02:00:00")).await.is_err());
    limit_pages(&bench.index, 1 << 30).await;
    bench.index.cursors().finish_deferred_work(&bench.root, noon("02:00:01")).await.unwrap();
    assert_eq!(bench.index.read_known_files(RecordKind::Task, None).await.unwrap().len(), 60);
}
