//! Handles a person's resolution (undo, confirm, dismiss, right, …) in the process that holds the vault.
//!
//! The vault writer decides whether the resolution is allowed, and files it. The index is updated at once. An undo that
//! exceeds the reversal budget demotes its source or class before another change is applied. A debt to the tracker is
//! returned to the workflow. A refusal is a value and not a failure.

use crate::failure::retryable_failure;
use crate::trust::{calibrate, set_ceiling};
use crate::vault::run_blocking;
use crate::vault::{VaultContext, read_workflow_ref};
use chrono::Utc;
use std::sync::Arc;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal, ResolutionRequest};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::moves::{NoteFinder, PathTime};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::time::format_millis;
use steward_domain::trust::mark::{TrustMark, TrustSubject};
use steward_vault::action::moves::settle_moves;
use steward_vault::action::resolve::{ResolutionError, ResolvedAction};
use steward_vault::files::crash;
use steward_vault::index::{ActionLookup, IndexError};
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;

/// A resolution that the vault writer has filed.
#[derive(Clone, Debug)]
pub struct FiledResolution {
    kind: ResolutionKind,
    resolved: ResolvedAction,
    workflow: WorkflowRef,
}

/// Resolves actions for people.
#[derive(Clone)]
pub struct ResolveActivities {
    pub vault: VaultContext,
}

#[activities]
impl ResolveActivities {
    #[activity(definition = steward_workflows::activities::Answer)]
    pub async fn answer(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: ResolveInput,
    ) -> Result<ResolveOutput, ActivityError> {
        self.vault.handle_resolution(input, read_workflow_ref(&ctx)).await
    }
}

