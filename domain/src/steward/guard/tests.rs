use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use proptest::prelude::*;

use super::window::shift_after_restart;
use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(1_790_000_000 + seconds, 0).unwrap()
}

fn about(task: Option<&str>, matter: Option<&str>) -> ReserveRequest {
    ReserveRequest {
        call_id: CallId("c".into()),
        task: task.map(Into::into),
        matter: matter.map(Into::into),
        ..ReserveRequest::default()
    }
}

fn all_full() -> GuardFacts {
    let edge = Some(at(0));
    GuardFacts {
        back_off: Some(BackOff { set_at: at(0), until: at(30) }),
        probe: None,
        edges: WindowEdges { task: edge, matter: edge, minute: edge, hour: edge, day: edge },
        accounts: Vec::new(),
        wiki_calls: Vec::new(),
    }
}

#[test]
fn caps_are_checked_in_the_order_of_the_contract() {
    let request = about(Some("task/a.md"), Some("matter/m.md"));
    let mut facts = all_full();
    let refused = |facts: &GuardFacts| admit_call(&request, &CallCaps::default(), facts, at(1)).unwrap_err();
    let mut order = vec![refused(&facts).cap];
    facts.back_off = Some(BackOff { set_at: at(0), until: at(1) });
    facts.probe = Some(Probe { call_id: CallId("p".into()), since: at(1) });
    order.push(refused(&facts).cap);
    facts.probe = None;
    let lifts: [fn(&mut WindowEdges); 4] =
        [|e| e.task = None, |e| e.matter = None, |e| e.minute = None, |e| e.hour = None];
    for lift in lifts {
        order.push(refused(&facts).cap);
        lift(&mut facts.edges);
    }
    order.push(refused(&facts).cap);
    facts.edges.day = None;
    assert!(admit_call(&request, &CallCaps::default(), &facts, at(1)).unwrap().is_probe());
    let words: Vec<String> = order.iter().map(|cap| format!("{cap:?}")).collect();
    assert_eq!(words, ["BackOff", "ProbePending", "Task", "Matter", "Minute", "Hour", "Day"]);
}

#[test]
fn an_infrastructure_call_is_exempt_from_task_and_matter_but_not_from_the_tenant() {
    let mut facts = GuardFacts { back_off: None, ..all_full() };
    let refusal = admit_call(&about(None, None), &CallCaps::default(), &facts, at(1)).unwrap_err();
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Minute, Some(at(60))));
    facts.edges = WindowEdges { minute: None, hour: None, day: None, ..facts.edges };
    assert!(admit_call(&about(None, None), &CallCaps::default(), &facts, at(1)).is_ok());
}

#[test]
fn an_event_leaves_its_window_exactly_one_width_later() {
    let facts =
        GuardFacts { edges: WindowEdges { minute: Some(at(0)), ..WindowEdges::default() }, ..GuardFacts::default() };
    let just_before = at(60) - TimeDelta::microseconds(1);
    assert!(admit_call(&about(None, None), &CallCaps::default(), &facts, just_before).is_err());
    assert!(admit_call(&about(None, None), &CallCaps::default(), &facts, at(60)).is_ok());
}

#[test]
fn a_probe_that_is_out_too_long_is_replaced() {
    let back_off = Some(BackOff { set_at: at(-60), until: at(0) });
    let probe = Some(Probe { call_id: CallId("p".into()), since: at(0) });
    let facts = GuardFacts { back_off, probe, ..GuardFacts::default() };
    let judge = |now| admit_call(&about(None, None), &CallCaps::default(), &facts, now);
    assert_eq!(judge(at(119)).unwrap_err().clears_at, Some(at(120)));
    assert!(judge(at(120)).unwrap().is_probe());
}

#[test]
fn a_clock_that_stepped_back_a_little_counts_as_the_newest_event() {
    assert_eq!(read_clock(Some(at(10)), None, at(0)), ClockReading::Sound { at: at(10) });
    assert_eq!(read_clock(Some(at(10)), None, at(11)), ClockReading::Sound { at: at(11) });
    assert_eq!(read_clock(None, None, at(0)), ClockReading::Sound { at: at(0) });
}

