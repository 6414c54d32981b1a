//! Raw events become signals, and signals wake the right steward.

use chrono::Utc;
use rustix::process::Signal as Sent;
use serde_json::{Value, json};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_domain::signals::stream::{EventStatus, IncomingEvent, StreamEvent};
use steward_tests::clerk::{Asked, Clerk, Says, gate};
use steward_tests::wait;
use steward_tests::world::World;

/// Writes an event as an adapter would have stored it.
pub(crate) fn arrives(world: &World, id: &str, subject: &str, text: &str) -> RecordPath {
    let incoming = IncomingEvent {
        source_id: id,
        pattern: "mail:landlord@b.example",
        author: Some("The landlord"),
        subject: Some(subject),
        text,
        ..IncomingEvent::default()
    };
    let event = StreamEvent::new("mail", &incoming, Utc::now());
    let path = event.record_path().unwrap();
    world.vault.write(path.as_str(), event.render());
    path
}

fn event(world: &World, path: &RecordPath) -> StreamEvent {
    let bytes = world.vault.read(path.as_str());
    let document = frontmatter::read_document(&bytes).unwrap();
    StreamEvent::read(document.fields(), document.body()).unwrap()
}

pub(crate) async fn until_status(world: &World, path: &RecordPath, status: EventStatus) -> StreamEvent {
    wait::until(&format!("{path} to be {}", status.as_str()), async || {
        let event = event(world, path);
        (event.status == status).then_some(event)
    })
    .await
}

fn signals(world: &World) -> Vec<Signal> {
    let Ok(entries) = std::fs::read_dir(world.vault.path().join("signal")) else { return Vec::new() };
    let read = |path: std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        Signal::read(frontmatter::read_document(&bytes).unwrap().fields()).unwrap()
    };
    let mut all: Vec<Signal> = entries.map(|entry| read(entry.unwrap().path())).collect();
    all.sort_by(|a, b| a.raw_quote.cmp(&b.raw_quote));
    all
}

async fn house() -> World {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.task("garden", "house");
    world
}

/// A valid answer: the first candidate is done, with this quote.
pub(crate) fn done(asked: &Asked, quote: &str) -> Value {
    let refs: Vec<&str> =
        asked.question["candidates"].as_array().unwrap().iter().map(|c| c["ref"].as_str().unwrap()).collect();
    let scores: Value = refs.iter().map(|r| ((*r).to_owned(), json!(if *r == refs[0] { 0.95 } else { 0.1 }))).collect();
    json!({"signals": [{
        "quote": quote, "target": refs[0], "scores": scores, "effect": "mutation",
        "mutation": {"class": "state_change", "set": {"state": "done"}}, "effect_confidence": 0.97,
        "reasoning": "It says so.",
    }]})
}

pub(crate) fn is_about_an_event(asked: &Asked) -> bool {
    asked.question.get("event").is_some()
}

#[tokio::test]
async fn a_mail_becomes_a_signal_wakes_its_steward_and_leads_to_a_decision() {
    let world = house().await;
    let _worker = world.worker().await;
    let path = arrives(&world, "1", "The rent", "Hello,\nthe rent was\npaid today. See you!");
    until_status(&world, &path, EventStatus::Extracted).await;
    let all = signals(&world);
    assert_eq!((all.len(), all[0].raw_quote.as_str()), (1, "Hello,\nthe rent was\npaid today."), "{all:#?}");
    assert_eq!(all[0].target.as_ref().map(RecordPath::as_str), Some("task/rent.md"));
    assert_eq!(all[0].source_event.as_ref(), Some(&path));
    let records = wait::until("a decision", async || {
        let records = world.vault.records();
        (!records.is_empty()).then_some(records)
    })
    .await;
    assert_eq!(records[0].draft.target.as_str(), "task/rent.md");
    assert_eq!(records[0].draft.decision.as_str(), "likely_done");

    let listed = world.json(&["signals", "list", "--matter", "house"]).await;
    let signal = listed[0]["path"].as_str().unwrap();
    assert_eq!(world.json(&["signals", "show", signal]).await["status"], "unrouted");
    assert_eq!(world.json(&["signals", "list", "--status", "applied"]).await, json!([]));
    let explained = world.run(&["signals", "explain", signal]).await.expect(0);
    for word in [path.as_str(), "The landlord", "task/rent.md", "to change  "] {
        assert!(explained.out.contains(word), "{word}: {explained}");
    }
}

