//! F1: processes of tenants are killed while their matters tick and their clerks are asked.
//!
//! Counted are the moves of files by the kernel, the calls by the provider, the reservations by Postgres, and the ticks by
//! Temporal. A call whose process died is spent, and its task is asked about again under another reservation: that is no
//! duplicate. The next tick of a matter counts from the moment it was due. A matter that was being checked when its process died
//! is due once that run ends, so it is reported apart.

use crate::{count_broken_chains, count_surplus_records};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::moves::MoveCounter;
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Dice, Form, Report, find_p99};
use steward_tests::runs::{self, RunFacts};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

/// How often each matter is checked.
const CADENCE: TimeDelta = TimeDelta::seconds(5);
const MATTERS: [&str; 2] = ["boat", "house"];
/// How long the provider takes, so that a process can be killed meanwhile.
const ANSWER: Duration = Duration::from_millis(1_500);

/// How long it may take from an answer to its audit record on a busy machine.
const LANDING: TimeDelta = TimeDelta::seconds(5);

/// A kill, and the first moment at which its tenant was served again.
#[derive(Clone, Copy, Debug)]
struct Kill {
    tenant: usize,
    at: DateTime<Utc>,
    served: DateTime<Utc>,
}

struct Scene {
    fleet: Fleet,
    provider: Provider,
    tenants: Vec<Tenant>,
    processes: Vec<Supervised>,
    moves: MoveCounter,
    dice: Dice,
    /// The tasks that each tenant was given: when, which one, and for which matter.
    fed: Vec<Vec<Feed>>,
    kills: Vec<(usize, DateTime<Utc>)>,
    killed_in_call: usize,
}

struct Feed {
    at: DateTime<Utc>,
    task: String,
    matter: &'static str,
}

impl Scene {
    async fn start(count: usize) -> Self {
        let fleet = Fleet::new("kills", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(ANSWER)).await;
        let (mut tenants, mut processes, mut moves) = (Vec::new(), Vec::new(), MoveCounter::new());
        for n in 0..count {
            let cadence = u32::try_from(CADENCE.num_seconds()).unwrap();
            let tenant = fleet.add_asking_tenant(&format!("kill-{n}"), &MATTERS, &provider, cadence).await;
            tenant.vault.task("first", MATTERS[0]);
            moves.watch(&tenant.id, &tenant.vault.path().join("task"));
            processes.push(Supervised::start(&tenant.steward));
            tenants.push(tenant);
        }
        for (tenant, process) in tenants.iter().zip(&processes) {
            process.serves().await;
            fleet.hold_router(tenant).await;
        }
        let fed = tenants.iter().map(|_| Vec::new()).collect();
        let dice = Dice::new("F1");
        Self { fleet, provider, tenants, processes, moves, dice, fed, kills: Vec::new(), killed_in_call: 0 }
    }

    fn feed(&mut self, tenant: usize) {
        let (count, matter) = (self.fed[tenant].len(), MATTERS[self.dice.below(MATTERS.len())]);
        let task = format!("t{count}");
        self.tenants[tenant].feed(&task, matter);
        self.fed[tenant].push(Feed { at: Utc::now(), task, matter });
    }

    /// The tenants that were served for a whole interval: another kill does not fall into what the last one is measured by.
    fn list_settled(&self) -> Vec<usize> {
        let is_settled = |process: &Supervised| process.serving_since().is_some_and(|at| Utc::now() - at > CADENCE * 2);
        (0..self.tenants.len()).filter(|n| is_settled(&self.processes[*n])).collect()
    }

    /// Kills up to `most` tenants at once, three of ten of them while one of their calls is open.
    async fn kill_some(&mut self, most: usize) {
        let settled = wait::until("tenants to be served", async || {
            Some(self.list_settled()).filter(|settled| !settled.is_empty())
        });
        let settled = settled.await;
        let count = 1 + self.dice.below(most);
        let chosen = self.dice.take(settled, count);
        let in_call: Vec<usize> = chosen.iter().copied().filter(|_| self.dice.below(10) < 3).collect();
        in_call.iter().for_each(|n| self.feed(*n));
        let begun = Utc::now();
        wait::until("their calls to be open", async || {
            let open = in_call.iter().all(|n| self.provider.has_open_call(&self.tenants[*n].id));
            (open || Utc::now() - begun > TimeDelta::seconds(10)).then_some(())
        })
        .await;
        for n in chosen {
            let is_in_call = self.provider.has_open_call(&self.tenants[n].id);
            let at = Utc::now();
            if self.processes[n].kill().is_some() {
                self.kills.push((n, at));
                self.killed_in_call += usize::from(is_in_call);
            }
        }
    }

