//! The identity of the ledger's files on the disk, and the renaming of lost ones.
//!
//! SQLite continues to write into a file that was deleted or replaced. It would then admit calls that no other process
//! counts. Therefore the identity of each file is compared before and after every reservation. No file is ever deleted:
//! a file that is in the way is renamed beside its place.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use steward_domain::time::format_compact;

use super::error::LedgerError;

/// The database, its write-ahead log and its shared memory, in this order.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// The identity of the files at the ledger's paths. While the ledger is open, none of them may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerFileIdentity {
    data: [Option<Inode>; 3],
    /// Every rewrite of the marker is a new file. Its change time distinguishes reused inodes.
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

/// Renames the files at the ledger's paths to `<name>.lost-<time>`, so that a person can inspect them.
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
