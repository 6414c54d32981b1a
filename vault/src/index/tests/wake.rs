use super::*;

impl Bench {
    async fn marked(&self) -> Vec<String> {
        self.index.cursors().list_wake_marks().await.unwrap().keys().map(|matter| matter.slug().to_owned()).collect()
    }
}

#[tokio::test]
async fn the_first_scan_marks_the_open_matters_of_signals_that_nothing_has_judged() {
    let bench = Bench::new().await;
    for matter in ["about-itself", "about-a-task", "irrelevant", "task-is-done"] {
        bench.matter(matter);
    }
    bench.put("matter/closed.md", "---\ntype: matter\nname: Closed\nstate: done\n---\n");
    bench.task("open", "about-a-task", "");
    bench.task("other", "irrelevant", "");
    bench.task("done", "task-is-done", "state: done\n");
    bench.signal("s1", "task/open.md", "");
    bench.signal("s2", "matter/about-itself.md", "");
    bench.signal("s3", "matter/closed.md", "");
    bench.signal("s4", "task/other.md", "effect: none\n");
    bench.signal("s5", "task/done.md", "");
    bench.sync("01:00:00").await;
    assert_eq!(bench.marked().await, ["about-a-task", "about-itself"]);
    bench.look("matter/about-a-task.md", "l", "01:00:01").await;
    bench.look("matter/about-itself.md", "l", "01:00:01").await;
    bench.sync("01:01:00").await;
    assert!(bench.marked().await.is_empty(), "a scan without news marks nothing");
}

#[tokio::test]
async fn a_first_scan_after_a_loss_marks_only_what_no_record_cites() {
    let bench = Bench::new().await;
    bench.matter("judged");
    bench.matter("unjudged");
    bench.task("t", "judged", "");
    bench.task("u", "unjudged", "");
    bench.signal("s", "task/t.md", "");
    bench.signal("z", "task/u.md", "");
    bench.action("one", |draft| {
        draft.disposition = Disposition::Recorded;
        draft.evidence = vec![CitedSignal {
            reference: path("signal/s.md"),
            source: "gmail".into(),
            note: "n".into(),
            target_confidence: 0.9,
            effect_confidence: 0.9,
            supports: true,
        }];
    });
    bench.sync("01:00:00").await;
    assert_eq!(bench.marked().await, ["unjudged"]);
}

#[tokio::test]
async fn a_mark_goes_when_a_tick_observes_its_matter_and_not_under_a_stop() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let stopped = ObservationQuery { stopped: true, ..ask("matter/m.md", "stopped", "01:02:00") };
    assert!(bench.index.cursors().observe_due_tasks(&stopped).await.unwrap().stopped);
    assert_eq!(bench.marked().await, ["m"]);
    let before = bench.index.cursors().list_oldest_wake_marks(&[], 9).await.unwrap();
    assert_eq!((before.len(), before[0].observed, before[0].may_tick), (1, None, true));
    assert!(bench.index.cursors().list_oldest_wake_marks(&[&path("matter/m.md")], 9).await.unwrap().is_empty());
    bench.look("matter/m.md", "run/1", "01:03:00").await;
    assert!(bench.marked().await.is_empty());

    // The stop came before the end of the run.
    bench.index.cursors().mark_matter_again(&path("task/t.md"), noon("01:04:00")).await.unwrap();
    bench.index.cursors().release_leases("run").await.unwrap();
    assert_eq!(bench.marked().await, ["m"]);
    assert!(bench.index.cursors().list_oldest_wake_marks(&[], 9).await.unwrap()[0].observed.is_some());
    assert_eq!(bench.look("matter/m.md", "next/1", "01:05:00").await.task_checks.len(), 1);
    bench.index.cursors().mark_matter_again(&path("matter/m.md"), noon("01:06:00")).await.unwrap();
    assert_eq!(bench.marked().await, ["m"], "or the matter itself was judged");
}

#[tokio::test]
async fn the_mark_of_a_matter_that_was_closed_says_that_nobody_ticks_it_and_goes_with_a_tick() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    bench.put("matter/m.md", "---\ntype: matter\nname: M\nstate: done\n---\n");
    bench.sync("01:01:00").await;
    assert!(!bench.index.cursors().list_oldest_wake_marks(&[], 9).await.unwrap()[0].may_tick);
    bench.look("matter/m.md", "l", "01:02:00").await;
    assert!(bench.marked().await.is_empty());
}
