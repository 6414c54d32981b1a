//! The Temporal server that `up` starts: its ports, its environment, its output, and the access to its files.

use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use steward_tests::world::World;
use steward_tests::{run, wait};

fn note(world: &World) -> Option<Value> {
    let text = std::fs::read_to_string(world.vault.path().join(".steward/up.json")).ok()?;
    serde_json::from_str(&text).ok()
}

#[tokio::test]
async fn a_port_that_is_set_is_used_or_refused_by_name_and_one_number_for_both_is_refused() {
    let world = World::with_one_done().await;
    let both = world.without_server().with("STEWARD_TEMPORAL_PORT", 40_123).with("STEWARD_TEMPORAL_UI_PORT", 40_123);
    let said = both.run(&["up", "--once"]).await.expect(1);
    assert!(said.err.contains("STEWARD_TEMPORAL_PORT and STEWARD_TEMPORAL_UI_PORT are both 40123"), "{said}");
    assert!(!world.vault.path().join(".steward").exists(), "nothing was begun");
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    for variable in ["STEWARD_TEMPORAL_PORT", "STEWARD_TEMPORAL_UI_PORT"] {
        let said = world.without_server().with(variable, port).run(&["up", "--once"]).await.expect(1);
        assert!(said.err.contains(&format!("{variable} is {port}, which is taken: ")), "{said}");
        assert!(said.err.contains(" is free"), "{said}");
    }
    drop(taken);
    let mut up = world.without_server().with("STEWARD_TEMPORAL_PORT", port).start(&["up"]);
    up.says("Ctrl-C").await;
    let note = note(&world).unwrap();
    run::note(u32::try_from(note["server_pid"].as_u64().unwrap()).unwrap());
    assert_eq!(note["address"], format!("127.0.0.1:{port}"));
    assert!(up.stop().await.success());
}

