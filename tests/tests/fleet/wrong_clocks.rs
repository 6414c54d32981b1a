//! F8: clocks that are an hour wrong, of processes and of Postgres, some from the start and some that jump while a process runs.
//!
//! Four tenants ask a provider in one bucket, and one decides by rules. In each phase every tenant gets tasks with evidence, and
//! a task that is checked without any: its evidence comes in the next phase, when the clock is another one. A tenant that asks
//! must make no call while its clock and that of Postgres differ, and must name the fix. Rules have no gate, so that tenant goes
//! on until its clock goes back: then its own guard is closed, until an operator does what it names. Once all clocks are right
//! again every task must be done, and once only.
//!
//! The library moves the clock on the wall alone; see `steward_tests::process_clock`. Temporal's clock stays right.

use crate::{count_broken_chains, count_failed_tasks, count_surplus_records};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::moves::MoveCounter;
use steward_tests::postgres::Postgres;
use steward_tests::process_clock::ProcessClock;
use steward_tests::provider::{Provider, Reply, find_most_within};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::vault::Signal;
use steward_tests::wait;

const LIMITS: [(&str, usize, TimeDelta); 2] =
    [("20/3s", 20, TimeDelta::seconds(3)), ("60/20s", 60, TimeDelta::seconds(20))];
const CADENCE: u32 = 1;
const HOUR: TimeDelta = TimeDelta::hours(1);
/// Until every process sees a clock that was set: the library reads it again when the time in whole seconds is more than a
/// second later, so up to 2 s.
const CLOCK_LAG: Duration = Duration::from_millis(2_500);
/// More than two intervals, so that every matter is checked by the new clock before more evidence comes.
const CHECKED: Duration = Duration::from_millis(2_500);
/// How long a closed tenant may take to name the fix, on a busy machine.
const NAMING: Duration = Duration::from_secs(20);
/// How long the slowest tenant may take once all clocks are right, mostly for its turn in the bucket.
const RECOVERY: Duration = Duration::from_secs(60);
/// What a closed tenant must name: the gate compares two clocks, the tenant's own guard compares one with its last call.
const FIXES: [&str; 2] = ["set the wrong one right", "set the clock right"];

const RIGHT: usize = 0;
const FAST: usize = 1;
const SLOW: usize = 2;
const JUMPS: usize = 3;
const RULES: usize = 4;
const IDS: [&str; 5] = ["clock-right", "clock-fast", "clock-slow", "clock-jumps", "clock-rules"];
/// All that ask the provider.
const ASKING: [usize; 4] = [RIGHT, FAST, SLOW, JUMPS];
/// The schedules of a tenant with one matter.
const SCHEDULES: usize = 6;

struct Member {
    tenant: Tenant,
    process: Supervised,
    tasks: Vec<String>,
    /// The task that was checked without evidence in the phase before.
    quiet: Option<String>,
    clock: ProcessClock,
}

impl Member {
    fn is_finished(&self) -> bool {
        self.tasks.iter().all(|task| self.tenant.is_done(task))
    }

    fn count_named_fixes(&self) -> usize {
        let logs = self.process.logs();
        FIXES.iter().map(|fix| logs.matches(fix).count()).sum()
    }

    fn begin_phase(&mut self, phase: &str) -> Option<String> {
        for n in 0..2 {
            let task = format!("{phase}-{n}");
            self.tenant.feed(&task, "house");
            self.tasks.push(task);
        }
        let quiet = format!("{phase}-quiet");
        self.tenant.vault.task(&quiet, "house");
        self.quiet.replace(quiet)
    }

    fn add_evidence(&mut self, task: String) {
        let signal = Signal { source: &format!("mail-{task}"), ..Signal::done(&task) };
        self.tenant.vault.signal(&format!("of-{task}"), &signal);
        self.tasks.push(task);
    }

    /// Whether the doctor names both clocks as expected.
    async fn is_named_by_doctor(&self, server_is_wrong: bool) -> bool {
        let said = self.tenant.steward.run(&["doctor"]).await.all();
        let is_wrong = |check: &str| {
            said.lines().any(|line| line.starts_with("WRONG") && line.contains(check) && line.contains("local clock"))
        };
        let is_named = is_wrong("database clock") && is_wrong("server clock") == server_is_wrong;
        if !is_named {
            eprintln!("F8-clocks {}: {said}", self.tenant.id);
        }
        is_named
    }
}

