//! Handles a full or broken disk: finished work counts as done, and the rest follows once the disk can be written.
//!
//! A filed record is reported as done even if the index cannot be updated. Failed work is due again as soon as the disk
//! can be written. Nothing here decides about a change.

use super::VaultContext;
use super::run_blocking;
use crate::failure::retryable_failure;
use chrono::Utc;
use steward_domain::record::path::RecordPath;
use steward_vault::files::disk;
use temporalio_common::ActivityError;

impl VaultContext {
    /// Like [`VaultContext::reindex_paths`], for records that are filed: a disk error only makes the index late.
    pub(crate) async fn reindex_or_defer(&self, paths: &[&RecordPath]) -> Result<(), ActivityError> {
        let indexed = self.reindex_paths(paths).await;
        if let Err(e) = &indexed
            && !self.can_write().await
        {
            tracing::warn!(error = ?e, "the index will be updated once the disk can be written");
            self.index.cursors().read_files_later(&paths.iter().map(|path| (*path).clone()).collect::<Vec<_>>());
            return Ok(());
        }
        indexed
    }

    /// Brings the index up to date before a live change, whose limits count what was filed meanwhile.
    pub(super) async fn catch_up_index(&self) -> Result<(), ActivityError> {
        self.index.cursors().read_deferred_files(self.writer.root()).await.map_err(retryable_failure)?;
        self.publish_filed_resolutions().await
    }

    /// Reports whether the vault and the state folder can be written.
    pub(crate) async fn can_write(&self) -> bool {
        let folders = [self.writer.root().path().to_owned(), self.index.state_dir().to_owned()];
        let checked = run_blocking(move || folders.iter().all(|folder| disk::check_writable(folder).is_ok()));
        checked.await.unwrap_or(false)
    }

    /// Wakes a target's matter once the disk can be written, if the disk made its work fail.
    pub(crate) async fn try_again_later(&self, target: &RecordPath) {
        if !self.can_write().await {
            self.index.cursors().wake_later(target, Utc::now());
        }
    }

    pub(crate) async fn retry_later_on_failure<T>(
        &self,
        target: &RecordPath,
        work: impl Future<Output = Result<T, ActivityError>>,
    ) -> Result<T, ActivityError> {
        let result = work.await;
        if result.is_err() {
            self.try_again_later(target).await;
        }
        result
    }
}
