//! Turns a message into a plan with the real rules of the domain.
//!
//! Only the clerk's answer is simulated: it repeats the signal with the signal's own confidence. Everything else is
//! real. [`decide`](decide()) evaluates the gates for state changes, [`plan_signal_route`] for the other classes. Pure:
//! it must not write; [`crate::simulate::vault`] applies the plans.

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

/// How long after the steward's record the router's record of a message is dated: 2 ms.
const ROUTED_AFTER: TimeDelta = TimeDelta::milliseconds(2);

/// A message with its signal and the record that it is about.
pub(super) struct SimulatedSignal<'a> {
    message: &'a SimulatedMessage,
    pub(super) target: RecordPath,
    pub(super) matter: RecordPath,
    pub(super) mutation: Mutation,
    pub(super) reference: RecordPath,
    pub(super) signal: Signal,
}

/// The state of the vault when a message is judged.
pub(super) struct SimulatedSignalContext<'a> {
    /// The target's file.
    pub(super) bytes: &'a [u8],
    /// The observations of its source.
    pub(super) observations: u32,
    pub(super) policy: &'a DecisionPolicy,
}

impl<'a> SimulatedSignal<'a> {
    pub(super) fn new(
        message: &'a SimulatedMessage,
        target: RecordPath,
        matter: RecordPath,
        mutation: Mutation,
    ) -> Result<Self, PathError> {
        let stream = message.source.name.split(':').next().unwrap_or_default();
        let text = compose_text(message, &mutation);
        let event = ActionId::derive(&["event", message.source.name, &text, &message.number.to_string()]);
        let event = RecordPath::new(RecordKind::Stream, &format!("{stream}/{event}"))?;
        let signal = Signal {
            created: message.at,
            source_event: Some(event.clone()),
            origin_at: Some(message.at - TimeDelta::seconds(40)),
            source_type: message.source.name.to_owned(),
            raw_quote: text,
            target: Some(target.clone()),
            target_kind: target.folder_kind().unwrap_or(RecordKind::Task),
            target_confidence: message.target_confidence,
            candidates: Vec::new(),
            effect: SignalEffect::Mutation,
            proposal: Some(mutation.clone()),
            effect_confidence: message.effect_confidence,
            reasoning: "Simulated: the message says so itself.".into(),
            status: SignalStatus::Unrouted,
            reason: None,
        };
        let reference = Signal::record_path(&event, &signal.raw_quote, message.at)?;
        Ok(Self { message, target, matter, mutation, reference, signal })
    }

    /// The lower of the two confidences: in the target and in the effect.
    fn combined_confidence(&self) -> f64 {
        self.message.target_confidence.min(self.message.effect_confidence)
    }

    fn workflow_ref(&self, kind: &str) -> WorkflowRef {
        let number = self.message.number.to_string();
        let run_id = ActionId::derive(&["simulated", kind, &number, self.message.source.name]).to_string();
        WorkflowRef { id: format!("simulated-{kind}"), run_id }
    }

    /// The plan of the target's steward. A steward judges only states: for the other classes its plan changes nothing.
    pub(super) fn decide_plan(&self, context: &SimulatedSignalContext<'_>) -> Plan {
        let check = self.build_check(context);
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
            reasoning: "Simulated, no model was asked: one signal supports it.".into(),
            evidence: vec![self.reference.clone()],
            source_contributions: BTreeMap::from([(
                self.message.source.name.to_owned(),
                self.message.effect_confidence,
            )]),
        };
        let clerk = ClerkMark {
            provider: "simulated".into(),
            model: "month-1".into(),
            prompt_sha256: ContentHash::hash_bytes(&check.question.evidence_bytes()).as_str().to_owned(),
            ..ClerkMark::default()
        };
        decide(&Judging {
            matter_policy: None,
            check: &check,
            policy: context.policy,
            verdict: &verdict,
            clerk: &clerk,
            caller_says_shadow: false,
            workflow: self.workflow_ref("tick"),
            at: self.message.at,
        })
    }

    fn build_check(&self, context: &SimulatedSignalContext<'_>) -> TaskCheck {
        let proposed_state = self.signal.proposed_state();
        let evidence = SignalEvidence {
            source: self.message.source.name.to_owned(),
            reference: self.reference.clone(),
            note: self.signal.clerk_note(),
            created: self.message.at,
            effect: SignalEffect::Mutation,
            proposed_state,
            target_confidence: self.message.target_confidence,
            effect_confidence: self.message.effect_confidence,
            observations: context.observations,
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
            description_hash: None,
            last_decision: None,
        };
        let question = ClerkQuestion { subject, evidence: vec![evidence], complaint: None, asked_at: self.message.at };
        let before = ContentHash::hash_bytes(context.bytes);
        TaskCheck {
            question,
            before,
            state_as_written: Some("open".into()),
            matter_ceiling: Ceiling::Act,
            further_policies: Vec::new(),
            known_verdict: None,
        }
    }

    /// The plan of the router.
    pub(super) fn route_signal(&self, context: &SimulatedSignalContext<'_>) -> anyhow::Result<Plan> {
        let target = RouteTarget {
            path: self.target.clone(),
            kind: self.signal.target_kind,
            parent: Some(self.matter.clone()),
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::hash_bytes(context.bytes),
            fields: frontmatter::read_document(context.bytes)?.fields().clone(),
            is_writable: true,
        };
        let at: DateTime<Utc> = self.message.at + ROUTED_AFTER;
        let routed = plan_signal_route(&RouteCase {
            matter_policies: &[],
            reference: &self.reference,
            signal: &self.signal,
            target: Some(&target),
            new_parent: Some(RecordState::Open),
            claim: None,
            weighing: StewardWeighing::Done,
            doubt: None,
            observations: context.observations,
            ceiling: Ceiling::Act,
            policy: context.policy,
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

/// The text of a message.
fn compose_text(message: &SimulatedMessage, mutation: &Mutation) -> String {
    let number = message.number;
    match mutation {
        Mutation::StateChange { .. } => message.source.message.replace("{}", &number.to_string()),
        Mutation::ContextEdit { to, .. } => format!("Note {number}: {to}"),
        Mutation::ParentMatter { to } => format!("Note {number}: this belongs to {}", to.slug()),
        Mutation::Related { member, .. } => format!("Note {number}: {member} has to do with it"),
    }
}
