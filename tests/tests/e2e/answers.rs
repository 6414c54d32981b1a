//! A change and a person's resolutions of it: undo, confirm and dismiss, one by one and in a batch.

use serde_json::json;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_domain::steward::tick::{TaskCheckOutcome, TickReport};
use steward_tests::steward::Said;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

fn disposition(report: &TickReport) -> Disposition {
    match &report.evaluated[..] {
        [only] => match &only.ended {
            TaskCheckOutcome::Decided { disposition, .. } => *disposition,
            other => panic!("no decision: {other:?}"),
        },
        other => panic!("not one evaluation: {other:?}"),
    }
}

fn refused(said: Said, status: u16) {
    let answer = said.expect(3).json();
    assert_eq!((&answer["kind"], &answer["status"]), (&json!("refused"), &json!(status)), "{answer}");
    assert!(answer["message"].as_str().is_some_and(|m| !m.is_empty()), "{answer}");
}

/// An unknown source that is not certain enough to act upon.
fn hint(task: &str) -> Signal<'_> {
    Signal { effect_confidence: 0.9, ..Signal::done(task) }
}

#[tokio::test]
async fn a_live_change_and_its_undo_leave_git_nothing_but_event_records() {
    let world = World::with_one_done().await.live();
    world.vault.commit();
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    assert_eq!(disposition(&world.tick("house").await), Disposition::Live);
    assert_eq!(world.vault.state("rent"), "done");
    assert_eq!(world.vault.git(&["diff", "--numstat"]).trim(), "1\t1\ttask/rent.md");

    let action = world.live_action();
    let said = world.json(&["undo", &action[..8], "--reason", "not paid yet"]).await;
    assert_eq!((&said["kind"], &said["target"]), (&json!("done"), &json!("task/rent.md")), "{said}");
    assert_eq!(world.vault.read("task/rent.md"), original);
    assert_eq!(world.vault.git(&["diff"]), "");
    assert_eq!(world.vault.git(&["status", "--porcelain"]).trim(), "?? event/");
    world.verify_chain().await;
    let answer = world.vault.records().last().unwrap().draft.resolution.clone().unwrap();
    assert_eq!((answer.action_id.as_str(), answer.by.as_str()), (action.as_str(), "tester"));
    assert_eq!(answer.reason.as_deref(), Some("not paid yet"));

    refused(world.run(&["undo", &action[..8], "--json"]).await, 409);
    refused(world.run(&["undo", &action, "--json"]).await, 409);
    assert_eq!(world.vault.records().len(), 2);
}

#[tokio::test]
async fn an_undo_that_cannot_be_is_refused_with_its_status() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    assert_eq!(disposition(&world.tick("house").await), Disposition::Shadow);
    let shadow = world.vault.records()[0].draft.id.to_string();
    let before = world.vault.files();
    refused(world.run(&["undo", "ffffffffffffffff", "--json"]).await, 404);
    refused(world.run(&["undo", "ffff", "--json"]).await, 404);
    refused(world.run(&["undo", &shadow, "--json"]).await, 400);
    refused(world.run(&["confirm", &shadow, "--json"]).await, 400);
    refused(world.run(&["dismiss", &shadow, "--json"]).await, 400);
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
}

#[tokio::test]
async fn an_id_that_is_none_is_refused_at_once() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    for id in ["zz", "abc", "../../x", ""] {
        let said = world.run(&["undo", id, "--json"]).await;
        assert!(matches!(said.code, Some(2 | 3)), "{said}");
    }
}

#[tokio::test]
async fn an_undo_keeps_what_a_human_wrote_since() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    world.tick("house").await;
    let action = world.live_action();
    let ours = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", ours.replace("state: done", "state: archived"));
    refused(world.run(&["undo", &action, "--json"]).await, 409);
    assert_eq!(world.vault.state("rent"), "archived");

    world.vault.write("task/rent.md", ours.replace("- [ ] do it", "- [x] did it"));
    world.run(&["undo", &action]).await.expect(0);
    let now = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    assert!(now.contains("state: open") && now.contains("- [x] did it"), "{now}");
    world.verify_chain().await;
}

