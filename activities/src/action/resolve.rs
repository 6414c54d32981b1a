//! A human's answer, taken in the process that holds the vault.
//!
//! The keeper says whether it may be; the index is told at once, and an undo that was one too many takes its step
//! back before anything else lands. What is owed to the tracker goes back to the workflow. Refusals are answers.

use crate::failure::{non_retryable_failure, retryable_failure};
use crate::trust::calibrate;
use crate::vault::VaultContext;
use crate::vault::run_blocking;
use chrono::Utc;
use std::sync::Arc;
use steward_domain::action::audit::{AuditRecord, WorkflowRef};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::tracker::PlaneAction;
use steward_vault::action::resolve::{IncomingResolution, ResolutionError};
use steward_vault::action::writer::ActionReceipt;
use steward_vault::files::crash;
use steward_vault::index::{ActionLookup, IndexError};
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use temporalio_common::ActivityError;

/// An answer that the vault writer has filed.
#[derive(Clone, Debug)]
pub struct FiledResolution {
    kind: ResolutionKind,
    /// The record that was answered.
    to: RecordPath,
    target: RecordPath,
    receipt: ActionReceipt,
    workflow: WorkflowRef,
}

impl VaultContext {
    pub(crate) async fn handle_resolution(
        &self,
        ask: ResolveInput,
        workflow: WorkflowRef,
    ) -> Result<ResolveOutput, ActivityError> {
        let record = match self.index.find_action(&ask.action).await {
            Ok(ActionLookup::One(record)) => record,
            Ok(ActionLookup::None) => {
                return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Unknown { id: ask.action }));
            }
            Ok(ActionLookup::Many(some)) => {
                return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Ambiguous {
                    id: ask.action,
                    count: some.len(),
                }));
            }
            Err(IndexError::Prefix(id)) => return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Malformed { id })),
            Err(e) => return Err(retryable_failure(e)),
        };
        let policy = self.settings.policy.clone();
        let (kind, filed) = (ask.kind, record.clone());
        let answered_to = self.read_record(&record).await?;
        let ceiling = match (&answered_to, kind) {
            (Some(to), ResolutionKind::Confirm) => self.find_confirmation_ceiling(to, ask.edited.as_ref()).await?,
            (_, _) => Ceiling::Act,
        };
        // The batch was drawn before: what is newer may have come since.
        if kind == ResolutionKind::Confirm
            && ask.together.is_some()
            && self.index.is_unclear(&record).await.map_err(retryable_failure)?
        {
            return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Unclear { id: ask.action }));
        }
        let (keeper, of) = (Arc::clone(&self.keeper), workflow.clone());
        let answered = run_blocking(move || {
            keeper.resolve_action(&IncomingResolution {
                kind,
                record: &filed,
                by: &ask.by,
                reason: ask.reason.as_deref(),
                edited: ask.edited.as_ref(),
                together: ask.together.as_ref(),
                policy: &policy,
                ceiling,
                workflow: of,
                now: Utc::now(),
            })
        })
        .await?;
        match answered {
            Ok(receipt) => {
                let target = self.index.find_action_target(&record).await.map_err(retryable_failure)?;
                let target = target.ok_or_else(|| non_retryable_failure(format!("{record}: not in the index")))?;
                self.finish_resolution(FiledResolution { kind, to: record, target, receipt, workflow }).await
            }
            Err(ResolutionError::Refused(refusal)) => Ok(ResolveOutput::from_refusal(refusal)),
            Err(ResolutionError::Apply(e)) => Err(retryable_failure(e)),
        }
    }

    /// The record that is answered; `None` where it cannot be read, which the keeper says better.
    pub(crate) async fn read_record(&self, path: &RecordPath) -> Result<Option<AuditRecord>, ActivityError> {
        let (root, path) = (self.keeper.root().clone(), path.clone());
        run_blocking(move || root.read_file(&path).ok().and_then(|c| AuditRecord::parse(&c.bytes).ok())).await
    }

    /// The lowest ceiling that humans have set by now, whatever held when the change was proposed.
    ///
    /// What is chosen instead is held by the notes of now as well: where a task is to go that nobody had proposed, no
    /// note was asked before.
    async fn find_confirmation_ceiling(
        &self,
        record: &AuditRecord,
        edited: Option<&Mutation>,
    ) -> Result<Ceiling, ActivityError> {
        let draft = &record.draft;
        let sources: Vec<&str> = draft.evidence.iter().map(|e| e.source.as_str()).collect();
        let mutation = edited.or(draft.proposal.as_ref().map(|p| &p.mutation));
        let new_parent = mutation.and_then(Mutation::new_parent);
        // The watcher may not have seen yet that a person lowered a ceiling.
        let (now, root) = (Utc::now(), self.keeper.root());
        self.index.sync_paths(root, std::slice::from_ref(&draft.target), now).await.map_err(retryable_failure)?;
        self.refresh_stale_matters(&draft.target, new_parent, now).await?;
        self.index.sync_folder(root, RecordKind::Instinct, now).await.map_err(retryable_failure)?;
        if let Some(edited) = edited {
            let notes = self.index.list_matter_policies(&draft.target, new_parent).await.map_err(retryable_failure)?;
            if notes.iter().any(|(_, note)| note.forbids_mutation(edited)) {
                return Ok(Ceiling::Ask);
            }
        }
        let default = self.settings.default_ceiling;
        self.index
            .lowest_configured_ceiling(&draft.target, new_parent, &sources, default)
            .await
            .map_err(retryable_failure)
    }

    /// What is done by now is reported as done: where the disk cannot be written, the rest follows when it can.
    async fn finish_resolution(&self, filed: FiledResolution) -> Result<ResolveOutput, ActivityError> {
        crash::die_if_armed("before-indexing");
        let lowered = match self.publish_resolution(&filed).await {
            Ok(lowered) => lowered,
            Err(e) if self.can_write().await => return Err(e),
            Err(e) => {
                tracing::warn!(task = %filed.target, error = ?e, "answer filed; it is shown when the disk can be written");
                self.unshown.lock().await.push(filed.clone());
                Vec::new()
            }
        };
        let FiledResolution { target, receipt, .. } = filed;
        tracing::info!(task = %target, action_id = %receipt.id, record = %receipt.record, "answer filed");
        let says = self.read_record(&receipt.record).await?.and_then(|record| record.plane_action);
        let owes = matches!(says, Some(PlaneAction::RevertOwed { .. })).then(|| receipt.id.clone());
        if owes.is_some() && self.keeper.tracker_site().is_none() {
            let reason = "no tracker is set any more: set it again (STEWARD_TRACKER_KIND)".to_owned();
            return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Tracker {
                record: receipt.record.to_string(),
                reason,
            }));
        }
        Ok(ResolveOutput::Done { action_id: receipt.id, record: receipt.record, target, owes, tracker: None, lowered })
    }

    /// Shows a filed answer in the index and on its signal; for an undo, takes the step back that follows from it.
    /// Doing it twice is doing it once.
    async fn publish_resolution(&self, filed: &FiledResolution) -> Result<Vec<String>, ActivityError> {
        if let Some(to) = self.read_record(&filed.to).await? {
            let record = self.read_record(&filed.receipt.record).await?;
            let edited = record.and_then(|record| record.draft.answers).is_some_and(|answer| answer.edited);
            self.mark_signal_resolution(&to, (filed.kind, edited)).await?;
        }
        self.reindex_paths(&[&filed.target, &filed.receipt.record]).await?;
        match filed.kind {
            // Before the next change of what was just undone once too often.
            ResolutionKind::Undo => calibrate::apply_demotions(self, (&filed.workflow, Utc::now())).await,
            ResolutionKind::Confirm | ResolutionKind::Dismiss | ResolutionKind::Raise => Ok(Vec::new()),
        }
    }

    /// Shows what was filed while the disk could not be written.
    pub(crate) async fn publish_filed_resolutions(&self) -> Result<(), ActivityError> {
        let mut unshown = self.unshown.lock().await;
        while let Some(filed) = unshown.first() {
            self.publish_resolution(filed).await?;
            unshown.remove(0);
        }
        Ok(())
    }
}
