//! One schedule per matter, in step with the vault and with people's changes to the schedule.

use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_common::protos::temporal::api::enums::v1::ScheduleOverlapPolicy;
use temporalio_common::protos::temporal::api::schedule::v1::{Schedule, schedule_action::Action};
use temporalio_common::protos::temporal::api::workflowservice::v1::{DescribeScheduleRequest, UpdateScheduleRequest};

async fn schedule(world: &World, slug: &str) -> Option<Schedule> {
    let request =
        DescribeScheduleRequest { namespace: world.namespace.clone(), schedule_id: format!("al-steward-{slug}") };
    wait::until("the server to describe a schedule", async || {
        // The server describes a schedule to one caller at a time and refuses the others.
        wait::a_moment(Duration::from_millis(150)).await;
        let mut service = world.client.connection().workflow_service();
        match service.describe_schedule(request.clone().into_request()).await {
            Ok(answer) => Some(answer.into_inner().schedule),
            Err(status) if status.code() == Code::NotFound => Some(None),
            // Too many requests at the same moment.
            Err(status) if status.code() == Code::ResourceExhausted => None,
            Err(status) => panic!("{status}"),
        }
    })
    .await
}

fn interval(schedule: &Schedule) -> i64 {
    schedule.spec.as_ref().unwrap().interval[0].interval.unwrap().seconds
}

/// The ids of the stewards' schedules.
async fn listed(world: &World) -> Vec<String> {
    let rows = world.json(&["schedules", "list"]).await;
    let ids = rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
    ids.filter(|id| id.starts_with("al-steward-")).collect()
}

async fn until_listed(world: &World, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|slug| format!("al-steward-{slug}")).collect();
    wait::until(&format!("the schedules {expected:?}"), async || (listed(world).await == expected).then_some(())).await;
}

#[tokio::test]
async fn every_matter_has_one_schedule_that_holds_what_is_agreed() {
    let world = World::new().await;
    world.vault.matter("eagle-farm");
    world.vault.matter("house");
    let worker = world.worker().await;
    let found = schedule(&world, "eagle-farm").await.unwrap();
    let spec = found.spec.as_ref().unwrap();
    assert_eq!((spec.interval.len(), interval(&found)), (1, 1800));
    let phase = spec.interval[0].phase.unwrap().seconds;
    assert!((0..1800).contains(&phase));
    let policies = found.policies.as_ref().unwrap();
    assert_eq!(policies.overlap_policy(), ScheduleOverlapPolicy::Skip);
    assert_eq!(policies.catchup_window.unwrap().seconds, 1800);
    let Some(Action::StartWorkflow(start)) = found.action.as_ref().and_then(|a| a.action.clone()) else { panic!() };
    assert_eq!(start.workflow_type.unwrap().name, "StewardWorkflow");
    assert_eq!(start.task_queue.unwrap().name, world.queue);
    let input: Value = serde_json::from_slice(&start.input.unwrap().payloads[0].data).unwrap();
    assert_eq!(input, json!("matter/eagle-farm.md"));
    assert_eq!(start.workflow_execution_timeout.unwrap().seconds, 300);
    assert_eq!(start.workflow_run_timeout.unwrap().seconds, 300);
    until_listed(&world, &["eagle-farm", "house"]).await;
    let other = schedule(&world, "house").await.unwrap().spec.unwrap().interval[0].phase.unwrap().seconds;
    assert_ne!(phase, other, "not all at once");

    worker.stop().await;
    let _worker = world.worker().await;
    let again = schedule(&world, "eagle-farm").await.unwrap();
    assert_eq!(again.spec.unwrap().interval[0].phase.unwrap().seconds, phase, "the same at every start");
    let plan = world.json(&["schedules", "plan"]).await;
    assert!(
        plan["steps"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["verb"] == json!("unchanged") || s["verb"]["kind"] == json!("unchanged")),
        "{plan:#}"
    );
}

#[tokio::test]
async fn schedules_follow_the_matters_while_a_worker_runs() {
    let world = World::new().await.set("STEWARD_SCAN_SECONDS", 5);
    world.vault.matter("house");
    let _worker = world.worker().await;
    world.vault.matter("garden");
    until_listed(&world, &["garden", "house"]).await;
    world.vault.write("matter/garden.md", "---\ntype: matter\nname: g\nstate: done\n---\n");
    let paused = async || schedule(&world, "garden").await.filter(|s| s.state.as_ref().unwrap().paused).map(drop);
    wait::until("the schedule of a matter that is done to pause", paused).await;
    world.vault.matter("garden");
    let running = async || schedule(&world, "garden").await.filter(|s| !s.state.as_ref().unwrap().paused).map(drop);
    wait::until("the schedule of a matter that is open again to go on", running).await;
    world.vault.write("matter/garden.md", "---\ntype: matter\nname: g\nstate: archived\n---\n");
    until_listed(&world, &["house"]).await;
    world.vault.write("matter/house.md", "---\ntype: matter\nname: [\n---\n");
    let noticed = async || {
        let problems = world.json(&["status"]).await["problems"].clone();
        problems.to_string().contains("matter/house.md").then_some(())
    };
    wait::until("the broken record to be noticed", noticed).await;
    assert!(schedule(&world, "house").await.is_some(), "a typing error removes no schedule");
}

