//! F9: all vaults and the database of a fleet are destroyed, and restored from their backups.
//!
//! The database comes back on another server of Postgres, from `pg_dumpall --globals-only` and `pg_dump`. They are taken after the
//! vaults' backups and after one more change, so that each vault lacks a record that the fleet knows of. The recovery point is
//! the age of the backups at the loss, and the recovery time ends when every tenant has changed something again.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use std::path::Path;
use std::time::Duration;
use steward_tests::fleet::{BUCKET, Fleet, Tenant};
use steward_tests::postgres::Postgres;
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::vault::Vault;
use steward_tests::wait;
use steward_vault::backup::find_newest_backup;

/// How often each process makes a backup here, in short and in full; by default it is 15 min.
const BACKUP_SECONDS: (u64, u64) = (20, 60);
/// How long a backup takes at most while many are made at once.
const BACKUP: Duration = Duration::from_secs(30);
const RECOVERY_TIME: Duration = Duration::from_secs(15 * 60);

/// Runs something for every tenant, four at once.
async fn for_all<T>(tenants: &[Tenant], run: impl AsyncFn(&Tenant) -> T) -> Vec<T> {
    let mut results = Vec::new();
    for some in tenants.chunks(4) {
        results.extend(join_all(some.iter().map(async |tenant| run(tenant).await)).await);
    }
    results
}

async fn start_all(tenants: &[Tenant]) -> Vec<Supervised> {
    let processes: Vec<Supervised> = tenants.iter().map(|tenant| Supervised::start(&tenant.steward)).collect();
    for process in &processes {
        process.serves().await;
    }
    processes
}

async fn wait_until_done(tenants: &[Tenant], task: &str) {
    wait::until(&format!("{task} to be done everywhere"), async || {
        tenants.iter().all(|tenant| tenant.is_done(task)).then_some(())
    })
    .await;
}

/// How many records the newest backup of a vault has.
fn count_backed_up(tenant: &Tenant) -> usize {
    let newest = find_newest_backup(&tenant.folder.join("backups")).unwrap();
    newest.map_or(0, |(folder, _)| Vault::open(folder.join("vault")).records().len())
}

/// Waits until each process has made a backup of everything that is done.
async fn wait_for_backups(tenants: &[Tenant]) {
    wait::until("a backup of each vault with all records", async || {
        tenants.iter().all(|tenant| count_backed_up(tenant) == tenant.vault.records().len()).then_some(())
    })
    .await;
}

/// How old the oldest of the newest backups is at a moment.
fn measure_recovery_point(tenants: &[Tenant], lost: DateTime<Utc>) -> Duration {
    let taken = tenants.iter().map(|tenant| find_newest_backup(&tenant.folder.join("backups")).unwrap().unwrap().1);
    (lost - taken.min().unwrap()).to_std().unwrap()
}

async fn create_tenants(fleet: &Fleet, provider: &Provider, count: usize, seconds: u64) -> Vec<Tenant> {
    let mut tenants = Vec::new();
    for n in 0..count {
        // What the gate refuses stays due until the next check.
        let mut tenant = fleet.add_asking_tenant(&format!("lost-{n}"), &["house"], provider, 5).await;
        tenant.steward.set("STEWARD_BACKUP_DIR", tenant.folder.join("backups").display());
        tenant.steward.set("STEWARD_BACKUP_EVERY", format!("{seconds}s"));
        tenant.feed("before", "house");
        tenants.push(tenant);
    }
    tenants
}

/// Waits until the fleet has seen the records of every vault.
async fn wait_until_seen(fleet: &Fleet, tenants: &[Tenant]) {
    wait::until("the fleet to see all records", async || {
        let seen = |tenant: &Tenant| {
            let seen = fleet.sql(&format!("SELECT chain_records FROM owner WHERE tenant = '{}'", tenant.id));
            seen == tenant.vault.records().len().to_string()
        };
        tenants.iter().all(seen).then_some(())
    })
    .await;
}