    /// When the tenant of each kill was served again.
    fn list_kills(&self) -> Vec<Kill> {
        let served = |tenant: usize, at| {
            self.processes[tenant].starts().iter().filter(|start| start.at > at).find_map(|start| start.served)
        };
        self.kills.iter().map(|&(tenant, at)| Kill { tenant, at, served: served(tenant, at).unwrap() }).collect()
    }

    /// Calls for a question that was asked before, though its process did not die before it could land the answer.
    fn count_repeated_calls(&self) -> usize {
        let mut last: BTreeMap<(String, String), DateTime<Utc>> = BTreeMap::new();
        let mut repeated = 0;
        for call in self.provider.arrivals() {
            let tenant = self.tenants.iter().position(|tenant| tenant.id == call.tenant).unwrap();
            if let Some(before) = last.insert((call.tenant, call.task), call.at) {
                let landed = before + TimeDelta::from_std(ANSWER).unwrap() + LANDING;
                let has_died = self.kills.iter().any(|(killed, at)| *killed == tenant && (before..landed).contains(at));
                repeated += usize::from(!has_died);
            }
        }
        repeated
    }

    /// Calls that arrived beyond what Postgres has reserved for their tenant.
    fn count_unreserved_calls(&self) -> usize {
        let arrivals = self.provider.arrivals();
        let count = |tenant: &Tenant| {
            let reserved = format!("SELECT count(*) FROM gate_call WHERE tenant = '{}'", tenant.id);
            let reserved: usize = self.fleet.sql(&reserved).parse().unwrap();
            arrivals.iter().filter(|call| call.tenant == tenant.id).count().saturating_sub(reserved)
        };
        self.tenants.iter().map(count).sum()
    }
}

impl AsRef<str> for Feed {
    fn as_ref(&self) -> &str {
        &self.task
    }
}

/// The ticks of one matter.
struct Ticks<'a> {
    runs: Vec<&'a RunFacts>,
    /// The second of each interval at which the matter is due.
    phase: i64,
}

impl<'a> Ticks<'a> {
    fn of(tenant: &str, matter: &str, runs: &'a [RunFacts]) -> Self {
        let (prefix, step) = (format!("al-steward-{matter}@{tenant}-"), CADENCE.num_seconds());
        let runs: Vec<&RunFacts> = runs.iter().filter(|run| run.id.starts_with(&prefix)).collect();
        let mut phases: BTreeMap<i64, usize> = BTreeMap::new();
        for due in runs.iter().filter_map(|run| run.due) {
            *phases.entry(due.timestamp().rem_euclid(step)).or_default() += 1;
        }
        let phase = phases.into_iter().max_by_key(|(_, count)| *count).expect("ticks").0;
        Self { runs, phase }
    }

    /// The first moment after another at which the matter was due.
    fn find_due(&self, after: DateTime<Utc>) -> DateTime<Utc> {
        let (step, seconds) = (CADENCE.num_seconds(), after.timestamp());
        let next = seconds + 1 + (self.phase - seconds - 1).rem_euclid(step);
        DateTime::from_timestamp(next, 0).unwrap()
    }

    fn was_open(&self, at: DateTime<Utc>) -> bool {
        self.runs.iter().any(|run| run.started < at && run.closed.is_none_or(|closed| closed > at))
    }

    /// Whether the matter was due when the run started: not a wake, and not a start that was made up for.
    fn is_regular(&self, run: &RunFacts) -> bool {
        run.due.is_some_and(|due| {
            let is_due = (due.timestamp() - self.phase).rem_euclid(CADENCE.num_seconds()) == 0;
            is_due && run.started - due < CADENCE
        })
    }

    /// Ticks from a kill until one interval after its end for which the matter was not due, beyond those of new signals.
    fn count_catch_ups(&self, kill: &Kill, signals: usize) -> usize {
        let window = kill.at..=kill.served + CADENCE;
        let extra = self.runs.iter().filter(|run| window.contains(&run.started) && !self.is_regular(run)).count();
        extra.saturating_sub(signals)
    }
}

