use super::*;
use chrono::TimeDelta;
use steward_domain::signals::stream::{EventStatus, IncomingEvent, StreamEvent};
use steward_domain::steward::guard::ExhaustedShares;

impl Bench {
    fn event(&self, path: &str, pattern: &str, clock: &str, change: impl FnOnce(&mut StreamEvent)) {
        let incoming = IncomingEvent { source_id: path, pattern, text: "paid", ..IncomingEvent::default() };
        let mut event = StreamEvent::new("any", &incoming, noon(clock));
        change(&mut event);
        self.put(&format!("stream/{path}.md"), event.render());
    }

    async fn waiting(&self, limit: usize) -> Vec<String> {
        let paths = self.index.signals().list_events_to_extract(limit, &ExhaustedShares::default()).await.unwrap();
        paths.iter().map(|p| p.slug().to_owned()).collect()
    }
}

#[tokio::test]
async fn streams_and_their_senders_take_turns() {
    let bench = Bench::scanned().await;
    for n in 0..3 {
        bench.event(&format!("mail/loud{n}"), "mail:loud", &format!("01:00:0{n}"), |_| ());
    }
    bench.event("mail/shy", "mail:shy", "02:00:00", |_| ());
    bench.event("chat/a", "chat:a", "03:00:00", |_| ());
    let report = bench.sync("04:00:00").await;
    assert!(report.scan_changes.events_arrived && report.woken.is_empty());
    assert_eq!(bench.waiting(9).await, ["mail/loud0", "chat/a", "mail/shy", "mail/loud1", "mail/loud2"]);
    assert_eq!(bench.waiting(2).await, ["mail/loud0", "chat/a"]);
}

#[tokio::test]
async fn whoever_has_had_their_share_fills_no_run_and_who_is_known_goes_first() {
    let bench = Bench::scanned().await;
    bench.put(
        "instinct/mail-kin-b-example.md",
        "---\ntype: instinct\nsource: mail:kin@b.example\nobservations: 2\n---\n",
    );
    for n in 0..30 {
        bench.event(&format!("mail/loud{n:02}"), "mail:loud@b.example", "01:00:00", |_| ());
        bench.event(&format!("mail/new{n:02}"), &format!("mail:new{n:02}@b.example"), "01:00:00", |_| ());
        bench.event(&format!("chat/c{n:02}"), "chat:a", "01:00:00", |_| ());
    }
    bench.event("mail/shy", "mail:shy@b.example", "02:00:00", |_| ());
    bench.event("mail/kin", "mail:KIN@b.example", "03:00:00", |_| ());
    bench.sync("04:00:00").await;
    assert_eq!(bench.waiting(2).await, ["chat/c00", "mail/kin"]);
    let one = |name: &str| std::collections::BTreeSet::from([name.to_owned()]);
    let left = async |spent: ExhaustedShares| {
        let paths = bench.index.signals().list_events_to_extract(200, &spent).await.unwrap();
        paths.iter().map(|p| p.slug().to_owned()).collect::<Vec<_>>()
    };
    let all = left(ExhaustedShares::default()).await;
    assert_eq!(all.len(), 92);
    let quiet = left(ExhaustedShares {
        senders: one(&steward_domain::signals::signal::source_key("mail:loud@b.example")),
        ..ExhaustedShares::default()
    })
    .await;
    assert!(quiet.len() == 62 && !quiet.iter().any(|p| p.contains("loud")) && quiet.contains(&"mail/shy".to_owned()));
    assert_eq!(left(ExhaustedShares { all_unknown_senders: true, ..ExhaustedShares::default() }).await, ["mail/kin"]);
    assert_eq!(
        left(ExhaustedShares { streams: one("chat"), unknown_senders_of: one("mail"), ..ExhaustedShares::default() })
            .await,
        ["mail/kin"]
    );
}

#[tokio::test]
async fn what_was_read_or_tried_too_often_does_not_wait() {
    let bench = Bench::scanned().await;
    bench.event("mail/a", "x:y", "01:00:00", |e| e.status = EventStatus::Extracted);
    bench.event("mail/b", "x:y", "01:00:00", |e| e.tries = 3);
    bench.event("mail/c", "x:y", "01:00:00", |e| e.status = EventStatus::Parked);
    assert!(!bench.sync("04:00:00").await.scan_changes.events_arrived);
    bench.event("mail/d", "x:y", "01:00:00", |e| e.tries = 2);
    assert!(!bench.sync("04:00:00").await.scan_changes.events_arrived, "a try that failed is no arrival");
    assert_eq!(bench.waiting(9).await, ["mail/d"]);
    bench.event("mail/e", "x:y", "01:00:00", |_| ());
    assert!(bench.hint(&["stream/mail/e.md"], "04:00:00").await.scan_changes.events_arrived);
}