/// How many records `steward fleet take` says are missing.
async fn take(tenant: &Tenant) -> usize {
    let shown = tenant.steward.run(&["fleet", "take", &tenant.id]).await.expect(3);
    let missing = shown.out.split("lacks ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::parse::<usize>);
    tenant.steward.run(&["fleet", "take", &tenant.id, "--yes"]).await.expect(0);
    missing.and_then(Result::ok).unwrap_or_else(|| panic!("no number of missing records: {shown}"))
}

/// Restores the database on another server and tells everybody its address.
async fn restore_database(fleet: &mut Fleet, tenants: &mut [Tenant], folder: &Path) {
    let new: &'static Postgres = Box::leak(Box::new(Postgres::start().await));
    let database = new.create_database();
    new.load("postgres", &folder.join("globals.sql"));
    new.load(&database, &folder.join("fleet.sql"));
    let (_, place) = database.split_once('@').unwrap();
    for tenant in tenants {
        let (user, _) = tenant.steward.variable("STEWARD_FLEET_DB").unwrap().split_once('@').unwrap();
        let url = format!("{user}@{place}");
        tenant.steward.set("STEWARD_FLEET_DB", url);
    }
    fleet.operator.set("STEWARD_FLEET_DB", &database);
    (fleet.database, fleet.postgres) = (database, new);
}

#[tokio::test(flavor = "multi_thread")]
async fn f9_a_fleet_that_lost_everything_comes_back_from_its_backups() {
    let (form, mut report) = (Form::read(), Report::new("F9"));
    let seconds = form.choose(BACKUP_SECONDS.0, BACKUP_SECONDS.1);
    let old: &'static Postgres = Box::leak(Box::new(Postgres::start().await));
    let mut fleet = Fleet::new("restore", old).await;
    let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(100))).await;
    let mut tenants = create_tenants(&fleet, &provider, form.choose(3, 20), seconds).await;
    let processes = start_all(&tenants).await;
    wait_until_done(&tenants, "before").await;
    wait_for_backups(&tenants).await;
    tenants.iter().for_each(|tenant| tenant.feed("after", "house"));
    wait_until_done(&tenants, "after").await;
    wait_until_seen(&fleet, &tenants).await;
    let folder = tenants[0].folder.clone();
    std::fs::write(folder.join("globals.sql"), old.dump("postgres", &["pg_dumpall", "--globals-only"])).unwrap();
    std::fs::write(folder.join("fleet.sql"), old.dump(&fleet.database, &["pg_dump"])).unwrap();
    let known: Vec<usize> = tenants.iter().map(|tenant| tenant.vault.records().len()).collect();

    let lost = Utc::now();
    let point = measure_recovery_point(&tenants, lost);
    let kept: Vec<usize> = tenants.iter().map(count_backed_up).collect();
    processes.iter().for_each(|process| assert!(process.kill().is_some()));
    drop(processes);
    tenants.iter().for_each(|tenant| std::fs::remove_dir_all(tenant.vault.path()).unwrap());
    old.destroy(&fleet.database);

    restore_database(&mut fleet, &mut tenants, &folder).await;
    let missing = for_all(&tenants, async |tenant| {
        let backups = steward_vault::backup::list_backups(&tenant.folder.join("backups")).unwrap();
        tenant.steward.run(&["backup", "restore", backups.last().unwrap().to_str().unwrap()]).await.expect(0);
        let missing = take(tenant).await;
        tenant.steward.run(&["doctor", "--accept-ledger-loss"]).await;
        missing
    })
    .await;
    let processes = start_all(&tenants).await;
    tenants.iter().for_each(|tenant| tenant.feed("new", "house"));
    // The gate cannot know which calls were made since the dump, so it refuses until somebody accepts that.
    let calls = provider.arrivals().len();
    let noticed = wait::until("the gate to notice the loss", async || {
        let lost = fleet.sql("SELECT lost_why FROM bucket_state WHERE lost_at IS NOT NULL");
        (!lost.is_empty()).then_some(lost)
    });
    eprintln!("F9 the bucket's loss: {}", noticed.await);
    let early = provider.arrivals().len() - calls;
    fleet.run(&["fleet", "bucket", "accept-loss", BUCKET]).await;
    wait_until_done(&tenants, "new").await;
    let recovered = (Utc::now() - lost).to_std().unwrap();
    drop(processes);

    let expected: Vec<usize> = known.iter().zip(&kept).map(|(known, kept)| known - kept).collect();
    let wrong = missing.iter().zip(&expected).filter(|(said, expected)| said != expected).count();
    report
        .add("processes", tenants.len())
        .within("recovery_point", point, Duration::from_secs(seconds) + BACKUP)
        .soon("recovery_time", recovered, RECOVERY_TIME)
        .add("missing_records", missing.iter().sum::<usize>())
        .at_least("missing_at_least", missing.iter().sum(), 1)
        .must_be("wrong_numbers_of_missing_records", wrong, 0)
        .must_be("calls_before_the_loss_was_accepted", early, 0)
        .must_be("broken_chains", crate::count_broken_chains(&tenants).await, 0);
    report.finish();
}
