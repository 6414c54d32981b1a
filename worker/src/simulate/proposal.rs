//! From a message to a plan, by the domain's own rules.
//!
//! What a clerk would answer is simulated: it repeats what the signal says, as sure as the signal is. Everything after
//! that is real: [`decide`](decide()) opens the gates for what the steward judges, [`route`](route()) for the other
//! classes. Pure; the plans go to [`super::house`], which lands them.

use super::calendar::Case;
use anyhow::bail;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use steward_domain::audit::WorkflowRef;
use steward_domain::clerk::{ClerkMark, Evidence, Judgement, Question, Subject, Verdict};
use steward_domain::decide::{Case as Judging, decide};
use steward_domain::frontmatter;
use steward_domain::mode::{Ceiling, Policy};
use steward_domain::mutation::Mutation;
use steward_domain::path::{PathError, RecordKind, RecordPath};
use steward_domain::plan::{ActionId, ContentHash, Plan};
use steward_domain::record::{Effect, State, SurfaceClass};
use steward_domain::route::{Route, RouteCase, Target, Weighing, route};
use steward_domain::signal::{Signal, SignalStatus};
use steward_domain::tick::Look;

/// The router's record of a message lies so long behind the steward's: 2 ms.
const ROUTED_AFTER: TimeDelta = TimeDelta::milliseconds(2);

/// A message as its signal tells it, and the record it is about.
pub(super) struct Said<'a> {
    pub(super) case: &'a Case,
    pub(super) target: RecordPath,
    pub(super) matter: RecordPath,
    pub(super) mutation: Mutation,
    pub(super) reference: RecordPath,
    pub(super) signal: Signal,
}

/// What is known when a message is weighed.
pub(super) struct Known<'a> {
    /// The target's file.
    pub(super) bytes: &'a [u8],
    /// How often its source was right before.
    pub(super) observations: u32,
    pub(super) policy: &'a Policy,
}

impl<'a> Said<'a> {
    pub(super) fn new(
        case: &'a Case,
        (target, matter): (RecordPath, RecordPath),
        mutation: Mutation,
    ) -> Result<Self, PathError> {
        let stream = case.source.name.split(':').next().unwrap_or_default();
        let words = words(case, &mutation);
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
            effect: Effect::Mutation,
            proposal: Some(mutation.clone()),
            effect_confidence: case.effect_confidence,
            reasoning: "Simulated: the message says so itself.".into(),
            status: SignalStatus::Unrouted,
            reason: None,
        };
        let reference = Signal::path(&event, &signal.raw_quote, case.at)?;
        Ok(Self { case, target, matter, mutation, reference, signal })
    }

    /// No surer than the weaker of what it is about and what it says.
    fn strength(&self) -> f64 {
        self.case.target_confidence.min(self.case.effect_confidence)
    }

    fn workflow(&self, what: &str) -> WorkflowRef {
        let number = self.case.number.to_string();
        let run_id = ActionId::derive(&["simulated", what, &number, self.case.source.name]).to_string();
        WorkflowRef { id: format!("simulated-{what}"), run_id }
    }

    /// What the target's steward decides. It judges states alone: for the other classes nothing changes by it.
    pub(super) fn judge(&self, known: &Known<'_>) -> Plan {
        let look = self.look(known);
        let decision = match self.mutation {
            Mutation::StateChange { to: State::Done } => Judgement::LikelyDone,
            Mutation::StateChange { to: State::Archived } => Judgement::StaleArchiveCandidate,
            Mutation::StateChange { to: State::Open }
            | Mutation::ContextEdit { .. }
            | Mutation::ParentMatter { .. }
            | Mutation::Related { .. } => Judgement::StillActive,
        };
        let verdict = Verdict {
            decision,
            confidence: self.strength(),
            reasoning: "Simulated, no model was asked: one signal speaks of it.".into(),
            evidence: vec![self.reference.clone()],
            source_contributions: BTreeMap::from([(self.case.source.name.to_owned(), self.case.effect_confidence)]),
        };
        let clerk = ClerkMark {
            provider: "simulated".into(),
            model: "month-1".into(),
            prompt_sha256: ContentHash::of(&look.question.evidence_bytes()).as_str().to_owned(),
            ..ClerkMark::default()
        };
        decide(&Judging {
            note: None,
            look: &look,
            policy: known.policy,
            verdict: &verdict,
            clerk: &clerk,
            caller_says_shadow: false,
            workflow: self.workflow("tick"),
            at: self.case.at,
        })
    }

    fn look(&self, known: &Known<'_>) -> Look {
        let proposed_state = self.signal.proposed_state();
        let evidence = Evidence {
            source: self.case.source.name.to_owned(),
            reference: self.reference.clone(),
            note: self.signal.note(),
            created: self.case.at,
            effect: Effect::Mutation,
            proposed_state,
            target_confidence: self.case.target_confidence,
            effect_confidence: self.case.effect_confidence,
            observations: known.observations,
            ceiling: Ceiling::Act,
        };
        let subject = Subject {
            task: self.target.clone(),
            task_name: self.target.slug().to_owned(),
            matter: self.matter.clone(),
            matter_name: self.matter.slug().to_owned(),
            state: State::Open,
            surface_class: SurfaceClass::Normal,
            due: None,
        };
        let question = Question { subject, evidence: vec![evidence], complaint: None, asked_at: self.case.at };
        let before = ContentHash::of(known.bytes);
        Look { question, before, state_as_written: Some("open".into()), matter_ceiling: Ceiling::Act, known: None }
    }

    /// What the router makes of it.
    pub(super) fn route(&self, known: &Known<'_>) -> anyhow::Result<Plan> {
        let target = Target {
            path: self.target.clone(),
            state: State::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::of(known.bytes),
            fields: frontmatter::read(known.bytes)?.fields().clone(),
        };
        let at: DateTime<Utc> = self.case.at + ROUTED_AFTER;
        let routed = route(&RouteCase {
            notes: &[],
            reference: &self.reference,
            signal: &self.signal,
            target: Some(&target),
            new_parent: Some(State::Open),
            claim: None,
            weighing: Weighing::Done,
            doubt: None,
            observations: known.observations,
            ceiling: Ceiling::Act,
            policy: known.policy,
            workflow: self.workflow("route"),
            at,
            decided_at: at,
        });
        match routed {
            Route::Planned(plan) | Route::QuestionPlanned(plan) => Ok(*plan),
            Route::Skipped(skip) => bail!("{} is not routed: {}", self.reference, skip.word()),
        }
    }
}

/// The message's own words.
fn words(case: &Case, mutation: &Mutation) -> String {
    let number = case.number;
    match mutation {
        Mutation::StateChange { .. } => case.source.says.replace("{}", &number.to_string()),
        Mutation::ContextEdit { to, .. } => format!("Note {number}: {to}"),
        Mutation::ParentMatter { to } => format!("Note {number}: this belongs to {}", to.slug()),
        Mutation::Related { member, .. } => format!("Note {number}: {member} has to do with it"),
    }
}
