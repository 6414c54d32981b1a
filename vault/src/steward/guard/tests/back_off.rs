use std::sync::Arc;

use super::*;

/// A ledger on which a call at 0 met a 429 that asks for 60 s.
async fn backed_off(home: &Home) -> Ledger {
    let ledger = home.ledger(wide());
    for id in ["first", "late"] {
        granted(ledger.reserve(&infra(id), at(0)).await);
    }
    ledger.settle(&settled("first", limited(60.0)), at(0)).await.unwrap();
    ledger
}

#[tokio::test]
async fn a_429_stops_every_call_until_its_deadline_then_one_probe_reopens() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(59)).await), (GuardCap::BackOff, Some(60)));
    assert!(granted(ledger.reserve(&infra("a"), at(60)).await).is_probe());
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(61)).await), (GuardCap::ProbePending, Some(180)));
    let stands = ledger.status(at(61)).await.ledger.unwrap();
    assert_eq!(stands.back_off, Some(BackOff { set_at: at(0), until: at(60) }));
    assert_eq!(stands.probe, Some(Probe { call_id: CallId("a".into()), since: at(60) }));
    ledger.settle(&settled("a", answered()), at(62)).await.unwrap();
    assert!(!granted(ledger.reserve(&infra("b"), at(62)).await).is_probe());
}

#[tokio::test]
async fn a_429_with_a_date_stops_until_that_date() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    let date = at(90).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let retry_after_seconds = parse_retry_after(&date, at(0)).map(|wait| wait.as_secs_f64());
    ledger.settle(&settled("a", SettlementOutcome::RateLimited { retry_after_seconds }), at(0)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await), (GuardCap::BackOff, Some(90)));
}

#[tokio::test]
async fn a_429_that_says_nothing_or_too_much_is_a_minute() {
    for (retry_after_seconds, expected) in [(None, 60), (Some(-3.0), 60), (Some(1e12), 60), (Some(7e5), 60)] {
        let home = Home::new();
        let ledger = home.ledger(wide());
        granted(ledger.reserve(&infra("a"), at(0)).await);
        ledger.settle(&settled("a", SettlementOutcome::RateLimited { retry_after_seconds }), at(0)).await.unwrap();
        assert_eq!(cap_of(ledger.reserve(&infra("b"), at(1)).await), (GuardCap::BackOff, Some(expected)));
    }
}

#[tokio::test]
async fn a_probe_that_meets_a_429_sets_a_new_back_off() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    granted(ledger.reserve(&infra("a"), at(60)).await);
    ledger.settle(&settled("a", limited(300.0)), at(61)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(200)).await), (GuardCap::BackOff, Some(361)));
    assert!(granted(ledger.reserve(&infra("b"), at(361)).await).is_probe());
}

#[tokio::test]
async fn a_probe_that_failed_or_was_lost_makes_room_for_the_next() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    granted(ledger.reserve(&infra("a"), at(60)).await);
    ledger.settle(&settled("a", SettlementOutcome::Failed), at(61)).await.unwrap();
    assert!(granted(ledger.reserve(&infra("b"), at(61)).await).is_probe());
    // "b" is never settled in time; when it answers at last, "c" is the probe that counts.
    assert_eq!(cap_of(ledger.reserve(&infra("c"), at(180)).await), (GuardCap::ProbePending, Some(181)));
    assert!(granted(ledger.reserve(&infra("c"), at(181)).await).is_probe());
    ledger.settle(&settled("b", answered()), at(182)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("d"), at(182)).await).0, GuardCap::ProbePending);
    ledger.settle(&settled("c", answered()), at(183)).await.unwrap();
    granted(ledger.reserve(&infra("d"), at(183)).await);
}

#[tokio::test]
async fn an_answer_to_a_call_of_before_the_back_off_does_not_reopen() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    ledger.settle(&settled("late", answered()), at(5)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(6)).await).0, GuardCap::BackOff);
}

#[tokio::test]
async fn a_late_429_extends_the_back_off_and_takes_the_probe_its_say() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    granted(ledger.reserve(&infra("probe"), at(60)).await);
    ledger.settle(&settled("late", limited(100.0)), at(61)).await.unwrap();
    ledger.settle(&settled("probe", answered()), at(62)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(63)).await), (GuardCap::BackOff, Some(161)));
}

#[tokio::test]
async fn a_shorter_429_does_not_shorten_a_longer_one() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    ledger.settle(&settled("late", limited(1.0)), at(1)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(5)).await), (GuardCap::BackOff, Some(60)));
}

#[tokio::test]
async fn a_429_settled_twice_counts_once() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    ledger.settle(&settled("first", limited(60.0)), at(50)).await.unwrap();
    ledger.settle(&settled("first", answered()), at(50)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(50)).await), (GuardCap::BackOff, Some(60)));
    assert!(granted(ledger.reserve(&infra("a"), at(60)).await).is_probe());
}

