//! Tenants that share an API key: their processes, one bucket, and a provider that counts what arrives.

use crate::shared_namespace::{Fleet, Tenant};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::vault::Signal;
use steward_tests::{run, wait};

/// Tasks of each tenant.
const TASKS: usize = 5;
/// The provider's limit, which `LIMIT` says in words.
const CALLS: usize = 8;
const WINDOW: TimeDelta = TimeDelta::seconds(3);
const LIMIT: &str = "8/3s";
/// What the provider asks for with its 429.
const WAIT: TimeDelta = TimeDelta::seconds(25);
/// A call that was reserved before the 429 was recorded may still arrive within this time. The window has room again before
/// the wait is over, so that calls would come if nothing held them.
const IN_FLIGHT: TimeDelta = TimeDelta::seconds(12);

/// The requests at the provider: when they came, and whether they got a 429.
type Arrivals = Arc<Mutex<Vec<(DateTime<Utc>, bool)>>>;

/// A provider that answers the sixth request with 429.
async fn provider(arrivals: &Arrivals) -> Clerk {
    let arrivals = Arc::clone(arrivals);
    Clerk::start(move |_| {
        let mut arrivals = arrivals.lock().unwrap();
        let is_refused = arrivals.len() == 5;
        arrivals.push((Utc::now(), is_refused));
        match is_refused {
            true => Says::Status(429, Some(WAIT.num_seconds().to_string())),
            false => Says::Verdict("likely_done", 0.9),
        }
    })
    .await
}

/// A tenant whose vault has tasks to judge, and whose clerk is at this provider.
async fn tenant(fleet: &Fleet, id: &str, provider: &Clerk) -> Tenant {
    let mut tenant = fleet.tenant(id).await;
    for n in 1..TASKS {
        let (task, source) = (format!("t{n}"), format!("mail-{n}"));
        tenant.world.vault.task(&task, "house");
        tenant.world.vault.signal(&format!("of-{task}"), &Signal { source: &source, ..Signal::done(&task) });
    }
    for (name, value) in [
        ("STEWARD_CLERK", "openai"),
        ("STEWARD_CLERK_BASE_URL", &provider.url),
        ("STEWARD_CLERK_MODEL", "scripted"),
        ("STEWARD_CADENCE_MATTER_SECONDS", "2"),
    ] {
        tenant.steward.set(name, value);
    }
    tenant
}

/// Tasks with a decision. In shadow each check files another one.
fn count_decided(tenant: &Tenant) -> usize {
    let targets = tenant.world.vault.records().into_iter().map(|record| record.draft.target);
    targets.collect::<BTreeSet<_>>().len()
}

/// Reservations that the server knows as activities of their own, in the newest runs of a tenant's steward.
async fn count_reserve_tasks(tenant: &Tenant) -> usize {
    let ask = async |arguments: &[&str]| -> Value {
        let mut command = tokio::process::Command::new(run::temporal_cli());
        command.args(arguments).args([
            "--output=json",
            "--address",
            tenant.steward.variable("TEMPORAL_ADDRESS").unwrap(),
        ]);
        command.args(["--namespace", tenant.steward.variable("TEMPORAL_NAMESPACE").unwrap()]);
        serde_json::from_slice(&command.kill_on_drop(true).output().await.unwrap().stdout).unwrap()
    };
    let query = "StewardTenant = 'key-a' AND WorkflowType = 'StewardWorkflow'";
    let runs = ask(&["workflow", "list", "--limit=1000", "--query", query]).await;
    let mut count = 0;
    for one in runs.as_array().unwrap() {
        let id = one["execution"]["workflowId"].as_str().unwrap();
        let history = ask(&["workflow", "show", "--workflow-id", id]).await;
        let events = history["events"].as_array().unwrap();
        let name = |event: &Value| event["activityTaskScheduledEventAttributes"]["activityType"]["name"].clone();
        count += events.iter().filter(|event| name(event) == "steward.reserve").count();
    }
    count
}

