//! The marker: a small file in another folder, which says that a ledger exists.
//!
//! Without it a deleted ledger would look like a first start, and a day's calls would be forgotten. It holds the
//! ledger's random id and, if the ledger is lost, the time when the loss was noticed. So a restart does not change the
//! wait. The ledger is opened, declared lost and renewed only under the lock of the file `<marker>.lock`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::LedgerError;
use super::files::{sync_folder, with_suffix};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerMarker {
    /// The random id of the expected ledger.
    pub(super) ledger: String,
    /// Set while the ledger counts as lost.
    pub(super) lost: Option<LedgerLoss>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerLoss {
    pub(super) noticed_at: DateTime<Utc>,
    pub(super) why: String,
}

impl LedgerMarker {
    pub(super) fn new(ledger: String) -> Self {
        Self { ledger, lost: None }
    }

    /// Reads the marker at this path; `None` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, LedgerError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LedgerError::wrap_io(path)(error)),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| LedgerError::Marker { path: path.to_owned(), why: error.to_string() })
    }

    /// Replaces the marker by a complete and durable file.
    pub(super) fn write(&self, path: &Path) -> Result<(), LedgerError> {
        let fresh = with_suffix(path, ".new");
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| LedgerError::Marker { path: path.to_owned(), why: error.to_string() })?;
        let written = || -> io::Result<()> {
            let mut file = File::create(&fresh)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&fresh, path)
        };
        written().map_err(LedgerError::wrap_io(path))?;
        sync_folder(path)
    }
}

/// The lock that is held while the ledger is opened, declared lost or renewed. Dropping it frees the lock.
#[derive(Debug)]
pub(super) struct MarkerLock(#[expect(dead_code, reason = "closing the file frees the lock")] File);

impl MarkerLock {
    /// Waits until no other process or handle holds the lock. It is held for milliseconds only.
    pub(super) async fn acquire(marker: &Path) -> Result<Self, LedgerError> {
        let path = with_suffix(marker, ".lock");
        let taken = tokio::task::spawn_blocking(move || {
            let file = File::options().create(true).append(true).mode(0o600).open(&path);
            file.and_then(|file| file.lock().map(|()| Self(file))).map_err(LedgerError::wrap_io(&path))
        });
        taken.await.map_err(|error| LedgerError::wrap_io(marker)(io::Error::other(error)))?
    }
}
