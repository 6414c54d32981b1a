//! Outages that a process waits for instead of ending: a server that does not answer, and a missing vault.

use std::time::Duration;
use steward_tests::gate::Gate;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

#[tokio::test]
async fn a_start_waits_for_a_server_that_gives_no_answer_and_says_for_what() {
    let world = World::with_one_done().await;
    let gate = Gate::new(world.server.address()).await;
    gate.close();
    let behind = world.steward.with("TEMPORAL_ADDRESS", &gate.address);
    world.index_quietly(&behind).await;
    let mut worker = behind.start(&["worker"]);
    let waits = |err: String, what: &str| err.contains("waiting for the Temporal server") && err.contains(what);
    wait::until("it to say what it waits for", async || {
        assert!(worker.status().is_none(), "it ended: {}", worker.err());
        (waits(worker.err(), " to connect since ") && worker.err().contains(&gate.address)).then_some(())
    })
    .await;
    gate.open();
    worker.says("serving the vault").await;
    world.hold_calibration().await;
    assert!(!world.tick("house").await.evaluated.is_empty());

    // The next connection is open when its server stops answering.
    let mut next = behind.start(&["worker"]);
    next.says("serving clerk calls").await;
    gate.close();
    worker.kill();
    wait::until("it to wait for the listing of the schedules", async || {
        assert!(next.status().is_none(), "it ended: {}", next.err());
        waits(next.err(), " to check whose schedules it holds since ").then_some(())
    })
    .await;
    gate.open();
    next.says("serving the vault").await;
    assert!(next.stop().await.success());
}

#[tokio::test]
async fn a_wait_for_a_server_ends_with_the_process_and_a_refusal_ends_it_at_once() {
    let world = World::with_one_done().await;
    let gate = Gate::new(world.server.address()).await;
    gate.close();
    let mut worker = world.steward.with("TEMPORAL_ADDRESS", &gate.address).start(&["worker"]);
    wait::until("it to wait", async || worker.err().contains("waiting for the Temporal server").then_some(())).await;
    worker.send(rustix::process::Signal::INT);
    assert!(worker.ends().await.success(), "{}", worker.err());
    let said = world.steward.with("TEMPORAL_NAMESPACE", "nowhere").run(&["worker"]).await.expect(1);
    assert!(said.err.contains("nowhere") && !said.err.contains("waiting for"), "{said}");
}

#[tokio::test]
async fn a_vault_that_was_moved_away_and_back_is_served_on_without_a_restart() {
    let world = World::with_one_done().await.live().with_rare_ticks().set("STEWARD_SCAN_SECONDS", 3_600);
    for task in ["heat", "water"] {
        world.vault.task(task, "house");
    }
    let mut worker = world.worker().await;
    world.tick("house").await;
    wait::until("the first task to be done", async || (world.vault.state("rent") == "done").then_some(())).await;

    let (place, away) = (world.vault.path().to_owned(), world.folder.join("away"));
    std::fs::rename(&place, &away).unwrap();
    wait::until("it to miss the folder", async || worker.err().contains("nothing is written until").then_some(()))
        .await;
    let template = std::fs::read_to_string(away.join("signal/s1.md")).unwrap();
    std::fs::write(away.join("signal/s2.md"), template.replace("task/rent.md", "task/heat.md")).unwrap();
    let meanwhile = world.begin("house").await;
    let ended = async || {
        let history = meanwhile.history().await;
        let last = history.last()?.event_type().as_str_name().to_owned();
        (last.contains("WORKFLOW_EXECUTION_COMPLETED") || last.contains("WORKFLOW_EXECUTION_FAILED")).then_some(())
    };
    wait::within(Duration::from_secs(300), "the tick of meanwhile to end", ended).await;
    assert!(std::fs::read_to_string(away.join("task/heat.md")).unwrap().contains("state: open"), "written elsewhere");
    assert!(worker.status().is_none(), "{}", worker.err());

    std::fs::rename(&away, &place).unwrap();
    wait::until("what came meanwhile to be done", async || (world.vault.state("heat") == "done").then_some(())).await;
    world.vault.signal("s3", &Signal::done("water"));
    wait::until("what comes now to be done", async || (world.vault.state("water") == "done").then_some(())).await;
    let guard = world.json(&["status"]).await["guard"].clone();
    assert_eq!(guard["refusal"], serde_json::Value::Null, "{guard}");
    assert!(worker.stop().await.success());
    world.verify_chain().await;
}

#[tokio::test]
async fn another_folder_in_the_place_of_the_vault_ends_its_process() {
    let world = World::with_one_done().await;
    let mut worker = world.worker().await;
    std::fs::rename(world.vault.path(), world.folder.join("away")).unwrap();
    std::fs::create_dir(world.vault.path()).unwrap();
    assert_eq!(worker.ends().await.code(), Some(1));
    assert!(worker.err().contains("another folder replaced the vault's folder at "), "{}", worker.err());
    assert_eq!(std::fs::read_dir(world.vault.path()).unwrap().count(), 0, "nothing was written there");
}
