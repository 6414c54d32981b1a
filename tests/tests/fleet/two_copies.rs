//! F2: an owner is frozen at each step of a change, its backup is restored on another machine and takes over, and then the
//! first one wakes. A change that was not allowed yet must not happen; one that was finishes on the old disk alone.
//!
//! Another time the first one is cut from the fleet's database alone, so that it lives and hears of nothing. Who did a step is
//! read from Temporal's histories by the identity of the worker, and who asked for a permit by a trigger in Postgres.

use chrono::{DateTime, TimeDelta, Utc};
use rustix::process::Signal as Sent;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use steward_tests::fleet::{Cuts, Fleet, Tenant};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::steward::Steward;
use steward_tests::supervisor::Supervised;
use steward_tests::world::is_frozen;
use steward_tests::{postgres, runs, wait};
use steward_vault::backup;

/// When a process must have noticed that it is not the owner any more.
const NOTICE: Duration = Duration::from_secs(15);
const CADENCE: u32 = 2;
/// Where a process is frozen in its change, and how many records it may still write when it wakes: it asks the fleet for the
/// last time after the first two.
const STEPS: [(&str, usize); 6] = [
    ("before-staging", 0),
    ("after-journal", 0),
    ("before-swap", 1),
    ("after-swap", 1),
    ("before-filing", 1),
    ("after-filing", 1),
];

/// One tenant on its first machine.
struct First {
    tenant: Tenant,
    cuts: Cuts,
    process: Supervised,
    fed: usize,
}

/// What the first copy did after it had to know better.
#[derive(Default)]
struct Misdeeds {
    permits: usize,
    steps: usize,
    records: usize,
    /// Records of the changes that were frozen on their way, beyond what each step allows.
    surplus_records: usize,
    starts_of_the_old: usize,
    swaps: usize,
    broken_chains: usize,
    doubled: usize,
    noticed: Vec<Duration>,
}

/// From when on a copy that was replaced is judged.
struct Moments {
    from: DateTime<Utc>,
    noticed: DateTime<Utc>,
}

impl First {
    async fn start(fleet: &Fleet, id: &str) -> Self {
        let mut tenant = fleet.add_tenant(id, &["house"]).await;
        tenant.set_cadence(CADENCE);
        let cuts = tenant.add_cuts().await;
        let process = Supervised::start(&tenant.steward);
        process.serves().await;
        let mut first = Self { tenant, cuts, process, fed: 0 };
        first.feed();
        wait::until("the first change", async || first.tenant.is_done("t0").then_some(())).await;
        first
    }

    fn feed(&mut self) {
        self.tenant.feed(&format!("t{}", self.fed), "house");
        self.fed += 1;
    }

    /// Makes a backup and restores it on another machine, without a cut of the first one.
    async fn restore(&self, url: &str) -> Tenant {
        let backups = self.tenant.folder.join("backups");
        let new = self.tenant.move_to("restored");
        let new = Tenant { steward: uncut(&new.steward, url), ..new };
        new.steward.run(&["backup", "restore", find_newest(&backups).to_str().unwrap()]).await.expect(0);
        new
    }

    async fn back_up(&self) {
        let folder = self.tenant.folder.join("backups");
        self.tenant.steward.run(&["backup", "create", "--to", folder.to_str().unwrap()]).await.expect(0);
    }
}

fn find_newest(backups: &std::path::Path) -> PathBuf {
    backup::list_backups(backups).unwrap().pop().unwrap()
}

/// The environment of a machine that no gate cuts.
fn uncut(steward: &Steward, url: &str) -> Steward {
    let (user, _) = steward.variable("STEWARD_FLEET_DB").unwrap().split_once('@').unwrap();
    let (_, place) = url.split_once('@').unwrap();
    steward.with("STEWARD_FLEET_DB", format!("{user}@{place}"))
}

