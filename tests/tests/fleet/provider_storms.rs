//! F5: several tenants share one account at a provider that answers with 429, while two of them want more than their share
//! and one holds the lock of the bucket and sleeps.
//!
//! Windows are counted by the provider's own times. When a 429 was recorded is noted by a trigger in Postgres, which also has
//! the times of all reservations. A frozen process is a session of the tenant's role that has the lock and says nothing more.

use chrono::{DateTime, TimeDelta, Utc};
use std::process::Stdio;
use std::time::Duration;
use steward_tests::fleet::{Fleet, Tenant};
use steward_tests::provider::{Arrival, Provider, Reply, find_most_within};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};
use tokio::io::AsyncWriteExt;

/// The limits of the account, in words and in numbers.
const LIMITS: [(&str, usize, TimeDelta); 2] =
    [("12/3s", 12, TimeDelta::seconds(3)), ("40/20s", 40, TimeDelta::seconds(20))];
/// How long a reservation is good: until then a call of before a 429 may arrive.
const RESERVATION: TimeDelta = TimeDelta::seconds(5);
/// How long the provider takes for the first call after a storm, so that a second probe would be seen.
const PROBE: Duration = Duration::from_millis(1_500);
const ANSWER: Duration = Duration::from_millis(150);
const CADENCE: u32 = 2;

/// Which call begins each storm, and how long the storm lasts.
fn list_storms(form: Form) -> Vec<(usize, TimeDelta)> {
    let all = [(7, 7), (25, 1), (45, 12), (70, 5)];
    all[..form.choose(1, 4)].iter().map(|(call, wait)| (*call, TimeDelta::seconds(*wait))).collect()
}

/// A provider that asks for a wait at certain calls. It answers what was under way all the same, so that only the bucket keeps
/// the other tenants from calling: their own guards know of nothing.
fn answer(storms: &[(usize, TimeDelta)], before: &[Arrival]) -> Reply {
    let last = before.iter().rposition(|call| call.refused.is_some());
    let since = last.map_or(before, |last| &before[last + 1..]);
    if let Some(end) = last.and_then(|last| Some(before[last].at + before[last].refused?)) {
        if Utc::now() < end {
            return Reply::Done(ANSWER);
        }
        if !since.iter().any(|call| call.at >= end) {
            return Reply::Done(PROBE);
        }
    }
    let begun = before.iter().filter(|call| call.refused.is_some()).count();
    match storms.get(begun) {
        Some((call, wait)) if before.len() + 1 >= *call => Reply::Wait(*wait),
        Some(_) | None => Reply::Done(ANSWER),
    }
}

struct Scene {
    fleet: Fleet,
    provider: Provider,
    tenants: Vec<Tenant>,
    /// The processes end with the scene.
    processes: Vec<Supervised>,
    tasks: Vec<usize>,
}

impl Scene {
    async fn start(form: Form) -> Self {
        let fleet = Fleet::new("storms", postgres::server().await).await;
        let storms = list_storms(form);
        let provider = Provider::start(move |before, _, _| answer(&storms, before)).await;
        let mut set = vec!["fleet", "bucket", "set", "storms"];
        LIMITS.iter().for_each(|(limit, ..)| set.extend(["--calls", limit]));
        fleet.run(&set).await;
        watch_back_offs(&fleet);
        let (count, many, few) = form.choose((3, 8, 4), (8, 24, 8));
        let (mut tenants, mut tasks) = (Vec::new(), Vec::new());
        for n in 0..count {
            let mut tenant = fleet.add_tenant(&format!("storm-{n}"), &["house"]).await;
            fleet.run(&["fleet", "tenant", "set", &tenant.id, "--bucket", "storms"]).await;
            tenant.set_cadence(CADENCE);
            tenant.ask(&provider);
            // The first two want more than a quarter of every window.
            tasks.push(if n < 2 { many } else { few });
            tenants.push(tenant);
        }
        let processes: Vec<Supervised> = tenants.iter().map(|tenant| Supervised::start(&tenant.steward)).collect();
        for (tenant, process) in tenants.iter().zip(&processes) {
            process.serves().await;
            fleet.hold_router(tenant).await;
        }
        for (tenant, wanted) in tenants.iter().zip(&tasks) {
            (0..*wanted).for_each(|task| tenant.feed(&format!("t{task}"), "house"));
        }
        Self { fleet, provider, tenants, processes, tasks }
    }

    fn is_finished(&self, n: usize) -> bool {
        (0..self.tasks[n]).all(|task| self.tenants[n].is_done(&format!("t{task}")))
    }

