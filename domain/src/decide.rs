//! From a checked answer to a plan, through every gate.
//!
//! Pure: the same case always gives the same plan, so that it can run inside a workflow, in a
//! backtest and in a test alike. Every gate is evaluated and kept with the values that decided,
//! also the ones behind a closed one, because the record must show the same values (section 5).

use crate::audit::{ActionKind, AuditDraft, Cited, Proposal, WorkflowRef};
use crate::clerk::{ClerkMark, Evidence, Verdict};
use crate::mode::{Ceiling, Mode, Policy, discretion_threshold};
use crate::mutation::{Mutation, MutationClass};
use crate::note_policy::NotePolicy;
use crate::plan::{ActionId, Basis, Change, Landing, Plan};
use crate::record::{Effect, State};
use crate::tick::Look;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod closed;
pub use closed::Closed;

/// One gate, with the value that was found and the value that was needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    pub gate: GateName,
    pub open: bool,
    pub found: String,
    pub needed: String,
}

/// The gates of section 5.
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
    pub fn word(self) -> &'static str {
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

impl Gate {
    pub(crate) fn new(gate: GateName, open: bool, found: impl Into<String>, needed: impl Into<String>) -> Self {
        Self { gate, open, found: found.into(), needed: needed.into() }
    }
}

/// All that a decision rests on.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    pub look: &'a Look,
    pub policy: &'a Policy,
    /// What the matter's own note allows, if it says anything.
    pub note: Option<&'a NotePolicy>,
    pub verdict: &'a Verdict,
    pub clerk: &'a ClerkMark,
    /// The caller asked for shadow, whatever the mode.
    pub caller_says_shadow: bool,
    pub workflow: WorkflowRef,
    pub at: DateTime<Utc>,
}

/// Decides how a verdict lands and writes the plan for it.
#[must_use]
pub fn decide(case: &Case<'_>) -> Plan {
    let subject = &case.look.question.subject;
    let proposed = case.verdict.decision.proposed_state().filter(|to| *to != subject.state);
    let mutation = proposed.map(|to| Mutation::StateChange { to });
    let written = case.look.state_as_written.clone().map(Value::from);
    let cited = cited(case.look, case.verdict);
    let ceiling = lowest_ceiling(case, &cited);
    let mut gates = gates(case, &cited, (proposed, ceiling));
    if let (Some(note), Some(mutation)) = (case.note, &mutation) {
        let sources: Vec<&str> = cited.iter().map(|e| e.source.as_str()).collect();
        gates.extend(note.gates(mutation, &sources, case.at));
    }
    let forbidden = mutation.as_ref().is_some_and(|m| case.note.is_some_and(|note| note.forbids(m)));
    let landing = Closed::of(&gates).landing(proposed.is_some());
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
        proposal: mutation.clone().map(|mutation| Proposal { mutation, replaces: written.clone() }),
        confirmable: ceiling > Ceiling::Ask && !forbidden,
        pending_confirmation: landing == Landing::Pending,
        evidence: cited.iter().map(|e| Cited { speaks: speaks(e, proposed), ..Cited::from(*e) }).collect(),
        source_contributions: case.verdict.source_contributions.clone(),
        reasoning: case.verdict.reasoning.clone(),
        clerk: Some(case.clerk.clone()),
        workflow: case.workflow.clone(),
        answers: None,
        trust: None,
    };
    Plan {
        draft,
        basis: Basis::Content(case.look.before.clone()),
        change: mutation.map_or(Change::Nothing, |m| Change::of(&m, written.as_ref())),
    }
}

fn cited<'a>(look: &'a Look, verdict: &Verdict) -> Vec<&'a Evidence> {
    let named = |e: &&Evidence| verdict.evidence.contains(&e.reference);
    look.question.evidence.iter().filter(named).collect()
}

/// Whether a signal says what was decided; of a decision that changes nothing there is nothing to say.
fn speaks(evidence: &Evidence, proposed: Option<State>) -> bool {
    proposed.is_none() || (evidence.effect == Effect::Mutation && evidence.proposed_state == proposed)
}

