//! From a message to a plan, by the domain's own rules.
//!
//! What a clerk would answer is simulated: it repeats what the signal says, as sure as the signal is. Everything after
//! that is real: [`decide`](decide()) opens the gates for what the steward judges, [`route`](route()) for the other
//! classes. Pure; the plans go to [`crate::simulate::vault`], which lands them.

use super::calendar::SimulatedMessage;
use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, ContentHash, Plan};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{PathError, RecordKind, RecordPath};
use steward_domain::signals::route::{RouteCase, RouteDecision, RouteTarget, StewardWeighing, plan_signal_route};
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_domain::steward::clerk::{ClerkMark, ClerkQuestion, Judgement, QuestionSubject, SignalEvidence, Verdict};
use steward_domain::steward::decide::{DecisionCase as Judging, decide};
use steward_domain::steward::tick::TaskCheck;

/// The router's record of a message lies so long behind the steward's: 2 ms.
const ROUTED_AFTER: TimeDelta = TimeDelta::milliseconds(2);

/// A message as its signal tells it, and the record it is about.
pub(super) struct SimulatedSignal<'a> {
    pub(super) case: &'a SimulatedMessage,
    pub(super) target: RecordPath,
    pub(super) matter: RecordPath,
    pub(super) mutation: Mutation,
    pub(super) reference: RecordPath,
    pub(super) signal: Signal,
}

/// What is known when a message is weighed.
pub(super) struct SimulatedSignalContext<'a> {
    /// The target's file.
    pub(super) bytes: &'a [u8],
    /// How often its source was right before.
    pub(super) observations: u32,
    pub(super) policy: &'a DecisionPolicy,
}

impl<'a> SimulatedSignal<'a> {
    pub(super) fn new(
        case: &'a SimulatedMessage,
        (target, matter): (RecordPath, RecordPath),
        mutation: Mutation,
    ) -> Result<Self, PathError> {
        let stream = case.source.name.split(':').next().unwrap_or_default();
        let words = compose_text(case, &mutation);
        let event = ActionId::derive(&["event", case.source.name, &words, &case.number.to_string()]);
        let event = RecordPath::new(RecordKind::Stream, &format!("{stream}/{event}"))?;
        let signal = Signal {
            created: case.at,
            source_event: Some(event.clone()),
            origin_at: Some(case.at - TimeDelta::seconds(40)),
            source_type: case.source.name.to_owned(),
            raw_quote: words,
            target: Some(target.clone()),
            target_confidence: case.target_confidence,
            candidates: Vec::new(),
            effect: SignalEffect::Mutation,
            proposal: Some(mutation.clone()),
            effect_confidence: case.effect_confidence,
            reasoning: "Simulated: the message says so itself.".into(),
            status: SignalStatus::Unrouted,
            reason: None,
        };
        let reference = Signal::record_path(&event, &signal.raw_quote, case.at)?;
        Ok(Self { case, target, matter, mutation, reference, signal })
    }

    /// No surer than the weaker of what it is about and what it says.
    fn combined_confidence(&self) -> f64 {
        self.case.target_confidence.min(self.case.effect_confidence)
    }

    fn workflow_ref(&self, what: &str) -> WorkflowRef {
        let number = self.case.number.to_string();
        let run_id = ActionId::derive(&["simulated", what, &number, self.case.source.name]).to_string();
        WorkflowRef { id: format!("simulated-{what}"), run_id }
    }

