//! The machine around the vault: missing, full, locked or wrong parts, and the report of `doctor`.

use serde_json::Value;
use std::process::Command;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::run;
use steward_tests::steward::Said;
use steward_tests::wait;
use steward_tests::world::World;

/// Runs the other arguments in the vault `$1`, mounted with the options `$2`.
const READ_ONLY: &str = r#"mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@""#;
const SMALL: &str = r#"mkdir "$1.small" && mount -t tmpfs -o size=256k steward "$1.small" && cp -r "$1/." "$1.small/" \
    && mount --bind "$1.small" "$1" && shift && exec "$@""#;

/// Mounting needs a user namespace or root; without either these tests cannot run here.
fn mounting(script: &'static str, world: &World) -> Vec<String> {
    let probe = Command::new("unshare").args(["-rm", "true"]).status();
    assert!(probe.is_ok_and(|s| s.success()), "`unshare -rm` does not work: allow unprivileged user namespaces");
    let vault = world.vault.path().display().to_string();
    ["unshare", "-rm", "sh", "-c", script, "sh", &vault].map(str::to_owned).to_vec()
}

/// The problem that a check of `doctor` found.
fn wrong(said: &Said, check: &str) -> String {
    let findings = said.json();
    let findings = findings.as_array().unwrap().iter();
    let wrong = findings.filter(|f| f["check"] == check && f["ok"] == Value::Bool(false));
    wrong.map(|f| f["found"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
}

fn says(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "no `{word}` in: {text}"));
}

#[tokio::test]
async fn a_vault_that_cannot_be_written_is_refused_before_anything_is_judged() {
    let world = World::with_one_done().await.live();
    let wrap = mounting(READ_ONLY, &world);
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    let before = world.vault.files();
    let said = world.steward.wrapped(&wrap).run(&["worker"]).await.expect(1);
    says(&said.err, &["Read-only", "must be writable"]);
    let doctor = world.steward.wrapped(&wrap).run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "lock"), &["Read-only", "must be writable"]);
    let vault = world.vault.path().display().to_string();
    says(&wrong(&doctor, "vault disk"), &[&vault, "the disk is read-only", "mount it for writing"]);
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_the_change_comes_when_there_is_room() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::with_one_done().await.live().asking(&clerk);
    let databases = world.folder.join("databases");
    std::fs::create_dir(&databases).unwrap();
    let world = world.set("STEWARD_STATE_DIR", databases.display());
    let wrap = mounting(SMALL, &world);
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    let worker = world.worker_with(&world.steward.wrapped(&wrap)).await;
    // The vault at the path that the process uses.
    let seen = std::path::PathBuf::from(format!("/proc/{}/root{}", worker.pid(), world.vault.path().display()));
    let original = std::fs::read(seen.join("task/rent.md")).unwrap();
    let filler = seen.join("filler");
    let tick = world.begin("house").await;
    wait::until("the clerk to be asked", async || (!clerk.asked().is_empty()).then_some(())).await;
    fill(&filler);
    open.send_replace(true);
    let report = tick.report().await;
    let TaskCheckOutcome::Error { reason } = &report.evaluated[0].ended else { panic!("{report:?}") };
    says(reason, &["No space left"]);
    assert_eq!(std::fs::read(seen.join("task/rent.md")).unwrap(), original);
    let events = || std::fs::read_dir(seen.join("event")).map_or(0, Iterator::count);
    assert_eq!(events(), 0, "no record of what did not happen");

    let report = world.tick("house").await;
    match &report.evaluated[0].ended {
        TaskCheckOutcome::Error { reason } | TaskCheckOutcome::RateGuarded { reason, .. } => {
            says(reason, &["free some space"])
        }
        other => panic!("{other:?}"),
    }

    std::fs::remove_file(&filler).unwrap();
    let done = async || {
        world.tick("house").await;
        (events() == 1).then_some(())
    };
    wait::until("the change to be made", done).await;
    let text = std::fs::read_to_string(seen.join("task/rent.md")).unwrap();
    assert!(text.contains("state: done"), "{text}");
}