fn lowest_ceiling(case: &Case<'_>, cited: &[&Evidence]) -> Ceiling {
    let sources = cited.iter().map(|e| e.ceiling);
    let class = case.policy.ceiling_of(MutationClass::StateChange);
    let note = case.note.map(NotePolicy::ceiling).unwrap_or_default();
    sources.chain([case.look.matter_ceiling, class, note]).min().unwrap_or_default()
}

fn gates(case: &Case<'_>, cited: &[&Evidence], (proposed, ceiling): (Option<State>, Ceiling)) -> Vec<Gate> {
    let caller = if case.caller_says_shadow { "shadow" } else { "any" };
    let weights: Vec<Weight<'_>> = cited.iter().filter(|e| speaks(e, proposed)).map(|e| Weight::from(*e)).collect();
    let discretion = match proposed {
        Some(_) => discretion(&weights),
        None => Gate::new(GateName::Discretion, true, "no change", "evidence of a change"),
    };
    let asked = if case.clerk.cached { "remembered, no clerk asked" } else { "reserved" };
    vec![
        Gate::new(GateName::Caller, !case.caller_says_shadow, caller, "any"),
        mode(case.policy),
        confidence(case.policy, case.verdict.confidence),
        discretion,
        ceiling_gate(ceiling),
        Gate::new(GateName::RateGuard, true, asked, "reserved where a clerk is asked"),
    ]
}

/// Whether the mode lets anything happen at all.
pub(crate) fn acts(policy: &Policy) -> bool {
    policy.mode > Mode::Shadow
}

/// Least confidence that the mode asks for, 0 to 1.
pub(crate) fn needed_confidence(policy: &Policy) -> f64 {
    match policy.mode {
        Mode::LiveHighConfidenceOnly => policy.high_confidence_threshold,
        Mode::Live | Mode::Shadow => policy.confidence_threshold,
    }
}

pub(crate) fn mode(policy: &Policy) -> Gate {
    Gate::new(GateName::Mode, acts(policy), policy.mode.word(), "live")
}

pub(crate) fn confidence(policy: &Policy, found: f64) -> Gate {
    let needed = needed_confidence(policy);
    Gate::new(GateName::Confidence, found >= needed, shown(found), format!(">= {}", shown(needed)))
}

pub(crate) fn ceiling_gate(ceiling: Ceiling) -> Gate {
    Gate::new(GateName::Ceiling, ceiling == Ceiling::Act, ceiling.word(), "act")
}

/// What one signal weighs: no more than the weaker of what it is about and what it says.
pub(crate) struct Weight<'a> {
    pub(crate) source: &'a str,
    /// 0 to 1.
    pub(crate) confidence: f64,
    pub(crate) observations: u32,
}

impl Weight<'_> {
    fn margin(&self) -> f64 {
        self.confidence - discretion_threshold(self.observations)
    }
}

impl<'a> From<&'a Evidence> for Weight<'a> {
    fn from(e: &'a Evidence) -> Self {
        let confidence = e.target_confidence.min(e.effect_confidence);
        Self { source: &e.source, confidence, observations: e.observations }
    }
}

/// Every signal that says what was decided must clear its source's threshold; the one that misses by
/// most is shown. A change that no cited signal speaks for does not clear it.
pub(crate) fn discretion(weights: &[Weight<'_>]) -> Gate {
    match weights.iter().min_by(|a, b| a.margin().total_cmp(&b.margin())) {
        None => Gate::new(GateName::Discretion, false, "no evidence", "evidence"),
        Some(w) => Gate::new(
            GateName::Discretion,
            w.margin() >= 0.0,
            format!("{} from {} ({} observations)", shown(w.confidence), w.source, w.observations),
            format!(">= {}", shown(discretion_threshold(w.observations))),
        ),
    }
}

/// Two decimals where they are exact; otherwise all of them, so that a value just below its
/// threshold does not look as if it had reached it.
fn shown(value: f64) -> String {
    let short = format!("{value:.2}");
    if short.parse() == Ok(value) { short } else { value.to_string() }
}

#[cfg(test)]
pub(crate) mod tests;
