//! Recovers a change that was interrupted by a crash, a full disk or a panic.
//!
//! It decides from the files alone: whether the intent's record is filed, and how far its files have come. If the new
//! content is in place, its record is filed. If nothing is, or it was displaced again, the change never happened and its
//! record is removed. If only some files are in place, the rest follows, or all are taken back
//! ([`crate::action::transaction`]). A timestamp write-back has no record: the content that is in place stays. Recovering twice has
//! the same result as once, so a crash during the recovery is recovered in the same way.

use super::ApplyError;
use super::VaultWriter;
use super::WriterState;
use crate::action::chain;
use crate::action::exchange::{ExchangeState, FileExchange};
use crate::action::journal::{self, ChangeIntent};
use crate::action::swap;
use crate::action::transaction::{self, TransactionOutcome};
use crate::files::crash;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// What to do with a change that is in place without its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecoveryDirection {
    /// File its record: the content has been in place for an unknown time, and people may have seen it.
    Done,
    /// Put the old content back: the record could not be filed just now.
    Undone,
}

/// The result of recovering an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntentOutcome {
    /// Its record is filed.
    Filed,
    /// The change never happened.
    Dropped,
    /// It is a timestamp write-back, in place or not.
    Unfiled,
}

/// Recovers every interrupted change, and reads the head of the chain.
pub(super) fn recover_state(root: &VaultRoot) -> Result<WriterState, ApplyError> {
    let own = |source| ApplyError::wrap_io(format!("{OWN_FOLDER}/"))(source);
    journal::remove_unfinished_files(root).map_err(own)?;
    let intents = journal::list_open_intents(root).map_err(own)?;
    let mut state = WriterState {
        head: chain::read_head(root)?,
        synced_seq: 0,
        next_attempt: journal::next_attempt_number(&intents),
        unsettled: VecDeque::new(),
        stuck: None,
    };
    let names = |i: &ChangeIntent| {
        let contents: Vec<[String; 3]> = i.exchanges().iter().map(FileExchange::staged_names).collect();
        contents.into_iter().flatten().chain([i.key.record_name()])
    };
    let known: BTreeSet<String> = intents.iter().flat_map(names).collect();
    for mut intent in intents {
        let resolved = recover_intent(root, &mut intent, RecoveryDirection::Done)
            .map_err(ApplyError::wrap_io(intent.subject()))?;
        queue_for_settling(root, &mut state, intent, resolved).map_err(own)?;
    }
    swap::remove_unknown_files(root, |name| known.contains(name)).map_err(own)?;
    if state.head.seq > 0 && !chain::has_written_head(root)? {
        tracing::warn!(
            records = state.head.seq,
            "the head of the audit chain was lost and is rebuilt from the records; \
             records that are missing at the end cannot be detected"
        );
    }
    if state.head.seq > 0 {
        chain::write_head(root, &state.head).map_err(own)?;
        chain::sync_head(root).map_err(own)?;
        state.synced_seq = state.head.seq;
    }
    Ok(state)
}

impl VaultWriter {
    /// Reverts an attempt that failed after its intent was written.
    ///
    /// If that fails too, the intent is kept and recovered before any other change begins.
    pub(crate) fn revert_intent(&self, state: &mut WriterState, mut intent: ChangeIntent) {
        let resolved = recover_intent(self.root(), &mut intent, RecoveryDirection::Undone)
            .and_then(|resolved| queue_for_settling(self.root(), state, intent.clone(), resolved));
        if let Err(e) = resolved {
            tracing::error!(file = %intent.subject(), error = %e, "a change is half done; it is recovered first");
            state.stuck = Some(intent);
        }
    }

