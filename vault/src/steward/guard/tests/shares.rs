//! Whatever unknown sources send, the calls of others find room: shares, compared with a model that counts every call.

use proptest::prelude::*;
use steward_domain::signals::signal::source_key;
use steward_domain::steward::guard::{CallSource, ExhaustedShares};

use super::concurrent::{keep_log, read_log, slide};
use super::*;

/// The shares of these caps:
/// - extraction: 15 calls a minute, 30 an hour and 60 a day; unknown senders get half of the last two;
/// - a stream: 24 an hour and 48 a day; a sender: 6 an hour and 12 a day.
const CAPS: CallCaps = CallCaps {
    per_minute: 30,
    per_hour: 60,
    per_day: 120,
    per_task_day: 6,
    per_matter_day: 15,
    extraction_percent: 50,
    stream_percent: 40,
    sender_percent: 10,
    wiki_percent: 30,
    wiki_tokens_per_day: 3_000_000,
};

fn speaker(name: &str) -> CallSource {
    CallSource { source: format!("mail:{name}@b.example"), known: name.starts_with('k') }
}

fn reads(id: impl Into<String>, stream: &str, sender: &str) -> ReserveRequest {
    ReserveRequest { stream: Some(stream.into()), sources: vec![speaker(sender)], ..infra(id) }
}

fn judges(id: impl Into<String>, task: &str, sources: &[&str]) -> ReserveRequest {
    let speakers = sources.iter().map(|s| speaker(s)).collect();
    ReserveRequest { sources: speakers, ..about(id, &format!("task/{task}.md"), "matter/m.md") }
}

#[tokio::test]
async fn one_sender_one_stream_and_all_reading_have_their_share_of_an_hour_and_no_more() {
    let home = Home::new();
    let ledger = home.ledger(CAPS);
    for n in 0..6 {
        granted(ledger.reserve(&reads(format!("a{n}"), "mail", "loud"), at(n)).await);
    }
    let refusal = refused(ledger.reserve(&reads("a6", "mail", "loud"), at(6)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Sender, Some(at(3600))));
    assert!(refusal.reason.contains("mail-loud-b-example") && refusal.reason.contains("6 calls"), "{refusal:?}");
    // Each mail has a new sender: half of the stream's share is reserved for known senders.
    for n in 6..12 {
        granted(ledger.reserve(&reads(format!("b{n}"), "mail", &format!("forged{n}")), at(n)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&reads("b12", "mail", "forged12"), at(12)).await), (GuardCap::Stream, Some(3600)));
    let spent = ledger.find_exhausted_shares(at(12)).await.unwrap();
    let one = |name: &str| std::collections::BTreeSet::from([name.to_owned()]);
    let expected = ExhaustedShares {
        senders: one(&source_key("mail:loud@b.example")),
        unknown_senders_of: one("mail"),
        ..ExhaustedShares::default()
    };
    assert_eq!(spent, expected);
    for n in 12..24 {
        let sender = if n % 2 == 0 { "known" } else { "kin" };
        granted(ledger.reserve(&reads(format!("c{n}"), "mail", sender), at(n * 10)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&reads("d", "mail", "kind"), at(300)).await).0, GuardCap::Stream);
    assert_eq!(ledger.find_exhausted_shares(at(300)).await.unwrap().streams, one("mail"));
    // Another stream gets the rest of extraction's share.
    for n in 24..30 {
        granted(ledger.reserve(&reads(format!("e{n}"), "chat", "kith"), at(300 + n)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&reads("f", "post", "keen"), at(400)).await).0, GuardCap::Extraction);
    granted(ledger.reserve(&judges("g", "rent", &["k"]), at(400)).await);
    assert_eq!(ledger.find_exhausted_shares(at(3 * DAY_S)).await.unwrap(), ExhaustedShares::default());
}

#[tokio::test]
async fn unknown_sources_have_half_of_all_reading_however_many_streams_there_are() {
    let home = Home::new();
    let ledger = home.ledger(CAPS);
    for n in 0..15 {
        let call = reads(format!("a{n}"), &format!("stream{}", n % 3), &format!("forged{n}"));
        granted(ledger.reserve(&call, at(n * 10)).await);
    }
    let refusal = refused(ledger.reserve(&reads("b", "stream3", "new"), at(200)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Stream, Some(at(3600))));
    let reason = "the share of unknown senders in all streams is used up: 15 calls";
    assert!(refusal.reason.starts_with(reason), "{refusal:?}");
    assert!(ledger.find_exhausted_shares(at(200)).await.unwrap().all_unknown_senders);
    for n in 0..15 {
        let call = reads(format!("c{n}"), &format!("stream{}", n % 3), &format!("k{n}"));
        granted(ledger.reserve(&call, at(200 + n * 10)).await);
    }
    assert_eq!(cap_of(ledger.reserve(&reads("d", "stream0", "kin"), at(400)).await).0, GuardCap::Extraction);
}

