//! A task with an issue in a tracker: changes are reported and reverted there, without loss or repetition in an outage.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use steward_domain::action::audit::ActionKind;
use steward_domain::tracker::PlaneAction;
use steward_tests::plane::{ISSUE, KEY, OTHER_ISSUE, PROJECT, Plane, WORKSPACE, minutes_later};
use steward_tests::vault::Signal;
use steward_tests::world::World;
use steward_tests::{run, wait};
use steward_vault::files::crash::TRACKING;

/// A live world with a tracker, and the task `rent` that is an issue there.
async fn world(plane: &Plane) -> World {
    let world = World::with_one_done().await.live();
    world.vault.task_with("rent", "house", &format!("plane_issue_id: {ISSUE}\n"));
    tracked(world, plane)
}

/// The world with the tracker beside it.
pub(crate) fn tracked(world: World, plane: &Plane) -> World {
    let key = world.folder.join("plane.key");
    std::fs::write(&key, KEY).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    world
        .set("STEWARD_TRACKER_KIND", "plane")
        .set("STEWARD_TRACKER_BASE_URL", &plane.url)
        .set("STEWARD_TRACKER_WORKSPACE", WORKSPACE)
        .set("STEWARD_TRACKER_PROJECT", PROJECT)
        .set("STEWARD_TRACKER_KEY_FILE", key.display())
}

fn kinds(world: &World) -> Vec<ActionKind> {
    world.vault.records().iter().map(|r| r.draft.kind).collect()
}

async fn until_filed(world: &World, kind: ActionKind) {
    wait::until(&format!("a record {}", kind.as_str()), async || kinds(world).contains(&kind).then_some(())).await;
}

/// Runs the tracker's workflow until no delivery is owed.
pub(crate) async fn until_settled(world: &World) {
    let settled = async || {
        let status = world.json(&["status"]).await;
        (status["tracker"]["owed"] == json!(0)).then_some(())
    };
    let mut number = 0;
    wait::until("everything to be settled", async || {
        number += 1;
        world.begin_as(&format!("tracker-{number}"), "TrackerWorkflow", &Value::Null).await.result().await;
        settled().await
    })
    .await;
}

#[tokio::test]
async fn a_live_change_is_told_at_once_and_an_undo_takes_it_back() {
    let plane = Plane::start().await;
    let world = world(&plane).await;
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    world.tick("house").await;
    until_filed(&world, ActionKind::Tracked).await;
    assert_eq!((plane.state_of(ISSUE), plane.comments(ISSUE).len()), ("Done".into(), 1));
    let action = world.live_action();
    let record = &world.vault.records()[0];
    assert!(matches!(record.plane_action, Some(PlaneAction::Owed { .. })), "{record:#?}");
    assert!(record.undo_recipe.as_ref().unwrap().plane_revert.is_some());
    let shown = world.run(&["audit", "show", &action]).await.expect(0).out;
    assert!(shown.contains("tracker: comment made, state set; see event/steward-action-tracked-"), "{shown}");
    let why = world.run(&["why", "rent"]).await.expect(0).out;
    assert!(why.contains("tracker    comment made, state set"), "{why}");

    let said = world.json(&["undo", &action]).await;
    assert_eq!(said["tracker"], "comment removed, state restored", "{said}");
    assert_eq!((plane.state_of(ISSUE), plane.comments(ISSUE).len()), ("In Progress".into(), 0));
    assert_eq!(world.vault.read("task/rent.md"), original);
    let both = [ActionKind::Action, ActionKind::Tracked, ActionKind::Reversed, ActionKind::Tracked];
    assert_eq!(kinds(&world), both);
    let why = world.run(&["why", "rent"]).await.expect(0).out;
    assert!(why.contains("tracker    comment removed, state restored"), "{why}");
    world.verify_chain().await;
    let before = world.json(&["status"]).await["tracker"].clone();
    assert_eq!((&before["owed"], &before["failed"]), (&json!(0), &json!(0)), "{before}");
    world.json(&["index", "check"]).await;
    // No part of the key is in the vault or a history.
    for path in world.vault.files().paths() {
        assert!(!String::from_utf8_lossy(&world.vault.read(path)).contains(KEY), "{path}");
    }
    let listed = world.run(&["audit", "list"]).await.expect(0).out;
    assert_eq!(listed.matches(" sent to the tracker ").count(), 2, "{listed}");
}