#[test]
fn a_clock_that_jumped_back_is_doubted_until_it_has_caught_up() {
    let reading = read_clock(Some(at(3600)), None, at(0));
    assert_eq!(reading, ClockReading::Doubted { since: at(0), clears_at: at(3590) });
    assert_eq!(read_clock(Some(at(3600)), Some(at(0)), at(3590)), ClockReading::Sound { at: at(3600) });
}

#[test]
fn a_clock_that_stood_years_ahead_closes_the_guard_for_one_day_only() {
    let poison = at(400 * 86_400);
    let doubted = ClockReading::Doubted { since: at(0), clears_at: at(86_400) };
    assert_eq!(read_clock(Some(poison), None, at(0)), doubted);
    assert_eq!(read_clock(Some(poison), Some(at(0)), at(86_399)), doubted);
    assert_eq!(read_clock(Some(poison), Some(at(0)), at(86_400)), ClockReading::Restarted);
}

#[test]
fn a_doubted_clock_that_jumps_back_again_starts_its_day_anew() {
    let reading = read_clock(Some(at(400 * 86_400)), Some(at(0)), at(-1000));
    assert_eq!(reading, ClockReading::Doubted { since: at(-1000), clears_at: at(85_400) });
    assert_eq!(loss_clears_at(at(0), at(-1000)), (at(-1000), at(85_400)));
    assert_eq!(loss_clears_at(at(0), at(500)), (at(0), at(86_400)));
}

#[test]
fn after_a_restart_a_back_off_keeps_its_length_and_a_future_probe_is_forgotten() {
    let ahead = BackOff { set_at: at(9000), until: at(9060) };
    let probe = Probe { call_id: CallId("p".into()), since: at(9100) };
    let (back_off, gone) = shift_after_restart(Some(ahead), Some(probe), at(0));
    assert_eq!(back_off, Some(BackOff { set_at: at(0), until: at(60) }));
    assert_eq!(gone, None);
    let past = BackOff { set_at: at(-5), until: at(55) };
    assert_eq!(shift_after_restart(Some(past), None, at(0)), (Some(past), None));
}

#[test]
fn retry_after_is_read_as_seconds_and_as_every_http_date() {
    let now = DateTime::parse_from_rfc3339("1994-11-06T08:48:37Z").unwrap().to_utc();
    let seconds = |text| parse_retry_after(text, now).map(|wait| wait.as_secs_f64());
    for (text, expected) in [
        ("120", Some(120.0)),
        (" 7 ", Some(7.0)),
        ("0", Some(0.0)),
        ("1.5", Some(1.5)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(60.0)),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(60.0)),
        ("Sun Nov  6 08:49:37 1994", Some(60.0)),
        ("Wed, 16 Nov 1994 08:48:37 GMT", Some(864_000.0)),
        ("Sunday, 06-Nov-93 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:48:37 GMT", None),
        ("Sun, 06 Nov 1994 08:47:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 PST", None),
        ("Sun, 31 Feb 1995 08:49:37 GMT", None),
        ("", None),
        ("-5", None),
        ("1e3", None),
        ("1.2.3", None),
        ("inf", None),
        ("soon", None),
        ("٣", None),
    ] {
        assert_eq!(seconds(text), expected, "{text:?}");
    }
    assert!(seconds(&"9".repeat(400)).unwrap() > 1e9);
}

#[test]
fn a_two_digit_year_is_of_the_nearest_century() {
    let now = DateTime::parse_from_rfc3339("2074-11-06T08:48:37Z").unwrap().to_utc();
    let wait = parse_retry_after("Sunday, 06-Nov-74 08:49:37 GMT", now).unwrap();
    assert_eq!(wait.as_secs(), 60);
}

#[test]
fn a_missing_or_absurd_wait_is_a_minute_and_up_to_seven_days_are_honoured() {
    for (retry_after, expected) in [
        (None, 60),
        (Some(f64::NAN), 60),
        (Some(-1.0), 60),
        (Some(f64::NEG_INFINITY), 60),
        (Some(0.0), 0),
        (Some(90.0), 90),
        (Some(7.0 * 86_400.0), 7 * 86_400),
        (Some(7.0 * 86_400.0 + 1.0), 60),
        (Some(1e300), 60),
        (Some(f64::INFINITY), 60),
    ] {
        assert_eq!(back_off_for(retry_after).num_seconds(), expected, "{retry_after:?}");
    }
}

