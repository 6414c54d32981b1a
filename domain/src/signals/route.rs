//! From one signal to a plan, or to the named reason why there is none.
//!
//! The steward weighs all evidence of a task or matter together; the router acts upon what one signal
//! proposes and the steward does not judge, or did not get to judge in time. Pure: the same case gives
//! the same answer. It opens the same gates as [`mod@crate::steward::decide`], and what it plans goes the same way
//! through the one apply. The words of a signal name no field and no file: its proposal is of a closed
//! form and its target a record that was found.
//!
//! The router never contradicts the steward. While a human is asked about the record, or newer words about it say
//! otherwise, a proposal is withheld and becomes part of a question. So an unknown source can turn a proposal into a
//! question, but never into nothing.

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
use crate::record::path::{RecordKind, RecordPath, parse_link};
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
    pub state: RecordState,
    /// A human put it off until then.
    pub snoozed_until: Option<DateTime<Utc>>,
    /// Another task has the same `id`, so that the two cannot be told apart.
    pub has_twin: bool,
    /// The content that is judged.
    pub hash: ContentHash,
    pub fields: RecordFields,
}

/// A record that has cited a signal before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalClaim {
    pub id: ActionId,
    pub landing: Disposition,
    pub decision: Judgement,
}

impl SignalClaim {
    /// Whether the record has taken the signal up, so that it leads to nothing else. A decision that
    /// nothing changes says nothing of what the steward does not judge, and is no answer to a proposal
    /// unless it asks the principal.
    fn is_binding(&self, mutation: Option<&Mutation>) -> bool {
        let asks = self.decision == Judgement::NeedsInput;
        match (self.landing, mutation.map(Mutation::class)) {
            (Disposition::Recorded, Some(MutationClass::StateChange)) => asks,
            (Disposition::Recorded, Some(_)) => false,
            (Disposition::Recorded, None) | (Disposition::Live | Disposition::Pending | Disposition::Shadow, _) => true,
        }
    }
}

/// What was passed over beside other messages is shown to a human from this confidence on.
const SHOWN_FROM: f64 = 0.5;

/// What a matter's steward has to do with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StewardWeighing {
    /// Its turn is until then.
    Until(DateTime<Utc>),
    /// It has looked at the target since the signal came, and heard other messages in the same look.
    DoneBesideOthers,
    /// It has looked at the target since the signal came.
    Done,
}

/// All that routing a signal rests on.
#[derive(Clone, Debug)]
pub struct RouteCase<'a> {
    pub reference: &'a RecordPath,
    pub signal: &'a Signal,
    /// `None` where there is no such record that can be read.
    pub target: Option<&'a RouteTarget>,
    /// The state of the matter that a `parent_matter` names; `None` where there is none.
    pub new_parent: Option<RecordState>,
    pub claim: Option<&'a SignalClaim>,
    pub weighing: StewardWeighing,
    pub doubt: Option<&'a ProposalDoubt>,
    /// How often the source was right before.
    pub observations: u32,
    /// The lowest ceiling that a human set for the source and the matters concerned.
    pub ceiling: Ceiling,
    pub policy: &'a DecisionPolicy,
    /// What the notes of the matters concerned allow: the target's, and the one that it is to move to.
    pub notes: &'a [MatterPolicy],
    pub workflow: WorkflowRef,
    pub at: DateTime<Utc>,
    /// The moment that the record is named after: the same for every try.
    pub decided_at: DateTime<Utc>,
}

/// What becomes of a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteDecision {
    Skipped(RouteSkip),
    Planned(Box<Plan>),
    /// The proposal is withheld, and this plan asks a human about it.
    QuestionPlanned(Box<Plan>),
}

/// The one action that a signal may lead to by itself.
#[must_use]
pub fn action_id(signal: &RecordPath) -> ActionId {
    ActionId::derive(&["route", signal.as_str()])
}

/// Names what landed as a shadow as such: the action itself is still to come.
pub(crate) fn rename_as_shadow(draft: &mut AuditDraft) {
    if let [cited] = draft.evidence.as_slice()
        && draft.id == action_id(&cited.reference)
    {
        draft.id = shadow_id(&cited.reference);
    }
}

/// What was only said is another action than what is done once the mode allows it.
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