#[tokio::test]
async fn a_pending_proposal_happens_when_confirmed_and_can_be_undone() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &hint("rent"));
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    assert_eq!(disposition(&world.tick("house").await), Disposition::Pending);
    assert_eq!(world.vault.read("task/rent.md"), original);
    let record = world.vault.records().remove(0);
    assert!(record.draft.pending_confirmation && record.undo_recipe.is_none(), "{record:#?}");
    let proposal = record.draft.id.to_string();

    refused(world.run(&["undo", &proposal, "--json"]).await, 400);
    let said = world.json(&["confirm", &proposal]).await;
    assert_eq!(world.vault.state("rent"), "done");
    refused(world.run(&["confirm", &proposal, "--json"]).await, 409);
    refused(world.run(&["dismiss", &proposal, "--json"]).await, 409);
    let confirmed = said["action_id"].as_str().unwrap();
    assert_eq!(world.vault.records()[1].draft.kind, ActionKind::Confirmed);
    world.run(&["undo", confirmed]).await.expect(0);
    assert_eq!(world.vault.read("task/rent.md"), original);
    world.verify_chain().await;
}

#[tokio::test]
async fn a_proposal_is_confirmed_with_another_value_and_both_are_on_record() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &hint("rent"));
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    assert_eq!(disposition(&world.tick("house").await), Disposition::Pending);
    let proposal = world.vault.records()[0].draft.id.to_string();

    let said = world.run(&["confirm", &proposal, "--set", "deleted"]).await.expect(1);
    assert!(said.err.contains("`deleted` cannot be written into `state`"), "{said}");
    refused(world.run(&["confirm", &proposal, "--set", "open", "--json"]).await, 400);
    let said = world.json(&["confirm", &proposal, "--set", "archived"]).await;
    assert_eq!(world.vault.state("rent"), "archived");
    let records = world.vault.records();
    let states: Vec<_> = records.iter().map(|r| r.draft.proposed_state.unwrap().as_str()).collect();
    assert_eq!(states, ["done", "archived"]);
    assert!(records[1].draft.resolution.as_ref().unwrap().edited);
    world.run(&["undo", said["action_id"].as_str().unwrap()]).await.expect(0);
    assert_eq!(world.vault.read("task/rent.md"), original);
    world.verify_chain().await;
}

#[tokio::test]
async fn a_dismissed_proposal_changes_nothing_and_stays_dismissed() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &hint("rent"));
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    world.tick("house").await;
    let proposal = world.vault.records()[0].draft.id.to_string();
    world.run(&["dismiss", &proposal, "--reason", "still open"]).await.expect(0);
    assert_eq!(world.vault.records()[1].draft.kind, ActionKind::Dismissed);
    refused(world.run(&["confirm", &proposal, "--json"]).await, 409);
    assert_eq!(world.vault.read("task/rent.md"), original);
    world.verify_chain().await;
}

#[tokio::test]
async fn two_clicks_at_once_have_one_winner() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    world.tick("house").await;
    let action = world.live_action();
    let clicks =
        [world.answer("undo", &action).await, world.answer("undo", &action).await, world.answer("undo", &action).await];
    let mut won = 0;
    for click in &clicks {
        let answer = click.result().await;
        if answer["kind"] == json!("done") {
            won += 1;
        } else {
            assert_eq!(answer["status"], json!(409), "{answer}");
        }
    }
    assert_eq!((won, world.vault.records().len()), (1, 2));
    assert_eq!(world.vault.state("rent"), "open");
    world.verify_chain().await;
}

#[tokio::test]
async fn an_id_that_is_no_id_is_refused_as_that_and_not_as_unknown() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    for text in ["xyz1", "3f", "[click](http://here)"] {
        let said = world.run(&["undo", text, "--json"]).await.expect(3).json();
        assert_eq!(said["status"], json!(400), "{said}");
        assert!(said["message"].as_str().unwrap().contains("4 to 16 hex digits"), "{said}");
    }
    assert_eq!(world.run(&["undo", "ffff", "--json"]).await.expect(3).json()["status"], json!(404));
}

/// Makes live changes of this many tasks. Returns the earlier texts of the tasks.
async fn several_done(world: &World, tasks: usize) -> Vec<Vec<u8>> {
    world.vault.matter("house");
    for n in 0..tasks {
        world.vault.task(&format!("t{n}"), "house");
        world.vault.signal(&format!("s{n}"), &Signal::done(&format!("t{n}")));
    }
    let before = (0..tasks).map(|n| world.vault.read(&format!("task/t{n}.md"))).collect();
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;
    assert_eq!(world.live_actions().len(), tasks);
    before
}

fn kinds(world: &World, kind: ActionKind) -> usize {
    world.vault.records().iter().filter(|r| r.draft.kind == kind).count()
}

