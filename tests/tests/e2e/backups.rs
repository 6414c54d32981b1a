//! Backups of a served vault, and a vault that comes back from one: alone, and as a tenant of a fleet.

use crate::shared_namespace::{Fleet, Tenant};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use steward_tests::steward::Steward;
use steward_tests::vault::{Signal, Vault};
use steward_tests::wait;
use steward_tests::world::World;

/// The complete backups in a folder, the newest last.
fn list_backups(folder: &Path) -> Vec<PathBuf> {
    steward_vault::backup::list_backups(folder).unwrap()
}

/// What `steward status` says about backups.
async fn read_backup_status(steward: &Steward) -> Value {
    steward.run(&["status", "--json"]).await.expect(0).json()["backup"].clone()
}

#[tokio::test]
async fn a_lost_vault_comes_back_from_its_backup_and_goes_on() {
    let world = World::with_one_done().await.live().with_rare_ticks();
    let backups = world.folder.join("backups/home");
    let world = world.set("STEWARD_BACKUP_DIR", backups.display());
    let mut worker = world.worker().await;
    wait::until("the first backup", async || (!list_backups(&backups).is_empty()).then_some(())).await;
    world.tick("house").await;
    assert_eq!(world.vault.state("rent"), "done");
    let said = world.run(&["backup", "create"]).await.expect(0);
    assert!(said.out.contains("1 audit records"), "{said}");
    let verified = world.run(&["backup", "verify", "--json"]).await.expect(0).json();
    assert_eq!((&verified["chain"]["seq"], &verified["faults"]), (&json!(1), &json!([])));
    let status = read_backup_status(&world.steward).await;
    assert_eq!((&status["late"], &status["fault"]), (&json!(false), &Value::Null), "{status}");

    worker.kill();
    worker.dies().await;
    let refused = world.run(&["backup", "restore"]).await.expect(1);
    assert!(refused.err.contains("is not empty"), "{refused}");
    std::fs::remove_dir_all(world.vault.path()).unwrap();
    let said = world.run(&["backup", "restore"]).await.expect(0);
    assert!(said.out.contains("1. start the process") && said.out.contains("--accept-ledger-loss"), "{said}");
    assert_eq!(world.vault.state("rent"), "done");
    let _worker = world.worker().await;
    world.run(&["audit", "verify"]).await.expect(0);
    world.run(&["undo", &world.vault.records()[0].draft.id.to_string()]).await.expect(0);
    assert_eq!(world.vault.state("rent"), "open");

    // Nobody knows how many calls were made since the backup, so none is made until a person accepts that.
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal::done("roof"));
    world.tick("house").await;
    assert_eq!(world.vault.state("roof"), "open");
    let accepted = world.run(&["doctor", "--accept-ledger-loss"]).await;
    assert!(accepted.out.contains("allows calls"), "{accepted}");
    world.tick("house").await;
    assert_eq!(world.vault.state("roof"), "done");
}

#[tokio::test]
async fn a_backup_that_fails_is_named_everywhere_until_one_is_made() {
    let world = World::new().await.set("STEWARD_BACKUP_EVERY", "10s");
    let obstacle = world.folder.join("backups");
    std::fs::write(&obstacle, "a file where a folder should be").unwrap();
    let world = world.set("STEWARD_BACKUP_DIR", obstacle.join("home").display());
    let (_up, api) = steward_tests::api::up(&world).await;
    let reader = api.token(&world, "read").await;
    let status = wait::until("the fault", async || {
        let status = read_backup_status(&world.steward).await;
        status["fault"].is_string().then_some(status)
    })
    .await;
    assert_eq!(status["late"], json!(true));
    let said = world.run(&["doctor"]).await.expect(4);
    assert!(said.out.contains("WRONG backups") && said.out.contains("Not a directory"), "{said}");
    let metrics = reader.get("/metrics").await.body;
    assert!(metrics.contains("\nsteward_backup_timestamp_seconds 0\n"), "{metrics}");
    assert!(metrics.contains("\nsteward_backup_interval_seconds 10\n"), "{metrics}");
    let today = reader.get("/").await.body;
    assert!(today.contains("Backups") && today.contains("Not a directory"), "{today}");
    std::fs::remove_file(&obstacle).unwrap();
    wait::until("a backup", async || {
        let status = read_backup_status(&world.steward).await;
        (status["late"] == json!(false) && status["fault"].is_null()).then_some(())
    })
    .await;
    let metrics = reader.get("/metrics").await.body;
    assert!(!metrics.contains("\nsteward_backup_timestamp_seconds 0\n"), "{metrics}");
}

