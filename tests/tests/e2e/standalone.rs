//! Resolutions while nothing runs: the command starts what it needs, and leaves nothing running.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use steward_tests::files::Files;
use steward_tests::vault::Signal;
use steward_tests::world::World;

/// The processes whose command line or standard input names this folder.
fn processes_on(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let names = |process: &PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let input = std::fs::read_link(process.join("fd/0")).unwrap_or_default();
        (line.contains(&folder.display().to_string()) || input.starts_with(folder)).then_some(line)
    };
    all.filter_map(|process| names(&process)).collect()
}

#[tokio::test]
async fn after_up_once_an_answer_is_taken_with_nothing_running_and_nothing_is_left() {
    let world = World::new().await.live();
    let vault = world.folder.join("example");
    let steward = world.without_server();
    steward.run(&["example", vault.to_str().unwrap()]).await.expect(0);
    let steward = steward.with("STEWARD_VAULT", vault.display());
    let before = Files::of(&vault);
    // The example has one unreadable record.
    let round = steward.run(&["up", "--once", "--json"]).await.expect(4).json();
    let landed = |how: &str| -> Vec<Value> {
        round["tasks"].as_array().unwrap().iter().filter(|said| said["disposition"] == how).cloned().collect()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let live = landed("live");
    assert!(!live.is_empty() && !landed("pending").is_empty(), "{round:#}");
    let after_round = Files::of(&vault);

    // The command that the round recommends.
    let advised = text(&round["undo"]);
    let id = advised.split_whitespace().nth(2).unwrap();
    let undone = steward.run(&["undo", id, "--json"]).await.expect(0).json();
    assert_eq!(undone["kind"], "done", "{undone}");
    let target = text(&undone["target"]);
    let changed: Vec<String> = Files::of(&vault).since_but_events(&after_round);
    assert_eq!(changed, [format!("~ {target}")], "the undo alone, and no tick beside it");
    assert!(!Files::of(&vault).since_but_events(&before).contains(&format!("~ {target}")), "its bytes are restored");

    let again = steward.run(&["undo", id, "--json"]).await.expect(3).json();
    assert_eq!((&again["kind"], &again["status"]), (&json!("refused"), &json!(409)));
    let pending = landed("pending");
    let (first, second) = (text(&pending[0]["action"]), text(&pending[1]["action"]));
    let confirmed = steward.run(&["confirm", &first]).await.expect(0);
    let lines: Vec<&str> = confirmed.out.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("confirmed: "), "{confirmed}");
    assert!(lines[1].starts_with("undo: steward undo ") && lines[0].contains(&lines[1][19..]), "{confirmed}");
    steward.run(&["dismiss", &second, "--json"]).await.expect(0);
    let ids: Vec<String> = live.iter().map(|said| text(&said["action"])).filter(|one| !one.starts_with(id)).collect();
    let mut all = vec!["undo", "--json"];
    all.extend(ids.iter().map(String::as_str));
    let together = steward.run(&all).await.expect(0).json();
    assert_eq!(together["resolutions"].as_array().unwrap().len(), ids.len(), "{together}");

    assert_eq!(processes_on(&vault), Vec::<String>::new());
    assert!(!vault.join(".steward/up.json").exists());
    steward.run(&["audit", "verify"]).await.expect(0);
    // The history of `up` is unchanged, and continues.
    let next = steward.run(&["up", "--once", "--json"]).await.expect(4).json();
    assert!(next["ticks"].as_u64() >= Some(12), "{next:#}");
}

#[tokio::test]
async fn two_answers_at_once_with_nothing_running_are_both_taken() {
    let world = World::new().await.live();
    world.vault.matter("house");
    for task in ["rent", "heat"] {
        world.vault.task(task, "house");
        world.vault.signal(task, &Signal::done(task));
    }
    let steward = world.without_server();
    steward.run(&["up", "--once"]).await.expect(0);
    let actions = world.live_actions();
    let (one, other) = ([actions[0].as_str()], [actions[1].as_str()]);
    let (one, other) = ([&["undo"], &one[..]].concat(), [&["undo"], &other[..]].concat());
    let (one, other) = futures::join!(steward.run(&one), steward.run(&other));
    let (_, _) = (one.expect(0), other.expect(0));
    assert_eq!((world.vault.state("rent").as_str(), world.vault.state("heat").as_str()), ("open", "open"));
}

#[tokio::test]
async fn a_server_that_is_set_and_away_is_named_and_none_is_started_in_its_place() {
    let world = World::with_one_done().await.live();
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;
    let away = world.steward.with("TEMPORAL_ADDRESS", "127.0.0.1:9");
    let said = away.run(&["undo", &world.live_action()]).await.expect(1);
    assert!(said.err.contains("127.0.0.1:9") && said.err.contains("does not answer"), "{said}");
    assert_eq!(world.vault.state("rent"), "done");
}
