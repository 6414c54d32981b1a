//! Tests each gate closed alone, its threshold, and what the record shows.

use super::*;
use crate::action::mutation::MutationClass;
use crate::action::plan::ContentHash;
use crate::gates::mode::Ceiling;
use crate::gates::result::GateName;
use crate::record::entity::{SignalEffect, SurfaceClass};
use crate::record::path::RecordPath;
use crate::steward::clerk::{ClerkQuestion, Judgement, QuestionSubject, TokenUsage};
use std::collections::BTreeMap;

pub(crate) fn at(text: &str) -> DateTime<Utc> {
    crate::time::parse(text).unwrap()
}

pub(crate) fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

pub(crate) fn evidence(source: &str, effect_confidence: f64, observations: u32) -> SignalEvidence {
    SignalEvidence {
        source: source.into(),
        reference: path(&format!("signal/2026-11-20-{source}.md")),
        note: "the invoice has been paid".into(),
        created: at("2026-11-20T08:00:00Z"),
        effect: SignalEffect::Mutation,
        proposed_state: Some(RecordState::Done),
        target_confidence: 0.97,
        effect_confidence,
        observations,
        ceiling: Ceiling::Act,
    }
}

pub(crate) fn build_check(bytes: &[u8], state_as_written: Option<&str>, evidence: Vec<SignalEvidence>) -> TaskCheck {
    let subject = QuestionSubject {
        task: path("task/pay-invoice.md"),
        task_name: "Pay the invoice".into(),
        matter: path("matter/house.md"),
        matter_name: "The house".into(),
        state: RecordState::parse(state_as_written.unwrap_or("open")).unwrap(),
        surface_class: SurfaceClass::Normal,
        due: None,
        description_hash: None,
        last_decision: None,
    };
    let question = ClerkQuestion { subject, evidence, complaint: None, asked_at: at("2026-11-21T09:00:00Z") };
    TaskCheck {
        question,
        before: ContentHash::hash_bytes(bytes),
        state_as_written: state_as_written.map(str::to_owned),
        matter_ceiling: Ceiling::Act,
        further_policies: Vec::new(),
        known_verdict: None,
    }
}

pub(crate) fn verdict(decision: Judgement, confidence: f64, check: &TaskCheck) -> Verdict {
    let given = &check.question.evidence;
    Verdict {
        decision,
        confidence,
        reasoning: "the payment is confirmed".into(),
        evidence: given.iter().map(|e| e.reference.clone()).collect(),
        source_contributions: given.iter().map(|e| (e.source.clone(), 0.8)).collect(),
    }
}

pub(crate) fn clerk() -> ClerkMark {
    ClerkMark {
        provider: "rules".into(),
        model: "rules-1".into(),
        server: String::new(),
        prompt_sha256: "ab".repeat(32),
        tokens: TokenUsage { prompt_tokens: 12, completion_tokens: 3 },
        fallback: false,
        cached: false,
    }
}

pub(crate) fn run(id: &str) -> WorkflowRef {
    WorkflowRef { id: "al-steward-house".into(), run_id: id.into() }
}

pub(crate) fn live() -> DecisionPolicy {
    DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() }
}

/// A case in which every gate is open. A test closes one.
#[derive(Clone)]
pub(crate) struct Wide {
    pub(crate) check: TaskCheck,
    pub(crate) policy: DecisionPolicy,
    pub(crate) verdict: Verdict,
    pub(crate) caller_says_shadow: bool,
}

impl Wide {
    fn open() -> Self {
        let check = build_check(b"bytes", Some("open"), vec![evidence("gmail", 0.97, 60)]);
        let verdict = verdict(Judgement::LikelyDone, 0.9, &check);
        Self { check, policy: live(), verdict, caller_says_shadow: false }
    }

    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut wide = Self::open();
        change(&mut wide);
        wide
    }

    pub(crate) fn decide(&self) -> Plan {
        decide(&DecisionCase {
            check: &self.check,
            policy: &self.policy,
            matter_policy: None,
            verdict: &self.verdict,
            clerk: &clerk(),
            caller_says_shadow: self.caller_says_shadow,
            workflow: run("run-1"),
            at: at("2026-11-21T09:30:15.123Z"),
        })
    }

    fn ends(&self) -> (Disposition, Vec<GateName>) {
        let plan = self.decide();
        let closed = plan.draft().gates.iter().filter(|g| !g.open).map(|g| g.gate).collect();
        (plan.disposition(), closed)
    }
}

/// A plan with every gate open.
pub(crate) fn live_plan() -> Plan {
    Wide::open().decide()
}

