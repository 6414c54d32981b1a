//! Tenants: vaults that share a Temporal namespace and a database. The real binary on a real Temporal and a real Postgres.

use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::action::plan::Disposition;
use steward_tests::gate::Gate;
use steward_tests::server::TestServer;
use steward_tests::steward::{Running, Steward};
use steward_tests::vault::{Signal, Vault};
use steward_tests::wait;
use steward_tests::world::World;
use steward_tests::{postgres, run};

/// A namespace and a database that tenants share.
pub(crate) struct Fleet {
    /// The binary with the database of the administrator, and no vault.
    pub(crate) operator: Steward,
    server: Arc<TestServer>,
    namespace: String,
}

/// A tenant with a vault like that of [`World::with_one_done`].
pub(crate) struct Tenant {
    pub(crate) world: World,
    pub(crate) steward: Steward,
}

impl Fleet {
    pub(crate) async fn new(name: &str) -> Self {
        let (world, database) = (World::new().await, postgres::server().await.create_database());
        let namespace = format!("fleet-{name}");
        let operator = world.steward.without("STEWARD_VAULT").without("STEWARD_TASK_QUEUE");
        let operator = operator.with("STEWARD_FLEET_DB", database).with("TEMPORAL_NAMESPACE", &namespace);
        let fleet = Self { operator, server: Arc::clone(&world.server), namespace };
        let said = fleet.run(&["fleet", "init"]).await;
        assert!(said.contains(&fleet.namespace), "{said}");
        fleet.run(&["fleet", "init"]).await;
        fleet
    }

    /// What the Temporal CLI prints as JSON about the namespace of the fleet.
    async fn temporal(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = tokio::process::Command::new(run::temporal_cli());
        command.args(arguments).args(["--output=json", "--address", self.server.address()]);
        command.args(["--namespace", &self.namespace]);
        command.kill_on_drop(true).output().await.unwrap().stdout
    }

    /// The number of events in the history of a run.
    async fn count_events(&self, workflow: &str) -> usize {
        let shown = self.temporal(&["workflow", "show", "--workflow-id", workflow]).await;
        let history: Value = serde_json::from_slice(&shown).unwrap();
        history["events"].as_array().unwrap().len()
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        self.operator.run(arguments).await.expect(0).out
    }

    /// Creates a tenant and its vault. The mode of its process is `live`; its ceiling still is `shadow`.
    pub(crate) async fn tenant(&self, id: &str) -> Tenant {
        // Roles belong to the whole server of Postgres.
        let role = format!("DROP ROLE IF EXISTS \"steward_tenant_{id}\"");
        postgres::server().await.sql(self.operator.variable("STEWARD_FLEET_DB").unwrap(), &role);
        let made: Value = serde_json::from_str(&self.run(&["fleet", "tenant", "add", id, "--json"]).await).unwrap();
        let world = World::with_one_done().await;
        let steward = world.steward.without("STEWARD_TASK_QUEUE").with("TEMPORAL_NAMESPACE", &self.namespace);
        // The world of a tenant may lie on another server.
        let steward = steward.with("TEMPORAL_ADDRESS", self.server.address());
        let steward = steward.with("STEWARD_TENANT", id).with("STEWARD_FLEET_DB", made["fleet_db"].as_str().unwrap());
        Tenant { world, steward: steward.with("STEWARD_LIVE_MODE", "live").with("STEWARD_LISTEN", "127.0.0.1:0") }
    }
}

impl Tenant {
    pub(crate) async fn up(&self) -> Running {
        start(&self.steward).await
    }

    /// Adds the task `wall` with a message that is too weak to act on alone, and returns the id of the proposal.
    pub(crate) async fn propose_wall(&self) -> String {
        self.world.vault.task("wall", "house");
        self.world.vault.signal("s4", &Signal { effect_confidence: 0.9, source: "post", ..Signal::done("wall") });
        wait::until("a proposal", async || {
            let records = self.world.vault.records();
            records.iter().find(|record| record.draft.pending_confirmation).map(|record| record.draft.id.to_string())
        })
        .await
    }

