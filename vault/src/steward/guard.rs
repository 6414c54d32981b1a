//! The rate guard's ledger, in which every clerk call is reserved before it is made.
//!
//! One SQLite file serves every process of the vault. Each check and its reservation are one transaction, so no window
//! ever exceeds its cap. The decision itself is pure and lives in `steward_domain::steward::guard`. This module gives
//! it the facts and records its outcome.
//!
//! The ledger fails closed: a fault of the file, its folder, the disk, the marker or the clock leads to a refusal that
//! names the file and the fix. It must not call a clerk, read a clock, or guess what it cannot read. Its files are
//! `ledger.db` (WAL) and, in another folder, the marker, which distinguishes a deleted ledger from a first start.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::record::moves::NoteMove;
use steward_domain::steward::guard::{
    CallCaps, ExhaustedShares, GuardStatus, ReserveOutcome, ReserveRequest, Settlement,
};
use tokio::sync::Mutex;

mod book;
mod entry;
mod error;
mod files;
mod gate;
mod marker;
mod rows;
mod status;
mod store;
#[cfg(test)]
mod tests;

use book::AdmissionRequest;
use entry::{KnownLedger, LedgerPaths, OpenLedger};
pub use error::LedgerError;
pub use gate::ProviderGate;
use rows::LedgerSqlResult;

/// The ledger of one vault, shared by any number of tasks and processes.
#[derive(Debug)]
pub struct Ledger {
    paths: LedgerPaths,
    caps: CallCaps,
    session: Mutex<LedgerSession>,
    /// The rate limits that this vault shares with others; `None` for a vault alone.
    gate: Option<Arc<dyn ProviderGate>>,
    /// Held by whoever reports debts to the gate.
    paying: Mutex<()>,
}

#[derive(Debug, Default)]
struct LedgerSession {
    opened: Option<OpenLedger>,
    known: Option<KnownLedger>,
}

/// The outcome of [`Ledger::accept_loss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossAcceptance {
    /// The ledger exists and its clock is trusted: nothing was done.
    Nothing,
    /// The ledger was lost or damaged: a new, empty one was created, and the old files lie beside it.
    NewLedger,
    /// The clock was doubted: it is trusted again, and calls with a later time are forgotten.
    Clock,
}

impl Ledger {
    /// Sets the paths of the ledger's file and its marker. Both are opened, or created, at first use.
    ///
    /// Their folders must exist. Keep the marker in another folder than the ledger.
    ///
    /// # Errors
    /// A cap of 0, a share that is not 1 to 100 %, or a path that names no file. The state of the files is never an
    /// error here: [`Ledger::reserve`] and [`Ledger::status`] report it, and it may be fixed until then.
    pub fn open(path: &Path, caps: CallCaps, marker: &Path) -> Result<Self, LedgerError> {
        for (name, cap) in [
            ("per_minute", caps.per_minute),
            ("per_hour", caps.per_hour),
            ("per_day", caps.per_day),
            ("per_task_day", caps.per_task_day),
            ("per_matter_day", caps.per_matter_day),
        ] {
            if cap == 0 {
                return Err(LedgerError::ZeroCap { name });
            }
        }
        if caps.wiki_tokens_per_day == 0 {
            return Err(LedgerError::ZeroCap { name: "wiki_tokens_per_day" });
        }
        for (name, percent) in [
            ("extraction_percent", caps.extraction_percent),
            ("stream_percent", caps.stream_percent),
            ("sender_percent", caps.sender_percent),
            ("wiki_percent", caps.wiki_percent),
        ] {
            if !(1..=100).contains(&percent) {
                return Err(LedgerError::NoPercent { name, percent });
            }
        }
        for (role, path) in [("ledger", path), ("ledger's marker", marker)] {
            if path.file_name().is_none() {
                return Err(LedgerError::NotAFile { role, path: path.to_owned() });
            }
        }
        // A relative path without a folder would leave no folder to sync.
        let absolute = |path: &Path| std::path::absolute(path).map_err(LedgerError::wrap_io(path));
        let paths = LedgerPaths { database: absolute(path)?, marker: absolute(marker)? };
        Ok(Self { paths, caps, session: Mutex::default(), gate: None, paying: Mutex::default() })
    }

    /// Sets the gate that every call is asked for after the caps of the vault.
    #[must_use]
    pub fn with_gate(self, gate: Option<Arc<dyn ProviderGate>>) -> Self {
        Self { gate, ..self }
    }

