use super::*;

fn day(day: u32, clock: &str) -> DateTime<Utc> {
    at(&format!("2026-11-{day:02}T{clock}Z"))
}

async fn is_late(bench: &Bench, now: DateTime<Utc>) -> bool {
    bench.index.trust().read_drill_history().await.unwrap().is_late(now)
}

#[tokio::test]
async fn a_drill_is_late_two_days_after_the_first_start_and_after_each_drill() {
    let bench = Bench::new().await;
    assert!(!is_late(&bench, day(30, "00:00:00")).await, "it was never served");
    bench.index.trust().record_service_start(day(1, "12:00:00")).await.unwrap();
    bench.index.sync_all(&bench.root, day(1, "12:00:01")).await.unwrap();
    assert!(!is_late(&bench, day(3, "12:00:00")).await);
    assert!(is_late(&bench, day(3, "12:00:01")).await);
    bench.index.trust().record_drill(day(3, "02:00:00")).await.unwrap();
    bench.index.trust().record_drill(day(2, "02:00:00")).await.unwrap();
    assert_eq!(
        bench.index.trust().read_drill_history().await.unwrap().last,
        Some(day(3, "02:00:00")),
        "the newest holds"
    );
    assert!(!is_late(&bench, day(5, "02:00:00")).await);
    assert!(is_late(&bench, day(5, "02:00:01")).await);
}

#[tokio::test]
async fn a_restart_excuses_no_drill_and_a_pause_of_a_day_does() {
    let bench = Bench::new().await;
    bench.index.trust().record_service_start(day(1, "12:00:00")).await.unwrap();
    bench.index.sync_all(&bench.root, day(3, "12:00:00")).await.unwrap();
    bench.index.trust().record_service_start(day(4, "12:00:00")).await.unwrap();
    assert!(is_late(&bench, day(4, "12:00:01")).await);
    bench.index.trust().record_service_start(day(4, "12:00:01")).await.unwrap();
    assert!(!is_late(&bench, day(6, "12:00:01")).await);
    assert!(is_late(&bench, day(6, "12:00:02")).await);
}

#[tokio::test]
async fn what_is_known_of_drills_outlives_a_rebuild_and_a_new_file_counts_from_its_first_scan() {
    let bench = Bench::new().await;
    bench.index.trust().record_service_start(day(1, "12:00:00")).await.unwrap();
    bench.index.trust().record_drill(day(2, "02:00:00")).await.unwrap();
    let before = bench.index.trust().read_drill_history().await.unwrap();
    bench.index.rebuild(&bench.root, day(9, "12:00:00")).await.unwrap();
    assert_eq!(bench.index.trust().read_drill_history().await.unwrap(), before);
    let anew = Bench::new().await;
    anew.index.sync_all(&anew.root, day(9, "12:00:00")).await.unwrap();
    assert!(!is_late(&anew, day(11, "12:00:00")).await && is_late(&anew, day(11, "12:00:01")).await);
}
