//! Runs worth recording, played on a real server.
//!
//! Each scene ends with the id of its run. Every test run plays all scenes and replays the new recordings. With
//! `STEWARD_RECORD=1` the ones that `tests/histories/` lacks are kept there.

use super::assistant;
use super::wiki_scenes::{measure_wiki_claims, override_wiki_run, restage_wiki_run, revise_wiki_run, verify_wiki_run};
use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use futures::future::{FutureExt, LocalBoxFuture};
use serde_json::{Value, json};
use std::path::PathBuf;
use steward_domain::signals::stream::{EventStatus, IncomingEvent, StreamEvent};
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::fleet::Fleet;
use steward_tests::plane::{ISSUE, KEY, PROJECT, Plane, WORKSPACE};
use steward_tests::postgres;
use steward_tests::run;
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// Scenes that run at the same time.
const AT_ONCE: usize = 4;

/// The world of a scene, and the id of its run.
pub(crate) type Played = (World, String);

type Scene = fn(World) -> LocalBoxFuture<'static, Played>;

/// Every scene by the name of its file.
const SCENES: [(&str, Scene); 49] = [
    ("idle-tick", |w| idle(w).boxed_local()),
    ("shadow-tick", |w| once(w).boxed_local()),
    ("live-tick", |w| once(w.live()).boxed_local()),
    ("tenants-tick", |w| tenants_tick(w).boxed_local()),
    ("live-tick-of-many-tasks", |w| many(w.live()).boxed_local()),
    ("pending-tick", |w| pending(w.live()).boxed_local()),
    ("stopped-tick", |w| stopped(w).boxed_local()),
    ("clerk-failure", |w| asking(w, |_| Says::Status(500, None)).boxed_local()),
    ("clerk-rate-limited", |w| asking(w, |_| Says::Status(429, Some("3600".into()))).boxed_local()),
    ("clerk-fallback", |w| asking(w, |_| Says::Text("no JSON".into())).boxed_local()),
    ("rate-guarded", |w| rate_guarded(w).boxed_local()),
    ("changed-meanwhile", |w| changed_meanwhile(w.live()).boxed_local()),
    ("known-answer", |w| known_answer(w).boxed_local()),
    ("worker-lost", |w| worker_lost(w.live()).boxed_local()),
    ("undo", |w| undo(w.live()).boxed_local()),
    ("undo-refused", |w| undo_refused(w).boxed_local()),
    ("confirm", |w| answer_pending(w.live(), "confirm").boxed_local()),
    ("dismiss", |w| answer_pending(w.live(), "dismiss").boxed_local()),
    ("resolve-batch", |w| resolve_batch(w.live()).boxed_local()),
    ("undo-batch-with-tracker", |w| undo_batch_with_tracker(w).boxed_local()),
    ("extract", |w| extract(w, 6).boxed_local()),
    ("tracker", |w| tracker(w, false).boxed_local()),
    ("tracker-away", |w| tracker(w, true).boxed_local()),
    ("undo-with-tracker", |w| undo_with_tracker(w, false).boxed_local()),
    ("undo-with-tracker-away", |w| undo_with_tracker(w, true).boxed_local()),
    ("extract-held", |w| extract(w.set("STEWARD_CAPS_PER_MINUTE", 2), 6).boxed_local()),
    ("router", |w| router(w.live()).boxed_local()),
    ("router-idle", |w| quiet(w, "RouterWorkflow").boxed_local()),
    ("router-stopped", |w| router_stopped(w).boxed_local()),
    ("purge", |w| purge(w).boxed_local()),
    ("calibration", |w| calibration(w.live()).boxed_local()),
    ("set-ceiling", |w| set_ceiling(w, "ask").boxed_local()),
    ("set-ceiling-refused", |w| set_ceiling(w, "act").boxed_local()),
    ("wiki-add-source", |w| wiki_change(w, "sources/lease.md", "done").boxed_local()),
    ("wiki-change-refused", |w| wiki_change(w, "sources/gone.md", "refused").boxed_local()),
    ("wiki-ingest", |w| wiki_ingest(w, false).boxed_local()),
    ("wiki-ingest-draft", |w| wiki_ingest(w, true).boxed_local()),
    ("wiki-assistant", |w| assistant::submit_run(w).boxed_local()),
    ("wiki-ingest-model", |w| wiki_ingest_by_model(w).boxed_local()),
    ("wiki-query", |w| wiki_query(w).boxed_local()),
    ("wiki-file-back", |w| wiki_file_back(w).boxed_local()),
    ("wiki-eval", |w| wiki_eval(w).boxed_local()),
    ("wiki-review", |w| wiki_review(w).boxed_local()),
    ("wiki-fidelity", |w| measure_wiki_claims(w).boxed_local()),
    ("wiki-verifying", |w| verify_wiki_run(w).boxed_local()),
    ("wiki-revised", |w| revise_wiki_run(w).boxed_local()),
    ("wiki-overridden", |w| override_wiki_run(w).boxed_local()),
    ("wiki-staged-again", |w| restage_wiki_run(w).boxed_local()),
    ("drill", |w| run_of(w, "ReversibilityDrillWorkflow", &[]).boxed_local()),
];

