//! A provider that asks to wait: a run waits for a short time, and an operator may end a long wait.

use crate::extract::{arrives, done, is_about_an_event, until_status};
use serde_json::{Value, json};
use steward_domain::record::path::RecordPath;
use steward_domain::signals::stream::EventStatus;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::wait;
use steward_tests::world::World;

/// Six events, one run of the extraction that was begun by hand, and a provider that first asks to wait. Nothing else
/// begins a run. Returns the run's report.
async fn extract_behind(retry_after: &'static str) -> (World, Clerk, Vec<RecordPath>, Value) {
    let clerk = Clerk::start(move |asked| match asked.number {
        1 => Says::Status(429, Some(retry_after.to_owned())),
        _ if is_about_an_event(asked) => Says::Text(done(asked, "rent").to_string()),
        _ => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = World::new().await.asking(&clerk);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let _worker = world.worker().await;
    world.hold_schedule("al-signal-extract").await;
    let paths: Vec<_> = (0..6).map(|n| arrives(&world, &n.to_string(), "", &format!("the rent is paid {n}"))).collect();
    let listed = async || {
        let streams = world.json(&["status"]).await["streams"].to_string();
        streams.contains("\"new\":6").then_some(())
    };
    wait::until("the events to be listed", listed).await;
    let report = world.begin_as("extract", "ExtractWorkflow", &Value::Null).await.result().await;
    (world, clerk, paths, report)
}

#[tokio::test]
async fn extraction_waits_a_second_within_its_run_where_the_provider_asks_for_one() {
    let (world, clerk, paths, report) = extract_behind("1").await;
    assert_eq!((&report["extracted"], &report["held"]), (&json!(6), &json!(false)), "{report}");
    for path in &paths {
        until_status(&world, path, EventStatus::Extracted).await;
    }
    let about_events = clerk.asked().iter().filter(|asked| is_about_an_event(asked)).count();
    assert!(about_events <= paths.len() + 4, "at most each of the lanes was refused once: {about_events}");
}

#[tokio::test]
async fn extraction_leaves_a_wait_of_more_than_a_minute_to_the_next_run() {
    let (_world, clerk, paths, report) = extract_behind("61").await;
    assert_eq!(report["held"], json!(true), "{report}");
    assert!(report["extracted"].as_u64().unwrap() < paths.len() as u64, "{report}");
    assert!(clerk.asked().len() < paths.len(), "no call under the back-off");
}

#[tokio::test]
async fn a_long_back_off_is_lifted_by_the_operator_and_written_down() {
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("3600".to_owned())),
        _ => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = World::with_one_done().await.asking(&clerk);
    let _worker = world.worker().await;
    world.tick("house").await;
    let cap = async || world.json(&["status"]).await["guard"]["refusal"]["cap"].clone();
    assert_eq!(cap().await, json!("back_off"));
    let said = world.run(&["doctor", "--lift-back-off", "--json"]).await;
    let finding = said.json().as_array().unwrap().iter().find(|f| f["check"] == "back-off").cloned().unwrap();
    assert!(finding["ok"] == true && finding["found"].as_str().unwrap().contains("lifted"), "{finding}");
    let log = String::from_utf8(world.vault.read(".steward/operator.jsonl")).unwrap();
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&line["act"], &line["by"]), (&json!("back_off.lifted"), &json!("tester")), "{line}");
    assert_eq!(cap().await, Value::Null);
    world.tick("house").await;
    assert_eq!(clerk.asked().len(), 2, "the probe");
    let again = world.run(&["doctor", "--lift-back-off"]).await;
    assert!(again.out.contains("nothing to lift"), "{again}");
}