#[tokio::test]
async fn a_tracker_that_is_away_is_recorded_shown_and_told_later() {
    let plane = Plane::start().await;
    plane.is_down(503);
    let world = world(&plane).await;
    world.vault.task_with("other", "house", &format!("plane_issue_id: {OTHER_ISSUE}\n"));
    world.vault.signal("s2", &Signal::done("other"));
    let worker = world.worker().await;
    let found = world.run(&["doctor", "--json"]).await.expect(4).json();
    let tracker = found.as_array().unwrap().iter().find(|f| f["check"] == "tracker").unwrap();
    assert!(tracker["found"].as_str().unwrap().contains("failed (503)"), "{tracker}");
    world.tick("house").await;
    let both_failed =
        async || (kinds(&world).iter().filter(|k| **k == ActionKind::TrackFailed).count() == 2).then_some(());
    wait::until("both first failures to be recorded", both_failed).await;
    assert_eq!((world.vault.state("rent"), world.vault.state("other")), ("done".into(), "done".into()));
    let failed: Vec<_> = world.vault.records().into_iter().filter(|r| r.partially_applied).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed[0].plane_action.as_ref().unwrap().missing_reason().unwrap().contains("503"), "{failed:#?}");
    let status = world.json(&["status"]).await["tracker"].clone();
    assert_eq!((&status["owed"], &status["failed"]), (&json!(2), &json!(2)), "{status}");
    assert!(status["last_error"].as_str().unwrap().contains("503"), "{status}");
    let shown = world.run(&["status"]).await.expect(0).out;
    assert!(shown.contains("2 owed, 2 failed") && shown.contains("503"), "{shown}");
    let action = world.vault.records()[0].draft.id.to_string();
    let shown = world.run(&["audit", "show", &action]).await.expect(0).out;
    assert!(shown.contains("are owed; tried ") && shown.contains("next try after"), "{shown}");

    // A delivery that was never sent is reverted without the tracker.
    let rent = world.vault.records().into_iter().find(|r| r.draft.target.slug() == "rent").unwrap();
    let said = world.json(&["undo", rent.draft.id.as_str()]).await;
    assert_eq!(said["tracker"], "nothing had been sent, and nothing will be", "{said}");

    worker.stop().await;
    plane.works();
    world.vault.lose_databases();
    let _worker = world.worker().await;
    wait::until("the other to be told", async || (plane.state_of(OTHER_ISSUE) == "Done").then_some(())).await;
    until_settled(&world).await;
    assert_eq!((plane.made(), plane.state_of(ISSUE)), (1, "In Progress".into()));
    assert_eq!(plane.comments(OTHER_ISSUE).len(), 1);
    world.verify_chain().await;
}

#[tokio::test]
async fn in_shadow_mode_only_an_undo_reaches_the_tracker() {
    let plane = Plane::start().await;
    let world = world(&plane).await;
    world.vault.task_with("other", "house", &format!("plane_issue_id: {OTHER_ISSUE}\n"));
    let worker = world.worker().await;
    world.tick("house").await;
    until_filed(&world, ActionKind::Tracked).await;
    plane.is_down(503);
    world.vault.signal("s2", &Signal::done("other"));
    world.tick("house").await;
    until_filed(&world, ActionKind::TrackFailed).await;
    let rent = world.vault.records().into_iter().find(|r| r.draft.target.slug() == "rent").unwrap();
    worker.stop().await;
    plane.works();

    let shadow = world.set("STEWARD_LIVE_MODE", "shadow");
    let worker = shadow.worker().await;
    shadow.json(&["undo", rent.draft.id.as_str()]).await;
    wait::until("the undo to be told", async || (plane.state_of(ISSUE) == "In Progress").then_some(())).await;
    shadow.begin_as("tracker-in-shadow", "TrackerWorkflow", &Value::Null).await.result().await;
    assert_eq!((plane.state_of(OTHER_ISSUE), plane.comments(OTHER_ISSUE).len()), ("In Progress".into(), 0));
    assert_eq!(shadow.json(&["status"]).await["tracker"]["owed"], json!(1));
    worker.stop().await;

    let live = shadow.live();
    let _worker = live.worker().await;
    wait::until("the other to be told", async || (plane.state_of(OTHER_ISSUE) == "Done").then_some(())).await;
}