#[tokio::test]
async fn several_changes_are_undone_with_one_click_and_a_refused_one_stops_no_other() {
    let world = World::new().await.live();
    let before = several_done(&world, 3).await;
    let _worker = world.worker().await;
    let actions = world.live_actions();
    let text = String::from_utf8(world.vault.read("task/t1.md")).unwrap();
    let edited = world.vault.records().iter().position(|r| r.draft.target.slug() == "t1").unwrap();
    world.vault.write("task/t1.md", text.replace("state: done", "state: archived"));

    let ids: Vec<&str> = actions.iter().map(String::as_str).collect();
    let all = [&["undo"], ids.as_slice(), &["ffffffffffffffff", "--reason", "not yet", "--json"]].concat();
    let said = world.run(&all).await.expect(3).json();
    let answers = said["resolutions"].as_array().unwrap();
    assert_eq!(answers.iter().map(|a| a["action"].as_str().unwrap()).collect::<Vec<_>>(), all[1..5]);
    for (n, answer) in answers.iter().enumerate() {
        let status = if n == edited { json!(409) } else { json!(null) };
        let status = if n == 3 { json!(404) } else { status };
        assert_eq!(answer["status"], status, "{answer}");
    }
    assert_eq!(
        (world.vault.read("task/t0.md"), world.vault.read("task/t2.md")),
        (before[0].clone(), before[2].clone())
    );
    assert_eq!((world.vault.state("t1").as_str(), kinds(&world, ActionKind::Reversed)), ("archived", 2));
    for record in world.vault.records().iter().filter(|r| r.draft.kind == ActionKind::Reversed) {
        let answer = record.draft.resolution.as_ref().unwrap();
        assert_eq!(answer.batch_id.as_ref().map(ToString::to_string).as_deref(), said["batch_id"].as_str());
        assert_eq!((answer.by.as_str(), answer.reason.as_deref()), ("tester", Some("not yet")));
    }
    let rows = world.json(&["audit", "list"]).await;
    let of_the_click = rows.as_array().unwrap().iter().filter(|row| row["batch_id"] == said["batch_id"]).count();
    assert_eq!(of_the_click, 2);
    world.verify_chain().await;
    let said = world.run(&all).await.expect(3).json();
    assert!(said["resolutions"].as_array().unwrap().iter().all(|a| a["kind"] == "refused"), "{said}");
}

#[tokio::test]
async fn of_two_changes_of_one_task_both_are_undone_in_whatever_order_they_are_named() {
    let world = World::with_one_done().await.live();
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    world.tick("house").await;
    let done = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", done.replace("state: done", "state: open"));
    world.vault.signal("s2", &Signal::done("rent"));
    let again = async || {
        world.tick("house").await;
        (world.live_actions().len() == 2).then_some(())
    };
    wait::until("the task to be done once more", again).await;
    let actions = world.live_actions();
    let said = world.json(&["undo", &actions[0], &actions[1]]).await;
    assert!(said["resolutions"].as_array().unwrap().iter().all(|a| a["kind"] == "done"), "{said}");
    assert_eq!(world.vault.read("task/rent.md"), original);
}

#[tokio::test]
async fn a_crash_in_the_midst_of_many_answers_loses_and_doubles_none() {
    for point in ["before-indexing:2", "after-swap:2", "after-filing:3"] {
        let world = World::new().await.live();
        let before = several_done(&world, 4).await;
        let mut worker = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", point)).await;
        let undo = world.resolve_batch("undo", &world.live_actions()).await;
        worker.dies().await;
        assert!((1..4).contains(&kinds(&world, ActionKind::Reversed)), "{point}: in the midst");
        let _worker = world.worker().await;
        let said = undo.result().await;
        let answers = said["resolutions"].as_array().unwrap();
        assert!(answers.len() == 4 && answers.iter().all(|a| a["kind"] == "done"), "{point}: {said}");
        for (n, text) in before.iter().enumerate() {
            assert_eq!(&world.vault.read(&format!("task/t{n}.md")), text, "{point}");
        }
        let filed = [ActionKind::Action, ActionKind::Reversed, ActionKind::Lowered].map(|kind| kinds(&world, kind));
        assert_eq!(filed, [4, 4, 2], "{point}: every two of them are a step back");
        world.verify_chain().await;
    }
}

#[tokio::test]
async fn what_is_no_click_of_many_fails_and_changes_nothing() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    let before = world.vault.files();
    for actions in [Vec::new(), (0..201).map(|n| format!("{n:016x}")).collect::<Vec<_>>()] {
        let failure = world.resolve_batch("undo", &actions).await.failure().await;
        assert!(failure.contains("expected 1 to 200"), "{failure}");
    }
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
    world.run(&["confirm", "aaaa", "bbbb", "--set", "done"]).await.expect(1);
}
