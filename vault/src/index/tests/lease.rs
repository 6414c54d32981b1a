use super::*;
use steward_domain::steward::tick::TaskSkipReason;

async fn bench() -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.signal("s", "task/t.md", "");
    bench.sync("01:00:00").await;
    bench
}

#[tokio::test]
async fn two_ticks_at_once_judge_a_task_once() {
    let bench = bench().await;
    assert_eq!(bench.look("matter/m.md", "run-a/1", "02:00:00").await.task_checks.len(), 1);
    let other = bench.look("matter/m.md", "run-b/1", "02:00:01").await;
    assert!(other.task_checks.is_empty());
    assert_eq!(other.skipped, BTreeMap::from([(TaskSkipReason::BeingJudged, 1)]));
    assert_eq!(
        bench.look("matter/m.md", "run-a/2", "02:00:02").await.task_checks.len(),
        1,
        "a run never waits for itself"
    );
}

#[tokio::test]
async fn a_task_is_free_again_when_its_check_is_recorded_or_its_run_lets_go() {
    let bench = bench().await;
    let seen = bench.look("matter/m.md", "run-a/1", "02:00:00").await;
    bench.index.cursors().release_leases("run-a").await.unwrap();
    assert_eq!(bench.look("matter/m.md", "run-b/1", "02:00:01").await.task_checks.len(), 1);
    bench.checked("task/t.md", &seen, "run-b/1").await;
    bench.signal("later", "task/t.md", "");
    bench.sync("02:00:02").await;
    assert_eq!(bench.look("matter/m.md", "run-c/1", "02:00:03").await.task_checks.len(), 1);
}

#[tokio::test]
async fn the_lease_of_a_run_that_died_ends_by_itself() {
    let bench = bench().await;
    bench.look("matter/m.md", "run-a/1", "02:00:00").await;
    assert!(bench.look("matter/m.md", "run-b/1", "02:05:09").await.task_checks.is_empty());
    assert_eq!(bench.look("matter/m.md", "run-c/1", "02:05:10").await.task_checks.len(), 1);
}
