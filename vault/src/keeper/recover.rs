//! What follows when a change stopped half way: a crash, a full disk, a panic.
//!
//! An intent is resolved by looking at the files alone: is its record filed, what does its staged
//! content say. A change whose content is in place gets its record; one whose content is not, or
//! was displaced again, never happened and its record goes. A stamp has no record: whichever content is
//! in place stays. Resolving twice is resolving once, so that a crash in here is resolved the same way.

use super::{ApplyError, Keeper, Turn};
use crate::chain;
use crate::crash;
use crate::journal::{self, Filing, Intent};
use crate::root::{OWN_FOLDER, Root};
use crate::swap::{self, Staged};
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Where to go from a change that is in place without its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Towards {
    /// It stood like this for who knows how long, and people may have seen it: file its record.
    Done,
    /// Its record could not be filed just now: put the content back.
    Undone,
}

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolved {
    /// Its record is filed.
    Filed,
    /// It never happened.
    Dropped,
    /// It is a stamp, in place or not.
    Unfiled,
}

/// Resolves every change that was under way, and reads where the chain stands.
pub(super) fn recover(root: &Root) -> Result<Turn, ApplyError> {
    let own = |source| ApplyError::io(format!("{OWN_FOLDER}/"))(source);
    journal::sweep(root).map_err(own)?;
    let intents = journal::open_intents(root).map_err(own)?;
    let mut turn = Turn {
        head: chain::head(root)?,
        synced: 0,
        next: journal::next_number(&intents),
        unsettled: VecDeque::new(),
        stuck: None,
    };
    let names = |i: &Intent| {
        let [before, after] = swap::copies_of(i.key.content());
        [i.key.content().to_owned(), i.key.record(), before, after]
    };
    let known: BTreeSet<String> = intents.iter().flat_map(names).collect();
    for intent in intents {
        let resolved = resolve(root, &intent, Towards::Done).map_err(ApplyError::io(intent.subject()))?;
        settle_later(root, &mut turn, intent, resolved).map_err(own)?;
    }
    swap::sweep(root, |name| known.contains(name)).map_err(own)?;
    if turn.head.seq > 0 && !chain::has_written_head(root)? {
        tracing::warn!(
            records = turn.head.seq,
            "the head of the audit chain was lost and is taken from the records; whether some are missing at the end cannot be told"
        );
    }
    if turn.head.seq > 0 {
        chain::write_head(root, &turn.head).map_err(own)?;
        chain::sync_head(root).map_err(own)?;
        turn.synced = turn.head.seq;
    }
    Ok(turn)
}

impl Keeper {
    /// Takes an attempt back that failed after its intent was written.
    ///
    /// Where even that fails, the intent is kept and resolved before anything else is begun.
    pub(crate) fn back_out(&self, turn: &mut Turn, intent: Intent) {
        let resolved = resolve(self.root(), &intent, Towards::Undone)
            .and_then(|resolved| settle_later(self.root(), turn, intent.clone(), resolved));
        if let Err(e) = resolved {
            tracing::error!(record = %intent.subject(), error = %e, "a change is half done, it is resolved before the next");
            turn.stuck = Some(intent);
        }
    }

    /// Keeps an attempt that was taken back: our content stood there for a moment, and whoever
    /// opened it then may still write into it. Its record never comes to be.
    pub(crate) fn taken_back(&self, turn: &mut Turn, intent: Intent) {
        match swap::discard(self.root(), &intent.key.record()) {
            Ok(()) => turn.keep(intent),
            Err(e) => {
                tracing::error!(record = %intent.subject(), error = %e, "failed to drop a record, nothing is begun before");
                turn.stuck = Some(intent);
            }
        }
    }

    pub(super) fn resolve_stuck(&self, turn: &mut Turn, intent: Intent) -> Result<(), ApplyError> {
        let resolved = resolve(self.root(), &intent, Towards::Undone)
            .and_then(|resolved| settle_later(self.root(), turn, intent.clone(), resolved));
        resolved.map_err(|e| {
            let error = ApplyError::io(intent.subject())(e);
            turn.stuck = Some(intent);
            error
        })
    }
}

fn resolve(root: &Root, intent: &Intent, towards: Towards) -> io::Result<Resolved> {
    match intent.filing() {
        Some(filing) => resolve_action(root, intent, (filing, towards)),
        None => resolve_stamp(root, intent),
    }
}

/// A human's content that a stamp displaced goes back, where nobody has edited the stamped one since.
fn resolve_stamp(root: &Root, intent: &Intent) -> io::Result<Resolved> {
    if let Some(swap) = intent.swap()
        && swap::staged(root, &swap)? == Staged::Human
    {
        swap::give_back(root, &swap)?;
    }
    Ok(Resolved::Unfiled)
}

fn resolve_action(root: &Root, intent: &Intent, (filing, towards): (&Filing, Towards)) -> io::Result<Resolved> {
    if root.exists(&filing.record) {
        return Ok(Resolved::Filed);
    }
    let Some(swap) = intent.swap() else {
        return Ok(Resolved::Dropped);
    };
    match swap::staged(root, &swap)? {
        Staged::Absent | Staged::New => return Ok(Resolved::Dropped),
        Staged::Old if towards == Towards::Done && has_record(root, intent)? => {}
        Staged::Old | Staged::Human => {
            if swap::give_back(root, &swap)? {
                return Ok(Resolved::Dropped);
            }
        }
    }
    // In place, or edited on top: it happened.
    if !has_record(root, intent)? {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "was changed, and the record of that is lost: put the file right by hand, then remove {}",
                intent.shown()
            ),
        ));
    }
    crash::point("before-filing");
    chain::file(root, &intent.key, filing)?;
    Ok(Resolved::Filed)
}

fn has_record(root: &Root, intent: &Intent) -> io::Result<bool> {
    swap::staged_dir(root)?.try_exists(intent.key.record())
}

/// Counts what was filed, drops the record of what was not, and keeps what was displaced.
fn settle_later(root: &Root, turn: &mut Turn, intent: Intent, resolved: Resolved) -> io::Result<()> {
    match (resolved, intent.filing()) {
        (Resolved::Filed, Some(filing)) => turn.head = turn.head.clone().after(filing),
        (Resolved::Filed | Resolved::Dropped | Resolved::Unfiled, _) => {}
    }
    swap::discard(root, &intent.key.record())?;
    turn.keep(intent);
    Ok(())
}