/// Writes until not a single block fits any more.
fn fill(path: &std::path::Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    for size in [65_536, 4_096, 512, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

#[tokio::test]
async fn a_vault_that_is_not_there_names_the_setting() {
    let world = World::new().await;
    let nowhere = world.folder.join("nowhere");
    let steward = world.steward.with("STEWARD_VAULT", nowhere.display());
    for command in ["worker", "status", "up"] {
        let said = steward.run(&[command]).await.expect(1);
        says(&said.err, &["nowhere", "STEWARD_VAULT"]);
    }
    says(&wrong(&steward.run(&["doctor", "--json"]).await.expect(4), "vault"), &["nowhere", "STEWARD_VAULT"]);
    let file = steward.with("STEWARD_VAULT", run::binary().display()).run(&["status"]).await.expect(1);
    says(&file.err, &["cannot be opened as a folder", "STEWARD_VAULT"]);
}

#[tokio::test]
async fn an_empty_vault_is_no_error() {
    let world = World::new().await;
    let worker = world.worker().await;
    let status = world.json(&["status"]).await;
    assert_eq!(status["counts"]["matters"]["open"], 0);
    let doctor = world.run(&["doctor", "--json"]).await;
    assert!(wrong(&doctor, "vault").is_empty() && wrong(&doctor, "index").is_empty(), "{doctor}");
    assert_eq!(world.json(&["audit", "list"]).await, serde_json::json!([]));
    world.run(&["audit", "verify"]).await.expect(0);
    let listed = world.json(&["schedules", "list"]).await;
    assert!(listed.as_array().unwrap().iter().all(|row| row["matter"].is_null()), "{listed}");
    assert!(worker.stop().await.success());
}

#[tokio::test]
async fn a_vault_that_another_process_writes_is_named_with_its_holder() {
    let world = World::with_one_done().await;
    let worker = world.worker().await;
    let up = world.run(&["up"]).await.expect(1);
    says(&up.err, &[".steward/lock", &format!("process {}", worker.pid()), "steward worker"]);
    let doctor = world.run(&["doctor"]).await.expect(0);
    says(&doctor.out, &[&format!("held by `steward worker` (process {})", worker.pid())]);
    worker.stop().await;
    let doctor = world.run(&["doctor", "--json"]).await.expect(0);
    assert_eq!(wrong(&doctor, "lock"), "");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named_with_the_setting() {
    let world = World::with_one_done().await;
    let address = format!("127.0.0.1:{}", run::free_port());
    let steward = world.steward.with("TEMPORAL_ADDRESS", &address);
    for command in [&["worker"][..], &["schedules", "list"], &["undo", "ffff"], &["tick", "house"]] {
        let said = steward.run(command).await.expect(1);
        says(&said.err, &[&address, "TEMPORAL_ADDRESS"]);
    }
    let doctor = steward.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "temporal"), &[&address, "TEMPORAL_ADDRESS"]);
    let other = world.steward.with("TEMPORAL_NAMESPACE", "no-such-namespace");
    let doctor = other.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "temporal"), &["TEMPORAL_NAMESPACE"]);
}

#[tokio::test]
async fn a_missing_cli_and_a_taken_port_are_found_with_their_mend() {
    let world = World::with_one_done().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut steward = world.steward.without("TEMPORAL_ADDRESS");
    steward.set("STEWARD_TEMPORAL_CLI", "/nowhere/temporal").set("STEWARD_TEMPORAL_PORT", port);
    let doctor = steward.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "temporal cli"), &["/nowhere/temporal", "STEWARD_TEMPORAL_CLI"]);
    says(&wrong(&doctor, "port"), &[&port.to_string(), "STEWARD_TEMPORAL_PORT"]);
    let up = steward.run(&["up", "--once"]).await.expect(1);
    says(&up.err, &["/nowhere/temporal", "STEWARD_TEMPORAL_CLI"]);
    let said = steward.run(&["tick", "house"]).await.expect(1);
    says(&said.err, &["steward up", "TEMPORAL_ADDRESS"]);
}

#[tokio::test]
async fn a_clock_that_stands_before_the_files_is_found() {
    let world = World::with_one_done().await;
    world.vault.write("event/note.md", "a person's own note");
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    std::fs::File::open(world.vault.path().join("event")).unwrap().set_modified(ahead).unwrap();
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "clock"), &["in the future", "check the clock"]);
}

