//! The gate of a provider on a real Postgres: windows under many callers, back-off, shares, tokens, loss.
//!
//! Each tenant is a connection with its own role, as its process has one. The times at which calls are sent are counted
//! here, as the provider would.

use crate::tenants::{connect, copy_of, fleet, info, operator, tenant};
use chrono::{DateTime, TimeDelta, Utc};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::provider_gate::{BucketWindow, GateDebt, GateGrant, GateMark, GateRequest};
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::guard::{GuardCap, GuardRefusal, SettlementOutcome};
use steward_fleet::buckets::BucketChange;
use steward_fleet::tenants::{TenantChange, TenantUpdate};
use steward_fleet::{BucketGate, FleetStore, VaultOwnership, read_boot_instant};
use steward_tests::gate::Gate as Cut;
use steward_tests::postgres::{self, Postgres};
use steward_tests::wait;
use tokio::io::AsyncWriteExt;

/// Tenants that share one bucket.
struct Shared {
    url: String,
    admin: FleetStore,
    gates: Vec<BucketGate>,
    ids: Vec<String>,
}

impl Shared {
    async fn new(ids: &[&str], windows: &[BucketWindow]) -> Self {
        let (url, admin) = fleet(postgres::server().await, ids).await;
        admin.set_bucket("model", windows, &operator()).await.unwrap();
        let mut gates = Vec::new();
        for id in ids {
            let change = TenantChange { bucket: Some("model".into()), ..TenantChange::default() };
            assert_eq!(admin.change_tenant(&tenant(id), change, &operator()).await.unwrap(), TenantUpdate::Changed);
            gates.push(open(&connect(&url, id).await, id).await);
        }
        Self { url, admin, gates, ids: ids.iter().map(|id| (*id).to_owned()).collect() }
    }

    async fn sql(&self, sql: &str) -> String {
        postgres::server().await.sql(&self.url, sql)
    }

    /// The URL as a tenant has it.
    fn tenants_url(&self, n: usize) -> String {
        let id = &self.ids[n];
        Postgres::url_for(&self.url, &format!("steward_tenant_{id}"), &format!("password{}", id.len()))
    }
}

async fn open(store: &FleetStore, id: &str) -> BucketGate {
    let permit = store.claim_vault(&tenant(id), &copy_of(&format!("vault-of-{id}"), "copy"), &info()).await.unwrap();
    BucketGate::new(VaultOwnership::start(permit, Arc::new(ChainHead::genesis)).await)
}

fn calls(count: u32, seconds: u32) -> BucketWindow {
    BucketWindow { seconds, calls: Some(count), tokens: None }
}

async fn reserve(gate: &BucketGate, call: &str, tokens: u64) -> Result<GateGrant, GuardRefusal> {
    gate.reserve(&GateRequest { call: call.to_owned(), tokens, seen: None }).await
}

async fn refused(gate: &BucketGate, call: &str) -> GuardCap {
    reserve(gate, call, 1).await.unwrap_err().cap
}

async fn settle(gate: &BucketGate, call: &str, outcome: SettlementOutcome) {
    gate.settle(&GateDebt { call: call.to_owned(), outcome, at: Utc::now() }).await.unwrap();
}

fn used(tokens: u64) -> SettlementOutcome {
    SettlementOutcome::Answered { usage: TokenUsage { prompt_tokens: tokens, completion_tokens: 0 } }
}

fn limited(seconds: f64) -> SettlementOutcome {
    SettlementOutcome::RateLimited { retry_after_seconds: Some(seconds) }
}