impl VaultContext {
    pub(crate) async fn handle_resolution(
        &self,
        mut input: ResolveInput,
        workflow: WorkflowRef,
    ) -> Result<ResolveOutput, ActivityError> {
        let names = self.index.read_note_names().await.map_err(retryable_failure)?;
        let moves = self.index.note_moves();
        // A person names notes as they are called now.
        let notes = NoteFinder { names: &names, moves: &moves, time: PathTime::At(Utc::now()) };
        input.edited = input.edited.map(|edited| edited.resolve_links(notes));
        let record = match self.index.actions().find_action(&input.action).await {
            Ok(ActionLookup::One(record)) => record,
            Ok(ActionLookup::None) => {
                return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Unknown { id: input.action }));
            }
            Ok(ActionLookup::Many(some)) => {
                return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Ambiguous {
                    id: input.action,
                    count: some.len(),
                }));
            }
            Err(IndexError::Prefix(id)) => return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Malformed { id })),
            Err(e) => return Err(retryable_failure(e)),
        };
        self.notice_moves(&record).await?;
        let kind = input.kind;
        let ceiling = if kind == ResolutionKind::Confirm {
            self.find_confirmation_ceiling(&record, input.edited.as_ref()).await?
        } else {
            Ceiling::Act
        };
        // The batch was shown earlier. A newer signal may have arrived since.
        if kind == ResolutionKind::Confirm
            && input.batch_id.is_some()
            && self.index.actions().is_unclear(&record).await.map_err(retryable_failure)?
        {
            return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Unclear { id: input.action }));
        }
        if let Some(refusal) = self.refuse_answered_twin(kind, &record).await? {
            return Ok(ResolveOutput::from_refusal(refusal));
        }
        if kind == ResolutionKind::Undo
            && let Some(refusal) = self.refuse_unsupported_undo(&record, input.batch_id.is_some()).await?
        {
            return Ok(ResolveOutput::from_refusal(refusal));
        }
        let action = record.clone();
        let (writer, policy, workflow_ref) = (Arc::clone(&self.writer), self.settings.policy.clone(), workflow.clone());
        let resolved = run_blocking(move || {
            let request = ResolutionRequest {
                kind,
                by: &input.by,
                reason: input.reason.as_deref(),
                edited: input.edited.as_ref(),
                batch_id: input.batch_id.as_ref(),
                resolved_by: input.resolved_by,
                policy: &policy,
                ceiling,
                workflow: workflow_ref,
                now: Utc::now(),
            };
            writer.resolve_action(&record, &request)
        })
        .await?;
        match resolved {
            Ok(resolved) => self.finish_resolution(FiledResolution { kind, resolved, workflow }).await,
            Err(ResolutionError::Refused(refusal)) => {
                Ok(ResolveOutput::from_refusal(self.explain_lost_note(&action, refusal).await?))
            }
            Err(ResolutionError::Apply(e)) => Err(retryable_failure(e)),
        }
    }

    /// Refuses an answer to a proposal if an equal one was answered after it.
    async fn refuse_answered_twin(
        &self,
        kind: ResolutionKind,
        action: &RecordPath,
    ) -> Result<Option<ResolutionRefusal>, ActivityError> {
        let actions = self.index.actions();
        let answer = match kind {
            ResolutionKind::Confirm | ResolutionKind::Dismiss => actions.find_answer_to_equal(action).await,
            ResolutionKind::Right | ResolutionKind::RightDone | ResolutionKind::Wrong => {
                actions.find_outcome_of_equal(action).await
            }
            ResolutionKind::Undo | ResolutionKind::Raise | ResolutionKind::Reopen => Ok(None),
        };
        let Some(answer) = answer.map_err(retryable_failure)? else { return Ok(None) };
        let (Some(action), Some(answer)) = (self.read_record(action).await?, self.read_record(&answer).await?) else {
            return Ok(None);
        };
        let by = answer.draft.resolution.as_ref().map_or("Steward", |resolution| resolution.by.as_str());
        Ok(Some(ResolutionRefusal::AlreadyResolved {
            id: action.draft.id.to_string(),
            how: match answer.draft.kind {
                ActionKind::Action => "carried out".to_owned(),
                kind => kind.outcome_label().to_lowercase(),
            },
            by: format!("{by} at {}, with an equal proposal", format_millis(answer.draft.timestamp)),
            undo: None,
        }))
    }

    /// Refuses an undo that would let a sender act without the evidence for it. A ceiling is undone by itself, because
    /// that needs more than the scope of other undos.
    async fn refuse_unsupported_undo(
        &self,
        action: &RecordPath,
        in_batch: bool,
    ) -> Result<Option<ResolutionRefusal>, ActivityError> {
        let Some(record) = self.read_record(action).await? else { return Ok(None) };
        let id = record.draft.id.to_string();
        if in_batch && record.draft.kind == ActionKind::CeilingSet {
            return Ok(Some(ResolutionRefusal::CeilingStays { id, reason: "undo it alone".into() }));
        }
        if let Some(TrustMark::CeilingSet { subject, .. }) = &record.draft.trust
            && !self.is_instinct_of(&record.draft.target, subject).await?
        {
            let reason = format!("{} names another source by now", record.draft.target);
            return Ok(Some(ResolutionRefusal::CeilingStays { id, reason }));
        }
        let Some(source) = record.source_let_act_by_undo() else { return Ok(None) };
        let trust = set_ceiling::judge_sender(self, source).await?;
        let refusal = set_ceiling::refuse_sender(self, &trust).await?;
        Ok(refusal.map(|refusal| ResolutionRefusal::CeilingStays { id, reason: refusal.message }))
    }

    async fn is_instinct_of(&self, path: &RecordPath, subject: &TrustSubject) -> Result<bool, ActivityError> {
        let TrustSubject::Source(source) = subject.clone() else { return Ok(false) };
        let (writer, path) = (Arc::clone(&self.writer), path.clone());
        run_blocking(move || writer.is_instinct_of(&path, &source)).await
    }

    /// Looks for moved notes if the file of the action's target is not the one that the index knows: a person may have
    /// renamed it a moment ago, and another note may be at its path.
    async fn notice_moves(&self, action: &RecordPath) -> Result<(), ActivityError> {
        let Some(AuditRecord { draft, .. }) = self.read_record(action).await? else { return Ok(()) };
        let (root, now) = (self.writer.root(), Utc::now());
        let is_note = draft.target.own_kind().is_none();
        if !is_note || self.index.is_known_file(root, &draft.target).await.map_err(retryable_failure)? {
            return Ok(());
        }
        self.index.sync_all(root, now).await.map_err(retryable_failure)?;
        settle_moves(&self.writer, &self.index, now).await.map(drop).map_err(retryable_failure)
    }

    /// Names the notes that could be the target, if it is gone from its path.
    async fn explain_lost_note(
        &self,
        action: &RecordPath,
        refusal: ResolutionRefusal,
    ) -> Result<ResolutionRefusal, ActivityError> {
        let ResolutionRefusal::Record { reason } = &refusal else { return Ok(refusal) };
        let Some(AuditRecord { draft, .. }) = self.read_record(action).await? else { return Ok(refusal) };
        let lost = self.index.list_lost_notes().await.map_err(retryable_failure)?;
        let Some(note) = lost.iter().find(|note| note.path == draft.target.as_str()) else { return Ok(refusal) };
        let could = match note.candidates.as_slice() {
            [] => String::new(),
            some => format!(" (it could be {})", some.join(" or ")),
        };
        let reason = format!("{reason}{could}: if it was renamed, say where it is with `steward moved`");
        Ok(ResolutionRefusal::Record { reason })
    }

    /// Reads an audit record; `None` if it cannot be read. The vault writer reports the reason better.
    pub(crate) async fn read_record(&self, path: &RecordPath) -> Result<Option<AuditRecord>, ActivityError> {
        let (root, path) = (self.writer.root().clone(), path.clone());
        let moves = self.index.note_moves();
        let read = move || {
            let record = AuditRecord::parse(&root.read_file(&path).ok()?.bytes).ok()?;
            Some(record.follow_moves(&moves))
        };
        run_blocking(read).await
    }

    /// Finds the lowest ceiling that people have set by now; the ceiling at the time of the proposal does not count.
    ///
    /// A change that the person chose instead must also pass the current note policies. Its new matter may be one that
    /// nobody had proposed, so no note policy has been checked for it.
    async fn find_confirmation_ceiling(
        &self,
        record: &RecordPath,
        edited: Option<&Mutation>,
    ) -> Result<Ceiling, ActivityError> {
        let Some(AuditRecord { draft, .. }) = self.read_record(record).await? else { return Ok(Ceiling::Act) };
        let sources: Vec<&str> = draft.evidence.iter().map(|e| e.source.as_str()).collect();
        let mutation = edited.or(draft.proposal.as_ref().map(|p| &p.mutation));
        let new_parent = mutation.and_then(Mutation::new_parent);
        // The watcher may not have seen yet that a person lowered a ceiling.
        let (now, root) = (Utc::now(), self.writer.root());
        self.index.sync_paths(root, std::slice::from_ref(&draft.target), now).await.map_err(retryable_failure)?;
        self.refresh_stale_matters(&draft.target, new_parent, now).await?;
        self.index.sync_folder(root, RecordKind::Instinct, now).await.map_err(retryable_failure)?;
        if let Some(edited) = edited {
            let policies =
                self.index.gates().list_matter_policies(&draft.target, new_parent).await.map_err(retryable_failure)?;
            if policies.iter().any(|(_, policy)| policy.forbids_mutation(edited)) {
                return Ok(Ceiling::Ask);
            }
        }
        let default = self.settings.default_ceiling;
        self.index
            .signals()
            .lowest_configured_ceiling(&draft.target, new_parent, &sources, default)
            .await
            .map_err(retryable_failure)
    }

    /// Reports the filed resolution as done. If the disk cannot be written, the remaining steps follow once it can.
    async fn finish_resolution(&self, filed: FiledResolution) -> Result<ResolveOutput, ActivityError> {
        crash::die_if_armed("before-indexing");
        let demotions = match self.publish_resolution(&filed).await {
            Ok(demotions) => demotions,
            Err(e) if self.can_write().await => return Err(e),
            Err(e) => {
                tracing::warn!(
                    task = %filed.resolved.original.draft.target, error = ?e,
                    "resolution filed; it will be shown once the disk can be written"
                );
                self.unpublished_resolutions.lock().await.push(filed.clone());
                Vec::new()
            }
        };
        let ResolvedAction { receipt, original, owes_revert, .. } = filed.resolved;
        let target = original.draft.target;
        tracing::info!(task = %target, action_id = %receipt.id, record = %receipt.record, "resolution filed");
        let owes = owes_revert.then(|| receipt.id.clone());
        if owes.is_some() && self.writer.tracker_site().is_none() {
            let reason = "no tracker is configured any more; set STEWARD_TRACKER_KIND again".to_owned();
            return Ok(ResolveOutput::from_refusal(ResolutionRefusal::Tracker {
                record: receipt.record.to_string(),
                reason,
            }));
        }
        Ok(ResolveOutput::Done {
            action_id: receipt.id,
            record: receipt.record,
            target,
            owes,
            tracker: None,
            lowered: demotions,
        })
    }

    /// Shows a filed resolution in the index and on its signal; for an undo, applies the demotions that follow.
    ///
    /// Idempotent: a second call changes nothing.
    async fn publish_resolution(&self, filed: &FiledResolution) -> Result<Vec<String>, ActivityError> {
        let ResolvedAction { receipt, original, edited, .. } = &filed.resolved;
        self.mark_signal_resolution(original, filed.kind, *edited).await?;
        self.reindex_paths(&[&original.draft.target, &receipt.record]).await?;
        // Who agrees with an assistant's undo makes it count.
        if !matches!(filed.kind, ResolutionKind::Undo | ResolutionKind::Right) {
            return Ok(Vec::new());
        }
        // The demotion must come before the next change of the same source or class.
        calibrate::apply_demotions(self, &filed.workflow, Utc::now()).await
    }

    /// Shows the resolutions that were filed while the disk could not be written.
    pub(crate) async fn publish_filed_resolutions(&self) -> Result<(), ActivityError> {
        let mut unshown = self.unpublished_resolutions.lock().await;
        while let Some(filed) = unshown.first() {
            self.publish_resolution(filed).await?;
            unshown.remove(0);
        }
        Ok(())
    }
}
