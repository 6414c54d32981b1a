//! F3: a tenant is cut from Postgres, from Temporal and from both, and then the servers are back.
//!
//! A change that had its permit, and a call that had its reservation, may end within a second or two of the cut. After that no
//! record, no changed file and no call may come until the end of the cut.

use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_tests::fleet::{Cuts, Fleet, Tenant};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

/// A permit is good for 1 s, and what had one needs a moment on a busy machine.
const IN_FLIGHT: TimeDelta = TimeDelta::seconds(2);
/// How often matters are checked.
const CADENCE: u32 = 2;
/// 5 s by the contract. The SDK polls again 10 s after a poll without an answer, at the latest.
const BACK: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(15), Duration::from_secs(15)];
const KINDS: [&str; 3] = ["postgres", "temporal", "both"];

struct Scene {
    tenant: Tenant,
    cuts: Cuts,
    provider: Provider,
    process: Supervised,
    fed: usize,
}

impl Scene {
    async fn start() -> Self {
        let fleet = Fleet::new("cuts", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(100))).await;
        fleet.run(&["fleet", "bucket", "set", "cuts", "--calls", "100000/min"]).await;
        let mut tenant = fleet.add_tenant("cut-off", &["house"]).await;
        fleet.run(&["fleet", "tenant", "set", &tenant.id, "--bucket", "cuts"]).await;
        tenant.set_cadence(CADENCE);
        tenant.ask(&provider);
        let cuts = tenant.add_cuts().await;
        let process = Supervised::start(&tenant.steward);
        process.serves().await;
        Self { tenant, cuts, provider, process, fed: 0 }
    }

    fn feed(&mut self) -> String {
        let task = format!("t{}", self.fed);
        self.tenant.feed(&task, "house");
        self.fed += 1;
        task
    }

    fn set_cut(&self, kind: &str, is_cut: bool) {
        let gates = [("postgres", &self.cuts.postgres), ("temporal", &self.cuts.temporal)];
        for (name, gate) in gates {
            if kind == name || kind == "both" {
                if is_cut { gate.cut() } else { gate.open() }
            }
        }
    }

    /// What came between two moments: records, changed tasks and calls.
    fn count_landings(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> usize {
        let is_between = |at: DateTime<Utc>| at > from && at < to;
        let files = ["event", "task"].iter().flat_map(|folder| {
            let entries = std::fs::read_dir(self.tenant.vault.path().join(folder)).into_iter().flatten();
            entries.map(|entry| entry.unwrap().metadata().unwrap()).collect::<Vec<_>>()
        });
        // A task is written by the test itself too, before it is done: see `is_done` below.
        let written = files.filter(|file| is_between(file.modified().unwrap().into())).count();
        let calls = self.provider.arrivals().iter().filter(|call| is_between(call.at)).count();
        written + calls
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_nothing_lands_while_a_tenant_is_cut_off_and_all_goes_on_after() {
    let (form, mut report) = (Form::read(), Report::new("F3"));
    let mut scene = Scene::start().await;
    report.add("processes", 1);
    let mut landed = 0;
    for round in 0..form.choose(1, 3) {
        for (kind, target) in KINDS.into_iter().zip(BACK) {
            let before = scene.feed();
            wait::until("a change before the cut", async || scene.tenant.is_done(&before).then_some(())).await;
            let cut = Utc::now();
            scene.set_cut(kind, true);
            wait::a_moment(IN_FLIGHT.to_std().unwrap()).await;
            let held = scene.feed();
            let fed = Utc::now();
            wait::a_moment(Duration::from_secs(form.choose(6, 16))).await;
            let opened = Utc::now();
            landed += scene.count_landings(fed, opened) + usize::from(scene.tenant.is_done(&held));
            scene.set_cut(kind, false);
            wait::until("what was held to be done", async || scene.tenant.is_done(&held).then_some(())).await;
            let back = (Utc::now() - opened).to_std().unwrap();
            report.within(&format!("back_after_{kind}_{round}"), back, target);
            assert!(fed - cut >= IN_FLIGHT);
        }
    }
    report
        .must_be("landings_while_cut", landed, 0)
        .must_be("starts_of_the_process", scene.process.starts().len(), 1)
        .must_be("broken_chains", crate::count_broken_chains(std::slice::from_ref(&scene.tenant)).await, 0);
    report.finish();
}
