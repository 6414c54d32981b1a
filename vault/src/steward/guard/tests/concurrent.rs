//! Many callers at once over several handles, with a clock that jumps in both directions.

use std::sync::Arc;

use futures_util::future::join_all;
use proptest::prelude::*;

use super::*;

const CAPS: CallCaps = CallCaps {
    per_minute: 12,
    per_hour: 30,
    per_day: 70,
    per_task_day: 5,
    per_matter_day: 16,
    extraction_percent: 100,
    stream_percent: 100,
    sender_percent: 100,
    wiki_percent: 100,
    wiki_tokens_per_day: 3_000_000,
};

/// Begins a log of every reservation, in the order of the transactions. Pruning does not shorten it.
pub(super) async fn keep_log(home: &Home) {
    let log = "CREATE TABLE log (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER, task TEXT, matter TEXT, call TEXT);
        CREATE TRIGGER keep AFTER INSERT ON call BEGIN
            INSERT INTO log (at, task, matter, call) VALUES (new.reserved_us, new.task, new.matter, new.call_id); END";
    sqlx::raw_sql(log).execute(&mut home.peek().await).await.unwrap();
}

pub(super) type Logged = (i64, Option<String>, Option<String>);

pub(super) async fn read_log(home: &Home) -> Vec<Logged> {
    sqlx::query_as("SELECT at, task, matter FROM log ORDER BY seq").fetch_all(&mut home.peek().await).await.unwrap()
}

/// Slides each window over every event, and checks its cap.
///
/// The log goes back in time only where a day of doubt about the clock ended. The earlier times were then false, and
/// counting begins anew.
pub(super) fn slide(log: &[Logged], caps: &CallCaps) -> Result<(), String> {
    for epoch in log.chunk_by(|a, b| a.0 <= b.0) {
        for (i, (end, task, matter)) in epoch.iter().enumerate() {
            let count = |width: TimeDelta, counts: &dyn Fn(&Logged) -> bool| {
                let start = end - width.num_microseconds().unwrap();
                epoch[..=i].iter().filter(|e| e.0 > start && counts(e)).count()
            };
            let held = [
                ("minute", count(MINUTE, &|_| true), caps.per_minute),
                ("hour", count(HOUR, &|_| true), caps.per_hour),
                ("day", count(DAY, &|_| true), caps.per_day),
                ("task", count(DAY, &|e| task.is_some() && e.1 == *task), caps.per_task_day),
                ("matter", count(DAY, &|e| matter.is_some() && e.2 == *matter), caps.per_matter_day),
            ];
            for (window, held, cap) in held {
                if held > cap as usize {
                    return Err(format!("{held} calls in a window of a {window} that ends at {end}"));
                }
            }
        }
    }
    Ok(())
}

/// One round: the clock steps, then many callers at once, each a little off.
#[derive(Clone, Debug)]
struct Round {
    step: i64,
    callers: Vec<Caller>,
}

#[derive(Clone, Debug)]
struct Caller {
    off_us: i64,
    task: Option<u8>,
    matter: Option<u8>,
    settlement: Option<SettlementOutcome>,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let step = prop_oneof![
        3 => Just(0i64),
        4 => 1i64..40,
        3 => 40i64..4000,
        2 => 4000i64..100_000,
        1 => -9i64..0,
        1 => -5000i64..-9,
        1 => Just(-400_000i64),
        1 => Just(40_000_000i64),
    ];
    let settlement = prop_oneof![
        6 => Just(None),
        6 => Just(Some(answered())),
        2 => Just(Some(SettlementOutcome::Failed)),
        1 => (0.0..300.0).prop_map(|seconds| Some(limited(seconds))),
    ];
    let caller = (-2_000_000i64..2_000_000, prop::option::of(0u8..5), prop::option::of(0u8..3), settlement)
        .prop_map(|(off_us, task, matter, settlement)| Caller { off_us, task, matter, settlement });
    let round = (step, prop::collection::vec(caller, 1..24)).prop_map(|(step, callers)| Round { step, callers });
    prop::collection::vec(round, 1..14)
}

async fn call(
    ledger: Arc<Ledger>,
    request: ReserveRequest,
    now: DateTime<Utc>,
    settlement: Option<SettlementOutcome>,
) -> ReserveOutcome {
    let outcome = ledger.reserve(&request, now).await;
    if let (ReserveOutcome::Reserved(_), Some(settled)) = (&outcome, settlement) {
        ledger.settle(&Settlement { call_id: request.call_id, outcome: settled }, now).await.unwrap();
    }
    outcome
}

async fn run(rounds: Vec<Round>) -> Result<(), String> {
    let home = Home::new();
    let handles: Vec<_> = (0..4).map(|_| Arc::new(home.ledger(CAPS))).collect();
    assert!(handles[0].status(at(0)).await.refusal.is_none());
    keep_log(&home).await;
    let mut now = at(0);
    for (r, round) in rounds.into_iter().enumerate() {
        now += TimeDelta::seconds(round.step);
        let mut requests = Vec::new();
        let mut calls = Vec::new();
        for (n, caller) in round.callers.into_iter().enumerate() {
            let request = ReserveRequest {
                call_id: CallId(format!("{r}/{n}")),
                task: caller.task.map(|t| format!("task/{t}.md")),
                matter: caller.matter.map(|m| format!("matter/{m}.md")),
                ..ReserveRequest::default()
            };
            let its_now = now + TimeDelta::microseconds(caller.off_us);
            requests.push((request.clone(), its_now));
            calls.push(tokio::spawn(call(Arc::clone(&handles[n % 4]), request, its_now, caller.settlement)));
        }
        let outcomes: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        let log = read_log(&home).await;
        for ((request, its_now), outcome) in requests.iter().zip(&outcomes) {
            if let ReserveOutcome::Refused(refusal) = outcome {
                justified(refusal, request, *its_now, &log)?;
            }
        }
    }
    slide(&read_log(&home).await, &CAPS)
}

