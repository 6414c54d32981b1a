//! The ledger's files as the disk sees them: who they are, and how they are put aside.
//!
//! SQLite goes on writing into a file that was deleted or replaced under it, and would so grant
//! calls that nobody else counts. Therefore the identity of each file is compared around every
//! reservation. Nothing is ever deleted: what is in the way is renamed beside its place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use steward_domain::time::format_compact;

use super::error::LedgerError;

/// The database, its write-ahead log and its shared memory, in this order.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Which files lie at the ledger's paths. While it is open none of them may become another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerFileIdentity {
    data: [Option<Inode>; 3],
    /// Every rewrite of the marker is a new file; its change time tells reused inodes apart.
    marker: Option<(Inode, i64, i64)>,
}

type Inode = (u64, u64);

impl LedgerFileIdentity {
    pub(super) fn read(database: &Path, marker: &Path) -> Result<Self, LedgerError> {
        let mut data = [None; 3];
        for (slot, suffix) in data.iter_mut().zip(SUFFIXES) {
            *slot = read_metadata(&with_suffix(database, suffix))?.map(|m| (m.dev(), m.ino()));
        }
        let marker = read_metadata(marker)?.map(|m| ((m.dev(), m.ino()), m.ctime(), m.ctime_nsec()));
        Ok(Self { data, marker })
    }

    pub(super) fn has_database(&self) -> bool {
        self.data[0].is_some()
    }

    pub(super) fn has_same_database(&self, other: &Self) -> bool {
        self.data[0] == other.data[0]
    }

    pub(super) fn has_same_data(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

fn read_metadata(path: &Path) -> Result<Option<fs::Metadata>, LedgerError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LedgerError::wrap_io(path)(error)),
    }
}

/// Renames whatever lies at the ledger's paths to `<name>.lost-<time>`, so that it can be looked at.
pub(super) fn rename_lost_files(database: &Path, now: DateTime<Utc>) -> Result<(), LedgerError> {
    let aside = with_suffix(database, &format!(".lost-{}", format_compact(now)));
    for suffix in SUFFIXES {
        let from = with_suffix(database, suffix);
        match fs::rename(&from, with_suffix(&aside, suffix)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LedgerError::wrap_io(&from)(error)),
        }
    }
    sync_folder(database)
}

/// Makes the names in the file's folder durable.
pub(super) fn sync_folder(file: &Path) -> Result<(), LedgerError> {
    let folder = file.parent().unwrap_or(file);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(LedgerError::wrap_io(folder))
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
