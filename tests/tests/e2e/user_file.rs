//! The user's file of a vault with a mapping, the folders of Steward's own files, and what a file in a vault may not do.

use crate::mapped::{TASK, accepted, ordinary, put_signal, read, wait_for_action, worker};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use steward_tests::world::World;

fn list(folder: PathBuf) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The user's file.
fn file(world: &World) -> PathBuf {
    let folder = world.folder.join("config/steward");
    let names = list(folder.clone());
    folder.join(names.iter().find(|name| name.ends_with(".toml")).unwrap())
}

#[tokio::test]
async fn init_writes_the_users_file_and_databases_lie_outside_the_vault() {
    let world = accepted().await;
    let path = file(&world);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("live_mode = \"shadow\"") && text.contains("vault = "), "{text}");
    let _worker = worker(&world).await;
    let own = list(world.vault.path().join(".steward"));
    assert!(own.iter().all(|name| !name.ends_with(".db")), "{own:?}");
    let state = world.folder.join("state/steward");
    let state = state.join(&list(state.clone())[0]);
    assert!(state.join("state.db").exists());

    // What a person wrote stays.
    fs::write(&path, text.replace("shadow", "live")).unwrap();
    world.run(&["init", "--accept"]).await.expect(1);
    assert!(fs::read_to_string(&path).unwrap().contains("live_mode = \"live\""));
    let status = world.run(&["status"]).await.expect(0).out;
    assert!(status.contains("this shell: live"), "a command reads the file: {status}");
}

#[tokio::test]
async fn the_environment_comes_first_and_the_lowest_ceiling_holds() {
    let world = accepted().await;
    let path = file(&world);
    let text = fs::read_to_string(&path).unwrap().replace("shadow", "live");
    fs::write(&path, format!("{text}default_ceiling = \"confirm\"\n")).unwrap();
    let world = world.set("STEWARD_DEFAULT_CEILING", "act");
    world.vault.write("Steward/instinct/gmail.md", "---\nsource: gmail\nobservations: 60\nconfidence: 0.95\n---\n");
    let _worker = worker(&world).await;
    put_signal(&world, "s1", TASK);
    wait_for_action(&world, "pending").await;
    assert!(read(&world, TASK).contains("todo"), "the file allows no more than a proposal");
}

#[tokio::test]
async fn a_moved_vault_and_a_missing_file_are_refused_by_name() {
    let world = accepted().await;
    let path = file(&world);
    let away = path.with_extension("away");
    fs::rename(&path, &away).unwrap();
    let refused = world.run(&["worker"]).await.expect(3);
    assert!(refused.err.contains(&path.display().to_string()), "{}", refused.err);
    world.run(&["stop"]).await.expect(0);
    world.run(&["resume"]).await.expect(0);
    fs::rename(&away, &path).unwrap();

    let moved = world.folder.join("elsewhere");
    fs::rename(world.vault.path(), &moved).unwrap();
    let refused = world.run(&["worker", "--vault", moved.to_str().unwrap()]).await.expect(3);
    assert!(refused.err.contains(&path.display().to_string()) && refused.err.contains("elsewhere-"), "{}", refused.err);
    fs::rename(&moved, world.vault.path()).unwrap();
}

#[tokio::test]
async fn other_keys_in_a_vaults_file_are_named_and_ignored() {
    let world = accepted().await;
    let proposal = read(&world, "steward.toml");
    world.vault.write("steward.toml", format!("live_mode = \"live\"\nserver = \"http://evil.example\"\n{proposal}"));
    let status = world.json(&["status"]).await;
    assert_eq!(status["policy"]["mode"], "shadow");
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("`live_mode`") && warnings.contains("ignored"), "{warnings}");
}

#[tokio::test]
async fn stewards_folder_is_moved_by_a_person_or_by_the_command() {
    let world = accepted().await.live();
    world.run(&["init", "--folder", "Meta/Steward"]).await.expect(0);
    assert!(!world.vault.path().join("Steward").exists());
    assert!(world.vault.path().join("Meta/Steward/owner").exists());
    // A person drags it elsewhere.
    fs::rename(world.vault.path().join("Meta/Steward"), world.vault.path().join("Hidden away")).unwrap();
    let refused = world.run(&["worker"]).await.expect(3);
    assert!(refused.err.contains("steward init --folder"), "{}", refused.err);
    for wrong in ["Projekte", "../out", "event", "Nirgends"] {
        world.run(&["init", "--folder", wrong]).await.expect(1);
    }
    world.run(&["init", "--folder", "Hidden away"]).await.expect(0);
    let _worker = worker(&world).await;
    let signal = "Hidden away/signal/s1.md";
    put_signal(&world, "s1", TASK);
    fs::rename(world.vault.path().join("Steward/signal/s1.md"), world.vault.path().join(signal)).unwrap();
    wait_for_action(&world, "live").await;
    assert_eq!(world.json(&["audit", "verify"]).await["faults"], serde_json::Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_folder_for_stewards_files_is_chosen_at_the_first_init() {
    let world = ordinary().await;
    world.run(&["init", "--accept", "--folder", "Projekte"]).await.expect(1);
    world.run(&["init", "--accept", "--folder", "Meta/Files"]).await.expect(0);
    assert!(world.vault.path().join("Meta/Files/inbox").exists());
}

#[tokio::test]
async fn an_undo_stays_undone_when_stewards_folder_moves_right_after_it() {
    for by_person in [false, true] {
        let world = accepted().await.live();
        let running = worker(&world).await;
        put_signal(&world, "s1", TASK);
        let action = wait_for_action(&world, "live").await["id"].as_str().unwrap().to_owned();
        world.run(&["undo", &action]).await.expect(0);
        let undone = read(&world, TASK);
        assert!(undone.contains("Status: todo"), "{undone}");
        running.stop().await;
        if by_person {
            fs::rename(world.vault.path().join("Steward"), world.vault.path().join("Own files")).unwrap();
            world.run(&["worker"]).await.expect(3);
        }
        world.run(&["init", "--folder", "Own files"]).await.expect(0);
        assert_eq!(read(&world, TASK), undone, "moved by a person: {by_person}");
        world.run(&["doctor"]).await;
        assert_eq!(read(&world, TASK), undone, "moved by a person: {by_person}");
        assert_eq!(world.json(&["audit", "verify"]).await["faults"], serde_json::Value::Array(Vec::new()));
    }
}

#[tokio::test]
async fn a_wrong_line_in_the_users_file_is_named_and_a_stop_works_all_the_same() {
    let world = accepted().await;
    let path = file(&world);
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().count() + 1;
    for (wrong, words) in
        [("no_such_key = 1", "`no_such_key`: not a setting"), ("scan_seconds = \"x\"", "`scan_seconds`")]
    {
        fs::write(&path, format!("{text}{wrong}\n")).unwrap();
        let refused = world.run(&["status"]).await;
        let place = format!("{}:{line}:", path.display());
        assert!(refused.code != Some(0) && refused.err.contains(&place) && refused.err.contains(words), "{refused}");
        world.run(&["stop"]).await.expect(0);
        world.run(&["resume"]).await.expect(0);
    }
}
