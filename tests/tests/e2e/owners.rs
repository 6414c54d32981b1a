//! A vault uses only its own schedules: a second vault in a namespace is refused until `schedules adopt`.

use serde_json::{Value, json};
use std::path::Path;
use steward_tests::run;
use steward_tests::steward::{Said, Steward};
use steward_tests::vault::Vault;
use steward_tests::wait;
use steward_tests::world::World;

/// A second vault with one matter, in the namespace and the queue of the first.
fn second(world: &World) -> (Vault, Steward) {
    let vault = Vault::new(world.folder.join("second"));
    vault.matter("garden");
    let steward = world.steward.with("STEWARD_VAULT", vault.path().display());
    (vault, steward)
}

/// The schedules of the server, with the parts that show any change. They come from the server itself, without a
/// filter.
async fn schedules(world: &World) -> Vec<Value> {
    let listed = world.temporal(&["schedule", "list", "--really-long", "-o", "json"]).await;
    let mut rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
    rows.sort_by_key(|row| row["scheduleId"].as_str().unwrap().to_owned());
    rows.iter().map(|row| json!([row["scheduleId"], row["info"]["spec"], row["info"]["paused"]])).collect()
}

async fn until_listed(world: &World, count: usize) -> Vec<Value> {
    wait::until(&format!("{count} schedules"), async || {
        let found = schedules(world).await;
        (found.len() == count).then_some(found)
    })
    .await
}

/// Schedules of a vault without a tracker that belong to no matter.
const ROUTINES: usize = 5;

