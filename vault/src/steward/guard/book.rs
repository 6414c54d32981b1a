//! The ledger's transactions: each reads the rows, lets the domain decide, and writes the outcome.
//!
//! A transaction is kept as a whole or not at all, and no other process's transaction can overlap it. This module must
//! not decide anything itself: `steward_domain::steward::guard::admit_call` admits or refuses a call.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use steward_domain::fleet::provider_gate::{GateGrant, GateRequest};
use steward_domain::record::moves::NoteMove;
use steward_domain::steward::guard::{
    CallCaps, ClockReading, GuardCap, GuardFacts, GuardRefusal, GuardState, Probe, ReserveOutcome, ReserveRequest,
    Settlement, SettlementOutcome, WIKI_TOKENS, admit_call, read_clock,
};
use steward_domain::time::format_millis;

use super::LossAcceptance;
use super::gate::{self, ProviderGate};
use super::rows::{self, LedgerSqlResult, to_micros};
use super::store::LedgerStore;

/// Reserves one call, or refuses it. The same call gets the same reservation again.
pub(super) async fn reserve_or_refuse(
    store: &mut LedgerStore,
    admission: AdmissionRequest<'_>,
    now: DateTime<Utc>,
) -> LedgerSqlResult<ReserveOutcome> {
    let mut tx = store.begin_writing().await?;
    if let Some(reservation) = rows::find_reservation(&mut tx, &admission.request.call_id).await? {
        tx.rollback().await?;
        return Ok(ReserveOutcome::Reserved(reservation));
    }
    let kept = rows::load_state(&mut tx).await?;
    let mut state = kept.clone();
    let outcome = match check_clock(&mut tx, &mut state, now).await? {
        Err(refusal) => ReserveOutcome::Refused(refusal),
        Ok(at) => admit_and_record(&mut tx, &mut state, admission, at).await?,
    };
    if state != kept {
        rows::save_state(&mut tx, &state).await?;
    }
    tx.commit().await?;
    Ok(outcome)
}

/// The instant at which a call at `now` is counted, or the refusal if the clock is not trusted.
async fn check_clock(
    db: &mut SqliteConnection,
    state: &mut GuardState,
    now: DateTime<Utc>,
) -> LedgerSqlResult<Result<DateTime<Utc>, GuardRefusal>> {
    match state.check_clock(now) {
        ClockReading::Sound { at } => Ok(Ok(at)),
        ClockReading::Doubted { clears_at, .. } => Ok(Err(refuse_clock(state.newest, now, clears_at))),
        ClockReading::Restarted => {
            rows::forget_calls_after(db, now).await?;
            Ok(Ok(now))
        }
    }
}

pub(super) fn refuse_clock(
    newest: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
    clears_at: DateTime<Utc>,
) -> GuardRefusal {
    let newest = newest.map_or_else(|| "a later time".to_owned(), format_millis);
    let reason = format!(
        "the clock shows {}, but the ledger's newest entry is from {newest}; set the clock right, or accept the loss \
         of the ledger (`steward doctor --accept-ledger-loss`)",
        format_millis(now)
    );
    GuardRefusal { cap: GuardCap::Clock, clears_at: Some(clears_at), reason }
}

/// One call, and what it must be admitted by.
#[derive(Clone, Copy)]
pub(super) struct AdmissionRequest<'r> {
    pub(super) request: &'r ReserveRequest,
    pub(super) caps: &'r CallCaps,
    pub(super) gate: Option<&'r dyn ProviderGate>,
}

async fn admit_and_record(
    db: &mut SqliteConnection,
    state: &mut GuardState,
    admission: AdmissionRequest<'_>,
    at: DateTime<Utc>,
) -> LedgerSqlResult<ReserveOutcome> {
    let AdmissionRequest { request, caps, gate } = admission;
    let edges = rows::read_edges(db, request, caps).await?;
    let accounts = rows::read_accounts(db, request, caps).await?;
    let wiki_calls = rows::list_wiki_calls(db, request.wiki.as_deref()).await?;
    let facts = GuardFacts { back_off: state.back_off, probe: state.probe.clone(), edges, accounts, wiki_calls };
    let grant = match admit_call(request, caps, &facts, at) {
        Ok(grant) => grant,
        Err(refusal) => return Ok(ReserveOutcome::Refused(refusal)),
    };
    let deadline = match gate {
        None => None,
        Some(gate) => {
            let (call, seen) = (gate::hash_call(&request.call_id), gate::read_mark(db).await?);
            match gate.reserve(GateRequest { call, tokens: request.tokens, seen }).await {
                Err(refusal) => return Ok(ReserveOutcome::Refused(refusal)),
                Ok(GateGrant { deadline, seen }) => {
                    gate::write_mark(db, &seen).await?;
                    Some(deadline)
                }
            }
        }
    };
    rows::prune_calls(db, at).await?;
    state.newest = Some(at);
    if grant.is_probe() {
        state.probe = Some(Probe { call_id: request.call_id.clone(), since: at });
    }
    let reservation = grant.into_reservation(request.call_id.clone(), deadline);
    rows::insert_call(db, request, &reservation).await?;
    let wiki = request.wiki.as_deref().map(|wiki| (WIKI_TOKENS, wiki));
    rows::charge_accounts(db, &facts.accounts, wiki, &reservation).await?;
    Ok(ReserveOutcome::Reserved(reservation))
}

