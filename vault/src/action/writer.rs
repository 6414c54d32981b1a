//! The vault writer: the one process that writes a vault.
//!
//! [`VaultWriter::lock`] takes the writer's lock, and finishes or reverts what a crash left. From then on a file
//! changes only by [`VaultWriter::apply_plan`], [`VaultWriter::resolve_action`], [`VaultWriter::write_timestamps`] and
//! [`VaultWriter::update_status_fields`]. [`VaultWriter::create_files`] adds files of ours, and
//! [`VaultWriter::remove_extracted_events`] removes them. [`VaultWriter::file_plan`],
//! [`VaultWriter::file_manual_outcome`] and [`VaultWriter::file_tracker_outcome`] file records that change nothing.
//! All calls are synchronous and run one at a time. Callers run them on a blocking thread, and call
//! [`VaultWriter::settle_swaps`] every second.

mod lock;
mod recover;
mod settle;

use crate::action::chain::{ChainError, ChainWatch};
use crate::action::journal::ChangeIntent;
use crate::action::ownership::OwnershipCheck;
use crate::files::disk::disk_error_hint;
use crate::files::identity::{IdentityError, VaultIdentity};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::files::steward_folder::{StewardFolderError, check_steward_folder};
use crate::gates::stop;
use crate::index::{Index, NoteCatalog};
use crate::tracker::outbox::TrackerSite;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::action::audit::{AuditRecord, ChainHead};
use steward_domain::action::plan::{ActionId, Disposition, PreparePlanError};
use steward_domain::action::target::WriteTarget;
use steward_domain::record::link::NoteNames;
use steward_domain::record::moves::MoveHistory;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::NoteSchema;

/// How long a displaced file is kept for an editor that still has it open: 60 s.
///
/// Editors open, write and close within milliseconds. A minute covers a machine that is busy or asleep, and the cost is
/// one small file. A write through a handle that is still open after that would be lost.
pub const SETTLE_AFTER: Duration = Duration::from_secs(60);

/// The lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "{path}: held by another process ({holder}): end that process first (`steward stop` only makes it pause), or run `steward worker`, which waits for it"
    )]
    Held { path: String, holder: String },
    #[error("{path}: {source}: the vault must be writable for Steward's audit records")]
    Io { path: String, source: io::Error },
    #[error(
        "{0}: a backup is being restored into this vault, or was not to its end: empty its folders, and restore it again"
    )]
    Restoring(String),
    #[error(transparent)]
    Recovery(#[from] ApplyError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    StewardFolder(#[from] StewardFolderError),
}

/// Why a plan was not carried out.
///
/// Nothing was changed, or the change is finished or reverted before anything else begins. Calling again is safe.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{path}: changed by a person in the meantime")]
    ChangedMeanwhile { path: WriteTarget },
    #[error("{path}: edited by a person since: {}", fields.join(", "))]
    Conflict { path: RecordPath, fields: Vec<String> },
    #[error("{path}: {source}")]
    Record { path: RecordPath, source: PreparePlanError },
    #[error("the vault is stopped: `steward resume` lets it run again")]
    Stopped,
    /// Nothing was changed.
    #[error("{reason}")]
    NotPermitted { reason: String },
    #[error("{0}")]
    Form(String),
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("{path}: {source}{}", disk_error_hint(source))]
    Io { path: String, source: io::Error },
}

impl ApplyError {
    /// Whether nothing may be changed now, whatever the plan: the evidence is not used up.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Stopped | Self::NotPermitted { .. })
    }

    pub(crate) fn wrap_io(path: impl ToString) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_string(), source }
    }
}

/// The result of an action that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReceipt {
    pub id: ActionId,
    /// The path of the audit record.
    pub record: RecordPath,
    pub disposition: Disposition,
    /// Whether it had been done before, so that this call changed nothing.
    pub repeated: bool,
}

/// The holder of a vault's writer lock.
#[derive(Debug)]
pub struct VaultWriter {
    root: VaultRoot,
    identity: VaultIdentity,
    lock: File,
    state: Mutex<WriterState>,
    /// The head of the chain for others. They never wait for a change that is under way.
    pub(super) chain: ChainWatch,
    tracker: Option<TrackerSite>,
    /// `None` for a vault that belongs to no fleet.
    pub(super) ownership: Option<Arc<dyn OwnershipCheck>>,
    /// `None` without an index.
    catalog: Option<NoteCatalog>,
    /// Held while moved notes are found and recorded, so that each is recorded once.
    pub(crate) moves_lock: tokio::sync::Mutex<()>,
}

/// The state of the write path. Only the holder of its lock may read or change it.
#[derive(Debug)]
pub(crate) struct WriterState {
    pub(crate) head: ChainHead,
    /// The number of the last record that the durable head counts.
    pub(crate) synced_seq: u64,
    /// The number of the next attempt.
    pub(crate) next_attempt: u64,
    /// Changes that are done or reverted. They are kept until no more writes into the displaced files are expected.
    pub(crate) unsettled: VecDeque<UnsettledChange>,
    /// A change that is neither done nor reverted, because the disk failed in between. No other change begins before it
    /// is recovered.
    pub(crate) stuck: Option<ChangeIntent>,
}

#[derive(Debug)]
pub(crate) struct UnsettledChange {
    pub(crate) since: Instant,
    pub(crate) intent: ChangeIntent,
}

impl WriterState {
    /// The state of a writer whose audit records are not there. It must not write.
    fn without_records() -> Self {
        Self { head: ChainHead::genesis(), synced_seq: 0, next_attempt: 1, unsettled: VecDeque::new(), stuck: None }
    }

