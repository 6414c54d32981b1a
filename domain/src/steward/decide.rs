//! From a checked answer to a plan, through every gate.
//!
//! Pure: the same case always gives the same plan, so that it can run inside a workflow, in a
//! backtest and in a test alike. Every gate is evaluated and kept with the values that decided,
//! also the ones behind a closed one, because the record must show the same values.

use crate::action::audit::{ActionKind, AuditDraft, CitedSignal, MutationProposal, WorkflowRef};
use crate::action::mutation::{Mutation, MutationClass};
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::matter_policy::MatterPolicy;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode, discretion_threshold};
use crate::record::entity::{RecordState, SignalEffect};
use crate::steward::clerk::{ClerkMark, SignalEvidence, Verdict};
use crate::steward::tick::TaskCheck;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::gates::closed::ClosedGates;

/// One gate, with the value that was found and the value that was needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    pub gate: GateName,
    pub open: bool,
    pub found: String,
    pub needed: String,
}

/// The gates, in the order in which records show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    Caller,
    Mode,
    Confidence,
    Discretion,
    Ceiling,
    RateGuard,
    /// What the steward passed over while other messages spoke needs a human.
    Steward,
    /// What the sources of a change have changed in a day.
    SourceBudget,
    /// How far undos let the sources and the class of a change go.
    Trust,
    /// What the matter's own note allows there.
    Policy,
    /// An operator's stop; only in older records, since a stopped plan is not filed any more.
    Brake,
}

impl GateName {
    /// Every gate, in the order in which they are listed.
    pub const ALL: [Self; 11] = [
        Self::Caller,
        Self::Mode,
        Self::Confidence,
        Self::Discretion,
        Self::Ceiling,
        Self::RateGuard,
        Self::Steward,
        Self::SourceBudget,
        Self::Trust,
        Self::Policy,
        Self::Brake,
    ];

    /// The word used in records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Mode => "mode",
            Self::Confidence => "confidence",
            Self::Discretion => "discretion",
            Self::Ceiling => "ceiling",
            Self::RateGuard => "rate_guard",
            Self::Steward => "steward",
            Self::SourceBudget => "source_budget",
            Self::Trust => "trust",
            Self::Policy => "policy",
            Self::Brake => "brake",
        }
    }
}

impl GateResult {
    pub(crate) fn new(gate: GateName, open: bool, found: impl Into<String>, needed: impl Into<String>) -> Self {
        Self { gate, open, found: found.into(), needed: needed.into() }
    }
}

/// All that a decision rests on.
#[derive(Clone, Debug)]
pub struct DecisionCase<'a> {
    pub look: &'a TaskCheck,
    pub policy: &'a DecisionPolicy,
    /// What the matter's own note allows, if it says anything.
    pub note: Option<&'a MatterPolicy>,
    pub verdict: &'a Verdict,
    pub clerk: &'a ClerkMark,
    /// The caller asked for shadow, whatever the mode.
    pub caller_says_shadow: bool,
    pub workflow: WorkflowRef,
    pub at: DateTime<Utc>,
}

/// Decides how a verdict lands and writes the plan for it.
#[must_use]
pub fn decide(case: &DecisionCase<'_>) -> Plan {
    let subject = &case.look.question.subject;
    let proposed = case.verdict.decision.proposed_state().filter(|to| *to != subject.state);
    let mutation = proposed.map(|to| Mutation::StateChange { to });
    let written = case.look.state_as_written.clone().map(Value::from);
    let cited = select_cited_evidence(case.look, case.verdict);
    let ceiling = lowest_ceiling(case, &cited);
    let mut gates = evaluate_gates(case, &cited, (proposed, ceiling));
    if let (Some(note), Some(mutation)) = (case.note, &mutation) {
        let sources: Vec<&str> = cited.iter().map(|e| e.source.as_str()).collect();
        gates.extend(note.evaluate_gates(mutation, &sources, case.at));
    }
    let forbidden = mutation.as_ref().is_some_and(|m| case.note.is_some_and(|note| note.forbids_mutation(m)));
    let landing = ClosedGates::from_gates(&gates).decide_disposition(proposed.is_some());
    let draft = AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["act", &case.workflow.run_id, subject.task.as_str()]),
        timestamp: case.at,
        target: subject.task.clone(),
        class: mutation.as_ref().map(Mutation::class),
        decision: case.verdict.decision,
        confidence: case.verdict.confidence,
        mode: if case.caller_says_shadow { Mode::Shadow } else { case.policy.mode },
        landing,
        gates,
        prior_state: case.look.state_as_written.clone(),
        proposed_state: proposed,
        proposal: mutation.clone().map(|mutation| MutationProposal { mutation, replaces: written.clone() }),
        confirmable: ceiling > Ceiling::Ask && !forbidden,
        pending_confirmation: landing == Disposition::Pending,
        evidence: cited
            .iter()
            .map(|e| CitedSignal { speaks: is_supporting(e, proposed), ..CitedSignal::from(*e) })
            .collect(),
        source_contributions: case.verdict.source_contributions.clone(),
        reasoning: case.verdict.reasoning.clone(),
        clerk: Some(case.clerk.clone()),
        workflow: case.workflow.clone(),
        answers: None,
        trust: None,
    };
    Plan {
        draft,
        basis: PlanBasis::Content(case.look.before.clone()),
        change: mutation.map_or(PlannedChange::Nothing, |m| PlannedChange::from_mutation(&m, written.as_ref())),
    }
}