    /// What the target's steward decides. It judges states alone: for the other classes nothing changes by it.
    pub(super) fn decide_plan(&self, known: &SimulatedSignalContext<'_>) -> Plan {
        let look = self.build_check(known);
        let decision = match self.mutation {
            Mutation::StateChange { to: RecordState::Done } => Judgement::LikelyDone,
            Mutation::StateChange { to: RecordState::Archived } => Judgement::StaleArchiveCandidate,
            Mutation::StateChange { to: RecordState::Open }
            | Mutation::ContextEdit { .. }
            | Mutation::ParentMatter { .. }
            | Mutation::Related { .. } => Judgement::StillActive,
        };
        let verdict = Verdict {
            decision,
            confidence: self.combined_confidence(),
            reasoning: "Simulated, no model was asked: one signal speaks of it.".into(),
            evidence: vec![self.reference.clone()],
            source_contributions: BTreeMap::from([(self.case.source.name.to_owned(), self.case.effect_confidence)]),
        };
        let clerk = ClerkMark {
            provider: "simulated".into(),
            model: "month-1".into(),
            prompt_sha256: ContentHash::hash_bytes(&look.question.evidence_bytes()).as_str().to_owned(),
            ..ClerkMark::default()
        };
        decide(&Judging {
            note: None,
            look: &look,
            policy: known.policy,
            verdict: &verdict,
            clerk: &clerk,
            caller_says_shadow: false,
            workflow: self.workflow_ref("tick"),
            at: self.case.at,
        })
    }

    fn build_check(&self, known: &SimulatedSignalContext<'_>) -> TaskCheck {
        let proposed_state = self.signal.proposed_state();
        let evidence = SignalEvidence {
            source: self.case.source.name.to_owned(),
            reference: self.reference.clone(),
            note: self.signal.clerk_note(),
            created: self.case.at,
            effect: SignalEffect::Mutation,
            proposed_state,
            target_confidence: self.case.target_confidence,
            effect_confidence: self.case.effect_confidence,
            observations: known.observations,
            ceiling: Ceiling::Act,
        };
        let subject = QuestionSubject {
            task: self.target.clone(),
            task_name: self.target.slug().to_owned(),
            matter: self.matter.clone(),
            matter_name: self.matter.slug().to_owned(),
            state: RecordState::Open,
            surface_class: SurfaceClass::Normal,
            due: None,
        };
        let question = ClerkQuestion { subject, evidence: vec![evidence], complaint: None, asked_at: self.case.at };
        let before = ContentHash::hash_bytes(known.bytes);
        TaskCheck { question, before, state_as_written: Some("open".into()), matter_ceiling: Ceiling::Act, known: None }
    }

    /// What the router makes of it.
    pub(super) fn route_signal(&self, known: &SimulatedSignalContext<'_>) -> anyhow::Result<Plan> {
        let target = RouteTarget {
            path: self.target.clone(),
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::hash_bytes(known.bytes),
            fields: frontmatter::read_document(known.bytes)?.fields().clone(),
        };
        let at: DateTime<Utc> = self.case.at + ROUTED_AFTER;
        let routed = plan_signal_route(&RouteCase {
            notes: &[],
            reference: &self.reference,
            signal: &self.signal,
            target: Some(&target),
            new_parent: Some(RecordState::Open),
            claim: None,
            weighing: StewardWeighing::Done,
            doubt: None,
            observations: known.observations,
            ceiling: Ceiling::Act,
            policy: known.policy,
            workflow: self.workflow_ref("route"),
            at,
            decided_at: at,
        });
        match routed {
            RouteDecision::Planned(plan) | RouteDecision::QuestionPlanned(plan) => Ok(*plan),
            RouteDecision::Skipped(skip) => bail!("{} is not routed: {}", self.reference, skip.as_str()),
        }
    }
}

/// The message's own words.
fn compose_text(case: &SimulatedMessage, mutation: &Mutation) -> String {
    let number = case.number;
    match mutation {
        Mutation::StateChange { .. } => case.source.says.replace("{}", &number.to_string()),
        Mutation::ContextEdit { to, .. } => format!("Note {number}: {to}"),
        Mutation::ParentMatter { to } => format!("Note {number}: this belongs to {}", to.slug()),
        Mutation::Related { member, .. } => format!("Note {number}: {member} has to do with it"),
    }
}
