//! Records notes that people renamed or moved, so that everything follows them.
//!
//! The index finds the moves. This module files them in the audit chain and reads the record into the index, which then
//! moves what is kept under the old path. It changes no note.

use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::index::{FoundMoves, Index, IndexError};
use crate::steward::guard::{Ledger, LedgerError};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::action::moves::plan_moves;
use steward_domain::record::moves::NoteMove;
use steward_domain::record::path::RecordPath;

/// Who noticed moves that the files show.
const BY_FILES: &str = "the files themselves";

/// Why moves were not recorded. They are found again.
#[derive(Debug, thiserror::Error)]
pub enum RecordMovesError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the recording was interrupted: {0}")]
    CutShort(#[from] tokio::task::JoinError),
}

impl VaultWriter {
    /// Files the audit records of notes that moved. Nothing in the vault is changed by it, so a stop does not hold it
    /// back.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again files other records.
    pub fn record_moves(
        &self,
        moves: &[NoteMove],
        by: &str,
        now: DateTime<Utc>,
    ) -> Result<Vec<ActionReceipt>, ApplyError> {
        let plans = plan_moves(moves, by, now).map_err(|e| ApplyError::Form(e.to_string()))?;
        let mut state = self.lock_state()?;
        let schema = self.note_schema();
        plans.iter().map(|plan| self.write_plan_once(&mut state, plan, ChangeNeeds::Ownership, None, &schema)).collect()
    }
}

/// Lets the calls that the rate guard has counted follow the recorded moves, each record once.
///
/// # Errors
/// [`RecordMovesError`]; the next call goes on where this one failed.
pub async fn follow_moves_in_ledger(index: &Index, ledger: &Ledger) -> Result<(), RecordMovesError> {
    for record in index.list_moves_for_ledger().await? {
        ledger.follow_moves(&record.moves, record.at).await?;
        index.mark_followed_in_ledger(record.seq).await?;
    }
    Ok(())
}

/// Finds the notes that moved, records the moves, and lets everything follow. Returns the number of moves.
///
/// # Errors
/// [`RecordMovesError`]; what was not recorded is found again by the next call.
pub async fn settle_moves(
    writer: &Arc<VaultWriter>,
    index: &Index,
    now: DateTime<Utc>,
) -> Result<usize, RecordMovesError> {
    let _turn = writer.moves_lock.lock().await;
    let FoundMoves { shown, said } = index.find_moves(now).await?;
    let count = shown.len() + said.values().map(Vec::len).sum::<usize>();
    if count == 0 {
        return Ok(0);
    }
    let recorder = Arc::clone(writer);
    let record = move || -> Result<Vec<RecordPath>, ApplyError> {
        let mut records = Vec::new();
        for (by, moves) in said {
            records.extend(recorder.record_moves(&moves, &by, now)?);
        }
        records.extend(recorder.record_moves(&shown, BY_FILES, now)?);
        Ok(records.into_iter().map(|receipt| receipt.record).collect())
    };
    let records = tokio::task::spawn_blocking(record).await??;
    index.sync_paths(writer.root(), &records, now).await?;
    Ok(count)
}