/// The names of all scenes.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENES.iter().map(|(name, _)| *name)
}

/// The folder of the histories.
pub(crate) fn histories() -> PathBuf {
    run::project().join("tests/histories")
}

async fn idle(world: World) -> (World, String) {
    world.vault.matter("house");
    world.vault.task("rent", "house");
    tick(world).await
}

fn one_done(world: &World) {
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &Signal::done("rent"));
}

async fn tick(world: World) -> (World, String) {
    let _worker = world.worker().await;
    let tick = world.begin("house").await;
    tick.result().await;
    (world, tick.id().to_owned())
}

async fn once(world: World) -> (World, String) {
    one_done(&world);
    tick(world).await
}

/// On a tenant's queue a reservation is an ordinary activity.
async fn tenants_tick(mut world: World) -> (World, String) {
    let fleet = Fleet::new("recorded", postgres::server().await).await;
    let tenant = fleet.add_tenant("recorded", &[]).await;
    (world.vault, world.steward) = (tenant.vault, tenant.steward);
    (world.client, world.namespace, world.queue) = (fleet.client, fleet.namespace, "steward.recorded".into());
    once(world).await
}

async fn many(world: World) -> (World, String) {
    one_done(&world);
    for n in 0..10 {
        world.vault.task(&format!("t{n}"), "house");
        world.vault.signal(&format!("about-{n}"), &Signal::done(&format!("t{n}")));
    }
    tick(world).await
}

async fn pending(world: World) -> (World, String) {
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("rent") });
    tick(world).await
}

async fn stopped(world: World) -> (World, String) {
    one_done(&world);
    world.run(&["stop"]).await.expect(0);
    tick(world).await
}

async fn asking(world: World, script: fn(&steward_tests::clerk::Asked) -> Says) -> (World, String) {
    one_done(&world);
    let clerk = Clerk::start(script).await;
    tick(world.asking(&clerk)).await
}

async fn rate_guarded(world: World) -> (World, String) {
    one_done(&world);
    world.vault.task("other", "house");
    world.vault.signal("s2", &Signal::done("other"));
    tick(world.set("STEWARD_CAPS_PER_MINUTE", 1)).await
}

async fn changed_meanwhile(world: World) -> (World, String) {
    one_done(&world);
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = world.asking(&clerk);
    let worker = world.worker().await;
    let tick = world.begin("house").await;
    wait::until("the clerk to be asked", async || (!clerk.asked().is_empty()).then_some(())).await;
    let text = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", text.replace("do it", "did half of it"));
    open.send_replace(true);
    tick.result().await;
    assert_eq!(clerk.asked().len(), 1, "it was judged again by the same evidence");
    let now = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    assert!(now.contains("did half of it") && now.contains("state: done"), "{now}");
    drop(worker);
    (world, tick.id().to_owned())
}

