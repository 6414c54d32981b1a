//! Withholds a doubtful proposal, and asks a human about it instead.
//!
//! A question proposes nothing and cites the signals that it is about. Its record must never be rewritten. A signal
//! that is withheld later names the question instead.

use crate::action::audit::{AuditDraft, CitedSignal};
use crate::action::plan::{ActionId, Disposition, Plan, PlannedChange};
use crate::gates::result::{GateName, GateResult};
use crate::record::path::RecordPath;
use crate::steward::clerk::Judgement;
use std::collections::BTreeMap;

/// Why a proposal is withheld and left to a human.
#[derive(Clone, Debug, PartialEq)]
pub enum ProposalDoubt {
    /// This action asks a human about the record. The question is still open, or the human has answered it and the
    /// proposal is older than it.
    Asked(ActionId),
    /// Newer signals about the record propose something else or ask something. No question is open.
    Contradicted {
        /// The id of the question. It is the same for every try.
        question: ActionId,
        /// These signals, the newest first.
        newer: Vec<CitedSignal>,
    },
}

/// The id of the question that newer signals about a record raise. `before` is the newest closed question about the
/// record.
#[must_use]
pub fn question_id(target: &RecordPath, newest: &RecordPath, before: Option<&ActionId>) -> ActionId {
    ActionId::derive(&["question", target.as_str(), newest.as_str(), before.map_or("", ActionId::as_str)])
}

/// Turns a plan into a question about the same record. The question proposes nothing, and a human decides.
pub(super) fn plan_question(plan: Plan, question: &ActionId, newer: &[CitedSignal]) -> Plan {
    let mut draft = plan.draft;
    draft.gates.retain(|gate| gate.gate != GateName::Steward);
    draft.gates.push(GateResult::new(GateName::Steward, false, "newer signals contradict it", "a human's decision"));
    draft.evidence.splice(0..0, newer.iter().cloned());
    let draft = AuditDraft {
        id: question.clone(),
        class: None,
        decision: Judgement::NeedsInput,
        disposition: Disposition::Recorded,
        proposed_state: None,
        proposal: None,
        confirmable: false,
        pending_confirmation: false,
        source_contributions: BTreeMap::new(),
        reasoning:
            "An older message proposes a change. Newer ones about the same record propose something else or ask \
                    something. A human decides."
                .into(),
        ..draft
    };
    Plan { draft, basis: plan.basis, change: PlannedChange::Nothing }
}
