//! The one process that writes a vault.
//!
//! [`VaultWriter::lock`] takes the writer's lock, finishes or takes back what a crash left, and from
//! then on [`VaultWriter::apply`], [`VaultWriter::answer`], [`VaultWriter::stamp`] and [`VaultWriter::note`] are the only
//! ways to change a file of the vault, [`VaultWriter::create`] and [`VaultWriter::purge`] those to add and to drop
//! one of ours; [`VaultWriter::file_tracker_outcome`] files what came of a change in the tracker.
//! Everything is synchronous and one at a time: callers run it on a blocking thread, and call
//! [`VaultWriter::settle`] every few seconds.

mod lock;
mod recover;

use crate::action::chain::{self, ChainError, ChainHead};
use crate::action::journal::{self, ChangeIntent};
use crate::action::swap::{self, LateEditCheck};
use crate::files::crash;
use crate::files::identity::{IdentityError, VaultIdentity};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::gates::stop;
use crate::tracker::outbox::TrackerSite;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::action::plan::{ActionId, Disposition, PreparePlanError};
use steward_domain::record::path::RecordPath;

/// How long what a swap displaced is kept for an editor that still has it open: 60 s.
///
/// Editors open, write and close within milliseconds; a minute covers one on a machine that is
/// busy or asleep, and the cost is one small file. A write through a handle that is still open
/// after that would be lost.
pub const SETTLE_AFTER: Duration = Duration::from_secs(60);

/// The lock cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "{path}: held by another process ({holder}): stop that one first, or run `steward worker`, which waits for its state"
    )]
    Held { path: String, holder: String },
    #[error("{path}: {source}: the vault must be writable for Steward's audit records")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Recovery(#[from] ApplyError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Why a plan was not carried out. Nothing has been changed, or what was changed is finished or
/// taken back before anything else is done; asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("{path}: changed meanwhile by a human")]
    ChangedMeanwhile { path: RecordPath },
    #[error("{path}: edited by a human since: {}", fields.join(", "))]
    Conflict { path: RecordPath, fields: Vec<String> },
    #[error("{path}: {source}")]
    Record { path: RecordPath, source: PreparePlanError },
    #[error("the fleet is stopped: `steward resume` lets it run again")]
    Stopped,
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
    pub(crate) fn wrap_io(path: impl ToString) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_string(), source }
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReceipt {
    pub id: ActionId,
    /// Where the audit record lies.
    pub record: RecordPath,
    pub landing: Disposition,
    /// It had been done before: this call changed nothing.
    pub repeated: bool,
}

/// The holder of a vault's writer lock.
#[derive(Debug)]
pub struct VaultWriter {
    root: VaultRoot,
    identity: VaultIdentity,
    lock: File,
    state: Mutex<WriterState>,
    tracker: Option<TrackerSite>,
}

/// What only the one whose state it is may know and change.
#[derive(Debug)]
pub(crate) struct WriterState {
    pub(crate) head: ChainHead,
    /// The last record that the durable head counts.
    pub(crate) synced: u64,
    /// The number of the next attempt.
    pub(crate) next: u64,
    /// Done or taken back; kept until nobody can write into what was displaced.
    pub(crate) unsettled: VecDeque<UnsettledChange>,
    /// Neither done nor taken back, because the disk failed in between. Nothing else is begun
    /// before this one is resolved.
    pub(crate) stuck: Option<ChangeIntent>,
}

#[derive(Debug)]
pub(crate) struct UnsettledChange {
    pub(crate) since: Instant,
    pub(crate) intent: ChangeIntent,
}

impl WriterState {
    /// Numbers an attempt.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn keep_unsettled(&mut self, intent: ChangeIntent) {
        self.unsettled.push_back(UnsettledChange { since: Instant::now(), intent });
    }
}

impl VaultWriter {
    /// Takes the lock and makes good for what a crash left.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process writes this vault; [`LockError::Io`] when the vault
    /// cannot be written.
    pub fn lock(root: VaultRoot) -> Result<Self, LockError> {
        let lock = lock::take_lock(&root)?;
        let state = recover::recover_state(&root)?;
        stop::reserve_spare_file(&root);
        let identity = VaultIdentity::read_or_create(&root)?;
        Ok(Self { root, identity, lock, state: Mutex::new(state), tracker: None })
    }

    /// Which vault this is.
    #[must_use]
    pub fn identity(&self) -> &VaultIdentity {
        &self.identity
    }

    /// From now on changes of tasks owe to a tracker what their issues there should show.
    #[must_use]
    pub fn with_tracker(self, tracker: Option<TrackerSite>) -> Self {
        Self { tracker, ..self }
    }

