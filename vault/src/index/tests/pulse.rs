//! The revision changes with every write, and only then.

use super::*;

#[tokio::test]
async fn a_pulse_moves_with_what_is_written_and_stands_still_without() {
    let bench = Bench::scanned().await;
    let mut watcher = bench.index.read().open_watcher().await.unwrap();
    let first = watcher.current_revision().await.unwrap();
    assert_eq!((first.newest_action_seq, first.newest_signal_at, first.files_revision), (0, None, 0));
    assert_eq!(watcher.current_revision().await.unwrap(), first);
    bench.matter("m");
    bench.signal("s", "matter/m.md", "");
    bench.action("a", |_| {});
    bench.sync("01:00:00").await;
    let second = watcher.current_revision().await.unwrap();
    assert_ne!(second.revision, first.revision);
    assert_eq!((second.newest_action_seq, second.files_revision), (3, 3));
    assert_eq!(second.newest_signal_at, Some(at("2026-11-20T10:00:00Z")));
    assert_eq!(watcher.current_revision().await.unwrap(), second);
    let other = Index::open(&bench.dir.path().join("state")).await.unwrap();
    bench.put("matter/m.md", "---\ntype: matter\nname: Another\n---\n");
    other.sync_all(&bench.root, noon("01:01:00")).await.unwrap();
    let third = watcher.current_revision().await.unwrap();
    assert!(third.files_revision > second.files_revision, "whichever process read it");
    bench.remove("matter/m.md");
    bench.sync("01:02:00").await;
    let gone = watcher.current_revision().await.unwrap();
    assert_ne!(gone.revision, third.revision, "what goes is written too");
    bench.matter("m");
    bench.sync("01:03:00").await;
    assert!(watcher.current_revision().await.unwrap().files_revision > gone.files_revision, "no number is given twice");
}

#[tokio::test]
async fn what_was_written_is_told_once_and_what_was_there_before_is_not() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.sync("01:00:00").await;
    let before = bench.index.read().open_watcher().await.unwrap().current_revision().await.unwrap().files_revision;
    assert_eq!(bench.index.read().list_records_written_since(before, 10).await.unwrap(), []);
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let written = bench.index.read().list_records_written_since(before, 10).await.unwrap();
    let mut paths: Vec<&str> = written.iter().map(|record| record.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["signal/s.md", "task/t.md"]);
    assert_eq!(bench.index.read().list_records_written_since(before, 1).await.unwrap(), written[..1]);
    assert_eq!(bench.index.read().list_records_written_since(written[0].revision, 10).await.unwrap(), written[1..]);
}
