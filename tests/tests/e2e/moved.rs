//! Notes that people rename, move and swap: everything that Steward keeps about them follows.

use crate::mapped::{NOTE, TASK, accepted, put_signal, read, wait_for_action, worker};
use serde_json::Value;
use std::fs;
use steward_tests::wait;
use steward_tests::world::World;

const MATTER: &str = "Projekte/Hausbau/Dach reparieren.md";

/// The stewards' schedules, as `schedules list` shows them.
async fn schedules(world: &World) -> Vec<Value> {
    let rows = world.json(&["schedules", "list"]).await;
    let of_matters = |row: &&Value| row["id"].as_str().unwrap().starts_with("al-steward-");
    rows.as_array().unwrap().iter().filter(of_matters).cloned().collect()
}

fn rename(world: &World, from: &str, to: &str) {
    let (from, to) = (world.vault.path().join(from), world.vault.path().join(to));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
}

/// The action's target, once the index shows it under this path.
async fn wait_for_target(world: &World, action: &str, path: &str) {
    wait::until(&format!("the action to be about {path}"), async || {
        let rows = world.json(&["audit", "list"]).await;
        let found = rows.as_array().unwrap().iter().find(|row| row["id"] == action).cloned();
        found.filter(|row| row["target"] == path).map(drop)
    })
    .await;
}

/// Makes a live change of the task, and returns the action.
async fn change(world: &World) -> String {
    put_signal(world, "s1", "[[Dachdecker Müller bezahlen]]");
    wait_for_action(world, "live").await["id"].as_str().unwrap().to_owned()
}

