//! `steward up`: a server, a worker and the schedules in one process, and their end.

use rustix::process::Signal as Sent;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_tests::run;
use steward_tests::wait;
use steward_tests::world::{World, is_alive};

fn note(world: &World) -> PathBuf {
    world.vault.path().join(".steward/up.json")
}

/// The server that `up` reports to have started, noted so that it cannot outlive this run.
fn server_pid(world: &World) -> u32 {
    let text = std::fs::read_to_string(note(world)).unwrap();
    let pid = serde_json::from_str::<Value>(&text).unwrap()["server_pid"].as_u64().unwrap();
    let pid = u32::try_from(pid).unwrap();
    run::note(pid);
    pid
}

async fn gone(pid: u32) {
    wait::until(&format!("process {pid} to be gone"), async || (!is_alive(pid)).then_some(())).await;
    run::strike(pid);
}

#[tokio::test]
async fn ctrl_c_ends_everything_that_up_started() {
    let world = World::with_one_done().await.live();
    // A namespace that `up` must create on its own server.
    let steward = world.without_server().with("TEMPORAL_NAMESPACE", "affairs");
    world.index_quietly(&steward).await;
    for sent in [Sent::INT, Sent::TERM] {
        let mut up = steward.start(&["up"]);
        up.says("Ctrl-C").await;
        let server = server_pid(&world);
        assert!(is_alive(server));
        let status = steward.run(&["status", "--json"]).await.expect(0).json();
        assert_eq!(status["running"]["pid"], up.pid());
        let listed = steward.run(&["schedules", "list", "--json"]).await.expect(0).json();
        assert!(listed.as_array().unwrap().iter().any(|row| row["id"] == "al-steward-house"), "{listed}");
        steward.run(&["tick", "house", "--wait"]).await.expect(0);
        up.send(sent);
        let ended = up.ends().await;
        assert!(ended.success(), "{ended}: {}", up.err());
        let (out, is_new) = (up.out(), sent == Sent::INT);
        assert!(out.starts_with("reading ") && out.trim_end().lines().last().unwrap().starts_with("ending …"), "{out}");
        assert_eq!(out.contains("al-signal-extract"), is_new, "the schedule that claims a new server is shown: {out}");
        gone(server).await;
        assert!(!note(&world).exists(), "the note names a server that is gone");
    }
    assert_eq!((world.vault.state("rent").as_str(), world.live_actions().len()), ("done", 1));
    world.verify_chain().await;
}

#[tokio::test]
async fn up_after_one_that_was_killed_clears_away_and_goes_on_where_it_was() {
    let world = World::with_one_done().await;
    let steward = world.without_server();
    world.index_quietly(&steward).await;
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
    let house = listed.as_array().unwrap().iter().filter(|row| row["matter"] == "matter/house.md");
    assert_eq!(house.count(), 1, "the schedules of the first are still there");
    second.send(Sent::INT);
    second.ends().await;
    gone(server).await;
}

