//! The rate guard's ledger: no clerk is called that is not written down here first.
//!
//! One SQLite file serves every process of the vault; each check and its reservation are one
//! transaction, so no window is ever over its cap, whoever asks. The decision itself is pure
//! and lives in `steward_domain::steward::guard`; here it is fed and recorded.
//!
//! It fails closed: whatever is wrong with the file, its folder, the disk, the marker or the
//! clock, the answer is a refusal that names the file and the mend. It must not call a clerk,
//! read a clock, or make up for what it cannot read. Files: `ledger.db` (WAL), and away from it
//! the marker, by which a deleted ledger is told from a first boot.

use std::path::Path;

use chrono::{DateTime, Utc};
use steward_domain::steward::guard::{
    CallCaps, ExhaustedShares, GuardStatus, ReserveOutcome, ReserveRequest, Settlement,
};
use tokio::sync::Mutex;

mod book;
mod entry;
mod error;
mod files;
mod marker;
mod rows;
mod status;
mod store;
#[cfg(test)]
mod tests;

use entry::{KnownLedger, LedgerPaths, OpenLedger};
pub use error::LedgerError;
use rows::LedgerSqlResult;

/// The ledger of one vault, shared by any number of tasks and processes.
#[derive(Debug)]
pub struct Ledger {
    paths: LedgerPaths,
    caps: CallCaps,
    session: Mutex<LedgerSession>,
}

#[derive(Debug, Default)]
struct LedgerSession {
    opened: Option<OpenLedger>,
    known: Option<KnownLedger>,
}

/// What [`Ledger::accept_loss`] found to accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossAcceptance {
    /// The ledger is there and its clock is believed; nothing was done.
    Nothing,
    /// The ledger was lost or damaged: a new, empty one began, the old files lie beside it.
    NewLedger,
    /// The clock was doubted: it is believed again, and calls stamped after it are forgotten.
    Clock,
}

impl Ledger {
    /// Names the ledger's file and its marker; both are opened, or created, at first use.
    ///
    /// Their folders must exist. Keep the marker in another folder than the ledger.
    ///
    /// # Errors
    /// A cap of 0, a share that is not 1 to 100 %, or a path that names no file. The state of the files is never an error here:
    /// it shows in [`Ledger::reserve`] and [`Ledger::status`], and may be mended meanwhile.
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
        for (name, percent) in [
            ("extraction_percent", caps.extraction_percent),
            ("stream_percent", caps.stream_percent),
            ("sender_percent", caps.sender_percent),
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
        // Relative paths without a folder would leave nothing to fsync.
        let absolute = |path: &Path| std::path::absolute(path).map_err(LedgerError::wrap_io(path));
        let paths = LedgerPaths { database: absolute(path)?, marker: absolute(marker)? };
        Ok(Self { paths, caps, session: Mutex::default() })
    }

    /// Reserves one clerk call at `now`, or says which cap refuses and when it clears.
    ///
    /// A call that has a reservation gets the same one again, for a day; one that was refused
    /// may ask again. Whatever is wrong with the ledger is a refusal too.
    pub async fn reserve(&self, request: &ReserveRequest, now: DateTime<Utc>) -> ReserveOutcome {
        self.try_reserve(request, now).await.unwrap_or_else(|error| ReserveOutcome::Refused(error.into_refusal()))
    }

    async fn try_reserve(&self, request: &ReserveRequest, now: DateTime<Utc>) -> Result<ReserveOutcome, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let reserved = book::reserve_or_refuse(&mut opened.store, request, &self.caps, now).await;
        let outcome = self.close_on_error(&mut session, reserved).await?;
        // A reservation in a file that is no longer the ledger counts for nobody else.
        match session.opened.as_ref().map(|opened| opened.detect_change(&self.paths)).transpose()?.flatten() {
            None => Ok(outcome),
            Some(_) => Err(LedgerError::Changed { path: self.paths.database.clone() }),
        }
    }

    /// Records how a reserved call ended: its tokens, or the 429 that stops all others.
    ///
    /// Settling a call twice is settling it once. A 429 counts even if the call is not known.
    ///
    /// # Errors
    /// The ledger cannot be read or written; try again, nothing was recorded.
    pub async fn settle(&self, settlement: &Settlement, now: DateTime<Utc>) -> Result<(), LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let settled = book::record_settlement(&mut opened.store, settlement, now).await;
        self.close_on_error(&mut session, settled).await
    }

    /// How the guard stands at `now`: the fill of each window, back-off, probe, and what refuses.
    pub async fn status(&self, now: DateTime<Utc>) -> GuardStatus {
        let now = truncate_to_micros(now);
        self.try_status(now)
            .await
            .unwrap_or_else(|error| GuardStatus { refusal: Some(error.into_refusal()), ledger: None })
    }

    async fn try_status(&self, now: DateTime<Utc>) -> Result<GuardStatus, LedgerError> {
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let read = status::read_status(&mut opened.store, &self.caps, now).await;
        self.close_on_error(&mut session, read).await
    }

    /// Which streams and senders have had their share at `now`: no call is made for their events.
    ///
    /// # Errors
    /// The ledger cannot be read; then no call is made at all.
    pub async fn find_exhausted_shares(&self, now: DateTime<Utc>) -> Result<ExhaustedShares, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let read = status::find_exhausted_shares(&mut opened.store, &self.caps, now).await;
        self.close_on_error(&mut session, read).await
    }

    /// An operator's word that what the ledger forgot does not matter: calls may go again.
    ///
    /// Ends the day of refusals after a loss, or the doubt about a clock that jumped back.
    ///
    /// # Errors
    /// What has another mend than acceptance: no space, no permission, a newer schema.
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

    /// An operator's word that the provider may be asked before its deadline; returns that deadline, `None` where no
    /// back-off holds calls up. One probe still goes first.
    ///
    /// # Errors
    /// The ledger cannot be read or written; nothing was changed.
    pub async fn lift_back_off(&self, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, LedgerError> {
        let now = truncate_to_micros(now);
        let mut session = self.session.lock().await;
        let opened = self.ensure_open(&mut session, now).await?;
        let lifted = book::lift_back_off(&mut opened.store, now).await;
        self.close_on_error(&mut session, lifted).await
    }

    /// The open ledger, after making sure that its files are still those that were opened.
    async fn ensure_open<'t>(
        &self,
        session: &'t mut LedgerSession,
        now: DateTime<Utc>,
    ) -> Result<&'t mut OpenLedger, LedgerError> {
        if let Some(opened) = session.opened.take() {
            match opened.detect_change(&self.paths) {
                Ok(None) => return Ok(session.opened.insert(opened)),
                Err(away) => {
                    // Kept open: once they are back it is known whether they are the same files.
                    session.opened = Some(opened);
                    return Err(away);
                }
                Ok(Some(known)) => {
                    session.known = Some(known);
                    opened.store.close().await;
                }
            }
        }
        let opened = entry::open_ledger(&self.paths, session.known.as_ref(), now).await?;
        session.known = Some(KnownLedger { id: opened.id.clone(), replaced: false });
        Ok(session.opened.insert(opened))
    }

    /// After an error nothing is taken for granted: the file is closed and checked anew.
    async fn close_on_error<T>(&self, session: &mut LedgerSession, result: LedgerSqlResult<T>) -> Result<T, LedgerError> {
        if result.is_err()
            && let Some(opened) = session.opened.take()
        {
            opened.store.close().await;
        }
        result.map_err(LedgerError::wrap_sql(&self.paths.database))
    }
}

/// The ledger counts in microseconds; an instant between two counts as the earlier.
fn truncate_to_micros(now: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
}
