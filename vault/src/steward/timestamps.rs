//! The timestamp write-back: it writes the times of a task's checks into the task's file.
//!
//! A write-back is bookkeeping and not a decision: no audit record is filed, and it cannot be undone. Otherwise it is a
//! change like any other. It is staged, swapped in if the file still holds the content that was read, and kept until it
//! has settled. The engine decides when a file is written.

use crate::action::new_content::NewContent;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ApplyError, VaultWriter};
use crate::files::root::VaultRootError;
use crate::gates::stop;
use std::io;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::timestamps::{CheckTimestamps, CheckTimestampsError};

/// The outcome of a timestamp write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampWriteOutcome {
    Written,
    /// The file has these times already, or holds dates that a person wrote.
    Unchanged,
    /// The vault is stopped: nothing was done.
    Stopped,
}

/// Why the timestamps were not written. The file holds what a person wrote last. Calling again is safe.
#[derive(Debug, thiserror::Error)]
pub enum TimestampWriteError {
    /// A person was faster, or the file no longer exists.
    #[error("{path}: changed by a person in the meantime")]
    ChangedMeanwhile { path: String },
    /// A person must fix the file first; the message names it.
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
            // The file may belong to another user. Other files may still be written.
            ApplyError::Io { ref source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Self::Unusable(e.to_string())
            }
            e => Self::Apply(e),
        }
    }
}

impl VaultWriter {
    /// Writes the times of the last and of the next check into a task's file.
    ///
    /// # Errors
    /// [`TimestampWriteError`]; no person's edit is lost.
    pub fn write_timestamps(
        &self,
        target: &RecordPath,
        timestamps: &CheckTimestamps,
    ) -> Result<TimestampWriteOutcome, TimestampWriteError> {
        let mut state = self.lock_state()?;
        if stop::is_stopped(self.root()) {
            return Ok(TimestampWriteOutcome::Stopped);
        }
        let current = self.root().read_file(target).map_err(ApplyError::from)?;
        let unusable = |e: CheckTimestampsError| TimestampWriteError::Unusable(format!("{target}: {e}"));
        let bytes = timestamps.prepare(&current.bytes, target, &self.note_schema()).map_err(unusable)?;
        if bytes == current.bytes {
            return Ok(TimestampWriteOutcome::Unchanged);
        }
        let intent = self.stage_unrecorded_change(&mut state, NewContent::new(target.clone(), &current, bytes))?;
        self.commit_intent(&mut state, intent, ChangeNeeds::Ownership)?;
        Ok(TimestampWriteOutcome::Written)
    }
}