/// Records how a call ended, and updates the back-off and its probe. With a gate it also notes what the gate must hear.
pub(super) async fn record_settlement(
    store: &mut LedgerStore,
    settlement: &Settlement,
    has_gate: bool,
    now: DateTime<Utc>,
) -> LedgerSqlResult<()> {
    let Settlement { call_id, outcome } = settlement;
    let mut tx = store.begin_writing().await?;
    let is_first = match outcome {
        SettlementOutcome::NotSent => rows::release_call(&mut tx, call_id).await?,
        SettlementOutcome::Answered { .. } | SettlementOutcome::RateLimited { .. } | SettlementOutcome::Failed => {
            rows::record_call_outcome(&mut tx, call_id, outcome).await?
        }
    };
    if !is_first {
        return tx.rollback().await;
    }
    if has_gate {
        gate::owe_settlement(&mut tx, settlement, now).await?;
    }
    let kept = rows::load_state(&mut tx).await?;
    let mut state = kept.clone();
    state.record_outcome(call_id, outcome, now);
    if state != kept {
        rows::save_state(&mut tx, &state).await?;
    }
    tx.commit().await
}

/// Ends a back-off for an operator, and returns its deadline. The next call is its probe.
pub(super) async fn lift_back_off(
    store: &mut LedgerStore,
    now: DateTime<Utc>,
) -> LedgerSqlResult<Option<DateTime<Utc>>> {
    let mut tx = store.begin_writing().await?;
    let mut state = rows::load_state(&mut tx).await?;
    let Some(deadline) = state.lift_back_off(now) else {
        tx.rollback().await?;
        return Ok(None);
    };
    rows::save_state(&mut tx, &state).await?;
    tx.commit().await?;
    Ok(Some(deadline))
}

/// Counts the calls about notes that moved under their new paths. Two notes may have changed places, so each call first
/// gets a name that no note can have.
pub(super) async fn follow_moves(
    store: &mut LedgerStore,
    moves: &[NoteMove],
    until: DateTime<Utc>,
) -> LedgerSqlResult<()> {
    let mut tx = store.begin_writing().await?;
    for park in [
        "UPDATE call SET task = '/' || ? WHERE task = ? AND reserved_us <= ?",
        "UPDATE call SET matter = '/' || ? WHERE matter = ? AND reserved_us <= ?",
    ] {
        for NoteMove { from, to } in moves {
            let Some(to) = to else { continue };
            let query = sqlx::query(park).bind(to.as_str()).bind(from.as_str()).bind(to_micros(until));
            query.execute(&mut *tx).await?;
        }
    }
    for unpark in [
        "UPDATE call SET task = substr(task, 2) WHERE task >= '/' AND task < '0'",
        "UPDATE call SET matter = substr(matter, 2) WHERE matter >= '/' AND matter < '0'",
    ] {
        sqlx::query(unpark).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Ends a doubt about the clock for an operator.
pub(super) async fn accept_clock(store: &mut LedgerStore, now: DateTime<Utc>) -> LedgerSqlResult<LossAcceptance> {
    let mut tx = store.begin_writing().await?;
    let mut state = rows::load_state(&mut tx).await?;
    match read_clock(state.newest, state.doubted_since, now) {
        ClockReading::Sound { .. } => {
            tx.rollback().await?;
            Ok(LossAcceptance::Nothing)
        }
        ClockReading::Doubted { .. } | ClockReading::Restarted => {
            rows::forget_calls_after(&mut tx, now).await?;
            state.restart_clock(now);
            rows::save_state(&mut tx, &state).await?;
            tx.commit().await?;
            Ok(LossAcceptance::Clock)
        }
    }
}
