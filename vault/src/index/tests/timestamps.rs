use super::*;
use crate::action::writer::VaultWriter;
use crate::steward::timestamps::{TimestampWriteError, TimestampWriteOutcome};
use steward_domain::steward::tick::TaskSkipReason;

/// A bench whose task had a quiet check at 02:00. Its next check is due at 06:00.
async fn looked_at(more: &str) -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", more);
    bench.sync("01:00:00").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    bench
}

impl Bench {
    async fn due(&self, clock: &str) -> Vec<DueTimestampWrite> {
        self.index.cursors().list_due_timestamp_writes(noon(clock), 9).await.unwrap()
    }

    /// Writes the due timestamps as the engine does. Returns how many files were written.
    async fn write_timestamps(&self, clock: &str) -> usize {
        let writer = VaultWriter::lock(self.root.clone()).unwrap();
        let mut written = 0;
        for due in self.due(clock).await {
            assert!(self.index.cursors().begin_timestamp_write(&due, noon(clock)).await.unwrap());
            written += usize::from(
                writer.write_timestamps(&due.task, &due.timestamps).unwrap() == TimestampWriteOutcome::Written,
            );
            self.index.cursors().finish_timestamp_write(&due).await.unwrap();
        }
        self.sync(clock).await;
        written
    }

    fn text(&self) -> String {
        fs::read_to_string(self.full("task/t.md")).unwrap()
    }

    /// Edits the task's file as a person does.
    async fn edit(&self, from: &str, to: &str, clock: &str) {
        let text = self.text();
        assert!(text.contains(from), "{text}");
        self.put("task/t.md", text.replace(from, to));
        self.sync(clock).await;
    }

    /// Whether the task is due. Asserts that it is skipped for no other reason.
    async fn is_due(&self, clock: &str) -> bool {
        let seen = self.look("matter/m.md", &format!("run-{clock}/1"), clock).await;
        assert!(seen.skipped.keys().all(|why| *why == TaskSkipReason::NotDue), "{seen:?}");
        seen.quiet == 1
    }
}

#[tokio::test]
async fn a_task_is_stamped_once_for_each_look_and_a_stamp_wakes_nobody() {
    let bench = looked_at("").await;
    assert_eq!(bench.write_timestamps("02:00:05").await, 1);
    let lines = "last_steward_check_at: \"2026-11-21T02:00:00Z\"\nnext_check_after: \"2026-11-21T06:00:00Z\"\n";
    assert_eq!(bench.text(), task_text("m", lines));
    assert_eq!(bench.due("02:00:06").await, []);
    let report = bench.hint(&["task/t.md"], "02:00:07").await;
    assert!(report.woken.is_empty() && !report.scan_changes.matters_changed, "{report:?}");
    assert_eq!(bench.due("02:00:08").await, [], "a stamp is no reason for a stamp");
    assert!(!bench.is_due("05:59:59").await);
    assert!(bench.is_due("06:00:00").await, "nor for a later check");
    assert_eq!(bench.write_timestamps("06:00:01").await, 1);
}

#[tokio::test]
async fn what_was_never_looked_at_is_not_stamped() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    assert_eq!(bench.due("02:00:00").await, []);
}

#[tokio::test]
async fn a_date_of_ours_is_no_wish_of_a_humans() {
    let bench = looked_at("").await;
    bench.write_timestamps("02:00:05").await;
    let tasks = bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap();
    assert_eq!(tasks[0].next_check_after, Some(noon("06:00:00")));
    // A date of Steward gives way to an earlier one of Steward.
    bench.signal("s", "task/t.md", "");
    bench.sync("03:00:00").await;
    let seen = bench.look("matter/m.md", "l2", "03:00:01").await;
    let soon = TaskClock { due: Some(noon("12:00:00")), ..open() };
    bench.index.cursors().record_check(&check("l2", &seen, soon)).await.unwrap();
    let tasks = bench.index.read().list_tasks_of_matter(&path("matter/m.md")).await.unwrap();
    assert_eq!(tasks[0].next_check_after, Some(noon("04:00:01")));
    assert_eq!(bench.write_timestamps("03:00:05").await, 1);
    assert!(bench.text().contains("next_check_after: \"2026-11-21T04:00:01Z\"\n"), "{}", bench.text());
    assert!(!bench.is_due("04:00:00").await);
    assert!(bench.is_due("04:00:02").await);
}

fn check(look_id: &str, seen: &MatterObservation, clock: TaskClock) -> CompletedCheck {
    CompletedCheck {
        task: path("task/t.md"),
        check_id: look_id.into(),
        observed_at: seen.observed_at,
        had_signals: true,
        outcome: "still_active".into(),
        clock,
        cadence: Cadence::default(),
    }
}

#[tokio::test]
async fn a_later_date_of_a_humans_holds_and_is_never_written_over() {
    let bench = looked_at("").await;
    bench.write_timestamps("02:00:05").await;
    bench.edit("\"2026-11-21T06:00:00Z\"", "2026-11-21 09:00", "02:30:00").await;
    assert!(!bench.is_due("08:59:59").await);
    assert!(bench.is_due("09:00:00").await);
    bench.edit("2026-11-21 09:00", "2026-12-24", "09:00:01").await;
    assert_eq!(bench.write_timestamps("09:00:05").await, 1);
    assert!(bench.text().contains("last_steward_check_at: \"2026-11-21T09:00:00Z\"\nnext_check_after: 2026-12-24\n"));
    assert!(!bench.is_due("23:59:59").await);
}

