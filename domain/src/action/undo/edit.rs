//! A confirmation with another value: a human edits a proposal before it is applied, or answers a question.
//!
//! Only the value may differ. The target, the class and the field stay, and the same checks hold. The confirmation's
//! record holds the chosen value, the resolved record the proposed one. No source supports the chosen value, so its
//! later outcome must not change the trust in any source.

use super::ResolutionCase;
use super::ResolutionKind;
use super::ResolutionRefusal;
use crate::action::audit::{AuditDraft, AuditRecord, MutationProposal};
use crate::action::mutation::{Mutation, MutationError};
use crate::record::entity::RecordState;
use crate::record::moves::LinkReader;
use serde_json::Value;

/// The proposal with the chosen value, or `None` if the chosen value is the proposed one.
pub(super) fn build_edited_proposal(
    case: &ResolutionCase<'_>,
    proposed: Option<&MutationProposal>,
) -> Result<Option<MutationProposal>, ResolutionRefusal> {
    debug_assert!(case.request.kind == ResolutionKind::Confirm || case.request.edited.is_none());
    let Some(edited) = case.request.edited else { return Ok(None) };
    let refuse = |reason: &str| Err(refuse_edit(case.record, reason));
    let Some(MutationProposal { mutation, replaces, moved_from }) = proposed else {
        return refuse("it proposes no change");
    };
    if edited == mutation {
        return Ok(None);
    }
    if !edited.is_same_kind_as(mutation) || !case.notes.schema.can_write(case.record.draft.target_kind, edited) {
        return refuse(&format!(
            "it proposes a {} of `{}`, and only the value can be changed",
            mutation.class().as_str(),
            mutation.field()
        ));
    }
    match Mutation::from_proposal(&edited.to_proposal()) {
        Ok(read) if read == *edited => {}
        Err(e @ (MutationError::LineSeparator { .. } | MutationError::Member(_))) => return refuse(&e.to_string()),
        Ok(_) | Err(MutationError::Class | MutationError::Field(_) | MutationError::Value(_)) => {
            return refuse(&format!("the value is not valid for `{}`", mutation.field()));
        }
    }
    let links = case.notes.links(&case.record.draft.target, case.record.draft.timestamp);
    if is_current_value(edited, replaces.as_ref(), links) {
        return refuse(&format!("`{}` has this value already; dismiss the proposal instead", mutation.field()));
    }
    Ok(Some(MutationProposal { mutation: edited.clone(), replaces: replaces.clone(), moved_from: moved_from.clone() }))
}

/// The change of state by which a human answers a question.
pub(super) fn build_answer_to_question(case: &ResolutionCase<'_>) -> Result<MutationProposal, ResolutionRefusal> {
    let draft = &case.record.draft;
    let refuse = |reason: &str| Err(refuse_edit(case.record, reason));
    let Some(mutation) = case.request.edited else {
        return Err(ResolutionRefusal::NothingProposed { id: draft.id.to_string() });
    };
    let Mutation::StateChange { to } = mutation else {
        return refuse("a question is answered by a state alone: done or archived");
    };
    let schema = case.notes.schema;
    if !schema.allows_place(draft.target_kind, &draft.target) || !schema.can_write(draft.target_kind, mutation) {
        return refuse("the mapping of the vault has no property for the state");
    }
    let before = RecordState::parse(draft.prior_state.as_deref().unwrap_or("open"));
    if *to == RecordState::Open || before == Some(*to) {
        return refuse("the note has this state already; dismiss the question to keep it");
    }
    let replaces = draft.prior_state.clone().map(Value::from);
    Ok(MutationProposal { mutation: mutation.clone(), replaces, moved_from: None })
}

/// Writes the chosen value into the draft of a confirmation.
pub(super) fn record_edit(draft: &mut AuditDraft, chosen: MutationProposal) {
    draft.class = Some(chosen.mutation.class());
    draft.proposed_state = match chosen.mutation {
        Mutation::StateChange { to } => Some(to),
        Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } | Mutation::Related { .. } => None,
    };
    draft.proposal = Some(chosen);
    draft.evidence.iter_mut().for_each(|cited| cited.supports = false);
    draft.source_contributions.clear();
    if let Some(resolution) = &mut draft.resolution {
        resolution.edited = true;
    }
}

pub(super) fn refuse_edit(record: &AuditRecord, reason: &str) -> ResolutionRefusal {
    ResolutionRefusal::NotAnEdit { id: record.draft.id.to_string(), reason: reason.to_owned() }
}

/// Whether the field has the chosen value already. For a set this is not known, so it is `false`.
fn is_current_value(edited: &Mutation, replaces: Option<&Value>, links: LinkReader<'_>) -> bool {
    let before = replaces.and_then(Value::as_str).map(str::trim);
    match edited {
        Mutation::StateChange { to } => RecordState::parse(before.unwrap_or("open")) == Some(*to),
        Mutation::ContextEdit { to, .. } => before == Some(to.trim()),
        Mutation::ParentMatter { to } => before.and_then(|link| links.read_former_matter(link)).as_ref() == Some(to),
        Mutation::Related { .. } => false,
    }
}
