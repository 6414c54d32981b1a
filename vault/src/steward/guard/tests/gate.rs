//! The ledger with a gate above it: what a refusal leaves behind, and what the gate still has to hear.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Mutex;
use steward_domain::fleet::provider_gate::{BootInstant, GateDebt, GateGrant, GateMark, GateRequest, SendDeadline};

use super::*;

/// A gate that does what the test says and keeps what it was asked.
#[derive(Debug, Default)]
struct FakeGate(Mutex<GateScript>);

#[derive(Debug, Default)]
struct GateScript {
    refuses: bool,
    is_away: bool,
    requests: Vec<GateRequest>,
    debts: Vec<GateDebt>,
}

impl FakeGate {
    fn script(&self) -> std::sync::MutexGuard<'_, GateScript> {
        self.0.lock().unwrap()
    }
}

fn mark(entries: i64) -> GateMark {
    GateMark { fleet: "f".into(), bucket: "openai".into(), incarnation: 1, entries }
}

fn deadline() -> SendDeadline {
    SendDeadline::from_request(at(0), BootInstant { boot_id: "b".into(), micros: 5 })
}

fn closed() -> GuardRefusal {
    GuardRefusal { cap: GuardCap::Provider, clears_at: Some(at(99)), reason: "full".into() }
}

impl ProviderGate for FakeGate {
    fn reserve(&self, request: GateRequest) -> BoxFuture<'_, Result<GateGrant, GuardRefusal>> {
        let mut script = self.script();
        script.requests.push(request);
        let entries = i64::try_from(script.requests.len()).unwrap();
        let granted = Ok(GateGrant { deadline: deadline(), seen: mark(entries) });
        let answer = if script.refuses { Err(closed()) } else { granted };
        async move { answer }.boxed()
    }

    fn settle(&self, debt: GateDebt) -> BoxFuture<'_, Result<Option<GateMark>, String>> {
        let mut script = self.script();
        let answer = if script.is_away { Err("no answer".to_owned()) } else { Ok(Some(mark(77))) };
        if answer.is_ok() {
            script.debts.push(debt);
        }
        async move { answer }.boxed()
    }

    fn find_refusal(&self) -> BoxFuture<'_, Option<GuardRefusal>> {
        let answer = self.script().refuses.then(closed);
        async move { answer }.boxed()
    }
}

fn gated(home: &Home, caps: CallCaps) -> (Ledger, Arc<FakeGate>) {
    let gate = Arc::new(FakeGate::default());
    let shared: Arc<dyn ProviderGate> = Arc::clone(&gate) as Arc<dyn ProviderGate>;
    (home.ledger(caps).with_gate(Some(shared)), gate)
}

#[tokio::test]
async fn a_refusal_of_the_gate_uses_up_nothing_and_a_cap_of_the_vault_never_asks_it() {
    let home = Home::new();
    let (ledger, gate) = gated(&home, CallCaps { per_task_day: 1, ..wide() });
    gate.script().refuses = true;
    for n in 0..5 {
        let call = about(format!("{n}"), "task/rent.md", "matter/house.md");
        assert_eq!(refused(ledger.reserve(&call, at(n)).await), closed());
    }
    assert_eq!(ledger.status(at(5)).await.refusal, Some(closed()), "the status says what a call would get");
    gate.script().refuses = false;
    let call = ReserveRequest { tokens: 77, ..about("a", "task/rent.md", "matter/house.md") };
    let reserved = granted(ledger.reserve(&call, at(6)).await);
    assert_eq!(reserved.deadline(), Some(&deadline()));
    let asked = gate.script().requests.len();
    let again = ledger.reserve(&call, at(7)).await;
    assert_eq!(granted(again), reserved, "the same reservation, without another question");
    let over = ledger.reserve(&about("b", "task/rent.md", "matter/house.md"), at(8)).await;
    assert_eq!(refused(over).cap, GuardCap::Task);
    let script = gate.script();
    assert_eq!((script.requests.len(), asked), (6, 6), "neither reached the gate");
    let last = script.requests.last().unwrap();
    assert_eq!((last.tokens, last.call.len(), last.call.contains("rent")), (77, 64, false));
    assert_eq!(script.requests[0].seen, None);
}

#[tokio::test]
async fn what_the_gate_has_not_heard_is_owed_over_a_restart_and_reported_before_the_next_call() {
    let home = Home::new();
    let (ledger, gate) = gated(&home, wide());
    granted(ledger.reserve(&infra("a"), at(0)).await);
    gate.script().is_away = true;
    ledger.settle(&settled("a", answered()), at(1)).await.unwrap();
    assert_eq!(gate.script().debts, []);
    let refusal = refused(ledger.reserve(&infra("b"), at(2)).await);
    assert!(refusal.cap == GuardCap::Gate && refusal.reason.contains("no answer"), "{refusal:?}");
    assert_eq!(gate.script().requests.len(), 1, "it was not asked");
    drop(ledger);

    let (ledger, gate) = gated(&home, wide());
    granted(ledger.reserve(&infra("b"), at(3)).await);
    let first = gate.script().debts.clone();
    assert_eq!(first.iter().map(|debt| debt.outcome.clone()).collect::<Vec<_>>(), [answered()]);
    assert_eq!(gate.script().requests[0].seen, Some(mark(77)), "what was seen with the debt was kept");
    ledger.settle(&settled("b", SettlementOutcome::NotSent), at(4)).await.unwrap();
    ledger.settle(&settled("a", limited(9.0)), at(4)).await.unwrap();
    assert_eq!(gate.script().debts.len(), 2, "a call is reported once");
    let mut file = home.peek().await;
    sqlx::query("INSERT INTO gate_debt (call, debt) VALUES ('x', '{\"of\": \"tomorrow\"}')")
        .execute(&mut file)
        .await
        .unwrap();
    let refusal = refused(ledger.reserve(&infra("d"), at(5)).await);
    assert!(refusal.cap == GuardCap::Gate && refusal.reason.contains("run a newer version"), "{refusal:?}");
    // A vault that left its fleet uses the same ledger.
    granted(home.ledger(wide()).reserve(&infra("c"), at(5)).await);
}
