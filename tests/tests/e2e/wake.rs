//! A signal wakes its matter without its schedule.

use chrono::{TimeDelta, Utc};
use std::time::Duration;
use steward_domain::action::audit::AuditRecord;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// A worker beside which no schedule fires: only signals start ticks.
async fn only_woken(world: &World) -> Running {
    let worker = world.worker().await;
    world.hold_schedule("al-signal-router").await;
    worker
}

async fn records(world: &World, count: usize) -> Vec<AuditRecord> {
    wait::until(&format!("{count} audit records"), async || {
        let records = world.vault.records();
        (records.len() >= count).then_some(records)
    })
    .await
}

#[tokio::test]
async fn a_new_signal_and_a_changed_one_each_wake_their_matter() {
    let world = World::new().await.with_rare_ticks();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let _worker = only_woken(&world).await;
    world.vault.signal("s1", &Signal::done("rent"));
    records(&world, 1).await;
    world.vault.signal("s1", &Signal { quote: "Really finished.", ..Signal::done("rent") });
    let both = records(&world, 2).await;
    assert_eq!(both[1].draft.evidence[0].note, "Really finished.");
    assert!(both.iter().all(|r| r.draft.workflow.id.starts_with("steward-") || r.draft.workflow.id.contains("house")));
}

#[tokio::test]
async fn a_burst_of_signals_judges_each_task_once() {
    let world = World::new().await.with_rare_ticks();
    world.vault.matter("house");
    for n in 0..6 {
        world.vault.task(&format!("t{n}"), "house");
    }
    let _worker = only_woken(&world).await;
    for n in 0..6 {
        world.vault.signal(&format!("s{n}"), &Signal::done(&format!("t{n}")));
    }
    records(&world, 6).await;
    let mut tasks: Vec<String> = Vec::new();
    wait::stays(Duration::from_secs(2), "six records", async || world.vault.records().len() == 6).await;
    tasks.extend(world.vault.records().iter().map(|r| r.draft.target.slug().to_owned()));
    tasks.sort();
    tasks.dedup();
    assert_eq!(tasks.len(), 6);
}

#[tokio::test]
async fn a_signal_that_comes_during_a_tick_is_not_left_until_the_next_one() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.9)))).await;
    let world = World::new().await.with_rare_ticks().asking(&clerk);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.task("garden", "house");
    let _worker = only_woken(&world).await;
    world.vault.signal("s1", &Signal::done("rent"));
    wait::until("the first call", async || (!clerk.asked().is_empty()).then_some(())).await;
    world.vault.signal("s2", &Signal::done("garden"));
    // The signal is noticed while the first tick still runs: the policy Skip starts no second one.
    let noticed = async || (world.json(&["status"]).await["counts"]["signals"] == 2).then_some(());
    wait::until("the second signal to be noticed", noticed).await;
    open.send_replace(true);
    records(&world, 2).await;
}

#[tokio::test]
async fn a_snoozed_task_is_not_woken() {
    let world = World::new().await.with_rare_ticks();
    world.vault.matter("house");
    let until = steward_domain::time::format_millis(Utc::now() + TimeDelta::days(3));
    world.vault.task_with("asleep", "house", &format!("snoozed_until: {until}\n"));
    world.vault.task("awake", "house");
    let _worker = only_woken(&world).await;
    world.vault.signal("s1", &Signal::done("asleep"));
    world.vault.signal("s2", &Signal::done("awake"));
    let records = records(&world, 1).await;
    assert_eq!(records[0].draft.target.slug(), "awake");
    wait::stays(Duration::from_secs(2), "one record", async || world.vault.records().len() == 1).await;
    let report = world.tick("house").await;
    assert_eq!(report.skipped.get(&steward_domain::steward::tick::TaskSkipReason::Snoozed), Some(&1), "{report:?}");
}

#[tokio::test]
async fn a_signal_that_came_while_nobody_looked_wakes_its_matter_at_the_start() {
    let world = World::new().await.with_rare_ticks();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    only_woken(&world).await.stop().await;
    world.vault.signal("s1", &Signal::done("rent"));
    let _worker = only_woken(&world).await;
    records(&world, 1).await;
}
