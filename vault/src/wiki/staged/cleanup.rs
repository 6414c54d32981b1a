//! Removes runs that ended long ago, and uploads that nobody used.
//!
//! A run that waits or is being written is never removed here.

use super::files::read_json;
use super::{META, RUNS, RunMeta, RunState, RunStatus, STATUS, StagedRunError, StagedRuns};
use crate::files::root::open_real_folder;
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::wiki::run::RunId;

/// How long a run is kept after its end, in days.
const KEEP_DAYS: i64 = 30;

impl StagedRuns {
    /// Removes a run.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn remove(&self, run: &RunId) -> Result<(), StagedRunError> {
        let failed = |source| StagedRunError::Io { path: run.to_string(), source };
        match self.root.find_own_folder(Some(RUNS)).map_err(failed)? {
            Some(runs) if open_real_folder(&runs, run.as_str()).map_err(failed)?.is_some() => {
                runs.remove_dir_all(run.as_str()).map_err(failed)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Removes runs that ended more than 30 days ago, and uploads of that age. A run that committed nothing must be on record.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn remove_old(
        &self,
        now: DateTime<Utc>,
        is_on_record: impl Fn(&RunMeta) -> bool,
    ) -> Result<(), StagedRunError> {
        let failed = |source| StagedRunError::Io { path: String::new(), source };
        let Some(runs) = self.root.find_own_folder(Some(RUNS)).map_err(failed)? else { return Ok(()) };
        let is_old = |at: DateTime<Utc>| now - at > TimeDelta::days(KEEP_DAYS);
        for entry in runs.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(run) = name.to_str().and_then(|name| name.parse::<RunId>().ok()) else { continue };
            let Ok(Some(dir)) = open_real_folder(&runs, run.as_str()) else { continue };
            let is_done = match read_json::<RunStatus>(&dir, STATUS) {
                Ok(Some(status)) => match status.state {
                    RunState::Pending | RunState::Verifying => false,
                    RunState::Committed => is_old(status.at),
                    RunState::Rejected | RunState::Abandoned => {
                        let meta = || read_json::<RunMeta>(&dir, META).ok().flatten();
                        is_old(status.at) && meta().is_none_or(|meta| is_on_record(&meta))
                    }
                },
                Ok(None) => run.began().is_some_and(is_old),
                Err(_) => false,
            };
            if is_done {
                self.remove(&run)?;
            }
        }
        Ok(())
    }
}