    /// Returns the number of a new attempt.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_attempt += 1;
        self.next_attempt - 1
    }

    pub(crate) fn keep_unsettled(&mut self, intent: ChangeIntent) {
        self.unsettled.push_back(UnsettledChange { since: Instant::now(), intent });
    }
}

impl VaultWriter {
    /// Takes the lock, and finishes or reverts what a crash left. So a writer never begins on top of half a change.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process writes this vault. [`LockError::Io`] if the vault cannot be written.
    /// [`LockError::Recovery`] if the recovery fails. [`LockError::Identity`] if the vault's id cannot be read.
    /// [`LockError::StewardFolder`] if Steward's folder is missing or belongs to another machine.
    pub fn lock(root: VaultRoot) -> Result<Self, LockError> {
        Self::lock_and_check(root, check_steward_folder)
    }

    /// As [`VaultWriter::lock`], but Steward's folder may be missing or belong to another machine. It is for the command
    /// that makes the folder.
    ///
    /// # Errors
    /// As [`VaultWriter::lock`].
    pub fn lock_without_folder(root: VaultRoot) -> Result<Self, LockError> {
        Self::lock_and_check(root, |_, _| Ok(()))
    }

    fn lock_and_check(
        root: VaultRoot,
        check: impl FnOnce(&VaultRoot, &VaultIdentity) -> Result<(), StewardFolderError>,
    ) -> Result<Self, LockError> {
        let lock = lock::take_lock(&root)?;
        let identity = VaultIdentity::read_or_create(&root)?;
        // The recovery reads the audit records, so they must be there. Without them a change that is done would seem cut
        // short, and would be taken back.
        check(&root, &identity)?;
        let state = match root.find_missing_folder() {
            None => recover::recover_state(&root)?,
            Some(_) => WriterState::without_records(),
        };
        stop::reserve_spare_file(&root);
        let chain = ChainWatch::default();
        chain.publish(&state.head);
        Ok(Self {
            root,
            identity,
            lock,
            state: Mutex::new(state),
            chain,
            tracker: None,
            ownership: None,
            catalog: None,
            moves_lock: tokio::sync::Mutex::default(),
        })
    }

    /// The id and the place of the vault.
    #[must_use]
    pub fn identity(&self) -> &VaultIdentity {
        &self.identity
    }

    /// Sets the tracker. From now on a change of a task records what it owes to the task's issue there.
    #[must_use]
    pub fn with_tracker(self, tracker: Option<TrackerSite>) -> Self {
        Self { tracker, ..self }
    }

    /// Sets the index whose mapping says how notes are read and written, and whose names of notes say which note a link
    /// names. Without one, the vault has no mapping, and a link names the path that it spells.
    #[must_use]
    pub fn with_index(self, index: &Index) -> Self {
        Self { catalog: Some(index.notes.clone()), ..self }
    }

    /// The names of the notes; none of them without an index. `None` while the index does not know them.
    pub(crate) fn note_names(&self) -> Option<Arc<NoteNames>> {
        self.catalog.as_ref().map_or_else(|| Some(Arc::default()), NoteCatalog::read)
    }

    /// Where notes have moved; nowhere without an index.
    pub(crate) fn note_moves(&self) -> Arc<MoveHistory> {
        self.catalog.as_ref().map(NoteCatalog::moves).unwrap_or_default()
    }

    /// How the notes of the vault are read and written now.
    pub(crate) fn note_schema(&self) -> Arc<NoteSchema> {
        self.catalog.as_ref().map(|catalog| Arc::clone(&catalog.schema)).unwrap_or_default()
    }

    /// The schema under which a record was made.
    pub(crate) fn find_schema(&self, record: &AuditRecord) -> Option<Arc<NoteSchema>> {
        self.catalog.clone().unwrap_or_default().find_schema(record)
    }

    /// The tracker, if one is configured.
    #[must_use]
    pub fn tracker_site(&self) -> Option<&TrackerSite> {
        self.tracker.as_ref()
    }

    /// Follows the head of the audit chain.
    #[must_use]
    pub fn watch_chain(&self) -> ChainWatch {
        self.chain.clone()
    }

    /// Whether a process holds the lock of this vault. Changes nothing.
    #[must_use]
    pub fn is_locked(root: &VaultRoot) -> bool {
        Self::find_lock_holder(root).is_some()
    }

    /// The holder of this vault's lock, as `process <number>`; `None` if the lock is free.
    #[must_use]
    pub fn find_lock_holder(root: &VaultRoot) -> Option<String> {
        lock::find_holder(root)
    }

    /// The root of the vault.
    #[must_use]
    pub fn root(&self) -> &VaultRoot {
        &self.root
    }

    /// Waits for the state of the write path. If another thread panicked with it, recovery runs as after a crash.
    pub(crate) fn lock_state(&self) -> Result<MutexGuard<'_, WriterState>, ApplyError> {
        lock::verify_ownership(&self.root, &self.lock).map_err(ApplyError::wrap_io(lock::display_path()))?;
        let mut state = match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => {
                let mut state = PoisonError::into_inner(poisoned);
                *state = recover::recover_state(&self.root)?;
                self.state.clear_poison();
                state
            }
        };
        if let Some(intent) = state.stuck.take() {
            self.recover_stuck_intent(&mut state, intent)?;
        }
        // A recovery may have filed a record.
        self.chain.publish(&state.head);
        Ok(state)
    }
}

#[cfg(test)]
mod tests;
