//! Numbers that a person wrote into instincts before Steward: every calibration keeps them, and they count.

use serde_json::{Value, json};
use steward_domain::action::plan::Disposition;
use steward_domain::record::frontmatter;
use steward_tests::wait;
use steward_tests::world::World;

/// The sources of the example with the person's numbers.
const WRITTEN: [(&str, u64, f64); 7] = [
    ("bank", 25, 0.88),
    ("esign", 55, 0.9),
    ("gcal", 7, 0.61),
    ("gmail", 62, 0.82),
    ("plane", 34, 0.79),
    ("slack", 12, 0.68),
    ("whatsapp", 3, 0.44),
];

fn read_instinct(world: &World, source: &str) -> Value {
    let bytes = world.vault.read(&format!("instinct/{source}.md"));
    Value::Object(frontmatter::read_document(&bytes).unwrap().fields().clone())
}

async fn calibrate(world: &World, id: &str) -> Value {
    world.begin_as(id, "ReversalCalibrationWorkflow", &Value::Null).await.result().await
}

#[tokio::test]
async fn a_track_record_written_by_hand_survives_calibration_a_lost_index_and_a_new_process() {
    let world = World::new().await.live();
    world.json(&["example", world.vault.path().to_str().unwrap()]).await;
    let worker = world.worker().await;
    for matter in ["roof-repair", "workshop-lease", "van-on-the-road", "family-teeth"] {
        world.tick(matter).await;
    }
    wait::until("the first calibration to write what it learned of gmail", async || {
        calibrate(&world, "first").await;
        read_instinct(&world, "gmail").get("counted").map(drop)
    })
    .await;
    let holds = || {
        for (source, observations, confidence) in WRITTEN {
            let now = read_instinct(&world, source);
            assert!(now["observations"].as_u64().unwrap() >= observations, "{source}: {now}");
            if now.get("counted").is_some() {
                assert_eq!(now["initial_confidence"], json!(confidence), "{source}: {now}");
            } else {
                assert_eq!(now["confidence"], json!(confidence), "{source}: {now}");
            }
        }
        assert_eq!(read_instinct(&world, "esign")["ceiling"], "confirm");
        read_instinct(&world, "gmail")
    };
    let first = holds();
    assert!(first["confidence"].as_f64().unwrap() > 0.7, "the average starts from 0.82: {first}");
    assert_eq!(calibrate(&world, "second").await["written"], 0, "once");
    let changed = world.json(&["status"]).await["changed_numbers"].clone();
    let ours = changed.as_array().unwrap().iter().find(|one| one["path"] == "instinct/gmail.md").unwrap();
    assert_eq!((&ours["field"], &ours["given"]), (&json!("confidence"), &json!(0.82)), "{changed}");
    let status = world.run(&["status"]).await.expect(0).out;
    let told = status.lines().find(|line| line.contains("instinct/bank.md: confidence 0.88 became 0."));
    assert!(told.is_some_and(|line| line.contains("`initial_confidence` says where it begins")), "{status}");
    assert!(status.contains("more that calibration changed: the page Trust lists them"), "{status}");

    // 62 observations need 0.75, none need 0.95: the contract's signal has 0.78.
    let contract = world.tick("apprentice").await;
    let disposition = |record: &steward_domain::action::audit::AuditRecord| {
        (record.draft.target.as_str() == "task/apprentice-contract.md").then_some(record.draft.disposition)
    };
    assert_eq!(world.vault.records().iter().find_map(disposition), Some(Disposition::Live), "{contract:?}");

    worker.stop().await;
    world.vault.lose_databases();
    let _worker = world.worker().await;
    calibrate(&world, "anew").await;
    let anew = holds();
    assert_eq!(anew["observations"], first["observations"], "nothing is added twice");
    assert_eq!(calibrate(&world, "again").await["written"], 0);
    world.verify_chain().await;
}
