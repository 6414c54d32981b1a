//! Turns a clerk's checked answer into a plan, through every gate.
//!
//! Pure: the same case always gives the same plan. So the function can run in a workflow, in a backtest and in a test.
//! It must not read a clock, a file or the environment. [`crate::gates::evaluate`] evaluates the gates.

use crate::action::audit::{ActionKind, AuditDraft, CitedSignal, MutationProposal, WorkflowRef};
use crate::action::mutation::Mutation;
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::evaluate::{ChangeFacts, ClerkCall, GateEvaluation};
use crate::gates::evidence::EvidenceWeight;
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::record::entity::{RecordState, SignalEffect};
use crate::steward::clerk::{ClerkMark, SignalEvidence, Verdict};
use crate::steward::tick::TaskCheck;
use chrono::{DateTime, Utc};
use serde_json::Value;

/// Everything that a decision depends on.
#[derive(Clone, Debug)]
pub struct DecisionCase<'a> {
    pub check: &'a TaskCheck,
    pub policy: &'a DecisionPolicy,
    /// The policy in the matter's own note. `None` if the note has none.
    pub matter_policy: Option<&'a MatterPolicy>,
    pub verdict: &'a Verdict,
    pub clerk: &'a ClerkMark,
    /// Whether the caller requested shadow, whatever the mode is.
    pub caller_says_shadow: bool,
    pub workflow: WorkflowRef,
    pub at: DateTime<Utc>,
}

/// Decides the disposition of a verdict and returns its plan.
#[must_use]
pub fn decide(case: &DecisionCase<'_>) -> Plan {
    let subject = &case.check.question.subject;
    let proposed = case.verdict.decision.proposed_state().filter(|to| *to != subject.state);
    let mutation = proposed.map(|to| Mutation::StateChange { to });
    let written = case.check.state_as_written.clone().map(Value::from);
    let cited = select_cited_evidence(case.check, case.verdict);
    let GateEvaluation { gates, disposition, is_confirmable } =
        evaluate_gates(case, &cited, proposed, mutation.as_ref());
    let draft = AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["act", &case.workflow.run_id, subject.task.as_str()]),
        timestamp: case.at,
        target: subject.task.clone(),
        target_kind: subject.kind(),
        named_after: None,
        class: mutation.as_ref().map(Mutation::class),
        decision: case.verdict.decision,
        confidence: case.verdict.confidence,
        mode: if case.caller_says_shadow { Mode::Shadow } else { case.policy.mode },
        disposition,
        gates,
        prior_state: case.check.state_as_written.clone(),
        proposed_state: proposed,
        proposal: mutation.clone().map(|mutation| MutationProposal {
            mutation,
            replaces: written.clone(),
            moved_from: None,
        }),
        confirmable: is_confirmable,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: cited
            .iter()
            .map(|e| CitedSignal { supports: is_supporting(e, proposed), ..CitedSignal::from(*e) })
            .collect(),
        source_contributions: case.verdict.source_contributions.clone(),
        reasoning: case.verdict.reasoning.clone(),
        clerk: Some(case.clerk.clone()),
        workflow: case.workflow.clone(),
        resolution: None,
        trust: None,
        wiki: None,
    };
    Plan {
        draft,
        basis: PlanBasis::Content(case.check.before.clone()),
        change: mutation.map_or(PlannedChange::Nothing, |m| PlannedChange::from_mutation(&m, written.as_ref())),
    }
}

fn evaluate_gates(
    case: &DecisionCase<'_>,
    cited: &[&SignalEvidence],
    proposed: Option<RecordState>,
    mutation: Option<&Mutation>,
) -> GateEvaluation {
    let supporting = cited.iter().filter(|e| is_supporting(e, proposed));
    let evidence: Vec<EvidenceWeight<'_>> = supporting.map(|e| EvidenceWeight::from(*e)).collect();
    let sources: Vec<&str> = cited.iter().map(|e| e.source.as_str()).collect();
    let ceilings = cited.iter().map(|e| e.ceiling).chain([case.check.matter_ceiling]);
    let policies: Vec<&MatterPolicy> = case.matter_policy.into_iter().chain(&case.check.further_policies).collect();
    let facts = ChangeFacts {
        mutation,
        is_shadow_requested: case.caller_says_shadow,
        policy: case.policy,
        confidence: case.verdict.confidence,
        evidence: &evidence,
        sources: &sources,
        ceiling: ceilings.min().unwrap_or_default(),
        clerk_call: if case.clerk.cached { ClerkCall::Remembered } else { ClerkCall::Reserved },
        passed_over: false,
        matter_policies: &policies,
        at: case.at,
    };
    facts.evaluate()
}

fn select_cited_evidence<'a>(check: &'a TaskCheck, verdict: &Verdict) -> Vec<&'a SignalEvidence> {
    let is_cited = |e: &&SignalEvidence| verdict.evidence.contains(&e.reference);
    check.question.evidence.iter().filter(is_cited).collect()
}

/// Whether a signal supports the decision. Every signal supports a decision that changes nothing.
fn is_supporting(evidence: &SignalEvidence, proposed: Option<RecordState>) -> bool {
    proposed.is_none() || (evidence.effect == SignalEffect::Mutation && evidence.proposed_state == proposed)
}

#[cfg(test)]
pub(crate) mod tests;
