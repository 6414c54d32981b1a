//! The bytes of a source that a command hands over to the process that adds it.
//!
//! They lie in the folder of a run of their own, which goes when the source was added. Only their owner can read them.

use super::files::read_bytes;
use super::{RUNS, StagedRunError, StagedRuns, UPLOAD};
use crate::files::durable;
use crate::files::root::make_real_folder;
use steward_domain::wiki::MAX_SOURCE_BYTES;
use steward_domain::wiki::run::RunId;

impl StagedRuns {
    /// Keeps the bytes of a source that is to be added, under the name of a run. Returns after they are durable.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn upload_source(&self, run: &RunId, bytes: &[u8]) -> Result<(), StagedRunError> {
        let failed = |source| StagedRunError::Io { path: run.to_string(), source };
        let runs = self.root.make_own_folder(Some(RUNS)).map_err(failed)?;
        let dir = make_real_folder(&runs, run.as_str()).map_err(failed)?;
        durable::replace_private_file(&dir, UPLOAD, bytes).map_err(failed)?;
        durable::sync_folder(&dir).and_then(|()| durable::sync_folder(&runs)).map_err(failed)
    }

    /// The bytes of a source that was uploaded; `None` if there are none.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn read_upload(&self, run: &RunId) -> Result<Option<Vec<u8>>, StagedRunError> {
        let Some(dir) = self.find_folder(run)? else { return Ok(None) };
        let failed = |source| StagedRunError::Io { path: run.to_string(), source };
        read_bytes(&dir, UPLOAD, MAX_SOURCE_BYTES).map_err(failed)
    }
}
