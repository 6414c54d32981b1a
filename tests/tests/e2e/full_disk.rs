//! A full disk under a running steward: its reports meanwhile, and that everything continues once there is space.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::api::{self, Api};
use steward_tests::steward::{Running, Said, Steward};
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// Runs the other arguments with a small file system in the folder `$1`, which keeps the folder's contents.
const SMALL: &str = r#"mkdir "$1.small" && mount -t tmpfs -o size="$2" steward "$1.small" && { cp -r "$1/." "$1.small/" || cp -r "$1/." "$1.small/"; } \
    && mount --bind "$1.small" "$1" && shift 2 && exec "$@""#;

/// `up` with a small disk under one of its folders.
pub(crate) struct Cramped {
    world: World,
    up: Running,
    api: Api,
    /// The small disk, at the path that the process uses.
    disk: PathBuf,
}

impl Cramped {
    pub(crate) async fn up(world: World, folder: &Path, size: &str) -> Self {
        let probe = Command::new("unshare").args(["-rm", "true"]).status();
        assert!(probe.is_ok_and(|s| s.success()), "`unshare -rm` does not work: allow unprivileged user namespaces");
        let shown = folder.display().to_string();
        world.index_quietly(&world.steward).await;
        let wrap = ["unshare", "-rm", "sh", "-c", SMALL, "sh", &shown, size];
        let mut up = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").wrapped(&wrap).start(&["up"]);
        up.says("up; Ctrl-C ends it").await;
        world.hold_calibration().await;
        let api = Api::new(api::link(&up).split("/login").next().unwrap());
        let disk = PathBuf::from(format!("/proc/{}/root{shown}", up.pid()));
        Self { world, up, api, disk }
    }

    /// A command that sees the same disk as the process.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        let pid = self.up.pid().to_string();
        let inside = ["nsenter", "--target", &pid, "--user", "--mount", "--preserve-credentials"];
        Steward::wrapped(&self.world.steward, &inside).run(arguments).await
    }

    /// The small disk, at a path that this process can use.
    pub(crate) fn disk(&self) -> &Path {
        &self.disk
    }

    /// Writes until not a single byte fits any more.
    pub(crate) fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.disk.join("ballast")).unwrap();
        for size in [65_536, 4_096, 512, 1] {
            while file.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.disk.join("ballast")).unwrap();
    }

    async fn wait_until_ready(&self) {
        wait::until("readiness", async || (self.api.get("/readyz").await.status == 200).then_some(())).await;
    }

    /// The problem that a check of `doctor` found.
    async fn wrong(&self, check: &str) -> String {
        let findings = self.run(&["doctor", "--json"]).await.expect(4).json();
        let wrong = findings.as_array().unwrap().iter().find(|f| f["check"] == check && f["ok"] == json!(false));
        wrong.unwrap_or_else(|| panic!("{findings:#}"))["found"].as_str().unwrap().to_owned()
    }
}

fn says(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "no `{word}` in: {text}"));
}

#[tokio::test]
async fn with_a_full_state_folder_an_undo_is_done_readiness_is_true_and_all_goes_on_with_space() {
    let world = World::with_one_done().await.live().with_rare_ticks().set("STEWARD_SCAN_SECONDS", 5);
    world.vault.task("roof", "house");
    let databases = world.folder.join("databases");
    std::fs::create_dir(&databases).unwrap();
    let world = world.set("STEWARD_STATE_DIR", databases.display());
    let cramped = Cramped::up(world, &databases, "6m").await;
    let world = &cramped.world;
    let done = async |task: &str| (world.vault.state(task) == "done").then_some(());
    world.tick("house").await;
    wait::until("the change", async || done("rent").await).await;
    let action = world.live_action();
    cramped.wait_until_ready().await;

    cramped.fill();
    let ready = cramped.api.get("/readyz").await;
    assert_eq!(ready.status, 503, "{ready:?}");
    says(&ready.body, &["the state folder cannot be written"]);
    says(&cramped.wrong("state disk").await, &[databases.to_str().unwrap(), "full", "bytes free"]);
    let undone = world.answer("undo", &action).await.result().await;
    assert_eq!((&undone["kind"], &undone["target"]), (&json!("done"), &json!("task/rent.md")), "{undone}");
    assert_eq!(world.vault.state("rent"), "open");
    world.vault.signal("s2", &Signal { source: "letter", ..Signal::done("roof") });
    // It cannot start: without a count of calls nothing may be judged.
    world.begin("house").await.failure().await;
    assert_eq!(world.vault.state("roof"), "open");
    assert_eq!(cramped.api.get("/readyz").await.status, 503);

    cramped.make_room();
    cramped.wait_until_ready().await;
    wait::until("the second change, by itself", async || done("roof").await).await;
    let again = world.answer("undo", &action).await.result().await;
    assert_eq!((&again["kind"], &again["status"]), (&json!("refused"), &json!(409)), "{again}");
    let shown = cramped.run(&["audit", "list", "--json"]).await.expect(0).json();
    assert_eq!(world.vault.records().len(), shown.as_array().unwrap().len(), "{shown:#}");
    world.verify_chain().await;
    let findings = cramped.run(&["doctor", "--json"]).await.json();
    assert!(findings.as_array().unwrap().iter().any(|f| f["check"] == "state disk" && f["ok"] == true), "{findings:#}");
}

#[tokio::test]
async fn with_a_full_vault_the_stop_works_and_the_change_is_made_by_itself_when_there_is_space() {
    let world = World::with_one_done().await.live().with_rare_ticks();
    let databases = world.folder.join("databases");
    std::fs::create_dir(&databases).unwrap();
    let vault = world.vault.path().to_owned();
    let world = world.set("STEWARD_STATE_DIR", databases.display());
    let cramped = Cramped::up(world, &vault, "512k").await;
    let world = &cramped.world;
    let state = || std::fs::read_to_string(cramped.disk.join("task/rent.md")).unwrap();
    cramped.wait_until_ready().await;

    cramped.fill();
    let report = world.tick("house").await;
    match &report.evaluated[0].ended {
        TaskCheckOutcome::Error { reason } | TaskCheckOutcome::RateGuarded { reason, .. } => {
            says(reason, &["free some space"])
        }
        other => panic!("{other:?}"),
    }
    says(&cramped.wrong("vault disk").await, &[vault.to_str().unwrap(), "full", "bytes free"]);
    says(&cramped.api.get("/readyz").await.body, &["the vault cannot be written"]);
    let stopped = cramped.run(&["--json", "stop", "--reason", "no space"]).await.expect(0).json();
    assert_eq!((&stopped["stop"]["by"], &stopped["stop"]["reason"]), (&json!("tester"), &json!("no space")));
    assert!(world.tick("house").await.stopped);
    cramped.run(&["resume"]).await.expect(0);
    assert!(state().contains("state: open"), "{}", state());

    cramped.make_room();
    let done = async || state().contains("state: done").then_some(());
    wait::until("the change, by itself", done).await;
    cramped.wait_until_ready().await;
    let events = std::fs::read_dir(cramped.disk.join("event")).unwrap().count();
    assert_eq!(events, 1, "one record for one change");
    let verified: Value = cramped.run(&["--json", "audit", "verify"]).await.expect(0).json();
    assert_eq!(verified["faults"], json!([]), "{verified}");
}
