//! The end of a whole scan. The very first one restores lost cursors from the audit records.
//!
//! After it the index counts as filled, so that ticks may rely on it. It reads no file.

use super::codec;
use super::moves::LEDGER_KEY;
use crate::index::cursors::wake;
use crate::index::{Index, IndexError};
use chrono::{DateTime, Utc};
use std::sync::atomic::Ordering;

/// Restores the cursors from the audit records. A record from a clock that ran ahead puts no cursor into the future, so
/// signals that arrive now are fresh.
const RESTORE_CURSORS: &str = "INSERT OR IGNORE INTO task_checks (task, last_check_at, outcome, streak, look_id)
    SELECT target, MIN(MAX(at), ?1 - 1), decision, 0, '' FROM actions
    WHERE kind = 'steward-action' AND judged = 1 GROUP BY target";
/// A signal that an action about its target cites was first seen no later than that action, so it is not judged again.
const DATE_CITED_SIGNALS: &str = "UPDATE first_seen SET at = MIN(first_seen.at, cited.at) FROM (
        SELECT e.ref AS signal, MAX(a.at) AS at FROM action_evidence e JOIN actions a ON a.path = e.action
        JOIN signals s ON s.path = e.ref AND s.target = a.target WHERE a.kind = 'steward-action' GROUP BY e.ref) AS cited
    WHERE first_seen.signal = cited.signal";
/// A signal that no action about its target cites may never have been judged, so it counts as first seen now.
const DATE_UNCITED_SIGNALS: &str = "UPDATE first_seen SET at = ?1 WHERE signal IN (
        SELECT s.path FROM signals s JOIN task_checks c ON c.task = s.target
        WHERE s.applied = 0 AND s.effect <> 'none' AND NOT EXISTS (
            SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
            WHERE e.ref = s.path AND a.target = s.target AND a.kind = 'steward-action'))";

const LEDGER_FOLLOWED: &str =
    "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, COALESCE(MAX(seq), 0) FROM note_moves";

impl Index {
    /// Ends a whole scan. The very first scan restores lost cursors from the audit records.
    pub(super) async fn mark_filled(&self, now: DateTime<Utc>, first: bool) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            if first {
                sqlx::query(RESTORE_CURSORS).bind(codec::to_micros(now)).execute(&mut *tx).await?;
                sqlx::query(DATE_CITED_SIGNALS).execute(&mut *tx).await?;
                sqlx::query(DATE_UNCITED_SIGNALS).bind(codec::to_micros(now)).execute(&mut *tx).await?;
                // The ledger is older than this index, so it has followed all moves so far.
                sqlx::query(LEDGER_FOLLOWED).bind(LEDGER_KEY).execute(&mut *tx).await?;
                wake::mark_unjudged(&mut tx, codec::to_micros(now)).await?;
            }
            for sql in [
                "INSERT OR IGNORE INTO meta (key, value) VALUES ('filled_at', ?1)",
                "INSERT OR REPLACE INTO meta (key, value) VALUES ('synced_at', ?1)",
            ] {
                sqlx::query(sql).bind(codec::to_micros(now)).execute(&mut *tx).await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))?;
        self.filled.store(true, Ordering::Release);
        Ok(())
    }
}