/// The same plan in shadow.
pub(crate) fn shadow_plan() -> Plan {
    Wide::with(|w| w.policy.mode = Mode::Shadow).decide()
}

#[test]
fn with_every_gate_open_the_change_is_made() {
    let plan = Wide::open().decide();
    assert_eq!(plan.disposition(), Disposition::Live);
    assert!(plan.has_record_change());
    let draft = plan.draft();
    let gates: Vec<GateName> = draft.gates.iter().map(|g| g.gate).collect();
    let all = [
        GateName::Caller,
        GateName::Mode,
        GateName::Confidence,
        GateName::Discretion,
        GateName::Ceiling,
        GateName::RateGuard,
    ];
    assert_eq!(gates, all);
    assert!(draft.gates.iter().all(|g| g.open));
    assert_eq!((draft.class, draft.proposed_state), (Some(MutationClass::StateChange), Some(RecordState::Done)));
    assert!(!draft.pending_confirmation && draft.confirmable);
}

type Change = fn(&mut Wide);

#[test]
fn each_gate_closed_alone_lands_as_the_table_says() {
    let table: [(&str, Change, Disposition, &[GateName]); 9] = [
        ("the caller says shadow", |w| w.caller_says_shadow = true, Disposition::Shadow, &[GateName::Caller]),
        ("the mode is shadow", |w| w.policy.mode = Mode::Shadow, Disposition::Shadow, &[GateName::Mode]),
        ("confidence is low", |w| w.verdict.confidence = 0.59, Disposition::Pending, &[GateName::Confidence]),
        (
            "the source is not trusted so far, and 0.97 clears the strictest threshold",
            |w| w.check.question.evidence[0].observations = 4,
            Disposition::Live,
            &[],
        ),
        (
            "the evidence is weak",
            |w| w.check.question.evidence[0].effect_confidence = 0.74,
            Disposition::Pending,
            &[GateName::Discretion],
        ),
        ("no evidence is named", |w| w.verdict.evidence.clear(), Disposition::Pending, &[GateName::Discretion]),
        (
            "the matter says confirm",
            |w| w.check.matter_ceiling = Ceiling::Confirm,
            Disposition::Pending,
            &[GateName::Ceiling],
        ),
        (
            "the source says ask",
            |w| w.check.question.evidence[0].ceiling = Ceiling::Ask,
            Disposition::Pending,
            &[GateName::Ceiling],
        ),
        (
            "the class says confirm",
            |w| w.policy.state_change_ceiling = Ceiling::Confirm,
            Disposition::Pending,
            &[GateName::Ceiling],
        ),
    ];
    for (what, change, disposition, gates) in table {
        assert_eq!(Wide::with(change).ends(), (disposition, gates.to_vec()), "{what}");
    }
}

#[test]
fn confidence_counts_from_its_threshold_on() {
    let cases = [
        (Mode::Live, 0.599_999, Disposition::Pending),
        (Mode::Live, 0.60, Disposition::Live),
        (Mode::LiveHighConfidenceOnly, 0.60, Disposition::Pending),
        (Mode::LiveHighConfidenceOnly, 0.849_999, Disposition::Pending),
        (Mode::LiveHighConfidenceOnly, 0.85, Disposition::Live),
        (Mode::Live, 1.0, Disposition::Live),
        (Mode::Live, 0.0, Disposition::Pending),
    ];
    for (mode, confidence, disposition) in cases {
        let wide = Wide::with(|w| {
            w.policy.mode = mode;
            w.verdict.confidence = confidence;
        });
        assert_eq!(wide.ends().0, disposition, "{mode:?} at {confidence}");
    }
}

#[test]
fn discretion_steps_down_as_a_source_proves_right() {
    for (observations, threshold) in
        [(0, 0.95), (4, 0.95), (5, 0.90), (9, 0.90), (10, 0.85), (19, 0.85), (20, 0.80), (49, 0.80), (50, 0.75)]
    {
        for (effect_confidence, disposition) in
            [(threshold, Disposition::Live), (threshold - 0.001, Disposition::Pending)]
        {
            let wide = Wide::with(|w| {
                w.check.question.evidence = vec![evidence("gmail", effect_confidence, observations)];
            });
            assert_eq!(wide.ends().0, disposition, "{effect_confidence} with {observations} observations");
        }
    }
}