    /// Whether calls also need a gate's leave, which is good for some seconds only.
    #[must_use]
    pub fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Reserves one clerk call at `now`, or refuses it and names the cap and the time when it clears.
    ///
    /// A call that has a reservation gets the same one again, for a day. A refused call may try again. Every fault of
    /// the ledger is a refusal too.
    pub async fn reserve(&self, request: &ReserveRequest, now: DateTime<Utc>) -> ReserveOutcome {
        self.try_reserve(request, now).await.unwrap_or_else(|error| ReserveOutcome::Refused(error.into_refusal()))
    }

    async fn try_reserve(&self, request: &ReserveRequest, now: DateTime<Utc>) -> Result<ReserveOutcome, LedgerError> {
        let begin = Instant::now();
        let gate = self.gate.as_deref();
        if let Some(gate) = gate {
            let _turn = self.paying.lock().await;
            if let Err(reason) = self.pay_debts(gate, now).await? {
                return Ok(ReserveOutcome::Refused(gate::refuse_with_debt(&reason)));
            }
        }
        let mut session = self.session.lock().await;
        // Others may have asked a slow gate meanwhile. The call counts from now on.
        let waited = TimeDelta::from_std(begin.elapsed()).unwrap_or_default();
        let now = truncate_to_micros(if gate.is_some() { now + waited } else { now });
        let opened = self.ensure_open(&mut session, now).await?;
        let admission = AdmissionRequest { request, caps: &self.caps, gate };
        let reserved = book::reserve_or_refuse(&mut opened.store, admission, now).await;
        let outcome = self.close_on_error(&mut session, reserved).await?;
        // Other processes would not count a reservation in a file that is no longer the ledger.
        match session.opened.as_ref().map(|opened| opened.detect_change(&self.paths)).transpose()?.flatten() {
            None => Ok(outcome),
            Some(_) => Err(LedgerError::Changed { path: self.paths.database.clone() }),
        }
    }

