//! The tick that finds nothing new, as most ticks do.

use serde_json::Value;
use steward_domain::steward::tick::TickReport;
use steward_tests::history::{count, local_activities};
use steward_tests::world::World;
use temporalio_client::UntypedWorkflow;
use temporalio_common::protos::temporal::api::enums::v1::EventType;

#[tokio::test]
async fn an_idle_tick_that_any_client_started_costs_one_workflow_task_and_touches_no_record() {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let _worker = world.worker().await;
    let before = world.vault.files();
    let started = ["workflow", "execute", "--type", "StewardWorkflow", "--workflow-id", "my-own-id", "-o", "json"];
    let input = ["--task-queue", &world.queue, "--input", "\"matter/house.md\""];
    let said: Value = serde_json::from_str(&world.temporal(&[&started[..], &input[..]].concat()).await).unwrap();
    assert_eq!((&said["result"]["matter"], &said["result"]["quiet"]), (&"matter/house.md".into(), &1.into()), "{said}");
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());

    let run = world.client.get_workflow_handle::<UntypedWorkflow>("my-own-id");
    let result = run.get_result(Default::default()).await.unwrap();
    let report: TickReport = serde_json::from_slice(&result.payloads[0].data).unwrap();
    assert!(report.evaluated.is_empty() && report.errors.is_empty(), "{report:?}");
    let events = run.fetch_history(Default::default()).into_events().await.unwrap();
    assert!(events.len() <= 6, "{events:#?}");
    assert_eq!(count(&events, EventType::WorkflowTaskCompleted), 1);
    assert_eq!(local_activities(&events), ["steward.observe"]);
}

#[tokio::test]
async fn a_tick_with_something_new_is_told_from_an_idle_one() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    // Every two minutes the router checks whether a steward has had its turn; then this tick would find nothing left.
    world.hold_schedule("al-signal-router").await;
    let started = world.begin("house").await;
    assert_eq!(started.report().await.evaluated.len(), 1);
    let events = started.history().await;
    assert!(events.len() > 6, "{events:#?}");
    let local = local_activities(&events);
    assert_eq!(local, ["steward.observe", "steward.reserve", "steward.settle", "steward.apply"]);
}

#[tokio::test]
async fn an_argument_that_is_no_matter_fails_the_run_and_says_why() {
    let world = World::new().await;
    let _worker = world.worker().await;
    for argument in ["task/rent.md", "matter/../task/rent.md", "house"] {
        let id = format!("odd-{}", argument.replace('/', "-"));
        let said = world.begin_as(&id, "StewardWorkflow", &argument.into()).await.failure().await;
        assert!(said.contains("expected matter/") || said.contains("cannot be used"), "{argument}: {said}");
    }
}
