//! Makes cases of decisions that a person answered: their ids, and the quotations that their records keep.
//!
//! The name of a note is not kept in a record, so the name of its file stands for it. A decision that a person called right is the label of its
//! case. Of one that they rejected it is known only that it was wrong, so any decision that changes nothing is as good.

use super::cases::{CaseQuestion, EvalCase, asked_at};
use crate::action::audit::{ActionKind, AuditRecord, CitedSignal};
use crate::gates::mode::Ceiling;
use crate::record::entity::{RecordState, SignalEffect, SurfaceClass};
use crate::steward::clerk::{ClerkQuestion, Judgement, QuestionSubject, SignalEvidence};

/// The group of these cases.
pub const GROUP: &str = "records";

/// The case of a recorded decision; `None` if it proposes no state or cites nothing.
#[must_use]
pub fn make_case(record: &AuditRecord, is_right: bool) -> Option<EvalCase> {
    let draft = &record.draft;
    let proposed = draft.decision.proposed_state();
    if draft.kind != ActionKind::Action || proposed.is_none() || draft.evidence.is_empty() {
        return None;
    }
    let evidence = draft.evidence.iter().map(|cited| describe_cited(record, cited, proposed)).collect();
    let subject = QuestionSubject {
        task: draft.target.clone(),
        task_name: draft.target.slug().to_owned(),
        matter: draft.target.clone(),
        matter_name: draft.target.slug().to_owned(),
        state: draft.prior_state.as_deref().and_then(RecordState::parse).unwrap_or(RecordState::Open),
        surface_class: SurfaceClass::Normal,
        due: None,
        description_hash: None,
        last_decision: None,
    };
    let question = ClerkQuestion { subject, evidence, complaint: None, asked_at: asked_at() };
    let expected = match is_right {
        true => vec![draft.decision],
        false => vec![Judgement::StillActive, Judgement::NeedsInput],
    };
    let question = CaseQuestion::Task { question: Box::new(question), description: None, expected };
    Some(EvalCase { id: draft.id.to_string(), group: GROUP.to_owned(), question })
}

fn describe_cited(record: &AuditRecord, cited: &CitedSignal, proposed: Option<RecordState>) -> SignalEvidence {
    let proposed_state = proposed.filter(|_| cited.supports);
    SignalEvidence {
        source: cited.source.clone(),
        reference: cited.reference.clone(),
        note: cited.note.clone(),
        created: record.draft.timestamp,
        effect: if proposed_state.is_some() { SignalEffect::Mutation } else { SignalEffect::None },
        proposed_state,
        target_confidence: cited.target_confidence,
        effect_confidence: cited.effect_confidence,
        observations: 0,
        ceiling: Ceiling::Act,
    }
}