    /// Records how a reserved call ended: its tokens, or the 429 that stops all other calls.
    ///
    /// Settling a call twice settles it once. A 429 counts even if the call is unknown.
    ///
    /// # Errors
    /// The ledger cannot be read or written. Nothing was recorded; try again.
    pub async fn settle(&self, settlement: &Settlement, now: DateTime<Utc>) -> Result<(), LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let settled = book::record_settlement(&mut opened.store, settlement, self.gate.is_some(), now).await;
        self.close_on_error(&mut session, settled).await?;
        drop(session);
        // Whoever pays already pays this debt, too, or the next reservation does.
        if let (Some(gate), Ok(_turn)) = (self.gate.as_deref(), self.paying.try_lock())
            && let Err(reason) = self.pay_debts(gate, now).await?
        {
            tracing::warn!(reason, "the fleet's gate has not heard yet how a call ended");
        }
        Ok(())
    }

    /// Reports all debts to the gate, one payer at a time. Others use the ledger meanwhile. If the gate does not take one,
    /// that one and the rest stay, and the reason is returned.
    async fn pay_debts(&self, gate: &dyn ProviderGate, now: DateTime<Utc>) -> Result<Result<(), String>, LedgerError> {
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let debts = gate::list_debts(&mut opened.store).await;
        let debts = self.close_on_error(&mut session, debts).await?;
        drop(session);
        for debt in debts {
            let Some(debt) = debt else {
                let path = self.paths.database.display();
                return Ok(Err(format!("{path} holds one that this build cannot read: run a newer version")));
            };
            let call = debt.call.clone();
            let seen = match gate.settle(debt).await {
                Ok(seen) => seen,
                Err(reason) => return Ok(Err(reason)),
            };
            let mut session = self.session.lock().await;
            let opened = self.ensure_open(&mut session, now).await?;
            let removed = gate::remove_debt(&mut opened.store, &call, seen.as_ref()).await;
            self.close_on_error(&mut session, removed).await?;
        }
        Ok(Ok(()))
    }

    /// Counts the calls so far about notes that moved under their new paths, so that no cap begins anew.
    ///
    /// # Errors
    /// The ledger cannot be read or written. Nothing was changed; try again.
    pub async fn follow_moves(&self, moves: &[NoteMove], now: DateTime<Utc>) -> Result<(), LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let followed = book::follow_moves(&mut opened.store, moves, now).await;
        self.close_on_error(&mut session, followed).await
    }

    /// The status of the guard at `now`: the fill of each window, the back-off, the probe, and a refusal in force.
    pub async fn status(&self, now: DateTime<Utc>) -> GuardStatus {
        self.status_with_caps(&self.caps, now).await
    }

    /// As [`Ledger::status`], by the caps of another process, which reserves by them.
    pub async fn status_with_caps(&self, caps: &CallCaps, now: DateTime<Utc>) -> GuardStatus {
        let status = self.try_status(caps, truncate_to_micros(now)).await;
        let mut status =
            status.unwrap_or_else(|error| GuardStatus { refusal: Some(error.into_refusal()), ledger: None });
        if let (None, Some(gate)) = (&status.refusal, &self.gate) {
            status.refusal = gate.find_refusal().await;
        }
        status
    }

    async fn try_status(&self, caps: &CallCaps, now: DateTime<Utc>) -> Result<GuardStatus, LedgerError> {
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let read = status::read_status(&mut opened.store, caps, now).await;
        self.close_on_error(&mut session, read).await
    }

    /// The streams and senders that have used up their share at `now`. No call is made for their events.
    ///
    /// # Errors
    /// The ledger cannot be read; then no call must be made at all.
    pub async fn find_exhausted_shares(&self, now: DateTime<Utc>) -> Result<ExhaustedShares, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let read = status::find_exhausted_shares(&mut opened.store, &self.caps, now).await;
        self.close_on_error(&mut session, read).await
    }

    /// Accepts, for an operator, that the ledger has forgotten calls. Calls are then admitted again.
    ///
    /// This ends the day of refusals after a loss, or the doubt about a clock that jumped back.
    ///
    /// # Errors
    /// A fault that acceptance does not fix: no space, no permission, a newer schema.
    pub async fn accept_loss(&self, now: DateTime<Utc>) -> Result<LossAcceptance, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let accepted = match self.ensure_open(&mut session, now).await {
            Ok(opened) => {
                let accepted = book::accept_clock(&mut opened.store, now).await;
                self.close_on_error(&mut session, accepted).await
            }
            Err(error) => Err(error),
        };
        match accepted {
            Err(error) if error.is_loss() => {
                session.opened = Some(entry::begin_new_ledger(&self.paths, now).await?);
                Ok(LossAcceptance::NewLedger)
            }
            Ok(_) | Err(_) => accepted,
        }
    }

    /// Ends a back-off before its deadline, for an operator. One probe still goes first.
    ///
    /// Returns the deadline; `None` if no back-off is in force.
    ///
    /// # Errors
    /// The ledger cannot be read or written. Nothing was changed.
    pub async fn lift_back_off(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let lifted = book::lift_back_off(&mut opened.store, now).await;
        self.close_on_error(&mut session, lifted).await
    }

    /// Returns the open ledger, after checking that its files are still those that were opened.
    async fn ensure_open<'t>(
        &self,
        session: &'t mut LedgerSession,
        now: DateTime<Utc>,
    ) -> Result<&'t mut OpenLedger, LedgerError> {
        if let Some(opened) = session.opened.take() {
            match opened.detect_change(&self.paths) {
                Ok(None) => return Ok(session.opened.insert(opened)),
                Err(error) => {
                    // It stays open: when the folder is back, the check shows whether the files are the same.
                    session.opened = Some(opened);
                    return Err(error);
                }
                Ok(Some(known)) => {
                    session.known = Some(known);
                    opened.store.close().await;
                }
            }
        }
        let mut opened = entry::open_ledger(&self.paths, session.known.as_ref(), now).await?;
        if self.gate.is_some() {
            gate::prepare_tables(&mut opened.store).await.map_err(LedgerError::wrap_sql(&self.paths.database))?;
        }
        session.known = Some(KnownLedger { id: opened.id.clone(), replaced: false });
        Ok(session.opened.insert(opened))
    }

    /// Closes the file after an error, so that the next call opens and checks it anew.
    async fn close_on_error<T>(
        &self,
        session: &mut LedgerSession,
        result: LedgerSqlResult<T>,
    ) -> Result<T, LedgerError> {
        if result.is_err()
            && let Some(opened) = session.opened.take()
        {
            opened.store.close().await;
        }
        result.map_err(LedgerError::wrap_sql(&self.paths.database))
    }
}

/// Rounds an instant down to microseconds, the unit of the ledger.
fn truncate_to_micros(now: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
}