    /// Keeps a reverted attempt until it settles, and removes its staged record.
    ///
    /// Our content was in place for a moment, and an editor that opened it then may still write into it.
    pub(crate) fn keep_reverted_intent(&self, state: &mut WriterState, mut intent: ChangeIntent) {
        let kept = journal::mark_reverted(self.root(), &mut intent)
            .and_then(|()| swap::discard_file(self.root(), &intent.key.record_name()));
        match kept {
            Ok(()) => state.keep_unsettled(intent),
            Err(e) => {
                tracing::error!(file = %intent.subject(), error = %e, "failed to drop a record; trying again");
                state.stuck = Some(intent);
            }
        }
    }

    pub(super) fn recover_stuck_intent(
        &self,
        state: &mut WriterState,
        mut intent: ChangeIntent,
    ) -> Result<(), ApplyError> {
        let resolved = recover_intent(self.root(), &mut intent, RecoveryDirection::Undone)
            .and_then(|resolved| queue_for_settling(self.root(), state, intent.clone(), resolved));
        resolved.map_err(|e| {
            let error = ApplyError::wrap_io(intent.subject())(e);
            state.stuck = Some(intent);
            error
        })
    }
}

fn recover_intent(
    root: &VaultRoot,
    intent: &mut ChangeIntent,
    direction: RecoveryDirection,
) -> io::Result<IntentOutcome> {
    match intent.filing() {
        // A later attempt may have filed a record of this name.
        Some(_) if intent.reverted => Ok(IntentOutcome::Dropped),
        Some(_) if chain::is_filed(root, intent)? => Ok(IntentOutcome::Filed),
        Some(_) => recover_recorded_change(root, intent, direction),
        None => recover_unrecorded_change(root, intent),
    }
}

/// Puts a person's content back that a timestamp write-back displaced, if nobody has edited the new content since.
fn recover_unrecorded_change(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<IntentOutcome> {
    for file in intent.exchanges() {
        if file.inspect(root)? == ExchangeState::OverEdit {
            file.take_back(root)?;
        }
    }
    Ok(IntentOutcome::Unfiled)
}

fn recover_recorded_change(
    root: &VaultRoot,
    intent: &mut ChangeIntent,
    direction: RecoveryDirection,
) -> io::Result<IntentOutcome> {
    let has_record = chain::has_staged_record(root, &intent.key)?;
    let is_name_taken = intent.filing().is_some_and(|filing| root.exists(&filing.record));
    let may_finish = direction == RecoveryDirection::Done && has_record && !is_name_taken;
    let TransactionOutcome::InPlace { missing } = transaction::recover(root, intent, may_finish)? else {
        return Ok(IntentOutcome::Dropped);
    };
    // The new content is in place, or a person edited it there: the change happened.
    if !has_record {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "was changed, but its audit record is lost: correct the file by hand, then remove {}",
                intent.display_path()
            ),
        ));
    }
    if is_name_taken {
        let message = format!(
            "was changed, but another file has the name of its audit record: move `{}` away",
            intent.filing().map_or_else(String::new, |filing| filing.record.to_string())
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    if intent.exchanges().len() > 1 {
        transaction::record_missing_files(root, intent, &missing)?;
    }
    let Some(filing) = intent.filing() else { return Ok(IntentOutcome::Unfiled) };
    crash::die_if_armed("before-filing");
    chain::publish_staged_record(root, &intent.key, filing)?;
    Ok(IntentOutcome::Filed)
}

/// Counts a filed record, removes a staged record that was not filed, and keeps the displaced file until it settles.
fn queue_for_settling(
    root: &VaultRoot,
    state: &mut WriterState,
    mut intent: ChangeIntent,
    resolved: IntentOutcome,
) -> io::Result<()> {
    swap::discard_file(root, &intent.key.record_name())?;
    match (resolved, intent.filing()) {
        (IntentOutcome::Filed, Some(filing)) => state.head = chain::advance_head(state.head.clone(), filing),
        (IntentOutcome::Dropped, _) => journal::mark_reverted(root, &mut intent)?,
        (IntentOutcome::Filed | IntentOutcome::Unfiled, _) => {}
    }
    state.keep_unsettled(intent);
    Ok(())
}