/// Judged in shadow mode, and again by the same evidence once changes may be live.
async fn known_answer(world: World) -> (World, String) {
    one_done(&world);
    let clerk = Clerk::start(|_| Says::Verdict("likely_done", 0.97)).await;
    let (world, _) = tick(world.asking(&clerk)).await;
    let world = world.live();
    let worker = world.worker().await;
    // The start wakes the matter, because its change was only decided in shadow.
    wait::until("the change to be made", async || (world.live_actions().len() == 1).then_some(())).await;
    assert_eq!((clerk.asked().len(), world.vault.state("rent").as_str()), (1, "done"));
    let id = world.vault.records().pop().unwrap().draft.workflow.id;
    world.temporal(&["workflow", "result", "--workflow-id", &id]).await;
    drop(worker);
    (world, id)
}

async fn worker_lost(world: World) -> (World, String) {
    one_done(&world);
    let mut lost = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", "after-swap")).await;
    let tick = world.begin("house").await;
    lost.dies().await;
    let _worker = world.worker().await;
    tick.result().await;
    (world, tick.id().to_owned())
}

async fn undo(world: World) -> (World, String) {
    one_done(&world);
    let _worker = world.worker().await;
    world.tick("house").await;
    let undo = world.answer("undo", &world.live_action()).await;
    assert_eq!(undo.result().await["kind"], "done");
    (world, undo.id().to_owned())
}

async fn undo_refused(world: World) -> (World, String) {
    one_done(&world);
    let _worker = world.worker().await;
    let undo = world.answer("undo", "ffffffffffffffff").await;
    assert_eq!(undo.result().await["status"], 404);
    (world, undo.id().to_owned())
}

async fn answer_pending(world: World, kind: &'static str) -> (World, String) {
    let (world, _) = pending(world).await;
    let _worker = world.worker().await;
    let answer = world.answer(kind, world.vault.records()[0].draft.id.as_str()).await;
    assert_eq!(answer.result().await["kind"], "done");
    (world, answer.id().to_owned())
}

