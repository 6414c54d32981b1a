//! Signals are judged soon, although nothing could judge them when they arrived: the vault was stopped, nothing ran
//! yet, or the schedule was missing.

use std::time::Duration;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;
use steward_vault::index::Index;

/// A world in which no scan finds the files, and no schedule fires soon.
async fn house() -> World {
    let world = World::new().await.with_rare_ticks().set("STEWARD_SCAN_SECONDS", 3_600);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world
}

async fn until_recorded(world: &World, count: usize) {
    let what = format!("{count} decisions");
    let recorded = async || (world.vault.records().len() == count).then_some(());
    wait::until(&what, recorded).await;
}

async fn until_nobody_is_to_be_woken(world: &World) {
    let index = Index::open(&world.vault.path().join(".steward")).await.unwrap();
    let empty = async || index.cursors().list_wake_marks().await.unwrap().is_empty().then_some(());
    wait::until("an empty queue", empty).await;
}

/// The workflows of a type on the server.
async fn runs(world: &World, kind: &str) -> usize {
    let query = format!("WorkflowType = '{kind}'");
    let said = world.temporal(&["workflow", "count", "--query", &query]).await;
    said.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number: {said}"))
}

#[tokio::test]
async fn a_signal_that_comes_during_a_stop_is_judged_soon_after_it() {
    let world = house().await;
    let worker = world.worker().await;
    world.run(&["stop"]).await.expect(0);
    world.vault.signal("s1", &Signal::done("rent"));
    let noticed = async || (world.json(&["status"]).await["counts"]["signals"] == 1).then_some(());
    wait::until("the signal to be noticed", noticed).await;
    wait::stays(Duration::from_secs(3), "no tick", async || runs(&world, "StewardWorkflow").await == 0).await;
    world.run(&["resume"]).await.expect(0);
    until_recorded(&world, 1).await;
    until_nobody_is_to_be_woken(&world).await;
    drop(worker);
}

#[tokio::test]
async fn a_tick_under_a_stop_uses_up_no_wake_also_when_the_process_ends_meanwhile() {
    let world = house().await;
    let worker = world.worker().await;
    world.run(&["stop"]).await.expect(0);
    world.vault.signal("s1", &Signal::done("rent"));
    let noticed = async || (world.json(&["status"]).await["counts"]["signals"] == 1).then_some(());
    wait::until("the signal to be noticed", noticed).await;
    assert!(world.tick("house").await.stopped);
    worker.stop().await;
    let _worker = world.worker().await;
    world.run(&["resume"]).await.expect(0);
    until_recorded(&world, 1).await;
}

#[tokio::test]
async fn signals_that_are_there_before_the_first_start_are_judged_soon_after_it_and_only_once() {
    let world = house().await;
    world.vault.matter("quiet");
    world.vault.task("garden", "quiet");
    world.vault.signal("s1", &Signal::done("rent"));
    let mut worker = world.steward.start(&["worker"]);
    worker.says("serving the vault").await;
    world.hold_calibration().await;
    until_recorded(&world, 1).await;
    until_nobody_is_to_be_woken(&world).await;
    let ticks = runs(&world, "StewardWorkflow").await;
    worker.stop().await;
    let _worker = world.worker().await;
    let same = async || runs(&world, "StewardWorkflow").await == ticks;
    wait::stays(Duration::from_secs(3), "no tick after a start without news", same).await;
}

#[tokio::test]
async fn a_signal_whose_schedule_is_gone_waits_until_it_is_registered_again() {
    let world = house().await;
    let _worker = world.worker().await;
    world.client.get_schedule_handle("al-steward-house").delete(Default::default()).await.unwrap();
    world.vault.signal("s1", &Signal::done("rent"));
    until_recorded(&world, 1).await;
    let listed = world.json(&["schedules", "list"]).await;
    assert!(listed.to_string().contains("al-steward-house"), "{listed}");
    until_nobody_is_to_be_woken(&world).await;
}

#[tokio::test]
async fn a_burst_of_signals_about_many_matters_leaves_an_empty_queue_and_calls_the_router_a_few_times() {
    const MATTERS: usize = 40;
    let world = World::new().await;
    for n in 0..MATTERS {
        world.vault.matter(&format!("m{n}"));
        world.vault.task(&format!("t{n}"), &format!("m{n}"));
    }
    let _worker = world.worker().await;
    let routed = runs(&world, "RouterWorkflow").await;
    for n in 0..MATTERS {
        world.vault.signal(&format!("s{n}"), &Signal::done(&format!("t{n}")));
        // Each file is a batch of its own for the watcher, faster than the server can handle.
        wait::a_moment(Duration::from_millis(20)).await;
    }
    let indexed = async || (world.json(&["status"]).await["counts"]["signals"] == MATTERS).then_some(());
    wait::until("the signals to be noticed", indexed).await;
    until_nobody_is_to_be_woken(&world).await;
    let ticked = async || (runs(&world, "StewardWorkflow").await >= MATTERS).then_some(());
    wait::until("a tick of each matter", ticked).await;
    let routed = runs(&world, "RouterWorkflow").await - routed;
    assert!(routed < MATTERS / 2, "{routed} runs of the router for {MATTERS} signals");
}
