//! A new build over open runs: `steward preflight`, the boot check and `steward drain`.
// The macros want their workflows public.
#![allow(unreachable_pub)]

use rustix::process::Signal as Sent;
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::api::{self, Api};
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::world::{Started, World};
use steward_tests::{runs, wait};
use temporalio_common::UntypedActivity;
use temporalio_common::data_converters::{PayloadConverter, RawValue};
use temporalio_common::protos::temporal::api::enums::v1::EventType;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::WorkerOptions;
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowResult};

/// A tick as another build made it: its first step has another name, and nobody serves it.
#[workflow]
#[derive(Default)]
pub struct FormerTick;

#[workflow_methods]
impl FormerTick {
    #[run(name = "StewardWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, matter: String) -> WorkflowResult<Value> {
        let options = ActivityOptions::with_schedule_to_close_timeout(Duration::from_secs(3600));
        let (look, matter) =
            (UntypedActivity::new("steward.look"), RawValue::from_value(&matter, &PayloadConverter::default()));
        drop(ctx.execute_activity(look, matter, options.task_queue("nobody".to_owned()).build()).await?);
        Ok(Value::Null)
    }
}

/// A tick that another build has begun and left open.
async fn begin_former_tick(world: &World) -> Started {
    let options = WorkerOptions::new(world.queue.clone()).register_workflow::<FormerTick>().unwrap().build();
    let begin = async {
        let tick = world.begin("house").await;
        wait::until("the former build to make its first step", async || {
            let events = tick.history().await;
            events.iter().any(|event| event.event_type() == EventType::ActivityTaskScheduled).then_some(())
        })
        .await;
        tick
    };
    runs::run_worker(&world.client, options, begin).await
}

/// Whether a worker has completed a workflow task of this run.
async fn is_begun(run: &Started) -> bool {
    run.history().await.iter().any(|event| event.event_type() == EventType::WorkflowTaskCompleted)
}

#[tokio::test]
async fn a_build_that_would_break_an_open_run_does_not_poll_until_the_run_is_gone() {
    let world = World::with_one_done().await.live();
    let former = begin_former_tick(&world).await;

    let found = world.run(&["--json", "preflight"]).await.expect(4).json();
    assert_eq!((&found["open"], &found["not_begun"]), (&json!(1), &json!(0)), "{found:#}");
    let [shape] = found["shapes"].as_array().unwrap().as_slice() else { panic!("{found:#}") };
    assert_eq!(shape["open"], json!([former.id()]), "{found:#}");
    assert_eq!((&shape["outcome"]["kind"], &shape["outcome"]["event_id"]), (&json!("breaks"), &json!(5)), "{found:#}");
    assert_eq!(shape["outcome"]["recorded"], "steward.look", "{found:#}");
    let text = world.run(&["preflight"]).await.expect(4).out;
    assert!(text.contains("breaks at event 5 (ActivityTaskScheduled): recorded steward.look"), "{text}");

    let once = world.run(&["up", "--once"]).await.expect(1);
    assert!(once.err.contains("nothing was ticked: this build would break open runs"), "{once}");
    let mut held = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["up"]);
    held.says("not polling yet: this build would break open runs").await;
    held.says("dashboard  ").await;
    let api = Api::new(api::link(&held).split("/login").next().unwrap());
    for check in ["/startz", "/healthz"] {
        assert_eq!(api.get(check).await.status, 200, "{check}");
    }
    let ready = api.get("/readyz").await.expect(503);
    assert!(ready["detail"].as_str().unwrap().contains("does not poll yet"), "{ready}");
    let status = world.json(&["status"]).await;
    assert!(status["paused"].as_str().unwrap().contains("recorded steward.look"), "{status:#}");
    let actor = api.token(&world, "act").await;
    let page = actor.get("/").await.body;
    assert!(page.contains("Nothing is checked or resolved") && page.contains("steward.look"), "{page}");
    let tick = world.run(&["tick", "house"]).await.expect(3);
    assert!(tick.all().contains("nothing was started"), "{tick}");
    world.run(&["stop", "--reason", "odd"]).await.expect(0);
    world.run(&["resume"]).await.expect(0);
    let waiting = world.begin("house").await;
    wait::stays(Duration::from_secs(2), "no run begins before this build polls", async || !is_begun(&waiting).await)
        .await;

    world.temporal(&["workflow", "terminate", "--workflow-id", former.id(), "--reason", "of another build"]).await;
    held.says("up; Ctrl-C ends it").await;
    waiting.report().await;
    wait::until("the process to be ready", async || (api.get("/readyz").await.status == 200).then_some(())).await;
    assert_eq!(world.json(&["status"]).await["paused"], Value::Null);
    // The run that broke is closed now, and would break all the same; only open ones matter for a deployment.
    world.run(&["preflight"]).await.expect(4);
    let open = world.run(&["--json", "preflight", "--closed", "0"]).await.expect(0).json();
    assert_eq!(open["closed"], 0, "{open:#}");
}

