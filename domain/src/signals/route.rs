//! The router: turns one signal into a plan, or names the reason why there is none.
//!
//! The steward weighs all evidence about a task or matter. The router handles the proposal of a single signal that the
//! steward does not judge, or did not judge in time. It is pure: the same case gives the same result. Its plans pass
//! the same gates as those of [`mod@crate::steward::decide`], and the same write path. The text of a signal must not
//! name a field or a file: its proposal has a closed form, and its target is a record that was found.
//!
//! The router must not contradict the steward. A proposal is withheld while a human is asked about the record, or if
//! newer signals contradict it. It then becomes part of a question. So an unknown source can turn a proposal into a
//! question, but cannot make it disappear.

mod doubt;
mod misfit;
mod skip;

use crate::action::audit::{ActionKind, AuditDraft, CitedSignal, MutationProposal, WorkflowRef};
use crate::action::mutation::{Mutation, MutationClass};
use crate::action::plan::{ActionId, ContentHash, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::evaluate::{ChangeFacts, ClerkCall, GateEvaluation};
use crate::gates::evidence::EvidenceWeight;
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::gates::result::GateName;
use crate::record::entity::{RecordState, SignalEffect};
use crate::record::frontmatter::{RecordFields, has_member, list_members};
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::signal::Signal;
use crate::steward::clerk::{Judgement, MAX_REASONING_CHARS};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

pub use doubt::{ProposalDoubt, question_id};
pub use misfit::explain_misfit;
pub use skip::RouteSkip;

/// The record that a signal points at, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTarget {
    pub path: RecordPath,
    pub kind: RecordKind,
    /// The matter that a task's link names.
    pub parent: Option<RecordPath>,
    pub state: RecordState,
    /// The time until which a human snoozed it.
    pub snoozed_until: Option<DateTime<Utc>>,
    /// Another task has the same `id`, so the two cannot be distinguished.
    pub has_twin: bool,
    /// The hash of the content that is judged.
    pub hash: ContentHash,
    /// The fields under their fixed names, whatever the note calls them.
    pub fields: RecordFields,
    /// Whether the note has a property for the proposed change. Without a mapping every note has one.
    pub is_writable: bool,
}

/// An earlier decision that cited a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalClaim {
    pub id: ActionId,
    pub disposition: Disposition,
    pub decision: Judgement,
}

impl SignalClaim {
    /// Whether the earlier decision settles the signal, so that the router must not act on it.
    ///
    /// A decision that changes nothing settles no change that the steward does not judge. It settles a change of state
    /// only if it asks the human.
    fn is_binding(&self, mutation: Option<&Mutation>) -> bool {
        let asks_human = self.decision == Judgement::NeedsInput;
        match (self.disposition, mutation.map(Mutation::class)) {
            (Disposition::Recorded, Some(MutationClass::StateChange)) => asks_human,
            (Disposition::Recorded, Some(_)) => false,
            (Disposition::Recorded, None) | (Disposition::Live | Disposition::Pending | Disposition::Shadow, _) => true,
        }
    }
}

/// A proposal that the steward passed over is shown to a human from this confidence on, 0 to 1.
const SHOWN_FROM: f64 = 0.5;

/// How far the target's steward has weighed a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StewardWeighing {
    /// Its turn lasts until then.
    Until(DateTime<Utc>),
    /// It has checked the target since the signal arrived, and weighed other messages in the same check.
    DoneBesideOthers,
    /// It has checked the target since the signal arrived.
    Done,
}