#[tokio::test]
async fn an_undo_while_the_tracker_is_away_takes_the_vault_back_and_the_tracker_later() {
    let plane = Plane::start().await;
    let world = world(&plane).await;
    let original = world.vault.read("task/rent.md");
    let worker = world.worker().await;
    world.tick("house").await;
    until_filed(&world, ActionKind::Tracked).await;
    let action = world.live_action();
    plane.is_down(500);
    let said = world.run(&["undo", &action, "--json"]).await.expect(3).json();
    assert_eq!((&said["kind"], &said["status"]), (&json!("refused"), &json!(502)), "{said}");
    let message = said["message"].as_str().unwrap();
    assert!(message.contains("undone in the vault (see event/steward-action-reversed-"), "{message}");
    assert!(message.contains("failed (500)") && message.contains("is still owed"), "{message}");
    assert_eq!(world.vault.read("task/rent.md"), original, "the vault part is done");
    assert_eq!(plane.comments(ISSUE).len(), 1);
    let again = world.run(&["undo", &action, "--json"]).await.expect(3).json();
    assert_eq!(again["status"], 409, "{again}");
    until_filed(&world, ActionKind::TrackFailed).await;
    let status = world.json(&["status"]).await["tracker"].clone();
    assert_eq!((&status["owed"], &status["failed"]), (&json!(1), &json!(1)), "{status}");

    plane.works();
    worker.stop().await;
    let _worker = world.worker().await;
    wait::until("the issue to be put back", async || (plane.state_of(ISSUE) == "In Progress").then_some(())).await;
    until_settled(&world).await;
    assert_eq!((plane.comments(ISSUE).len(), plane.made()), (0, 1));
    world.verify_chain().await;
}

#[tokio::test]
async fn a_confirmed_change_is_told_and_shadow_pending_and_dismissed_ones_are_not() {
    let plane = Plane::start().await;
    let world = world(&plane).await;
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("rent") });
    let _worker = world.worker().await;
    world.tick("house").await;
    let pending = world.vault.records()[0].clone();
    assert!(pending.draft.pending_confirmation && pending.plane_action.is_none(), "{pending:#?}");
    world.tick("house").await;
    assert_eq!(plane.asked(), []);
    let said = world.json(&["confirm", pending.draft.id.as_str()]).await;
    until_filed(&world, ActionKind::Tracked).await;
    assert_eq!((plane.state_of(ISSUE), plane.comments(ISSUE).len()), ("Done".into(), 1));
    assert!(plane.comments(ISSUE)[0].html.contains("confirmed by tester"));
    let said = world.json(&["undo", said["action_id"].as_str().unwrap()]).await;
    assert_eq!(said["tracker"], "comment removed, state restored", "{said}");
    assert_eq!(plane.state_of(ISSUE), "In Progress");

    let other = Plane::start().await;
    let shadow = self::world(&other).await.set("STEWARD_LIVE_MODE", "shadow");
    let _worker = shadow.worker().await;
    shadow.tick("house").await;
    assert_eq!((shadow.vault.records()[0].plane_action.clone(), other.asked()), (None, vec![]));
}