/// Notes every permit: over whose connection, and when. The row itself names the owner, whoever asked.
fn watch_permits(fleet: &Fleet) {
    fleet.sql(
        "CREATE TABLE permit_log (tenant text, port integer, at timestamptz);
         CREATE FUNCTION log_permit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
             INSERT INTO permit_log VALUES (NEW.tenant, inet_client_port(), clock_timestamp()); RETURN NEW; END $$;
         CREATE TRIGGER log_permit AFTER INSERT OR UPDATE ON owner FOR EACH ROW EXECUTE FUNCTION log_permit();",
    );
}

fn read_copy(tenant: &Tenant) -> String {
    String::from_utf8(tenant.vault.read(".steward/copy")).unwrap().trim().to_owned()
}

/// Lets a restored copy take over, start, and change something.
async fn take_over(first: &First, new: &Tenant) -> Supervised {
    new.steward.run(&["doctor", "--accept-ledger-loss"]).await;
    new.steward.run(&["fleet", "take", &first.tenant.id, "--yes"]).await.expect(0);
    let process = Supervised::start(&new.steward);
    process.serves().await;
    new.feed("new-1", "house");
    wait::until("the new owner to act", async || new.is_done("new-1").then_some(())).await;
    process
}

/// Counts the permits and records that the first copy got from a moment on, and the steps of runs that it made from another one
/// on, when it must have noticed.
async fn count_misdeeds(fleet: &Fleet, first: &First, new: &Tenant, moments: Moments, done: &mut Misdeeds) {
    let Moments { from, noticed } = moments;
    let (id, at) = (&first.tenant.id, from.to_rfc3339());
    // The first copy alone goes through the gate.
    let ports: Vec<String> = first.cuts.postgres.ports().iter().map(ToString::to_string).collect();
    let count = |when: &str| {
        let asked = format!("tenant = '{id}' AND port IN ({})", ports.join(", "));
        let permits = fleet.sql(&format!("SELECT count(*) FROM permit_log WHERE {asked} AND at {when} '{at}'"));
        permits.parse::<usize>().unwrap()
    };
    assert!(count("<") > 0, "the permits of the first copy are not seen at all");
    done.permits += count(">");
    let pids: BTreeSet<u32> = first.process.starts().iter().map(|start| start.pid).collect();
    let tasks = runs::list_all_completed_tasks(&fleet.client, &format!("StewardTenant = '{id}'")).await;
    done.steps += tasks.iter().filter(|task| task.at > noticed && pids.contains(&task.pid)).count();
    done.records += first.tenant.vault.records().iter().filter(|record| record.draft.timestamp > from).count();
    for vault in [&first.tenant.vault, &new.vault] {
        let targets: Vec<String> = vault.records().iter().map(|record| record.draft.target.to_string()).collect();
        done.doubled += targets.len() - targets.iter().collect::<BTreeSet<_>>().len();
    }
}

/// Restarts both copies. The new one serves on, the old one stays closed, and the chain of each is whole.
async fn restart_both(fleet: &Fleet, first: &First, new: &Tenant, process: &Supervised, done: &mut Misdeeds) {
    process.restart().await;
    let again = Supervised::start(&first.tenant.steward);
    assert_eq!(again.gives_up().await, 3, "{}", again.logs());
    done.starts_of_the_old += again.starts().iter().filter(|start| start.served.is_some()).count();
    let owner = fleet.sql(&format!("SELECT copy FROM owner WHERE tenant = '{}'", first.tenant.id));
    done.swaps += usize::from(owner != read_copy(new));
    done.broken_chains += usize::from(new.steward.run(&["audit", "verify"]).await.code != Some(0));
    // The fleet follows the chain of the new copy, so that of the old one is read as that of a vault alone.
    let alone = first.tenant.folder.join(format!("alone-{}", done.noticed.len()));
    let copied =
        std::process::Command::new("cp").arg("-a").arg(first.tenant.vault.path()).arg(&alone).status().unwrap();
    assert!(copied.success());
    let steward = first.tenant.steward.without("STEWARD_TENANT").without("STEWARD_FLEET_DB");
    let steward = steward.with("STEWARD_VAULT", alone.display());
    steward.run(&["fleet", "release"]).await.expect(0);
    done.broken_chains += usize::from(steward.run(&["audit", "verify"]).await.code != Some(0));
}

