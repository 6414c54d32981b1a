//! The status of a matter follows the rules of its tick.

use super::*;
use steward_domain::steward::tick::TaskSkipReason;

async fn decisions(bench: &Bench, query: &ObservationQuery) -> Vec<(String, CheckDecision)> {
    let statuses = bench.index.read().preview_task_checks(query, None).await.unwrap();
    statuses.into_iter().map(|s| (s.path.slug().to_owned(), s.turn)).collect()
}

#[tokio::test]
async fn each_task_says_what_the_next_tick_does_with_it_and_asking_moves_nothing() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("done", "m", "state: done\n");
    bench.task("fresh", "m", "");
    bench.task("later", "m", "next_check_after: 2027-01-01\n");
    bench.task("quiet", "m", "");
    bench.task("snoozed", "m", "snoozed_until: 2027-01-01\n");
    bench.task("twin-a", "m", "id: x\n");
    bench.task("twin-b", "m", "id: x\n");
    bench.signal("s", "task/fresh.md", "");
    bench.sync("01:00:00").await;
    let ask = ask("matter/m.md", "other/1", "02:00:00");
    let wanted = [
        ("done", CheckDecision::Skipped(TaskSkipReason::Done)),
        ("fresh", CheckDecision::Clerk),
        ("later", CheckDecision::Skipped(TaskSkipReason::NotDue)),
        ("quiet", CheckDecision::Quiet),
        ("snoozed", CheckDecision::Skipped(TaskSkipReason::Snoozed)),
        ("twin-a", CheckDecision::Twin),
        ("twin-b", CheckDecision::Twin),
    ]
    .map(|(slug, turn)| (slug.to_owned(), turn));
    for _ in 0..2 {
        assert_eq!(decisions(&bench, &ask).await, wanted);
    }
    assert_eq!(bench.index.read().preview_task_checks(&ask, None).await.unwrap()[1].fresh, 1);
    let (first, last) = (path("task/fresh.md"), path("task/quiet.md"));
    let some = bench.index.read().preview_task_checks(&ask, Some((&first, &last))).await.unwrap();
    let some: Vec<_> = some.into_iter().map(|s| (s.path.slug().to_owned(), s.turn)).collect();
    assert_eq!(some, wanted[1..4]);
    let seen = bench.look("matter/m.md", "l/1", "02:00:00").await;
    assert_eq!((seen.task_checks.len(), seen.quiet), (1, 1), "a tick finds what was shown");
    let after = decisions(&bench, &ask).await;
    assert_eq!(after[1].1, CheckDecision::Skipped(TaskSkipReason::BeingJudged), "another run is judging it");
    assert_eq!(after[3].1, CheckDecision::Skipped(TaskSkipReason::NotDue));
}

#[tokio::test]
async fn the_last_tick_is_told_with_its_reasons() {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("done", "m", "state: done\n");
    bench.task("quiet", "m", "");
    bench.sync("01:00:00").await;
    let (matter, cadence) = (path("matter/m.md"), Cadence::default());
    assert_eq!(bench.index.read().last_tick(&matter, &cadence).await.unwrap(), None);
    bench.look("matter/m.md", "l/1", "02:00:00").await;
    let tick = bench.index.read().last_tick(&matter, &cadence).await.unwrap().unwrap();
    assert_eq!((tick.at, tick.task_checks, tick.quiet, tick.signals), (noon("02:00:00"), 0, 1, 0));
    assert_eq!(tick.skipped, BTreeMap::from([(TaskSkipReason::Done, 1)]));
    assert_eq!((tick.interval.streak, tick.interval.seconds, tick.interval.grows_after), (1, 1_800, Some(2)));
    bench.signal("s", "task/quiet.md", "");
    bench.sync("02:30:00").await;
    bench.look("matter/m.md", "l/2", "03:00:00").await;
    let tick = bench.index.read().last_tick(&matter, &cadence).await.unwrap().unwrap();
    assert_eq!((tick.task_checks, tick.signals, tick.interval.streak), (1, 1, 0));
}

#[tokio::test]
async fn nobody_is_late_at_once_when_the_stop_ended_just_now() {
    let bench = Bench::scanned().await;
    for matter in ["a", "b"] {
        bench.matter(matter);
    }
    bench.sync("01:00:00").await;
    bench.look("matter/a.md", "l/1", "02:00:00").await;
    let lag = async |from: Option<&str>, now| {
        let lag = bench.index.read().measure_tick_lag(&Cadence::default(), from.map(noon), noon(now)).await.unwrap();
        (lag.late, lag.worst.map(|(_, seconds)| seconds), lag.never)
    };
    assert_eq!(lag(None, "02:40:00").await, (0, None, 1));
    assert_eq!(lag(None, "09:00:00").await, (1, Some(6 * 3_600 + 1_800), 1));
    assert_eq!(lag(Some("08:30:00"), "09:00:00").await, (0, None, 1), "it was stopped until then");
    assert_eq!(lag(Some("08:00:00"), "09:00:00").await, (1, Some(1_800), 1), "and is late since");
    assert_eq!(
        lag(Some("01:30:00"), "09:00:00").await.1,
        Some(6 * 3_600 + 1_800),
        "what was released before counts not"
    );
}

#[test]
fn an_interval_grows_when_it_says_so_and_says_when_it_grows_no_more() {
    let cadence = Cadence::default();
    let mut streak = 0;
    let mut steps = Vec::new();
    loop {
        let interval = MatterInterval::after_streak(streak, &cadence);
        steps.push(interval.seconds);
        let Some(more) = interval.grows_after else { break };
        assert_eq!(MatterInterval::after_streak(streak + more - 1, &cadence).seconds, interval.seconds, "not before");
        streak += more;
    }
    assert_eq!(steps, [1_800, 3_600, 7_200, 14_400]);
    assert_eq!(MatterInterval::after_streak(u32::MAX, &cadence).grows_after, None);
}