#[tokio::test]
async fn a_resolution_is_refused_while_a_process_does_not_poll() {
    let world = World::with_one_done().await.live();
    let worker = world.worker().await;
    world.tick("house").await;
    let action = world.live_action();
    worker.stop().await;
    let former = begin_former_tick(&world).await;
    let mut held = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["up"]);
    held.says("dashboard  ").await;
    let api = Api::new(api::link(&held).split("/login").next().unwrap()).token(&world, "act").await;
    let refused = api.answer("undo", &action).await;
    assert_eq!(refused.headers["retry-after"], "30", "{refused:?}");
    let detail = refused.expect(503)["detail"].to_string();
    assert!(detail.contains("does not poll yet") && detail.contains("nothing was changed"), "{detail}");
    let said = world.run(&["undo", &action]).await.expect(3);
    assert!(said.all().contains("does not poll yet"), "{said}");
    assert_eq!(world.vault.state("rent"), "done");
    drop(former);
}

#[tokio::test]
async fn preflight_counts_idle_ticks_without_replaying_all_and_refuses_more_than_allowed() {
    let world = World::new().await;
    world.vault.matter("house");
    let _worker = world.worker().await;
    for _ in 0..4 {
        world.tick("house").await;
    }
    let found = wait::until("the ended ticks to be listed", async || {
        let found = world.run(&["--json", "preflight", "--closed", "2"]).await.expect(0).json();
        (found["closed"].as_u64().unwrap() >= 4).then_some(found)
    })
    .await;
    let idle =
        found["shapes"].as_array().unwrap().iter().find(|one| one["workflow_type"] == "StewardWorkflow").unwrap();
    assert_eq!((&idle["closed"], &idle["events"]), (&json!(2), &json!(6)), "{found:#}");
    let refused = world.run(&["preflight", "--max", "3"]).await.expect(3);
    assert!(refused.all().contains("more than --max 3") && refused.all().contains("give "), "{refused}");
}

/// A tick that waits for its clerk for ever.
struct OpenTick {
    world: World,
    _worker: Running,
    _clerk: Clerk,
    _gate: tokio::sync::watch::Sender<bool>,
}

impl OpenTick {
    async fn begin() -> Self {
        let (gate, opened) = gate();
        let says = move |_: &_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)));
        let clerk = Clerk::start(says).await;
        let world = World::with_one_done().await.live().asking(&clerk);
        let worker = world.worker().await;
        let _ = world.begin("house").await;
        wait::until("the clerk to be asked", async || (clerk.asked().len() == 1).then_some(())).await;
        Self { world, _worker: worker, _clerk: clerk, _gate: gate }
    }
}

