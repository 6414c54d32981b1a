//! F7: modes are lowered and raised tenant by tenant, with one process left behind and one change under way.
//!
//! The lowest of what the process, the registry and the decision allow must hold. A change counts as one above it if the file
//! of its task changed.

use chrono::Utc;
use serde_json::Value;
use std::time::Duration;
use steward_domain::action::plan::Disposition;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

const ANSWER: Duration = Duration::from_secs(2);

struct Scene {
    fleet: Fleet,
    provider: Provider,
    tenants: Vec<Tenant>,
    processes: Vec<Supervised>,
    fed: usize,
    /// Changes above the lowest of all modes.
    above: usize,
    /// Changes that should have been made and were not.
    below: usize,
    decided: usize,
}

impl Scene {
    async fn start(count: usize) -> Self {
        let fleet = Fleet::new("modes", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(ANSWER)).await;
        let mut tenants = Vec::new();
        for n in 0..count {
            // A call that dies with its process leaves its task due until the next check.
            let tenant = fleet.add_asking_tenant(&format!("mode-{n}"), &["house"], &provider, 5).await;
            tenants.push(tenant);
        }
        let processes: Vec<Supervised> = tenants.iter().map(|tenant| Supervised::start(&tenant.steward)).collect();
        for (tenant, process) in tenants.iter().zip(&processes) {
            process.serves().await;
            fleet.hold_router(tenant).await;
        }
        Self { fleet, provider, tenants, processes, fed: 0, above: 0, below: 0, decided: 0 }
    }

    async fn set(&self, n: usize, option: &str, mode: &str) {
        // Exit 4 says that the process has another mode, which is the point here.
        self.fleet.operator.run(&["fleet", "tenant", "set", &self.tenants[n].id, option, mode]).await.expect(0);
    }

    async fn restart(&self, n: usize, mode: &str) {
        self.processes[n].set("STEWARD_LIVE_MODE", mode);
        self.processes[n].restart().await;
    }

    fn feed(&mut self, n: usize) -> String {
        let task = format!("t{}", self.fed);
        self.tenants[n].feed(&task, "house");
        self.fed += 1;
        task
    }

    /// The first decision about a task.
    async fn decision(&self, n: usize, task: &str) -> Disposition {
        wait::until(&format!("a decision about {task}"), async || {
            let records = self.tenants[n].vault.records();
            records.iter().find(|record| record.draft.target.slug() == task).map(|record| record.draft.disposition)
        })
        .await
    }

    /// Judges a decision: whether it may change the file.
    async fn check(&mut self, n: usize, task: &str, may_change: bool) {
        let decided = self.decision(n, task).await;
        let has_changed = self.tenants[n].is_done(task) || decided == Disposition::Live;
        self.decided += 1;
        if has_changed != may_change {
            eprintln!("F7 {task} of {}: {decided:?}, changed: {has_changed}", self.tenants[n].id);
        }
        self.above += usize::from(has_changed && !may_change);
        self.below += usize::from(!has_changed && may_change);
    }

    /// Gives each tenant a task and judges the decisions.
    async fn try_all(&mut self, may_change: bool) {
        let fed: Vec<String> = (0..self.tenants.len()).map(|n| self.feed(n)).collect();
        for (n, task) in fed.iter().enumerate() {
            self.check(n, task, may_change).await;
        }
    }

    /// The tenants whose process has another mode than expected, if the exit code says that there are any.
    async fn list_mismatches(&self) -> Vec<String> {
        let (rows, code) = self.fleet.read_status().await;
        let is_other = |row: &&Value| row["owner"]["mode"] != row["expected_mode"];
        let named: Vec<String> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(is_other)
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(code == Some(4), !named.is_empty(), "exit {code:?}: {rows}");
        named
    }

    /// Waits until exactly these tenants are named, and returns how long it took.
    async fn wait_until_named(&self, expected: &[usize]) -> Duration {
        let (begun, expected) = (Utc::now(), expected.iter().map(|n| self.tenants[*n].id.clone()).collect::<Vec<_>>());
        wait::until("the mismatch to be named", async || (self.list_mismatches().await == expected).then_some(()))
            .await;
        (Utc::now() - begun).to_std().unwrap()
    }

    /// Changes the ceiling while a call about a task is open, and returns the task.
    async fn change_in_call(&mut self, n: usize, ceiling: &str) -> String {
        let task = self.feed(n);
        let asked = |call: &steward_tests::provider::Arrival| call.task == format!("task/{task}.md");
        wait::until("the call", async || self.provider.arrivals().iter().any(asked).then_some(())).await;
        self.set(n, "--max-mode", ceiling).await;
        task
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f7_nothing_lands_above_the_lowest_mode_and_a_mismatch_is_named() {
    let mut report = Report::new("F7");
    if !Form::read().has_long_scene("F7") {
        return;
    }
    let mut scene = Scene::start(5).await;
    let last = scene.tenants.len() - 1;
    scene.try_all(true).await;

    // Lowered one by one; the last process is left behind.
    for n in 0..=last {
        scene.set(n, "--max-mode", "shadow").await;
        scene.set(n, "--expect", "shadow").await;
        if n < last {
            scene.restart(n, "shadow").await;
        }
    }
    let mut named = scene.wait_until_named(&[last]).await;
    scene.try_all(false).await;
    scene.restart(last, "shadow").await;
    named = named.max(scene.wait_until_named(&[]).await);

    // Raised in the registry alone: the processes still hold it.
    let all: Vec<usize> = (0..=last).collect();
    for n in &all {
        scene.set(*n, "--max-mode", "live").await;
        scene.set(*n, "--expect", "live_high_confidence_only").await;
    }
    named = named.max(scene.wait_until_named(&all).await);
    scene.try_all(false).await;
    for n in &all {
        scene.restart(*n, "live_high_confidence_only").await;
    }
    named = named.max(scene.wait_until_named(&[]).await);
    scene.try_all(true).await;

    // While a call is open: a lower ceiling binds that change.
    let task = scene.change_in_call(0, "shadow").await;
    scene.check(0, &task, false).await;
    // A higher one may bind it or not; the process allows it either way.
    let task = scene.change_in_call(0, "live").await;
    let decided = scene.decision(0, &task).await;
    // And over a kill.
    let task = scene.change_in_call(0, "shadow").await;
    assert!(scene.processes[0].kill().is_some());
    scene.processes[0].serves().await;
    scene.check(0, &task, false).await;

    report
        .add("processes", scene.processes.len())
        .add("decisions", scene.decided)
        .add("raised_in_mid_call", format!("{decided:?}").to_lowercase())
        .must_be("changes_above_the_lowest_mode", scene.above, 0)
        .must_be("changes_that_were_missing", scene.below, 0)
        .soon("mismatch_named", named, Duration::from_secs(10))
        .must_be("broken_chains", crate::count_broken_chains(&scene.tenants).await, 0);
    report.finish();
}
