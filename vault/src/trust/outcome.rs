//! Files what changes nothing: that a proposal was carried out or a change written back by hand, that a source is
//! trusted more or less.
//!
//! Such a record takes the one write path, its place in the chain, and its name from what it follows, so that it is
//! filed once however often it is asked.

use crate::action::chain;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::VaultRootError;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::{Disposition, Plan};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::by_hand;

/// What settles a proposal. Whoever decided otherwise, as by putting it off, may still carry it out.
const SETTLED: [ActionKind; 4] =
    [ActionKind::Reversed, ActionKind::Confirmed, ActionKind::Dismissed, ActionKind::DoneAnyway];

impl VaultWriter {
    /// Compares a proposal with what its target says by now, and files what was done by hand; `None` where
    /// nothing was, or where the proposal is settled.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn file_manual_outcome(
        &self,
        proposal: &RecordPath,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<Option<ActionReceipt>, ApplyError> {
        let mut turn = self.lock_state()?;
        let (record, _) = chain::read_audit_record(self.root(), proposal)?;
        for kind in SETTLED {
            let follower = record.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
            if self.root().exists(&follower) {
                return Ok(None);
            }
        }
        let Some(did) = self.detect_manual_outcome(&record, now)? else { return Ok(None) };
        let follower = record.draft.follow_up_path(did).map_err(|e| ApplyError::Form(e.to_string()))?;
        if self.root().exists(&follower) {
            return Ok(None);
        }
        self.write_plan_once(&mut turn, &by_hand::plan_manual_edit(&record, did, workflow, now), None).map(Some)
    }

    fn detect_manual_outcome(
        &self,
        record: &AuditRecord,
        now: DateTime<Utc>,
    ) -> Result<Option<ActionKind>, ApplyError> {
        let Some(proposal) = &record.draft.proposal else { return Ok(None) };
        let current = match self.root().read_file(&record.draft.target) {
            Ok(current) => current,
            Err(VaultRootError::Missing { .. }) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        // One that cannot be read just now is compared again.
        let Ok(document) = frontmatter::read_document(&current.bytes) else { return Ok(None) };
        let (mutation, replaces) = (&proposal.mutation, proposal.replaces.as_ref());
        // What a human confirmed was made as well, and can be written back.
        if record.draft.landing == Disposition::Live {
            let taken_back = by_hand::is_reverted(mutation, replaces, document.fields());
            return Ok(taken_back.then_some(ActionKind::Opposed));
        }
        Ok(by_hand::classify_manual_edit(mutation, replaces, document.fields(), now))
    }

    /// Files a record that changes nothing, once.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn file_plan(&self, plan: &Plan) -> Result<ActionReceipt, ApplyError> {
        if plan.has_record_change() {
            return Err(ApplyError::Form("a change is applied, not filed".into()));
        }
        let mut turn = self.lock_state()?;
        self.write_plan_once(&mut turn, plan, None)
    }
}