/// A copy of a tenant's environment for another place of its vault.
fn elsewhere(tenant: &Tenant, name: &str) -> Steward {
    tenant.steward.with("STEWARD_VAULT", tenant.world.folder.join(name).display())
}

async fn start_is_refused(steward: &Steward, reason: &str) {
    let said = steward.run(&["up"]).await.expect(3);
    assert!(said.err.contains(reason), "{said}");
}

/// Waits for the next heartbeat, which says how far the chain has come.
async fn fleet_has_seen(fleet: &Fleet, records: usize) {
    wait::until("the fleet to see the records", async || {
        let rows: Value = serde_json::from_str(&fleet.run(&["fleet", "status", "--json"]).await).unwrap();
        (rows[0]["owner"]["chain"]["seq"] == json!(records)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_tenants_vault_is_restored_elsewhere_and_the_fleet_knows_what_it_lacks() {
    let fleet = Fleet::new("backed-up").await;
    let tenant = fleet.tenant("backed-up").await;
    fleet.run(&["fleet", "tenant", "set", "backed-up", "--max-mode", "live", "--expect", "live"]).await;
    let backups = tenant.world.folder.join("backups");
    let mut old = tenant.up().await;
    let records = |count: usize| {
        let vault = &tenant.world.vault;
        wait::until("the records", async move || (vault.records().len() == count).then_some(()))
    };
    records(1).await;
    let create = ["backup", "create", "--to", backups.to_str().unwrap()];
    tenant.steward.run(&create).await.expect(0);
    // Filed after the backup, so the restored copy cannot have it.
    let action = tenant.world.vault.records()[0].draft.id.to_string();
    tenant.steward.run(&["undo", &action]).await.expect(0);
    records(2).await;
    fleet_has_seen(&fleet, 2).await;

    let new = elsewhere(&tenant, "restored");
    let backup = list_backups(&backups).pop().unwrap();
    let restore = ["backup", "restore", backup.to_str().unwrap()];
    let refused = new.without("STEWARD_TENANT").without("STEWARD_FLEET_DB").run(&restore).await.expect(1);
    assert!(refused.err.contains("is of the tenant backed-up"), "{refused}");
    let said = new.run(&restore).await.expect(0);
    assert!(said.out.contains("steward fleet take backed-up --yes"), "{said}");
    start_is_refused(&new, "another copy of this vault owns the tenant backed-up").await;
    new.run(&create).await.expect(3);
    let shown = new.run(&["fleet", "take", "backed-up"]).await.expect(3);
    assert!(shown.out.contains("lacks 1 of the 2 audit records"), "{shown}");
    new.run(&["fleet", "take", "backed-up", "--yes"]).await.expect(0);
    assert_eq!(old.ends().await.code(), Some(3));
    new.run(&["audit", "verify"]).await.expect(0);
    let mut taken = new.start(&["up"]);
    taken.says("up; Ctrl-C ends it").await;
    new.run(&["undo", &action]).await.expect(0);
    taken.stop().await;

    // A snapshot of the disk has the same id of the copy, so only its audit records tell it apart.
    let (vault, snapshot) = (tenant.world.folder.join("restored"), tenant.world.folder.join("snapshot"));
    let copied = std::process::Command::new("cp").arg("-a").args([&vault, &snapshot]).status().unwrap();
    assert!(copied.success());
    let mut again = new.start(&["up"]);
    again.says("up; Ctrl-C ends it").await;
    new.run(&["fleet", "take", "backed-up"]).await.expect(0);
    new.run(&["doctor", "--accept-ledger-loss"]).await;
    let restored = Vault::open(vault.clone());
    let before = restored.records().len();
    restored.task("roof", "house");
    restored.signal("s9", &Signal::done("roof"));
    wait::until("another record", async || (restored.records().len() > before).then_some(())).await;
    fleet_has_seen(&fleet, restored.records().len()).await;
    again.stop().await;
    std::fs::remove_dir_all(&vault).unwrap();
    std::fs::rename(&snapshot, &vault).unwrap();
    start_is_refused(&new, "the vault here was set back").await;
    let verified = new.run(&["audit", "verify"]).await.expect(4);
    assert!(verified.out.contains("which the fleet has seen"), "{verified}");
    new.run(&["fleet", "take", "backed-up", "--yes"]).await.expect(0);
    new.run(&["audit", "verify"]).await.expect(0);
    let mut back = new.start(&["up"]);
    back.says("up; Ctrl-C ends it").await;
    back.stop().await;
}
