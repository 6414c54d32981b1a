//! Writes the status of a signal to the signal's own file.
//!
//! Only files that Steward wrote itself are changed. For all others the index keeps the reason. The vault writer makes
//! the change, as for every record.

use super::run_blocking;
use crate::failure::retryable_failure;
use crate::vault::VaultContext;
use serde_json::json;
use std::sync::Arc;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::route::{self, RouteSkip, SignalClaim};
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_vault::action::writer::{ActionReceipt, ApplyError};
use temporalio_common::ActivityError;

impl VaultContext {
    /// Writes a signal's status, if its name shows that Steward wrote it, or if its event is in the vault.
    ///
    /// Files of people and other tools are not changed. A signal that a person has just changed or broken is left as
    /// it is. `state.db` and the audit records hold the result all the same.
    pub(super) async fn mark_signal_status(
        &self,
        reference: &RecordPath,
        status: Option<(SignalStatus, String)>,
    ) -> Result<(), ActivityError> {
        let Some((status, reason)) = status.filter(|_| self.is_ours(reference)) else { return Ok(()) };
        let edit = |field: &str, text: &str| FieldEdit { field: field.into(), value: Some(json!(text)) };
        let edits = [edit("status", status.as_str()), edit("reason", &reason)];
        let (writer, path) = (Arc::clone(&self.writer), reference.clone());
        match run_blocking(move || writer.update_status_fields(&path, &edits)).await? {
            Ok(_) => {}
            Err(e @ (ApplyError::Io { .. } | ApplyError::Chain(_) | ApplyError::Form(_))) => {
                return Err(retryable_failure(e));
            }
            Err(e) => tracing::warn!(signal = %reference, error = %e, "failed to write the status of a signal"),
        }
        self.reindex_paths(&[reference]).await
    }

    fn is_ours(&self, reference: &RecordPath) -> bool {
        let root = self.writer.root();
        let Ok(content) = root.read_file(reference) else { return false };
        let Ok(document) = frontmatter::read_document(&content.bytes) else { return false };
        Signal::read(document.fields()).is_ok_and(|signal| {
            let event = signal.source_event.filter(|event| event.own_kind() == Some(RecordKind::Stream));
            event.is_some_and(|event| {
                let own_path = Signal::record_path(&event, &signal.raw_quote, signal.created);
                own_path.is_ok_and(|own_path| own_path == *reference) || root.exists(&event)
            })
        })
    }

    /// Writes a person's resolution to the signal that caused the action, if exactly one signal did.
    pub(crate) async fn mark_signal_resolution(
        &self,
        record: &AuditRecord,
        kind: ResolutionKind,
        edited: bool,
    ) -> Result<(), ActivityError> {
        let draft = &record.draft;
        let first = draft.resolution.as_ref().map_or(&draft.id, |resolution| &resolution.action_id);
        let [cited] = draft.evidence.as_slice() else { return Ok(()) };
        // To reopen a dismissal makes the proposal wait again.
        let is_dismissal = draft.kind == ActionKind::Dismissed;
        if route::action_id(&cited.reference) != *first || is_dismissal != (kind == ResolutionKind::Reopen) {
            return Ok(());
        }
        let status = match kind {
            ResolutionKind::Confirm if edited => (SignalStatus::Skipped, format!("edited: {first}")),
            ResolutionKind::Confirm => (SignalStatus::Applied, first.to_string()),
            ResolutionKind::Dismiss => (SignalStatus::Skipped, format!("dismissed: {first}")),
            ResolutionKind::Undo => (SignalStatus::Skipped, format!("undone: {first}")),
            ResolutionKind::Reopen => (SignalStatus::Pending, first.to_string()),
            // What is said in Watch writes no signal.
            ResolutionKind::Raise | ResolutionKind::Right | ResolutionKind::RightDone | ResolutionKind::Wrong => {
                return Ok(());
            }
        };
        self.mark_signal_status(&cited.reference, Some(status)).await
    }
}

/// The status of a signal after its action; `None` if the action changed and proposed nothing.
pub(super) fn signal_status_for_receipt(
    disposition: Disposition,
    receipt: &ActionReceipt,
) -> Option<(SignalStatus, String)> {
    let id: &ActionId = &receipt.id;
    match disposition {
        Disposition::Live => Some((SignalStatus::Applied, id.to_string())),
        Disposition::Pending => Some((SignalStatus::Pending, id.to_string())),
        Disposition::Recorded | Disposition::Shadow => None,
    }
}

/// The final status of a signal that the router skipped.
pub(super) fn signal_status_for_skip(skip: &RouteSkip, claim: Option<&SignalClaim>) -> (SignalStatus, String) {
    if let RouteSkip::Claimed(id) = skip {
        let status = match claim.map(|c| c.disposition) {
            Some(Disposition::Live) => SignalStatus::Applied,
            Some(Disposition::Pending) => SignalStatus::Pending,
            Some(Disposition::Recorded | Disposition::Shadow) | None => SignalStatus::Skipped,
        };
        return (status, id.to_string());
    }
    if let RouteSkip::Withheld(question) = skip {
        return (SignalStatus::Skipped, format!("{}: {question}", skip.as_str()));
    }
    let asks_principal = *skip == RouteSkip::AsksThePrincipal;
    (if asks_principal { SignalStatus::ActionPending } else { SignalStatus::Skipped }, skip.as_str().to_owned())
}
