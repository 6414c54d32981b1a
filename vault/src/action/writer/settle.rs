//! Settles changes that are done or taken back, when no more writes into the displaced files are expected.
//!
//! Until then a late edit is given back, or kept beside the file. Nothing of a person's is removed.

use super::{ApplyError, SETTLE_AFTER, UnsettledChange, VaultWriter, WriterState};
use crate::action::chain;
use crate::action::journal;
use crate::action::swap::LateEditCheck;
use crate::files::crash;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use steward_domain::action::target::WriteTarget;

impl VaultWriter {
    /// Settles past swaps: puts late edits back, and removes displaced files that were untouched for [`SETTLE_AFTER`].
    ///
    /// Returns the files that were edited late.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the vault cannot be written.
    pub fn settle_swaps(&self) -> Result<Vec<WriteTarget>, ApplyError> {
        self.settle_swaps_older_than(SETTLE_AFTER)
    }

    /// As [`VaultWriter::settle_swaps`], with another patience. Zero settles everything.
    ///
    /// # Errors
    /// [`ApplyError::Io`] if the vault cannot be written. Changes that could not be settled are tried again next time.
    pub fn settle_swaps_older_than(&self, patience: Duration) -> Result<Vec<WriteTarget>, ApplyError> {
        let mut state = self.lock_state()?;
        if state.unsettled.is_empty() {
            return Ok(Vec::new());
        }
        // An intent replaces the head until the head is durable. Late edits are put back in any case.
        let synced = self.sync_chain_head(&mut state);
        let patience = synced.is_ok().then_some(patience);
        let mut failed = synced.map_err(ApplyError::wrap_io("the head of the chain")).err();
        let (mut late, mut kept) = (Vec::new(), VecDeque::new());
        while let Some(mut change) = state.unsettled.pop_front() {
            match self.settle_change(&change, patience) {
                Ok(SwapSettlement::Forgotten) => {}
                Ok(SwapSettlement::NotYet) => kept.push_back(change),
                Ok(SwapSettlement::Edited { files, again }) => {
                    late.extend(files);
                    change.since = Instant::now();
                    match again {
                        None => {}
                        Some(Recheck::Now) => state.unsettled.push_back(change),
                        Some(Recheck::Later) => kept.push_back(change),
                    }
                }
                Err(source) => {
                    failed = failed.or(Some(ApplyError::wrap_io(change.intent.subject())(source)));
                    kept.push_back(change);
                }
            }
        }
        state.unsettled = kept;
        failed.map_or(Ok(late), Err)
    }

    fn sync_chain_head(&self, state: &mut WriterState) -> io::Result<()> {
        if state.synced_seq != state.head.seq {
            chain::write_head(&self.root, &state.head)?;
            chain::sync_head(&self.root)?;
            state.synced_seq = state.head.seq;
        }
        Ok(())
    }

    /// Settles one change. Without a `patience` no displaced file is removed.
    fn settle_change(&self, change: &UnsettledChange, patience: Option<Duration>) -> io::Result<SwapSettlement> {
        let must_wait = patience.is_none_or(|patience| change.since.elapsed() < patience);
        let files = change.intent.exchanges();
        let (mut edited, mut was_given_back, mut is_waiting) = (Vec::new(), false, false);
        for file in &files {
            match file.check_late_edit(&self.root)? {
                LateEditCheck::GivenBack => {
                    edited.push(file.target().clone());
                    was_given_back = true;
                }
                LateEditCheck::Kept(_) => edited.push(file.target().clone()),
                LateEditCheck::Quiet | LateEditCheck::Gone => is_waiting |= must_wait,
            }
        }
        if was_given_back {
            return Ok(SwapSettlement::Edited { files: edited, again: Some(Recheck::Now) });
        }
        if is_waiting && !edited.is_empty() {
            return Ok(SwapSettlement::Edited { files: edited, again: Some(Recheck::Later) });
        }
        if is_waiting || patience.is_none() {
            return Ok(SwapSettlement::NotYet);
        }
        crash::die_if_armed("before-settling");
        for file in &files {
            if file.forget(&self.root)? && !edited.contains(file.target()) {
                edited.push(file.target().clone());
            }
        }
        crash::die_if_armed("after-discarding");
        journal::remove_intent(&self.root, &change.intent)?;
        crash::die_if_armed("after-settling");
        let is_edited = !edited.is_empty();
        Ok(if is_edited { SwapSettlement::Edited { files: edited, again: None } } else { SwapSettlement::Forgotten })
    }
}

/// The result of settling one change.
enum SwapSettlement {
    NotYet,
    Forgotten,
    /// People edited displaced files.
    Edited {
        files: Vec<WriteTarget>,
        again: Option<Recheck>,
    },
}

/// When a change is checked once more.
enum Recheck {
    /// A person's content went back, so our content is staged, and another editor may have it open.
    Now,
    /// Others of its files are still waited for.
    Later,
}