/// A batch of three resolutions: one id is unknown, and two changes are of one task, the older first.
async fn resolve_batch(world: World) -> (World, String) {
    one_done(&world);
    world.vault.task("other", "house");
    world.vault.signal("s2", &Signal::done("other"));
    let _worker = world.worker().await;
    world.tick("house").await;
    let done = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", done.replace("state: done", "state: open"));
    world.vault.signal("s3", &Signal::done("rent"));
    let again = async || {
        world.tick("house").await;
        (world.live_actions().len() == 3).then_some(())
    };
    wait::until("the task to be done once more", again).await;
    let mut actions = world.live_actions();
    actions.insert(1, "ffffffffffffffff".into());
    let undo = world.resolve_batch("undo", &actions).await;
    let answers = undo.result().await["resolutions"].clone();
    let kinds: Vec<&str> = answers.as_array().unwrap().iter().map(|a| a["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["done", "refused", "done", "done"], "{answers}");
    (world, undo.id().to_owned())
}

async fn undo_batch_with_tracker(world: World) -> (World, String) {
    let plane = Plane::start().await;
    let world = with_tracker(world, &plane).await;
    let _worker = world.worker().await;
    world.tick("house").await;
    world.begin_as("tracker", "TrackerWorkflow", &Value::Null).await.result().await;
    let undo = world.resolve_batch("undo", &world.live_actions()).await;
    let ended = undo.result().await;
    assert!(ended["resolutions"][0]["tracker"].is_string(), "{ended}");
    (world, undo.id().to_owned())
}

/// A world with a task that is an issue in this tracker, and a change of it with an owed delivery.
async fn with_tracker(world: World, plane: &Plane) -> World {
    let world = world.live().set("STEWARD_TRACKER_KIND", "plane").set("STEWARD_TRACKER_BASE_URL", &plane.url);
    let world = world.set("STEWARD_TRACKER_WORKSPACE", WORKSPACE).set("STEWARD_TRACKER_API_KEY", KEY);
    one_done(&world);
    world.vault.task_with("rent", "house", &format!("plane_issue_id: {ISSUE}\nplane_project_id: {PROJECT}\n"));
    world.worker().await.stop().await;
    // Otherwise the worker's own run could come first.
    let toggle = ["schedule", "toggle", "--schedule-id", "al-tracker-outbox", "--pause", "--reason", "scene"];
    world.temporal(&toggle).await;
    world
}

async fn tracker(world: World, away: bool) -> (World, String) {
    let plane = Plane::start().await;
    let world = with_tracker(world, &plane).await;
    if away {
        plane.is_down(503);
    }
    let _worker = world.worker().await;
    world.tick("house").await;
    let run = world.begin_as("tracker", "TrackerWorkflow", &Value::Null).await;
    let report = run.result().await;
    assert_eq!((&report["settled"], &report["failed"]), (&json!(u8::from(!away)), &json!(u8::from(away))), "{report}");
    (world, run.id().to_owned())
}

async fn undo_with_tracker(world: World, away: bool) -> (World, String) {
    let plane = Plane::start().await;
    let world = with_tracker(world, &plane).await;
    let _worker = world.worker().await;
    world.tick("house").await;
    world.begin_as("tracker", "TrackerWorkflow", &Value::Null).await.result().await;
    if away {
        plane.is_down(503);
    }
    let undo = world.answer("undo", &world.live_action()).await;
    let ended = undo.result().await;
    assert!(if away { ended["status"] == 502 } else { ended["tracker"].is_string() }, "{ended}");
    (world, undo.id().to_owned())
}

/// One run over several events, two of which are about nothing in the vault.
async fn extract(world: World, events: usize) -> (World, String) {
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.worker().await.stop().await;
    // Otherwise the worker's own run could read them first.
    let toggle = ["schedule", "toggle", "--schedule-id", "al-signal-extract", "--pause", "--reason", "scene"];
    world.temporal(&toggle).await;
    for n in 0..events {
        let text = if n < 2 { "Nothing of ours." } else { "The rent was paid." };
        let incoming =
            IncomingEvent { source_id: &n.to_string(), pattern: "mail:a.b.example", text, ..IncomingEvent::default() };
        let event = StreamEvent::new("mail", &incoming, Utc::now());
        world.vault.write(event.record_path().unwrap().as_str(), event.render());
    }
    let _worker = world.worker().await;
    let run = world.begin_as("extract", "ExtractWorkflow", &Value::Null).await;
    let report = run.result().await;
    assert!(report["extracted"].as_u64().unwrap() >= 2, "{report}");
    (world, run.id().to_owned())
}

/// Signals of a class that no steward judges; one of them has no target.
async fn router(world: World) -> (World, String) {
    world.vault.matter("house");
    for (name, target) in [("s1", "matter/house.md"), ("s2", "matter/gone.md")] {
        world.vault.write(&format!("signal/{name}.md"), owner_signal(target));
    }
    run_of(world, "RouterWorkflow", &["al-signal-router"]).await
}

fn owner_signal(target: &str) -> String {
    format!(
        "---\ntype: signal\ncreated: 2026-11-20T10:00:00Z\nsource_type: mail\nraw_quote: Bob takes it over\n\
         target_kind: matter\ntarget_path: {target}\ntarget_confidence: 0.97\neffect: mutation\n\
         mutation_proposal: {{class: context_edit, set: {{owner: Bob}}}}\neffect_confidence: 0.97\n\
         reasoning: It says so.\nstatus: unrouted\n---\n"
    )
}

async fn router_stopped(world: World) -> (World, String) {
    world.run(&["stop"]).await.expect(0);
    quiet(world, "RouterWorkflow").await
}

async fn quiet(world: World, workflow: &'static str) -> (World, String) {
    world.vault.matter("house");
    run_of(world, workflow, &["al-signal-router"]).await
}

/// Old events, more than one step removes.
async fn purge(world: World) -> (World, String) {
    for n in 0..501 {
        let incoming = IncomingEvent {
            source_id: &n.to_string(),
            pattern: "mail:a.b.example",
            text: "x",
            ..IncomingEvent::default()
        };
        let event = StreamEvent::new("mail", &incoming, Utc::now() - TimeDelta::days(9));
        let event = StreamEvent { status: EventStatus::Extracted, ..event };
        world.vault.write(event.record_path().unwrap().as_str(), event.render());
    }
    run_of(world, "PurgeWorkflow", &[]).await
}

/// One source with one judgement.
async fn calibration(world: World) -> (World, String) {
    one_done(&world);
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;
    run_of(world, "ReversalCalibrationWorkflow", &["al-reversal-calibration"]).await
}

/// A person says how far the source of one proposal may go. It has too few cases to be let act.
async fn set_ceiling(world: World, ceiling: &str) -> (World, String) {
    one_done(&world);
    let _worker = world.worker().await;
    world.tick("house").await;
    let input = json!({"source": "mail", "ceiling": ceiling, "by": "ann", "at": Utc::now()});
    let run = world.begin_as("set-ceiling", "SetCeilingWorkflow", &input).await;
    let output = run.result().await;
    assert_eq!(output["kind"], if ceiling == "act" { "refused" } else { "set" }, "{output}");
    (world, run.id().to_owned())
}

/// A wiki with a document that nobody has registered.
pub(crate) async fn wiki(world: &World) -> Running {
    let worker = world.worker().await;
    world.run(&["wiki", "init", "allotment"]).await.expect(0);
    world.vault.write("wiki/allotment/sources/lease.md", "# The lease\n\nThe lease of plot 12 ends in March.\n");
    worker
}

async fn wiki_change(world: World, path: &str, kind: &str) -> (World, String) {
    let _worker = wiki(&world).await;
    let request = json!({"kind": "add_source", "path": path, "upload": null});
    let input = json!({"wiki": "allotment", "by": "ann", "at": Utc::now(), "request": request});
    let run = world.begin_as("wiki-change", "WikiRunWorkflow", &input).await;
    let output = run.result().await;
    assert_eq!(output["kind"], kind, "{output}");
    (world, run.id().to_owned())
}

pub(crate) async fn wiki_ingest(world: World, draft: bool) -> (World, String) {
    let _worker = wiki(&world).await;
    let request = json!({"kind": "add_source", "path": "sources/lease.md", "upload": null});
    let input = json!({"wiki": "allotment", "by": "ann", "at": Utc::now(), "request": request});
    let added = world.begin_as("wiki-change", "WikiRunWorkflow", &input).await.result().await;
    let input = json!({"wiki": "allotment", "source": added["source"], "by": "ann", "at": Utc::now(), "draft": draft});
    let run = world.begin_as("wiki-ingest", "IngestWorkflow", &input).await;
    let output = run.result().await;
    assert_eq!(output["kind"], if draft { "pending" } else { "committed" }, "{output}");
    (world, run.id().to_owned())
}

/// A model answers 429 once, then writes the summary, checks its claim itself, and its page waits for a person.
async fn wiki_ingest_by_model(world: World) -> (World, String) {
    let clerk = Clerk::start(|asked| match asked.number {
        _ if asked.question.get("claims").is_some() => {
            let claim = json!({"id": asked.question["claims"][0]["id"], "support": "supports", "reason": ""});
            Says::Calls(vec![("report_claims".to_owned(), json!({"claims": [claim]}))])
        }
        1 => Says::Status(429, Some("1".to_owned())),
        2 => {
            let content = "It ends.[^1]\n\n[^1]: \"The lease of plot 12 ends in March.\"";
            let page = json!({"page_type": "summary", "title": "The lease", "content": content, "summary": "It ends."});
            Says::Calls(vec![("write_wiki_page".to_owned(), page)])
        }
        _ => Says::Text("I am done.".to_owned()),
    })
    .await;
    wiki_ingest(world.asking(&clerk), true).await
}

/// A model that is busy once, and then answers with the words of a page.
async fn wiki_query(world: World) -> (World, String) {
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("1".to_owned())),
        _ => Says::Text("It ends in March.".to_owned()),
    })
    .await;
    let (world, _) = wiki_ingest(world, false).await;
    let world = world.asking(&clerk);
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "question": "When does it end?", "by": "ann", "at": Utc::now()});
    let run = world.begin_as("wiki-query", "QueryWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "answered");
    (world, run.id().to_owned())
}