#[tokio::test]
async fn what_the_server_says_before_it_ends_is_told_without_what_drives_a_terminal() {
    let world = World::with_one_done().await;
    let cli = world.folder.join("temporal");
    std::fs::write(&cli, "#!/bin/sh\nprintf 'Error: no \\033[31mluck today\\n' >&2\nexit 3\n").unwrap();
    std::fs::set_permissions(&cli, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said =
        world.without_server().with("STEWARD_TEMPORAL_CLI", cli.display()).run(&["up", "--once"]).await.expect(1);
    assert!(said.err.contains("Error: no ") && said.err.contains("luck today"), "{said}");
    assert!(said.err.contains("temporal.log") && !said.err.contains('\u{1b}'), "{said}");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_server_inherits_no_secret_and_what_is_written_is_its_owners_alone() {
    let world = World::with_one_done().await.live();
    let own = world.vault.path().join(".steward");
    // As an earlier version left it.
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    for file in ["up.json", "temporal.log"] {
        std::fs::write(own.join(file), "").unwrap();
        std::fs::set_permissions(own.join(file), std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let mut steward = world.without_server().with("STEWARD_CLERK_API_KEY", "s3cret-1");
    steward
        .set("STEWARD_TRACKER_API_KEY", "s3cret-2")
        .set("STEWARD_TOKEN", "s3cret-3")
        .set("IMAP_PASSWORD", "s3cret-4")
        .set("TEMPORAL_API_KEY", "s3cret-5")
        .set("LC_ALL", "C.UTF-8");
    let rent = world.vault.path().join("task/rent.md");
    std::fs::set_permissions(&rent, std::fs::Permissions::from_mode(0o664)).unwrap();
    let mut up = steward.start(&["up", "--tick-now"]);
    up.says("Ctrl-C").await;
    let pid = u32::try_from(note(&world).unwrap()["server_pid"].as_u64().unwrap()).unwrap();
    run::note(pid);
    let inherited = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let inherited = String::from_utf8_lossy(&inherited);
    assert!(!inherited.contains("s3cret") && !inherited.contains("STEWARD_"), "{inherited}");
    assert!(inherited.contains("PATH=") && inherited.contains("LC_ALL=C.UTF-8"), "{inherited}");

    assert_eq!(mode(&own), 0o700);
    let files = ["state.db", "state.db-wal", "state.db-shm", "ledger.db", "ledger.db-wal", "ledger.db-shm"];
    let of_the_server = ["temporal.db", "temporal.db-wal", "temporal.db-shm", "temporal.log", "temporal.lock"];
    for file in files.into_iter().chain(of_the_server).chain(["up.json", "lock"]) {
        assert_eq!(mode(&own.join(file)), 0o600, "{file}");
    }
    assert_eq!((world.vault.state("rent").as_str(), mode(&rent)), ("done", 0o664), "a file of the vault keeps its own");
    assert!(up.stop().await.success());
}

#[tokio::test]
async fn status_shows_the_caps_the_clerk_and_the_tracker_of_the_process_that_holds_the_vault() {
    let world = World::with_one_done().await;
    let mut holding = world.steward.with("STEWARD_CAPS_PER_HOUR", 123);
    holding
        .set("STEWARD_CLERK", "openai")
        .set("STEWARD_CLERK_BASE_URL", "http://127.0.0.1:9/v1")
        .set("STEWARD_CLERK_MODEL", "small")
        .set("STEWARD_CLERK_API_KEY", "hunter2")
        .set("STEWARD_TRACKER_KIND", "plane")
        .set("STEWARD_TRACKER_BASE_URL", "http://127.0.0.1:9")
        .set("STEWARD_TRACKER_WORKSPACE", "home")
        .set("STEWARD_TRACKER_API_KEY", "hunter2");
    let worker = world.worker_with(&holding).await;
    let other = world.steward.with("STEWARD_CAPS_PER_HOUR", 77);
    let status = other.run(&["status", "--json"]).await.expect(0).json();
    assert_eq!(status["guard"]["ledger"]["hour"]["cap"], 123, "{status:#}");
    assert_eq!(status["clerk"]["kind"], "openai", "{status:#}");
    assert_eq!(
        (&status["clerk"]["model"], &status["clerk"]["base_url"]),
        (&"small".into(), &"http://127.0.0.1:9/v1".into())
    );
    assert_eq!(status["tracker"]["base_url"], "http://127.0.0.1:9", "{status:#}");
    assert!(!note(&world).unwrap().to_string().contains("hunter2"));
    let told = other.run(&["status"]).await.expect(0).out;
    assert!(told.contains("/123 per hour") && told.contains("openai, small at http://127.0.0.1:9/v1"), "{told}");
    worker.stop().await;
    let status = other.run(&["status", "--json"]).await.expect(0).json();
    assert_eq!((&status["guard"]["ledger"]["hour"]["cap"], &status["clerk"]["kind"]), (&77.into(), &"rules".into()));
    assert_eq!(status["tracker"]["base_url"], Value::Null);
}

#[tokio::test]
async fn a_run_that_is_started_with_an_argument_that_is_none_fails_once_with_that_reason() {
    let world = World::with_one_done().await;
    let _worker = world.worker().await;
    let wrong = [
        ("StewardWorkflow", Value::from(7)),
        ("StewardWorkflow", serde_json::json!({"a": 1})),
        ("ResolveWorkflow", Value::from("undo")),
        ("ResolveBatchWorkflow", serde_json::json!({"kind": "undo"})),
        ("RouterWorkflow", serde_json::json!({"a": 1})),
    ];
    for (number, (kind, argument)) in wrong.into_iter().enumerate() {
        let started = world.begin_as(&format!("wrong-{number}"), kind, &argument).await;
        let failure = started.failure().await;
        assert!(failure.contains("invalid argument") && failure.contains("expected "), "{kind}: {failure}");
        let history = started.history().await;
        let tasks = history.iter().filter(|event| event.event_type().as_str_name().contains("WORKFLOW_TASK_FAILED"));
        assert_eq!(tasks.count(), 0, "{kind}: its workflow task failed");
    }
    wait::until("the worker to serve on", async || (!world.tick("house").await.evaluated.is_empty()).then_some(()))
        .await;
}