/// How late the first tick after each kill was: of matters that were due, and of those that were being checked.
struct Lateness {
    due: Vec<Duration>,
    interrupted: Vec<Duration>,
    most_catch_ups: usize,
}

async fn measure_ticks(scene: &Scene) -> Lateness {
    let runs = runs::list_runs(&scene.fleet.client, "WorkflowType = 'StewardWorkflow'").await;
    let mut lateness = Lateness { due: Vec::new(), interrupted: Vec::new(), most_catch_ups: 0 };
    for kill in scene.list_kills() {
        for matter in MATTERS {
            let ticks = Ticks::of(&scene.tenants[kill.tenant].id, matter, &runs);
            let window = kill.at - CADENCE..kill.served + CADENCE;
            let fed = &scene.fed[kill.tenant];
            let signals = fed.iter().filter(|feed| feed.matter == matter && window.contains(&feed.at)).count();
            lateness.most_catch_ups = lateness.most_catch_ups.max(ticks.count_catch_ups(&kill, signals));
            let next = ticks.runs.iter().find(|run| run.started > kill.at).expect("a tick after the kill");
            let first = runs::list_completed_tasks(&scene.fleet.client, &next.id).await;
            let begun = first.first().expect("a worker began it").at;
            let late = (begun - ticks.find_due(kill.at)).to_std().unwrap_or_default();
            let was_open = ticks.was_open(kill.at);
            if was_open { lateness.interrupted.push(late) } else { lateness.due.push(late) }
        }
    }
    lateness
}

/// Waits until every task is done in its file and every matter had a tick after the last kill.
async fn settle(scene: &Scene) {
    for (tenant, fed) in scene.tenants.iter().zip(&scene.fed) {
        wait::within(Duration::from_secs(120), &format!("all tasks of {} to be done", tenant.id), async || {
            fed.iter().all(|feed| tenant.is_done(&feed.task)).then_some(())
        })
        .await;
    }
    wait::a_moment((CADENCE * 2).to_std().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f1_killed_processes_do_nothing_twice_and_their_matters_tick_on() {
    let (form, mut report) = (Form::read(), Report::new("F1"));
    let (tenants, kills, at_once) = form.choose((4, 8, 3), (20, 60, 4));
    let mut scene = Scene::start(tenants).await;
    while scene.kills.len() < kills {
        let some = 1 + scene.dice.below(tenants);
        for n in scene.dice.take((0..tenants).collect(), some) {
            scene.feed(n);
        }
        let pause = scene.dice.choose_millis(500, 5_000);
        wait::a_moment(pause).await;
        let left = kills - scene.kills.len();
        scene.kill_some(left.min(at_once)).await;
    }
    for process in &scene.processes {
        process.serves().await;
    }
    settle(&scene).await;
    let ticks = measure_ticks(&scene).await;
    let outages: Vec<Duration> =
        scene.list_kills().iter().map(|kill| (kill.served - kill.at).to_std().unwrap()).collect();
    scene.processes.clear();

    let tasks: usize = scene.fed.iter().map(Vec::len).sum();
    let records: usize = scene.tenants.iter().zip(&scene.fed).map(|(one, fed)| count_surplus_records(one, fed)).sum();
    let moves: usize = scene.moves.count().values().sum();
    let chains = count_broken_chains(&scene.tenants).await;
    report.add("processes", tenants).add("tasks", tasks).add("calls", scene.provider.arrivals().len());
    report
        .must_be("kills", scene.kills.len(), kills)
        .at_least("killed_in_call", scene.killed_in_call, form.choose(1, 12))
        .must_be("surplus_records", records, 0)
        .must_be("surplus_changes_of_files", moves.abs_diff(tasks), 0)
        .must_be("repeated_calls", scene.count_repeated_calls(), 0)
        .must_be("unreserved_calls", scene.count_unreserved_calls(), 0)
        .must_be("broken_chains", chains, 0)
        .at_most("catch_up_ticks", ticks.most_catch_ups, 1)
        .soon("next_tick_p99", find_p99(ticks.due.clone()), Duration::from_secs(10))
        .at_least("ticks_measured", ticks.due.len(), kills)
        .add("interrupted_tick_p99_s", format!("{:.2}", find_p99(ticks.interrupted).as_secs_f64()))
        .soon("served_again_p99", find_p99(outages), Duration::from_secs(30));
    report.finish();
}
