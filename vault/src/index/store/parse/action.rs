//! Parses audit records, with the paths that their notes have now.
//!
//! A record names its notes as they were called then. It must not be trusted more than any other file: whether it
//! belongs to the chain is checked elsewhere.

use super::{ActionData, ParsedRecord, changed_field, sources};
use crate::index::store::codec::{encode_enum, to_micros};
use crate::index::store::files::ScanContext;
use crate::index::store::rows::to_json;
use steward_domain::action::audit::{ActionKind, AuditError, AuditRecord};
use steward_domain::action::mutation::{Mutation, MutationClass};
use steward_domain::gates::closed::ClosedGates;
use steward_domain::gates::mode::Mode;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::mark::TrustMark;

pub(super) fn parse_action(path: &RecordPath, bytes: &[u8], scan: &ScanContext) -> Result<ParsedRecord, String> {
    let record = AuditRecord::parse(bytes).map_err(|e| match e {
        AuditError::Frontmatter(e) => format!("failed to {e}"),
        AuditError::Form(_) => format!("{e}: `steward audit verify` shows whether it was changed since it was written"),
    })?;
    let is_gone = record.has_ended(&scan.moves);
    let is_ended = is_gone || record.mapping_sha256.as_ref() != scan.schema.hash();
    let record = record.follow_moves(&scan.moves);
    let draft = record.draft;
    let resolved = draft.resolution.as_ref().map(|a| a.action_id.to_string());
    let moved_from = draft.proposal.as_ref().and_then(|p| p.moved_from.as_ref()).map(ToString::to_string);
    let (trust_subject, trust_mode) = draft.trust.as_ref().map(encode_trust_mark).unzip();
    let (follows, tracks_of) = if draft.kind.is_tracker_outcome() { (None, resolved) } else { (resolved, None) };
    let settles = draft.resolution.as_ref().is_some_and(|answer| answer.done);
    let resolves = follows.clone().filter(|_| draft.kind.ends_action(settles));
    Ok(ParsedRecord::Action(Box::new(ActionData {
        path: path.to_string(),
        id: draft.id.to_string(),
        kind: draft.kind.as_str(),
        // The note is no more, and what stands at its path now is another one.
        target: if is_gone { path.to_string() } else { draft.target.to_string() },
        at: to_micros(draft.timestamp),
        decision: draft.decision.as_str(),
        confidence: draft.confidence,
        disposition: draft.disposition.as_str(),
        mode: draft.mode.as_str(),
        pending: draft.pending_confirmation,
        follows,
        resolves,
        proposed_state: draft.proposed_state.map(encode_enum),
        class: draft.class.map(MutationClass::as_str),
        judged: draft.kind != ActionKind::Action || draft.clerk.is_some(),
        issue: record.plane_action.as_ref().and_then(|a| a.owed_issue()).map(|issue| issue.issue.to_string()),
        tracks_of,
        trust_subject,
        trust_mode: trust_mode.flatten(),
        closed: ClosedGates::from_gates(&draft.gates).join_names(),
        moves_to: draft.proposal.as_ref().and_then(|p| matter_moved_to(&p.mutation)),
        changes: draft.proposal.as_ref().map(|p| changed_field(&p.mutation)),
        moved_from,
        proposal: draft.proposal_hash().map(|hash| hash.as_str().to_owned()),
        prev: record.prev_sha256.as_str().to_owned(),
        content: record.content_sha256.as_ref().map(|hash| hash.as_str().to_owned()),
        misnamed: draft.record_path().as_ref() != Ok(path),
        edited: draft.resolution.as_ref().is_some_and(|answer| answer.edited),
        batch_id: draft.resolution.as_ref().and_then(|answer| answer.batch_id.as_ref()).map(ToString::to_string),
        by_agent: draft.resolution.as_ref().is_some_and(|answer| !answer.resolved_by.is_human()),
        settles,
        ended: draft.pending_confirmation && is_ended,
        seq: record.seq,
        sources: sources::read_contributions(&draft),
        quotes: draft.evidence.iter().map(|e| e.note.clone()).collect(),
        evidence: draft.evidence.into_iter().map(|e| e.reference.to_string()).collect(),
    })))
}

/// The subject of a trust mark, and the mode that it caps.
fn encode_trust_mark(mark: &TrustMark) -> (String, Option<&'static str>) {
    let mode = match mark {
        TrustMark::Lowered { to, .. } => Some(to.as_str()),
        TrustMark::Unrestored { .. } => Some(Mode::Shadow.as_str()),
        TrustMark::Pruned { .. } | TrustMark::Raised { .. } | TrustMark::CeilingSet { .. } => None,
    };
    (to_json(mark.subject()), mode)
}

/// The matter that a change moves a task to.
fn matter_moved_to(mutation: &Mutation) -> Option<String> {
    match mutation {
        Mutation::ParentMatter { to } => Some(to.to_string()),
        Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::Related { .. } => None,
    }
}
