//! Finding the ledger: is the one that ought to be there there, and if not, what then.
//!
//! | marker | file | then |
//! |---|---|---|
//! | none | none, or empty | first boot: create both |
//! | none | a ledger | adopt it: write the marker |
//! | names it | that ledger | open it |
//! | names it | missing, empty, another, or replaced while in use | lost |
//! | lost | anything | refuse until a day has passed, then begin anew |
//!
//! A ledger that counts as lost stays lost even if its file comes back: nobody can tell whether
//! calls are missing from it. All of this happens under the marker's lock.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use steward_domain::guard::loss_clears_at;

use super::error::LedgerError;
use super::files::{Identity, put_aside, sync_folder};
use super::marker::{Lock, Loss, Marker};
use super::store::{Found, Store};

/// Where the ledger and its marker lie.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) database: PathBuf,
    pub(super) marker: PathBuf,
}

impl Place {
    /// Makes sure that both folders are there.
    fn find_folders(&self) -> Result<(), LedgerError> {
        for file in [&self.database, &self.marker] {
            let folder = file.parent().unwrap_or(file);
            std::fs::metadata(folder).map_err(LedgerError::files(folder))?;
        }
        Ok(())
    }
}

/// The right ledger, open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) id: String,
    identity: Identity,
}

/// What this process remembers of the ledger it had open before.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) id: String,
    /// Its files were deleted or replaced while they were open.
    pub(super) replaced: bool,
}

impl Opened {
    /// Whether the files are still those that were opened; `None` if so.
    pub(super) fn changed(&self, place: &Place) -> Result<Option<Known>, LedgerError> {
        // Files of a folder that is away are neither deleted nor replaced.
        place.find_folders()?;
        let present = Identity::of(&place.database, &place.marker)?;
        if present == self.identity {
            return Ok(None);
        }
        Ok(Some(Known { id: self.id.clone(), replaced: !present.same_data(&self.identity) }))
    }
}

/// Opens the ledger that ought to be there, or says why there is none.
pub(super) async fn enter(place: &Place, known: Option<&Known>, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    let _lock = Lock::take(&place.marker).await?;
    let stored = Marker::read(&place.marker)?;
    let Some(marker) = stored.clone().or_else(|| known.map(|known| Marker::of(known.id.clone()))) else {
        return first_boot(place, now).await;
    };
    if let Some(loss) = &marker.lost {
        return wait_out(place, &marker, loss, now).await;
    }
    let before = Identity::of(&place.database, &place.marker)?;
    if known.is_some_and(|known| known.replaced && known.id == marker.ledger) {
        return lose(place, marker, "its files were deleted or replaced while in use", now);
    }
    if !before.has_database() {
        return lose(place, marker, "the file is missing", now);
    }
    match Store::open(&place.database).await? {
        Found::Ledger(store, id) if id == marker.ledger => {
            if stored.is_none() {
                marker.write(&place.marker)?;
            }
            opened(place, store, id, Some(&before))
        }
        Found::Ledger(store, _) => {
            store.close().await;
            lose(place, marker, "it is not the one that the marker names", now)
        }
        Found::Empty => lose(place, marker, "the file is empty", now),
        Found::Foreign => lose(place, marker, "the file is a database of something else", now),
    }
}

/// Begins a new ledger in place of one that is lost; the old files are kept beside it.
pub(super) async fn begin_anew(place: &Place, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    let _lock = Lock::take(&place.marker).await?;
    create(place, now).await
}

async fn first_boot(place: &Place, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    let before = Identity::of(&place.database, &place.marker)?;
    if !before.has_database() {
        return create(place, now).await;
    }
    match Store::open(&place.database).await? {
        Found::Ledger(store, id) => {
            Marker::of(id.clone()).write(&place.marker)?;
            opened(place, store, id, Some(&before))
        }
        Found::Empty => create(place, now).await,
        Found::Foreign => Err(LedgerError::Damaged {
            path: place.database.clone(),
            why: "it is a database of something else".to_owned(),
        }),
    }
}

async fn wait_out(place: &Place, marker: &Marker, loss: &Loss, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    let (noticed_at, clears_at) = loss_clears_at(loss.noticed_at, now);
    if now >= clears_at {
        return create(place, now).await;
    }
    if noticed_at != loss.noticed_at {
        let lost = Some(Loss { noticed_at, why: loss.why.clone() });
        Marker { lost, ..marker.clone() }.write(&place.marker)?;
    }
    Err(LedgerError::Lost { path: place.database.clone(), why: loss.why.clone(), clears_at })
}

fn lose(place: &Place, marker: Marker, why: &str, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    let (noticed_at, clears_at) = loss_clears_at(now, now);
    let lost = Some(Loss { noticed_at, why: why.to_owned() });
    Marker { lost, ..marker }.write(&place.marker)?;
    Err(LedgerError::Lost { path: place.database.clone(), why: why.to_owned(), clears_at })
}

/// The marker comes last: a crash before it leaves either a first boot or a loss, as it was.
async fn create(place: &Place, now: DateTime<Utc>) -> Result<Opened, LedgerError> {
    put_aside(&place.database, now)?;
    let (store, id) = Store::create(&place.database).await?;
    sync_folder(&place.database)?;
    Marker::of(id.clone()).write(&place.marker)?;
    opened(place, store, id, None)
}

fn opened(place: &Place, store: Store, id: String, before: Option<&Identity>) -> Result<Opened, LedgerError> {
    let identity = Identity::of(&place.database, &place.marker)?;
    if before.is_some_and(|before| !before.same_database(&identity)) {
        return Err(LedgerError::Changed { path: place.database.clone() });
    }
    Ok(Opened { store, id, identity })
}