#[tokio::test]
async fn a_matter_and_a_world_without_a_tracker_owe_nothing() {
    let plane = Plane::start().await;
    let world = world(&plane).await;
    let matter = format!("---\ntype: matter\nname: shed\nstate: open\nplane_issue_id: {ISSUE}\n---\n");
    world.vault.write("matter/shed.md", matter);
    let text = std::fs::read_to_string(world.vault.path().join("signal/s1.md")).unwrap();
    let about = text.replace("target_kind: task", "target_kind: matter").replace("task/rent.md", "matter/shed.md");
    std::fs::remove_file(world.vault.path().join("signal/s1.md")).unwrap();
    world.vault.write("signal/s2.md", about);
    world.vault.instinct("mail", 50);
    let worker = world.worker().await;
    world.tick("shed").await;
    let record = world.vault.records().remove(0);
    assert_eq!((record.draft.target.as_str(), record.plane_action), ("matter/shed.md", None));
    assert_eq!(record.undo_recipe.unwrap().plane_revert, None);
    let said = world.json(&["undo", record.draft.id.as_str()]).await;
    assert_eq!((said.get("tracker"), plane.asked()), (None, vec![]), "{said}");
    let plan = world.json(&["schedules", "plan"]).await;
    assert!(plan["routines"].to_string().contains("al-tracker-outbox"), "{plan:#}");
    worker.stop().await;

    let off = World::with_one_done().await.live();
    off.vault.task_with("rent", "house", &format!("plane_issue_id: {ISSUE}\nplane_project_id: {PROJECT}\n"));
    let _worker = off.worker().await;
    off.tick("house").await;
    let record = off.vault.records().remove(0);
    assert_eq!((record.plane_action, record.partially_applied), (None, false));
    let plan = off.json(&["schedules", "plan"]).await;
    assert!(!plan["routines"].to_string().contains("al-tracker-outbox"), "{plan:#}");
    let shown = off.run(&["status"]).await.expect(0).out;
    assert!(!shown.contains("tracker"), "{shown}");
}

/// A tick, its delivery, an undo and its delivery, with a crash during both deliveries.
async fn killed_on_the_way(point: &'static str, lose_databases: bool) {
    let what = format!("{point}, lost: {lose_databases}");
    let plane = Plane::start().await;
    let world = world(&plane).await;
    let back = matches!(point, "after-uncomment" | "after-transition-back");
    let fatal = world.steward.with("STEWARD_CRASH_AT", point);
    let mut worker = world.worker_with(if back { &world.steward } else { &fatal }).await;
    world.begin("house").await;
    if !back {
        worker.dies().await;
        if lose_databases {
            world.vault.lose_databases();
        }
        minutes_later(world.vault.path());
        worker = world.worker().await;
    }
    until_filed(&world, ActionKind::Tracked).await;
    until_settled(&world).await;
    assert_eq!((plane.state_of(ISSUE), plane.comments(ISSUE).len(), plane.made()), ("Done".into(), 1, 1), "{what}");
    let action = world.live_action();
    worker.stop().await;
    let mut worker = world.worker_with(&fatal).await;
    let undo = world.answer("undo", &action).await;
    if !matches!(point, "before-outbox" | "after-outbox" | "after-comment" | "after-transition") {
        worker.dies().await;
        if lose_databases {
            world.vault.lose_databases();
        }
    } else {
        worker.stop().await;
    }
    let _worker = world.worker().await;
    let ended = undo.result().await;
    assert!(ended["kind"] == "done" || ended["status"] == 502, "{what}: {ended}");
    until_settled(&world).await;
    assert_eq!((plane.state_of(ISSUE), plane.comments(ISSUE).len()), ("In Progress".into(), 0), "{what}");
    assert_eq!((plane.made(), world.vault.state("rent")), (1, "open".into()), "{what}");
    world.verify_chain().await;
}

#[tokio::test]
async fn a_process_that_is_killed_on_the_way_to_the_tracker_or_back_loses_and_doubles_nothing() {
    use futures::StreamExt;
    let both = TRACKING.into_iter().enumerate().map(|(n, point)| (point, n % 2 == 0));
    futures::stream::iter(run::choose_cases(both.collect()))
        .map(|(point, lost)| killed_on_the_way(point, lost))
        .buffer_unordered(4)
        .collect::<Vec<()>>()
        .await;
}
