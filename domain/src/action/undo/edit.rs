//! A human chooses another value before letting a proposal happen.
//!
//! The change stays the one that was proposed but for its value: the same target, class and field, held to the same
//! form. The confirmation's record has what was chosen, the record that it answers what was proposed. Nobody spoke
//! for what was chosen but the human, so that no source is told anything by what becomes of it later.

use super::ResolutionCase;
use super::ResolutionKind;
use super::ResolutionRefusal;
use crate::action::audit::{AuditDraft, AuditRecord, MutationProposal};
use crate::action::mutation::{Mutation, MutationError};
use crate::record::entity::RecordState;
use crate::record::path::{RecordKind, parse_link};
use serde_json::Value;

/// What is to happen instead of what was proposed; `None` where that is the very same.
pub(super) fn build_edited_proposal(
    request: &ResolutionCase<'_>,
    proposed: Option<&(Mutation, Option<Value>)>,
) -> Result<Option<MutationProposal>, ResolutionRefusal> {
    debug_assert!(request.kind == ResolutionKind::Confirm || request.edited.is_none());
    let Some(edited) = request.edited else { return Ok(None) };
    let no = |reason: &str| Err(refuse_edit(request.record, reason));
    let Some((mutation, replaces)) = proposed else { return no("it proposes no change") };
    if edited == mutation {
        return Ok(None);
    }
    if !edited.is_same_kind_as(mutation) || !edited.is_applicable_to(request.record.draft.target.kind()) {
        return no(&format!(
            "it proposes a {} of `{}`, of which only the value can be chosen",
            mutation.class().as_str(),
            mutation.field()
        ));
    }
    match Mutation::from_proposal(&edited.to_proposal()) {
        Ok(read) if read == *edited => {}
        Err(e @ (MutationError::LineSeparator { .. } | MutationError::Member(_))) => return no(&e.to_string()),
        Ok(_) | Err(MutationError::Class | MutationError::Field(_) | MutationError::Value(_)) => {
            return no(&format!("it is none that may be written into `{}`", mutation.field()));
        }
    }
    if is_current_value(edited, replaces.as_ref()) {
        return no(&format!("`{}` says so already; dismiss the proposal instead", mutation.field()));
    }
    Ok(Some(MutationProposal { mutation: edited.clone(), replaces: replaces.clone() }))
}

/// Makes the record of a confirmation one of what was chosen.
pub(super) fn record_edit(draft: &mut AuditDraft, chosen: MutationProposal) {
    draft.proposed_state = match chosen.mutation {
        Mutation::StateChange { to } => Some(to),
        Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } | Mutation::Related { .. } => None,
    };
    draft.proposal = Some(chosen);
    draft.evidence.iter_mut().for_each(|cited| cited.speaks = false);
    draft.source_contributions.clear();
    if let Some(answer) = &mut draft.answers {
        answer.edited = true;
    }
}

pub(super) fn refuse_edit(record: &AuditRecord, reason: &str) -> ResolutionRefusal {
    ResolutionRefusal::NotAnEdit { id: record.draft.id.to_string(), reason: reason.to_owned() }
}

/// Of a set nothing is known here.
fn is_current_value(edited: &Mutation, replaces: Option<&Value>) -> bool {
    let before = replaces.and_then(Value::as_str).map(str::trim);
    match edited {
        Mutation::StateChange { to } => RecordState::parse(before.unwrap_or("open")) == Some(*to),
        Mutation::ContextEdit { to, .. } => before == Some(to.trim()),
        Mutation::ParentMatter { to } => {
            before.and_then(|text| parse_link(RecordKind::Matter, text).ok()).as_ref() == Some(to)
        }
        Mutation::Related { .. } => false,
    }
}
