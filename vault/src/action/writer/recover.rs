//! What follows when a change stopped half way: a crash, a full disk, a panic.
//!
//! An intent is resolved by looking at the files alone: is its record filed, what does its staged
//! content say. A change whose content is in place gets its record; one whose content is not, or
//! was displaced again, never happened and its record goes. A stamp has no record: whichever content is
//! in place stays. Resolving twice is resolving once, so that a crash in here is resolved the same way.

use super::ApplyError;
use super::VaultWriter;
use super::WriterState;
use crate::action::chain;
use crate::action::journal::{self, ChangeIntent, RecordFiling};
use crate::action::swap::{self, StagedContent};
use crate::files::crash;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Where to go from a change that is in place without its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryDirection {
    /// It stood like this for who knows how long, and people may have seen it: file its record.
    Done,
    /// Its record could not be filed just now: put the content back.
    Undone,
}

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntentOutcome {
    /// Its record is filed.
    Filed,
    /// It never happened.
    Dropped,
    /// It is a stamp, in place or not.
    Unfiled,
}

/// Resolves every change that was under way, and reads where the chain stands.
pub(super) fn recover_state(root: &VaultRoot) -> Result<WriterState, ApplyError> {
    let own = |source| ApplyError::wrap_io(format!("{OWN_FOLDER}/"))(source);
    journal::remove_unfinished_files(root).map_err(own)?;
    let intents = journal::list_open_intents(root).map_err(own)?;
    let mut state = WriterState {
        head: chain::read_head(root)?,
        synced: 0,
        next: journal::next_attempt_number(&intents),
        unsettled: VecDeque::new(),
        stuck: None,
    };
    let names = |i: &ChangeIntent| {
        let [before, after] = swap::copy_names(i.key.content_name());
        [i.key.content_name().to_owned(), i.key.record_name(), before, after]
    };
    let known: BTreeSet<String> = intents.iter().flat_map(names).collect();
    for intent in intents {
        let resolved =
            recover_intent(root, &intent, RecoveryDirection::Done).map_err(ApplyError::wrap_io(intent.subject()))?;
        queue_for_settling(root, &mut state, intent, resolved).map_err(own)?;
    }
    swap::remove_unknown_files(root, |name| known.contains(name)).map_err(own)?;
    if state.head.seq > 0 && !chain::has_written_head(root)? {
        tracing::warn!(
            records = state.head.seq,
            "the head of the audit chain was lost and is taken from the records; whether some are missing at the end cannot be told"
        );
    }
    if state.head.seq > 0 {
        chain::write_head(root, &state.head).map_err(own)?;
        chain::sync_head(root).map_err(own)?;
        state.synced = state.head.seq;
    }
    Ok(state)
}

impl VaultWriter {
    /// Takes an attempt back that failed after its intent was written.
    ///
    /// Where even that fails, the intent is kept and resolved before anything else is begun.
    pub(crate) fn revert_intent(&self, state: &mut WriterState, intent: ChangeIntent) {
        let resolved = recover_intent(self.root(), &intent, RecoveryDirection::Undone)
            .and_then(|resolved| queue_for_settling(self.root(), state, intent.clone(), resolved));
        if let Err(e) = resolved {
            tracing::error!(record = %intent.subject(), error = %e, "a change is half done, it is resolved before the next");
            state.stuck = Some(intent);
        }
    }

    /// Keeps an attempt that was taken back: our content stood there for a moment, and whoever
    /// opened it then may still write into it. Its record never comes to be.
    pub(crate) fn keep_reverted_intent(&self, state: &mut WriterState, intent: ChangeIntent) {
        match swap::discard_file(self.root(), &intent.key.record_name()) {
            Ok(()) => state.keep_unsettled(intent),
            Err(e) => {
                tracing::error!(record = %intent.subject(), error = %e, "failed to drop a record, nothing is begun before");
                state.stuck = Some(intent);
            }
        }
    }

    pub(super) fn recover_stuck_intent(&self, state: &mut WriterState, intent: ChangeIntent) -> Result<(), ApplyError> {
        let resolved = recover_intent(self.root(), &intent, RecoveryDirection::Undone)
            .and_then(|resolved| queue_for_settling(self.root(), state, intent.clone(), resolved));
        resolved.map_err(|e| {
            let error = ApplyError::wrap_io(intent.subject())(e);
            state.stuck = Some(intent);
            error
        })
    }
}

fn recover_intent(root: &VaultRoot, intent: &ChangeIntent, towards: RecoveryDirection) -> io::Result<IntentOutcome> {
    match intent.filing() {
        Some(filing) => recover_recorded_change(root, intent, (filing, towards)),
        None => recover_unrecorded_change(root, intent),
    }
}

/// A human's content that a stamp displaced goes back, where nobody has edited the stamped one since.
fn recover_unrecorded_change(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<IntentOutcome> {
    if let Some(swap) = intent.to_swap()
        && swap::inspect_staged(root, &swap)? == StagedContent::Human
    {
        swap::swap_back(root, &swap)?;
    }
    Ok(IntentOutcome::Unfiled)
}

fn recover_recorded_change(
    root: &VaultRoot,
    intent: &ChangeIntent,
    (filing, towards): (&RecordFiling, RecoveryDirection),
) -> io::Result<IntentOutcome> {
    if root.exists(&filing.record) {
        return Ok(IntentOutcome::Filed);
    }
    let Some(swap) = intent.to_swap() else {
        return Ok(IntentOutcome::Dropped);
    };
    match swap::inspect_staged(root, &swap)? {
        StagedContent::Absent | StagedContent::New => return Ok(IntentOutcome::Dropped),
        StagedContent::Old if towards == RecoveryDirection::Done && has_staged_record(root, intent)? => {}
        StagedContent::Old | StagedContent::Human => {
            if swap::swap_back(root, &swap)? {
                return Ok(IntentOutcome::Dropped);
            }
        }
    }
    // In place, or edited on top: it happened.
    if !has_staged_record(root, intent)? {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "was changed, and the record of that is lost: put the file right by hand, then remove {}",
                intent.display_path()
            ),
        ));
    }
    crash::die_if_armed("before-filing");
    chain::publish_staged_record(root, &intent.key, filing)?;
    Ok(IntentOutcome::Filed)
}

fn has_staged_record(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<bool> {
    swap::open_staged_folder(root)?.try_exists(intent.key.record_name())
}

/// Counts what was filed, drops the record of what was not, and keeps what was displaced.
fn queue_for_settling(
    root: &VaultRoot,
    state: &mut WriterState,
    intent: ChangeIntent,
    resolved: IntentOutcome,
) -> io::Result<()> {
    match (resolved, intent.filing()) {
        (IntentOutcome::Filed, Some(filing)) => state.head = state.head.clone().advance_to(filing),
        (IntentOutcome::Filed | IntentOutcome::Dropped | IntentOutcome::Unfiled, _) => {}
    }
    swap::discard_file(root, &intent.key.record_name())?;
    state.keep_unsettled(intent);
    Ok(())
}
