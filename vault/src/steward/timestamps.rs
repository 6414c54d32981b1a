//! The marks of a look in a task's file, by the one write path and without a record.
//!
//! Bookkeeping and no decision: nothing is filed, nothing can be undone, and the chain does not know of
//! it. Otherwise a stamp is a change like any other: staged, swapped in if the file still is what was
//! read, looked after until it has settled. When to stamp is the engine's business.

use crate::action::apply::NewContent;
use crate::action::writer::{ApplyError, VaultWriter};
use crate::files::root::VaultRootError;
use crate::gates::stop;
use std::io;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::timestamps::{CheckTimestamps, CheckTimestampsError};

/// What became of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampWriteOutcome {
    Written,
    /// The file said all that already, or holds dates of a human's.
    Unchanged,
    /// The brake is pulled: nothing was done.
    Braked,
}

/// Why a file was not stamped. It holds what a human wrote last; asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum TimestampWriteError {
    /// A human was faster, or the file is gone.
    #[error("{path}: changed meanwhile by a human")]
    ChangedMeanwhile { path: String },
    /// The file must be mended first; the message names it.
    #[error("{0}")]
    Unusable(String),
    #[error(transparent)]
    Apply(ApplyError),
}

impl From<ApplyError> for TimestampWriteError {
    fn from(e: ApplyError) -> Self {
        match e {
            ApplyError::ChangedMeanwhile { path } => Self::ChangedMeanwhile { path: path.to_string() },
            ApplyError::Root(VaultRootError::Missing { path }) => Self::ChangedMeanwhile { path },
            ApplyError::Root(
                e @ (VaultRootError::Link { .. } | VaultRootError::NotAFile { .. } | VaultRootError::TooLarge { .. }),
            ) => Self::Unusable(e.to_string()),
            // One file of another user says nothing about the next.
            ApplyError::Io { ref source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Self::Unusable(e.to_string())
            }
            e => Self::Apply(e),
        }
    }
}

impl VaultWriter {
    /// Writes into a task's file when it was last looked at and when it will be.
    ///
    /// # Errors
    /// [`TimestampWriteError`]; nothing of a human's is lost.
    pub fn write_timestamps(
        &self,
        target: &RecordPath,
        stamp: &CheckTimestamps,
    ) -> Result<TimestampWriteOutcome, TimestampWriteError> {
        let mut state = self.lock_state()?;
        if stop::is_stopped(self.root()) {
            return Ok(TimestampWriteOutcome::Braked);
        }
        let current = self.root().read_file(target).map_err(ApplyError::from)?;
        let unusable = |e: CheckTimestampsError| TimestampWriteError::Unusable(format!("{target}: {e}"));
        let bytes = stamp.prepare(&current.bytes).map_err(unusable)?;
        if bytes == current.bytes {
            return Ok(TimestampWriteOutcome::Unchanged);
        }
        let intent = self.stage_unrecorded_change(&mut state, NewContent::new(target.clone(), &current, bytes))?;
        self.commit_intent(&mut state, intent)?;
        Ok(TimestampWriteOutcome::Written)
    }
}
