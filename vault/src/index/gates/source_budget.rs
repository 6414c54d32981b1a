//! How many changes the sources of a change have made in the last day.
//!
//! They are counted from the audit records and the signals that these cite. A cited signal that does not support the
//! change counts for no source. Callers must ask under the lock for live changes, so that no other change is applied
//! in between.

use crate::index::GatesView;
use crate::index::IndexError;
use crate::index::store::codec::{encode_enum, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::AuditDraft;
use steward_domain::gates::source_budget::{BUDGET_WINDOW, SourceSpending};

/// The sources that support a change, and whether each was right before.
const SUPPORTING: &str = "
    SELECT DISTINCT s.instinct,
        COALESCE((SELECT MIN(i.observations) FROM instincts i WHERE i.source = s.instinct), 0) > 0 AS known
    FROM json_each(?1) j JOIN signals s ON s.path = j.value WHERE s.effect = 'mutation' AND s.proposed_state IS ?2
    ORDER BY 1";

/// Live changes that a signal of the source supports. `?3` is the source, or null for all unknown sources as one.
const CHANGES_OF_SOURCE: &str = "
    SELECT COUNT(*) FROM actions a WHERE a.at > ?1 AND a.kind = 'steward-action' AND a.disposition = 'live' AND a.id <> ?2
    AND EXISTS (SELECT 1 FROM action_evidence e JOIN signals s ON s.path = e.ref
        WHERE e.action = a.path AND s.effect = 'mutation' AND s.proposed_state IS a.proposed_state
        AND (s.instinct = ?3 OR (?3 IS NULL AND NOT EXISTS (
            SELECT 1 FROM instincts i WHERE i.source = s.instinct GROUP BY i.source HAVING MIN(i.observations) > 0))))";

impl GatesView<'_> {
    /// Counts the changes of each source that supports this change. The change itself does not count.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn count_changes_by_source(
        self,
        draft: &AuditDraft,
        now: DateTime<Utc>,
    ) -> Result<Vec<SourceSpending>, IndexError> {
        let cited: Vec<&str> = draft.evidence.iter().map(|e| e.reference.as_str()).collect();
        let supporting: Vec<(String, bool)> = sqlx::query_as(SUPPORTING)
            .bind(to_json(&cited))
            .bind(draft.proposed_state.map(encode_enum))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let count_changes = async |source: Option<&str>| -> Result<u32, IndexError> {
            let query = sqlx::query_scalar(CHANGES_OF_SOURCE)
                .bind(to_micros(now - BUDGET_WINDOW))
                .bind(draft.id.as_str())
                .bind(source);
            query.fetch_one(&self.index.store.writer).await.map_err(|e| self.index.sql_error(e))
        };
        let unknown_changes = if supporting.iter().all(|(_, known)| *known) { 0 } else { count_changes(None).await? };
        let mut spendings = Vec::new();
        for (source, known) in supporting {
            let changes = count_changes(Some(&source)).await?;
            spendings.push(SourceSpending { source, changes, unknown_changes: (!known).then_some(unknown_changes) });
        }
        Ok(spendings)
    }
}