/// What is listed on a question instead of being skipped.
fn skip_or_withhold(case: &RouteCase<'_>, skip: RouteSkip) -> RouteSkip {
    match (skip, case.doubt) {
        // The question itself cites it.
        (RouteSkip::Claimed(id), Some(ProposalDoubt::Asked(question))) if id == *question => RouteSkip::Withheld(id),
        // What would have been shown is listed as well where nothing can be proposed.
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
    // One that is more likely wrong than right is left at what the steward made of it.
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

/// The lower one of how sure target and effect are.
fn combined_confidence(signal: &Signal) -> f64 {
    signal.target_confidence.min(signal.effect_confidence)
}

/// The proposal and its target, if the one may change the other now.
fn check_proposal<'a>(case: &RouteCase<'a>) -> Result<(&'a Mutation, &'a RouteTarget), RouteSkip> {
    let signal = case.signal;
    let named = addressed_path(signal)?;
    if let Some(claim) = case.claim.filter(|claim| claim.is_binding(signal.proposal.as_ref())) {
        return Err(RouteSkip::Claimed(claim.id.clone()));
    }
    let (mutation, target) = check_target(signal, named, case.target)?;
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
    // Where nothing may change anyway there is nothing to be quiet about.
    if case.policy.mode > Mode::Shadow && case.notes.iter().any(|note| note.quiet_until(case.at).is_some()) {
        return Err(RouteSkip::QuietHours);
    }
    Ok((mutation, target))
}

/// The record that a proposal is about.
fn addressed_path(signal: &Signal) -> Result<&RecordPath, RouteSkip> {
    match signal.effect {
        SignalEffect::None => Err(RouteSkip::NotAMutation),
        SignalEffect::Action => Err(RouteSkip::AsksThePrincipal),
        SignalEffect::Mutation => signal.target.as_ref().ok_or(RouteSkip::AmbiguousTarget),
    }
}

/// What the two files alone say: the proposal and its target, if the one may change the other.
fn check_target<'a>(
    signal: &'a Signal,
    named: &RecordPath,
    target: Option<&'a RouteTarget>,
) -> Result<(&'a Mutation, &'a RouteTarget), RouteSkip> {
    let mutation = signal.proposal.as_ref().ok_or(RouteSkip::NoProposal)?;
    if !mutation.is_applicable_to(named.kind()) {
        return Err(RouteSkip::WrongKind);
    }
    let target = target.filter(|t| t.path == *named).ok_or(RouteSkip::TargetMissing)?;
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
            let link = now.and_then(Value::as_str).ok_or(RouteSkip::WrongForm)?;
            Ok(parse_link(RecordKind::Matter, link).as_ref() == Ok(to))
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
        class: Some(mutation.class()),
        decision: judge_mutation(mutation),
        confidence: combined,
        mode: case.policy.mode,
        landing: disposition,
        gates,
        prior_state: target.fields.get("state").and_then(Value::as_str).map(str::to_owned),
        proposed_state: signal.proposed_state(),
        proposal: Some(MutationProposal { mutation: mutation.clone(), replaces }),
        confirmable: is_confirmable,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: vec![CitedSignal {
            reference: case.reference.clone(),
            source: signal.source_type.clone(),
            note: signal.clerk_note(),
            target_confidence: signal.target_confidence,
            effect_confidence: signal.effect_confidence,
            speaks: true,
        }],
        source_contributions: BTreeMap::from([(signal.source_type.clone(), combined)]),
        reasoning: format_reasoning(signal),
        clerk: None,
        workflow: case.workflow.clone(),
        answers: None,
        trust: None,
    };
    Plan { draft, basis: PlanBasis::Content(target.hash.clone()), change: PlannedChange::from_mutation(mutation, now) }
}

fn evaluate_route_gates(case: &RouteCase<'_>, mutation: &Mutation, combined: f64) -> GateEvaluation {
    let source = case.signal.source_type.as_str();
    let matter_policies: Vec<&MatterPolicy> = case.notes.iter().collect();
    let is_state_change = mutation.class() == MutationClass::StateChange;
    let facts = ChangeFacts {
        mutation: Some(mutation),
        caller_says_shadow: false,
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

/// What the change says of the life of its target.
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
    let own: String = signal.reasoning.trim().chars().take(MAX_REASONING_CHARS).collect();
    if own.is_empty() { "One signal proposes it and gives no reasons.".into() } else { own }
}

#[cfg(test)]
pub(crate) mod tests;
