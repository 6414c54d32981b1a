//! The gate of a fleet's provider, as the ledger asks it, and what the ledger still owes to it.
//!
//! A call that the caps of the vault admit is asked for at the gate before it is recorded. A refusal there leaves no trace
//! here, so a provider that backs off uses up no task's calls. What the gate must hear about a call is a *debt* in the
//! ledger's file until the gate has taken it. With a debt nothing is reserved. The two tables below are added beside the
//! ledger's own; a build without a gate does not see them.

use super::rows::LedgerSqlResult;
use super::store::LedgerStore;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;
use std::fmt::Debug;
use steward_domain::action::plan::ContentHash;
use steward_domain::fleet::provider_gate::{GateDebt, GateGrant, GateMark, GateRequest};
use steward_domain::steward::guard::{CallId, GuardCap, GuardRefusal, Settlement};

/// Asks whoever keeps the rate limits that several vaults share.
pub trait ProviderGate: Send + Sync + Debug {
    /// Reserves one call. Every fault is a refusal.
    fn reserve(&self, request: GateRequest) -> BoxFuture<'_, Result<GateGrant, GuardRefusal>>;

    /// Reports how a call ended. Reporting it twice changes nothing. Returns what was seen then, if it is new.
    fn settle(&self, debt: GateDebt) -> BoxFuture<'_, Result<Option<GateMark>, String>>;

    /// The refusal that a call without tokens would get now.
    fn find_refusal(&self) -> BoxFuture<'_, Option<GuardRefusal>>;
}

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS gate_debt (call TEXT PRIMARY KEY, debt TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS gate_mark (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), mark TEXT NOT NULL) STRICT;";
/// Debts that one question pays first. The rest follows with the next one.
const DEBTS_AT_ONCE: i64 = 100;

/// Names a call for the gate: a hash, because a call's id holds the names of notes.
pub(super) fn hash_call(call: &CallId) -> String {
    ContentHash::hash_bytes(call.0.as_bytes()).as_str().to_owned()
}

pub(super) async fn prepare_tables(store: &mut LedgerStore) -> LedgerSqlResult<()> {
    let mut tx = store.begin_writing().await?;
    sqlx::raw_sql(TABLES).execute(&mut *tx).await?;
    tx.commit().await
}

pub(super) async fn read_mark(db: &mut SqliteConnection) -> LedgerSqlResult<Option<GateMark>> {
    let text: Option<String> = sqlx::query_scalar("SELECT mark FROM gate_mark").fetch_optional(db).await?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))).transpose()
}

pub(super) async fn write_mark(db: &mut SqliteConnection, mark: &GateMark) -> LedgerSqlResult<()> {
    let text = serde_json::to_string(mark).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let upsert = "INSERT INTO gate_mark (only_row, mark) VALUES (1, ?) ON CONFLICT (only_row) DO UPDATE SET mark = excluded.mark";
    sqlx::query(upsert).bind(text).execute(db).await?;
    Ok(())
}

/// Notes what the gate must hear, in the transaction that settles the call here.
pub(super) async fn owe_settlement(
    db: &mut SqliteConnection,
    settlement: &Settlement,
    at: DateTime<Utc>,
) -> LedgerSqlResult<()> {
    let debt = GateDebt { call: hash_call(&settlement.call_id), outcome: settlement.outcome.clone(), at };
    let text = serde_json::to_string(&debt).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let insert = "INSERT INTO gate_debt (call, debt) VALUES (?, ?) ON CONFLICT (call) DO NOTHING";
    sqlx::query(insert).bind(&debt.call).bind(text).execute(db).await?;
    Ok(())
}

/// Reads the oldest debts. One that cannot be read is `None`: a newer build may have written it.
pub(super) async fn list_debts(store: &mut LedgerStore) -> LedgerSqlResult<Vec<Option<GateDebt>>> {
    let mut tx = store.begin_reading().await?;
    let select = "SELECT debt FROM gate_debt ORDER BY rowid LIMIT ?";
    let debts: Vec<String> = sqlx::query_scalar(select).bind(DEBTS_AT_ONCE).fetch_all(&mut *tx).await?;
    tx.rollback().await?;
    Ok(debts.iter().map(|text| serde_json::from_str(text).ok()).collect())
}

/// Removes a debt that the gate has taken, and remembers what was seen of the bucket then.
pub(super) async fn remove_debt(store: &mut LedgerStore, call: &str, seen: Option<&GateMark>) -> LedgerSqlResult<()> {
    let mut tx = store.begin_writing().await?;
    sqlx::query("DELETE FROM gate_debt WHERE call = ?").bind(call).execute(&mut *tx).await?;
    if let Some(seen) = seen {
        write_mark(&mut tx, seen).await?;
    }
    tx.commit().await
}

pub(super) fn refuse_with_debt(reason: &str) -> GuardRefusal {
    let reason = format!("the fleet's gate must first hear how earlier calls ended: {reason}");
    GuardRefusal { cap: GuardCap::Gate, clears_at: None, reason }
}