fn refuses(said: &Said, folders: [&Path; 2]) {
    assert_eq!(said.code, Some(3), "{said}");
    let text = said.all();
    let [theirs, ours] = folders.map(|folder| folder.display().to_string());
    for part in [theirs.as_str(), ours.as_str(), "TEMPORAL_NAMESPACE", "steward schedules adopt"] {
        assert!(text.contains(part), "{part}: {said}");
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[tokio::test]
async fn a_second_vault_in_a_namespace_is_refused_and_touches_no_schedule_of_the_first() {
    let world = World::new().await;
    ["house", "shed", "boat"].iter().for_each(|slug| world.vault.matter(slug));
    let worker = world.worker().await;
    until_listed(&world, 3 + ROUTINES).await;
    // The listing shows a moment later that the calibration was paused.
    let before = wait::until("the pause to be listed", async || {
        let found = schedules(&world).await;
        found.iter().any(|row| row[0] == "al-reversal-calibration" && row[2] == true).then_some(found)
    })
    .await;
    let (vault, other) = second(&world);
    let folders = [world.vault.path(), vault.path()];
    let commands = [
        &["worker"][..],
        &["up"],
        &["up", "--once"],
        &["serve"],
        &["schedules", "apply"],
        &["schedules", "plan"],
        &["tick", "garden"],
        &["undo", "0123456789abcdef"],
        &["confirm", "0123456789abcdef", "fedcba9876543210"],
    ];
    for command in commands {
        let said = other.with("STEWARD_LISTEN", "127.0.0.1:0").run(command).await;
        refuses(&said, folders);
        assert!(!said.out.contains("serving"), "{said}");
    }
    let findings = other.run(&["--json", "doctor"]).await.expect(4).json();
    let namespace = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "namespace");
    assert!(namespace.is_some_and(|finding| finding["ok"] == json!(false)), "{findings:#}");
    let plan = other.run(&["--json", "schedules", "plan"]).await.expect(3).json();
    assert_eq!(plan["conflict"]["kind"], json!("another_vault"), "{plan}");
    assert_eq!(other.run(&["--json", "schedules", "list"]).await.expect(0).json(), json!([]));
    let adopt = other.run(&["schedules", "adopt", "--yes"]).await.expect(3);
    assert!(adopt.out.contains("stop it first"), "a process serves the first: {adopt}");
    worker.stop().await;
    refuses(&other.run(&["worker"]).await, folders);
    assert_eq!(schedules(&world).await, before);

    // With its own namespace it works, and the first vault continues.
    let own = format!("{}-own", world.namespace);
    world.server.namespace(&own).await;
    other.with("TEMPORAL_NAMESPACE", &own).run(&["up", "--once"]).await.expect(0);
    let _worker = world.worker().await;
    assert_eq!(schedules(&world).await, before);
}

#[tokio::test]
async fn schedules_whose_vault_lost_its_id_are_adopted_once_somebody_agreed() {
    let world = World::new().await;
    world.vault.matter("house");
    world.worker().await.stop().await;
    let before = until_listed(&world, 1 + ROUTINES).await;
    let file = world.vault.path().join(".steward/vault.json");
    std::fs::write(&file, "{").unwrap();
    let damaged = world.run(&["worker"]).await.expect(1);
    assert!(damaged.err.contains(".steward/vault.json") && damaged.err.contains("adopt"), "{damaged}");
    std::fs::remove_file(&file).unwrap();
    refuses(&world.run(&["worker"]).await, [world.vault.path(), world.vault.path()]);

    let shown = world.run(&["schedules", "adopt"]).await.expect(3);
    assert!(shown.out.contains("al-steward-house") && shown.out.contains("--yes"), "{shown}");
    let listed = world.run(&["--json", "schedules", "adopt"]).await.expect(3).json();
    assert_eq!((listed["schedules"].as_array().unwrap().len(), &listed["adopted"]), (1 + ROUTINES, &json!(0)));
    assert_eq!(schedules(&world).await, before, "it only showed them");

    let adopted = world.json(&["schedules", "adopt", "--yes"]).await;
    assert_eq!((&adopted["adopted"], &adopted["errors"]), (&json!(1 + ROUTINES), &json!([])), "{adopted}");
    let _worker = world.worker().await;
    let plan = world.json(&["schedules", "plan"]).await;
    let verbs = plan["steps"].as_array().unwrap().iter().map(|step| &step["verb"]);
    assert!(verbs.eq([&json!("unchanged")]), "{plan:#}");
    let nothing = wait::until("every mark to be listed", async || {
        let said = world.run(&["--json", "schedules", "adopt"]).await;
        (said.code == Some(0)).then(|| said.json())
    });
    assert_eq!(nothing.await["schedules"], json!([]));
}

#[tokio::test]
async fn a_copied_vault_is_refused_and_one_that_moved_goes_on() {
    let world = World::new().await;
    world.vault.matter("house");
    world.worker().await.stop().await;
    until_listed(&world, 1 + ROUTINES).await;
    let (copied, moved) = (world.folder.join("copied"), world.folder.join("moved"));
    copy(world.vault.path(), &copied);
    let of = |folder: &Path| world.steward.with("STEWARD_VAULT", folder.display());
    let said = of(&copied).run(&["worker"]).await;
    refuses(&said, [world.vault.path(), &copied]);
    assert!(said.err.contains("is a copy of it"), "{said}");
    refuses(&of(&copied).run(&["undo", "0123456789abcdef"]).await, [world.vault.path(), &copied]);

    std::fs::rename(world.vault.path(), &moved).unwrap();
    let worker = world.worker_with(&of(&moved)).await;
    let named = async || schedules(&world).await.iter().any(|row| row.to_string().contains("/moved")).then_some(());
    wait::until("the schedules to name the new folder", named).await;
    refuses(&of(&copied).run(&["worker"]).await, [&moved, &copied]);
    worker.stop().await;

    of(&copied).run(&["schedules", "adopt", "--yes"]).await.expect(0);
    let named = async || schedules(&world).await.iter().any(|row| row.to_string().contains("/copied")).then_some(());
    wait::until("the schedules to name the folder of the copy", named).await;
    refuses(&of(&moved).run(&["worker"]).await, [&copied, &moved]);
    let _worker = world.worker_with(&of(&copied)).await;
}

#[tokio::test]
async fn a_copy_with_a_server_of_its_own_goes_on_and_adopts_with_nothing_running() {
    let world = World::new().await;
    world.vault.matter("house");
    let mut steward = world.steward.without("TEMPORAL_ADDRESS").without("TEMPORAL_NAMESPACE");
    steward
        .set("STEWARD_TEMPORAL_CLI", run::temporal_cli().display())
        .set("STEWARD_TEMPORAL_PORT", run::free_port())
        .set("STEWARD_TEMPORAL_UI_PORT", run::free_port());
    steward.run(&["up", "--once"]).await.expect(0);
    let copied = world.folder.join("copied");
    copy(world.vault.path(), &copied);
    let of_copy = steward.with("STEWARD_VAULT", copied.display());
    of_copy.run(&["up", "--once"]).await.expect(0);
    std::fs::remove_file(copied.join(".steward/vault.json")).unwrap();
    of_copy.run(&["up", "--once"]).await.expect(3);
    let adopted = of_copy.run(&["--json", "schedules", "adopt", "--yes"]).await.expect(0).json();
    assert_eq!(adopted["adopted"], json!(1 + ROUTINES), "{adopted}");
    of_copy.run(&["up", "--once"]).await.expect(0);
}