#[tokio::test]
async fn one_key_serves_all_tenants_and_is_never_over_its_limit() {
    let fleet = Fleet::new("provider").await;
    let arrivals = Arrivals::default();
    let provider = provider(&arrivals).await;
    let tenants = [
        tenant(&fleet, "key-a", &provider).await,
        tenant(&fleet, "key-b", &provider).await,
        tenant(&fleet, "key-c", &provider).await,
    ];
    let said = fleet.operator.run(&["fleet", "tenant", "set", "key-a", "--bucket", "model"]).await.expect(1);
    assert!(said.err.contains("steward fleet bucket set model"), "{said}");
    let said = fleet.run(&["fleet", "bucket", "set", "model", "--calls", LIMIT, "--tokens", "1000000/day"]).await;
    assert!(said.contains("0 of 8 in 3 s") && said.contains("0 of 1000000 in a day"), "{said}");
    for (limits, why) in [
        (&[][..], "give the limits of the provider's account"),
        (&["--calls", "5/min", "--calls", "6/60s"], "two limits of calls in a minute"),
    ] {
        let said = fleet.operator.run(&[&["fleet", "bucket", "set", "model"], limits].concat()).await.expect(1);
        assert!(said.err.contains(why), "{said}");
    }
    assert!(fleet.run(&["fleet", "bucket", "lift", "model"]).await.contains("no wait is in force"));
    assert!(fleet.run(&["fleet", "bucket", "accept-loss", "model"]).await.contains("nothing to accept"));
    for id in ["key-b", "key-c"] {
        fleet.run(&["fleet", "tenant", "set", id, "--bucket", "model"]).await;
    }

    // Without a bucket nothing is sent, and the reason is on the screen.
    let _first = tenants[0].up().await;
    let refused = wait::until("the first tenant to be refused", async || {
        let status = tenants[0].steward.run(&["status", "--json"]).await.expect(0).json();
        status["guard"]["refusal"]["reason"].as_str().map(str::to_owned)
    })
    .await;
    assert!(refused.contains("steward fleet tenant set key-a --bucket"), "{refused}");
    let doctor = tenants[0].steward.run(&["doctor"]).await;
    assert!(doctor.all().contains("the tenant key-a has no bucket"), "{doctor}");
    wait::stays(Duration::from_secs(3), "nothing is sent", async || arrivals.lock().unwrap().is_empty()).await;

    fleet.run(&["fleet", "tenant", "set", "key-a", "--bucket", "model"]).await;
    let _others = (tenants[1].up().await, tenants[2].up().await);
    // The refused one is asked about again.
    wait::until("every task of every tenant to be asked about and decided", async || {
        let all_asked = arrivals.lock().unwrap().len() > tenants.len() * TASKS;
        (all_asked && tenants.iter().all(|tenant| count_decided(tenant) == TASKS)).then_some(())
    })
    .await;
    assert!(count_reserve_tasks(&tenants[0]).await > 0, "a reservation is an ordinary activity in a fleet");
    let arrivals = arrivals.lock().unwrap().clone();
    let most = (0..arrivals.len())
        .map(|n| arrivals[n..].iter().take_while(|(at, _)| *at - arrivals[n].0 < WINDOW).count())
        .max();
    assert!(most <= Some(CALLS), "{most:?} calls within {WINDOW}: {arrivals:?}");
    let (at, _) = arrivals.iter().find(|(_, is_refused)| *is_refused).unwrap();
    let early = arrivals.iter().filter(|(other, _)| *other > *at + IN_FLIGHT && *other < *at + WAIT).count();
    assert_eq!(early, 0, "calls while the provider asked to wait: {arrivals:?}");
    let listed = fleet.operator.run(&["fleet", "bucket", "list", "--json"]).await.expect(0).json();
    assert_eq!(listed[0]["tenants"], serde_json::json!(["key-a", "key-b", "key-c"]));
    let tokens = listed[0]["windows"][1]["used_tokens"].as_u64().unwrap();
    let settled = 120 * (arrivals.len() as u64 - 1);
    assert!(tokens >= settled, "{tokens} tokens, {settled} reported");
}