/// Checks a refusal: it names the call whose end makes room, and from that call on the window is full.
fn justified(
    refusal: &GuardRefusal,
    request: &ReserveRequest,
    now: DateTime<Utc>,
    log: &[Logged],
) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}: {refusal:?} to {request:?} at {now}"));
    let Some(clears) = refusal.clears_at else { return wrong("it does not say when it clears") };
    if clears <= now {
        return wrong("it has cleared");
    }
    let all: &dyn Fn(&Logged) -> bool = &|_| true;
    let (width, cap, counts): (_, _, &dyn Fn(&Logged) -> bool) = match refusal.cap {
        GuardCap::Task => (DAY, CAPS.per_task_day, &|e| e.1 == request.task),
        GuardCap::Matter => (DAY, CAPS.per_matter_day, &|e| e.2 == request.matter),
        GuardCap::Minute => (MINUTE, CAPS.per_minute, all),
        GuardCap::Hour => (HOUR, CAPS.per_hour, all),
        GuardCap::Day => (DAY, CAPS.per_day, all),
        GuardCap::BackOff | GuardCap::ProbePending | GuardCap::Clock => return Ok(()),
        GuardCap::Extraction
        | GuardCap::Stream
        | GuardCap::Sender
        | GuardCap::Source
        | GuardCap::Wiki
        | GuardCap::WikiTokens => {
            return wrong("it goes to no account");
        }
        GuardCap::LedgerUnreadable
        | GuardCap::LedgerLost
        | GuardCap::Stopped
        | GuardCap::Provider
        | GuardCap::ProviderShare
        | GuardCap::Gate => {
            return wrong("nothing was the matter");
        }
    };
    let edge = (clears - width).timestamp_micros();
    // Callers of one round run at once, so later calls may have been recorded after the refusal.
    let held = log.iter().filter(|e| e.0 >= edge && counts(e)).count();
    if !log.iter().any(|e| e.0 == edge && counts(e)) || held < cap as usize {
        return wrong("its window was not full");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_callers_and_clock_do_no_window_is_over_its_cap_and_no_refusal_is_made_up(rounds in rounds()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(run(rounds)).map_err(TestCaseError::fail)?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_callers_at_one_instant_exactly_the_cap_gets_through() {
    let home = Home::new();
    let handles: Vec<_> = (0..8).map(|_| Arc::new(home.ledger(CallCaps::default()))).collect();
    let calls = (0..200).map(|n| tokio::spawn(call(Arc::clone(&handles[n % 8]), infra(format!("{n}")), at(0), None)));
    let outcomes = join_all(calls.collect::<Vec<_>>()).await;
    let reserved = outcomes.iter().filter(|o| matches!(o, Ok(ReserveOutcome::Reserved(_)))).count();
    assert_eq!(reserved, 60);
    for outcome in outcomes.into_iter().map(Result::unwrap) {
        if let ReserveOutcome::Refused(refusal) = outcome {
            assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Minute, Some(at(60))));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_reserved_by_many_at_once_is_one_reservation() {
    let home = Home::new();
    let handles: Vec<_> = (0..8).map(|_| Arc::new(home.ledger(wide()))).collect();
    let calls = (0..64).map(|n| tokio::spawn(call(Arc::clone(&handles[n % 8]), infra("one"), at(0), None)));
    let outcomes = join_all(calls.collect::<Vec<_>>()).await;
    let first = granted(handles[0].reserve(&infra("one"), at(5)).await);
    for outcome in outcomes {
        assert_eq!(granted(outcome.unwrap()), first);
    }
    assert_eq!(handles[0].status(at(5)).await.ledger.unwrap().day.used, 1);
}

#[test]
fn the_sliding_check_catches_a_window_that_is_over_its_cap() {
    let caps = CallCaps { per_minute: 2, ..wide() };
    let log: Vec<Logged> = [0, 59_999_999, 60_000_000].map(|us| (us, None, None)).into();
    assert!(slide(&log, &caps).is_ok());
    let log: Vec<Logged> = [0, 59_999_998, 59_999_999].map(|us| (us, None, None)).into();
    assert!(slide(&log, &caps).is_err());
}

#[tokio::test]
async fn callers_that_gave_up_waiting_leave_nothing_half_done() {
    let home = Home::new();
    let ledger = home.ledger(wide());
    for n in 0..40u32 {
        let request = infra(format!("{n}"));
        let reserve = ledger.reserve(&request, at(0));
        // It is polled a few times, then dropped at whatever step it is.
        let mut reserve = Box::pin(reserve);
        for _ in 0..n {
            if futures_util::poll!(reserve.as_mut()).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    granted(ledger.reserve(&infra("after"), at(0)).await);
    assert!(ledger.status(at(0)).await.refusal.is_none());
}
