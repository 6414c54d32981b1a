//! How much the sources of a change have changed in the last day.
//!
//! Counted from the audit records and the signals that they cite; what a record cites without its speaking
//! for the change counts for nobody. Whoever lands a change asks while no other change can land.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::{encode_enum, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::AuditDraft;
use steward_domain::gates::source_budget::{BUDGET_WINDOW, SourceSpending};

/// The sources that speak for a change, and whether each was right before.
const SPEAKING: &str = "
    SELECT DISTINCT s.instinct,
        COALESCE((SELECT MIN(i.observations) FROM instincts i WHERE i.source = s.instinct), 0) > 0 AS known
    FROM json_each(?1) j JOIN signals s ON s.path = j.value WHERE s.effect = 'mutation' AND s.proposed_state IS ?2
    ORDER BY 1";

/// Live changes for which a signal of the account speaks; `?3` is null for all strangers together.
const SPENT: &str = "
    SELECT COUNT(*) FROM actions a WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.landing = 'live' AND a.id <> ?2
    AND EXISTS (SELECT 1 FROM action_evidence e JOIN signals s ON s.path = e.ref
        WHERE e.action = a.path AND s.effect = 'mutation' AND s.proposed_state IS a.proposed_state
        AND (s.instinct = ?3 OR (?3 IS NULL AND NOT EXISTS (
            SELECT 1 FROM instincts i WHERE i.source = s.instinct GROUP BY i.source HAVING MIN(i.observations) > 0))))";

impl Index {
    /// What each account has changed that speaks for this change, the change itself not counted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_changes_by_source(
        &self,
        draft: &AuditDraft,
        now: DateTime<Utc>,
    ) -> Result<Vec<SourceSpending>, IndexError> {
        let cited: Vec<&str> = draft.evidence.iter().map(|e| e.reference.as_str()).collect();
        let speaking: Vec<(String, bool)> = sqlx::query_as(SPEAKING)
            .bind(to_json(&cited))
            .bind(draft.proposed_state.map(encode_enum))
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let spent = async |of: Option<&str>| -> Result<u32, IndexError> {
            let query = sqlx::query_scalar(SPENT).bind(to_micros(now - BUDGET_WINDOW)).bind(draft.id.as_str()).bind(of);
            query.fetch_one(&self.store.writer).await.map_err(|e| self.sql_error(e))
        };
        let strangers = if speaking.iter().all(|(_, known)| *known) { 0 } else { spent(None).await? };
        let mut spendings = Vec::new();
        for (source, known) in speaking {
            let changes = spent(Some(&source)).await?;
            spendings.push(SourceSpending { source, changes, strangers: (!known).then_some(strangers) });
        }
        Ok(spendings)
    }
}