/// Everything that the route of a signal depends on.
#[derive(Clone, Debug)]
pub struct RouteCase<'a> {
    pub reference: &'a RecordPath,
    pub signal: &'a Signal,
    /// `None` if the target does not exist or cannot be read.
    pub target: Option<&'a RouteTarget>,
    /// The state of the matter that a `parent_matter` proposal names. `None` if there is no such matter.
    pub new_parent: Option<RecordState>,
    pub claim: Option<&'a SignalClaim>,
    pub weighing: StewardWeighing,
    pub doubt: Option<&'a ProposalDoubt>,
    /// How often the source was right before.
    pub observations: u32,
    /// The lowest ceiling that a human set for the source or the matters concerned.
    pub ceiling: Ceiling,
    pub policy: &'a DecisionPolicy,
    /// The policies of the matters concerned: the target's own, and the one that it would move to.
    pub matter_policies: &'a [MatterPolicy],
    pub workflow: WorkflowRef,
    pub at: DateTime<Utc>,
    /// The moment that the audit record is named after. It is the same for every try.
    pub decided_at: DateTime<Utc>,
}

/// The outcome of routing a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteDecision {
    Skipped(RouteSkip),
    Planned(Box<Plan>),
    /// The proposal is withheld. This plan asks a human about it.
    QuestionPlanned(Box<Plan>),
}

/// The id of the only action that a signal may lead to by itself.
#[must_use]
pub fn action_id(signal: &RecordPath) -> ActionId {
    ActionId::derive(&["route", signal.as_str()])
}

/// Gives a routed plan that ends as a shadow the id of a shadow, because the action itself may still follow.
pub(crate) fn rename_as_shadow(draft: &mut AuditDraft) {
    if let [cited] = draft.evidence.as_slice()
        && draft.id == action_id(&cited.reference)
    {
        draft.id = shadow_id(&cited.reference);
    }
}

/// The id of a shadow differs from the id of the action, so the action can follow once the mode allows it.
fn shadow_id(signal: &RecordPath) -> ActionId {
    ActionId::derive(&["route", signal.as_str(), "shadow"])
}

/// Routes one signal.
#[must_use]
pub fn plan_signal_route(case: &RouteCase<'_>) -> RouteDecision {
    match check_proposal(case) {
        Err(skip) => RouteDecision::Skipped(skip_or_withhold(case, skip)),
        Ok((mutation, target)) => route_proposal(case, plan_proposal(case, mutation, target)),
    }
}

/// Replaces a skip by [`RouteSkip::Withheld`] if the signal belongs on an open question.
fn skip_or_withhold(case: &RouteCase<'_>, skip: RouteSkip) -> RouteSkip {
    match (skip, case.doubt) {
        // The question itself cites the signal.
        (RouteSkip::Claimed(id), Some(ProposalDoubt::Asked(question))) if id == *question => RouteSkip::Withheld(id),
        // The steward has weighed it, so nothing is proposed. It is still listed if it is certain enough to be shown.
        (RouteSkip::Weighed, Some(ProposalDoubt::Asked(question)))
            if combined_confidence(case.signal) >= SHOWN_FROM =>
        {
            RouteSkip::Withheld(question.clone())
        }
        (skip, _) => skip,
    }
}

fn route_proposal(case: &RouteCase<'_>, planned: Plan) -> RouteDecision {
    let passed_over = planned.draft.gates.iter().any(|g| g.gate == GateName::Steward && !g.open);
    // If the proposal is more likely wrong than right, the steward's decision stands.
    if passed_over && planned.draft.confidence < SHOWN_FROM {
        return RouteDecision::Skipped(RouteSkip::Weighed);
    }
    match case.doubt {
        Some(ProposalDoubt::Asked(question)) => RouteDecision::Skipped(RouteSkip::Withheld(question.clone())),
        Some(ProposalDoubt::Contradicted { question, newer }) => {
            RouteDecision::QuestionPlanned(Box::new(doubt::plan_question(planned, question, newer)))
        }
        None if passed_over && planned.disposition() != Disposition::Pending => {
            RouteDecision::Skipped(RouteSkip::Weighed)
        }
        None => RouteDecision::Planned(Box::new(planned)),
    }
}

/// The lower one of the confidence in the target and the confidence in the effect.
fn combined_confidence(signal: &Signal) -> f64 {
    signal.target_confidence.min(signal.effect_confidence)
}