#[test]
fn what_travels_is_json_that_a_person_reads() {
    let grant = admit_call(&about(None, None), &CallCaps::default(), &GuardFacts::default(), at(0)).unwrap();
    let reserved = ReserveOutcome::Reserved(grant.into_reservation(CallId("tick-7/task-1/1".into()), None));
    let json = r#"{"kind":"reserved","call_id":"tick-7/task-1/1","reserved_at":"2026-09-21T14:13:20Z","probe":false}"#;
    assert_eq!(serde_json::to_string(&reserved).unwrap(), json);
    assert_eq!(serde_json::from_str::<ReserveOutcome>(json).unwrap(), reserved);

    let facts = GuardFacts { back_off: None, ..all_full() };
    let refusal = admit_call(&about(Some("task/a.md"), None), &CallCaps::default(), &facts, at(1)).unwrap_err();
    let json = r#"{"kind":"refused","cap":"task","clears_at":"2026-09-22T14:13:20Z","reason":"task/a.md has used its 6 calls of the last 24 hours"}"#;
    assert_eq!(serde_json::to_string(&ReserveOutcome::Refused(refusal)).unwrap(), json);

    let settlement = r#"{"call_id":"c","outcome":{"kind":"rate_limited","retry_after_seconds":1.5}}"#;
    let read: Settlement = serde_json::from_str(settlement).unwrap();
    assert_eq!(read.outcome, SettlementOutcome::RateLimited { retry_after_seconds: Some(1.5) });
}

#[test]
fn caps_take_defaults_and_refuse_unknown_keys() {
    let caps: CallCaps = serde_json::from_str(r#"{"per_minute": 5}"#).unwrap();
    assert_eq!(caps, CallCaps { per_minute: 5, ..CallCaps::default() });
    assert!(serde_json::from_str::<CallCaps>(r#"{"per_second": 5}"#).is_err());
}

proptest! {
    #[test]
    fn any_text_and_any_instant_are_survived(text in "\\PC{0,40}", second in any::<i64>(), wait in any::<f64>()) {
        let now = DateTime::from_timestamp(second, 0).unwrap_or(DateTime::<Utc>::MIN_UTC);
        let _ = parse_retry_after(&text, now);
        let _ = read_clock(Some(DateTime::<Utc>::MAX_UTC), Some(now), DateTime::<Utc>::MIN_UTC);
        let _ = read_clock(Some(now), Some(DateTime::<Utc>::MAX_UTC), now);
        let back_off = back_off_for(Some(wait));
        prop_assert!(back_off >= TimeDelta::zero() && back_off <= LONGEST_BACK_OFF);
    }
}

#[test]
fn the_tokens_of_a_wiki_slide_out_of_a_day_one_call_after_the_other() {
    let request = |tokens| ReserveRequest { wiki: Some("allotment".into()), tokens, ..about(None, None) };
    let caps = CallCaps { wiki_tokens_per_day: 1_000, ..CallCaps::default() };
    let facts = GuardFacts { wiki_calls: vec![(at(0), 400), (at(10), 300), (at(20), 200)], ..GuardFacts::default() };
    let day = DAY.num_seconds();
    let admit = |tokens, seconds| admit_call(&request(tokens), &caps, &facts, at(seconds));
    assert!(admit(100, 30).is_ok());
    let refused = admit(101, 30).unwrap_err();
    assert_eq!((refused.cap, refused.clears_at), (GuardCap::WikiTokens, Some(at(day))));
    assert!(refused.reason.contains("the wiki allotment has used its 1000 tokens"), "{refused:?}");
    assert_eq!(admit(501, 30).unwrap_err().clears_at, Some(at(10 + day)));
    assert!(admit(500, day).is_ok() && admit(501, day).is_err());
    let never = admit(1_001, 30 + 2 * day).unwrap_err();
    assert_eq!((never.cap, never.clears_at), (GuardCap::WikiTokens, None));
    assert!(admit_call(&about(None, None), &caps, &facts, at(30)).is_ok(), "another call has no such cap");
}
