//! When a proposal is withheld, and the question that then goes to a human.
//!
//! A question proposes nothing and cites what it is about. Signals that are withheld later name the question, so its
//! record is never rewritten.

use crate::action::audit::{AuditDraft, CitedSignal};
use crate::action::plan::{ActionId, Disposition, Plan, PlannedChange};
use crate::gates::result::{GateName, GateResult};
use crate::record::path::RecordPath;
use crate::steward::clerk::Judgement;
use std::collections::BTreeMap;

/// Why a proposal is left to a human instead of being made.
#[derive(Clone, Debug, PartialEq)]
pub enum ProposalDoubt {
    /// This action asks a human about the record, and the question is still open.
    Asked(ActionId),
    /// Newer signals about the record propose otherwise or ask something, and no question is open.
    Contradicted {
        /// The action that asks, the same for every try.
        question: ActionId,
        /// The newest of these signals first.
        newer: Vec<CitedSignal>,
    },
}

/// The question that newer words about a record raise; `before` is the newest question about it that has ended.
#[must_use]
pub fn question_id(target: &RecordPath, newest: &RecordPath, before: Option<&ActionId>) -> ActionId {
    ActionId::derive(&["question", target.as_str(), newest.as_str(), before.map_or("", ActionId::as_str)])
}

/// The same record as a question: nothing is proposed, and a human decides.
pub(super) fn plan_question(plan: Plan, question: &ActionId, newer: &[CitedSignal]) -> Plan {
    let mut draft = plan.draft;
    draft.gates.retain(|gate| gate.gate != GateName::Steward);
    draft.gates.push(GateResult::new(GateName::Steward, false, "newer words leave it unclear", "a human's word"));
    draft.evidence.splice(0..0, newer.iter().cloned());
    let draft = AuditDraft {
        id: question.clone(),
        class: None,
        decision: Judgement::NeedsInput,
        landing: Disposition::Recorded,
        proposed_state: None,
        proposal: None,
        confirmable: false,
        pending_confirmation: false,
        source_contributions: BTreeMap::new(),
        reasoning: "An older message proposes a change, and newer ones about the same record propose otherwise or ask \
                    something. A human decides."
            .into(),
        ..draft
    };
    Plan { draft, basis: plan.basis, change: PlannedChange::Nothing }
}
