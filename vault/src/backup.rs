//! Backups of a vault: plain copies that a person can read, and check with `sha256sum`, without Steward.
//!
//! A backup is a folder named by its time. In it, `vault/` holds the vault, `state/` the files of the state folder,
//! `backup.json` says what it is, and `files.sha256` lists every file. A file that has not changed is a hard link into
//! the backup before it. Left out is what only one copy of a vault may have: its lock, its id in a fleet, the count of
//! clerk calls, and the database of a local Temporal server. [`create_backup`] writes nothing into the vault, and
//! [`restore_backup`] nothing into the backup.

mod create;
mod files;
mod manifest;
mod restore;
mod verify;

pub use create::{BackupSource, create_backup, find_newest_backup, list_backups};
pub use restore::{RestoreTarget, restore_backup};
pub use verify::{BackupVerification, read_backup_info, verify_backup};

use crate::action::chain::ChainError;
use crate::action::writer::ApplyError;
use crate::files::identity::{IdentityError, VaultId};
use crate::files::root::VaultRootError;
use crate::index::IndexError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::TenantId;

/// The vault in a backup.
const VAULT: &str = "vault";
/// The files of the state folder in a backup.
const STATE: &str = "state";
/// What the backup is.
const INFO: &str = "backup.json";
/// Every other file with its hash, as `sha256sum --check` reads them.
const FILES: &str = "files.sha256";
/// The layout above.
const FORMAT: u32 = 1;

/// Why a backup cannot be made, checked or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: the folder of backups lies in the vault or its state folder: choose one outside, best on another disk", .0.display())]
    InsideVault(PathBuf),
    #[error("{}: Steward has not served this vault yet: start it once, as with `steward up --once`", .0.display())]
    NoVault(PathBuf),
    #[error("{}: holds backups of another vault: give each vault a folder of its own", .0.display())]
    OtherVault(PathBuf),
    #[error("{}: holds other files than backups: choose an empty folder", .0.display())]
    Foreign(PathBuf),
    #[error("{}: the state folder holds the vault: set STEWARD_STATE_DIR to a folder beside it", .0.display())]
    StateAroundVault(PathBuf),
    #[error("{}: the index cannot be copied: {reason}", path.display())]
    IndexCopy { path: PathBuf, reason: String },
    #[error("{}: another backup is being made there: try again when it is done", .0.display())]
    Busy(PathBuf),
    #[error("the vault changed during each of {0} attempts: try again in a quieter moment")]
    Changing(u32),
    #[error("{}: not a complete backup: {reason}", folder.display())]
    Incomplete { folder: PathBuf, reason: String },
    #[error("{}: is damaged: {}", folder.display(), faults.join("; "))]
    Damaged { folder: PathBuf, faults: Vec<String> },
    #[error("{}: is not empty: a backup is restored into empty folders only", .0.display())]
    NotEmpty(PathBuf),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Writer(#[from] ApplyError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Root(#[from] VaultRootError),
}

impl BackupError {
    fn wrap_io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// What a backup is: the content of its `backup.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupInfo {
    /// The layout of the folder: 1.
    pub format: u32,
    /// The id of the vault.
    pub vault: VaultId,
    /// Its tenant in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The moment whose state the backup holds.
    pub taken_at: DateTime<Utc>,
    /// The version of Steward that made it.
    pub build: String,
    /// The number of audit records, and the hash of the last one.
    pub chain: ChainHead,
    /// The number of files, without this one and the list.
    pub files: u64,
    /// Their size together. Files that are hard links count too.
    pub bytes: u64,
    /// Links, and what each names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// Files that could not be read, or that changed each time they were.
    pub doubtful: Vec<String>,
}

/// A backup that was made or checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backup {
    pub folder: PathBuf,
    #[serde(flatten)]
    pub info: BackupInfo,
}

impl Backup {
    /// The copy of the vault in the folder of a backup.
    #[must_use]
    pub fn vault_copy(folder: &Path) -> PathBuf {
        folder.join(VAULT)
    }
}

/// The file that a program touches in the folder of backups whenever it has copied them elsewhere.
const COPIED: &str = ".copied";

/// When the backups of a folder were last copied elsewhere; `None` if they never were, as far as is known.
#[must_use]
pub fn find_last_copy(folder: &Path) -> Option<DateTime<Utc>> {
    folder.join(COPIED).metadata().ok()?.modified().ok().map(DateTime::from)
}

/// Whether a file of `.steward/` or of the state folder belongs to one copy of the vault, or to one process.
fn is_left_out(name: &OsStr) -> bool {
    const NAMES: [&str; 3] = ["lock", "copy", "STOP.spare"];
    const BEGINNINGS: [&str; 5] = ["state.db", "ledger.db", "temporal.", "up.json", "serve-"];
    let name = name.to_string_lossy();
    // A state folder is also the home of its user, with ssh keys in a folder that begins with a dot. `.gitignore` is ours.
    let is_hidden = name.starts_with('.') && name != ".gitignore";
    is_hidden
        || NAMES.contains(&&*name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || Path::new(&*name).extension().is_some_and(|extension| extension == "tmp" || extension == "new")
}
