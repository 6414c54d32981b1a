//! The one process that writes a vault.
//!
//! [`Keeper::lock`] takes the writer's lock, finishes or takes back what a crash left, and from
//! then on [`Keeper::apply`], [`Keeper::answer`], [`Keeper::stamp`] and [`Keeper::note`] are the only
//! ways to change a file of the vault, [`Keeper::create`] and [`Keeper::purge`] those to add and to drop
//! one of ours; [`Keeper::track`] files what came of a change in the tracker.
//! Everything is synchronous and one at a time: callers run it on a blocking thread, and call
//! [`Keeper::settle`] every few seconds.

mod lock;
mod recover;

use crate::brake;
use crate::chain::{self, ChainError, Head};
use crate::crash;
use crate::identity::{IdentityError, VaultIdentity};
use crate::journal::{self, Intent};
use crate::outbox::Site;
use crate::root::{Root, RootError};
use crate::swap::{self, Look};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, Disposition, PreparePlanError};

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
        "{path}: held by another process ({holder}): stop that one first, or run `steward worker`, which waits for its turn"
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
    Root(#[from] RootError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("{path}: {source}{}", mend(source))]
    Io { path: String, source: io::Error },
}

impl ApplyError {
    pub(crate) fn io(path: impl ToString) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_string(), source }
    }
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: ActionId,
    /// Where the audit record lies.
    pub record: RecordPath,
    pub landing: Disposition,
    /// It had been done before: this call changed nothing.
    pub repeated: bool,
}

/// The holder of a vault's writer lock.
#[derive(Debug)]
pub struct Keeper {
    root: Root,
    identity: VaultIdentity,
    lock: File,
    turn: Mutex<Turn>,
    tracker: Option<Site>,
}

/// What only the one whose turn it is may know and change.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) head: Head,
    /// The last record that the durable head counts.
    pub(crate) synced: u64,
    /// The number of the next attempt.
    pub(crate) next: u64,
    /// Done or taken back; kept until nobody can write into what was displaced.
    pub(crate) unsettled: VecDeque<Unsettled>,
    /// Neither done nor taken back, because the disk failed in between. Nothing else is begun
    /// before this one is resolved.
    pub(crate) stuck: Option<Intent>,
}

#[derive(Debug)]
pub(crate) struct Unsettled {
    pub(crate) since: Instant,
    pub(crate) intent: Intent,
}

impl Turn {
    /// Numbers an attempt.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn keep(&mut self, intent: Intent) {
        self.unsettled.push_back(Unsettled { since: Instant::now(), intent });
    }
}

impl Keeper {
    /// Takes the lock and makes good for what a crash left.
    ///
    /// # Errors
    /// [`LockError::Held`] when another process writes this vault; [`LockError::Io`] when the vault
    /// cannot be written.
    pub fn lock(root: Root) -> Result<Self, LockError> {
        let lock = lock::take(&root)?;
        let turn = recover::recover(&root)?;
        brake::set_spare_aside(&root);
        let identity = VaultIdentity::ensure(&root)?;
        Ok(Self { root, identity, lock, turn: Mutex::new(turn), tracker: None })
    }

    /// Which vault this is.
    #[must_use]
    pub fn identity(&self) -> &VaultIdentity {
        &self.identity
    }

    /// From now on changes of tasks owe to a tracker what their issues there should show.
    #[must_use]
    pub fn with_tracker(self, tracker: Option<Site>) -> Self {
        Self { tracker, ..self }
    }

    /// The tracker, where there is one.
    #[must_use]
    pub fn tracker(&self) -> Option<&Site> {
        self.tracker.as_ref()
    }

    /// Whether some process holds the lock of this vault; changes nothing.
    #[must_use]
    pub fn is_held(root: &Root) -> bool {
        Self::holder(root).is_some()
    }

    /// Who holds the lock of this vault, as `process <number>`; `None` when nobody does.
    #[must_use]
    pub fn holder(root: &Root) -> Option<String> {
        lock::held_by(root)
    }