async fn verify_chain(world: &World) {
    assert_eq!(world.json(&["audit", "verify"]).await["faults"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_renamed_project_and_task_keep_their_schedule_and_their_undo() {
    let world = accepted().await.live();
    let _worker = worker(&world).await;
    let action = change(&world).await;
    let before = wait::until("the schedule", async || schedules(&world).await.into_iter().next()).await;
    let id = before["id"].as_str().unwrap().to_owned();
    world.temporal(&["schedule", "toggle", "--schedule-id", &id, "--pause", "--reason", "on holiday"]).await;

    // Obsidian renames the project and rewrites the links to it; then the person renames the task.
    let (matter, task) = ("Projekte/Dach neu.md", "Aufgaben/Müller.md");
    rename(&world, MATTER, matter);
    world.vault.write(TASK, read(&world, TASK).replace("[[dach REPARIEREN]]", "[[Dach neu]]"));
    rename(&world, TASK, task);
    wait_for_target(&world, &action, task).await;
    let after = wait::until("the schedule of the renamed project alone", async || {
        let all = schedules(&world).await;
        (all.len() == 1 && all[0]["id"] != id.as_str()).then(|| all[0].clone())
    })
    .await;
    assert!(after["id"].as_str().unwrap().starts_with("al-steward-dach-neu-"), "{after:#}");
    assert!(after.to_string().contains("on holiday") && after["paused"] == true, "{after:#}");

    // What was kept about the task is there under its new name.
    let why = world.json(&["why", task]).await;
    assert_eq!(why["decided"]["id"], action.as_str(), "{why:#}");
    world.run(&["undo", &action]).await.expect(0);
    assert_eq!(read(&world, task), NOTE.replace("[[dach REPARIEREN]]", "[[Dach neu]]"));
    verify_chain(&world).await;
    assert_eq!(world.json(&["moved"]).await, Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_rename_while_nothing_runs_is_found_at_the_next_start_also_if_the_path_is_taken() {
    let world = accepted().await.live();
    let running = worker(&world).await;
    let action = change(&world).await;
    running.stop().await;
    let task = "Archiv/2026/Müller.md";
    rename(&world, TASK, task);
    let taken = NOTE.replace("todo", "doing");
    world.vault.write(TASK, &taken);
    let _worker = worker(&world).await;
    wait_for_target(&world, &action, task).await;
    world.run(&["undo", &action]).await.expect(0);
    assert_eq!((read(&world, task).as_str(), read(&world, TASK)), (NOTE, taken));
    verify_chain(&world).await;
}

#[tokio::test]
async fn a_note_that_cannot_be_recognised_is_asked_about_until_a_person_says_where_it_is() {
    let world = accepted().await.live();
    let _worker = worker(&world).await;
    let action = change(&world).await;
    // Another machine renamed it and wrote into it, so nothing of it is the same.
    let task = "Aufgaben/Müller.md";
    let text = format!("{}- [ ] Termin\n", read(&world, TASK).replace("✅ done", "doing"));
    fs::remove_file(world.vault.path().join(TASK)).unwrap();
    world.vault.write(task, &text);
    let lost = wait::until("the note to be missed", async || {
        let lost = world.json(&["moved"]).await;
        lost[0]["candidates"].as_array().filter(|some| !some.is_empty())?;
        Some(lost)
    })
    .await;
    assert_eq!((&lost[0]["path"], &lost[0]["candidates"][0]), (&TASK.into(), &task.into()));
    let refused = world.run(&["undo", &action]).await.expect(3);
    assert!(refused.err.contains(task) || refused.out.contains(task), "{} {}", refused.out, refused.err);
    let status = world.run(&["status"]).await.expect(0).out;
    assert!(status.contains("steward moved") && status.contains(task), "{status}");
    // It could be the lost one, so nothing is changed in it without a person.
    put_signal(&world, "s2", task);
    wait::until("a question or a proposal that nobody may confirm", async || {
        let rows = world.json(&["audit", "list"]).await;
        let found = rows.as_array().unwrap().iter().find(|row| row["target"] == task).cloned();
        found.filter(|row| row["disposition"] != "live")
    })
    .await;
    assert_eq!(read(&world, task), text);
    world.run(&["moved", TASK, "Aufgaben/Nirgends.md"]).await.expect(1);
    world.run(&["moved", TASK, task]).await.expect(0);
    wait_for_target(&world, &action, task).await;
    assert_eq!(world.json(&["moved"]).await, Value::Array(Vec::new()));
    verify_chain(&world).await;
}

#[tokio::test]
async fn schedules_that_are_applied_by_hand_follow_a_rename_too() {
    let world = accepted().await.live();
    let running = worker(&world).await;
    let before = wait::until("the schedule", async || schedules(&world).await.into_iter().next()).await;
    let id = before["id"].as_str().unwrap();
    world.temporal(&["schedule", "toggle", "--schedule-id", id, "--pause", "--reason", "on holiday"]).await;
    running.stop().await;
    rename(&world, MATTER, "Projekte/Dach neu.md");
    world.vault.write(TASK, read(&world, TASK).replace("[[dach REPARIEREN]]", "[[Dach neu]]"));
    world.run(&["schedules", "apply"]).await.expect(0);
    let [after] = schedules(&world).await.try_into().unwrap();
    assert!(after["id"].as_str().unwrap().starts_with("al-steward-dach-neu-"), "{after:#}");
    assert!(after.to_string().contains("on holiday") && after["paused"] == true, "{after:#}");
    verify_chain(&world).await;
}

#[tokio::test]
async fn a_project_that_was_renamed_and_changed_at_once_is_missed_and_found_by_its_name() {
    let world = accepted().await.live();
    let _worker = worker(&world).await;
    let action = change(&world).await;
    fs::remove_file(world.vault.path().join(MATTER)).unwrap();
    world.vault.write("Projekte/Dach neu.md", "---\nstatus: active\n---\nAnother machine wrote this.\n");
    let lost = wait::until("the project to be missed", async || {
        let lost = world.json(&["moved"]).await;
        let found = lost.as_array().unwrap().iter().find(|note| note["path"] == MATTER).cloned();
        found.filter(|note| note["candidates"] == serde_json::json!(["Projekte/Dach neu.md"]))
    })
    .await;
    assert_eq!(lost["path"], MATTER);
    let said = world.run(&["moved", MATTER, "dach neu"]).await.expect(0);
    assert!(said.out.contains("tasks that still link to the old name: 1"), "{said}");
    world.vault.write(TASK, read(&world, TASK).replace("[[dach REPARIEREN]]", "[[Dach neu]]"));
    wait::until("the schedule to follow", async || {
        let all = schedules(&world).await;
        (all.len() == 1 && all[0]["id"].as_str().unwrap().starts_with("al-steward-dach-neu-")).then_some(())
    })
    .await;
    world.run(&["undo", &action]).await.expect(0);
    verify_chain(&world).await;
}