#[tokio::test]
async fn files_that_are_no_events_are_problems_by_name() {
    let bench = Bench::scanned().await;
    bench.put("stream/loose.md", "x");
    bench.put("stream/odd name/a.md", "x");
    bench.put("stream/mail/a.md", "---\ntype: stream\n---\n");
    bench.sync("01:00:00").await;
    assert!(bench.problem_of("stream/loose.md").await.contains("stream/<source>/<id>.md"));
    assert!(bench.problem_of("stream/odd name/a.md").await.contains("rename"));
    assert!(bench.problem_of("stream/mail/a.md").await.contains("source"));
    bench.remove("stream/loose.md");
    fs::remove_dir_all(bench.full("stream/odd name")).unwrap();
    bench.event("mail/a", "x:y", "01:00:00", |_| ());
    bench.sync("02:00:00").await;
    assert!(bench.index.read().list_problems().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_linked_stream_is_not_followed() {
    let bench = Bench::scanned().await;
    bench.put("elsewhere/a.md", "x");
    fs::create_dir_all(bench.full("stream")).unwrap();
    std::os::unix::fs::symlink(bench.full("elsewhere"), bench.full("stream/mail")).unwrap();
    assert_eq!(bench.sync("01:00:00").await.read, 0);
}

#[tokio::test]
async fn only_extracted_events_of_old_are_to_be_purged() {
    let bench = Bench::scanned().await;
    let extracted = |e: &mut StreamEvent| e.status = EventStatus::Extracted;
    bench.event("mail/old", "x:y", "01:00:00", extracted);
    bench.event("mail/young", "x:y", "03:00:00", extracted);
    bench.event("mail/waits", "x:y", "01:00:00", |_| ());
    bench.sync("04:00:00").await;
    let purge = bench.index.signals().list_events_to_purge(noon("02:00:00"), 9).await.unwrap();
    assert_eq!(purge, [path("stream/mail/old.md")]);
}

#[tokio::test]
async fn a_stream_is_counted_from_its_files_and_its_rounds() {
    let bench = Bench::scanned().await;
    bench.event("mail/a", "x:y", "01:00:00", |_| ());
    bench.event("mail/b", "x:y", "02:00:00", |e| e.status = EventStatus::Parked);
    bench.sync("03:00:00").await;
    let taken = StreamIngestion { stream: "mail", keys: &[], cursor: None, refused: 2, now: noon("03:00:00") };
    bench.index.signals().record_ingestion(&taken).await.unwrap();
    for error in [None, Some("no answer"), Some("no answer")] {
        bench.index.signals().record_stream_run("mail", noon("03:00:00"), error).await.unwrap();
    }
    bench.index.signals().update_stream_pause("chat", true).await.unwrap();
    let counts = bench.index.signals().list_stream_counts().await.unwrap();
    let chat = StreamCount { source: "chat".into(), paused: true, ..StreamCount::default() };
    let mail = StreamCount {
        source: "mail".into(),
        new: 1,
        parked: 1,
        newest_at: Some(noon("02:00:00")),
        waits_since: Some(noon("01:00:00")),
        ran_at: Some(noon("03:00:00")),
        last_error: Some("no answer".into()),
        failures: 2,
        refused: 2,
        ..StreamCount::default()
    };
    assert_eq!(counts, [chat, mail]);
    assert!(bench.index.signals().is_stream_paused("chat").await.unwrap());
    assert!(!bench.index.signals().is_stream_paused("mail").await.unwrap());
}

#[tokio::test]
async fn what_was_taken_in_is_known_for_a_month_after_it_was_last_met() {
    let bench = Bench::new().await;
    let keys = ["a".to_owned(), "b".to_owned()];
    let day = |n: i64| noon("00:00:00") + TimeDelta::days(n);
    let take = async |keys: &[String], cursor: Option<&str>, n: i64| {
        let taken = StreamIngestion { stream: "mail", keys, cursor, refused: 0, now: day(n) };
        bench.index.signals().record_ingestion(&taken).await.unwrap();
    };
    let seen = async |n: i64| bench.index.signals().list_seen_stream_keys("mail", &keys, day(n)).await.unwrap().len();
    take(&keys, Some("7"), 0).await;
    assert_eq!(
        bench.index.signals().list_seen_stream_keys("chat", &keys, day(0)).await.unwrap().len(),
        0,
        "each stream has its own"
    );
    assert_eq!(seen(29).await, 2);
    let ran = async |stream: &str, n: i64, error: Option<&str>| {
        bench.index.signals().record_stream_run(stream, day(n), error).await.unwrap();
    };
    ran("mail", 59, None).await;
    assert_eq!(seen(59).await, 2, "it was met on day 29");
    take(&[], None, 120).await;
    ran("chat", 120, None).await;
    ran("mail", 120, Some("no answer")).await;
    assert_eq!(seen(60).await, 2, "nobody has looked yet whether it is still there");
    ran("mail", 120, None).await;
    assert_eq!(seen(120).await, 0);
    assert_eq!(bench.index.signals().read_stream_cursor("mail").await.unwrap().as_deref(), Some("7"));
}