    /// The vault.
    #[must_use]
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// One writer at a time; a panic in another one is like a crash, and resolved like one.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, Turn>, ApplyError> {
        lock::still_ours(&self.root, &self.lock).map_err(ApplyError::io(lock::shown()))?;
        let mut turn = match self.turn.lock() {
            Ok(turn) => turn,
            Err(poisoned) => {
                let mut turn = PoisonError::into_inner(poisoned);
                *turn = recover::recover(&self.root)?;
                self.turn.clear_poison();
                turn
            }
        };
        if let Some(intent) = turn.stuck.take() {
            self.resolve_stuck(&mut turn, intent)?;
        }
        Ok(turn)
    }

    /// Looks after what changed places: gives late edits back, and forgets what displaced content
    /// has lain untouched for [`SETTLE_AFTER`]. Returns the records that were edited late.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written.
    pub fn settle(&self) -> Result<Vec<RecordPath>, ApplyError> {
        self.settle_older_than(SETTLE_AFTER)
    }

    /// [`Keeper::settle`] with another patience; zero settles everything.
    ///
    /// # Errors
    /// [`ApplyError::Io`] when the vault cannot be written; whatever could not be settled is tried
    /// again the next time.
    pub fn settle_older_than(&self, patience: Duration) -> Result<Vec<RecordPath>, ApplyError> {
        let mut turn = self.turn()?;
        if turn.unsettled.is_empty() {
            return Ok(Vec::new());
        }
        // An intent stands for the head until that is durable; late edits are given back regardless.
        let synced = self.sync_head(&mut turn);
        let patience = synced.is_ok().then_some(patience);
        let mut failed = synced.map_err(ApplyError::io("the head of the chain")).err();
        let (mut late, mut kept) = (Vec::new(), VecDeque::new());
        while let Some(mut one) = turn.unsettled.pop_front() {
            match self.settle_one(&one, patience) {
                Ok(Settled::Forgotten) => {}
                Ok(Settled::NotYet) => kept.push_back(one),
                Ok(Settled::Edited { again }) => {
                    late.push(one.intent.subject().clone());
                    one.since = Instant::now();
                    // Ours is staged now, and an editor may have had that open in its turn.
                    if again {
                        turn.unsettled.push_back(one);
                    }
                }
                Err(source) => {
                    failed = failed.or(Some(ApplyError::io(one.intent.subject())(source)));
                    kept.push_back(one);
                }
            }
        }
        turn.unsettled = kept;
        failed.map_or(Ok(late), Err)
    }

    fn sync_head(&self, turn: &mut Turn) -> io::Result<()> {
        if turn.synced != turn.head.seq {
            chain::write_head(&self.root, &turn.head)?;
            chain::sync_head(&self.root)?;
            turn.synced = turn.head.seq;
        }
        Ok(())
    }

    /// Settles one change; without patience nothing is forgotten.
    fn settle_one(&self, one: &Unsettled, patience: Option<Duration>) -> io::Result<Settled> {
        let patient = patience.is_none_or(|patience| one.since.elapsed() < patience);
        let swap = one.intent.swap();
        let mut edited = false;
        match swap.as_ref().map(|swap| swap::look(&self.root, swap)).transpose()? {
            Some(Look::GivenBack) => return Ok(Settled::Edited { again: true }),
            Some(Look::Quiet | Look::Gone) if patient => return Ok(Settled::NotYet),
            Some(Look::Kept(_)) => edited = true,
            Some(Look::Quiet | Look::Gone) | None => {}
        }
        if patience.is_none() {
            return Ok(Settled::NotYet);
        }
        crash::point("before-settling");
        if let Some(swap) = &swap {
            edited |= swap::forget(&self.root, swap)?;
        }
        crash::point("after-discarding");
        journal::remove(&self.root, &one.intent)?;
        crash::point("after-settling");
        Ok(if edited { Settled::Edited { again: false } } else { Settled::Forgotten })
    }
}

enum Settled {
    NotYet,
    Forgotten,
    Edited { again: bool },
}

/// What a person can do about an error of the disk.
pub(crate) fn mend(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some space where the vault lies",
        io::ErrorKind::FileTooLarge => ": raise the limit of file sizes (ulimit -f) of Steward's process",
        io::ErrorKind::ReadOnlyFilesystem => ": make the vault writable",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
