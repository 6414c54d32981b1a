//! One caller after the other, compared with a model that counts every event.

use proptest::prelude::*;

use super::concurrent::{keep_log, read_log, slide};
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Clock(TimeDelta),
    Reserve {
        task: Option<u8>,
        matter: Option<u8>,
    },
    /// Settles the n-th newest reservation.
    Settle(usize, SettlementOutcome),
    Again,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let clock = prop_oneof![
        8 => 0i64..3_000_000,
        4 => 3_000_000i64..70_000_000,
        3 => 70_000_000i64..4_000_000_000,
        2 => 4_000_000_000i64..100_000_000_000,
        2 => -10_000_000i64..0,
        1 => -200_000_000_000i64..-10_000_000,
        1 => 300_000_000_000i64..3_000_000_000_000,
    ];
    let outcome = prop_oneof![
        6 => Just(answered()),
        2 => Just(SettlementOutcome::Failed),
        2 => Just(SettlementOutcome::NotSent),
        1 => prop::option::of(0.0..2000.0).prop_map(|s| SettlementOutcome::RateLimited { retry_after_seconds: s }),
    ];
    let step = prop_oneof![
        4 => clock.prop_map(|us| Step::Clock(TimeDelta::microseconds(us))),
        12 => (prop::option::of(0u8..3), prop::option::of(0u8..2)).prop_map(|(task, matter)| Step::Reserve { task, matter }),
        3 => (0usize..4, outcome).prop_map(|(n, outcome)| Step::Settle(n, outcome)),
        1 => Just(Step::Again),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..150)
}

const CAPS: CallCaps = CallCaps {
    per_minute: 4,
    per_hour: 9,
    per_day: 20,
    per_task_day: 5,
    per_matter_day: 8,
    extraction_percent: 100,
    stream_percent: 100,
    sender_percent: 100,
    wiki_percent: 100,
    wiki_tokens_per_day: 3_000_000,
};

#[derive(Clone)]
struct Event {
    at: DateTime<Utc>,
    request: ReserveRequest,
    settled: bool,
}

/// Name, width, cap, and which events count.
type Window<'r> = (GuardCap, TimeDelta, u32, Box<dyn Fn(&Event) -> bool + 'r>);

/// The same rules in their simplest form: every count visits every event.
#[derive(Default)]
struct Model {
    events: Vec<Event>,
    newest: Option<DateTime<Utc>>,
    doubt: Option<DateTime<Utc>>,
    back_off: Option<BackOff>,
    probe: Option<(CallId, DateTime<Utc>)>,
    given_back: Vec<CallId>,
}

