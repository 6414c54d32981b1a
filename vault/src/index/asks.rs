//! What the stewards ask of a human: decisions that nothing can be known without one.
//!
//! Each asks about its task or matter as it was then. A newer decision about the same record, an answer, or a record that
//! is open no more: any of them ends it. What is only noted about the record, as a due date that somebody named, does not. Derived from the audit records, which stay the truth.

use super::action::ActionRow;
use super::codec::micros;
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use steward_domain::path::RecordPath;

/// Most that are looked at, also of those that ask no more: the newest.
const LOOKED_AT: u32 = 500;

pub(super) const ASKING: &str = "SELECT p.path FROM (
        SELECT path, id, target, at FROM actions INDEXED BY actions_that_ask
        WHERE decision = 'needs_input' AND kind = 'steward-action' AND landing = 'recorded' AND at >= ?1
        ORDER BY at DESC LIMIT ?2) p
    WHERE NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = p.id)
        AND NOT EXISTS (SELECT 1 FROM actions b INDEXED BY actions_by_target
            WHERE b.target = p.target AND b.at > p.at AND b.kind = 'steward-action'
                AND (b.class IS NULL OR b.class = 'state_change'))
        AND (EXISTS (SELECT 1 FROM tasks t WHERE t.path = p.target AND t.state = 'open')
            OR EXISTS (SELECT 1 FROM matters m WHERE m.path = p.target AND m.state = 'open'))
    ORDER BY p.at DESC, p.path DESC LIMIT ?3";

impl Index {
    /// Decisions since a moment that still ask something of a human, newest first; at most so many, 1 to 100.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn asking(&self, since: DateTime<Utc>, limit: u32) -> Result<Vec<ActionRow>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(ASKING)
            .bind(micros(since))
            .bind(LOOKED_AT)
            .bind(limit.clamp(1, 100))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        let mut rows = Vec::with_capacity(paths.len());
        for path in paths {
            let path: RecordPath = self.path(&path)?;
            rows.extend(self.action_at(&path).await?);
        }
        Ok(rows)
    }
}