    /// Reservations between two moments, as Postgres has them.
    fn count_reservations(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> usize {
        let (from, to) = (from.to_rfc3339(), to.to_rfc3339());
        let count = format!("SELECT count(*) FROM gate_call WHERE reserved_at > '{from}' AND reserved_at < '{to}'");
        self.fleet.sql(&count).parse().unwrap()
    }
}

/// Notes when each wait of the provider was recorded, and until when it holds.
fn watch_back_offs(fleet: &Fleet) {
    fleet.sql(
        "CREATE TABLE back_off_log (at timestamptz, until timestamptz);
         CREATE FUNCTION log_back_off() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
             INSERT INTO back_off_log VALUES (clock_timestamp(), NEW.back_off_until); RETURN NEW; END $$;
         CREATE TRIGGER log_back_off AFTER UPDATE ON bucket_state FOR EACH ROW
             WHEN (NEW.back_off_until > clock_timestamp() AND NEW.back_off_set IS DISTINCT FROM OLD.back_off_set)
             EXECUTE FUNCTION log_back_off();",
    );
}

/// The recorded waits: when they were recorded first, and when they ended. Those of one storm are one.
fn list_back_offs(fleet: &Fleet) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let rows = fleet.sql(
        "SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') || ' ' || \
         to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM back_off_log ORDER BY at",
    );
    let mut found: Vec<(DateTime<Utc>, DateTime<Utc>)> = Vec::new();
    for row in rows.lines() {
        let (at, until) = row.split_once(' ').unwrap();
        let (at, until): (DateTime<Utc>, DateTime<Utc>) = (at.parse().unwrap(), until.parse().unwrap());
        match found.last_mut() {
            Some((_, end)) if at < *end => *end = until.max(*end),
            _ => found.push((at, until)),
        }
    }
    found
}

#[derive(Default)]
struct AfterRefusals {
    in_flight: usize,
    reserved: usize,
    late: usize,
    most_probes: usize,
}

fn judge_storms(scene: &Scene) -> AfterRefusals {
    let (arrivals, mut found) = (scene.provider.arrivals(), AfterRefusals::default());
    for (recorded, end) in list_back_offs(&scene.fleet) {
        let count = |from, to| arrivals.iter().filter(|call| call.at > from && call.at < to).count();
        found.reserved += scene.count_reservations(recorded, end);
        found.in_flight += count(recorded, end);
        found.late += count(recorded + RESERVATION, end);
        if let Some(probe) = arrivals.iter().find(|call| call.at >= end) {
            found.most_probes = found.most_probes.max(1 + count(probe.at, probe.answered));
        }
    }
    found
}

/// A tenant takes the lock of the bucket and falls asleep. Returns how long the others waited after its session was ended.
async fn freeze_in_gate(scene: &Scene) -> Duration {
    scene.fleet.run(&["fleet", "bucket", "set", "storms", "--calls", "100000/min"]).await;
    let url = scene.tenants[0].steward.variable("STEWARD_FLEET_DB").unwrap();
    let mut psql = tokio::process::Command::new("psql");
    let quiet = psql.args(["--no-psqlrc", "--quiet", url]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut frozen = quiet.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut stdin = frozen.stdin.take().unwrap();
    stdin.write_all(b"BEGIN; SELECT name FROM bucket FOR UPDATE;\n").await.unwrap();
    stdin.flush().await.unwrap();
    let locked = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' \
        AND query LIKE 'SELECT name FROM bucket FOR UPDATE%'";
    wait::until("the lock to be taken", async || (scene.fleet.sql(locked) == "1").then_some(())).await;
    for tenant in &scene.tenants[1..] {
        tenant.feed("after-freeze", "house");
    }
    wait::until("the frozen session to be ended", async || (scene.fleet.sql(locked) == "0").then_some(())).await;
    let ended = Utc::now();
    let last = wait::until("the calls of the others", async || {
        let calls = scene.provider.arrivals();
        let found = |tenant: &Tenant| {
            calls
                .iter()
                .find(|call| call.tenant == tenant.id && call.task.ends_with("after-freeze.md"))
                .map(|call| call.at)
        };
        scene.tenants[1..].iter().map(found).collect::<Option<Vec<_>>>()?.into_iter().max()
    });
    (last.await - ended).to_std().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_one_account_is_never_over_its_limits_and_a_429_holds_all_its_tenants() {
    let (form, mut report) = (Form::read(), Report::new("F5"));
    let scene = Scene::start(form).await;
    let begun = Utc::now();
    let mut modest = None;
    wait::within(Duration::from_secs(300), "every task of every tenant to be done", async || {
        let finished: Vec<usize> = (0..scene.tenants.len()).filter(|n| scene.is_finished(*n)).collect();
        if modest.is_none() && (2..scene.tenants.len()).all(|n| finished.contains(&n)) {
            modest = Some(Utc::now() - begun);
        }
        (finished.len() == scene.tenants.len()).then_some(())
    })
    .await;
    let (all, storms) = (Utc::now() - begun, judge_storms(&scene));
    let times: Vec<DateTime<Utc>> = scene.provider.arrivals().iter().map(|call| call.at).collect();
    let refused = scene.provider.arrivals().iter().filter(|call| call.refused.is_some()).count();
    let waited = freeze_in_gate(&scene).await;

    report.add("processes", scene.processes.len()).add("calls", times.len()).add("answered_429", refused);
    for (limit, most, width) in LIMITS {
        report.at_most(&format!("most_of_{limit}"), find_most_within(&times, width), most);
    }
    let least: usize = scene.tasks.iter().sum();
    report
        .at_least("calls_at_least", times.len(), least)
        .must_be("storms", list_back_offs(&scene.fleet).len(), list_storms(form).len())
        .must_be("reserved_after_429", storms.reserved, 0)
        .must_be("sent_after_429", storms.late, 0)
        .add("in_flight_at_429", storms.in_flight)
        .must_be("probes", storms.most_probes, 1)
        .must_be("modest_tenants_done_first", usize::from(modest.is_some_and(|at| at < all)), 1)
        .add("modest_tenants_done_s", modest.unwrap().num_seconds())
        .add("all_done_s", all.num_seconds())
        .soon("others_after_freeze", waited, Duration::from_secs(2));
    report.finish();
}
