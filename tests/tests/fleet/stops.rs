//! F6: the whole fleet is stopped under load, with one tenant cut from the database, and goes on after.
//!
//! The moment of the stop and its end are the database's, reservations too, and a landing is a new file in `event/`, by the time
//! that the file system gave it. An undo is the one landing that a stop allows.

use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_tests::fleet::{Cuts, Fleet, Tenant};
use steward_tests::provider::{Arrival, Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

/// What may still be reserved and land after the commit of a stop.
const TAIL: TimeDelta = TimeDelta::seconds(1);
const ANSWER: Duration = Duration::from_millis(1_500);
/// The heartbeat brings the end of a stop within 5 s. A wake, a tick and the first call come after it.
const WOKEN: Duration = Duration::from_secs(8);

struct Scene {
    fleet: Fleet,
    provider: Provider,
    tenants: Vec<Tenant>,
    processes: Vec<Supervised>,
    /// Of the last tenant.
    cuts: Cuts,
    fed: usize,
}

impl Scene {
    async fn start(count: usize) -> Self {
        let fleet = Fleet::new("stops", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(ANSWER)).await;
        let (mut tenants, mut cuts) = (Vec::new(), None);
        for n in 0..count {
            // So rare that a wake must be the cause of the first tick. A call that came too late is repeated by a later one.
            let mut tenant = fleet.add_asking_tenant(&format!("stop-{n}"), &["house"], &provider, 60).await;
            if n + 1 == count {
                cuts = Some(tenant.add_cuts().await);
            }
            tenants.push(tenant);
        }
        let processes: Vec<Supervised> = tenants.iter().map(|tenant| Supervised::start(&tenant.steward)).collect();
        for (tenant, process) in tenants.iter().zip(&processes) {
            process.serves().await;
            fleet.hold_router(tenant).await;
        }
        Self { fleet, provider, tenants, processes, cuts: cuts.unwrap(), fed: 0 }
    }

    /// Gives every tenant a task.
    fn feed(&mut self) {
        let task = format!("t{}", self.fed);
        self.tenants.iter().for_each(|tenant| tenant.feed(&task, "house"));
        self.fed += 1;
    }

    async fn feed_for(&mut self, times: usize) {
        for _ in 0..times {
            self.feed();
            wait::a_moment(Duration::from_millis(500)).await;
        }
    }

    async fn wait_until_done(&self, tenants: &[Tenant]) {
        wait::until("all tasks to be done", async || {
            let is_done = |tenant: &Tenant| (0..self.fed).all(|n| tenant.is_done(&format!("t{n}")));
            tenants.iter().all(is_done).then_some(())
        })
        .await;
    }

    fn read_time(&self, sql: &str) -> DateTime<Utc> {
        let iso =
            format!("SELECT to_char(x AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM ({sql}) AS y (x)");
        self.fleet.sql(&iso).parse().unwrap()
    }

    /// The times of reservations after a moment.
    fn find_last_reservation(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> TimeDelta {
        let range = format!("reserved_at > '{}' AND reserved_at < '{}'", from.to_rfc3339(), to.to_rfc3339());
        if self.fleet.sql(&format!("SELECT count(*) FROM gate_call WHERE {range}")) == "0" {
            return TimeDelta::zero();
        }
        self.read_time(&format!("SELECT max(reserved_at) FROM gate_call WHERE {range}")) - from
    }
}

impl Scene {
    /// The time from a moment until each of these tenants had made a call.
    fn find_slowest_wake(&self, tenants: &[Tenant], from: DateTime<Utc>) -> Duration {
        let calls = self.provider.arrivals();
        let first = |tenant: &Tenant| calls.iter().find(|call| call.tenant == tenant.id && call.at > from).unwrap().at;
        tenants.iter().map(|tenant| (first(tenant) - from).to_std().unwrap()).max().unwrap()
    }
}

/// The times of new audit records of a tenant between two moments, except those of an undo.
fn list_landings(tenant: &Tenant, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let entries = std::fs::read_dir(tenant.vault.path().join("event")).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| {
            let record = AuditRecord::parse(&std::fs::read(path).unwrap()).unwrap();
            record.draft.kind != ActionKind::Reversed
        })
        .map(|path| DateTime::<Utc>::from(path.metadata().unwrap().modified().unwrap()))
        .filter(|at| *at > from && *at < to)
        .collect()
}

fn find_last(times: impl Iterator<Item = DateTime<Utc>>, from: DateTime<Utc>) -> Duration {
    times.max().map_or(Duration::ZERO, |at| (at - from).to_std().unwrap())
}

/// Undoes a change of the first tenant, and tries it in the one that is cut off. Returns how many went wrong.
async fn undo_during_stop(scene: &Scene) -> usize {
    let live_action = |tenant: &Tenant| {
        let records = tenant.vault.records();
        let of_task = records.iter().find(|record| record.undo_recipe.is_some() && record.draft.target.slug() == "t0");
        of_task.unwrap().draft.id.to_string()
    };
    let (first, cut) = (&scene.tenants[0], scene.tenants.last().unwrap());
    let undone = first.steward.run(&["undo", &live_action(first)]).await;
    let refused = cut.steward.run(&["undo", &live_action(cut)]).await;
    eprintln!("F6 undo while the database is cut: exit {:?}: {}", refused.code, refused.err.trim());
    usize::from(undone.code != Some(0) || first.is_done("t0"))
        + usize::from(refused.code == Some(0) || !cut.is_done("t0"))
}

#[tokio::test(flavor = "multi_thread")]
async fn f6_a_stop_of_the_fleet_holds_within_a_second_and_its_end_wakes_what_it_held() {
    let (form, mut report) = (Form::read(), Report::new("F6"));
    let mut scene = Scene::start(form.choose(3, 8)).await;
    scene.feed_for(form.choose(3, 8)).await;
    scene.wait_until_done(&scene.tenants).await;
    let last = scene.tenants.len() - 1;
    scene.cuts.postgres.cut();
    // Tasks come while the command runs, so that calls and changes are under way at its commit.
    scene.feed();
    let first = scene.tenants[0].id.clone();
    wait::until("a call to be open", async || scene.provider.has_open_call(&first).then_some(())).await;
    let operator = scene.fleet.operator.clone();
    let stop =
        tokio::spawn(async move { operator.run(&["stop", "--fleet", "--reason", "a rehearsal"]).await.expect(0) });
    while !stop.is_finished() {
        scene.feed();
        wait::a_moment(Duration::from_millis(200)).await;
    }
    stop.await.unwrap();
    let stopped = scene.read_time("SELECT stopped_at FROM stop");
    let is_open = |call: &Arrival| call.at < stopped && call.answered > stopped;
    let open = scene.provider.arrivals().iter().filter(|call| is_open(call)).count();
    scene.feed_for(form.choose(8, 30)).await;
    let wrong_undos = undo_during_stop(&scene).await;
    let resuming = Utc::now();
    let reserved = scene.find_last_reservation(stopped, resuming).to_std().unwrap();
    let landings: Vec<DateTime<Utc>> =
        scene.tenants.iter().flat_map(|tenant| list_landings(tenant, stopped, resuming)).collect();
    let late = landings.iter().filter(|at| **at > stopped + TAIL).count();
    let calls: Vec<DateTime<Utc>> =
        scene.provider.arrivals().iter().map(|call| call.at).filter(|at| *at > stopped).collect();
    scene.fleet.run(&["resume", "--fleet"]).await;
    let resumed = scene.read_time("SELECT at FROM ops_log WHERE event = 'resume' ORDER BY id DESC LIMIT 1");
    // The undone task stays open, because a person decided so.
    let task = scene.tenants[0].vault.state("t0");
    scene.tenants[0].vault.set_state("t0", "done");
    scene.wait_until_done(&scene.tenants[..last]).await;
    let (woken, all_done) = (scene.find_slowest_wake(&scene.tenants[..last], resumed), Utc::now() - resumed);
    let opened = Utc::now();
    scene.cuts.postgres.open();
    scene.wait_until_done(&scene.tenants[last..]).await;
    let woken_of_cut = scene.find_slowest_wake(&scene.tenants[last..], opened);

    report
        .add("processes", scene.processes.len())
        .add("tasks_of_each", scene.fed)
        .at_least("calls_open_at_the_stop", open, 1)
        .within("last_reservation", reserved, Duration::from_secs(1))
        .within("last_landing", find_last(landings.into_iter(), stopped), Duration::from_secs(1))
        .must_be("late_landings", late, 0)
        .within("last_call", find_last(calls.into_iter(), stopped), Duration::from_secs(6))
        .must_be("wrong_undos", wrong_undos + usize::from(task != "open"), 0)
        .soon("woken_after_resume", woken, WOKEN)
        .soon("cut_tenant_woken", woken_of_cut, WOKEN)
        .add("all_done_after_resume_s", all_done.num_seconds())
        .must_be("broken_chains", crate::count_broken_chains(&scene.tenants).await, 0);
    report.finish();
}