/// The first copy is frozen at this step of a change, and wakes after the other one took over.
async fn wake_the_frozen(fleet: &Fleet, id: &str, step: &str, allowed: usize, done: &mut Misdeeds) {
    let mut first = First::start(fleet, id).await;
    first.back_up().await;
    // The next process freezes when it passes the step for the first time.
    first.process.set("STEWARD_CRASH_AT", format!("{step}:1:stop"));
    first.process.restart().await;
    let before = first.tenant.vault.records().len();
    first.feed();
    wait::until(&format!("the process to freeze at {step}"), async || {
        is_frozen(first.process.last().pid).then_some(())
    })
    .await;
    let new = first.restore(&fleet.database).await;
    let process = take_over(&first, &new).await;
    let woken = Utc::now();
    first.process.send(Sent::CONT);
    let code = wait::within(NOTICE * 2, "the woken process to end", async || first.process.last().code).await;
    assert_eq!(code, 3, "{}", first.process.logs());
    done.noticed.push((first.process.last().ended.unwrap() - woken).to_std().unwrap());
    let after = first.tenant.vault.records().len() - before;
    if after > allowed {
        eprintln!("F2 frozen at {step}: {after} records");
    }
    done.surplus_records += after.saturating_sub(allowed);
    wait::a_moment(Duration::from_secs(3)).await;
    let moments = Moments { from: woken, noticed: first.process.last().ended.unwrap() };
    count_misdeeds(fleet, &first, &new, moments, done).await;
    restart_both(fleet, &first, &new, &process, done).await;
}

/// The first copy is cut from the database alone. It cannot hear of the other one, and must be quiet all the same.
async fn cut_the_first(fleet: &Fleet, id: &str, done: &mut Misdeeds) {
    let mut first = First::start(fleet, id).await;
    first.back_up().await;
    first.feed();
    wait::until("the second change", async || first.tenant.is_done("t1").then_some(())).await;
    first.cuts.postgres.cut();
    let cut = Utc::now();
    let new = first.restore(&fleet.database).await;
    let process = take_over(&first, &new).await;
    wait::until("the time to notice to be over", async || {
        (Utc::now() > cut + TimeDelta::from_std(NOTICE).unwrap()).then_some(())
    })
    .await;
    wait::a_moment(Duration::from_secs(15)).await;
    let opened = Utc::now();
    first.cuts.postgres.open();
    assert_eq!(first.process.gives_up().await, 3, "{}", first.process.logs());
    done.noticed.push((Utc::now() - opened).to_std().unwrap());
    let noticed = cut + TimeDelta::from_std(NOTICE).unwrap();
    count_misdeeds(fleet, &first, &new, Moments { from: noticed, noticed }, done).await;
    restart_both(fleet, &first, &new, &process, done).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f2_a_replaced_copy_never_acts_again_whether_it_wakes_or_hears_nothing() {
    let mut report = Report::new("F2");
    if !Form::read().has_long_scene("F2") {
        return;
    }
    let fleet = Fleet::new("copies", postgres::server().await).await;
    watch_permits(&fleet);
    let mut done = Misdeeds::default();
    for (n, (step, allowed)) in STEPS.into_iter().enumerate() {
        wake_the_frozen(&fleet, &format!("frozen-{n}"), step, allowed, &mut done).await;
    }
    cut_the_first(&fleet, "deaf", &mut done).await;
    let slowest = done.noticed.iter().max().copied().unwrap();
    report
        .add("frozen_in_a_change", STEPS.len())
        .add("cut", 1)
        .within("noticed", slowest, NOTICE)
        .must_be("permits_of_the_old", done.permits, 0)
        .must_be("steps_of_the_old", done.steps, 0)
        .must_be("records_of_the_old", done.records, 0)
        .must_be("surplus_records_of_the_frozen", done.surplus_records, 0)
        .must_be("served_again_by_the_old", done.starts_of_the_old, 0)
        .must_be("swaps", done.swaps, 0)
        .must_be("doubled_changes", done.doubled, 0)
        .must_be("broken_chains", done.broken_chains, 0);
    report.finish();
}
