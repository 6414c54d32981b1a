use super::*;
use crate::time;

fn at(text: &str) -> DateTime<Utc> {
    time::parse(text).unwrap()
}

fn open() -> TaskClock {
    TaskClock { state: RecordState::Open, surface_class: SurfaceClass::Normal, due: None, snoozed_until: None }
}

#[test]
fn a_task_is_due_when_its_next_check_is_missing_past_or_now() {
    let now = at("2026-11-21T12:00:00Z");
    for next in [None, Some(now), Some(at("2026-11-21T11:59:59Z"))] {
        assert_eq!(check_due(&open(), next, false, now), Ok(()));
    }
    assert_eq!(check_due(&open(), Some(at("2026-11-21T12:00:01Z")), false, now), Err(TaskSkipReason::NotDue));
}

#[test]
fn a_fresh_signal_makes_a_task_due_unless_a_human_snoozed_it() {
    let now = at("2026-11-21T12:00:00Z");
    let later = Some(at("2026-11-22T12:00:00Z"));
    assert_eq!(check_due(&open(), later, true, now), Ok(()));
    let snoozed = TaskClock { snoozed_until: later, ..open() };
    assert_eq!(check_due(&snoozed, None, true, now), Err(TaskSkipReason::Snoozed));
    let awake = TaskClock { snoozed_until: Some(now), ..open() };
    assert_eq!(check_due(&awake, None, false, now), Ok(()));
}

#[test]
fn a_closed_task_is_never_due() {
    let now = at("2026-11-21T12:00:00Z");
    for (state, reason) in
        [(RecordState::Done, TaskSkipReason::Done), (RecordState::Archived, TaskSkipReason::Archived)]
    {
        let task = TaskClock { state, ..open() };
        assert_eq!(check_due(&task, None, true, now), Err(reason));
        assert_eq!(Cadence::default().next_check(&task, 0, now), None);
    }
}

#[test]
fn only_a_high_task_asks_a_clerk_without_signals() {
    assert!(!needs_clerk(SurfaceClass::Normal, false));
    assert!(!needs_clerk(SurfaceClass::Low, false));
    assert!(needs_clerk(SurfaceClass::High, false));
    assert!(needs_clerk(SurfaceClass::Low, true));
}

#[test]
fn a_quiet_matter_backs_off_from_half_an_hour_to_four_hours() {
    let cadence = Cadence::default();
    let table =
        [(0, 1_800), (2, 1_800), (3, 3_600), (5, 3_600), (6, 7_200), (9, 14_400), (12, 14_400), (u32::MAX, 14_400)];
    for (streak, seconds) in table {
        assert_eq!(cadence.matter_interval_seconds(streak), seconds, "streak {streak}");
    }
}

#[test]
fn the_next_check_follows_class_due_date_and_streak() {
    let now = at("2026-11-21T12:00:00Z");
    let after = |task: &TaskClock, streak| {
        Cadence::default().next_check(task, streak, now).map(|t| (t - now).num_seconds()).unwrap()
    };
    assert_eq!(after(&open(), 0), 14_400);
    assert_eq!(after(&open(), 3), 28_800);
    assert_eq!(after(&open(), 300), 86_400);
    let high = TaskClock { surface_class: SurfaceClass::High, ..open() };
    assert_eq!(after(&high, 0), 1_800);
    for due in ["2026-11-22T12:00:00Z", "2026-11-01T00:00:00Z"] {
        assert_eq!(after(&TaskClock { due: Some(at(due)), ..open() }, 0), 3_600, "{due}");
    }
    assert_eq!(after(&TaskClock { due: Some(at("2026-11-22T12:00:01Z")), ..open() }, 0), 14_400);
    let snoozed = TaskClock { snoozed_until: Some(at("2026-12-01T00:00:00Z")), ..open() };
    assert_eq!(Cadence::default().next_check(&snoozed, 9, now), snoozed.snoozed_until);
}
