//! Mails lead to changes of all four classes, each with its undo.

use crate::extract::{arrives, is_about_an_event, until_status};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;
use steward_domain::signals::stream::EventStatus;
use steward_tests::clerk::{Asked, Clerk, Says};
use steward_tests::wait;
use steward_tests::world::World;

/// Each mail ends with the change that its clerk proposes.
fn proposed(asked: &Asked) -> Value {
    let text = asked.question["event"]["text"].as_str().unwrap();
    let (target, mutation) = match text.split_whitespace().last().unwrap() {
        "owner" => ("house", json!({"class": "context_edit", "set": {"owner": "Bob"}})),
        "moves" => ("garden", json!({"class": "parent_matter", "set": {"parent_matter": "farm"}})),
        "joins" => ("house", json!({"class": "related", "add": {"related_to": "Eve"}})),
        "done" => ("rent", json!({"class": "state_change", "set": {"state": "done"}})),
        other => panic!("no mail ends with {other}"),
    };
    let offers = asked.question["candidates"].as_array().unwrap();
    let is_it = |offer: &&Value| offer["name"] == target;
    let target = offers.iter().find(is_it).unwrap_or_else(|| panic!("{target} is not offered: {offers:?}"));
    let score = |offer: &Value| if offer == target { 0.99 } else { 0.1 };
    let scores: BTreeMap<&str, f64> = offers.iter().map(|o| (o["ref"].as_str().unwrap(), score(o))).collect();
    json!({"signals": [{
        "quote": text, "target": target["ref"], "scores": scores, "effect": "mutation", "mutation": mutation,
        "effect_confidence": 0.97, "reasoning": "It says so.",
    }]})
}

async fn mails() -> (World, Clerk) {
    let clerk = Clerk::start(|asked| {
        if is_about_an_event(asked) {
            return Says::Text(proposed(asked).to_string());
        }
        Says::Verdict(if asked.task() == "task/rent.md" { "likely_done" } else { "still_active" }, 0.97)
    })
    .await;
    let world = World::new().await.asking(&clerk);
    world.vault.matter("house");
    world.vault.matter("farm");
    world.vault.task("rent", "house");
    world.vault.task("garden", "house");
    for (id, text) in
        [("1", "house owner"), ("2", "garden of the farm moves"), ("3", "house joins"), ("4", "rent is done")]
    {
        arrives(&world, id, "", text);
    }
    (world, clerk)
}

fn classes(world: &World) -> Vec<MutationClass> {
    let mut all: Vec<_> = world.vault.records().iter().filter_map(|r| r.draft.class).collect();
    all.sort();
    all
}

async fn decided(world: &World) {
    wait::until("a decision of each class", async || (classes(world).len() >= 4).then_some(())).await;
    assert_eq!(classes(world), MutationClass::ALL);
}

#[tokio::test]
async fn four_mails_become_changes_of_the_four_classes_and_four_undos_give_every_byte_back() {
    let (world, _clerk) = mails().await;
    let world = world.live();
    let before: Vec<_> = ["matter/house.md", "matter/farm.md", "task/rent.md", "task/garden.md"]
        .map(|path| (path, world.vault.read(path)))
        .into();
    let _worker = world.worker().await;
    decided(&world).await;
    let says = |path: &str, words: &[&str]| {
        let text = String::from_utf8(world.vault.read(path)).unwrap();
        assert!(words.iter().all(|word| text.contains(word)), "{path}: {text}");
    };
    says("matter/house.md", &["owner: Bob\n", "Eve"]);
    says("task/garden.md", &["parent_matter: \"[[matter/farm]]\""]);
    says("task/rent.md", &["state: done"]);
    // A signal is routed once: another run applies nothing. It may meet the first run, or be the first to see the
    // steward's change for the fourth mail. A change whose record is not indexed yet would only look as if made by hand.
    let indexed = async || (world.json(&["status"]).await["counts"]["actions"].as_u64() >= Some(4)).then_some(());
    wait::until("the index to have all four", indexed).await;
    let again = world.begin_as("again", "RouterWorkflow", &Value::Null).await.result().await;
    let claimed = again["skipped"]["claimed"].clone();
    assert!(again == json!({}) || again == json!({"skipped": {"claimed": claimed}}), "{again}");
    for id in world.live_actions() {
        assert_eq!(world.answer("undo", &id).await.result().await["kind"], "done", "{id}");
    }
    for (path, bytes) in before {
        assert_eq!(world.vault.read(path), bytes, "{path}");
    }
    world.verify_chain().await;
}

#[tokio::test]
async fn in_shadow_four_mails_lead_to_four_records_and_no_change() {
    let (world, _clerk) = mails().await;
    let before = world.vault.files();
    let _worker = world.worker().await;
    decided(&world).await;
    let changed = world.vault.files().since_but_events(&before);
    let foreign: Vec<_> = changed.iter().filter(|l| !l.contains(" stream/") && !l.contains(" signal/")).collect();
    assert_eq!(foreign, Vec::<&String>::new());
}

#[tokio::test]
async fn more_events_than_one_run_may_read_are_read_by_runs_that_follow_at_once() {
    let world = World::new().await;
    // One sender may use a tenth of the calls of an hour.
    let world = world.set("STEWARD_CAPS_PER_MINUTE", 1_000).set("STEWARD_CAPS_PER_HOUR", 10_000);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let mut last = None;
    for n in 0..450 {
        last = Some(arrives(&world, &n.to_string(), "", &format!("Invoice {n}: the rent was paid.")));
    }
    let _worker = world.worker().await;
    until_status(&world, &last.unwrap(), EventStatus::Extracted).await;
    wait::until("every event to be read", async || {
        let listed = world.json(&["streams", "list"]).await;
        let mail = listed.as_array().unwrap().iter().find(|s| s["source"] == "mail")?;
        (mail["extracted"] == 450).then_some(())
    })
    .await;
    let runs =
        world.temporal(&["workflow", "list", "--query", "WorkflowType='ExtractWorkflow'", "--output", "json"]).await;
    assert!(runs.contains("CONTINUED_AS_NEW"), "{runs}");
}