#[tokio::test]
async fn who_floods_a_task_uses_up_its_own_judgements_and_nobody_elses() {
    let home = Home::new();
    let ledger = home.ledger(CAPS);
    for n in 0..3 {
        granted(ledger.reserve(&judges(format!("a{n}"), "rent", &["loud"]), at(n)).await);
    }
    let refusal = refused(ledger.reserve(&judges("a3", "rent", &["loud"]), at(3)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::Source, Some(at(DAY_S))));
    // Beside a fresh signal of another source, its own signals are judged as well.
    granted(ledger.reserve(&judges("b", "rent", &["loud", "genuine"]), at(4)).await);
    // A new name for each message does not help: all of them are unknown.
    assert_eq!(cap_of(ledger.reserve(&judges("c", "rent", &["x", "y", "z"]), at(5)).await).0, GuardCap::Source);
    granted(ledger.reserve(&judges("d", "rent", &["x", "known"]), at(6)).await);
    granted(ledger.reserve(&judges("e", "rent", &[]), at(7)).await);
    assert_eq!(cap_of(ledger.reserve(&judges("f", "rent", &["kin"]), at(8)).await).0, GuardCap::Task, "the cap itself");
}

#[tokio::test]
async fn a_call_about_a_wiki_counts_as_it_was_estimated_until_it_has_ended() {
    let home = Home::new();
    let ledger = home.ledger(CallCaps { wiki_tokens_per_day: 10_000, ..CAPS });
    let writes = |id: &str, wiki: &str, tokens| ReserveRequest { wiki: Some(wiki.into()), tokens, ..infra(id) };
    granted(ledger.reserve(&writes("a", "allotment", 6_000), at(0)).await);
    let refusal = refused(ledger.reserve(&writes("b", "allotment", 6_000), at(1)).await);
    assert_eq!((refusal.cap, refusal.clears_at), (GuardCap::WikiTokens, Some(at(86_400))));
    granted(ledger.reserve(&writes("c", "garden", 6_000), at(1)).await);
    assert_eq!(ledger.status(at(1)).await.ledger.unwrap().day_usage, TokenUsage::default(), "nothing has ended");
    let usage = TokenUsage { prompt_tokens: 3_000, completion_tokens: 900 };
    let settlement = Settlement { call_id: CallId("a".into()), outcome: SettlementOutcome::Answered { usage } };
    ledger.settle(&settlement, at(2)).await.unwrap();
    granted(ledger.reserve(&writes("b", "allotment", 6_000), at(2)).await);
    // One that failed may have cost what it was estimated at.
    let failed = Settlement { call_id: CallId("b".into()), outcome: SettlementOutcome::Failed };
    ledger.settle(&failed, at(3)).await.unwrap();
    assert_eq!(
        cap_of(ledger.reserve(&writes("d", "allotment", 200), at(3)).await),
        (GuardCap::WikiTokens, Some(86_400))
    );
}

