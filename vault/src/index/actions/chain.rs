//! Verification of the audit chain from the index, in seconds where reading a million files takes minutes.
//!
//! Each row has the hash of the record before it, and the `files` table has the file's own hash. So the walk is the
//! same as in [`crate::action::chain::verify_chain`], over rows instead of files, and it keeps no rows in memory. It
//! does not see a change that no scan has read yet. [`crate::action::chain::verify_chain`] reads every file and is
//! decisive.

use crate::action::chain::{ChainEntry, ChainError, ChainVerification, ChainWalk, describe_misnamed_record};
use crate::files::root::VaultRoot;
use crate::index::ActionsView;
use crate::index::IndexError;
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::time::{Duration, Instant};

/// How long a worker may take to index a record that it has just filed: 2 s.
const INDEXING_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Why the chain cannot be verified from the index.
#[derive(Debug, thiserror::Error)]
pub enum IndexedChainError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

#[derive(FromRow)]
struct ChainColumns {
    path: String,
    seq: i64,
    prev: Option<String>,
    sha256: Option<String>,
    misnamed: bool,
}

const CHAIN_ROWS: &str = "SELECT a.path, a.seq, a.prev, a.misnamed, f.hash AS sha256 FROM actions a
    JOIN files f ON f.path = a.path ORDER BY a.seq, a.path";
const UNREADABLE: &str = "SELECT path, problem FROM files WHERE kind = 'event' AND problem IS NOT NULL ORDER BY path";

impl ActionsView<'_> {
    /// Verifies the chain of audit records, as far as the index has read the files.
    ///
    /// # Errors
    /// `IndexedChainError::Index`; `IndexedChainError::Chain` if the head of the chain cannot be read.
    pub async fn verify_indexed_chain(self, root: &VaultRoot) -> Result<ChainVerification, IndexedChainError> {
        let mut walk = ChainWalk::begin(root)?;
        self.wait_until_indexed(walk.expected_last_number()).await?;
        let unreadable: Vec<(String, String)> = sqlx::query_as(UNREADABLE)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        walk.found.records = unreadable.len() as u64;
        walk.found.faults.extend(unreadable.iter().map(|(path, problem)| format!("unreadable: {path}: {problem}")));
        let mut rows = sqlx::query_as::<_, ChainColumns>(CHAIN_ROWS).fetch(&self.index.store.reader);
        while let Some(row) = rows.try_next().await.map_err(|e| self.index.sql_error(e))? {
            walk.found.records += 1;
            let path = self.index.parse_path(&row.path)?;
            if row.misnamed {
                walk.found.faults.push(describe_misnamed_record(&path));
            }
            let prev = self.index.parse_enum(&row.prev.unwrap_or_default())?;
            let sha256 = self.index.parse_enum(&row.sha256.unwrap_or_default())?;
            walk.visit_entry(ChainEntry { seq: row.seq.cast_unsigned(), path, prev, sha256 });
        }
        Ok(walk.finish(root)?)
    }

    /// Waits until the index contains the record of this number, for at most `INDEXING_TIMEOUT`.
    async fn wait_until_indexed(self, seq: u64) -> Result<(), IndexError> {
        let started = Instant::now();
        loop {
            let newest: Option<i64> = sqlx::query_scalar("SELECT MAX(seq) FROM actions")
                .fetch_one(&self.index.store.reader)
                .await
                .map_err(|e| self.index.sql_error(e))?;
            if newest.unwrap_or(0).cast_unsigned() >= seq || started.elapsed() > INDEXING_TIMEOUT {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