#[tokio::test]
async fn targets_that_cannot_be_told_apart_are_shown_and_acted_upon_by_nobody() {
    let clerk = Clerk::start(|asked| {
        let mut answer = done(asked, "was paid");
        let scores = answer["signals"][0]["scores"].as_object_mut().unwrap();
        scores.values_mut().for_each(|score| *score = json!(0.9));
        Says::Text(answer.to_string())
    })
    .await;
    let world = house().await.asking(&clerk);
    let _worker = world.worker().await;
    let path = arrives(&world, "1", "Rent and garden", "It was paid.");
    until_status(&world, &path, EventStatus::Extracted).await;
    let all = signals(&world);
    assert_eq!((all.len(), all[0].status, &all[0].target), (1, SignalStatus::Skipped, &None));
    assert!(all[0].reason.as_ref().unwrap().contains("(0.90)"), "{all:?}");
    assert_eq!(world.tick("house").await.evaluated.len(), 0);
}

#[tokio::test]
async fn a_poison_event_is_parked_after_three_tries_and_others_go_on() {
    let clerk = Clerk::start(|asked| {
        if !is_about_an_event(asked) {
            return Says::Verdict("still_active", 0.9);
        }
        let text = asked.question["event"]["text"].as_str().unwrap();
        Says::Text(match text.split_whitespace().last().unwrap() {
            "invented-quote" => done(asked, "the rent was never mentioned").to_string(),
            "invented-target" => done(asked, "rent").to_string().replace("task/rent.md", "task/other.md"),
            "out-of-range" => done(asked, "rent").to_string().replace("0.97", "9.7"),
            "broken" => "{\"signals\": [".to_owned(),
            "large" => "x".repeat(300_000),
            _ => done(asked, "rent").to_string(),
        })
    })
    .await;
    let world = house().await.asking(&clerk).set("STEWARD_CAPS_PER_MINUTE", 600);
    let kinds = ["invented-quote", "invented-target", "out-of-range", "broken", "large"];
    let bad: Vec<RecordPath> =
        kinds.iter().map(|kind| arrives(&world, kind, "", &format!("the rent {kind}"))).collect();
    let good = arrives(&world, "good", "", "the rent is paid");
    let _worker = world.worker().await;
    until_status(&world, &good, EventStatus::Extracted).await;
    // An answer that is too large is invalid. It counts as a try only while the clerk answers other questions.
    for n in 0..4 {
        let other = arrives(&world, &format!("other-{n}"), "", &format!("the rent is paid {n}"));
        world.begin_as(&format!("extract-{n}"), "ExtractWorkflow", &Value::Null).await.result().await;
        until_status(&world, &other, EventStatus::Extracted).await;
    }
    for (path, kind) in bad.iter().zip(kinds) {
        let event = until_status(&world, path, EventStatus::Parked).await;
        assert_eq!(event.tries, 3, "{kind}");
        assert!(!event.reason.unwrap().is_empty(), "{kind}");
    }
    assert_eq!(signals(&world).len(), 5, "of the good ones alone: {:#?}", signals(&world));
    let status = world.run(&["status"]).await.expect(0);
    assert!(status.out.contains("0 waiting; 5 parked"), "{status}");
    let asked = clerk.asked().len();
    let report = world.begin_as("extract-last", "ExtractWorkflow", &Value::Null).await.result().await;
    assert_eq!((report["failed"].clone(), clerk.asked().len()), (json!(0), asked), "what is parked is left alone");
}