/// The most times within any window of this width.
fn most_within(times: &[DateTime<Utc>], width: TimeDelta) -> usize {
    let mut sorted = times.to_vec();
    sorted.sort();
    let count = |(n, first): (usize, &DateTime<Utc>)| sorted[n..].iter().take_while(|at| **at - *first < width).count();
    sorted.iter().enumerate().map(count).max().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_provider_never_sees_more_calls_in_a_window_than_its_cap_whoever_sends_them_and_when() {
    let (short, long) = (calls(6, 1), calls(14, 4));
    let shared = Shared::new(&["many-a", "many-b", "many-c", "many-d"], &[short, long]).await;
    let start_time = Utc::now();
    let sent_by_tenant: Arc<[AtomicUsize; 4]> = Arc::default();
    let start = |caller: usize| {
        let gate = shared.gates[caller % 4].clone();
        let sent_by_tenant = sent_by_tenant.clone();
        tokio::spawn(async move {
            let (mut sent, mut number) = (Vec::new(), 0_usize);
            let is_over = || {
                let elapsed = Utc::now() - start_time;
                // A busy machine grants fewer calls, and late ones are not sent: there it takes longer.
                let counts = sent_by_tenant.iter().map(|count| count.load(Ordering::Relaxed));
                let has_enough = counts.clone().all(|count| count >= 3) && counts.sum::<usize>() >= 16;
                elapsed > TimeDelta::seconds(if has_enough { 22 } else { 90 })
            };
            while !is_over() {
                number += 1;
                match reserve(&gate, &format!("{caller}-{number}"), 1).await {
                    Ok(grant) => {
                        // It may be sent as late as a reservation allows, and no later.
                        let delay = [1, 2_900, 40, 1_500][(caller + number) % 4];
                        wait::a_moment(Duration::from_millis(delay)).await;
                        if !grant.deadline.is_over(Utc::now(), &read_boot_instant()) {
                            sent.push((caller % 4, Utc::now()));
                            sent_by_tenant[caller % 4].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Err(refusal) => {
                        // On a busy machine the lock may take too long.
                        let known = [GuardCap::Provider, GuardCap::ProviderShare, GuardCap::Gate];
                        assert!(known.contains(&refusal.cap), "{refusal:?}");
                        wait::a_moment(Duration::from_millis(30)).await;
                    }
                }
            }
            sent
        })
    };
    // All at once.
    let callers: Vec<_> = (0..12).map(start).collect();
    let mut sent = Vec::new();
    for caller in callers {
        sent.extend(caller.await.unwrap());
    }
    let times: Vec<DateTime<Utc>> = sent.iter().map(|(_, at)| *at).collect();
    assert!(most_within(&times, TimeDelta::seconds(1)) <= 6, "{times:?}");
    assert!(most_within(&times, TimeDelta::seconds(4)) <= 14, "{times:?}");
    assert!(times.len() >= 16, "the window is used: {} calls", times.len());
    for one in 0..4 {
        let own = sent.iter().filter(|(caller, _)| *caller == one).count();
        assert!(own >= 3, "a tenant was starved: {own} of {}", times.len());
    }
    let numbers =
        shared.sql("SELECT count(*) = max(number) AND count(*) = count(DISTINCT number) FROM gate_call").await;
    assert_eq!(numbers, "t", "the numbers have no gap");
    let tenants =
        "SELECT bool_and(last = n) FROM (SELECT max(tenant_number) last, count(*) n FROM gate_call GROUP BY tenant) x";
    assert_eq!(shared.sql(tenants).await, "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_to_one_tenant_holds_all_and_one_call_of_the_fleet_tests_the_provider() {
    let shared = Shared::new(&["wait-a", "wait-b", "wait-c"], &[calls(1_000, 60)]).await;
    let [a, b, c] = [0, 1, 2].map(|n| shared.gates[n].clone());
    reserve(&a, "1", 1).await.unwrap();
    settle(&a, "1", limited(600.0)).await;
    for gate in [&a, &b, &c] {
        assert_eq!(refused(gate, "2").await, GuardCap::BackOff);
    }
    assert_eq!(b.find_refusal().await.unwrap().cap, GuardCap::BackOff);
    settle(&a, "1", limited(600_000.0)).await;
    shared.sql("UPDATE bucket_state SET back_off_until = back_off_until - interval '601 s'").await;
    let start = |n: usize| {
        let gate = shared.gates[n % 3].clone();
        tokio::spawn(async move { (n, reserve(&gate, &format!("probe-{n}"), 1).await) })
    };
    let tries: Vec<_> = (0..9).map(start).collect();
    let mut probe = Vec::new();
    for one in tries {
        match one.await.unwrap() {
            (n, Ok(_)) => probe.push(n),
            (_, Err(refusal)) => assert_eq!(refusal.cap, GuardCap::ProbePending),
        }
    }
    assert_eq!(probe.len(), 1, "one probe in the whole fleet: {probe:?}");
    let prober = &shared.gates[probe[0] % 3];
    settle(prober, &format!("probe-{}", probe[0]), used(1)).await;
    for gate in [&a, &b, &c] {
        reserve(gate, "after", 1).await.unwrap();
    }
    // An operator ends a wait that would last for days. One call still goes first.
    settle(&b, "after", limited(600_000.0)).await;
    assert_eq!(refused(&a, "3").await, GuardCap::BackOff);
    assert_eq!(shared.admin.lift_bucket_back_off("model", &operator()).await.unwrap(), BucketChange::Changed);
    reserve(&c, "4", 1).await.unwrap();
    assert_eq!(refused(&a, "5").await, GuardCap::ProbePending);
    settle(&c, "4", SettlementOutcome::NotSent).await;
    reserve(&a, "6", 1).await.unwrap();
}

#[tokio::test]
async fn tokens_are_booked_before_a_call_and_corrected_after_it_in_short_and_long_windows() {
    for seconds in [60, 86_400] {
        let id = format!("tokens-{seconds}");
        let shared = Shared::new(&[&id], &[BucketWindow { seconds, calls: None, tokens: Some(1_000) }]).await;
        let gate = &shared.gates[0];
        reserve(gate, "1", 700).await.unwrap();
        let refusal = reserve(gate, "2", 400).await.unwrap_err();
        assert!(
            refusal.cap == GuardCap::Provider && refusal.reason.contains("700 of the provider's 1000"),
            "{refusal:?}"
        );
        settle(gate, "1", used(200)).await;
        settle(gate, "1", used(0)).await;
        reserve(gate, "2", 400).await.unwrap();
        settle(gate, "2", SettlementOutcome::NotSent).await;
        reserve(gate, "3", 800).await.unwrap();
        settle(gate, "3", SettlementOutcome::Failed).await;
        assert_eq!(refused(gate, "4").await, GuardCap::Provider, "an unknown end keeps what was booked");
        let status = shared.admin.list_buckets().await.unwrap().remove(0);
        assert_eq!((status.windows[0].used_calls, status.windows[0].used_tokens), (3, 1_000));
        let past = "UPDATE gate_call SET reserved_at = reserved_at - interval '25 hours'; \
            UPDATE gate_tokens SET slot = slot - interval '25 hours'; UPDATE bucket_state SET newest = newest - interval '25 hours'";
        shared.sql(past).await;
        reserve(gate, "5", 1_000).await.unwrap();
        assert_eq!(shared.sql("SELECT count(*) FROM gate_call").await, "1", "old calls are forgotten");
        assert_eq!(refused(gate, "6").await, GuardCap::Provider);
    }
}

#[tokio::test]
async fn a_tenant_above_its_share_waits_while_another_one_was_refused_by_the_window() {
    let shared = Shared::new(&["share-a", "share-b"], &[calls(8, 60)]).await;
    let [greedy, other] = [0, 1].map(|n| shared.gates[n].clone());
    for n in 0..7 {
        reserve(&greedy, &format!("{n}"), 1).await.unwrap();
    }
    reserve(&other, "1", 1).await.unwrap();
    assert_eq!(refused(&greedy, "7").await, GuardCap::Provider);
    assert_eq!(refused(&other, "2").await, GuardCap::Provider);
    // Five calls of the greedy one leave the window.
    let leave = "UPDATE gate_call SET reserved_at = reserved_at - interval '70 s' WHERE number <= 5";
    shared.sql(leave).await;
    assert_eq!(refused(&greedy, "8").await, GuardCap::ProviderShare, "2 of 8 are its share, and it has 2");
    reserve(&other, "3", 1).await.unwrap();
    reserve(&greedy, "9", 1).await.expect("the other one has had its call");
    assert_eq!(shared.sql("SELECT count(*) FROM gate_tenant WHERE refused_at IS NOT NULL").await, "0");
}

#[tokio::test]
async fn a_restored_database_refuses_all_until_a_day_is_over_or_an_operator_accepts_it() {
    let shared = Shared::new(&["loss-a", "loss-b"], &[calls(100, 60)]).await;
    let [a, b] = [0, 1].map(|n| shared.gates[n].clone());
    let seen: GateMark = reserve(&a, "1", 1).await.unwrap().seen;
    let ask = |call: &str| GateRequest { call: call.to_owned(), tokens: 1, seen: Some(seen.clone()) };
    a.reserve(&ask("2")).await.unwrap();
    // Others go on after a restore, and hide nothing by it.
    shared.sql("UPDATE gate_tenant SET entries = 0 WHERE tenant = 'loss-a'").await;
    reserve(&b, "0", 1).await.unwrap();
    let refusal = a.reserve(&ask("3")).await.unwrap_err();
    assert!(refusal.cap == GuardCap::Gate && refusal.reason.contains("fleet bucket accept-loss model"), "{refusal:?}");
    assert_eq!(refused(&b, "1").await, GuardCap::Gate, "who noticed it told all");
    assert_eq!(shared.admin.accept_bucket_loss("model", &operator()).await.unwrap(), BucketChange::Changed);
    assert_eq!(shared.admin.accept_bucket_loss("model", &operator()).await.unwrap(), BucketChange::Unchanged);
    a.reserve(&ask("4")).await.unwrap();
    reserve(&b, "2", 1).await.unwrap();

    shared.sql("UPDATE bucket_state SET system = '7'").await;
    assert_eq!(refused(&b, "3").await, GuardCap::Gate, "another server");
    shared.sql("UPDATE bucket_state SET lost_at = lost_at - interval '1 day 6 s'").await;
    reserve(&b, "4", 1).await.unwrap();

    // The clock of the database's machine was far ahead.
    shared.sql("UPDATE bucket_state SET newest = newest + interval '1 hour'").await;
    let refusal = reserve(&b, "5", 1).await.unwrap_err();
    assert!(
        refusal.cap == GuardCap::Clock && refusal.reason.contains("the clock of the database's machine"),
        "{refusal:?}"
    );
    assert_eq!(shared.admin.accept_bucket_loss("model", &operator()).await.unwrap(), BucketChange::Changed);
    reserve(&b, "6", 1).await.unwrap();
    // A doubt of a day begins the clock anew, with numbers that have no gap.
    shared.sql("UPDATE bucket_state SET newest = newest + interval '1 hour'").await;
    shared.sql("UPDATE gate_call SET reserved_at = reserved_at + interval '1 hour' WHERE number > 4").await;
    assert_eq!(refused(&b, "7").await, GuardCap::Clock);
    shared.sql("UPDATE bucket_state SET doubted_since = doubted_since - interval '1 day'").await;
    reserve(&b, "8", 1).await.unwrap();
    reserve(&a, "8", 1).await.unwrap();
    assert_eq!(shared.sql("SELECT string_agg(number::text, ',' ORDER BY number) FROM gate_call").await, "1,2,3,4,5,6");
    assert_eq!(shared.admin.accept_bucket_loss("none", &operator()).await.unwrap(), BucketChange::Missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_process_or_a_cut_database_holds_nobody_for_long_and_admits_nothing() {
    let shared = Shared::new(&["cut-a", "cut-b"], &[calls(100, 60)]).await;
    let [a, b] = [0, 1].map(|n| shared.gates[n].clone());
    // Its second begins only when the session is seen, however busy the machine is.
    let idle = |limit: &str| {
        format!("ALTER ROLE \"steward_tenant_cut-a\" SET idle_in_transaction_session_timeout = '{limit}'")
    };
    shared.sql(&idle("20s")).await;
    let mut frozen = tokio::process::Command::new("psql")
        .args(["--no-psqlrc", "--quiet", &shared.tenants_url(0)])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = frozen.stdin.take().unwrap();
    stdin.write_all(b"BEGIN; SELECT name FROM bucket FOR UPDATE;\n").await.unwrap();
    stdin.flush().await.unwrap();
    let locked = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%FROM bucket FOR UPDATE%'";
    wait::until("the lock to be taken", async || (shared.sql(locked).await == "1").then_some(())).await;
    assert_eq!(refused(&b, "0").await, GuardCap::Gate, "the lock is waited for 2 s");
    wait::until("the frozen session to be ended", async || (shared.sql(locked).await == "0").then_some(())).await;
    shared.sql(&idle("1s")).await;
    reserve(&b, "1", 1).await.unwrap();

    let url = shared.tenants_url(0);
    let (user, place) = url.trim_start_matches("postgres://").split_once('@').unwrap();
    let (server, database) = place.split_once('/').unwrap();
    let cut = Cut::new(server).await;
    let far = FleetStore::connect(&format!("postgres://{user}@{}/{database}", cut.address)).await.unwrap();
    let gate = open(&far, "cut-a").await;
    reserve(&gate, "1", 1).await.unwrap();
    cut.close();
    let refusal = reserve(&gate, "2", 1).await.unwrap_err();
    assert!(refusal.cap == GuardCap::Gate && refusal.reason.contains("the fleet's database"), "{refusal:?}");
    assert!(gate.settle(&GateDebt { call: "1".into(), outcome: limited(60.0), at: Utc::now() }).await.is_err());
    reserve(&b, "2", 1).await.unwrap();
    cut.open();
    settle(&gate, "1", limited(60.0)).await;
    assert_eq!(refused(&b, "3").await, GuardCap::BackOff, "told late, it binds all");
    // The process of the first one was replaced, so its claim is void.
    assert_eq!(refused(&a, "2").await, GuardCap::Gate);
}

#[tokio::test]
async fn a_tenant_reaches_its_own_bucket_alone_and_without_one_it_calls_nobody() {
    let shared = Shared::new(&["rls-a", "rls-b"], &[calls(100, 60)]).await;
    let [a, b] = [0, 1].map(|n| shared.gates[n].clone());
    shared.admin.set_bucket("other", &[calls(5, 60)], &operator()).await.unwrap();
    let change = TenantChange { bucket: Some("other".into()), ..TenantChange::default() };
    assert_eq!(shared.admin.change_tenant(&tenant("rls-b"), change, &operator()).await.unwrap(), TenantUpdate::Changed);
    reserve(&a, "1", 1).await.unwrap();
    reserve(&b, "1", 1).await.unwrap();
    let postgres = postgres::server().await;
    let theirs = shared.tenants_url(1);
    assert_eq!(postgres.sql(&theirs, "SELECT string_agg(name, ',') FROM bucket"), "other");
    assert_eq!(postgres.sql(&theirs, "SELECT count(*) FROM gate_call WHERE bucket = 'model'"), "0");
    for sql in [
        "UPDATE bucket SET windows = '[]'",
        "DELETE FROM bucket",
        "INSERT INTO bucket (name, windows) VALUES ('mine', '[]')",
        "UPDATE tenant SET bucket = 'model'",
        "INSERT INTO gate_call VALUES ('model', 99, 'rls-b', 99, 'x', now(), 1)",
    ] {
        let said = postgres.try_sql(&theirs, sql).unwrap_err();
        assert!(said.contains("permission denied") || said.contains("row-level security"), "{sql}: {said}");
    }
    let back = TenantChange { bucket: Some("model".into()), ..TenantChange::default() };
    let moved = shared.admin.change_tenant(&tenant("rls-b"), back.clone(), &operator()).await.unwrap();
    assert_eq!(moved, TenantUpdate::CallsUnderWay, "its 429 would go to the wrong bucket");
    settle(&b, "1", used(1)).await;
    assert_eq!(shared.admin.change_tenant(&tenant("rls-b"), back, &operator()).await.unwrap(), TenantUpdate::Changed);
    reserve(&b, "1", 1).await.unwrap();
    shared.sql("UPDATE tenant SET bucket = NULL WHERE id = 'rls-b'").await;
    let refusal = reserve(&b, "2", 1).await.unwrap_err();
    assert!(refusal.cap == GuardCap::Gate && refusal.reason.contains("fleet tenant set rls-b --bucket"), "{refusal:?}");
}
