//! Trust is learned from what humans answered: once for each answer, whatever happens on the way.

use futures::future::join_all;
use rustix::process::Signal as Sent;
use serde_json::{Value, json};
use steward_domain::frontmatter;
use steward_tests::wait;
use steward_tests::world::World;

fn instinct(world: &World, name: &str) -> Value {
    let bytes = world.vault.read(&format!("instinct/{name}.md"));
    Value::Object(frontmatter::read(&bytes).unwrap().fields().clone())
}

async fn calibrate(world: &World, id: &str) -> Value {
    world.begin_as(id, "ReversalCalibrationWorkflow", &Value::Null).await.result().await
}

#[tokio::test]
async fn an_undo_lowers_its_source_once_however_often_and_by_whomever_it_is_counted() {
    let world = World::with_one_done().await.live();
    let mut worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(calibrate(&world, "first").await["written"], 1);
    let before = instinct(&world, "mail");
    assert_eq!((&before["status"], &before["observations"]), (&json!("pending"), &json!(0)), "{before}");
    let confidence = before["confidence"].as_f64().unwrap();
    world.answer("undo", &world.live_action()).await.result().await;
    let runs = join_all((0..3).map(async |n| calibrate(&world, &format!("at-once-{n}")).await)).await;
    assert!(runs.iter().all(|run| run["failed"] == 0), "{runs:?}");
    let lowered = instinct(&world, "mail");
    assert!((confidence - 0.1 - lowered["confidence"].as_f64().unwrap()).abs() < 1e-3, "{before} {lowered}");
    assert_eq!(calibrate(&world, "again").await, json!({"written": 0, "failed": 0, "more": false}));

    // The power goes, and every database with it.
    worker.send(Sent::KILL);
    worker.ends().await;
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(world.vault.path().join(".steward").join(name));
    }
    let bytes = world.vault.read("instinct/mail.md");
    let _worker = world.worker().await;
    assert_eq!(calibrate(&world, "anew").await["written"], 0);
    assert_eq!(world.vault.read("instinct/mail.md"), bytes);
    std::fs::remove_file(world.vault.path().join("instinct/mail.md")).unwrap();
    wait::until("the instinct to be written anew", async || {
        calibrate(&world, "from-nothing").await;
        world.vault.path().join("instinct/mail.md").exists().then_some(())
    })
    .await;
    assert_eq!(instinct(&world, "mail"), lowered, "the records alone say so");
    world.verify_chain().await;
}

#[tokio::test]
async fn what_a_human_wrote_into_an_instinct_stays() {
    let world = World::with_one_done().await.live();
    let mine =
        "---\ntype: instinct\nsource: mail  # ours\nobservations: 7\nceiling: confirm # by hand\n---\nAnn's mails.\n";
    world.vault.write("instinct/anns.md", mine);
    world.vault.write("instinct/broken.md", "---\nsource: [\n---\n");
    let _worker = world.worker().await;
    world.tick("house").await;
    calibrate(&world, "first").await;
    let text = String::from_utf8(world.vault.read("instinct/anns.md")).unwrap();
    for kept in ["source: mail  # ours\n", "observations: 7\n", "ceiling: confirm # by hand\n", "---\nAnn's mails.\n"] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(text.contains("counted: 0\n") && text.contains("confidence: "), "{text}");
    assert!(!world.vault.path().join("instinct/mail.md").exists(), "one source has one instinct");
}
