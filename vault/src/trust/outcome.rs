//! Files audit records that change nothing: manual outcomes and changes of trust.
//!
//! A manual outcome says that a person carried out a proposal by hand, or reverted a change by hand. Such a record
//! takes the one write path and gets a number in the chain. It is named after the record that it follows, so repeated
//! calls file it once.

use crate::action::answers;
use crate::action::chain;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::VaultRootError;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::{Disposition, Plan};
use steward_domain::record::frontmatter;
use steward_domain::record::moves::{LinkReader, PathTime};
use steward_domain::record::path::RecordPath;
use steward_domain::trust::by_hand;

impl VaultWriter {
    /// Compares a proposal with the content of its target now, and files what was done by hand.
    ///
    /// `None` if nothing was done by hand, or if the proposal is settled.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again is safe.
    pub fn file_manual_outcome(
        &self,
        proposal: &RecordPath,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<Option<ActionReceipt>, ApplyError> {
        let mut state = self.lock_state()?;
        let (record, _) = chain::read_audit_record(self.root(), proposal)?;
        let moves = self.note_moves();
        if record.has_ended(&moves) {
            return Ok(None);
        }
        let record = record.follow_moves(&moves);
        // A proposal that a person opposed by hand, as by putting the task off, may still be carried out.
        let done = record.draft.follow_up_path(ActionKind::DoneAnyway).map_err(|e| ApplyError::Form(e.to_string()))?;
        if self.root().exists(&done) || answers::read_standing(self.root(), &record.draft)?.answer.is_some() {
            return Ok(None);
        }
        let Some(outcome) = self.detect_manual_outcome(&record, now)? else { return Ok(None) };
        let follower = record.draft.follow_up_path(outcome).map_err(|e| ApplyError::Form(e.to_string()))?;
        if self.root().exists(&follower) {
            return Ok(None);
        }
        let plan = by_hand::plan_manual_edit(&record, outcome, workflow, now);
        self.write_plan_once(&mut state, &plan, ChangeNeeds::Ownership, None, &self.note_schema()).map(Some)
    }

    fn detect_manual_outcome(
        &self,
        record: &AuditRecord,
        now: DateTime<Utc>,
    ) -> Result<Option<ActionKind>, ApplyError> {
        let Some(proposal) = &record.draft.proposal else { return Ok(None) };
        let schema = self.note_schema();
        // Under another mapping the same words may mean something else.
        if record.mapping_sha256.as_ref() != schema.hash() {
            return Ok(None);
        }
        let current = match self.root().read_file(&record.draft.target) {
            Ok(current) => current,
            Err(VaultRootError::Missing { .. }) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        // A target that cannot be parsed now is compared again later.
        let Ok(document) = frontmatter::read_document(&current.bytes) else { return Ok(None) };
        // Without the names of the notes, a link could seem to name another matter. It is compared again later.
        let Some(names) = self.note_names() else { return Ok(None) };
        let moves = self.note_moves();
        let time = PathTime::Seq(record.seq);
        let links = LinkReader { names: &names, moves: &moves, note: &record.draft.target, time };
        // A note that is mapped no more, or whose state has no mapped word, says nothing about the proposal.
        let kind = record.draft.target_kind;
        if schema.is_mapped() && schema.classify(&record.draft.target, document.fields()).kind() != Some(kind) {
            return Ok(None);
        }
        let fields = schema.read_note(record.draft.target_kind, &record.draft.target, document.fields()).fields;
        let (mutation, replaces) = (&proposal.mutation, proposal.replaces.as_ref());
        // A live action, also a confirmation, has changed its target, and a person may revert that by hand.
        if record.draft.disposition == Disposition::Live {
            let is_reverted = by_hand::is_reverted(mutation, replaces, &fields, links);
            return Ok(is_reverted.then_some(ActionKind::Opposed));
        }
        Ok(by_hand::classify_manual_edit(mutation, replaces, &fields, links, now))
    }

    /// Files a record that changes nothing. Repeated calls file it once.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again is safe.
    pub fn file_plan(&self, plan: &Plan) -> Result<ActionReceipt, ApplyError> {
        if plan.has_record_change() {
            return Err(ApplyError::Form("a plan that changes a record must be applied and not only filed".into()));
        }
        let mut state = self.lock_state()?;
        self.write_plan_once(&mut state, plan, ChangeNeeds::Ownership, None, &self.note_schema())
    }
}
