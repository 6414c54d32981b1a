//! Commits a run: its files and its audit record, or nothing at all.
//!
//! It takes the one write path ([`crate::action::apply`]). A run has at most one record, so it is never committed twice.

use crate::action::chain;
use crate::action::new_content::{NewContent, StagedRecord};
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::gates::stop;
use steward_domain::action::audit::AuditDraft;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::plan::{PlannedFile, WikiPlan, WikiRun, close};
use steward_domain::wiki::run::WikiRunType;

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
        if let Some(receipt) = find_receipt(self.root(), draft, &record)? {
            return Ok(receipt);
        }
        let is_rollback = draft.wiki.as_ref().is_some_and(|mark| mark.run_type == WikiRunType::Rollback);
        if !is_rollback && stop::is_stopped(self.root()) {
            return Err(ApplyError::Stopped);
        }
        let contents =
            plan.files().iter().map(|file| self.prepare_file(file, draft.wiki.as_ref().map(|m| m.run.as_str())));
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
        let plan = close(run.clone(), Vec::new()).map_err(|e| ApplyError::Form(e.to_string()))?;
        let record = plan.draft().record_path().map_err(|e| ApplyError::Form(e.to_string()))?;
        find_receipt(self.root(), plan.draft(), &record)
    }

    /// The new content of a file, if it still is as the run was planned on.
    fn prepare_file(&self, file: &PlannedFile, run: Option<&str>) -> Result<NewContent, ApplyError> {
        let path = &file.path;
        let current = match self.root().read_page(path) {
            Ok(current) => Some(current),
            Err(VaultRootError::Missing { .. }) => None,
            Err(e) => return Err(e.into()),
        };
        let changed = || ApplyError::ChangedMeanwhile { path: path.clone().into() };
        if current.as_ref().map(|current| &current.hash) != file.before.as_ref() {
            return Err(changed());
        }
        match (current, &file.after, run) {
            (Some(current), Some(bytes), _) => Ok(NewContent::new(path.clone(), &current, bytes.clone())),
            (None, Some(bytes), _) => Ok(NewContent::create(path.clone(), bytes.clone())),
            (Some(current), None, Some(run)) => Ok(NewContent::remove(path.clone(), current.hash, run)),
            (_, None, _) => Err(ApplyError::Form(format!("{path}: nothing would change"))),
        }
    }
}

/// The receipt of a record that is filed already.
fn find_receipt(
    root: &VaultRoot,
    draft: &AuditDraft,
    record: &RecordPath,
) -> Result<Option<ActionReceipt>, ApplyError> {
    let Some(found) = chain::read_record_if_present(root, record)? else { return Ok(None) };
    if found.draft.id != draft.id {
        return Err(ApplyError::Form(format!("{record}: another run has this name")));
    }
    let (id, disposition) = (draft.id.clone(), draft.disposition);
    Ok(Some(ActionReceipt { id, record: record.clone(), disposition, repeated: true }))
}
