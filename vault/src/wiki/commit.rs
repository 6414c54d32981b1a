//! Commits a run: its files and its audit record, or nothing at all.
//!
//! It takes the one write path ([`crate::action::apply`]). A run has at most one record, so it is never committed twice.

use crate::action::apply::NameHolder;
use crate::action::new_content::{NewContent, StagedRecord};
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::VaultRootError;
use crate::gates::stop;
use steward_domain::action::audit::AuditDraft;
use steward_domain::record::path::{PathError, RecordPath};
use steward_domain::wiki::plan::{PlannedFile, WikiPlan, WikiRun};
use steward_domain::wiki::run::{RunId, WikiRunType};

impl VaultWriter {
    /// Commits a run. Repeated calls commit it once.
    ///
    /// Under a stop only a rollback is committed. A run that was committed before the stop is still found.
    ///
    /// # Errors
    /// [`ApplyError::ChangedMeanwhile`] if a file is not as the run was planned on; the caller plans it again.
    /// [`ApplyError`] otherwise; calling again is safe.
    pub fn commit_run(&self, plan: &WikiPlan) -> Result<ActionReceipt, ApplyError> {
        let mut state = self.lock_state()?;
        let draft = plan.draft();
        let record = draft.record_path().map_err(|e| ApplyError::Form(e.to_string()))?;
        if let Some(receipt) = self.find_receipt(draft, &record)? {
            return Ok(receipt);
        }
        let is_rollback = plan.mark().run_type == WikiRunType::Rollback;
        if !is_rollback && stop::is_stopped(self.root()) {
            return Err(ApplyError::Stopped);
        }
        let contents = plan.files().iter().map(|file| self.prepare_file(file, &plan.mark().run));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let (audit_record, text) = plan
            .render_record(state.head.next_link())
            .map_err(|reason| ApplyError::Form(format!("{record}: {reason}")))?;
        let staged = StagedRecord { path: record.clone(), text, id: &draft.id, seq: audit_record.seq };
        let intent = self.stage_change(&mut state, staged, contents)?;
        // Staging may have taken a while.
        if !is_rollback && stop::is_stopped(self.root()) {
            self.discard_staged(&intent);
            return Err(ApplyError::Stopped);
        }
        let needs = if is_rollback { ChangeNeeds::Ownership } else { ChangeNeeds::NoStop };
        self.commit_intent(&mut state, intent, needs)?;
        Ok(ActionReceipt { id: draft.id.clone(), record, disposition: draft.disposition, repeated: false })
    }

    /// The receipt of a run that was committed before.
    pub(crate) fn find_run(&self, run: &WikiRun) -> Result<Option<ActionReceipt>, ApplyError> {
        let form = |e: PathError| ApplyError::Form(e.to_string());
        let draft = run.draft_record().map_err(form)?;
        self.find_receipt(&draft, &draft.record_path().map_err(form)?)
    }

    /// The receipt of a run whose record is filed already.
    fn find_receipt(&self, draft: &AuditDraft, record: &RecordPath) -> Result<Option<ActionReceipt>, ApplyError> {
        match self.find_name_holder(&draft.id, record)? {
            NameHolder::Nobody => Ok(None),
            NameHolder::Ours(receipt) => Ok(Some(receipt)),
            NameHolder::Another => Err(ApplyError::Form(format!("{record}: another run has this name"))),
        }
    }

    /// The new content of a file, if it still is as the run was planned on.
    fn prepare_file(&self, file: &PlannedFile, run: &RunId) -> Result<NewContent, ApplyError> {
        let path = &file.path;
        let current = match self.root().read_page(path) {
            Ok(current) => Some(current),
            Err(VaultRootError::Missing { .. }) => None,
            Err(e) => return Err(e.into()),
        };
        if current.as_ref().map(|current| &current.hash) != file.before.as_ref() {
            return Err(ApplyError::ChangedMeanwhile { path: path.clone().into() });
        }
        match (current, &file.after) {
            (Some(current), Some(bytes)) => Ok(NewContent::new(path.clone(), &current, bytes.clone())),
            (None, Some(bytes)) => Ok(NewContent::create(path.clone(), bytes.clone())),
            (Some(current), None) => Ok(NewContent::remove(path.clone(), current.hash, run.as_str())),
            (None, None) => Err(ApplyError::Form(format!("{path}: nothing would change"))),
        }
    }
}