    /// The tracker, where there is one.
    #[must_use]
    pub fn tracker_site(&self) -> Option<&TrackerSite> {
        self.tracker.as_ref()
    }

    /// Whether some process holds the lock of this vault; changes nothing.
    #[must_use]
    pub fn is_locked(root: &VaultRoot) -> bool {
        Self::find_lock_holder(root).is_some()
    }

    /// Who holds the lock of this vault, as `process <number>`; `None` when nobody does.
    #[must_use]
    pub fn find_lock_holder(root: &VaultRoot) -> Option<String> {
        lock::find_holder(root)
    }

    /// The vault.
    #[must_use]
    pub fn root(&self) -> &VaultRoot {
        &self.root
    }

    /// One writer at a time; a panic in another one is like a crash, and resolved like one.
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
        Ok(state)
    }

    /// Looks after what changed places: gives late edits back, and forgets what displaced content
    /// has lain untouched for [`SETTLE_AFTER`]. Returns the records that were edited late.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written.
    pub fn settle_swaps(&self) -> Result<Vec<RecordPath>, ApplyError> {
        self.settle_swaps_older_than(SETTLE_AFTER)
    }

    /// [`VaultWriter::settle`] with another patience; zero settles everything.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written; whatever could not be settled is tried
    /// again the next time.
    pub fn settle_swaps_older_than(&self, patience: Duration) -> Result<Vec<RecordPath>, ApplyError> {
        let mut state = self.lock_state()?;
        if state.unsettled.is_empty() {
            return Ok(Vec::new());
        }
        // An intent stands for the head until that is durable; late edits are given back regardless.
        let synced = self.sync_chain_head(&mut state);
        let patience = synced.is_ok().then_some(patience);
        let mut failed = synced.map_err(ApplyError::wrap_io("the head of the chain")).err();
        let (mut late, mut kept) = (Vec::new(), VecDeque::new());
        while let Some(mut one) = state.unsettled.pop_front() {
            match self.settle_change(&one, patience) {
                Ok(SwapSettlement::Forgotten) => {}
                Ok(SwapSettlement::NotYet) => kept.push_back(one),
                Ok(SwapSettlement::Edited { again }) => {
                    late.push(one.intent.subject().clone());
                    one.since = Instant::now();
                    // Ours is staged now, and an editor may have had that open in its state.
                    if again {
                        state.unsettled.push_back(one);
                    }
                }
                Err(source) => {
                    failed = failed.or(Some(ApplyError::wrap_io(one.intent.subject())(source)));
                    kept.push_back(one);
                }
            }
        }
        state.unsettled = kept;
        failed.map_or(Ok(late), Err)
    }

    fn sync_chain_head(&self, state: &mut WriterState) -> io::Result<()> {
        if state.synced != state.head.seq {
            chain::write_head(&self.root, &state.head)?;
            chain::sync_head(&self.root)?;
            state.synced = state.head.seq;
        }
        Ok(())
    }

    /// Settles one change; without patience nothing is forgotten.
    fn settle_change(&self, one: &UnsettledChange, patience: Option<Duration>) -> io::Result<SwapSettlement> {
        let patient = patience.is_none_or(|patience| one.since.elapsed() < patience);
        let swap = one.intent.to_swap();
        let mut edited = false;
        match swap.as_ref().map(|swap| swap::check_late_edit(&self.root, swap)).transpose()? {
            Some(LateEditCheck::GivenBack) => return Ok(SwapSettlement::Edited { again: true }),
            Some(LateEditCheck::Quiet | LateEditCheck::Gone) if patient => return Ok(SwapSettlement::NotYet),
            Some(LateEditCheck::Kept(_)) => edited = true,
            Some(LateEditCheck::Quiet | LateEditCheck::Gone) | None => {}
        }
        if patience.is_none() {
            return Ok(SwapSettlement::NotYet);
        }
        crash::die_if_armed("before-settling");
        if let Some(swap) = &swap {
            edited |= swap::forget_swap(&self.root, swap)?;
        }
        crash::die_if_armed("after-discarding");
        journal::remove_intent(&self.root, &one.intent)?;
        crash::die_if_armed("after-settling");
        Ok(if edited { SwapSettlement::Edited { again: false } } else { SwapSettlement::Forgotten })
    }
}

enum SwapSettlement {
    NotYet,
    Forgotten,
    Edited { again: bool },
}

/// What a person can do about an error of the disk.
pub(crate) fn disk_error_hint(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some space where the vault lies",
        io::ErrorKind::FileTooLarge => ": raise the limit of file sizes (ulimit -f) of Steward's process",
        io::ErrorKind::ReadOnlyFilesystem => ": make the vault writable",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
