//! F3: tenants are cut from Postgres, from Temporal and from both, and then the servers are back.
//!
//! One asks a provider, which is answering at the moment of the cut; the other one decides by rules and needs no reservation. A
//! change that had its permit may end within a second or two of the cut. After that no record, no changed file and no call may
//! come until the end of the cut.

use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_tests::fleet::{Cuts, Fleet, Tenant};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

/// A permit is good for 1 s, and what had one needs a moment on a busy machine.
const IN_FLIGHT: TimeDelta = TimeDelta::seconds(2);
/// So long that the answer comes during the cut.
const ANSWER: Duration = Duration::from_secs(3);
/// How often matters are checked.
const CADENCE: u32 = 2;
/// What is cut, how soon all must go on after it, and for how long it is cut. 5 s by the contract; a poll of Temporal that got no
/// answer is repeated after up to 10 s more. Three questions to a database that does not answer take 9 s, and a change that
/// would land after them is to be seen. Workers end after 12 s.
const KINDS: [(&str, Duration, u64); 3] = [
    ("postgres", Duration::from_secs(5), 12),
    ("both", Duration::from_secs(15), 6),
    ("temporal", Duration::from_secs(15), 12),
];

struct Member {
    tenant: Tenant,
    cuts: Cuts,
    process: Supervised,
}

impl Member {
    fn set_cut(&self, kind: &str, is_cut: bool) {
        for (name, gate) in [("postgres", &self.cuts.postgres), ("temporal", &self.cuts.temporal)] {
            if kind == name || kind == "both" {
                if is_cut { gate.cut() } else { gate.open() }
            }
        }
    }

    /// The records and tasks that were written between two moments, by the times of the file system.
    fn count_written(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> usize {
        let files = ["event", "task"].iter().flat_map(|folder| {
            let entries = std::fs::read_dir(self.tenant.vault.path().join(folder)).into_iter().flatten();
            entries.map(|entry| entry.unwrap().metadata().unwrap().modified().unwrap()).collect::<Vec<_>>()
        });
        files.filter(|at| (from..to).contains(&DateTime::<Utc>::from(*at))).count()
    }
}

struct Scene {
    provider: Provider,
    /// The first one asks the provider.
    members: Vec<Member>,
}

impl Scene {
    async fn start() -> Self {
        let fleet = Fleet::new("cuts", postgres::server().await).await;
        let provider = Provider::start(|_, _, task| match task.contains("open") {
            true => Reply::Done(ANSWER),
            false => Reply::Done(Duration::from_millis(50)),
        })
        .await;
        let mut members = Vec::new();
        for id in ["cut-asks", "cut-rules"] {
            let mut tenant = match id {
                "cut-asks" => fleet.add_asking_tenant(id, &["house"], &provider, CADENCE).await,
                _ => fleet.add_tenant(id, &["house"]).await,
            };
            tenant.set_cadence(CADENCE);
            let cuts = tenant.add_cuts().await;
            let process = Supervised::start(&tenant.steward);
            process.serves().await;
            fleet.hold_router(&tenant).await;
            members.push(Member { tenant, cuts, process });
        }
        Self { provider, members }
    }

    fn feed(&self, task: &str) {
        self.members.iter().for_each(|member| member.tenant.feed(task, "house"));
    }

    async fn wait_until_done(&self, task: &str) {
        let what = format!("{task} to be done");
        wait::until(&what, async || self.members.iter().all(|member| member.tenant.is_done(task)).then_some(())).await;
    }

    /// Cuts all members off, opens again, and returns what landed meanwhile and how long it took until all went on.
    async fn cut_off(&self, kind: &str, round: usize, seconds: u64) -> (usize, Duration) {
        let (open, held) = (format!("open-{kind}-{round}"), format!("held-{kind}-{round}"));
        let first = &self.members[0].tenant;
        first.feed(&open, "house");
        wait::until("a call to be open", async || self.provider.has_open_call(&first.id).then_some(())).await;
        self.members.iter().for_each(|member| member.set_cut(kind, true));
        wait::a_moment(IN_FLIGHT.to_std().unwrap()).await;
        self.feed(&held);
        let from = Utc::now();
        wait::a_moment(Duration::from_secs(seconds)).await;
        let opened = Utc::now();
        let calls = self.provider.arrivals().iter().filter(|call| (from..opened).contains(&call.at)).count();
        let written: usize = self.members.iter().map(|member| member.count_written(from, opened)).sum();
        let done = self.members.iter().filter(|member| member.tenant.is_done(&held)).count();
        self.members.iter().for_each(|member| member.set_cut(kind, false));
        self.wait_until_done(&held).await;
        let back = (Utc::now() - opened).to_std().unwrap();
        wait::until("the open call's task to be done", async || first.is_done(&open).then_some(())).await;
        (calls + written + done, back)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f3_nothing_lands_while_a_tenant_is_cut_off_and_all_goes_on_after() {
    let (form, mut report) = (Form::read(), Report::new("F3"));
    let scene = Scene::start().await;
    report.add("processes", scene.members.len());
    let mut landed = 0;
    for round in 0..form.choose(1, 2) {
        for (kind, target, seconds) in form.choose(&KINDS[..2], &KINDS[..]) {
            let before = format!("before-{kind}-{round}");
            scene.feed(&before);
            scene.wait_until_done(&before).await;
            let (landings, back) = scene.cut_off(kind, round, *seconds).await;
            landed += landings;
            report.soon(&format!("back_after_{kind}_{round}"), back, *target);
        }
    }
    let starts: usize = scene.members.iter().map(|member| member.process.starts().len()).sum();
    let tenants: Vec<Tenant> = scene.members.into_iter().map(|member| member.tenant).collect();
    report.must_be("landings_while_cut", landed, 0).must_be("starts_of_processes", starts, 2).must_be(
        "broken_chains",
        crate::count_broken_chains(&tenants).await,
        0,
    );
    report.finish();
}
