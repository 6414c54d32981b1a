//! Writes the time of the last and of the next look into the files of tasks, where the operator asked for it.
//!
//! Beside the ticks and never in one: an idle tick stays what it costs and touches no file. The index
//! says whose file is behind, the keeper writes, and a file that cannot be stamped now is passed over
//! until later. Nothing waits for it and nothing is decided by it.

use chrono::Utc;
use std::sync::Arc;
use std::time::Duration;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::stop;
use steward_vault::index::{DueTimestampWrite, Index, IndexError};
use steward_vault::steward::timestamps::{TimestampWriteError, TimestampWriteOutcome};
use tokio::sync::{Mutex, watch as flag};

/// How often the index is asked: 3 s, so that a person who looks after a tick finds it written.
const EVERY: Duration = Duration::from_secs(3);
/// How long to wait after the disk or the database failed: 60 s, so that the log is not flooded.
const AFTER_A_FAILURE: Duration = Duration::from_secs(60);
/// Most files in one go: what a slow disk writes in well under a second.
const BATCH: u32 = 16;

/// What writes the stamps of one vault. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TimestampWriter {
    keeper: Arc<VaultWriter>,
    index: Arc<Index>,
    /// One round at a time, so that whoever has had a turn knows that nothing is half way.
    turn: Arc<Mutex<()>>,
}

/// How a round went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimestampBatchOutcome {
    /// Nothing more is due, or it may not be written now.
    Over,
    /// A whole batch was due, and there may be more.
    Full,
}

/// What stops a round: the vault or the database cannot be written.
#[derive(Debug, thiserror::Error)]
enum TimestampRoundError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Stamping(#[from] TimestampWriteError),
    #[error("the writing was cut short: {0}")]
    CutShort(#[from] tokio::task::JoinError),
}

impl TimestampWriter {
    pub(crate) fn new(keeper: Arc<VaultWriter>, index: Arc<Index>) -> Self {
        Self { keeper, index, turn: Arc::default() }
    }

    /// Stamps what is due every few seconds until told to stop.
    pub(crate) async fn run(self, mut stop: flag::Receiver<bool>) {
        let mut wait = EVERY;
        loop {
            tokio::select! {
                () = crate::runtime::engine::wait_for_stop(&mut stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
            wait = match self.write_batch().await {
                Ok(TimestampBatchOutcome::Over | TimestampBatchOutcome::Full) => EVERY,
                Err(e) => {
                    tracing::error!(error = %e, "failed to stamp a task's file; trying again in a minute");
                    AFTER_A_FAILURE
                }
            };
        }
    }

    /// Stamps everything that is due now.
    pub(crate) async fn write_all_due(&self) {
        loop {
            match self.write_batch().await {
                Ok(TimestampBatchOutcome::Full) => {}
                Ok(TimestampBatchOutcome::Over) => return,
                Err(e) => {
                    return tracing::error!(error = %e, "failed to stamp a task's file; the next start tries again");
                }
            }
        }
    }

    /// One batch. After a failure the rest of the batch is tried all the same: it may be one file's own.
    async fn write_batch(&self) -> Result<TimestampBatchOutcome, TimestampRoundError> {
        let _turn = self.turn.lock().await;
        if stop::is_stopped(self.keeper.root()) {
            return Ok(TimestampBatchOutcome::Over);
        }
        let due = self.index.list_due_timestamp_writes(Utc::now(), BATCH).await?;
        let round = if due.len() as u64 == u64::from(BATCH) {
            TimestampBatchOutcome::Full
        } else {
            TimestampBatchOutcome::Over
        };
        let mut failed = None;
        for one in due {
            if let Err(e) = self.write_timestamp(one).await {
                failed = failed.or(Some(e));
            }
        }
        failed.map_or(Ok(round), Err)
    }

    async fn write_timestamp(&self, due: DueTimestampWrite) -> Result<(), TimestampRoundError> {
        if !self.index.begin_timestamp_write(&due, Utc::now()).await? {
            return Ok(());
        }
        let (keeper, one) = (Arc::clone(&self.keeper), due.clone());
        let stamped = tokio::task::spawn_blocking(move || keeper.write_timestamps(&one.task, &one.stamp)).await?;
        match stamped {
            Ok(TimestampWriteOutcome::Written) => {
                // At once, so that the next look knows the content it will change.
                let written = std::slice::from_ref(&due.task);
                self.index.sync_paths(self.keeper.root(), written, Utc::now()).await?;
            }
            Ok(TimestampWriteOutcome::Unchanged) => {}
            Ok(TimestampWriteOutcome::Braked) => return Ok(()),
            Err(e @ TimestampWriteError::ChangedMeanwhile { .. }) => {
                tracing::debug!(error = %e, "not stamped yet");
                return Ok(());
            }
            Err(e @ TimestampWriteError::Unusable(_)) => {
                tracing::warn!(error = %e, "failed to stamp a task's file; trying again after its next look");
            }
            Err(e @ TimestampWriteError::Apply(_)) => return Err(e.into()),
        }
        Ok(self.index.finish_timestamp_write(&due).await?)
    }
}

/// Runs on a thread of its own: the scans' futures cannot move between threads.
pub(crate) fn spawn_timestamp_writer(
    stamper: TimestampWriter,
    stop: flag::Receiver<bool>,
) -> tokio::task::JoinHandle<()> {
    let handle = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || handle.block_on(stamper.run(stop)))
}