#[tokio::test]
async fn a_429_of_a_call_nobody_knows_stops_all_the_same() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    ledger.settle(&settled("of another day", limited(60.0)), at(0)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(1)).await), (GuardCap::BackOff, Some(60)));
}

#[tokio::test]
async fn a_back_off_survives_a_restart() {
    let home = Home::new();
    drop(backed_off(&home).await);
    assert_eq!(cap_of(home.ledger(wide()).reserve(&infra("a"), at(30)).await), (GuardCap::BackOff, Some(60)));
}

#[tokio::test]
async fn a_task_that_is_full_is_not_the_probe_and_leaves_it_to_another() {
    let home = Home::new();
    let caps = CallCaps { per_task_day: 1, ..wide() };
    let ledger = home.ledger(caps);
    granted(ledger.reserve(&about("a", "task/a.md", "matter/m.md"), at(0)).await);
    ledger.settle(&settled("a", limited(10.0)), at(0)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&about("b", "task/a.md", "matter/m.md"), at(10)).await).0, GuardCap::Task);
    assert!(granted(ledger.reserve(&about("c", "task/c.md", "matter/m.md"), at(10)).await).is_probe());
}

#[tokio::test(flavor = "multi_thread")]
async fn among_many_callers_one_alone_is_the_probe() {
    let home = Home::new();
    drop(backed_off(&home).await);
    let handles: Vec<_> = (0..6).map(|_| Arc::new(home.ledger(wide()))).collect();
    for round in 0..3 {
        let now = at(60 + round * 120);
        let callers = (0..60).map(|n| {
            let ledger = Arc::clone(&handles[n % handles.len()]);
            tokio::spawn(async move { ledger.reserve(&infra(format!("{round}/{n}")), now).await })
        });
        let outcomes = futures_util::future::join_all(callers.collect::<Vec<_>>()).await;
        let (probes, waiting): (Vec<_>, Vec<_>) =
            outcomes.into_iter().map(Result::unwrap).partition(|o| matches!(o, ReserveOutcome::Reserved(_)));
        assert_eq!(probes.len(), 1);
        assert!(granted(probes.into_iter().next().unwrap()).is_probe());
        assert!(waiting.into_iter().all(|outcome| refused(outcome).cap == GuardCap::ProbePending));
    }
}

#[tokio::test]
async fn a_back_off_that_an_operator_lifts_lets_one_probe_go_first() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    ledger.settle(&settled("late", limited(86_400.0)), at(1)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&infra("a"), at(10)).await), (GuardCap::BackOff, Some(86_401)));
    assert_eq!(ledger.lift_back_off(at(10)).await.unwrap(), Some(at(86_401)));
    assert!(granted(ledger.reserve(&infra("a"), at(10)).await).is_probe());
    assert_eq!(cap_of(ledger.reserve(&infra("b"), at(11)).await), (GuardCap::ProbePending, Some(130)));
    assert_eq!(ledger.lift_back_off(at(11)).await.unwrap(), None, "a probe is out");
    ledger.settle(&settled("a", answered()), at(12)).await.unwrap();
    assert!(!granted(ledger.reserve(&infra("b"), at(12)).await).is_probe());
    assert_eq!(ledger.lift_back_off(at(13)).await.unwrap(), None, "there is none");
}

#[tokio::test]
async fn a_call_that_was_never_sent_gives_its_slot_back_and_only_then() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps { per_task_day: 1, per_minute: 1, ..wide() });
    let call = |id: &str| about(id.to_owned(), "task/a.md", "matter/m.md");
    granted(ledger.reserve(&call("a"), at(0)).await);
    assert_eq!(cap_of(ledger.reserve(&call("b"), at(1)).await).0, GuardCap::Task);
    ledger.settle(&settled("a", SettlementOutcome::NotSent), at(1)).await.unwrap();
    granted(ledger.reserve(&call("b"), at(1)).await);
    // A call that was sent counts, whatever is reported afterwards.
    ledger.settle(&settled("b", SettlementOutcome::Failed), at(2)).await.unwrap();
    ledger.settle(&settled("b", SettlementOutcome::NotSent), at(3)).await.unwrap();
    ledger.settle(&settled("never reserved", SettlementOutcome::NotSent), at(3)).await.unwrap();
    assert_eq!(cap_of(ledger.reserve(&call("c"), at(4)).await).0, GuardCap::Task);
}

#[tokio::test]
async fn a_probe_that_was_never_sent_makes_room_for_the_next() {
    let home = Home::new();
    let ledger = backed_off(&home).await;
    granted(ledger.reserve(&infra("a"), at(60)).await);
    ledger.settle(&settled("a", SettlementOutcome::NotSent), at(61)).await.unwrap();
    assert!(granted(ledger.reserve(&infra("b"), at(61)).await).is_probe());
}