#[tokio::test]
async fn of_two_runs_at_once_one_reads_an_event() {
    let (open, is_open) = gate();
    let clerk = Clerk::start(move |asked| match is_about_an_event(asked) {
        true => Says::Once(is_open.clone(), Box::new(Says::Text(done(asked, "rent").to_string()))),
        false => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = house().await.asking(&clerk);
    let _worker = world.worker().await;
    let path = arrives(&world, "1", "", "the rent is paid");
    wait::until("a call", async || (!clerk.asked().is_empty()).then_some(())).await;
    let second = world.begin_as("second", "ExtractWorkflow", &Value::Null).await.result().await;
    assert_eq!((clerk.asked().len(), second["extracted"].clone()), (1, json!(0)), "{second}");
    open.send_replace(true);
    until_status(&world, &path, EventStatus::Extracted).await;
    let calls = clerk.asked().into_iter().filter(is_about_an_event).count();
    assert_eq!((calls, signals(&world).len()), (1, 1));
}

#[tokio::test]
async fn a_clerk_that_is_away_is_no_events_fault_and_an_event_that_it_alone_fails_at_is_parked() {
    let (away, is_away) = gate();
    let clerk = Clerk::start(move |asked| {
        if !is_about_an_event(asked) {
            return Says::Verdict("still_active", 0.9);
        }
        let poison = asked.question["event"]["text"].as_str().unwrap().contains("poison");
        if poison || *is_away.borrow() { Says::Status(500, None) } else { Says::Text(done(asked, "rent").to_string()) }
    })
    .await;
    let world = house().await.asking(&clerk).set("STEWARD_CAPS_PER_MINUTE", 1_000);
    let _worker = world.worker().await;
    away.send_replace(true);
    let good = arrives(&world, "good", "", "the rent is paid");
    for n in 0..5 {
        world.begin_as(&format!("away-{n}"), "ExtractWorkflow", &Value::Null).await.result().await;
    }
    assert_eq!((event(&world, &good).status, event(&world, &good).tries), (EventStatus::New, 0));
    away.send_replace(false);
    world.begin_as("back", "ExtractWorkflow", &Value::Null).await.result().await;
    until_status(&world, &good, EventStatus::Extracted).await;
    let poison = arrives(&world, "poison", "", "the rent is poison");
    for n in 0..5 {
        let other = arrives(&world, &format!("other-{n}"), "", &format!("the rent is paid {n}"));
        world.begin_as(&format!("on-{n}"), "ExtractWorkflow", &Value::Null).await.result().await;
        until_status(&world, &other, EventStatus::Extracted).await;
    }
    let parked = until_status(&world, &poison, EventStatus::Parked).await;
    assert_eq!(parked.tries, 3);
}

#[tokio::test]
async fn what_takes_too_long_beside_others_is_no_events_fault() {
    let (_never, opens) = gate();
    let clerk = Clerk::start(move |asked| {
        if !is_about_an_event(asked) {
            return Says::Verdict("still_active", 0.9);
        }
        let good = Says::Text(done(asked, "rent").to_string());
        let stuck = asked.question["event"]["text"].as_str().unwrap().contains("stuck");
        if stuck { Says::Once(opens.clone(), Box::new(good)) } else { good }
    })
    .await;
    let world = house().await.asking(&clerk).set("STEWARD_CAPS_PER_MINUTE", 1_000);
    let world = world.set("STEWARD_CLERK_TIMEOUT_SECONDS", 1);
    let _worker = world.worker().await;
    let [one, two] = ["one", "two"].map(|id| arrives(&world, id, "", &format!("the rent is stuck {id}")));
    let round = async |name: &str| {
        let other = arrives(&world, name, "", &format!("the rent is paid {name}"));
        until_status(&world, &other, EventStatus::Extracted).await;
        world.begin_as(name, "ExtractWorkflow", &Value::Null).await.result().await;
    };
    for n in 0..4 {
        round(&format!("both-{n}")).await;
    }
    assert_eq!((event(&world, &one).tries, event(&world, &two).tries), (0, 0), "the two hold each other up");
    std::fs::remove_file(world.vault.path().join(two.as_str())).unwrap();
    for tries in 1..=3 {
        let other = arrives(&world, &format!("other-{tries}"), "", &format!("the rent is paid again {tries}"));
        until_status(&world, &other, EventStatus::Extracted).await;
        wait::until("a try alone", async || {
            world.begin_as("alone", "ExtractWorkflow", &Value::Null).await.result().await;
            (event(&world, &one).tries == tries).then_some(())
        })
        .await;
    }
    assert_eq!(event(&world, &one).status, EventStatus::Parked);
}

#[tokio::test]
async fn the_same_words_twice_cost_one_call() {
    let clerk = Clerk::start(|asked| match is_about_an_event(asked) {
        true => Says::Text(done(asked, "rent").to_string()),
        false => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = house().await.asking(&clerk);
    let _worker = world.worker().await;
    let one = arrives(&world, "1", "", "the rent is paid");
    until_status(&world, &one, EventStatus::Extracted).await;
    let two = arrives(&world, "2", "", "the rent is paid");
    until_status(&world, &two, EventStatus::Extracted).await;
    let calls = clerk.asked().into_iter().filter(is_about_an_event).count();
    assert_eq!((calls, signals(&world).len()), (1, 2), "one answer, a signal of each event");
}

#[tokio::test]
async fn a_task_that_came_meanwhile_is_a_candidate_of_the_next_event() {
    let world = house().await;
    let _worker = world.worker().await;
    let path = arrives(&world, "1", "", "The rent was paid.");
    until_status(&world, &path, EventStatus::Extracted).await;
    world.vault.task("boiler", "house");
    let path = arrives(&world, "2", "", "The boiler was paid.");
    until_status(&world, &path, EventStatus::Extracted).await;
    let targets: Vec<_> = signals(&world).into_iter().filter_map(|s| s.target).map(|t| t.to_string()).collect();
    assert_eq!(targets, ["task/boiler.md", "task/rent.md"]);
}

#[tokio::test]
async fn a_stop_and_a_full_window_leave_events_as_they_are() {
    // Half of the calls may be used for reading.
    let world = house().await.set("STEWARD_CAPS_PER_MINUTE", 4);
    world.run(&["stop"]).await.expect(0);
    let paths: Vec<RecordPath> =
        (0..4).map(|n| arrives(&world, &n.to_string(), "", &format!("the rent is paid {n}"))).collect();
    let _worker = world.worker().await;
    // A run skips the event that another run, started on arrival, is reading.
    wait::until("a run that is held", async || {
        let report = world.begin_as("stopped", "ExtractWorkflow", &Value::Null).await.result().await;
        assert_eq!(report["extracted"], 0, "{report}");
        (report["held"] == true).then_some(())
    })
    .await;
    world.run(&["resume"]).await.expect(0);
    wait::until("a run that reaches the cap", async || {
        let report = world.begin_as("resumed", "ExtractWorkflow", &Value::Null).await.result().await;
        let extracted = paths.iter().filter(|path| event(&world, path).status == EventStatus::Extracted).count();
        (report["held"] == true && extracted >= 2).then_some(())
    })
    .await;
    let all: Vec<StreamEvent> = paths.iter().map(|path| event(&world, path)).collect();
    assert_eq!(all.iter().filter(|e| e.status == EventStatus::Extracted).count(), 2, "the cap holds");
    let status = world.run(&["status"]).await.expect(0);
    assert!(status.out.contains("2 waiting, the oldest for "), "{status}");
    assert!(all.iter().all(|e| e.tries == 0 && e.reason.is_none()), "{all:#?}");
}

#[tokio::test]
async fn a_worker_that_dies_while_it_reads_leaves_nothing_twice_and_nothing_lost() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |asked| match is_about_an_event(asked) {
        true => Says::Once(opened.clone(), Box::new(Says::Text(done(asked, "rent").to_string()))),
        false => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = house().await.asking(&clerk);
    let mut first = world.worker().await;
    let path = arrives(&world, "1", "", "the rent is paid");
    wait::until("the call", async || clerk.asked().iter().any(is_about_an_event).then_some(())).await;
    first.send(Sent::KILL);
    first.ends().await;
    open.send_replace(true);
    assert_eq!((event(&world, &path).status, signals(&world).len()), (EventStatus::New, 0));
    // The next worker crashes when the signals are written and the event is being marked.
    let mut second = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", "after-journal")).await;
    let run = world.begin_as("second", "ExtractWorkflow", &Value::Null).await;
    second.dies().await;
    assert_eq!(signals(&world).len(), 1, "written before the event was marked");
    let calls = clerk.asked().into_iter().filter(is_about_an_event).count();
    let _third = world.worker().await;
    run.result().await;
    world.begin_as("third", "ExtractWorkflow", &Value::Null).await.result().await;
    until_status(&world, &path, EventStatus::Extracted).await;
    assert_eq!(signals(&world).len(), 1);
    assert_eq!(clerk.asked().into_iter().filter(is_about_an_event).count(), calls, "its answer was kept");
}

#[tokio::test]
async fn the_vaults_own_schedule_is_there_with_its_cadence_and_a_humans_pause_is_kept() {
    let world = house().await;
    let worker = world.worker().await;
    let listed = world.json(&["schedules", "list"]).await;
    let row = |listed: &Value| listed.as_array().unwrap().iter().find(|r| r["id"] == "al-signal-extract").cloned();
    assert_eq!(row(&listed).unwrap()["interval_seconds"], 300, "{listed:#}");
    let toggle = ["schedule", "toggle", "--schedule-id", "al-signal-extract", "--pause", "--reason", "quiet"];
    world.temporal(&toggle).await;
    worker.stop().await;
    let _worker = world.worker().await;
    let plan = world.json(&["schedules", "plan"]).await;
    assert_eq!(plan["routines"][0]["why"], "paused by a person: quiet", "{plan:#}");
    let path = arrives(&world, "1", "", "the rent is paid");
    wait::stays(std::time::Duration::from_secs(2), "nothing read", async || {
        event(&world, &path).status == EventStatus::New
    })
    .await;
}