/// A verifier that is busy once, and then finds nothing.
async fn wiki_eval(world: World) -> (World, String) {
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Status(429, Some("1".to_owned())),
        _ => {
            let claims = asked.question["claims"].as_array().unwrap();
            let verdict = |claim: &Value| json!({"id": claim["id"], "support": "supports", "reason": ""});
            let claims: Vec<Value> = claims.iter().map(verdict).collect();
            Says::Calls(vec![("report_claims".to_owned(), json!({"claims": claims}))])
        }
    })
    .await;
    let (world, _) = wiki_ingest(world, false).await;
    let world = world.asking(&clerk);
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "claims": 10, "by": "ann", "at": Utc::now()});
    let run = world.begin_as("wiki-eval", "EvalWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "measured");
    (world, run.id().to_owned())
}

/// A verifier that reads the pages and misses one.
async fn wiki_review(world: World) -> (World, String) {
    let clerk = Clerk::start(|_| {
        let missing = json!([{"title": "The council", "reason": "It is named."}]);
        let report =
            json!({"contradictions": [], "stale": [], "missing_pages": missing, "missing_links": [], "gaps": []});
        Says::Calls(vec![("report_review".to_owned(), report)])
    })
    .await;
    let (world, _) = wiki_ingest(world, false).await;
    let world = world.asking(&clerk);
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "method": "review", "claims": 30, "by": "ann", "at": Utc::now()});
    let run = world.begin_as("wiki-review", "ReviewWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "committed");
    (world, run.id().to_owned())
}