fn select_cited_evidence<'a>(look: &'a TaskCheck, verdict: &Verdict) -> Vec<&'a SignalEvidence> {
    let named = |e: &&SignalEvidence| verdict.evidence.contains(&e.reference);
    look.question.evidence.iter().filter(named).collect()
}

/// Whether a signal says what was decided; of a decision that changes nothing there is nothing to say.
fn is_supporting(evidence: &SignalEvidence, proposed: Option<RecordState>) -> bool {
    proposed.is_none() || (evidence.effect == SignalEffect::Mutation && evidence.proposed_state == proposed)
}

fn lowest_ceiling(case: &DecisionCase<'_>, cited: &[&SignalEvidence]) -> Ceiling {
    let sources = cited.iter().map(|e| e.ceiling);
    let class = case.policy.class_ceiling(MutationClass::StateChange);
    let note = case.note.map(MatterPolicy::effective_ceiling).unwrap_or_default();
    sources.chain([case.look.matter_ceiling, class, note]).min().unwrap_or_default()
}

fn evaluate_gates(
    case: &DecisionCase<'_>,
    cited: &[&SignalEvidence],
    (proposed, ceiling): (Option<RecordState>, Ceiling),
) -> Vec<GateResult> {
    let caller = if case.caller_says_shadow { "shadow" } else { "any" };
    let weights: Vec<EvidenceWeight<'_>> =
        cited.iter().filter(|e| is_supporting(e, proposed)).map(|e| EvidenceWeight::from(*e)).collect();
    let discretion = match proposed {
        Some(_) => discretion_gate(&weights),
        None => GateResult::new(GateName::Discretion, true, "no change", "evidence of a change"),
    };
    let asked = if case.clerk.cached { "remembered, no clerk asked" } else { "reserved" };
    vec![
        GateResult::new(GateName::Caller, !case.caller_says_shadow, caller, "any"),
        mode_gate(case.policy),
        confidence_gate(case.policy, case.verdict.confidence),
        discretion,
        ceiling_gate(ceiling),
        GateResult::new(GateName::RateGuard, true, asked, "reserved where a clerk is asked"),
    ]
}

/// Whether the mode lets anything happen at all.
pub(crate) fn can_act(policy: &DecisionPolicy) -> bool {
    policy.mode > Mode::Shadow
}

/// Least confidence that the mode asks for, 0 to 1.
pub(crate) fn needed_confidence(policy: &DecisionPolicy) -> f64 {
    match policy.mode {
        Mode::LiveHighConfidenceOnly => policy.high_confidence_threshold,
        Mode::Live | Mode::Shadow => policy.confidence_threshold,
    }
}

pub(crate) fn mode_gate(policy: &DecisionPolicy) -> GateResult {
    GateResult::new(GateName::Mode, can_act(policy), policy.mode.as_str(), "live")
}

pub(crate) fn confidence_gate(policy: &DecisionPolicy, found: f64) -> GateResult {
    let needed = needed_confidence(policy);
    GateResult::new(GateName::Confidence, found >= needed, format_exact(found), format!(">= {}", format_exact(needed)))
}

pub(crate) fn ceiling_gate(ceiling: Ceiling) -> GateResult {
    GateResult::new(GateName::Ceiling, ceiling == Ceiling::Act, ceiling.as_str(), "act")
}

/// What one signal weighs: no more than the weaker of what it is about and what it says.
pub(crate) struct EvidenceWeight<'a> {
    pub(crate) source: &'a str,
    /// 0 to 1.
    pub(crate) confidence: f64,
    pub(crate) observations: u32,
}

impl EvidenceWeight<'_> {
    fn threshold_margin(&self) -> f64 {
        self.confidence - discretion_threshold(self.observations)
    }
}

impl<'a> From<&'a SignalEvidence> for EvidenceWeight<'a> {
    fn from(e: &'a SignalEvidence) -> Self {
        let confidence = e.target_confidence.min(e.effect_confidence);
        Self { source: &e.source, confidence, observations: e.observations }
    }
}

/// Every signal that says what was decided must clear its source's threshold; the one that misses by
/// most is shown. A change that no cited signal speaks for does not clear it.
pub(crate) fn discretion_gate(weights: &[EvidenceWeight<'_>]) -> GateResult {
    match weights.iter().min_by(|a, b| a.threshold_margin().total_cmp(&b.threshold_margin())) {
        None => GateResult::new(GateName::Discretion, false, "no evidence", "evidence"),
        Some(w) => GateResult::new(
            GateName::Discretion,
            w.threshold_margin() >= 0.0,
            format!("{} from {} ({} observations)", format_exact(w.confidence), w.source, w.observations),
            format!(">= {}", format_exact(discretion_threshold(w.observations))),
        ),
    }
}

/// Two decimals where they are exact; otherwise all of them, so that a value just below its
/// threshold does not look as if it had reached it.
fn format_exact(value: f64) -> String {
    let short = format!("{value:.2}");
    if short.parse() == Ok(value) { short } else { value.to_string() }
}

#[cfg(test)]
pub(crate) mod tests;
