//! What the extraction of events asks.

use super::*;

#[tokio::test]
async fn only_open_records_are_candidates_and_tasks_know_their_matter() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.put("matter/old.md", "---\ntype: matter\nname: Old\nstate: archived\n---\n");
    bench.task("t", "m", "");
    bench.put("task/done.md", "---\ntype: task\nname: D\nstate: done\nparent_matter: m\n---\n");
    bench.sync("01:00:00").await;
    let known = bench.index.open_records().await.unwrap();
    let shown: Vec<(&str, Option<&str>)> = known.iter().map(|k| (k.path.as_str(), k.matter_name.as_deref())).collect();
    assert_eq!(shown, [("matter/m.md", None), ("task/t.md", Some("The m"))]);
}

#[tokio::test]
async fn an_answer_is_kept_for_thirty_days() {
    let bench = Bench::new().await;
    let now = noon("12:00:00");
    assert_eq!(bench.index.answer("k", now).await.unwrap(), None);
    bench.index.keep_answer("k", "words", now).await.unwrap();
    bench.index.keep_answer("k", "others", now).await.unwrap();
    assert_eq!(bench.index.answer("k", now + chrono::TimeDelta::days(29)).await.unwrap().as_deref(), Some("others"));
    assert_eq!(bench.index.answer("k", now + chrono::TimeDelta::days(30)).await.unwrap(), None);
    let later = now + chrono::TimeDelta::days(31);
    bench.index.keep_answer("other", "x", later).await.unwrap();
    assert_eq!(bench.index.answer("k", now).await.unwrap(), None, "it was forgotten");
}

#[tokio::test]
async fn the_edition_changes_with_tasks_and_matters_and_with_nothing_else() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    let mut last = bench.index.edition();
    let mut changed = || {
        let now = bench.index.edition();
        std::mem::replace(&mut last, now) != now
    };
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    assert!(!changed());
    bench.put("task/new.md", "---\ntype: task\nname: New\n---\n");
    bench.sync("01:02:00").await;
    assert!(changed());
    bench.put("matter/other.md", "---\ntype: matter\nname: Other\n---\n");
    bench.hint(&["matter/other.md"], "01:03:00").await;
    assert!(changed());
    bench.remove("task/new.md");
    bench.sync("01:04:00").await;
    assert!(changed());
    bench.sync("01:05:00").await;
    assert!(!changed());
}