async fn wiki_file_back(world: World) -> (World, String) {
    let (world, _) = wiki_ingest(world, false).await;
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "question": "When does the lease end?", "by": "ann", "at": Utc::now()});
    let answered = world.begin_as("wiki-query", "QueryWorkflow", &input).await.result().await;
    let input = json!({"wiki": "allotment", "answer": answered["answer"], "kind": "qa", "by": "ann", "at": Utc::now()});
    let run = world.begin_as("wiki-file-back", "FileBackWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "committed");
    (world, run.id().to_owned())
}

/// One run of a workflow without arguments, while these schedules are paused because they could be faster.
async fn run_of(world: World, workflow: &str, paused: &[&str]) -> (World, String) {
    world.worker().await.stop().await;
    for id in paused {
        world.temporal(&["schedule", "toggle", "--schedule-id", id, "--pause", "--reason", "scene"]).await;
    }
    let _worker = world.worker().await;
    let run = world.begin_as(workflow, workflow, &Value::Null).await;
    run.result().await;
    (world, run.id().to_owned())
}

/// The output of the Temporal CLI for a run, without details of the machine.
async fn recorded(world: &World, id: &str) -> String {
    let text = world.temporal(&["workflow", "show", "--workflow-id", id, "--output", "json"]).await;
    let mut history: Value = serde_json::from_str(&text).unwrap();
    scrub(&mut history);
    serde_json::to_string_pretty(&history).unwrap() + "\n"
}

/// Identities and the queues named after them contain the process and the host, and build ids the executable.
fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, inner)| match (name.as_str(), inner) {
            ("identity" | "binaryChecksum" | "buildId", Value::String(text)) => *text = "recorded".into(),
            ("name", Value::String(text)) if text.contains('@') => *text = "recorded".into(),
            (_, inner) => scrub(inner),
        }),
        Value::Array(all) => all.iter_mut().for_each(scrub),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn every_kind_of_run_replays_as_soon_as_it_is_recorded() {
    let played = futures::stream::iter(SCENES).map(async |(name, scene)| {
        let (world, id) = scene(World::new().await).await;
        let text = recorded(&world, &id).await;
        for word in [world.folder.to_str().unwrap(), &world.namespace] {
            assert!(!text.contains(word), "{name} tells of this machine: {word}");
        }
        let path = world.folder.join(format!("{name}.json"));
        std::fs::write(&path, &text).unwrap();
        world.run(&["preflight", "--from", path.to_str().unwrap()]).await.expect(0);
        (name, text)
    });
    let played: Vec<(&str, String)> = played.buffer_unordered(AT_ONCE).collect().await;
    if std::env::var_os("STEWARD_RECORD").is_none() {
        return;
    }
    std::fs::create_dir_all(histories()).unwrap();
    for (name, text) in played {
        let kept = histories().join(format!("{name}.json"));
        if !kept.exists() {
            std::fs::write(&kept, text).unwrap();
            eprintln!("recorded {}", kept.display());
        }
    }
}