#[test]
fn the_weakest_named_evidence_decides_and_is_shown() {
    let wide = Wide::with(|w| {
        w.check.question.evidence = vec![evidence("gmail", 0.99, 60), evidence("slack", 0.90, 0)];
        w.verdict = verdict(Judgement::LikelyDone, 0.9, &w.check);
    });
    assert_eq!(wide.ends(), (Disposition::Pending, vec![GateName::Discretion]));
    let plan = wide.decide();
    let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::Discretion).unwrap();
    assert_eq!((gate.found.as_str(), gate.needed.as_str()), ("0.90 from slack (0 observations)", ">= 0.95"));
}

#[test]
fn what_a_signal_is_about_weighs_as_much_as_what_it_says() {
    let wide = Wide::with(|w| w.check.question.evidence[0].target_confidence = 0.74);
    assert_eq!(wide.ends(), (Disposition::Pending, vec![GateName::Discretion]));
    let plan = wide.decide();
    let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::Discretion).unwrap();
    assert_eq!((gate.found.as_str(), gate.needed.as_str()), ("0.74 from gmail (60 observations)", ">= 0.75"));
}

#[test]
fn evidence_of_something_else_does_not_open_the_gate_for_a_change() {
    let others: [Change; 4] = [
        |w| w.check.question.evidence[0].proposed_state = Some(RecordState::Archived),
        |w| w.check.question.evidence[0].proposed_state = None,
        |w| w.check.question.evidence[0].effect = SignalEffect::Action,
        |w| w.verdict.decision = Judgement::StaleArchiveCandidate,
    ];
    for change in others {
        let wide = Wide::with(change);
        assert_eq!(wide.ends(), (Disposition::Pending, vec![GateName::Discretion]));
        let plan = wide.decide();
        let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::Discretion).unwrap();
        assert_eq!(gate.found, "no evidence");
        assert_eq!(plan.draft().evidence.len(), 1, "it is cited all the same");
    }
    let beside = Wide::with(|w| {
        let mut other = evidence("slack", 0.1, 0);
        other.proposed_state = Some(RecordState::Archived);
        w.check.question.evidence.push(other);
        w.verdict = verdict(Judgement::LikelyDone, 0.9, &w.check);
    });
    assert_eq!(beside.ends(), (Disposition::Live, vec![]), "the one that says so carries it");
}

#[test]
fn a_matter_is_judged_like_a_task() {
    let wide = Wide::with(|w| w.check.question.subject.task = path("matter/house.md"));
    let plan = wide.decide();
    assert_eq!((plan.disposition(), plan.target().as_str()), (Disposition::Live, "matter/house.md"));
    let name = plan.draft().record_path().unwrap();
    assert!(name.as_str().starts_with("event/steward-action-20261121T093015123Z-house-"), "{name}");
    let task = Wide::with(|w| w.check.question.subject.task = path("task/house.md")).decide();
    assert_ne!(task.draft().record_path().unwrap(), name, "its task of the same name has its own record");
}

#[test]
fn evidence_the_verdict_does_not_rest_on_closes_nothing_and_is_not_cited() {
    let wide = Wide::with(|w| {
        let mut other = evidence("slack", 0.1, 0);
        other.ceiling = Ceiling::Ask;
        w.check.question.evidence.push(other);
    });
    assert_eq!(wide.ends(), (Disposition::Live, vec![]));
    assert_eq!(wide.decide().draft().evidence.len(), 1);
}

#[test]
fn the_lowest_of_the_three_ceilings_counts() {
    let all = [Ceiling::Ask, Ceiling::Confirm, Ceiling::Act];
    for source in all {
        for matter in all {
            for class in all {
                let wide = Wide::with(|w| {
                    w.check.question.evidence[0].ceiling = source;
                    w.check.matter_ceiling = matter;
                    w.policy.state_change_ceiling = class;
                });
                let plan = wide.decide();
                let lowest = source.min(matter).min(class);
                let disposition = if lowest == Ceiling::Act { Disposition::Live } else { Disposition::Pending };
                assert_eq!(plan.disposition(), disposition, "{source:?} {matter:?} {class:?}");
                assert_eq!(plan.draft().confirmable, lowest > Ceiling::Ask, "{source:?} {matter:?} {class:?}");
                assert_eq!(plan.draft().pending_confirmation, disposition == Disposition::Pending);
            }
        }
    }
}

#[test]
fn shadow_wins_over_pending_and_nothing_waits_for_an_answer_then() {
    let wide = Wide::with(|w| {
        w.policy.mode = Mode::Shadow;
        w.verdict.confidence = 0.1;
    });
    let plan = wide.decide();
    assert_eq!(plan.disposition(), Disposition::Shadow);
    assert!(!plan.draft().pending_confirmation && !plan.has_record_change());
    assert_eq!(wide.ends().1, [GateName::Mode, GateName::Confidence], "closed gates are all shown");
}