#[tokio::test]
async fn an_unknown_key_is_an_error_that_names_it() {
    let world = World::with_one_done().await;
    let said = world.steward.with("STEWARD_LIVE_MOD", "live").run(&["status"]).await.expect(1);
    says(&said.err, &["STEWARD_LIVE_MOD:", "did you mean `STEWARD_LIVE_MODE`?"]);
    let said = world.steward.with("STEWARD_CADENCE_TASK_HOURS", "1").run(&["status"]).await.expect(1);
    says(&said.err, &["STEWARD_CADENCE_TASK_HOURS:", "not a setting"]);
    std::fs::write(world.folder.join("steward.toml"), "live_mode = \"live\"\n[caps]\nper_year = 1\n").unwrap();
    let said = world.run(&["status"]).await.expect(1);
    says(&said.err, &["steward.toml:3:", "`caps.per_year`: not a setting"]);
    std::fs::write(world.folder.join("steward.toml"), "live_mode = \"live\"\n").unwrap();
    assert_eq!(world.json(&["status"]).await["policy"]["mode"], "live");
    let shadow = world.steward.with("STEWARD_LIVE_MODE", "shadow");
    assert_eq!(shadow.run(&["status", "--json"]).await.json()["policy"]["mode"], "shadow", "the environment wins");
}

#[tokio::test]
async fn a_variable_that_is_not_utf8_ends_no_command_and_one_of_ours_is_named() {
    let world = World::with_one_done().await;
    let mut steward = world.steward.clone();
    steward.set_bytes("LATIN", b"caf\xe9");
    steward.run(&["status"]).await.expect(0);
    // Temporal's own configuration file counts, too.
    steward.run(&["schedules", "list"]).await.expect(0);
    for name in ["STEWARD_VAULT", "STEWARD_CLERK_MODEL"] {
        let mut steward = world.steward.clone();
        let said = steward.set_bytes(name, b"caf\xe9").run(&["status"]).await.expect(1);
        says(&said.err, &[name, "UTF-8"]);
    }
    let mut steward = world.steward.clone();
    let said = steward.set_bytes("TEMPORAL_ADDRESS", b"caf\xe9").run(&["schedules", "list"]).await.expect(1);
    says(&said.err, &["TEMPORAL_ADDRESS", "UTF-8"]);
}

#[tokio::test]
async fn a_folder_one_stands_in_runs_no_program_and_raises_no_mode() {
    let world = World::with_one_done().await;
    let planted = world.vault.path().join(".tools/temporal/bin/temporal");
    std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
    std::fs::copy("/bin/true", &planted).unwrap();
    std::fs::copy("/bin/true", world.vault.path().join("temporal")).unwrap();
    let steward = world.steward.without("TEMPORAL_ADDRESS").inside(world.vault.path());
    let path = std::env::var("PATH").unwrap();
    for path in [path.clone(), format!(":{path}"), format!(".:{path}")] {
        let doctor = steward.with("PATH", path).run(&["doctor", "--json"]).await;
        let findings = doctor.json();
        let cli = findings.as_array().unwrap().iter().find(|f| f["check"] == "temporal cli").unwrap().clone();
        let found = cli["found"].as_str().unwrap();
        assert!(found.starts_with('/') && !found.contains("steward-tests-") || cli["ok"] == false, "{found}");
    }
    // A file in a vault is no configuration: it is named, and nothing of it counts.
    let plain = steward.run(&["status", "--json"]).await.expect(0).json();
    for (key, bold) in [
        ("live_mode", "live_mode = \"live\""),
        ("temporal_cli", "temporal_cli = \"./temporal\""),
        ("caps", "[caps]\nper_day = 9\n"),
        ("task_queue", "task_queue = \"mine\"\n"),
    ] {
        std::fs::write(world.vault.path().join("steward.toml"), bold).unwrap();
        let status = steward.run(&["status", "--json"]).await.expect(0).json();
        says(&status["warnings"].to_string(), &["steward.toml", &format!("`{key}`"), "ignored"]);
        assert_eq!((&status["policy"], &status["guard"]), (&plain["policy"], &plain["guard"]), "{bold}");
    }
    // A file that somebody names may lie in the vault, but must not say how far its steward goes.
    std::fs::write(world.vault.path().join("steward.toml"), "live_mode = \"live\"").unwrap();
    let named = steward.with("STEWARD_CONFIG", "steward.toml").run(&["status"]).await.expect(1);
    says(&named.err, &["steward.toml", "lies in the vault", "STEWARD_"]);
}