/// Whether a schedule is paused, and its note.
async fn state_of(world: &World, id: &str) -> (bool, String) {
    let described: Value =
        serde_json::from_str(&world.temporal(&["schedule", "describe", "-s", id, "-o", "json"]).await).unwrap();
    let state = &described["schedule"]["state"];
    (state["paused"].as_bool().unwrap_or_default(), state["notes"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_drain_waits_for_open_runs_and_its_end_takes_up_what_came_meanwhile() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::with_one_done().await.live().asking(&clerk);
    world.vault.matter("garden");
    world.vault.task("mow", "garden");
    world.vault.matter("attic");
    let (worker, api) = api::up(&world).await;
    world.hold_schedule("al-steward-attic").await;
    let tick = world.begin("house").await;
    wait::until("the clerk to be asked", async || (clerk.asked().len() == 1).then_some(())).await;

    // The environment of the command is another one than that of the process.
    let elsewhere = world.steward.with("STEWARD_CADENCE_MATTER_SECONDS", 600).with("STEWARD_TASK_QUEUE", "elsewhere");
    let mut drain = elsewhere.start(&["drain"]);
    drain.says("waiting for open runs to end").await;
    wait::until("the schedules to be paused", async || state_of(&world, "al-steward-house").await.0.then_some(()))
        .await;
    wait::until("the routines to be paused", async || state_of(&world, "al-signal-router").await.0.then_some(())).await;
    assert!(state_of(&world, "al-steward-house").await.1.contains("drained"));
    // What comes during the drain: a signal, a new matter, a click.
    world.vault.signal("s2", &Signal::done("mow"));
    world.vault.matter("cellar");
    wait::until("the new matter's schedule", async || {
        let listed = world.json(&["schedules", "list"]).await;
        listed.as_array().unwrap().iter().any(|row| row["id"] == "al-steward-cellar").then_some(())
    })
    .await;
    assert!(state_of(&world, "al-steward-cellar").await.0, "a new schedule is made paused");
    let api = api.token(&world, "act").await;
    let refused = api.answer("undo", "ffffffffffffffff").await;
    assert_eq!(refused.status, 404, "an unknown action stays unknown: {refused:?}");
    assert!(world.run(&["tick", "garden"]).await.expect(3).all().contains("drains the vault"));
    assert!(drain.status().is_none(), "it must wait for the open run");
    open.send_replace(true);
    tick.report().await;
    let ended = drain.ends().await;
    assert_eq!(ended.code(), Some(0), "{}{}", drain.out(), drain.err());
    assert!(drain.out().contains("drained: no run is under way"), "{}", drain.out());
    let action = world.live_action();
    let refused = api.answer("undo", &action).await;
    assert_eq!((refused.status, refused.headers["retry-after"].to_str().unwrap()), (503, "300"), "{refused:?}");
    assert_eq!(clerk.asked().len(), 1, "nothing began during the drain");

    // The new build starts while the drain stands, and leaves the schedules paused.
    worker.stop().await;
    let once = world.run(&["up", "--once"]).await.expect(3);
    assert!(once.all().contains("nothing was ticked") && once.all().contains("drains the vault"), "{once}");
    let _next = api::up(&world).await;
    assert!(state_of(&world, "al-steward-garden").await.0);
    assert_eq!(world.vault.state("mow"), "open");
    elsewhere.run(&["drain", "--end"]).await.expect(0);
    let described = world.temporal(&["schedule", "describe", "-s", "al-steward-house", "-o", "json"]).await;
    assert!(described.contains(&world.queue) && !described.contains("elsewhere"), "{described}");
    assert!(!described.contains("\"600s\""), "{described}");
    wait::until("the owed wake", async || (world.live_actions().len() == 2).then_some(())).await;
    assert_eq!(world.vault.state("mow"), "done");
    for id in ["al-steward-house", "al-steward-cellar", "al-signal-router"] {
        assert!(!state_of(&world, id).await.0, "{id} is still paused");
    }
    assert_eq!(state_of(&world, "al-steward-attic").await, (true, "begun by hand in tests".to_owned()));
    world.run(&["undo", &action]).await.expect(0);
}

#[tokio::test]
async fn a_drain_that_somebody_ends_is_not_reported_as_done() {
    let open = OpenTick::begin().await;
    let world = &open.world;
    let mut drain = world.steward.start(&["drain"]);
    drain.says("waiting for open runs to end").await;
    world.run(&["drain", "--end"]).await.expect(0);
    assert_eq!(drain.ends().await.code(), Some(1), "{}", drain.out());
    assert!(drain.err().contains("somebody ended the drain"), "{}", drain.err());
    wait::until("the schedules to run", async || (!state_of(world, "al-steward-house").await.0).then_some(())).await;
}

#[tokio::test]
async fn a_run_that_nobody_has_begun_holds_no_start() {
    let world = World::with_one_done().await.live();
    world.begin_as("stray", "SomeWorkflow", &json!({"a": 1})).await;
    world.begin_as("invalid", "StewardWorkflow", &json!({"a": 1})).await;
    let found = world.run(&["--json", "preflight"]).await.expect(0).json();
    assert_eq!((&found["open"], &found["not_begun"]), (&json!(2), &json!(2)), "{found:#}");
    let _worker = world.worker().await;
    world.tick("house").await;
    let failed = wait::until("the failed run to be listed", async || {
        let found = world.run(&["--json", "preflight"]).await.json();
        (found["closed"].as_u64() >= Some(2)).then_some(found)
    })
    .await;
    let breaking = failed["shapes"].as_array().unwrap().iter().filter(|one| one["outcome"]["kind"] != "safe").count();
    assert_eq!(breaking, 0, "an argument that no build reads is no fault of this one: {failed:#}");
}

#[tokio::test]
async fn an_interrupted_drain_resumes_the_schedules() {
    let open = OpenTick::begin().await;
    let world = &open.world;
    let mut drain = world.steward.start(&["drain"]);
    wait::until("the schedules to be paused", async || state_of(world, "al-steward-house").await.0.then_some(())).await;
    drain.send(Sent::INT);
    assert_eq!(drain.ends().await.code(), Some(1), "{}", drain.err());
    assert!(drain.out().contains("interrupted"), "{}", drain.out());
    let (paused, note) = state_of(world, "al-steward-house").await;
    assert!(!paused && note.contains("the drain has ended"), "{note}");
    assert_eq!(world.json(&["status"]).await["paused"], Value::Null);
}
