//! Work that a full or broken disk interrupts: it is done as far as it was, and the rest follows by itself.
//!
//! What was filed is reported as done even where the index cannot be told. What failed is due again as soon as the disk
//! can be written. Nothing here decides anything.

use super::VaultContext;
use super::run_blocking;
use crate::failure::retryable_failure;
use chrono::Utc;
use steward_domain::record::path::RecordPath;
use steward_vault::files::disk;
use temporalio_common::ActivityError;

impl VaultContext {
    /// [`VaultContext::note`] for what was done and filed: a disk that cannot be written makes the index late, not the work undone.
    pub(crate) async fn reindex_or_defer(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let noted = self.reindex_paths(paths).await;
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
    pub(super) async fn catch_up_index(&self) -> Result<(), ActivityError> {
        self.index.read_deferred_files(self.keeper.root()).await.map_err(retryable_failure)?;
        self.publish_filed_resolutions().await
    }

    /// Whether the vault and the state folder can be written.
    pub(crate) async fn can_write(&self) -> bool {
        let folders = [self.keeper.root().path().to_owned(), self.index.state_dir().to_owned()];
        let checked = run_blocking(move || folders.iter().all(|folder| disk::check_writable(folder).is_ok()));
        checked.await.unwrap_or(false)
    }

    /// Wakes a target's matter once the disk can be written, where it is the disk that failed its work.
    pub(crate) async fn try_again_later(&self, target: &RecordPath) {
        if !self.can_write().await {
            self.index.wake_later(target, Utc::now());
        }
    }

    pub(super) async fn retry_later_on_failure<T>(
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
