//! A provider that asks to wait: a run waits for a short time, and an operator may end a long wait.

use crate::extract::{arrives, done, is_about_an_event, until_status};
use serde_json::{Value, json};
use steward_domain::signals::stream::EventStatus;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::world::World;

#[tokio::test]
async fn extraction_waits_a_second_where_the_provider_asks_for_one() {
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("1".to_owned())),
        _ if is_about_an_event(asked) => Says::Text(done(asked, "rent").to_string()),
        _ => Says::Verdict("still_active", 0.9),
    })
    .await;
    let world = World::new().await.asking(&clerk);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let paths: Vec<_> = (0..6).map(|n| arrives(&world, &n.to_string(), "", &format!("the rent is paid {n}"))).collect();
    // One run reads the events that wait at the start; the next run comes minutes later.
    let _worker = world.worker().await;
    for path in &paths {
        until_status(&world, path, EventStatus::Extracted).await;
    }
    let about_events = clerk.asked().iter().filter(|asked| is_about_an_event(asked)).count();
    assert!(about_events <= paths.len() + 4, "at most each of the lanes was refused once: {about_events}");
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