    /// Waits for the first decision and returns its disposition.
    async fn decision(&self) -> Disposition {
        wait::until("a decision", async || self.world.vault.records().first().map(|record| record.draft.disposition))
            .await
    }
}

async fn start(steward: &Steward) -> Running {
    let mut up = steward.start(&["up"]);
    up.says("up; Ctrl-C ends it").await;
    up
}

/// The ids of the schedules that this vault's command lists.
async fn schedules(steward: &Steward) -> Vec<String> {
    let listed = steward.run(&["schedules", "list", "--json"]).await.expect(0).json();
    listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// Copies a vault as a backup does: without what belongs to this copy alone.
fn restore(from: &Path, to: &Path) {
    let copy = || {
        let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success();
        // A file that the running process removes meanwhile ends a copy.
        if !copied {
            std::fs::remove_dir_all(to).unwrap();
        }
        copied
    };
    assert!((0..10).any(|_| copy()), "{} cannot be copied", from.display());
    for left_out in ["copy", "lock"] {
        let _ = std::fs::remove_file(to.join(".steward").join(left_out));
    }
}

/// A tenant's process wants its tenant's role, and an operator's command an operator's.
async fn check_that_each_side_refuses_the_others_url(fleet: &Fleet, tenant: &Tenant) {
    let (operators, tenants) =
        (fleet.operator.variable("STEWARD_FLEET_DB"), tenant.steward.variable("STEWARD_FLEET_DB"));
    let said = tenant.steward.with("STEWARD_FLEET_DB", operators.unwrap()).run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("an operator's role"), "{said}");
    for command in [&["fleet", "bucket", "list"][..], &["fleet", "status"], &["stop", "--fleet"]] {
        let said = fleet.operator.with("STEWARD_FLEET_DB", tenants.unwrap()).run(command).await.expect(1);
        assert!(said.err.contains("has the role of the tenant a:"), "{said}");
    }
}

async fn check_that_modes_are_shown(fleet: &Fleet) {
    let status = fleet.operator.run(&["fleet", "status", "--json"]).await.expect(4).json();
    let owners: Vec<&str> =
        status.as_array().unwrap().iter().map(|row| row["owner"]["mode"].as_str().unwrap()).collect();
    assert_eq!(owners, ["live", "live"], "not as expected, which is shadow");
    for id in ["a", "a-clerk"] {
        fleet.run(&["fleet", "tenant", "set", id, "--expect", "live"]).await;
    }
    let table = fleet.run(&["fleet", "status"]).await;
    assert!(table.contains("shadow") && table.contains(" fleet "), "each is live, and the fleet allows less: {table}");
    wait::until("a report of the work", async || {
        let rows: Value = serde_json::from_str(&fleet.run(&["fleet", "status", "--json"]).await).unwrap();
        rows[0]["owner"]["progress"]["last_check"].as_str().map(drop)
    })
    .await;
}

