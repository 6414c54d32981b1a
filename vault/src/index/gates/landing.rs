//! Everything that the gates need from the index when a plan lands, gathered at once.
//!
//! The caller lands one live plan at a time, so that the counts of one plan hold the next one.

use crate::index::{GatesView, IndexError};
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{AuditDraft, MutationProposal};
use steward_domain::action::plan::Disposition;
use steward_domain::gates::landing::LandingFacts;
use steward_domain::gates::mode::Ceiling;

impl GatesView<'_> {
    /// What is known about a change at the moment when its plan lands. `default_ceiling` is the ceiling of sources on
    /// which nobody has set one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_landing_facts(
        self,
        draft: &AuditDraft,
        default_ceiling: Ceiling,
        now: DateTime<Utc>,
    ) -> Result<LandingFacts, IndexError> {
        let may_be_confirmed = draft.disposition >= Disposition::Pending;
        let schema = self.index.note_schema();
        let is_off = |proposal: &MutationProposal| !schema.can_write(draft.target_kind, &proposal.mutation);
        Ok(LandingFacts {
            // No property or word of the note stands for the change, so only its person can make it.
            ceiling: if draft.proposal.as_ref().is_some_and(is_off) {
                Ceiling::Ask
            } else if may_be_confirmed {
                self.read_plan_ceiling(draft, default_ceiling).await?
            } else {
                Ceiling::Act
            },
            supporters: self.index.trust().list_supporting_sources(draft).await?,
            mode_caps: self.index.trust().read_mode_caps().await?,
            spendings: self.count_changes_by_source(draft, now).await?,
            matter_policies: self.list_policies_with_spending(draft, now).await?,
        })
    }

    async fn read_plan_ceiling(self, draft: &AuditDraft, default_ceiling: Ceiling) -> Result<Ceiling, IndexError> {
        let new_parent = draft.proposal.as_ref().and_then(|proposal| proposal.mutation.new_parent());
        let sources: Vec<&str> = draft.evidence.iter().map(|cited| cited.source.as_str()).collect();
        self.index.signals().lowest_configured_ceiling(&draft.target, new_parent, &sources, default_ceiling).await
    }
}
