//! `steward up`: a server, a worker and the schedules in one process, and their end.

use rustix::process::Signal as Sent;
use serde_json::Value;
use std::path::PathBuf;
use steward_tests::run;
use steward_tests::steward::Steward;
use steward_tests::wait;
use steward_tests::world::{World, is_alive};

fn note(world: &World) -> PathBuf {
    world.vault.path().join(".steward/up.json")
}

/// The server that `up` says it has started, noted so that it cannot outlive this run.
fn server_pid(world: &World) -> u32 {
    let text = std::fs::read_to_string(note(world)).unwrap();
    let pid = serde_json::from_str::<Value>(&text).unwrap()["server_pid"].as_u64().unwrap();
    let pid = u32::try_from(pid).unwrap();
    run::note(pid);
    pid
}

/// Without a server that is set: `up` must start its own.
fn alone(world: &World) -> Steward {
    let mut steward = world.steward.without("TEMPORAL_ADDRESS").without("TEMPORAL_NAMESPACE");
    steward
        .set("STEWARD_TEMPORAL_CLI", run::temporal_cli().display())
        .set("STEWARD_TEMPORAL_PORT", run::free_port())
        .set("STEWARD_TEMPORAL_UI_PORT", run::free_port());
    steward
}

async fn gone(pid: u32) {
    wait::until(&format!("process {pid} to be gone"), async || (!is_alive(pid)).then_some(())).await;
    run::strike(pid);
}

#[tokio::test]
async fn ctrl_c_ends_everything_that_up_started() {
    let world = World::with_one_done().await.live();
    let steward = alone(&world);
    for sent in [Sent::INT, Sent::TERM] {
        let mut up = steward.start(&["up"]);
        up.says("Ctrl-C").await;
        let server = server_pid(&world);
        assert!(is_alive(server));
        let status = steward.run(&["status", "--json"]).await.expect(0).json();
        assert_eq!(status["running"]["pid"], up.pid());
        let listed = steward.run(&["schedules", "list", "--json"]).await.expect(0).json();
        assert_eq!(listed[0]["id"], "al-steward-house");
        steward.run(&["tick", "house", "--wait"]).await.expect(0);
        up.send(sent);
        let ended = up.ends().await;
        assert!(ended.success(), "{ended}: {}", up.err());
        gone(server).await;
        assert!(!note(&world).exists(), "the note names a server that is gone");
    }
    assert_eq!((world.vault.state("rent").as_str(), world.live_actions().len()), ("done", 1));
    world.verify_chain().await;
}

#[tokio::test]
async fn up_after_one_that_was_killed_clears_away_and_goes_on_where_it_was() {
    let world = World::with_one_done().await;
    let steward = alone(&world);
    let mut first = steward.start(&["up"]);
    first.says("Ctrl-C").await;
    let stray = server_pid(&world);
    first.kill();
    assert!(is_alive(stray) && note(&world).exists(), "a kill leaves them");

    let mut second = steward.start(&["up"]);
    second.says("Ctrl-C").await;
    gone(stray).await;
    let server = server_pid(&world);
    assert_ne!(server, stray);
    steward.run(&["tick", "house", "--wait"]).await.expect(0);
    assert_eq!(world.vault.records().len(), 1);
    let listed = steward.run(&["schedules", "list", "--json"]).await.expect(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "the schedules of the first are still there");
    second.send(Sent::INT);
    second.ends().await;
    gone(server).await;
}

#[tokio::test]
async fn up_once_says_what_was_decided_and_leaves_nothing_running() {
    let world = World::new().await.live();
    let steward = alone(&world);
    let vault = world.folder.join("example");
    steward.run(&["example", vault.to_str().unwrap()]).await.expect(0);
    let steward = steward.with("STEWARD_VAULT", vault.display());
    let said = steward.run(&["up", "--once", "--json"]).await.expect(0).json();
    assert!(said["ticks"].as_u64() >= Some(12), "{said:#}");
    let all = said["said"].as_array().unwrap();
    let landed = |how: &str| all.iter().filter(|s| s["landing"] == how).count();
    assert!(landed("live") > 0 && landed("pending") > 0 && landed("recorded") > 0, "{said:#}");
    assert!(said["errors"].to_string().contains("task/desk-order-oak.md"), "{said:#}");
    assert!(said["undo"].as_str().unwrap().contains(" undo "), "{said:#}");
    assert!(!vault.join(".steward/up.json").exists());
    let database = vault.join(".steward/temporal.db").display().to_string();
    let using = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let command = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains(&database).then_some(())
    });
    assert_eq!(using.count(), 0, "a server is left");
    steward.run(&["audit", "verify"]).await.expect(0);
}