#[tokio::test]
async fn tenants_share_a_namespace_and_never_touch_each_others_schedules() {
    let fleet = Fleet::new("shared").await;
    let (one, other) = (fleet.tenant("a").await, fleet.tenant("a-clerk").await);
    let (mut first, _second) = (one.up().await, other.up().await);
    assert_eq!((one.decision().await, other.decision().await), (Disposition::Shadow, Disposition::Shadow));
    for (tenant, id) in [(&one, "a"), (&other, "a-clerk")] {
        let listed = schedules(&tenant.steward).await;
        assert_eq!(listed.len(), 6, "{listed:?}");
        assert!(listed.iter().all(|schedule| schedule.ends_with(&format!("@{id}"))), "{listed:?}");
        assert!(listed.contains(&format!("al-steward-house@{id}")), "{listed:?}");
    }
    let checked = one.steward.run(&["preflight", "--json"]).await.expect(0).json();
    // A tick that asked a clerk has many events, and a tenant's takes other steps than that of a vault alone.
    let judged = checked["shapes"].as_array().unwrap().iter().find(|shape| shape["events"].as_u64() > Some(10));
    assert_eq!(judged.unwrap()["outcome"]["kind"], "safe", "{checked}");
    let action = one.world.vault.records()[0].draft.id.to_string();
    one.steward.run(&["wrong", &action]).await.expect(0);
    assert_eq!(other.world.vault.records().len(), 1, "the answer reached its own vault alone");

    check_that_modes_are_shown(&fleet).await;

    // As docs/fleet.md says: the attribute finds the runs, and the password may be in a file.
    for id in ["a", "a-clerk"] {
        wait::until("its runs to be found", async || {
            let query = format!("StewardTenant = '{id}'");
            let runs: Value =
                serde_json::from_slice(&fleet.temporal(&["workflow", "list", "--query", &query]).await).ok()?;
            let ids: Vec<&str> =
                runs.as_array()?.iter().filter_map(|run| run["execution"]["workflowId"].as_str()).collect();
            assert!(ids.iter().all(|run| run.contains(&format!("@{id}-20"))), "{ids:?}");
            (!ids.is_empty()).then_some(())
        })
        .await;
    }
    let url = fleet.operator.variable("STEWARD_FLEET_DB").unwrap();
    let (user, place) = url.trim_start_matches("postgres://").split_once('@').unwrap();
    let (name, password) = user.split_once(':').unwrap();
    let file = one.world.folder.join("pgpass");
    std::fs::write(&file, format!("*:*:*:{name}:{password}\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let without_password = fleet.operator.with("STEWARD_FLEET_DB", format!("postgres://{name}@{place}"));
    without_password.run(&["fleet", "tenant", "list"]).await.expect(1);
    without_password.with("PGPASSFILE", file.display()).run(&["fleet", "tenant", "list"]).await.expect(0);

    check_that_each_side_refuses_the_others_url(&fleet, &one).await;

    // Without its tenant, or beside tenants without one, nothing starts.
    first.kill();
    let without = one.steward.without("STEWARD_TENANT").without("STEWARD_FLEET_DB");
    let said = without.run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("belongs to the tenant a"), "{said}");
    let alone = World::with_one_done().await;
    let there = alone.steward.with("TEMPORAL_ADDRESS", fleet.server.address());
    let said = there.with("TEMPORAL_NAMESPACE", &fleet.namespace).run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("is shared by tenants"), "{said}");
    let said = one.steward.with("STEWARD_TENANT", "b").run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("STEWARD_TENANT is b"), "{said}");

    // Dropping one leaves the other's schedules.
    let database = fleet.operator.variable("STEWARD_FLEET_DB").unwrap().to_owned();
    let said = fleet.operator.run(&["fleet", "tenant", "drop", "a", "--yes"]).await.expect(3);
    assert!(said.out.contains("was heard a moment ago"), "{said}");
    postgres::server().await.sql(&database, "UPDATE owner SET seen = seen - interval '1 hour' WHERE tenant = 'a'");
    fleet.run(&["fleet", "tenant", "drop", "a", "--yes"]).await;
    wait::until("its schedules to be gone", async || {
        let left = fleet.operator.run(&["fleet", "tenant", "drop", "a", "--json"]).await.expect(0).json();
        left["schedules"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
    assert_eq!(schedules(&other.steward).await.len(), 6);
    let said = one.steward.run(&["up", "--once"]).await.expect(1);
    assert!(said.err.contains("not permitted to log in"), "{said}");
}

/// Another copy may own the vault by now, so nothing is even taken from Temporal. Returns the id of a run that waits there.
async fn begin_a_run_that_waits(fleet: &Fleet, up: &Running) -> &'static str {
    wait::until("the process to stop polling", async || {
        up.err().contains("takes no task until it answers").then_some(())
    })
    .await;
    let begin = ["workflow", "start", "--workflow-id", "probe", "--type", "StewardWorkflow"];
    let input = ["--task-queue", "steward.ceiling", "--input", "\"matter/house.md\""];
    fleet.temporal(&[&begin[..], &input].concat()).await;
    let waits = async || fleet.count_events("probe").await == 2;
    wait::stays(Duration::from_secs(3), "the run waits at the server", waits).await;
    "probe"
}

#[tokio::test]
async fn the_registrys_ceiling_and_a_cut_database_hold_every_landing() {
    let fleet = Fleet::new("ceiling").await;
    let mut tenant = fleet.tenant("ceiling").await;
    let url = tenant.steward.variable("STEWARD_FLEET_DB").unwrap().to_owned();
    let (place, rest) = url.split_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let gate = Gate::new(server).await;
    tenant.steward.set("STEWARD_FLEET_DB", format!("{place}@{}/{database}", gate.address));
    let mut up = tenant.up().await;
    assert_eq!(tenant.decision().await, Disposition::Shadow, "the process is live, and its ceiling is not");
    assert_eq!(tenant.world.vault.state("rent"), "open");

    fleet.run(&["fleet", "tenant", "set", "ceiling", "--max-mode", "live"]).await;
    gate.close();
    wait::until("the process to see that nobody answers", async || {
        up.err().contains("nothing lands until").then_some(())
    })
    .await;
    let status = tenant.steward.run(&["status", "--json"]).await.expect(0).json();
    let paused = status["paused"].as_str().unwrap();
    assert!(paused.contains("nothing lands") && paused.contains("fleet's database"), "{paused}");
    let action = tenant.world.vault.records()[0].draft.id.to_string();
    let refused = tenant.steward.run(&["right", &action]).await.expect(3);
    assert!(refused.err.contains("nothing lands"), "{refused}");
    tenant.world.vault.signal("s2", &Signal::done("rent"));
    wait::stays(Duration::from_secs(8), "nothing lands while the database is cut", async || {
        tenant.world.vault.state("rent") == "open" && tenant.world.vault.records().len() == 1
    })
    .await;
    let probe = begin_a_run_that_waits(&fleet, &up).await;
    gate.open();
    wait::until("the run to be taken", async || (fleet.count_events(probe).await > 2).then_some(())).await;
    // The task stayed due, and the matter is woken for it.
    wait::until("it to go on by itself", async || (tenant.world.vault.state("rent") == "done").then_some(())).await;

    // A stop of the fleet holds clerk, changes and confirmations, and not an undo; its end wakes what it held.
    let pending = tenant.propose_wall().await;
    let said = fleet.run(&["stop", "--fleet", "--reason", "a leak"]).await;
    assert!(said.contains("all tenants are stopped") && said.contains("a leak"), "{said}");
    let listed = fleet.operator.run(&["fleet", "status", "--json"]).await.expect(4).json();
    assert_eq!(listed[0]["stop"]["reason"], "a leak");
    let refused = tenant.steward.run(&["confirm", &pending]).await.expect(3);
    assert!(refused.all().contains("stopped"), "{refused}");
    let live = tenant.world.live_action();
    tenant.steward.run(&["undo", &live]).await.expect(0);
    assert_eq!(tenant.world.vault.state("rent"), "open");
    let before = tenant.world.vault.records().len();
    tenant.world.vault.task("roof", "house");
    tenant.world.vault.signal("s3", &Signal { source: "bank", ..Signal::done("roof") });
    wait::stays(Duration::from_secs(4), "nothing is decided under a stop", async || {
        tenant.world.vault.records().len() == before
    })
    .await;
    let said = fleet.run(&["resume", "--fleet", "--tenant", "ceiling"]).await;
    assert!(said.contains("there was no such stop") && said.contains("still: all tenants"), "{said}");
    fleet.run(&["resume", "--fleet"]).await;
    wait::until("what was held to go on", async || (tenant.world.vault.state("roof") == "done").then_some(())).await;
    let log = fleet.run(&["fleet", "log"]).await;
    for part in ["resume", "stop", "a leak", "tenant set", "tenant add"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    up.kill();
}

#[tokio::test]
async fn a_restored_copy_takes_over_by_command_alone_and_the_old_one_never_acts_again() {
    let fleet = Fleet::new("restored").await;
    let tenant = fleet.tenant("restored").await;
    let mut old = tenant.up().await;
    tenant.decision().await;
    let folder = tenant.world.folder.join("restored");
    restore(tenant.world.vault.path(), &folder);
    let elsewhere = tenant.steward.with("STEWARD_VAULT", folder.display());
    let said = elsewhere.run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("another copy of this vault owns the tenant restored"), "{said}");
    let said = elsewhere.run(&["fleet", "take", "restored"]).await.expect(3);
    assert!(said.out.contains("--yes"), "{said}");
    for command in [&["schedules", "adopt", "--yes"][..], &["tick", "house"], &["drain"]] {
        let refused = elsewhere.run(command).await.expect(3);
        assert!(refused.err.contains("another copy"), "{refused}");
    }
    let empty = tenant.world.folder.join("empty");
    std::fs::create_dir(&empty).unwrap();
    for command in [&["fleet", "take", "restored", "--yes"][..], &["up", "--once"]] {
        let said = tenant.steward.with("STEWARD_VAULT", empty.display()).run(command).await;
        assert!(said.err.contains("the vault here is none"), "{said}");
    }
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "nothing is written to a wrong volume");
    elsewhere.run(&["fleet", "take", "restored", "--yes"]).await.expect(0);
    assert_eq!(old.ends().await.code(), Some(3), "{}", old.err());
    assert!(old.err().contains("another copy of this vault owns it now"), "{}", old.err());

    fleet.run(&["fleet", "tenant", "set", "restored", "--max-mode", "live"]).await;
    let before = tenant.world.vault.records().len();
    let _new = start(&elsewhere).await;
    // A process that may do more judges again, at its start, what was decided in shadow.
    let restored = Vault::open(folder);
    wait::until("the new owner to act", async || (restored.state("rent") == "done").then_some(())).await;
    let said = tenant.steward.run(&["up", "--once"]).await.expect(3);
    assert!(said.err.contains("was shut out") && said.err.contains("Leave this one stopped"), "{said}");
    assert!(!said.err.contains("fleet take"), "nobody is told to bring it back: {said}");
    let said = tenant.steward.run(&["doctor"]).await.expect(4);
    assert!(said.out.contains("WRONG owner") && said.out.contains("was shut out"), "{said}");
    for command in [&["fleet", "take", "restored"][..], &["fleet", "take", "restored", "--yes"]] {
        let said = tenant.steward.run(command).await.expect(3);
        assert!(said.out.contains("--take-back"), "{said}");
    }
    assert_eq!(tenant.world.vault.records().len(), before, "the old copy did nothing more");
}

#[tokio::test]
async fn a_tenants_vault_can_stand_alone_again() {
    let fleet = Fleet::new("release").await;
    let tenant = fleet.tenant("release").await;
    drop(tenant.up().await);
    let alone = tenant.steward.without("STEWARD_TENANT").without("STEWARD_FLEET_DB");
    alone.run(&["status"]).await.expect(3);
    alone.run(&["fleet", "release"]).await.expect(0);
    let alone = alone.with("TEMPORAL_NAMESPACE", &tenant.world.namespace);
    let alone = alone.with("TEMPORAL_ADDRESS", tenant.world.server.address());
    let mut up = start(&alone).await;
    // The routines are registered first.
    let is_listed = async || schedules(&alone).await.contains(&"al-steward-house".to_owned()).then_some(());
    wait::until("the schedule of the matter", is_listed).await;
    up.kill();
}