#[test]
fn a_decision_that_proposes_nothing_is_recorded_in_every_mode() {
    for decision in [Judgement::StillActive, Judgement::NeedsInput] {
        for mode in [Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live] {
            for shadow in [false, true] {
                let wide = Wide::with(|w| {
                    w.policy.mode = mode;
                    w.verdict.decision = decision;
                    w.caller_says_shadow = shadow;
                });
                let plan = wide.decide();
                assert_eq!(plan.disposition(), Disposition::Recorded, "{decision:?} {mode:?}");
                assert!(!plan.has_record_change() && !plan.draft().pending_confirmation);
                assert_eq!((plan.draft().class, plan.draft().proposed_state), (None, None));
            }
        }
    }
}

#[test]
fn a_state_that_is_reached_already_is_recorded_and_not_written_again() {
    for (written, decision) in [
        ("done", Judgement::LikelyDone),
        ("DONE", Judgement::LikelyDone),
        ("archived", Judgement::StaleArchiveCandidate),
    ] {
        let wide = Wide::with(|w| {
            w.check = build_check(b"bytes", Some(written), vec![evidence("gmail", 0.97, 60)]);
            w.verdict = verdict(decision, 0.9, &w.check);
        });
        let plan = wide.decide();
        assert_eq!((plan.disposition(), plan.has_record_change()), (Disposition::Recorded, false), "{written}");
        assert_eq!(plan.draft().prior_state.as_deref(), Some(written));
    }
}

#[test]
fn a_value_just_below_its_threshold_is_not_shown_as_if_it_had_reached_it() {
    let plan = Wide::with(|w| w.verdict.confidence = 0.599_999).decide();
    let gate = plan.draft().gates.iter().find(|g| g.gate == GateName::Confidence).unwrap();
    assert_eq!((gate.found.as_str(), gate.needed.as_str()), ("0.599999", ">= 0.60"));
}

#[test]
fn the_id_is_the_same_for_every_try_of_a_run_and_differs_between_runs_and_tasks() {
    let wide = Wide::open();
    assert_eq!(wide.decide().id(), wide.decide().id());
    let mut ids = BTreeMap::new();
    for task in ["task/a.md", "task/b.md"] {
        for run_id in ["run-1", "run-2"] {
            let id = ActionId::derive(&["act", run_id, task]);
            assert!(ids.insert(id, ()).is_none());
        }
    }
}

#[test]
fn the_same_case_always_gives_the_same_plan() {
    let wide = Wide::open();
    assert_eq!(wide.decide(), wide.decide());
    let json = serde_json::to_string(&wide.decide()).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), wide.decide());
}

#[test]
fn a_cited_signal_speaks_only_for_what_it_says() {
    let wide = Wide::with(|w| {
        let says =
            |name: &str, effect, proposed_state| SignalEvidence { effect, proposed_state, ..evidence(name, 0.97, 60) };
        let all = vec![
            evidence("gmail", 0.97, 60),
            says("other", SignalEffect::Mutation, Some(RecordState::Archived)),
            says("asks", SignalEffect::Action, None),
            // A change of another class proposes no state.
            says("edits", SignalEffect::Mutation, None),
        ];
        w.check = build_check(b"bytes", Some("open"), all);
        w.verdict = verdict(Judgement::LikelyDone, 0.9, &w.check);
    });
    let plan = wide.decide();
    let speaks: Vec<_> = plan.draft().evidence.iter().map(|e| (e.source.as_str(), e.supports)).collect();
    assert_eq!(speaks, [("gmail", true), ("other", false), ("asks", false), ("edits", false)]);
    assert_eq!(plan.draft().supporting_sources().into_keys().collect::<Vec<_>>(), ["gmail"]);
    let mut nothing = wide.clone();
    nothing.verdict.decision = Judgement::StillActive;
    assert!(nothing.decide().draft().evidence.iter().all(|e| e.supports), "there is nothing to speak for");
}

#[test]
fn the_policy_of_another_matter_of_the_task_closes_a_gate_too() {
    let trusts_only =
        |name: &str| MatterPolicy { trusted_sources: Some(vec![name.to_owned()]), ..MatterPolicy::default() };
    let decided = |source: &str| Wide::with(|w| w.check.further_policies = vec![trusts_only(source)]).decide();
    assert_eq!(decided("gmail").disposition(), Disposition::Live);
    assert_eq!(decided("slack").disposition(), Disposition::Pending);
}