#[tokio::test]
async fn up_once_says_what_was_decided_and_leaves_nothing_running() {
    let world = World::new().await.live();
    let steward = world.without_server();
    let vault = world.folder.join("example");
    steward.run(&["example", vault.to_str().unwrap()]).await.expect(0);
    let steward = steward.with("STEWARD_VAULT", vault.display());
    // The example has one unreadable record.
    let said = steward.run(&["up", "--once", "--json"]).await.expect(4).json();
    assert!(said["ticks"].as_u64() >= Some(12), "{said:#}");
    let all = said["tasks"].as_array().unwrap();
    let landed = |how: &str| all.iter().filter(|s| s["disposition"] == how).count();
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

/// The processes that have this file open as standard input: the server holds its lock this way.
fn servers_on(lock: &Path) -> Vec<u32> {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes
        .filter(|pid: &u32| std::fs::read_link(format!("/proc/{pid}/fd/0")).is_ok_and(|file| file == lock))
        .collect()
}

#[tokio::test]
async fn ctrl_c_at_any_moment_of_the_start_leaves_nothing_running() {
    let world = World::with_one_done().await;
    let steward = world.without_server();
    let lock = world.vault.path().join(".steward/temporal.lock");
    for moment in [150, 400, 800, 1_300, 2_000] {
        let mut up = steward.start(&["up"]);
        wait::a_moment(Duration::from_millis(moment)).await;
        servers_on(&lock).into_iter().for_each(run::note);
        up.send(Sent::INT);
        let ended = up.ends().await;
        // Before the first line of `main` nothing listens, and nothing runs yet.
        assert!(ended.success() || ended.signal() == Some(Sent::INT.as_raw()), "{moment} ms: {ended}: {}", up.err());
        assert_eq!(servers_on(&lock), Vec::<u32>::new(), "{moment} ms: a server is left");
        assert!(!note(&world).exists(), "{moment} ms: a note is left");
    }
}

#[tokio::test]
async fn one_state_folder_never_has_two_servers_however_it_is_spelled() {
    let world = World::with_one_done().await;
    let steward = world.without_server();
    let lock = world.vault.path().join(".steward/temporal.lock");
    let mut first = steward.with("STEWARD_VAULT", "vault").start(&["up"]);
    first.says("Ctrl-C").await;
    let stray = server_pid(&world);
    first.kill();
    assert_eq!(servers_on(&lock), [stray], "the stray holds the lock");
    // Without the note only the lock shows the server.
    std::fs::remove_file(note(&world)).unwrap();
    let mut second = steward.with("STEWARD_VAULT", world.vault.path().join("../vault").display()).start(&["up"]);
    second.says("Ctrl-C").await;
    gone(stray).await;
    assert_eq!(servers_on(&lock), [server_pid(&world)]);

    // The same state folder for another vault: the server of a live process is not ended.
    std::fs::create_dir(world.folder.join("other")).unwrap();
    let mut other = steward.with("STEWARD_VAULT", "other");
    other.set("STEWARD_STATE_DIR", world.vault.path().join(".steward").display());
    let said = other.run(&["up", "--once"]).await.expect(1);
    assert!(said.err.contains("another Temporal server") && said.err.contains("STEWARD_STATE_DIR"), "{said}");
    assert_eq!(servers_on(&lock), [server_pid(&world)]);
    second.send(Sent::INT);
    assert!(second.ends().await.success());
    assert_eq!(servers_on(&lock), Vec::<u32>::new());
}

#[tokio::test]
async fn up_ends_with_its_server_and_names_the_log() {
    let world = World::with_one_done().await;
    let mut up = world.without_server().start(&["up"]);
    up.says("Ctrl-C").await;
    let server = i32::try_from(server_pid(&world)).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(server).unwrap(), Sent::KILL).unwrap();
    let ended = up.ends().await;
    assert_eq!(ended.code(), Some(1), "{}", up.err());
    assert!(up.err().contains("the Temporal server ended") && up.err().contains("temporal.log"), "{}", up.err());
    assert!(!up.err().contains("panicked"), "{}", up.err());
    assert!(!note(&world).exists());
}

#[tokio::test]
async fn after_a_kill_status_and_doctor_say_that_nothing_runs() {
    let world = World::with_one_done().await.live();
    let mut worker = world.worker().await;
    let pid = worker.pid();
    // Another environment than that of the deciding process.
    let other = world.steward.with("STEWARD_LIVE_MODE", "shadow");
    let status = other.run(&["status", "--json"]).await.expect(0).json();
    assert_eq!((&status["running"]["pid"], &status["policy"]["mode"]), (&json!(pid), &json!("live")), "{status:#}");
    let shown = other.run(&["status"]).await.expect(0);
    assert!(shown.out.contains("live in the running process; this shell: shadow)"), "{shown}");
    let doctor = other.run(&["doctor", "--json"]).await.expect(0);
    assert!(doctor.out.contains("serves the queue") && doctor.out.contains("in mode live"), "{doctor}");
    assert!(doctor.out.contains("this shell: mode shadow; the running process: mode live"), "{doctor}");
    let elsewhere = other.with("STEWARD_TASK_QUEUE", "elsewhere").run(&["doctor"]).await.expect(4);
    assert!(elsewhere.out.contains("STEWARD_TASK_QUEUE"), "{elsewhere}");

    worker.kill();
    let status = other.run(&["status"]).await.expect(0);
    assert!(status.out.contains("ended unexpectedly") && status.out.contains("steward up"), "{status}");
    let doctor = other.run(&["doctor"]).await.expect(4);
    assert!(doctor.out.contains("WRONG worker") && doctor.out.contains("steward up"), "{doctor}");

    let worker = world.worker().await;
    worker.stop().await;
    assert!(!note(&world).exists());
    let status = world.run(&["status"]).await.expect(0);
    assert!(status.out.contains("running      no\n") || status.out.ends_with("no\n"), "{status}");
    world.run(&["doctor"]).await.expect(0);
}

#[tokio::test]
async fn a_round_tells_why_nothing_worked_and_its_exit_code_too() {
    let world = World::with_one_done().await;
    let mut steward = world.steward.with("STEWARD_CLERK", "openai");
    steward.set("STEWARD_CLERK_BASE_URL", format!("http://127.0.0.1:{}/v1", run::free_port()));
    steward.set("STEWARD_CLERK_MODEL", "none");
    let said = steward.run(&["up", "--once"]).await.expect(4);
    assert!(said.out.contains("clerk_failed") && said.out.contains("no answer from the clerk: "), "{said}");
    world.run(&["stop"]).await.expect(0);
    let said = world.run(&["up", "--once"]).await.expect(3);
    assert!(said.out.contains("stopped") && said.out.contains("steward resume"), "{said}");
}
