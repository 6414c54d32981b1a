//! F4: tenants are upgraded one by one while their runs are open, and meet runs that another build has begun.
//!
//! The other build is a worker of this test: it begins a tick with other steps, or records what this build cannot read. The
//! release is this build, as it would be with a changed workflow: which one of the two is newer makes no difference to a replay.
//! One build is also restarted over a database of a later one, which stands for the way back.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::former::{self, Build, FormerBuild};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::runs::{self, RunFacts};
use steward_tests::steward::Running;
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

const CADENCE: TimeDelta = TimeDelta::seconds(5);
/// How long a call is open, so that a process is replaced meanwhile.
const ANSWER: Duration = Duration::from_secs(2);
const TICKS: &str = "WorkflowType = 'StewardWorkflow'";
/// The way back by the runbook.
const BACK: Duration = Duration::from_secs(300);

struct Scene {
    fleet: Fleet,
    provider: Provider,
    tenants: Vec<Tenant>,
}

impl Scene {
    async fn start(count: usize) -> Self {
        let fleet = Fleet::new("upgrades", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(ANSWER)).await;
        let mut tenants = Vec::new();
        for n in 0..count {
            let cadence = u32::try_from(CADENCE.num_seconds()).unwrap();
            tenants.push(fleet.add_asking_tenant(&format!("roll-{n}"), &["house"], &provider, cadence).await);
        }
        Self { fleet, provider, tenants }
    }

    async fn wait_for_call(&self, tenant: &Tenant) {
        wait::until("a call to be open", async || self.provider.has_open_call(&tenant.id).then_some(())).await;
    }

    /// Sets the versions that the tables name: their own, and the least that a build must know.
    fn set_version(&self, version: i32, min_reader: i32) {
        self.fleet.sql(&format!("UPDATE fleet SET version = {version}, min_reader = {min_reader}"));
    }

    fn read_version(&self) -> i32 {
        self.fleet.sql("SELECT version FROM fleet").parse().unwrap()
    }

    /// Replaces each process while one of its runs is open: the last one by a kill, the others politely.
    async fn roll(&self, processes: &[Supervised]) -> usize {
        self.fleet.run(&["fleet", "migrate"]).await;
        let mut open = 0;
        for (n, (tenant, process)) in self.tenants.iter().zip(processes).enumerate() {
            tenant.feed("rolled", "house");
            self.wait_for_call(tenant).await;
            let listed = list_open_ticks(&self.fleet, &tenant.id).await;
            self.fleet.run(&["preflight", "--tenant", &tenant.id]).await;
            if n + 1 == self.tenants.len() {
                assert!(process.kill().is_some());
                process.serves().await;
            } else {
                process.restart().await;
            }
            open += listed;
        }
        for tenant in &self.tenants {
            wait::until("the rolled task to be done", async || tenant.is_done("rolled").then_some(())).await;
        }
        open
    }

    /// Restarts a process over tables of a later build: those that this build may still use, and those that it may not.
    async fn restart_over_later_tables(&self, process: &Supervised) -> bool {
        let known = self.read_version();
        self.set_version(known + 1, known);
        process.restart().await;
        self.set_version(known + 1, known + 1);
        let refused = self.fleet.operator.run(&["fleet", "tenant", "list"]).await;
        self.set_version(known, known);
        let both = [known + 1, known].iter().all(|version| refused.err.contains(&version.to_string()));
        refused.code == Some(1) && both
    }
}

async fn list_open_ticks(fleet: &Fleet, tenant: &str) -> usize {
    let prefix = format!("al-steward-house@{tenant}-");
    let open = runs::list_runs(&fleet.client, &format!("{TICKS} AND ExecutionStatus = 'Running'")).await;
    open.iter().filter(|run| run.id.starts_with(&prefix)).count()
}

/// The longest time between two ticks of a tenant's matter, in whole intervals that were missed.
fn count_missed_intervals(ticks: &[RunFacts], tenant: &str) -> usize {
    let prefix = format!("al-steward-house@{tenant}-");
    let due: Vec<DateTime<Utc>> =
        ticks.iter().filter(|run| run.id.starts_with(&prefix)).filter_map(|run| run.due).collect();
    let gaps = due.windows(2).map(|pair| (pair[1] - pair[0]).num_milliseconds());
    let intervals = gaps.map(|gap| (gap + CADENCE.num_milliseconds() / 2) / CADENCE.num_milliseconds());
    usize::try_from((intervals.max().unwrap() - 1).max(0)).unwrap()
}

