//! The records that an event may be about.

use super::*;

#[tokio::test]
async fn only_open_records_are_candidates_and_tasks_know_their_matter() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.put("matter/old.md", "---\ntype: matter\nname: Old\nstate: archived\n---\n");
    bench.task("t", "m", "");
    bench.put("task/done.md", "---\ntype: task\nname: D\nstate: done\nparent_matter: m\n---\n");
    bench.sync("01:00:00").await;
    let known = bench.index.signals().list_open_records().await.unwrap();
    let shown: Vec<(&str, Option<&str>)> = known.iter().map(|k| (k.path.as_str(), k.matter_name.as_deref())).collect();
    assert_eq!(shown, [("matter/m.md", None), ("task/t.md", Some("The m"))]);
}

#[tokio::test]
async fn the_edition_changes_with_tasks_and_matters_and_with_nothing_else() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    let mut last = bench.index.records_revision();
    let mut changed = || {
        let now = bench.index.records_revision();
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