#[tokio::test]
async fn the_schedule_of_a_matter_follows_what_its_steward_did_and_what_was_undone() {
    // No scan finds the file.
    let world = World::new().await.live().set("STEWARD_SCAN_SECONDS", 3_600);
    world.vault.matter("house");
    world.vault.matter("shed");
    world.vault.instinct("mail", 60);
    world.vault.signal("aside", &Signal::done("none"));
    let text = String::from_utf8(world.vault.read("signal/aside.md")).unwrap();
    let about = text.replace("target_kind: task", "target_kind: matter").replace("task/none.md", "matter/shed.md");
    let worker = world.worker().await;
    until_listed(&world, &["house", "shed"]).await;
    world.vault.write("signal/shed.md", about);
    let paused = async || schedule(&world, "shed").await.filter(|s| s.state.as_ref().unwrap().paused).map(drop);
    wait::until("the schedule of a matter that its steward ended to pause", paused).await;
    world.answer("undo", &world.live_action()).await.result().await;
    let running = async || schedule(&world, "shed").await.filter(|s| !s.state.as_ref().unwrap().paused).map(drop);
    wait::until("the schedule of a matter that is open again to go on", running).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_pause_that_a_human_made_outlives_restarts() {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.matter("garden");
    world.vault.task("rent", "house");
    let worker = world.worker().await;
    world.client.get_schedule_handle("al-steward-house").pause(Some("on holiday"), Default::default()).await.unwrap();
    worker.stop().await;
    let _worker = world.worker().await;
    world.run(&["schedules", "apply"]).await.expect(0);
    let found = schedule(&world, "house").await.unwrap().state.unwrap();
    assert_eq!((found.paused, found.notes.as_str()), (true, "on holiday"));
    assert!(!schedule(&world, "garden").await.unwrap().state.unwrap().paused);
}

#[tokio::test]
async fn a_quiet_matter_backs_off_on_its_schedule_and_a_signal_resets_it() {
    let world =
        World::new().await.set("STEWARD_CADENCE_MATTER_SECONDS", 1000).set("STEWARD_CADENCE_MATTER_MAX_SECONDS", 3000);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let worker = world.worker().await;
    let seconds = async || interval(&schedule(&world, "house").await.unwrap());
    let until = async |wanted: i64| {
        wait::until(&format!("an interval of {wanted} s"), async || (seconds().await == wanted).then_some(())).await;
    };
    for (ticks, expected) in [(2, 1000), (1, 2000), (3, 3000)] {
        for _ in 0..ticks {
            world.tick("house").await;
        }
        until(expected).await;
    }
    worker.stop().await;
    let _worker = world.worker().await;
    assert_eq!(seconds().await, 3000, "kept over a restart");
    world.vault.signal("s1", &Signal::done("rent"));
    until(1000).await;
}

#[tokio::test]
async fn a_sweep_is_refused_until_an_operator_confirms_it() {
    let world = World::new().await;
    let slugs: Vec<String> = (0..8).map(|n| format!("m{n}")).collect();
    slugs.iter().for_each(|slug| world.vault.matter(slug));
    let worker = world.worker().await;
    until_listed(&world, &slugs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    worker.stop().await;
    for slug in &slugs[1..] {
        std::fs::remove_file(world.vault.path().join(format!("matter/{slug}.md"))).unwrap();
    }
    let _worker = world.worker().await;
    assert_eq!(listed(&world).await.len(), 8, "the boot deleted beyond its budget");
    let plan = world.run(&["schedules", "plan"]).await.expect(3);
    assert!(plan.out.contains("refused 7 deletions") && plan.out.contains("--confirm-deletions"), "{plan}");
    world.run(&["schedules", "apply"]).await.expect(3);
    assert_eq!(listed(&world).await.len(), 8);
    world.run(&["schedules", "apply", "--confirm-deletions"]).await.expect(0);
    until_listed(&world, &["m0"]).await;
}

#[tokio::test]
async fn no_matter_at_all_is_a_doubt_and_deletes_nothing() {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.matter("garden");
    let worker = world.worker().await;
    until_listed(&world, &["garden", "house"]).await;
    worker.stop().await;
    std::fs::rename(world.vault.path().join("matter"), world.folder.join("away")).unwrap();
    let worker = world.worker().await;
    assert_eq!(listed(&world).await.len(), 2);
    worker.stop().await;
    let plan = world.json(&["schedules", "plan"]).await;
    assert!(!plan["warnings"].as_array().unwrap().is_empty(), "{plan:#}");
}

#[tokio::test]
async fn a_change_beneath_our_mark_shows_when_schedules_are_looked_at_in_full() {
    let world = World::new().await;
    world.vault.matter("house");
    let worker = world.worker().await;
    until_listed(&world, &["house"]).await;
    worker.stop().await;
    let found = schedule(&world, "house").await.unwrap();
    let mut changed = found.clone();
    let Some(Action::StartWorkflow(start)) = changed.action.as_mut().and_then(|a| a.action.as_mut()) else { panic!() };
    start.workflow_run_timeout.as_mut().unwrap().seconds = 60;
    let request = UpdateScheduleRequest {
        namespace: world.namespace.clone(),
        schedule_id: "al-steward-house".into(),
        schedule: Some(changed),
        request_id: "beneath".into(),
        ..UpdateScheduleRequest::default()
    };
    let mut service = world.client.connection().workflow_service();
    service.update_schedule(request.into_request()).await.unwrap();
    let plan = world.json(&["schedules", "plan", "--deep"]).await;
    assert_eq!(plan["steps"][0]["verb"], json!("update"), "{plan:#}");
    world.run(&["schedules", "apply", "--deep"]).await.expect(0);
    let plan = world.json(&["schedules", "plan", "--deep"]).await;
    assert_eq!(plan["steps"][0]["verb"], json!("unchanged"), "{plan:#}");
}
