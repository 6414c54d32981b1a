//! The one process that writes a vault.
//!
//! [`Keeper::lock`] takes the writer's lock, finishes or takes back what a crash left, and from
//! then on [`Keeper::apply`] and [`Keeper::answer`] are the only ways to change a file of the
//! vault. Everything is synchronous and one at a time: callers run it on a blocking thread.

use crate::chain::{self, ChainError};
use crate::crash;
use crate::journal::{self, Intent};
use crate::root::{OWN_FOLDER, Root, RootError};
use crate::swap::{self, Staged};
use std::fs::{File, TryLockError};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, Landing, PrepareError};

/// How long what a swap displaced is kept for an editor that still has it open: 5 s.
///
/// Editors open, write and close within milliseconds; seconds are ample and the cost is one small
/// file. After that a write through a handle that is still open would be lost.
pub const SETTLE_AFTER: Duration = Duration::from_secs(5);

/// The lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "{path}: held by another process ({holder}): stop that one first, or run `steward worker`, which waits for its turn"
    )]
    Held { path: String, holder: String },
    #[error("{path}: {source}: the vault must be writable for Steward's audit records")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Recovery(#[from] ApplyError),
}

/// Why a plan was not carried out. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{path}: changed meanwhile by a human")]
    ChangedMeanwhile { path: RecordPath },
    #[error("{path}: edited by a human since: {}", fields.join(", "))]
    Conflict { path: RecordPath, fields: Vec<String> },
    #[error("{path}: {source}")]
    Record { path: RecordPath, source: PrepareError },
    #[error("{0}")]
    Form(String),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: ActionId,
    /// Where the audit record lies.
    pub record: RecordPath,
    pub landing: Landing,
    /// It had been done before: this call changed nothing.
    pub repeated: bool,
}

/// The holder of a vault's writer lock.
#[derive(Debug)]
pub struct Keeper {
    root: Root,
    _lock: File,
    unsettled: Mutex<Vec<(Instant, Intent)>>,
}

impl Keeper {
    /// Takes the lock and makes good for what a crash left.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process writes this vault; [`LockError::Io`] when the vault
    /// cannot be written.
    pub fn lock(root: Root) -> Result<Self, LockError> {
        let path = format!("{OWN_FOLDER}/lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        root.dir().create_dir_all(OWN_FOLDER).map_err(failed)?;
        ignore_own_folder(&root).map_err(failed)?;
        let full = root.path().join(&path);
        let file = File::options().write(true).read(true).create(true).truncate(false).open(&full).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&full).unwrap_or_default();
                let holder = if holder.trim().is_empty() { "unknown".into() } else { holder.trim().to_owned() };
                return Err(LockError::Held { path, holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        std::fs::write(&full, format!("process {}", std::process::id())).map_err(failed)?;
        let keeper = Self { root, _lock: file, unsettled: Mutex::new(Vec::new()) };
        keeper.recover()?;
        Ok(keeper)
    }

    /// The vault.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// One writer at a time; a panic in another one leaves nothing half done that recovery minds.
    pub(crate) fn turn(&self) -> MutexGuard<'_, Vec<(Instant, Intent)>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finishes or takes back every change that was under way when the last holder died.
    fn recover(&self) -> Result<(), ApplyError> {
        let mut turn = self.turn();
        let failed = |source| ApplyError::Io { path: format!("{OWN_FOLDER}/journal/"), source };
        for intent in journal::open_intents(&self.root).map_err(failed)? {
            self.recover_one(&intent)?;
            journal::remove(&self.root, &intent).map_err(failed)?;
        }
        turn.clear();
        self.sweep_staged().map_err(failed)
    }

    fn recover_one(&self, intent: &Intent) -> Result<(), ApplyError> {
        let failed = |source| ApplyError::Io { path: intent.target.to_string(), source };
        let swap = intent.swap();
        let filed = self.root.exists(&intent.record);
        match swap::displaced(&self.root, &swap).map_err(failed)? {
            Staged::Absent | Staged::Waiting => {}
            Staged::Displaced => {
                if !filed {
                    self.file_staged(intent)?;
                }
            }
            Staged::DisplacedHuman if filed => {
                swap::give_back(&self.root, &swap).map_err(failed)?;
            }
            Staged::DisplacedHuman => {
                let given = swap::give_back(&self.root, &swap).map_err(failed)?;
                if given == swap::Swapped::Done {
                    self.file_staged(intent)?;
                }
            }
        }
        swap::discard(&self.root, intent.id.as_str()).map_err(failed)?;
        swap::discard(&self.root, &staged_record(&intent.id)).map_err(failed)
    }

    pub(crate) fn file_staged(&self, intent: &Intent) -> Result<(), ApplyError> {
        Ok(chain::file(&self.root, &staged_record(&intent.id), &intent.record)?)
    }

    /// Removes what changed places more than [`SETTLE_AFTER`] ago; returns late edits given back.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written.
    pub fn settle(&self) -> Result<Vec<RecordPath>, ApplyError> {
        self.settle_older_than(SETTLE_AFTER)
    }

    /// [`Keeper::settle`] with another patience; zero settles everything.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written.
    pub fn settle_older_than(&self, patience: Duration) -> Result<Vec<RecordPath>, ApplyError> {
        let mut turn = self.turn();
        let mut late = Vec::new();
        let mut kept = Vec::new();
        for (since, intent) in turn.drain(..) {
            if since.elapsed() < patience {
                kept.push((since, intent));
                continue;
            }
            let failed = |source| ApplyError::Io { path: intent.target.to_string(), source };
            crash::point("before-settling");
            if swap::settle(&self.root, &intent.swap()).map_err(failed)? {
                late.push(intent.target.clone());
            }
            journal::remove(&self.root, &intent).map_err(failed)?;
            crash::point("after-settling");
        }
        *turn = kept;
        Ok(late)
    }

    /// Staged files that no intent knows were left by a crash before their intent; nothing used them.
    fn sweep_staged(&self) -> io::Result<()> {
        let staged = swap::staged_dir(&self.root)?;
        for entry in staged.entries()? {
            staged.remove_file(entry?.file_name())?;
        }
        Ok(())
    }
}

/// The name of an action's staged record.
pub(crate) fn staged_record(id: &ActionId) -> String {
    format!("{id}.record")
}

/// Keeps our folder out of the vault's git history.
fn ignore_own_folder(root: &Root) -> io::Result<()> {
    let path = format!("{OWN_FOLDER}/.gitignore");
    match root.dir().symlink_metadata(&path) {
        Ok(_) => Ok(()),
        Err(_) => root.dir().write(&path, "*\n"),
    }
}
