//! Opens the expected ledger, or decides what to do if it is not there.
//!
//! | marker | file | outcome |
//! |---|---|---|
//! | none | none, or empty | first start: create both |
//! | none | a ledger | adopt it: write the marker |
//! | names it | that ledger | open it |
//! | names it | missing, empty, another, or replaced while in use | the ledger is lost |
//! | lost | anything | refuse for a day, then create a new ledger |
//!
//! A lost ledger stays lost even if its file comes back, because calls may be missing from it. All of this happens
//! under the marker's lock.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use steward_domain::steward::guard::loss_clears_at;

use super::error::LedgerError;
use super::files::{LedgerFileIdentity, rename_lost_files, sync_folder};
use super::marker::{LedgerLoss, LedgerMarker, MarkerLock};
use super::store::{LedgerFileKind, LedgerStore};

/// The paths of the ledger and its marker.
#[derive(Debug)]
pub(super) struct LedgerPaths {
    pub(super) database: PathBuf,
    pub(super) marker: PathBuf,
}

impl LedgerPaths {
    /// Checks that both folders exist.
    fn check_folders(&self) -> Result<(), LedgerError> {
        for file in [&self.database, &self.marker] {
            let folder = file.parent().unwrap_or(file);
            std::fs::metadata(folder).map_err(LedgerError::wrap_io(folder))?;
        }
        Ok(())
    }
}

/// The expected ledger, open.
#[derive(Debug)]
pub(super) struct OpenLedger {
    pub(super) store: LedgerStore,
    pub(super) id: String,
    identity: LedgerFileIdentity,
}

/// What this process remembers of the ledger it had open before.
#[derive(Clone, Debug)]
pub(super) struct KnownLedger {
    pub(super) id: String,
    /// Whether its files were deleted or replaced while they were open.
    pub(super) replaced: bool,
}

impl OpenLedger {
    /// Detects whether the files are no longer those that were opened; `None` if they are the same.
    pub(super) fn detect_change(&self, paths: &LedgerPaths) -> Result<Option<KnownLedger>, LedgerError> {
        // If a folder is missing, its files do not count as deleted or replaced.
        paths.check_folders()?;
        let present = LedgerFileIdentity::read(&paths.database, &paths.marker)?;
        if present == self.identity {
            return Ok(None);
        }
        Ok(Some(KnownLedger { id: self.id.clone(), replaced: !present.has_same_data(&self.identity) }))
    }
}

/// Opens the expected ledger, or returns why it cannot be used.
pub(super) async fn open_ledger(
    paths: &LedgerPaths,
    known: Option<&KnownLedger>,
    now: DateTime<Utc>,
) -> Result<OpenLedger, LedgerError> {
    let _lock = MarkerLock::acquire(&paths.marker).await?;
    let stored = LedgerMarker::read(&paths.marker)?;
    let Some(marker) = stored.clone().or_else(|| known.map(|known| LedgerMarker::new(known.id.clone()))) else {
        return open_without_marker(paths, now).await;
    };
    if let Some(loss) = &marker.lost {
        return wait_out_loss(paths, &marker, loss, now).await;
    }
    let before = LedgerFileIdentity::read(&paths.database, &paths.marker)?;
    if known.is_some_and(|known| known.replaced && known.id == marker.ledger) {
        return declare_loss(paths, marker, "its files were deleted or replaced while in use", now);
    }
    if !before.has_database() {
        return declare_loss(paths, marker, "the file is missing", now);
    }
    match LedgerStore::open(&paths.database).await? {
        LedgerFileKind::Ledger(store, id) if id == marker.ledger => {
            if stored.is_none() {
                marker.write(&paths.marker)?;
            }
            finish_opening(paths, store, id, Some(&before))
        }
        LedgerFileKind::Ledger(store, _) => {
            store.close().await;
            declare_loss(paths, marker, "it is not the one that the marker names", now)
        }
        LedgerFileKind::Empty => declare_loss(paths, marker, "the file is empty", now),
        LedgerFileKind::Foreign => declare_loss(paths, marker, "the file is a database of something else", now),
    }
}

/// Creates a new ledger in place of a lost one. The old files are kept beside it.
pub(super) async fn begin_new_ledger(paths: &LedgerPaths, now: DateTime<Utc>) -> Result<OpenLedger, LedgerError> {
    let _lock = MarkerLock::acquire(&paths.marker).await?;
    create_ledger(paths, now).await
}

async fn open_without_marker(paths: &LedgerPaths, now: DateTime<Utc>) -> Result<OpenLedger, LedgerError> {
    let before = LedgerFileIdentity::read(&paths.database, &paths.marker)?;
    if !before.has_database() {
        return create_ledger(paths, now).await;
    }
    match LedgerStore::open(&paths.database).await? {
        LedgerFileKind::Ledger(store, id) => {
            LedgerMarker::new(id.clone()).write(&paths.marker)?;
            finish_opening(paths, store, id, Some(&before))
        }
        LedgerFileKind::Empty => create_ledger(paths, now).await,
        LedgerFileKind::Foreign => Err(LedgerError::Damaged {
            path: paths.database.clone(),
            why: "it is a database of something else".to_owned(),
        }),
    }
}

async fn wait_out_loss(
    paths: &LedgerPaths,
    marker: &LedgerMarker,
    loss: &LedgerLoss,
    now: DateTime<Utc>,
) -> Result<OpenLedger, LedgerError> {
    let (noticed_at, clears_at) = loss_clears_at(loss.noticed_at, now);
    if now >= clears_at {
        return create_ledger(paths, now).await;
    }
    if noticed_at != loss.noticed_at {
        let lost = Some(LedgerLoss { noticed_at, why: loss.why.clone() });
        LedgerMarker { lost, ..marker.clone() }.write(&paths.marker)?;
    }
    Err(LedgerError::Lost { path: paths.database.clone(), why: loss.why.clone(), clears_at })
}

fn declare_loss(
    paths: &LedgerPaths,
    marker: LedgerMarker,
    why: &str,
    now: DateTime<Utc>,
) -> Result<OpenLedger, LedgerError> {
    let (noticed_at, clears_at) = loss_clears_at(now, now);
    let lost = Some(LedgerLoss { noticed_at, why: why.to_owned() });
    LedgerMarker { lost, ..marker }.write(&paths.marker)?;
    Err(LedgerError::Lost { path: paths.database.clone(), why: why.to_owned(), clears_at })
}

/// Creates a new ledger. The marker comes last, so a crash before it leaves a first start or a loss as it was.
async fn create_ledger(paths: &LedgerPaths, now: DateTime<Utc>) -> Result<OpenLedger, LedgerError> {
    rename_lost_files(&paths.database, now)?;
    let (store, id) = LedgerStore::create(&paths.database).await?;
    sync_folder(&paths.database)?;
    LedgerMarker::new(id.clone()).write(&paths.marker)?;
    finish_opening(paths, store, id, None)
}

fn finish_opening(
    paths: &LedgerPaths,
    store: LedgerStore,
    id: String,
    before: Option<&LedgerFileIdentity>,
) -> Result<OpenLedger, LedgerError> {
    let identity = LedgerFileIdentity::read(&paths.database, &paths.marker)?;
    if before.is_some_and(|before| !before.has_same_database(&identity)) {
        return Err(LedgerError::Changed { path: paths.database.clone() });
    }
    Ok(OpenLedger { store, id, identity })
}
