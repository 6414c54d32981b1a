//! Where a signal stands, noted in its own file.
//!
//! Only files that we wrote ourselves are touched; of all others the index keeps the reason. The keeper writes, as for
//! every record.

use super::VaultContext;
use super::run_blocking;
use crate::failure::retryable_failure;
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
    /// Notes where a signal stands, if its name says that we wrote it, or its event lies in the vault. In what
    /// people and other tools wrote nothing is noted, and one that a human has just changed or broken is
    /// left as it is; `state.db` and the audit records know all the same.
    pub(super) async fn mark_signal_status(
        &self,
        reference: &RecordPath,
        standing: Option<(SignalStatus, String)>,
    ) -> Result<(), ActivityError> {
        let Some((status, reason)) = standing.filter(|_| self.is_ours(reference)) else { return Ok(()) };
        let edit = |field: &str, text: &str| FieldEdit { field: field.into(), value: Some(json!(text)) };
        let edits = [edit("status", status.as_str()), edit("reason", &reason)];
        let (keeper, path) = (Arc::clone(&self.keeper), reference.clone());
        match run_blocking(move || keeper.update_status_fields(&path, &edits)).await? {
            Ok(_) => {}
            Err(e @ (ApplyError::Io { .. } | ApplyError::Chain(_) | ApplyError::Form(_))) => {
                return Err(retryable_failure(e));
            }
            Err(e) => tracing::warn!(signal = %reference, error = %e, "failed to note where a signal stands"),
        }
        self.reindex_paths(&[reference]).await
    }

    fn is_ours(&self, reference: &RecordPath) -> bool {
        let root = self.keeper.root();
        let Ok(content) = root.read_file(reference) else { return false };
        let Ok(document) = frontmatter::read_document(&content.bytes) else { return false };
        Signal::read(document.fields()).is_ok_and(|signal| {
            let event = signal.source_event.filter(|event| event.kind() == RecordKind::Stream);
            event.is_some_and(|event| {
                let named = Signal::record_path(&event, &signal.raw_quote, signal.created);
                named.is_ok_and(|named| named == *reference) || root.exists(&event)
            })
        })
    }

    /// Notes a human's answer on the signal that the answered action came from, if it came from one alone.
    pub(crate) async fn mark_signal_resolution(
        &self,
        record: &AuditRecord,
        (kind, edited): (ResolutionKind, bool),
    ) -> Result<(), ActivityError> {
        let draft = &record.draft;
        let first = draft.answers.as_ref().map_or(&draft.id, |answer| &answer.of);
        let [cited] = draft.evidence.as_slice() else { return Ok(()) };
        if route::action_id(&cited.reference) != *first || draft.kind == ActionKind::Dismissed {
            return Ok(());
        }
        let standing = match kind {
            ResolutionKind::Confirm if edited => (SignalStatus::Skipped, format!("edited: {first}")),
            ResolutionKind::Confirm => (SignalStatus::Applied, first.to_string()),
            ResolutionKind::Dismiss => (SignalStatus::Skipped, format!("dismissed: {first}")),
            ResolutionKind::Undo => (SignalStatus::Skipped, format!("undone: {first}")),
            ResolutionKind::Raise => return Ok(()),
        };
        self.mark_signal_status(&cited.reference, Some(standing)).await
    }
}

/// Where a signal stands after its action; nothing where that was only said.
pub(super) fn signal_status_for_receipt(
    landing: Disposition,
    receipt: &ActionReceipt,
) -> Option<(SignalStatus, String)> {
    let id: &ActionId = &receipt.id;
    match landing {
        Disposition::Live => Some((SignalStatus::Applied, id.to_string())),
        Disposition::Pending => Some((SignalStatus::Pending, id.to_string())),
        Disposition::Recorded | Disposition::Shadow => None,
    }
}

/// Where a signal stands that is not acted upon, for good.
pub(super) fn signal_status_for_skip(skip: &RouteSkip, claim: Option<&SignalClaim>) -> (SignalStatus, String) {
    if let RouteSkip::Claimed(id) = skip {
        let status = match claim.map(|c| c.landing) {
            Some(Disposition::Live) => SignalStatus::Applied,
            Some(Disposition::Pending) => SignalStatus::Pending,
            Some(Disposition::Recorded | Disposition::Shadow) | None => SignalStatus::Skipped,
        };
        return (status, id.to_string());
    }
    if let RouteSkip::Withheld(question) = skip {
        return (SignalStatus::Skipped, format!("{}: {question}", skip.as_str()));
    }
    let asks = *skip == RouteSkip::AsksThePrincipal;
    (if asks { SignalStatus::ActionPending } else { SignalStatus::Skipped }, skip.as_str().to_owned())
}