#[tokio::test]
async fn after_the_loss_of_the_database_our_date_counts_as_a_humans() {
    let mut bench = looked_at("").await;
    bench.write_timestamps("02:00:05").await;
    let state = bench.dir.path().join("state");
    bench.index.close().await;
    fs::remove_dir_all(&state).unwrap();
    bench.index = Index::open(&state).await.unwrap();
    bench.sync("03:00:00").await;
    assert!(!bench.is_due("05:59:59").await, "the safe direction");
    assert!(bench.is_due("06:00:00").await);
    assert_eq!(bench.write_timestamps("06:00:05").await, 1);
    assert!(bench.text().contains("next_check_after: \"2026-11-21T10:00:00Z\"\n"), "{}", bench.text());
}

#[tokio::test]
async fn a_task_that_is_being_judged_is_left_alone() {
    let bench = looked_at("").await;
    let due = bench.due("02:00:05").await;
    bench.signal("s", "task/t.md", "");
    bench.sync("02:00:06").await;
    let seen = bench.look("matter/m.md", "run-a/1", "02:00:07").await;
    assert_eq!(seen.task_checks.len(), 1);
    assert_eq!(bench.due("02:00:08").await, []);
    assert!(
        !bench.index.cursors().begin_timestamp_write(&due[0], noon("02:00:08")).await.unwrap(),
        "taken after it was found due"
    );
    bench.checked("task/t.md", &seen, "run-a/1").await;
    assert_eq!(bench.write_timestamps("02:00:09").await, 1);
}

#[tokio::test]
async fn a_stamp_that_came_to_nothing_is_tried_again_later_and_not_at_once() {
    let bench = looked_at("").await;
    let due = bench.due("02:00:05").await.remove(0);
    assert!(bench.index.cursors().begin_timestamp_write(&due, noon("02:00:05")).await.unwrap());
    assert_eq!(bench.due("02:00:34").await, []);
    assert_eq!(bench.write_timestamps("02:00:35").await, 1);
}

#[tokio::test]
async fn one_that_comes_to_nothing_again_and_again_holds_nobody_up() {
    let bench = looked_at("").await;
    let due = bench.due("02:00:05").await.remove(0);
    assert!(bench.index.cursors().begin_timestamp_write(&due, noon("02:00:05")).await.unwrap());
    bench.task("later", "m", "");
    bench.sync("02:00:06").await;
    bench.look("matter/m.md", "l2", "02:00:07").await;
    let one = bench.index.cursors().list_due_timestamp_writes(noon("03:00:00"), 1).await.unwrap();
    assert_eq!(one[0].task, path("task/later.md"));
    assert_eq!(bench.due("03:00:00").await.len(), 2);
}

#[tokio::test]
async fn a_crash_between_the_note_and_the_file_or_after_it_leaves_our_date_known_as_ours() {
    for written in [false, true] {
        let bench = looked_at("").await;
        let due = bench.due("02:00:05").await.remove(0);
        bench.index.cursors().begin_timestamp_write(&due, noon("02:00:05")).await.unwrap();
        if written {
            VaultWriter::lock(bench.root.clone()).unwrap().write_timestamps(&due.task, &due.timestamps).unwrap();
        }
        bench.sync("02:00:06").await;
        // A signal with an earlier date arrives before the next try.
        bench.signal("s", "task/t.md", "");
        bench.sync("02:00:07").await;
        let seen = bench.look("matter/m.md", "l2", "02:00:08").await;
        let soon = TaskClock { due: Some(noon("12:00:00")), ..open() };
        bench.index.cursors().record_check(&check("l2", &seen, soon)).await.unwrap();
        let later = bench.due("02:01:00").await.remove(0);
        bench.index.cursors().begin_timestamp_write(&later, noon("02:01:00")).await.unwrap();
        assert!(!bench.is_due("02:59:59").await);
        assert_eq!(bench.text().contains("06:00:00Z"), written);
        assert_eq!(bench.write_timestamps("02:59:59").await, 1);
        assert!(bench.text().contains("next_check_after: \"2026-11-21T03:00:08Z\"\n"), "{}", bench.text());
        assert!(bench.is_due("03:00:08").await);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_understood_is_not_due_until_it_can() {
    let bench = looked_at("").await;
    let text = bench.text();
    bench.put("task/t.md", "---\nbroken: [\n---\n");
    bench.sync("02:00:05").await;
    assert_eq!(bench.due("02:00:06").await, []);
    bench.remove("task/t.md");
    bench.sync("02:00:07").await;
    assert_eq!(bench.due("02:00:08").await, []);
    bench.put("task/t.md", text);
    bench.sync("02:00:09").await;
    assert_eq!(bench.write_timestamps("02:00:10").await, 1);
}

#[tokio::test]
async fn what_will_never_be_stamped_is_given_up_until_the_next_look() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    let braces = "---\n{type: task, parent_matter: matter/m.md}\n---\n";
    bench.put("task/t.md", braces);
    bench.sync("01:00:00").await;
    bench.look("matter/m.md", "l1", "02:00:00").await;
    let due = bench.due("02:00:05").await.remove(0);
    bench.index.cursors().begin_timestamp_write(&due, noon("02:00:05")).await.unwrap();
    let writer = VaultWriter::lock(bench.root.clone()).unwrap();
    let error = writer.write_timestamps(&due.task, &due.timestamps).unwrap_err();
    assert!(matches!(error, TimestampWriteError::Unusable(_)), "{error}");
    bench.index.cursors().finish_timestamp_write(&due).await.unwrap();
    assert_eq!(bench.due("05:59:59").await, []);
    bench.look("matter/m.md", "l2", "06:00:00").await;
    assert_eq!(bench.due("06:00:01").await.len(), 1);
    assert_eq!(bench.text(), braces);
}