struct Scene {
    fleet: Fleet,
    provider: Provider,
    members: Vec<Member>,
    moves: MoveCounter,
    schedules: BTreeSet<String>,
    database_clock: ProcessClock,
    lost_schedules: usize,
    calls_while_closed: usize,
    done_while_closed: usize,
    closed: usize,
    closed_without_fix: usize,
    named_by_doctor: usize,
    slowest_recovery: Duration,
}

impl Scene {
    async fn start() -> Self {
        let database_clock = ProcessClock::new();
        let postgres = Box::leak(Box::new(Postgres::start_with_clock(&database_clock).await));
        let fleet = Fleet::new("clocks", postgres).await;
        let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(100))).await;
        let mut set = vec!["fleet", "bucket", "set", "clocks"];
        LIMITS.iter().for_each(|(limit, ..)| set.extend(["--calls", limit]));
        fleet.run(&set).await;
        let (mut members, mut moves) = (Vec::new(), MoveCounter::new());
        for (n, id) in IDS.iter().enumerate() {
            let mut tenant = fleet.add_tenant(id, &["house"]).await;
            fleet.run(&["fleet", "tenant", "set", id, "--bucket", "clocks"]).await;
            tenant.set_cadence(CADENCE);
            tenant.steward.set("STEWARD_SCHEDULE_CHECK_SECONDS", 1);
            if ASKING.contains(&n) {
                tenant.ask(&provider);
            }
            let clock = ProcessClock::new();
            clock.give_to(&mut tenant.steward);
            tenant.vault.task("first", "house");
            moves.watch(id, &tenant.vault.path().join("task"));
            let process = Supervised::start(&tenant.steward);
            members.push(Member { tenant, process, tasks: Vec::new(), quiet: None, clock });
        }
        for member in &members {
            member.process.serves().await;
            fleet.hold_router(&member.tenant).await;
        }
        let schedules = wait::until("all schedules to be listed", async || {
            Some(fleet.list_schedules().await).filter(|listed| listed.len() == IDS.len() * SCHEDULES)
        });
        let schedules = schedules.await;
        Self {
            fleet,
            provider,
            members,
            moves,
            schedules,
            database_clock,
            lost_schedules: 0,
            calls_while_closed: 0,
            done_while_closed: 0,
            closed: 0,
            closed_without_fix: 0,
            named_by_doctor: 0,
            slowest_recovery: Duration::ZERO,
        }
    }

    fn set_clock(&self, n: usize, ahead: TimeDelta) {
        self.members[n].clock.set(ahead);
    }

    /// Plays one phase. The closed tenants must wait and name the fix, and the others must do everything.
    async fn play(&mut self, phase: &str, closed: &[usize]) {
        wait::a_moment(CLOCK_LAG).await;
        let begun = Utc::now();
        let named: Vec<usize> = self.members.iter().map(Member::count_named_fixes).collect();
        let quiet: Vec<Option<String>> = self.members.iter_mut().map(|member| member.begin_phase(phase)).collect();
        wait::a_moment(CHECKED).await;
        for (member, task) in self.members.iter_mut().zip(quiet) {
            task.into_iter().for_each(|task| member.add_evidence(task));
        }
        let resumed = Utc::now();
        self.wait_until_finished(closed).await;
        if closed.is_empty() {
            self.slowest_recovery = self.slowest_recovery.max((Utc::now() - resumed).to_std().unwrap());
        }
        self.judge_closed(begun, closed, &named).await;
        self.lost_schedules += self.schedules.symmetric_difference(&self.fleet.list_schedules().await).count();
    }

    /// Waits until every tenant that is not closed has done everything, or for as long as that may take.
    async fn wait_until_finished(&self, closed: &[usize]) {
        let open = (0..IDS.len()).filter(|n| !closed.contains(n));
        let open: Vec<&Member> = open.map(|n| &self.members[n]).collect();
        let finished = wait::until("the open tenants to finish", async || {
            open.iter().all(|member| member.is_finished()).then_some(())
        });
        if tokio::time::timeout(RECOVERY, finished).await.is_err() {
            eprintln!("F8-clocks: {} tasks are not done in time", self.count_unfinished(closed));
        }
    }

    fn count_unfinished(&self, closed: &[usize]) -> usize {
        let mut unfinished = 0;
        for (_, member) in self.members.iter().enumerate().filter(|(n, _)| !closed.contains(n)) {
            for task in member.tasks.iter().filter(|task| !member.tenant.is_done(task)) {
                eprintln!("F8-clocks {}: {task} is not done", member.tenant.id);
                unfinished += 1;
            }
        }
        unfinished
    }

    async fn judge_closed(&mut self, begun: DateTime<Utc>, closed: &[usize], named: &[usize]) {
        for n in closed {
            let member = &self.members[*n];
            let names_fix =
                wait::until("the fix to be named", async || (member.count_named_fixes() > named[*n]).then_some(()));
            self.closed += 1;
            self.closed_without_fix += usize::from(tokio::time::timeout(NAMING, names_fix).await.is_err());
            let id = &member.tenant.id;
            let calls = self.provider.arrivals().iter().filter(|call| call.at >= begun && call.tenant == *id).count();
            self.calls_while_closed += calls;
            let newest = member.tasks.iter().rev().take(3);
            self.done_while_closed += newest.filter(|task| member.tenant.is_done(task)).count();
        }
    }

    /// Asks the doctor on the machines of some tenants.
    async fn ask_doctors(&mut self, of: &[usize], server_is_wrong: bool) {
        let doctors = of.iter().map(|n| self.members[*n].is_named_by_doctor(server_is_wrong));
        let named = futures::future::join_all(doctors).await;
        self.named_by_doctor += named.into_iter().filter(|is_named| *is_named).count();
    }

    async fn play_wrong_processes(&mut self) {
        for (n, ahead) in [(FAST, HOUR), (SLOW, -HOUR)] {
            self.set_clock(n, ahead);
            self.members[n].process.restart().await;
        }
        self.set_clock(JUMPS, HOUR);
        self.set_clock(RULES, HOUR);
        self.play("ahead", &[FAST, SLOW, JUMPS]).await;
        self.ask_doctors(&[FAST, SLOW, JUMPS, RULES], true).await;
        self.set_clock(JUMPS, -HOUR);
        self.set_clock(RULES, -HOUR);
        self.play("behind", &[FAST, SLOW, JUMPS, RULES]).await;
        // One tenant is restarted once its clock is right, the others go on.
        (0..IDS.len()).for_each(|n| self.set_clock(n, TimeDelta::zero()));
        self.members[FAST].process.restart().await;
        self.members[RULES].tenant.steward.run(&["doctor", "--accept-ledger-loss"]).await.expect(0);
        self.play("again", &[]).await;
    }

    async fn play_wrong_database(&mut self) {
        for (phase, ahead) in [("database-ahead", HOUR), ("database-behind", -HOUR)] {
            self.database_clock.set(ahead);
            self.play(phase, &ASKING).await;
            self.ask_doctors(&[RIGHT], false).await;
        }
        self.database_clock.set(TimeDelta::zero());
        self.play("last", &[]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f8_wrong_clocks_hold_calls_back_and_lose_no_evidence() {
    let mut report = Report::new("F8-clocks");
    if !Form::read().has_long_scene("F8-clocks") {
        return;
    }
    let mut scene = Scene::start().await;
    scene.play("first", &[]).await;
    scene.play_wrong_processes().await;
    scene.play_wrong_database().await;

    let (unfinished, failed) = (scene.count_unfinished(&[]), count_failed_tasks(&scene.fleet).await);
    let times: Vec<DateTime<Utc>> = scene.provider.arrivals().iter().map(|call| call.at).collect();
    let tasks: usize = scene.members.iter().map(|member| member.tasks.len()).sum();
    let asked: usize = ASKING.iter().map(|n| scene.members[*n].tasks.len()).sum();
    let surplus: usize = scene.members.iter().map(|member| count_surplus_records(&member.tenant, &member.tasks)).sum();
    let moves: usize = scene.moves.count().values().sum();
    // The processes end, and then what the library leaves of them goes.
    let tenants: Vec<Tenant> = scene.members.into_iter().map(|member| member.tenant).collect();
    report.add("processes", tenants.len()).add("tasks", tasks).must_be("calls", times.len(), asked);
    for (limit, most, width) in LIMITS {
        report.at_most(&format!("most_of_{limit}"), find_most_within(&times, width), most);
    }
    report
        .must_be("closed", scene.closed, 15)
        .must_be("closed_without_a_fix", scene.closed_without_fix, 0)
        .must_be("calls_while_closed", scene.calls_while_closed, 0)
        .must_be("done_while_closed", scene.done_while_closed, 0)
        .must_be("named_by_doctor", scene.named_by_doctor, 6)
        .must_be("tasks_not_done", unfinished, 0)
        .must_be("surplus_records", surplus, 0)
        .must_be("surplus_changes_of_files", moves.abs_diff(tasks), 0)
        .must_be("schedules_lost_or_added", scene.lost_schedules, 0)
        .must_be("failed_workflow_tasks", failed, 0)
        .must_be("broken_chains", count_broken_chains(&tenants).await, 0)
        .soon("slowest_recovery", scene.slowest_recovery, RECOVERY);
    report.finish();
}
