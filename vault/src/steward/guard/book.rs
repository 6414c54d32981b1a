//! The ledger's transactions: each reads the rows, lets the domain decide, and writes the outcome.
//!
//! A transaction is kept as a whole or not at all, and no other process's transaction can overlap it. This module must
//! not decide anything itself: `steward_domain::steward::guard::admit_call` admits or refuses a call.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use steward_domain::record::moves::NoteMove;
use steward_domain::steward::guard::{
    BackOff, CallCaps, ClockReading, GuardCap, GuardFacts, GuardRefusal, Probe, ReserveOutcome, ReserveRequest,
    Settlement, SettlementOutcome, admit_call, back_off_for, read_clock, shift_after_restart,
};
use steward_domain::time::format_millis;

use super::LossAcceptance;
use super::rows::{self, LedgerRow, LedgerSqlResult, to_micros};
use super::store::LedgerStore;

/// Reserves one call, or refuses it. The same call gets the same reservation again.
pub(super) async fn reserve_or_refuse(
    store: &mut LedgerStore,
    request: &ReserveRequest,
    caps: &CallCaps,
    now: DateTime<Utc>,
) -> LedgerSqlResult<ReserveOutcome> {
    let mut tx = store.begin_writing().await?;
    if let Some(reservation) = rows::find_reservation(&mut tx, &request.call_id).await? {
        tx.rollback().await?;
        return Ok(ReserveOutcome::Reserved(reservation));
    }
    let kept = LedgerRow::load(&mut tx).await?;
    let mut state = kept.clone();
    let outcome = match check_clock(&mut tx, &mut state, now).await? {
        Err(refusal) => ReserveOutcome::Refused(refusal),
        Ok(at) => admit_and_record(&mut tx, &mut state, AdmissionRequest { request, caps, at }).await?,
    };
    if state != kept {
        state.save(&mut tx).await?;
    }
    tx.commit().await?;
    Ok(outcome)
}

/// The instant at which a call at `now` is counted, or the refusal if the clock is not trusted.
async fn check_clock(
    db: &mut SqliteConnection,
    state: &mut LedgerRow,
    now: DateTime<Utc>,
) -> LedgerSqlResult<Result<DateTime<Utc>, GuardRefusal>> {
    match read_clock(state.newest, state.doubted_since, now) {
        ClockReading::Sound { at } => {
            state.doubted_since = None;
            Ok(Ok(at))
        }
        ClockReading::Doubted { since, clears_at } => {
            state.doubted_since = Some(since);
            Ok(Err(refuse_clock(state.newest, now, clears_at)))
        }
        ClockReading::Restarted => {
            restart_clock(db, state, now).await?;
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

async fn restart_clock(db: &mut SqliteConnection, state: &mut LedgerRow, now: DateTime<Utc>) -> LedgerSqlResult<()> {
    rows::forget_calls_after(db, now).await?;
    let (back_off, probe) = shift_after_restart(state.back_off, state.probe.take(), now);
    *state = LedgerRow { newest: Some(now), doubted_since: None, back_off, probe };
    Ok(())
}

struct AdmissionRequest<'r> {
    request: &'r ReserveRequest,
    caps: &'r CallCaps,
    at: DateTime<Utc>,
}

async fn admit_and_record(
    db: &mut SqliteConnection,
    state: &mut LedgerRow,
    admission: AdmissionRequest<'_>,
) -> LedgerSqlResult<ReserveOutcome> {
    let AdmissionRequest { request, caps, at } = admission;
    let edges = rows::read_edges(db, request, caps).await?;
    let accounts = rows::read_accounts(db, request, caps).await?;
    let facts = GuardFacts { back_off: state.back_off, probe: state.probe.clone(), edges, accounts };
    let grant = match admit_call(request, caps, &facts, at) {
        Ok(grant) => grant,
        Err(refusal) => return Ok(ReserveOutcome::Refused(refusal)),
    };
    rows::prune_calls(db, at).await?;
    state.newest = Some(at);
    if grant.is_probe() {
        state.probe = Some(Probe { call_id: request.call_id.clone(), since: at });
    }
    let reservation = grant.into_reservation(request.call_id.clone());
    rows::insert_call(db, request, &reservation).await?;
    rows::charge_accounts(db, &facts.accounts, &reservation).await?;
    Ok(ReserveOutcome::Reserved(reservation))
}

/// Records how a call ended, and updates the back-off and its probe.
pub(super) async fn record_settlement(
    store: &mut LedgerStore,
    settlement: &Settlement,
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
    let kept = LedgerRow::load(&mut tx).await?;
    let mut state = kept.clone();
    let is_probe = state.probe.as_ref().is_some_and(|probe| probe.call_id == *call_id);
    match outcome {
        SettlementOutcome::RateLimited { retry_after_seconds } => begin_back_off(&mut state, *retry_after_seconds, now),
        SettlementOutcome::Answered { .. } if is_probe => {
            state.back_off = None;
            state.probe = None;
        }
        // The probe had no result, so another one may go.
        SettlementOutcome::Failed | SettlementOutcome::NotSent if is_probe => state.probe = None,
        SettlementOutcome::Answered { .. } | SettlementOutcome::Failed | SettlementOutcome::NotSent => {}
    }
    if state != kept {
        state.save(&mut tx).await?;
    }
    tx.commit().await
}

/// Begins a back-off after a 429 of any call. A probe under way can no longer end it.
fn begin_back_off(state: &mut LedgerRow, retry_after_seconds: Option<f64>, now: DateTime<Utc>) {
    let set_at = state.newest.map_or(now, |newest| newest.max(now));
    let until = set_at.checked_add_signed(back_off_for(retry_after_seconds)).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let until = state.back_off.map_or(until, |old| old.until.max(until));
    state.back_off = Some(BackOff { set_at, until });
    state.probe = None;
    // A 429 counts as an entry: if the clock is far ahead now, its later jump back must be detected.
    state.newest = Some(set_at);
}

/// Ends a back-off for an operator, and returns its deadline. The next call is its probe.
pub(super) async fn lift_back_off(
    store: &mut LedgerStore,
    now: DateTime<Utc>,
) -> LedgerSqlResult<Option<DateTime<Utc>>> {
    let mut tx = store.begin_writing().await?;
    let mut state = LedgerRow::load(&mut tx).await?;
    let at = state.newest.map_or(now, |newest| newest.max(now));
    let Some(back_off) = state.back_off.filter(|back_off| at < back_off.until) else {
        tx.rollback().await?;
        return Ok(None);
    };
    state.back_off = Some(BackOff { until: at, ..back_off });
    state.save(&mut tx).await?;
    tx.commit().await?;
    Ok(Some(back_off.until))
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
    let mut state = LedgerRow::load(&mut tx).await?;
    match read_clock(state.newest, state.doubted_since, now) {
        ClockReading::Sound { .. } => {
            tx.rollback().await?;
            Ok(LossAcceptance::Nothing)
        }
        ClockReading::Doubted { .. } | ClockReading::Restarted => {
            restart_clock(&mut tx, &mut state, now).await?;
            state.save(&mut tx).await?;
            tx.commit().await?;
            Ok(LossAcceptance::Clock)
        }
    }
}
