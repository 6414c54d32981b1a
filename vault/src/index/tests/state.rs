use super::*;

async fn task_row(bench: &Bench) -> TaskRow {
    bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap().remove(0)
}

async fn one_task() -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench
}

fn done(look_id: &str, clock: &str, had_signals: bool) -> CompletedCheck {
    CompletedCheck {
        task: path("task/t.md"),
        check_id: look_id.into(),
        observed_at: noon(clock),
        had_signals,
        outcome: "needs_input".into(),
        clock: open(),
        cadence: Cadence::default(),
    }
}

#[tokio::test]
async fn a_check_recorded_twice_counts_once() {
    let bench = one_task().await;
    for _ in 0..2 {
        bench.index.cursors().record_check(&done("l1", "02:00:00", false)).await.unwrap();
    }
    let task = task_row(&bench).await;
    assert_eq!((task.streak, task.outcome.as_deref()), (1, Some("needs_input")));
    assert_eq!(task.last_check_at, Some(noon("02:00:00")));
    assert_eq!(task.next_check_after, Some(noon("06:00:00")));
}

#[tokio::test]
async fn looks_without_signals_put_the_next_check_off_and_a_signal_resets_that() {
    let bench = one_task().await;
    for n in 1..=3 {
        bench.index.cursors().record_check(&done(&format!("l{n}"), "02:00:00", false)).await.unwrap();
    }
    let task = task_row(&bench).await;
    assert_eq!((task.streak, task.next_check_after), (3, Some(noon("10:00:00"))));
    bench.index.cursors().record_check(&done("l4", "02:00:00", true)).await.unwrap();
    let task = task_row(&bench).await;
    assert_eq!((task.streak, task.next_check_after), (0, Some(noon("06:00:00"))));
}

#[tokio::test]
async fn a_task_that_was_closed_has_no_next_check() {
    let bench = one_task().await;
    let closed =
        CompletedCheck { clock: TaskClock { state: RecordState::Done, ..open() }, ..done("l1", "02:00:00", true) };
    bench.index.cursors().record_check(&closed).await.unwrap();
    assert_eq!(task_row(&bench).await.next_check_after, None);
}

#[tokio::test]
async fn a_clock_that_jumped_back_does_not_move_the_cursor_back() {
    let bench = one_task().await;
    bench.index.cursors().record_check(&done("l1", "05:00:00", true)).await.unwrap();
    bench.index.cursors().record_check(&done("l2", "02:00:00", true)).await.unwrap();
    assert_eq!(task_row(&bench).await.last_check_at, Some(noon("05:00:00")));
}

#[tokio::test]
async fn a_refused_call_counts_once_however_often_it_is_told() {
    let bench = one_task().await;
    for id in ["c1", "c1", "c2"] {
        bench.index.cursors().count_check(noon("02:00:00"), "rate_guarded", id).await.unwrap();
    }
    let tomorrow = at("2026-11-22T01:00:00Z");
    bench.index.cursors().count_check(tomorrow, "rate_guarded", "c3").await.unwrap();
    let looks = bench.index.cursors().list_check_counts(noon("00:00:00").date_naive()).await.unwrap();
    let counts: Vec<_> = looks.iter().map(|l| (l.day.to_string(), l.reason.as_str(), l.count)).collect();
    assert_eq!(counts, [("2026-11-21".into(), "rate_guarded", 2), ("2026-11-22".into(), "rate_guarded", 1)]);
    assert_eq!(bench.index.cursors().list_check_counts(tomorrow.date_naive()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_counts_the_looks_one_by_one_is_forgotten_in_time() {
    let bench = one_task().await;
    bench.index.cursors().count_check(noon("02:00:00"), "rate_guarded", "old").await.unwrap();
    bench.index.cursors().count_check(at("2026-12-21"), "rate_guarded", "new").await.unwrap();
    let marks: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM look_marks").fetch_one(&bench.index.store.reader).await.unwrap();
    assert_eq!(marks, 1);
}

#[tokio::test]
async fn lost_cursors_are_taken_from_the_audit_records() {
    let bench = Bench::new().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.task("u", "m", "");
    bench.put("signal/judged.md", signal_text("task/t.md", "2026-11-21T08:00:00Z", ""));
    bench.put("signal/later.md", signal_text("task/t.md", "2026-11-21T09:30:00Z", ""));
    bench.put("signal/never.md", signal_text("task/u.md", "2026-11-21T08:00:00Z", ""));
    bench.action("older", |d| d.timestamp = noon("07:00:00"));
    bench.action("newest", |d| {
        cite(d, "signal/judged.md");
        (d.timestamp, d.disposition) = (noon("09:00:00"), Disposition::Shadow);
    });
    bench.action("undo", |d| (d.timestamp, d.kind) = (noon("09:45:00"), ActionKind::Reversed));
    let report = bench.sync("10:00:00").await;
    assert!(report.first);
    let rows = bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap();
    assert_eq!(rows[0].last_check_at, Some(noon("09:00:00")));
    assert_eq!((rows[0].outcome.as_deref(), rows[1].last_check_at), (Some("likely_done"), None));
    let seen = bench.look("matter/m.md", "l", "10:30:00").await;
    let evidence =
        |n: usize| seen.task_checks[n].question.evidence.iter().map(|e| e.reference.slug()).collect::<Vec<_>>();
    assert_eq!((evidence(0), evidence(1)), (vec!["never"], vec!["later"]));
}

#[tokio::test]
async fn cursors_that_are_there_are_not_taken_from_the_audit_records() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.action("a", |_| {});
    bench.sync("10:00:00").await;
    assert_eq!(task_row(&bench).await.last_check_at, None);
}

#[tokio::test]
async fn a_signal_from_the_future_of_a_first_scan_is_not_first_seen_in_the_future() {
    let bench = Bench::new().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.put("signal/s.md", signal_text("task/t.md", "2030-01-01", ""));
    bench.sync("10:00:00").await;
    let seen = bench.look("matter/m.md", "l", "10:30:00").await;
    assert_eq!((seen.signals, seen.observed_at), (1, noon("10:30:00")));
}

#[tokio::test]
async fn a_rebuild_keeps_cursors_and_first_sights() {
    let bench = one_task().await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    bench.checked("task/t.md", &seen, "l1").await;
    let report = bench.index.rebuild(&bench.root, noon("03:00:00")).await.unwrap();
    assert_eq!((report.read, report.changed, report.woken.len()), (3, 0, 0));
    assert_eq!(bench.look("matter/m.md", "l2", "04:00:00").await.signals, 0);
    assert_eq!(task_row(&bench).await.last_check_at, Some(noon("02:00:00")));
}