#[tokio::test]
async fn what_only_looks_works_on_a_vault_that_cannot_be_written() {
    let world = World::with_one_done().await.live();
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;
    let elsewhere = world.folder.join("state");
    std::fs::create_dir(&elsewhere).unwrap();
    let wrap = mounting(READ_ONLY, &world);
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    let before = world.vault.files();
    let plain = world.steward.wrapped(&wrap);
    for steward in [plain.clone(), plain.with("STEWARD_STATE_DIR", elsewhere.display())] {
        let status = steward.run(&["status", "--json"]).await.expect(0).json();
        assert_eq!(status["counts"]["actions"], 1, "{status:#}");
        let listed = steward.run(&["audit", "list", "--json"]).await.expect(0).json();
        let action = listed[0]["id"].as_str().unwrap().to_owned();
        steward.run(&["audit", "show", &action]).await.expect(0);
        steward.run(&["audit", "verify"]).await.expect(0);
        steward.run(&["index", "check"]).await.expect(0);
        let report = steward.run(&["trust", "report", "--json"]).await.expect(0).json();
        assert_eq!(report["total"]["actions"], 1, "{report:#}");
        steward.run(&["backtest"]).await.expect(0);
    }
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
    // Steward's own folder is missing completely.
    let fresh = World::with_one_done().await;
    let wrap = mounting(READ_ONLY, &fresh);
    let wrap: Vec<&str> = wrap.iter().map(String::as_str).collect();
    let status =
        fresh.steward.wrapped(&wrap).with("STEWARD_STATE_DIR", elsewhere.display()).run(&["status"]).await.expect(0);
    says(&status.out, &["steward up"]);
    assert!(!status.out.contains("No such file"), "{status}");
}

#[tokio::test]
async fn a_cause_is_told_once() {
    let world = World::new().await;
    let steward = world.steward.with("STEWARD_VAULT", world.folder.join("nowhere").display());
    for said in [steward.run(&["status"]).await.err, steward.run(&["doctor"]).await.out] {
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
    }
}

#[tokio::test]
async fn an_index_that_disagrees_is_found_and_can_be_rebuilt() {
    let world = World::with_one_done().await;
    world.json(&["index", "rebuild"]).await;
    // Another content of the same length and time: only reading every file finds it.
    let path = world.vault.path().join("task/rent.md");
    let at = std::fs::metadata(&path).unwrap().modified().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("do it", "did i")).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "index"), &["1 file", "steward index rebuild"]);
    let checked = world.run(&["index", "check"]).await.expect(4);
    says(&checked.out, &["task/rent.md", "steward index rebuild"]);
    world.json(&["index", "rebuild"]).await;
    world.run(&["index", "check"]).await.expect(0);
}

#[tokio::test]
async fn an_index_that_is_no_database_is_set_aside_and_the_steward_goes_on() {
    let world = World::with_one_done().await.live();
    world.json(&["index", "rebuild"]).await;
    // Without its write-ahead log, from which SQLite would restore the overwritten pages.
    world.vault.lose_databases();
    std::fs::write(world.vault.path().join(".steward/state.db"), "this is no database".repeat(1000)).unwrap();
    let said = world.run(&["worker"]).await.expect(1);
    says(&said.err, &["state.db", "damaged", "steward index rebuild"]);
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "index"), &["state.db", "steward index rebuild"]);
    world.json(&["index", "rebuild"]).await;
    let _worker = world.worker().await;
    world.tick("house").await;
    assert_eq!((world.vault.state("rent").as_str(), world.live_actions().len()), ("done", 1));
}

#[tokio::test]
async fn a_lost_ledger_lets_no_clerk_call_through_until_an_operator_accepts_it() {
    let world = World::with_one_done().await.live();
    world.vault.task("later", "house");
    let worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(world.vault.state("rent"), "done");
    worker.stop().await;
    world.vault.lose_databases();
    world.vault.signal("s2", &steward_tests::vault::Signal::done("later"));
    let _worker = world.worker().await;
    let report = world.tick("house").await;
    let TaskCheckOutcome::RateGuarded { reason, .. } = &report.evaluated[0].ended else { panic!("{report:?}") };
    says(reason, &["ledger", "--accept-ledger-loss"]);
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    says(&wrong(&doctor, "rate guard"), &["--accept-ledger-loss"]);
    let doctor = world.run(&["doctor", "--json", "--accept-ledger-loss"]).await;
    assert_eq!(wrong(&doctor, "rate guard"), "");
    let done = async || {
        world.tick("house").await;
        (world.vault.state("later") == "done").then_some(())
    };
    wait::until("calls to go on", done).await;
}