#[test]
fn a_share_that_is_no_percentage_is_refused_by_its_name() {
    let home = Home::new();
    for percent in [0, 101] {
        let caps = CallCaps { sender_percent: percent, ..CAPS };
        let error = Ledger::open(&home.database(), caps, &home.marker()).unwrap_err().to_string();
        assert!(error.contains("sender_percent") && error.contains("1 to 100"), "{error}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Clock(i64),
    Read { stream: u8, sender: u8 },
    Judge { task: u8, sources: Vec<u8> },
}

/// The first three names are known sources.
const NAMES: [&str; 13] = ["k0", "k1", "k2", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

fn steps(names: std::ops::Range<u8>) -> impl Strategy<Value = Vec<Step>> {
    let clock = prop_oneof![4 => 0i64..20, 3 => 20i64..900, 2 => 900i64..40_000, 1 => Just(90_000i64)];
    let step = prop_oneof![
        2 => clock.prop_map(Step::Clock),
        16 => (0u8..5, names.clone()).prop_map(|(stream, sender)| Step::Read { stream, sender }),
        8 => (0u8..3, prop::collection::vec(names, 0..4)).prop_map(|(task, sources)| Step::Judge { task, sources }),
    ];
    prop::collection::vec(step, 1..150)
}

fn request(n: usize, step: &Step) -> Option<ReserveRequest> {
    match step {
        Step::Clock(_) => None,
        Step::Read { stream, sender } => {
            Some(reads(format!("{n}"), &format!("s{stream}"), NAMES[usize::from(*sender)]))
        }
        Step::Judge { task, sources } => {
            let mut names: Vec<&str> = sources.iter().map(|s| NAMES[usize::from(*s)]).collect();
            names.sort_unstable();
            names.dedup();
            Some(judges(format!("{n}"), &format!("t{task}"), &names))
        }
    }
}

/// The admitted calls and their times.
#[derive(Default)]
struct Model(Vec<(DateTime<Utc>, ReserveRequest)>);

impl Model {
    fn count(&self, end: DateTime<Utc>, width: TimeDelta, counts: impl Fn(&ReserveRequest) -> bool) -> u32 {
        let inside = self.0.iter().filter(|(at, call)| *at > end - width && *at <= end && counts(call));
        u32::try_from(inside.count()).unwrap()
    }

    /// The same rules in their simplest form.
    fn within_shares(&self, call: &ReserveRequest, now: DateTime<Utc>) -> bool {
        let less = |width, limit: u32, counts: &dyn Fn(&ReserveRequest) -> bool| self.count(now, width, counts) < limit;
        if let Some(stream) = &call.stream {
            let sender = &call.sources[0];
            let (hour, day) = if sender.known { (24, 48) } else { (12, 24) };
            let strange = |c: &ReserveRequest| c.stream.is_some() && !c.sources[0].known;
            return less(MINUTE, 15, &|c| c.stream.is_some())
                && (sender.known || (less(HOUR, 15, &strange) && less(DAY, 30, &strange)))
                && less(HOUR, 30, &|c| c.stream.is_some())
                && less(DAY, 60, &|c| c.stream.is_some())
                && less(HOUR, hour, &|c| c.stream.as_ref() == Some(stream))
                && less(DAY, day, &|c| c.stream.as_ref() == Some(stream))
                && less(HOUR, 6, &|c| c.stream.is_some() && c.sources[0] == *sender)
                && less(DAY, 12, &|c| c.stream.is_some() && c.sources[0] == *sender);
        }
        let has_room = |speaker: &CallSource| {
            let judged = |c: &ReserveRequest| c.stream.is_none() && c.sources.contains(speaker);
            let strange = |c: &ReserveRequest| c.stream.is_none() && c.sources.iter().any(|s| !s.known);
            let own = less(DAY, 3, &|c| c.task == call.task && judged(c))
                && less(DAY, 7, &|c| c.matter == call.matter && judged(c))
                && less(HOUR, 15, &judged)
                && less(DAY, 30, &judged);
            let together = less(DAY, 4, &|c| c.task == call.task && strange(c))
                && less(DAY, 10, &|c| c.matter == call.matter && strange(c))
                && less(HOUR, 24, &strange)
                && less(DAY, 48, &strange);
            own && (speaker.known || together)
        };
        call.sources.is_empty() || call.sources.iter().any(has_room)
    }
}

async fn walk(steps: Vec<Step>) -> Result<(), String> {
    let home = Home::new();
    let ledger = home.ledger(CAPS);
    assert!(ledger.status(at(0)).await.refusal.is_none());
    keep_log(&home).await;
    let (mut model, mut now) = (Model::default(), at(0));
    for (n, step) in steps.iter().enumerate() {
        if let Step::Clock(by) = step {
            now += TimeDelta::seconds(*by);
        }
        let Some(call) = request(n, step) else { continue };
        let within = model.within_shares(&call, now);
        match ledger.reserve(&call, now).await {
            ReserveOutcome::Reserved(_) if within => model.0.push((now, call)),
            ReserveOutcome::Reserved(_) => return Err(format!("step {n} had no share left: {call:?}")),
            ReserveOutcome::Refused(refusal) => {
                let of_a_share = matches!(
                    refusal.cap,
                    GuardCap::Extraction | GuardCap::Stream | GuardCap::Sender | GuardCap::Source
                );
                if of_a_share && within {
                    return Err(format!("step {n}: {refusal:?} to {call:?}, which had a share"));
                }
                if of_a_share
                    && (refusal.clears_at <= Some(now) || !model.within_shares(&call, refusal.clears_at.unwrap()))
                {
                    return Err(format!("step {n}: {refusal:?} does not say when it clears"));
                }
            }
        }
    }
    slide(&read_log(&home).await, &CAPS)
}

/// Unknown sources send anything; then known sources must still get their calls.
async fn flooded(steps: Vec<Step>) -> Result<(), String> {
    let home = Home::new();
    let ledger = home.ledger(CAPS);
    let mut now = at(0);
    for (n, step) in steps.iter().enumerate() {
        if let Step::Clock(by) = step {
            now += TimeDelta::seconds(*by);
        }
        if let Some(call) = request(n, step).filter(|call| !call.sources.is_empty()) {
            ledger.reserve(&call, now).await;
        }
    }
    // The window of a minute clears by itself.
    now += MINUTE;
    for call in [reads("read", "s0", "k0"), judges("judge", "t0", &["k0"]), judges("both", "t1", &["k1", "s0"])] {
        if let ReserveOutcome::Refused(refusal) = ledger.reserve(&call, now).await {
            return Err(format!("{refusal:?} to {call:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_share_is_ever_exceeded_and_no_refusal_is_made_up(steps in steps(0..13)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(walk(steps)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn whatever_unknown_sources_send_what_a_known_source_says_is_read_and_judged(steps in steps(3..13)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(flooded(steps)).map_err(TestCaseError::fail)?;
    }
}
