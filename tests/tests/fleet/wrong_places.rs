//! F8: an empty mount, the volume of another tenant, a tenant that is gone, a variable that is missing.
//!
//! Each must be refused for good, with the fix named, and no schedule may be deleted, as the server's own list shows. Once the
//! fault is gone the tenant is served again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::rehearsal::Report;
use steward_tests::steward::Steward;
use steward_tests::supervisor::Supervised;
use steward_tests::vault::Vault;
use steward_tests::{postgres, wait};

/// How often a process compares its schedules with the server: several times in each case.
const CHECK_SECONDS: u32 = 1;
/// How long a process that is served again has to do harm by what it took for granted meanwhile.
const HARM: Duration = Duration::from_millis(1_500);

struct Scene {
    fleet: Fleet,
    ours: Tenant,
    other: Tenant,
    schedules: BTreeSet<String>,
    cases: usize,
    lost: usize,
    recovered: usize,
}

impl Scene {
    async fn start() -> Self {
        let fleet = Fleet::new("places", postgres::server().await).await;
        let mut tenants = Vec::new();
        for id in ["place-a", "place-b"] {
            let mut tenant = fleet.add_tenant(id, &["boat", "house"]).await;
            tenant.steward.set("STEWARD_SCHEDULE_CHECK_SECONDS", CHECK_SECONDS);
            Supervised::start(&tenant.steward).serves().await;
            tenants.push(tenant);
        }
        let (other, ours) = (tenants.pop().unwrap(), tenants.pop().unwrap());
        let schedules = wait::until("all schedules to be listed", async || {
            Some(fleet.list_schedules().await).filter(|listed| listed.len() == 14)
        });
        let schedules = schedules.await;
        Self { fleet, ours, other, schedules, cases: 0, lost: 0, recovered: 0 }
    }

    /// The process must be refused, with one of these exit codes and this fix.
    async fn must_refuse(&mut self, case: &str, steward: &Steward, codes: &[i32], fix: &str) {
        let said = steward.run(&["up"]).await;
        assert!(codes.iter().any(|code| said.code == Some(*code)), "{case}: {said}");
        assert!(said.err.contains(fix), "{case} names no fix: {said}");
        self.compare_schedules().await;
    }

    /// A process that serves must end for good once `alter` has been done, with this fix.
    async fn must_end(&mut self, case: &str, fix: &str, alter: impl FnOnce(&Self)) {
        let process = Supervised::start(&self.ours.steward);
        process.serves().await;
        alter(self);
        let code = process.gives_up().await;
        assert!(code == 3 && process.logs().contains(fix), "{case}: {code}\n{}", process.logs());
        self.compare_schedules().await;
    }

    async fn compare_schedules(&mut self) {
        self.cases += 1;
        self.lost += self.schedules.symmetric_difference(&self.fleet.list_schedules().await).count();
    }

    /// With everything in its place the tenant is served.
    async fn must_recover(&mut self) {
        let process = Supervised::start(&self.ours.steward);
        process.serves().await;
        wait::a_moment(HARM).await;
        self.lost += self.schedules.symmetric_difference(&self.fleet.list_schedules().await).count();
        self.recovered += 1;
    }

    /// An empty folder where the vault was. Returns where the vault is now.
    fn unmount(&self) -> PathBuf {
        let away = self.ours.folder.join("away");
        std::fs::rename(self.ours.vault.path(), &away).unwrap();
        std::fs::create_dir(self.ours.vault.path()).unwrap();
        away
    }

    fn mount(&self, away: &Path) {
        let left = std::fs::read_dir(self.ours.vault.path()).unwrap().count();
        assert_eq!(left, 0, "something was written to an empty mount");
        std::fs::remove_dir(self.ours.vault.path()).unwrap();
        std::fs::rename(away, self.ours.vault.path()).unwrap();
    }
}