impl Model {
    fn windows(request: &ReserveRequest) -> Vec<Window<'_>> {
        let mut windows: Vec<Window<'_>> = Vec::new();
        if request.task.is_some() {
            windows.push((GuardCap::Task, DAY, CAPS.per_task_day, Box::new(|e| e.request.task == request.task)));
        }
        if request.matter.is_some() {
            windows.push((
                GuardCap::Matter,
                DAY,
                CAPS.per_matter_day,
                Box::new(|e| e.request.matter == request.matter),
            ));
        }
        windows.push((GuardCap::Minute, MINUTE, CAPS.per_minute, Box::new(|_| true)));
        windows.push((GuardCap::Hour, HOUR, CAPS.per_hour, Box::new(|_| true)));
        windows.push((GuardCap::Day, DAY, CAPS.per_day, Box::new(|_| true)));
        windows
    }

    fn count(&self, end: DateTime<Utc>, width: TimeDelta, counts: &dyn Fn(&Event) -> bool) -> u32 {
        let inside = |e: &&Event| e.at > end - width && e.at <= end && counts(e);
        u32::try_from(self.events.iter().filter(inside).count()).unwrap()
    }

    /// The instant that the clock shows, or the time when it will be trusted.
    fn clock(&mut self, now: DateTime<Utc>) -> Result<DateTime<Utc>, DateTime<Utc>> {
        let newest = self.newest.unwrap_or(now);
        if now >= newest - CLOCK_TOLERANCE {
            self.doubt = None;
            return Ok(now.max(newest));
        }
        let since = self.doubt.filter(|since| now >= *since - CLOCK_TOLERANCE).unwrap_or(now);
        if now < since + DAY {
            self.doubt = Some(since);
            return Err((newest - CLOCK_TOLERANCE).min(since + DAY));
        }
        self.events.retain(|event| event.at <= now);
        if let Some(b) = self.back_off.filter(|b| b.set_at > now) {
            self.back_off = Some(BackOff { set_at: now, until: now + (b.until - b.set_at) });
        }
        self.probe = self.probe.take().filter(|(_, since)| *since <= now);
        self.newest = Some(now);
        self.doubt = None;
        Ok(now)
    }

    /// Checks that the outcome is the only right one; `Err` holds the difference.
    fn judge(&mut self, request: &ReserveRequest, now: DateTime<Utc>, outcome: &ReserveOutcome) -> Result<(), String> {
        let expected = self.expect(request, now);
        match (expected, outcome) {
            (Ok((at, probe)), ReserveOutcome::Reserved(made))
                if made.reserved_at() == at && made.is_probe() == probe =>
            {
                // Events that left every window are removed, so that they cannot come back with the clock.
                self.events.retain(|event| event.at > at - DAY);
                self.events.push(Event { at, request: request.clone(), settled: false });
                self.newest = Some(at);
                if probe {
                    self.probe = Some((request.call_id.clone(), at));
                }
                Ok(())
            }
            (Err((cap, clears)), ReserveOutcome::Refused(refusal))
                if refusal.cap == cap && refusal.clears_at == Some(clears) =>
            {
                Ok(())
            }
            (expected, outcome) => Err(format!("expected {expected:?}, got {outcome:?}")),
        }
    }

    fn expect(
        &mut self,
        request: &ReserveRequest,
        now: DateTime<Utc>,
    ) -> Result<(DateTime<Utc>, bool), (GuardCap, DateTime<Utc>)> {
        let at = self.clock(now).map_err(|clears| (GuardCap::Clock, clears))?;
        if let Some(back_off) = self.back_off {
            if at < back_off.until {
                return Err((GuardCap::BackOff, back_off.until));
            }
            if let Some((_, since)) = self.probe.as_ref().filter(|(_, since)| at < *since + PROBE_LEASE) {
                return Err((GuardCap::ProbePending, *since + PROBE_LEASE));
            }
        }
        for (cap, width, limit, counts) in Self::windows(request) {
            if self.count(at, width, &counts) >= limit {
                // The cap clears when the first event leaves after which there is enough room.
                let mut leaves: Vec<_> = self.events.iter().filter(|e| counts(e)).map(|e| e.at + width).collect();
                leaves.sort_unstable();
                let clears = leaves.into_iter().find(|end| *end > at && self.count_from(*end, width, &counts) < limit);
                return Err((cap, clears.unwrap()));
            }
        }
        Ok((at, self.back_off.is_some()))
    }

    /// Events after `end - width`, those after `end` included.
    fn count_from(&self, end: DateTime<Utc>, width: TimeDelta, counts: &dyn Fn(&Event) -> bool) -> u32 {
        u32::try_from(self.events.iter().filter(|e| e.at > end - width && counts(e)).count()).unwrap()
    }

    fn settle(&mut self, nth: usize, outcome: &SettlementOutcome, now: DateTime<Utc>) -> Option<CallId> {
        let event = self.events.iter_mut().rev().nth(nth)?;
        let call_id = event.request.call_id.clone();
        if std::mem::replace(&mut event.settled, true) {
            return Some(call_id);
        }
        let is_probe = self.probe.as_ref().is_some_and(|(probe, _)| *probe == call_id);
        match outcome {
            SettlementOutcome::Answered { .. } if is_probe => (self.back_off, self.probe) = (None, None),
            SettlementOutcome::Failed | SettlementOutcome::NotSent if is_probe => self.probe = None,
            SettlementOutcome::Answered { .. } | SettlementOutcome::Failed | SettlementOutcome::NotSent => {}
            SettlementOutcome::RateLimited { retry_after_seconds } => {
                let set_at = self.newest.unwrap_or(now).max(now);
                let until = set_at + back_off_for(*retry_after_seconds);
                let until = self.back_off.map_or(until, |old| old.until.max(until));
                self.back_off = Some(BackOff { set_at, until });
                self.probe = None;
                self.newest = Some(set_at);
            }
        }
        if *outcome == SettlementOutcome::NotSent {
            self.events.retain(|event| event.request.call_id != call_id);
            self.given_back.push(call_id.clone());
        }
        Some(call_id)
    }
}

async fn walk(steps: Vec<Step>) -> Result<(), String> {
    let home = Home::new();
    let mut handles = [home.ledger(CAPS), home.ledger(CAPS)];
    assert!(handles[0].status(at(0)).await.refusal.is_none());
    keep_log(&home).await;
    let mut model = Model::default();
    let mut now = at(0);
    for (n, step) in steps.into_iter().enumerate() {
        let ledger = &handles[n % 2];
        match step {
            Step::Clock(by) => now += by,
            Step::Reserve { task, matter } => {
                let request = ReserveRequest {
                    call_id: CallId(format!("{n}")),
                    task: task.map(|t| format!("task/{t}.md")),
                    matter: matter.map(|m| format!("matter/{m}.md")),
                    ..ReserveRequest::default()
                };
                let outcome = ledger.reserve(&request, now).await;
                model.judge(&request, now, &outcome).map_err(|why| format!("step {n} at {now}: {why}"))?;
            }
            Step::Settle(nth, outcome) => {
                if let Some(call_id) = model.settle(nth, &outcome, now) {
                    ledger.settle(&Settlement { call_id, outcome }, now).await.map_err(|error| error.to_string())?;
                }
            }
            Step::Again => {
                let Some(last) = model.events.last() else { continue };
                let again = ledger.reserve(&last.request, now).await;
                if !matches!(&again, ReserveOutcome::Reserved(made) if made.reserved_at() == last.at) {
                    return Err(format!("step {n}: the last reservation was not given again: {again:?}"));
                }
            }
            Step::Restart => handles[n % 2] = home.ledger(CAPS),
        }
    }
    for call_id in model.given_back {
        let gone = sqlx::query("DELETE FROM log WHERE call = ?").bind(call_id.0);
        gone.execute(&mut home.peek().await).await.map_err(|error| error.to_string())?;
    }
    slide(&read_log(&home).await, &CAPS)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_the_only_right_one_and_no_window_is_ever_over_its_cap(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(walk(steps)).map_err(TestCaseError::fail)?;
    }
}
