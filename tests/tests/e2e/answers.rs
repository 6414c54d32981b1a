//! A change, and what a human makes of it: undo, confirm, dismiss.

use serde_json::json;
use steward_domain::audit::ActionKind;
use steward_domain::plan::Landing;
use steward_domain::tick::{TaskEnd, TickReport};
use steward_tests::steward::Said;
use steward_tests::vault::Signal;
use steward_tests::world::World;

fn landing(report: &TickReport) -> Landing {
    match &report.evaluated[..] {
        [only] => match &only.ended {
            TaskEnd::Decided { landing, .. } => *landing,
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

/// A source nobody knows, not sure enough to act on.
fn hint(task: &str) -> Signal<'_> {
    Signal { effect_confidence: 0.9, ..Signal::done(task) }
}

#[tokio::test]
async fn a_live_change_and_its_undo_leave_git_nothing_but_event_records() {
    let world = World::with_one_done().await.live();
    world.vault.commit();
    let original = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    assert_eq!(landing(&world.tick("house").await), Landing::Live);
    assert_eq!(world.vault.state("rent"), "done");
    assert_eq!(world.vault.git(&["diff", "--numstat"]).trim(), "1\t1\ttask/rent.md");

    let action = world.live_action();
    let said = world.json(&["undo", &action[..8], "--reason", "not paid yet"]).await;
    assert_eq!((&said["kind"], &said["target"]), (&json!("done"), &json!("task/rent.md")), "{said}");
    assert_eq!(world.vault.read("task/rent.md"), original);
    assert_eq!(world.vault.git(&["diff"]), "");
    assert_eq!(world.vault.git(&["status", "--porcelain"]).trim(), "?? event/");
    world.verify_chain().await;
    let answer = world.vault.records().last().unwrap().draft.answers.clone().unwrap();
    assert_eq!((answer.of.as_str(), answer.by.as_str()), (action.as_str(), "tester"));
    assert_eq!(answer.reason.as_deref(), Some("not paid yet"));

    refused(world.run(&["undo", &action[..8], "--json"]).await, 409);
    refused(world.run(&["undo", &action, "--json"]).await, 409);
    assert_eq!(world.vault.records().len(), 2);
}

#[tokio::test]
async fn an_undo_that_cannot_be_is_refused_with_its_status() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    assert_eq!(landing(&world.tick("house").await), Landing::Shadow);
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
    assert_eq!(landing(&world.tick("house").await), Landing::Pending);
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
    assert_eq!(landing(&world.tick("house").await), Landing::Pending);
    let proposal = world.vault.records()[0].draft.id.to_string();

    let said = world.run(&["confirm", &proposal, "--set", "deleted"]).await.expect(1);
    assert!(said.err.contains("`deleted` cannot be written into `state`"), "{said}");
    refused(world.run(&["confirm", &proposal, "--set", "open", "--json"]).await, 400);
    let said = world.json(&["confirm", &proposal, "--set", "archived"]).await;
    assert_eq!(world.vault.state("rent"), "archived");
    let records = world.vault.records();
    let states: Vec<_> = records.iter().map(|r| r.draft.proposed_state.unwrap().word()).collect();
    assert_eq!(states, ["done", "archived"]);
    assert!(records[1].draft.answers.as_ref().unwrap().edited);
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
