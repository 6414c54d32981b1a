//! After a confirmation and its undo, every command and page reports the same, and none advises what cannot work.

use serde_json::json;
use steward_tests::api;
use steward_tests::vault::Signal;
use steward_tests::world::World;

#[tokio::test]
async fn after_an_undo_every_interface_reports_the_same() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("roof", "house");
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("roof") });
    let original = world.vault.read("task/roof.md");
    let (_up, api) = api::up(&world).await;
    let api = api.token(&world, "read").await;
    world.tick("house").await;
    let decision = world.vault.records()[0].draft.clone();
    assert!(decision.pending_confirmation && !decision.reasoning.is_empty(), "{decision:?}");
    let id = decision.id.as_str();

    // The command prints what undoes the confirmation, and so does a second one that is refused.
    let confirmed = world.run(&["confirm", id]).await.expect(0).out;
    let (_, undo) = confirmed.split_once("\nundo: steward undo ").unwrap();
    let refused = world.run(&["confirm", id]).await.expect(3).out;
    assert!(refused.contains("already confirmed by tester at "), "{refused}");
    assert!(refused.contains(&format!("`steward undo {}` undoes that", undo.trim())), "{refused}");
    let why = world.run(&["why", "roof"]).await.expect(0).out;
    assert!(why.contains(&format!("to change  `steward undo {}` ", undo.trim())), "{why}");
    world.run(&["undo", undo.trim(), "--reason", "not yet"]).await.expect(0);
    assert_eq!(world.vault.read("task/roof.md"), original);
    let refused = world.run(&["undo", id]).await.expect(3).out;
    assert!(refused.contains("and that was undone at ") && !refused.contains("steward undo"), "{refused}");

    let why = world.run(&["why", "roof"]).await.expect(0).out;
    let resolutions: Vec<&str> = why.lines().filter_map(|line| line.strip_prefix("resolution ")).collect();
    assert!(resolutions[0].contains(" confirmed by tester (action "), "{why}");
    assert!(resolutions[1].contains(" undone by tester: not yet (action "), "{why}");
    let advice: Vec<&str> = why.lines().filter_map(|line| line.strip_prefix("to change  ")).collect();
    assert!(advice.len() == 1 && advice[0].starts_with("a new signal: "), "{why}");
    let explained = world.run(&["signals", "explain", "s1"]).await.expect(0).out;
    assert!(
        explained.contains("\nto change    nothing: ") && explained.contains("\neffect       state to done ("),
        "{explained}"
    );
    assert!(advice[0].contains("not proposed again") && explained.contains("not proposed again"), "{explained}");

    let listed = world.run(&["audit", "list"]).await.expect(0).out;
    let kinds: Vec<&str> = listed.lines().skip(2).filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(kinds, ["undone", "confirmed", "decided"], "{listed}");
    let undone = world.vault.records().last().unwrap().draft.clone();
    assert_eq!((undone.reasoning.as_str(), undone.evidence.len()), ("", 1));
    let page = async |id: &str| api.get(&format!("/actions/{id}")).await.body;
    assert!(page(id).await.contains(&decision.reasoning));
    let of_the_undo = page(undone.id.as_str()).await;
    assert!(!of_the_undo.contains(&decision.reasoning) && of_the_undo.contains("not yet"), "{of_the_undo}");
    assert!(of_the_undo.contains("Signals that the decision cited"), "{of_the_undo}");
}

#[tokio::test]
async fn a_tick_under_a_stop_is_refused_and_starts_nothing() {
    let world = World::with_one_done().await;
    let worker = world.worker().await;
    world.run(&["stop", "--reason", "something is off"]).await.expect(0);
    let refused = world.run(&["tick", "house"]).await.expect(3).out;
    assert!(refused.starts_with("nothing was started: the vault was stopped by tester at "), "{refused}");
    assert!(refused.contains("something is off") && refused.contains("`steward resume`"), "{refused}");
    let refused = world.run(&["tick", "house", "--shadow", "--json"]).await.expect(3).json();
    assert_eq!((&refused["stopped"], &refused["stop"]["by"]), (&json!(true), &json!("tester")));
    world.run(&["resume"]).await.expect(0);
    let started = world.json(&["tick", "house"]).await;
    assert_eq!(started["workflow_id"], json!("al-steward-house-by-hand"));
    worker.stop().await;
}
