//! Writes the times of the last and the next check into the files of tasks, if the operator asked for it.
//!
//! This runs beside the ticks and never inside one, so an idle tick touches no file. The index knows which files are
//! out of date, and the vault writer writes them. A file that cannot be written now is skipped until later. Nothing may
//! wait for these timestamps, and no decision may depend on them.

use chrono::Utc;
use std::sync::Arc;
use std::time::Duration;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::stop;
use steward_vault::index::{DueTimestampWrite, Index, IndexError};
use steward_vault::steward::timestamps::{TimestampWriteError, TimestampWriteOutcome};
use tokio::sync::{Mutex, watch as flag};

/// How often the index is queried: 3 s, so that a person finds the timestamps soon after a tick.
const ROUND_INTERVAL: Duration = Duration::from_secs(3);
/// The wait after a failure of the disk or the database: 60 s, so that the log is not flooded.
const FAILURE_WAIT: Duration = Duration::from_secs(60);
/// The most files of one batch: 16, which a slow disk writes in well under a second.
const BATCH: u32 = 16;

/// Writes the timestamps of one vault. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TimestampWriter {
    writer: Arc<VaultWriter>,
    index: Arc<Index>,
    /// One round at a time, so that after a round no other one is half done.
    round_lock: Arc<Mutex<()>>,
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimestampBatchOutcome {
    /// Nothing more is due, or a stop forbids writing.
    Over,
    /// A whole batch was due, and there may be more.
    Full,
}

/// Why a round failed: the vault or the database cannot be written.
#[derive(Debug, thiserror::Error)]
enum TimestampRoundError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Write(#[from] TimestampWriteError),
    #[error("the write was cancelled: {0}")]
    Cancelled(#[from] tokio::task::JoinError),
}

impl TimestampWriter {
    pub(crate) fn new(writer: Arc<VaultWriter>, index: Arc<Index>) -> Self {
        Self { writer, index, round_lock: Arc::default() }
    }

    /// Writes the due timestamps every few seconds until the process is asked to stop.
    pub(crate) async fn run(self, mut stop: flag::Receiver<bool>) {
        let mut wait = ROUND_INTERVAL;
        loop {
            tokio::select! {
                () = crate::runtime::engine::wait_for_stop(&mut stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
            wait = match self.write_batch().await {
                Ok(TimestampBatchOutcome::Over | TimestampBatchOutcome::Full) => ROUND_INTERVAL,
                Err(e) => {
                    tracing::error!(error = %e, "failed to write timestamps; trying again in a minute");
                    FAILURE_WAIT
                }
            };
        }
    }

    /// Writes all timestamps that are due now.
    pub(crate) async fn write_all_due(&self) {
        loop {
            match self.write_batch().await {
                Ok(TimestampBatchOutcome::Full) => {}
                Ok(TimestampBatchOutcome::Over) => return,
                Err(e) => {
                    tracing::error!(error = %e, "failed to write timestamps; the next start tries again");
                    return;
                }
            }
        }
    }

    /// Writes one batch. After a failure it tries the other files too: the failure may concern one file only.
    async fn write_batch(&self) -> Result<TimestampBatchOutcome, TimestampRoundError> {
        let _guard = self.round_lock.lock().await;
        if stop::is_stopped(self.writer.root()) {
            return Ok(TimestampBatchOutcome::Over);
        }
        let due = self.index.cursors().list_due_timestamp_writes(Utc::now(), BATCH).await?;
        let outcome = if due.len() as u64 == u64::from(BATCH) {
            TimestampBatchOutcome::Full
        } else {
            TimestampBatchOutcome::Over
        };
        let mut failed = None;
        for write in due {
            if let Err(e) = self.write_timestamp(write).await {
                failed = failed.or(Some(e));
            }
        }
        failed.map_or(Ok(outcome), Err)
    }

    async fn write_timestamp(&self, due: DueTimestampWrite) -> Result<(), TimestampRoundError> {
        if !self.index.cursors().begin_timestamp_write(&due, Utc::now()).await? {
            return Ok(());
        }
        let (writer, write) = (Arc::clone(&self.writer), due.clone());
        let result =
            tokio::task::spawn_blocking(move || writer.write_timestamps(&write.task, &write.timestamps)).await?;
        match result {
            Ok(TimestampWriteOutcome::Written) => {
                // Index it at once, so that the next check knows the new content.
                let written = std::slice::from_ref(&due.task);
                self.index.sync_paths(self.writer.root(), written, Utc::now()).await?;
            }
            Ok(TimestampWriteOutcome::Unchanged) => {}
            Ok(TimestampWriteOutcome::Stopped) => return Ok(()),
            Err(e @ TimestampWriteError::ChangedMeanwhile { .. }) => {
                tracing::debug!(error = %e, "timestamps not written yet");
                return Ok(());
            }
            Err(e @ TimestampWriteError::Unusable(_)) => {
                tracing::warn!(error = %e, "failed to write timestamps; trying again after the next check");
            }
            Err(e @ TimestampWriteError::Apply(_)) => return Err(e.into()),
        }
        Ok(self.index.cursors().finish_timestamp_write(&due).await?)
    }
}

/// Runs the writer on a thread of its own: the futures of the scans cannot move between threads.
pub(crate) fn spawn_timestamp_writer(
    timestamp_writer: TimestampWriter,
    stop: flag::Receiver<bool>,
) -> tokio::task::JoinHandle<()> {
    let handle = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || handle.block_on(timestamp_writer.run(stop)))
}