async fn try_mounts(scene: &mut Scene) {
    let away = scene.unmount();
    let steward = scene.ours.steward.clone();
    scene.must_refuse("an empty mount", &steward, &[3], "mount the right one").await;
    scene.mount(&away);
    scene.must_recover().await;
    let away = scene.ours.folder.join("away");
    scene.must_end("an empty mount under a process", "mount the right one", |scene| drop(scene.unmount())).await;
    scene.mount(&away);
    scene.must_recover().await;

    let other = scene.ours.steward.with("STEWARD_VAULT", scene.other.vault.path().display());
    scene.must_refuse("another tenant's volume", &other, &[3], "belongs to the tenant place-b").await;
    let plain = Vault::new(scene.ours.folder.join("plain"));
    ["boat", "house"].iter().for_each(|matter| plain.matter(matter));
    let strange = scene.ours.steward.with("STEWARD_VAULT", plain.path().display());
    scene.must_refuse("a vault that nobody knows", &strange, &[3], "mount the right one").await;
}

async fn try_rows(scene: &mut Scene) {
    scene.fleet.sql("CREATE TABLE kept_tenant AS SELECT * FROM tenant; CREATE TABLE kept_owner AS SELECT * FROM owner");
    let gone = "DELETE FROM owner WHERE tenant = 'place-a'; DELETE FROM tenant WHERE id = 'place-a'";
    let back = "INSERT INTO tenant SELECT * FROM kept_tenant WHERE id = 'place-a' ON CONFLICT DO NOTHING; \
        INSERT INTO owner SELECT * FROM kept_owner WHERE tenant = 'place-a' ON CONFLICT DO NOTHING";
    scene.fleet.sql(gone);
    let steward = scene.ours.steward.clone();
    scene.must_refuse("a row that is gone", &steward, &[3], "steward fleet tenant add place-a").await;
    scene.fleet.sql(back);
    scene.must_recover().await;
    scene.must_end("a row that goes under a process", "steward fleet", |scene| drop(scene.fleet.sql(gone))).await;
    scene.fleet.sql(back);
    scene.must_recover().await;
    let state = |state: &str| format!("UPDATE tenant SET state = '{state}' WHERE id = 'place-a'");
    scene
        .must_end("a tenant that is dropped under a process", "was dropped", |scene| {
            drop(scene.fleet.sql(&state("dropped")));
        })
        .await;
    scene.must_refuse("a dropped tenant", &steward, &[3], "was dropped").await;
    scene.fleet.sql(&state("active"));
    scene.must_recover().await;
}

async fn try_variables(scene: &mut Scene) {
    let steward = scene.ours.steward.clone();
    let (tenant, database) = ("STEWARD_TENANT", "STEWARD_FLEET_DB");
    scene.must_refuse("no tenant", &steward.without(tenant), &[1, 3], tenant).await;
    scene.must_refuse("no database", &steward.without(database), &[1, 3], database).await;
    let neither = steward.without(tenant).without(database);
    scene.must_refuse("neither", &neither, &[3], "set STEWARD_TENANT=place-a and STEWARD_FLEET_DB").await;
    scene.must_refuse("another tenant", &steward.with(tenant, "place-b"), &[3], "STEWARD_TENANT is place-b").await;
    let theirs = steward.with(database, scene.other.steward.variable(database).unwrap());
    scene.must_refuse("another tenant's role", &theirs, &[3], "steward fleet tenant add place-a").await;
    scene.must_recover().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f8_wrong_places_are_refused_with_their_fix_and_cost_no_schedule() {
    let mut report = Report::new("F8");
    let mut scene = Scene::start().await;
    try_mounts(&mut scene).await;
    try_rows(&mut scene).await;
    try_variables(&mut scene).await;
    report
        .add("processes", 2)
        .add("schedules", scene.schedules.len())
        .must_be("refused", scene.cases, 13)
        .must_be("schedules_lost_or_added", scene.lost, 0)
        .must_be("recovered", scene.recovered, 6);
    report.finish();
}
