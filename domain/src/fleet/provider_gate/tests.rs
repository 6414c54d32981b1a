use super::*;
use chrono::TimeZone;

fn at(seconds: i64) -> DateTime<Utc> {
    Utc.timestamp_opt(1_790_000_000 + seconds, 0).unwrap()
}

fn window(calls: Option<u32>, tokens: Option<u64>) -> WindowFacts {
    let window = BucketWindow { seconds: 60, calls, tokens };
    WindowFacts { window, edge: None, own_edge: None, tokens: 0, own_tokens: 0, oldest: None }
}

fn facts(window: WindowFacts) -> BucketFacts {
    BucketFacts { windows: vec![window], ..BucketFacts::default() }
}

#[track_caller]
fn refusal(tokens: u64, facts: &BucketFacts, now: i64) -> (GuardCap, Option<i64>, bool) {
    let refused = admit_bucket_call(tokens, facts, at(now)).unwrap_err();
    let clears = refused.refusal.clears_at.map(|clears| (clears - at(0)).num_seconds());
    (refused.refusal.cap, clears, refused.is_by_window)
}

#[test]
fn a_full_window_refuses_for_its_width_and_the_lifetime_of_a_reservation() {
    let full = facts(WindowFacts { edge: Some(at(0)), ..window(Some(3), None) });
    assert_eq!(refusal(1, &full, 64), (GuardCap::Provider, Some(65), true));
    assert_eq!(admit_bucket_call(1, &full, at(65)).unwrap().counted_at(), at(65));
    let reason = admit_bucket_call(1, &full, at(1)).unwrap_err().refusal.reason;
    assert_eq!(reason, "all tenants together have used the provider's 3 calls in a minute");
}

#[test]
fn tokens_that_are_reserved_count_until_their_call_leaves_the_window() {
    let with = |tokens| facts(WindowFacts { tokens, oldest: Some(at(10)), ..window(None, Some(1_000)) });
    assert!(admit_bucket_call(400, &with(600), at(20)).is_ok());
    assert_eq!(refusal(401, &with(600), 20), (GuardCap::Provider, Some(75), true));
    assert_eq!(
        refusal(1_001, &with(0), 20),
        (GuardCap::Provider, None, false),
        "it never fits, and nobody waits for it"
    );
}

#[test]
fn a_share_binds_only_while_another_tenant_was_refused_by_a_window() {
    let mut above = facts(WindowFacts { own_edge: Some(at(0)), ..window(Some(8), None) });
    assert!(admit_bucket_call(1, &above, at(5)).is_ok(), "nobody else waits");
    above.rival_refused_at = Some(at(1));
    assert_eq!(refusal(1, &above, 60), (GuardCap::ProviderShare, Some(65), false));
    assert!(admit_bucket_call(1, &above, at(61)).is_ok(), "60 s after that refusal");
    let mut tokens =
        facts(WindowFacts { own_tokens: 251, tokens: 251, oldest: Some(at(0)), ..window(None, Some(1_000)) });
    assert!(admit_bucket_call(1, &tokens, at(5)).is_ok());
    tokens.rival_refused_at = Some(at(1));
    assert_eq!(refusal(1, &tokens, 5), (GuardCap::ProviderShare, Some(65), false));
    tokens.windows[0].own_tokens = 250;
    assert!(admit_bucket_call(1, &tokens, at(5)).is_ok());
}

#[test]
fn after_a_429_nobody_calls_before_the_deadline_and_then_one_probe() {
    let mut backed_off = facts(window(Some(8), None));
    backed_off.back_off = Some(BackOff { set_at: at(0), until: at(30) });
    assert_eq!(refusal(1, &backed_off, 29), (GuardCap::BackOff, Some(30), false));
    assert!(admit_bucket_call(1, &backed_off, at(30)).unwrap().is_probe());
    let call_id = crate::steward::guard::CallId("acme/1".into());
    backed_off.probe = Some(Probe { call_id, since: at(30) });
    assert_eq!(refusal(1, &backed_off, 31), (GuardCap::ProbePending, Some(150), false));
}