/// Returns the proposal and its target if the proposal may change the target now.
fn check_proposal<'a>(case: &RouteCase<'a>) -> Result<(&'a Mutation, &'a RouteTarget), RouteSkip> {
    let signal = case.signal;
    let path = addressed_path(signal)?;
    if let Some(claim) = case.claim.filter(|claim| claim.is_binding(signal.proposal.as_ref())) {
        return Err(RouteSkip::Claimed(claim.id.clone()));
    }
    let (mutation, target) = check_target(signal, path, case.target)?;
    if target.snoozed_until.is_some_and(|until| until > case.at) {
        return Err(RouteSkip::Snoozed);
    }
    match mutation {
        Mutation::StateChange { .. } => match case.weighing {
            StewardWeighing::DoneBesideOthers => {}
            StewardWeighing::Until(_) | StewardWeighing::Done if case.claim.is_some() => {
                return Err(case.claim.map_or(RouteSkip::Weighed, |c| RouteSkip::Claimed(c.id.clone())));
            }
            StewardWeighing::Until(turn) if turn > case.at => return Err(RouteSkip::WithTheSteward),
            StewardWeighing::Done => return Err(RouteSkip::Weighed),
            StewardWeighing::Until(_) => {}
        },
        Mutation::ParentMatter { .. } => match case.new_parent {
            None => return Err(RouteSkip::ParentMissing),
            Some(RecordState::Done | RecordState::Archived) => return Err(RouteSkip::ParentClosed),
            Some(RecordState::Open) => {}
        },
        Mutation::ContextEdit { .. } | Mutation::Related { .. } => {}
    }
    // In shadow mode nothing changes anyway, so the quiet hours do not matter.
    if case.policy.mode > Mode::Shadow && case.matter_policies.iter().any(|note| note.quiet_until(case.at).is_some()) {
        return Err(RouteSkip::QuietHours);
    }
    Ok((mutation, target))
}

/// The path of the record that a proposal is about.
fn addressed_path(signal: &Signal) -> Result<&RecordPath, RouteSkip> {
    match signal.effect {
        SignalEffect::None => Err(RouteSkip::NotAMutation),
        SignalEffect::Action => Err(RouteSkip::AsksThePrincipal),
        SignalEffect::Mutation => signal.target.as_ref().ok_or(RouteSkip::AmbiguousTarget),
    }
}

/// Checks the signal and its target alone. Returns both if the proposal may change the target.
fn check_target<'a>(
    signal: &'a Signal,
    path: &RecordPath,
    target: Option<&'a RouteTarget>,
) -> Result<(&'a Mutation, &'a RouteTarget), RouteSkip> {
    let mutation = signal.proposal.as_ref().ok_or(RouteSkip::NoProposal)?;
    if path.own_kind().is_some() || !mutation.is_applicable_to(signal.target_kind) {
        return Err(RouteSkip::WrongKind);
    }
    let target = target.filter(|t| t.path == *path).ok_or(RouteSkip::TargetMissing)?;
    if target.kind != signal.target_kind || !target.is_writable {
        return Err(RouteSkip::WrongKind);
    }
    if target.has_twin {
        return Err(RouteSkip::AmbiguousTarget);
    }
    match target.state {
        RecordState::Open => {}
        RecordState::Done | RecordState::Archived => return Err(RouteSkip::TargetClosed),
    }
    if has_proposed_value(mutation, target)? { Err(RouteSkip::AlreadySo) } else { Ok((mutation, target)) }
}

/// Whether the target has the proposed value already.
fn has_proposed_value(mutation: &Mutation, target: &RouteTarget) -> Result<bool, RouteSkip> {
    let now = target.fields.get(mutation.field()).filter(|v| !v.is_null());
    match mutation {
        Mutation::StateChange { to } => Ok(*to == target.state),
        Mutation::ContextEdit { to, .. } => match now {
            Some(Value::Array(_) | Value::Object(_)) => Err(RouteSkip::WrongForm),
            Some(Value::String(text)) => Ok(text.trim() == to),
            Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => Ok(false),
        },
        Mutation::ParentMatter { to } => {
            now.and_then(Value::as_str).ok_or(RouteSkip::WrongForm)?;
            Ok(target.parent.as_ref() == Some(to))
        }
        Mutation::Related { member, present, .. } => {
            let items = list_members(now).ok_or(RouteSkip::WrongForm)?;
            Ok(has_member(items, member) == *present)
        }
    }
}