/// What a build made of a run that another one had begun.
#[derive(Default)]
struct Found {
    by_preflight: usize,
    by_the_start: usize,
    at_another_event: usize,
    slowest_way_back: Duration,
}

/// A tenant's process meets a run that another build has begun.
async fn meet(scene: &Scene, tenant: &Tenant, build: Build, observed: &Value, found: &mut Found) {
    let former = FormerBuild { client: &scene.fleet.client, tenant: &tenant.id, build, observed };
    let run = former.begin_run().await;
    let said = scene.fleet.operator.run(&["preflight", "--tenant", &tenant.id, "--closed", "0", "--json"]).await;
    let report = &said.json()[0]["report"];
    let shapes: Vec<&Value> = report["shapes"].as_array().unwrap().iter().collect();
    let of_run = shapes.iter().find(|shape| shape["open"].as_array().unwrap().contains(&json!(run)));
    let outcome = &of_run.expect("the run is looked at")["outcome"];
    eprintln!("F4 {build:?}: {outcome}");
    found.by_preflight += usize::from(said.code == Some(4) && outcome["kind"] != "safe");
    found.at_another_event += usize::from(outcome["event_id"] != build.breaks_at());

    let mut held: Running = tenant.steward.start(&["up"]);
    held.says("not polling yet: this build would break open runs").await;
    let named = format!("{}{}", held.out(), held.err());
    found.by_the_start += usize::from(named.contains(&run));
    // The way back: the former build serves again, and its run ends.
    let back = Utc::now();
    held.stop().await;
    former.finish_run(&run).await;
    let mut process = tenant.steward.start(&["up"]);
    process.says("up; Ctrl-C ends it").await;
    found.slowest_way_back = found.slowest_way_back.max((Utc::now() - back).to_std().unwrap());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f4_a_rolled_upgrade_misses_nothing_and_a_build_that_would_break_runs_waits() {
    let (form, mut report) = (Form::read(), Report::new("F4"));
    let scene = Scene::start(form.choose(3, 6)).await;
    let mut processes: Vec<Supervised> =
        scene.tenants.iter().map(|tenant| Supervised::start(&tenant.steward)).collect();
    for (tenant, process) in scene.tenants.iter().zip(&processes) {
        process.serves().await;
        scene.fleet.hold_router(tenant).await;
    }
    let open = scene.roll(&processes).await;
    let refused = scene.restart_over_later_tables(&processes[0]).await;
    scene.fleet.run(&["preflight", "--all"]).await;

    // The last tenant meets other builds; the others are served meanwhile.
    let last = scene.tenants.last().unwrap();
    let observed = former::find_observation(&scene.fleet, &last.id).await;
    processes.pop();
    let schedule = scene.fleet.client.get_schedule_handle(format!("al-steward-house@{}", last.id));
    schedule.pause(Some("other builds begin the runs of this scene"), Default::default()).await.unwrap();
    let builds = form.choose(&Build::ALL[..2], &Build::ALL[..]);
    let mut found = Found::default();
    for build in builds {
        meet(&scene, last, *build, &observed, &mut found).await;
    }
    let ticks = runs::list_runs(&scene.fleet.client, TICKS).await;
    let missed = scene.tenants[..processes.len()].iter().map(|tenant| count_missed_intervals(&ticks, &tenant.id)).max();
    report
        .add("processes", scene.tenants.len())
        .at_least("open_runs_at_their_restart", open, scene.tenants.len())
        .must_be("tables_of_a_later_build_refused", usize::from(refused), 1)
        .at_most("missed_intervals", missed.unwrap(), 1)
        .add("other_builds", builds.len())
        .must_be("found_by_preflight", found.by_preflight, builds.len())
        .must_be("held_at_the_start", found.by_the_start, builds.len())
        .must_be("found_at_another_event", found.at_another_event, 0)
        .soon("slowest_way_back", found.slowest_way_back, BACK)
        .must_be("failed_workflow_tasks", crate::count_failed_tasks(&scene.fleet).await, 0)
        .must_be("broken_chains", crate::count_broken_chains(&scene.tenants).await, 0);
    report.finish();
}