#[test]
fn a_deadline_is_over_by_either_clock_and_on_every_other_machine() {
    let boot = |boot_id: &str, micros| BootInstant { boot_id: boot_id.into(), micros };
    let deadline = SendDeadline::from_request(at(0), boot("x", 10_000_000));
    assert!(!deadline.is_over(at(3), &boot("x", 13_000_000)));
    assert!(deadline.is_over(at(4), &boot("x", 10_000_000)));
    assert!(deadline.is_over(at(-3_600), &boot("x", 13_000_001)), "the clock on the wall was set back");
    assert!(deadline.is_over(at(0), &boot("y", 1)), "the machine was started again, or is another one");
    assert_eq!(RESERVATION_LIFETIME - CONNECT_TIMEOUT, TimeDelta::seconds(3));
}

#[test]
fn a_wait_that_is_reported_late_is_shorter_by_its_age() {
    let outcome = SettlementOutcome::RateLimited { retry_after_seconds: Some(60.0) };
    let debt = GateDebt { call: "c".into(), outcome: outcome.clone(), at: at(0) };
    let left = |seconds| SettlementOutcome::RateLimited { retry_after_seconds: Some(seconds) };
    assert_eq!((debt.outcome_at(at(15)), debt.outcome_at(at(-9))), (left(45.0), left(60.0)));
    assert_eq!(debt.outcome_at(at(60_000)), left(0.0), "the next call is a probe");
    let failed = GateDebt { outcome: SettlementOutcome::Failed, ..debt };
    assert_eq!(failed.outcome_at(at(9_999)), SettlementOutcome::Failed);
}

#[test]
fn a_bucket_that_holds_less_than_a_tenant_saw_has_lost_calls() {
    let bucket = BucketIdentity {
        fleet: "f1".into(),
        bucket: "openai".into(),
        system: "s1".into(),
        incarnation: 50,
        is_accepted: false,
    };
    let seen = |incarnation, entries| GateMark { incarnation, ..bucket.to_mark(entries) };
    let loss = |bucket: &BucketIdentity, seen: &GateMark| find_loss(bucket, 7, Some(seen), "s1");
    assert_eq!(find_loss(&bucket, 0, None, "s1"), None);
    assert_eq!(find_loss(&bucket, 0, None, "s2"), Some(LossKind::Moved));
    assert_eq!((loss(&bucket, &seen(50, 7)), loss(&bucket, &seen(50, 6))), (None, None));
    assert_eq!(loss(&bucket, &seen(50, 8)), Some(LossKind::Restored));
    assert_eq!(loss(&bucket, &seen(60, 1)), Some(LossKind::Restored), "before a loss was accepted");
    assert_eq!(loss(&bucket, &seen(40, 1)), Some(LossKind::Recreated));
    let accepted = BucketIdentity { is_accepted: true, ..bucket.clone() };
    assert_eq!(loss(&accepted, &seen(40, 99)), None);
    for elsewhere in
        [GateMark { bucket: "other".into(), ..seen(50, 99) }, GateMark { fleet: "f2".into(), ..seen(90, 99) }]
    {
        assert_eq!(loss(&bucket, &elsewhere), None);
    }
}

#[test]
fn limits_are_written_as_people_write_them() {
    let parse = |text: &str| text.parse::<RateLimit>().map(|limit| (limit.count, limit.seconds));
    for (text, limit) in [
        ("60/min", (60, 60)),
        ("500 / minute", (500, 60)),
        ("12/20s", (12, 20)),
        ("10000/day", (10_000, 86_400)),
        ("7/2h", (7, 7_200)),
    ] {
        assert_eq!(parse(text), Ok(limit), "{text}");
    }
    for text in [
        "",
        "60",
        "/min",
        "0/min",
        "-1/min",
        "60/",
        "60/2",
        "60/2days",
        "60/0s",
        "1e3/min",
        "5000000000/min",
        "60/week",
    ] {
        let refused = parse(text).unwrap_err().to_string();
        assert!(refused.contains("60/min"), "{refused}");
    }
    let limit = |count, seconds| RateLimit { count, seconds };
    let merged = merge_limits(&[limit(9, 86_400), limit(3, 60)], &[limit(1_000, 60)]).unwrap();
    assert_eq!(
        merged,
        [
            BucketWindow { seconds: 60, calls: Some(3), tokens: Some(1_000) },
            BucketWindow { seconds: 86_400, calls: Some(9), tokens: None },
        ]
    );
    let twice = merge_limits(&[limit(5, 60), limit(3, 60)], &[]).unwrap_err().to_string();
    assert_eq!(twice, "there are two limits of calls in a minute: give one");
    assert_eq!(parse_bucket_name("open-ai"), Ok("open-ai".to_owned()));
    assert!(parse_bucket_name("a'; --").is_err());
}