fn plan_proposal(case: &RouteCase<'_>, mutation: &Mutation, target: &RouteTarget) -> Plan {
    let signal = case.signal;
    let now = target.fields.get(mutation.field()).filter(|v| !v.is_null());
    let combined = combined_confidence(signal);
    let GateEvaluation { gates, disposition, is_confirmable } = evaluate_route_gates(case, mutation, combined);
    let replaces = match mutation.class() {
        MutationClass::Related => None,
        MutationClass::StateChange | MutationClass::ContextEdit | MutationClass::ParentMatter => now.cloned(),
    };
    let draft = AuditDraft {
        kind: ActionKind::Action,
        id: if disposition == Disposition::Shadow { shadow_id(case.reference) } else { action_id(case.reference) },
        timestamp: case.decided_at,
        target: target.path.clone(),
        target_kind: target.kind,
        named_after: None,
        class: Some(mutation.class()),
        decision: judge_mutation(mutation),
        confidence: combined,
        mode: case.policy.mode,
        disposition,
        gates,
        prior_state: target.fields.get("state").and_then(Value::as_str).map(str::to_owned),
        proposed_state: signal.proposed_state(),
        proposal: Some(MutationProposal {
            mutation: mutation.clone(),
            replaces,
            moved_from: target.parent.clone().filter(|_| mutation.class() == MutationClass::ParentMatter),
        }),
        confirmable: is_confirmable,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: vec![CitedSignal {
            reference: case.reference.clone(),
            source: signal.source_type.clone(),
            note: signal.clerk_note(),
            target_confidence: signal.target_confidence,
            effect_confidence: signal.effect_confidence,
            supports: true,
        }],
        source_contributions: BTreeMap::from([(signal.source_type.clone(), combined)]),
        reasoning: format_reasoning(signal),
        clerk: None,
        workflow: case.workflow.clone(),
        resolution: None,
        trust: None,
        wiki: None,
    };
    Plan { draft, basis: PlanBasis::Content(target.hash.clone()), change: PlannedChange::from_mutation(mutation, now) }
}

fn evaluate_route_gates(case: &RouteCase<'_>, mutation: &Mutation, combined: f64) -> GateEvaluation {
    let source = case.signal.source_type.as_str();
    let matter_policies: Vec<&MatterPolicy> = case.matter_policies.iter().collect();
    let is_state_change = mutation.class() == MutationClass::StateChange;
    let facts = ChangeFacts {
        mutation: Some(mutation),
        is_shadow_requested: false,
        policy: case.policy,
        confidence: combined,
        evidence: &[EvidenceWeight { source, confidence: combined, observations: case.observations }],
        sources: &[source],
        ceiling: case.ceiling,
        clerk_call: ClerkCall::NotNeeded,
        passed_over: is_state_change && case.weighing == StewardWeighing::DoneBesideOthers,
        matter_policies: &matter_policies,
        at: case.at,
    };
    facts.evaluate()
}

/// The decision that a change stands for.
fn judge_mutation(mutation: &Mutation) -> Judgement {
    match mutation {
        Mutation::StateChange { to: RecordState::Done } => Judgement::LikelyDone,
        Mutation::StateChange { to: RecordState::Archived } => Judgement::StaleArchiveCandidate,
        Mutation::StateChange { to: RecordState::Open }
        | Mutation::ContextEdit { .. }
        | Mutation::ParentMatter { .. }
        | Mutation::Related { .. } => Judgement::StillActive,
    }
}

fn format_reasoning(signal: &Signal) -> String {
    let reasoning: String = signal.reasoning.trim().chars().take(MAX_REASONING_CHARS).collect();
    if reasoning.is_empty() { "One signal proposes this change and gives no reason.".into() } else { reasoning }
}

#[cfg(test)]
pub(crate) mod tests;
