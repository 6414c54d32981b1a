//! Old events are removed by the workflow that the schedule starts every night.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use steward_domain::record::path::RecordPath;
use steward_domain::signals::stream::{EventStatus, IncomingEvent, StreamEvent};
use steward_tests::world::World;

/// More events than one step of the workflow removes.
const OLD: u64 = 520;

fn stored(world: &World, id: &str, status: EventStatus, days: i64) -> RecordPath {
    let incoming =
        IncomingEvent { source_id: id, pattern: "mail:a@b.example", text: "paid", ..IncomingEvent::default() };
    let event = StreamEvent::new("mail", &incoming, Utc::now() - TimeDelta::days(days));
    let event = StreamEvent { status, ..event };
    let path = event.record_path().unwrap();
    world.vault.write(path.as_str(), event.render());
    path
}

#[tokio::test]
async fn what_was_extracted_and_is_old_goes_and_everything_else_stays() {
    let world = World::new().await;
    for n in 0..OLD {
        stored(&world, &n.to_string(), EventStatus::Extracted, 8);
    }
    let kept = [
        stored(&world, "young", EventStatus::Extracted, 6),
        stored(&world, "parked", EventStatus::Parked, 30),
        stored(&world, "unreadable", EventStatus::Parked, 9),
    ];
    let worker = world.worker().await;
    let purged = world.begin_as("purge", "PurgeWorkflow", &Value::Null).await.result().await;
    // A step whose result was lost runs again, and finds nothing left to count.
    assert!((1..=OLD).contains(&purged["gone"].as_u64().unwrap()) && purged["more"] == false, "{purged}");
    let left: Vec<String> = world.vault.files().paths().map(str::to_owned).collect();
    let mut expected: Vec<&str> = kept.iter().map(RecordPath::as_str).collect();
    expected.sort_unstable();
    assert_eq!(left, expected);
    let listed = world.json(&["schedules", "list"]).await;
    let row = listed.as_array().unwrap().iter().find(|row| row["id"] == "al-stream-event-purge").unwrap();
    assert_eq!(row["interval_seconds"], 86_400);
    worker.stop().await;

    // The operator may keep events for fewer days.
    let shorter = world.steward.with("STEWARD_KEEP_EVENTS_DAYS", 5);
    let _worker = world.worker_with(&shorter).await;
    let purged = world.begin_as("purge-again", "PurgeWorkflow", &Value::Null).await;
    assert_eq!(purged.result().await, json!({"gone": 1, "more": false}));
    assert!(!world.vault.path().join(kept[0].as_str()).exists());
}
