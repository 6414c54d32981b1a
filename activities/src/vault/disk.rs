//! Work that a full or broken disk interrupts: it is done as far as it was, and the rest follows by itself.
//!
//! What was filed is reported as done even where the index cannot be told. What failed is due again as soon as the disk
//! can be written. Nothing here decides anything.

use super::{Host, on_a_blocking_thread};
use crate::failure::passing;
use chrono::Utc;
use steward_domain::path::RecordPath;
use steward_vault::disk;
use temporalio_common::ActivityError;

impl Host {
    /// [`Host::note`] for what was done and filed: a disk that cannot be written makes the index late, not the work undone.
    pub(crate) async fn note_done(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let noted = self.note(paths).await;
        if let Err(e) = &noted
            && !self.can_write().await
        {
            tracing::warn!(error = ?e, "the index is brought up to date when the disk can be written");
            self.index.read_files_later(&paths.iter().map(|path| (*path).clone()).collect::<Vec<_>>());
            return Ok(());
        }
        noted
    }

    /// Before a live change: what was filed while the disk could not be written counts for it.
    pub(super) async fn catch_up(&self) -> Result<(), ActivityError> {
        self.index.read_deferred_files(self.keeper.root()).await.map_err(passing)?;
        self.show_filed_answers().await
    }

    /// Whether the vault and the state folder can be written.
    pub(crate) async fn can_write(&self) -> bool {
        let folders = [self.keeper.root().path().to_owned(), self.index.state_dir().to_owned()];
        let checked = on_a_blocking_thread(move || folders.iter().all(|folder| disk::check_writable(folder).is_ok()));
        checked.await.unwrap_or(false)
    }

    /// Wakes a target's matter once the disk can be written, where it is the disk that failed its work.
    pub(crate) async fn try_again_later(&self, target: &RecordPath) {
        if !self.can_write().await {
            self.index.wake_later(target, Utc::now());
        }
    }

    pub(super) async fn or_try_again<T>(
        &self,
        target: &RecordPath,
        work: impl Future<Output = Result<T, ActivityError>>,
    ) -> Result<T, ActivityError> {
        let ended = work.await;
        if ended.is_err() {
            self.try_again_later(target).await;
        }
        ended
    }
}
