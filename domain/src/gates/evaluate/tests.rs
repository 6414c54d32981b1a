//! Tests every gate for every caller, and that no order of events raises a disposition above what its gates allow.

use super::*;
use crate::action::plan::Plan;
use crate::gates::landing::{LandingFacts, LandingSettings};
use crate::gates::matter_policy::{MatterPolicyUsage, QuietHours};
use crate::gates::mode::Mode;
use crate::gates::source_budget::SourceSpending;
use crate::record::entity::RecordState;
use crate::steward::decide::tests::{Wide, live, live_plan, path};
use crate::trust::demotion::{ChangeSupporter, ModeCap, ModeCaps};
use crate::trust::mark::TrustSubject;
use proptest::prelude::*;
use proptest::sample::select;

const DONE: Mutation = Mutation::StateChange { to: RecordState::Done };

fn noon() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// Facts with which every gate is open. A test changes one of them.
#[derive(Clone, Debug)]
struct OpenFacts {
    caller_says_shadow: bool,
    policy: DecisionPolicy,
    confidence: f64,
    observations: u32,
    ceiling: Ceiling,
    passed_over: bool,
    note: MatterPolicy,
    live_per_source_day: u32,
    demoted_to: Mode,
    spent_under_matter: u32,
}

impl OpenFacts {
    fn new() -> Self {
        Self {
            caller_says_shadow: false,
            policy: live(),
            confidence: 0.9,
            observations: 60,
            ceiling: Ceiling::Act,
            passed_over: false,
            note: MatterPolicy::default(),
            live_per_source_day: 20,
            demoted_to: Mode::Live,
            spent_under_matter: 0,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut facts = Self::new();
        change(&mut facts);
        facts
    }

    fn evaluate(&self) -> GateEvaluation {
        let weight = EvidenceWeight { source: "gmail", confidence: self.confidence, observations: self.observations };
        let facts = ChangeFacts {
            mutation: Some(&DONE),
            is_shadow_requested: self.caller_says_shadow,
            policy: &self.policy,
            confidence: self.confidence,
            evidence: &[weight],
            sources: &["gmail"],
            ceiling: self.ceiling,
            clerk_call: ClerkCall::Reserved,
            passed_over: self.passed_over,
            matter_policies: &[&self.note],
            at: noon(),
        };
        facts.evaluate()
    }

    fn land(&self, plan: Plan) -> Plan {
        let cap = ModeCap { mode: Some(self.demoted_to), since: noon(), seq: 1 };
        let facts = LandingFacts {
            ceiling: self.ceiling,
            supporters: vec![ChangeSupporter { key: "gmail".into(), name: "gmail".into(), is_unknown: false }],
            mode_caps: ModeCaps::from([(TrustSubject::Source("gmail".into()), cap)]),
            spendings: vec![SourceSpending { source: "gmail".into(), changes: 3, unknown_changes: None }],
            matter_policies: vec![MatterPolicyUsage {
                matter: path("matter/house.md"),
                policy: self.note.clone(),
                spent: self.spent_under_matter,
            }],
        };
        let settings = LandingSettings { policy: &self.policy, live_per_source_day: self.live_per_source_day };
        plan.hold_at_landing(settings, &facts, noon())
    }

    fn confirms(&self) -> bool {
        let class = self.policy.class_ceiling(MutationClass::StateChange);
        allows_confirmation(self.ceiling.min(class), Some(&DONE), &[&self.note])
    }

    fn replay(&self) -> Disposition {
        let recorded = ClosedGates::from_gates(&OpenFacts::new().evaluate().gates);
        let ceiling = self.ceiling.min(self.policy.class_ceiling(MutationClass::StateChange));
        replay_closed_gates(recorded, &self.policy, self.confidence, ceiling).decide_disposition(true)
    }
}

fn closed(gates: &[GateResult]) -> Vec<GateName> {
    gates.iter().filter(|gate| !gate.open).map(|gate| gate.gate).collect()
}

/// The outcome of closing one gate, for each caller. `None` if the caller does not evaluate the gate.
struct GateRow {
    gate: GateName,
    facts: OpenFacts,
    /// The disposition that a tick and the router decide.
    decided: Option<Disposition>,
    /// The disposition of a plan that was decided with every gate open, when it is applied.
    landed: Option<Disposition>,
    /// Whether a person may confirm the proposal.
    confirmable: bool,
    /// The disposition of a recorded decision under other settings.
    replayed: Option<Disposition>,
}

impl GateRow {
    /// A gate that leaves the change pending if it is closed, both when it is decided and when it is applied.
    fn waits(gate: GateName, change: fn(&mut OpenFacts)) -> Self {
        let pending = Some(Disposition::Pending);
        let facts = OpenFacts::with(change);
        Self { gate, facts, decided: pending, landed: pending, confirmable: true, replayed: None }
    }

    fn only_when_decided(self) -> Self {
        Self { landed: None, ..self }
    }

    fn only_at_landing(self) -> Self {
        Self { decided: None, ..self }
    }

    fn replayed_too(self) -> Self {
        Self { replayed: self.decided, ..self }
    }

    fn unconfirmable(self) -> Self {
        Self { confirmable: false, ..self }
    }

    fn shadow(self) -> Self {
        let shadow = |held: Option<Disposition>| held.map(|_| Disposition::Shadow);
        Self { decided: shadow(self.decided), landed: shadow(self.landed), ..self }
    }
}

fn list_gate_rows() -> Vec<GateRow> {
    use GateName as Gate;
    let waits: fn(GateName, fn(&mut OpenFacts)) -> GateRow = GateRow::waits;
    vec![
        waits(Gate::Caller, |f| f.caller_says_shadow = true).shadow().only_when_decided(),
        waits(Gate::Mode, |f| f.policy.mode = Mode::Shadow).shadow().replayed_too(),
        waits(Gate::Confidence, |f| f.policy.confidence_threshold = 0.99).replayed_too(),
        waits(Gate::Discretion, |f| f.observations = 0).only_when_decided(),
        waits(Gate::Ceiling, |f| f.ceiling = Ceiling::Confirm).replayed_too(),
        waits(Gate::Ceiling, |f| f.policy.state_change_ceiling = Ceiling::Ask).replayed_too().unconfirmable(),
        waits(Gate::Ceiling, |f| f.note.ceiling = Some(Ceiling::Ask)).unconfirmable(),
        waits(Gate::Steward, |f| f.passed_over = true).only_when_decided(),
        waits(Gate::SourceBudget, |f| f.live_per_source_day = 3).only_at_landing(),
        waits(Gate::Trust, |f| f.demoted_to = Mode::Shadow).shadow().only_at_landing(),
        waits(Gate::Policy, |f| f.note.classes = Some(Vec::new())).unconfirmable(),
        waits(Gate::Policy, |f| f.note.fields = Some(vec!["name".into()])).unconfirmable(),
        waits(Gate::Policy, |f| f.note.trusted_sources = Some(vec!["bank".into()])),
        waits(Gate::Policy, |f| f.note.quiet_hours = QuietHours::parse("11:00-13:00").ok()),
        waits(Gate::Policy, |f| {
            f.note.daily_budget = Some(2);
            f.spent_under_matter = 2;
        })
        .only_at_landing(),
    ]
}

#[test]
fn every_gate_holds_every_caller_that_evaluates_it() {
    use Disposition::Live;
    let open = OpenFacts::new();
    assert_eq!((open.evaluate().disposition, closed(&open.evaluate().gates)), (Live, vec![]));
    assert_eq!(open.land(live_plan()).disposition(), Live);
    for GateRow { gate, facts, decided, landed, confirmable, replayed } in list_gate_rows() {
        let evaluation = facts.evaluate();
        assert_eq!(evaluation.disposition, decided.unwrap_or(Live), "{gate:?} decided: {:?}", evaluation.gates);
        assert_eq!(closed(&evaluation.gates).contains(&gate), decided.is_some(), "{gate:?}: {:?}", evaluation.gates);
        assert_eq!(evaluation.is_confirmable, confirmable, "{gate:?}");
        assert_eq!(facts.confirms(), confirmable, "{gate:?} confirmed");
        // The plan was decided when the gate was still open.
        let plan = facts.land(live_plan());
        assert_eq!(plan.disposition(), landed.unwrap_or(Live), "{gate:?} landed: {:?}", plan.draft().gates);
        assert_eq!(closed(&plan.draft().gates).contains(&gate), landed.is_some(), "{gate:?}");
        if landed.is_some() {
            assert_eq!(plan.draft().confirmable, confirmable, "{gate:?} confirmable when landed");
        }
        assert_eq!(facts.replay(), replayed.unwrap_or(Live), "{gate:?} replayed");
    }
    // The rate guard refuses before a clerk is asked, so its gate is never closed in a decision. Under a stop nothing
    // is recorded.
    let rate_guard = |facts: &OpenFacts| facts.evaluate().gates.iter().any(|g| g.gate == GateName::RateGuard && g.open);
    assert!(rate_guard(&open));
}

#[test]
fn a_decision_that_changes_nothing_is_only_recorded() {
    let policy = live();
    let facts = ChangeFacts {
        mutation: None,
        is_shadow_requested: false,
        policy: &policy,
        confidence: 0.9,
        evidence: &[],
        sources: &[],
        ceiling: Ceiling::Act,
        clerk_call: ClerkCall::Remembered,
        passed_over: false,
        matter_policies: &[],
        at: noon(),
    };
    assert_eq!(facts.evaluate().disposition, Disposition::Recorded);
}

prop_compose! {
    fn any_facts()(
        mode in select(&[Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live][..]),
        threshold in 0.0..1.0_f64,
        above in 0.0..1.0_f64,
        ceilings in prop::array::uniform3(select(&[Ceiling::Ask, Ceiling::Confirm, Ceiling::Act, Ceiling::Act][..])),
        classes in any::<bool>(),
        trusted in any::<bool>(),
        budgets in (0..6_u32, 0..3_u32),
        demoted_to in select(&[Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live, Mode::Live][..]),
    ) -> OpenFacts {
        OpenFacts::with(|f| {
            f.policy.mode = mode;
            f.policy.confidence_threshold = threshold;
            // The configuration refuses a high threshold below the other one.
            f.policy.high_confidence_threshold = threshold + (1.0 - threshold) * above;
            f.ceiling = ceilings[0];
            f.policy.state_change_ceiling = ceilings[1];
            f.note.ceiling = Some(ceilings[2]);
            f.note.classes = (!classes).then(Vec::new);
            f.note.trusted_sources = (!trusted).then(|| vec!["bank".to_owned()]);
            f.live_per_source_day = budgets.0;
            f.note.daily_budget = Some(budgets.1);
            f.spent_under_matter = 1;
            f.demoted_to = demoted_to;
        })
    }
}

proptest! {
    /// A plan is decided under some facts and applied under others, once or twice. Its disposition is never higher than
    /// any of them allows, whatever their order. A live plan has no closed gate.
    #[test]
    fn nothing_lands_livelier_than_the_gates_say(
        decided in any_facts(),
        first in any_facts(),
        second in any_facts(),
        confidence in 0.0..1.0_f64,
    ) {
        let plan = Wide::with(|w| {
            w.policy = decided.policy.clone();
            w.verdict.confidence = confidence;
        })
        .decide();
        let allowed = |facts: &OpenFacts| {
            let before = Wide::with(|w| w.verdict.confidence = confidence.max(0.6)).decide();
            prop_assert_eq!(before.disposition(), Disposition::Live);
            let mut sure = before;
            sure.draft.confidence = confidence;
            Ok(facts.land(sure).disposition())
        };
        let (one, two) = (allowed(&first)?, allowed(&second)?);
        let landed = first.land(plan.clone());
        prop_assert!(landed.disposition() <= plan.disposition());
        prop_assert!(landed.disposition() != Disposition::Live || one == Disposition::Live, "live over {one:?}");
        // Trust and budgets concern live changes only, so they do not hold again a plan that the settings made pending.
        let mut settings_only = first.clone();
        settings_only.demoted_to = Mode::Live;
        settings_only.live_per_source_day = u32::MAX;
        settings_only.note = MatterPolicy::default();
        let by_settings = allowed(&settings_only)?;
        prop_assert!(landed.disposition() <= by_settings, "{:?} over {by_settings:?}", landed.disposition());
        let again = second.land(landed.clone());
        prop_assert!(again.disposition() <= landed.disposition());
        prop_assert!(landed.disposition() != Disposition::Live || again.disposition() <= two);
        let turned = first.land(second.land(plan.clone()));
        prop_assert_eq!(again.disposition() == Disposition::Live, turned.disposition() == Disposition::Live);
        for end in [landed, again, turned] {
            let is_live = end.disposition() == Disposition::Live;
            prop_assert!(!is_live || closed(&end.draft().gates).is_empty(), "{:?}", end.draft().gates);
            prop_assert!(!end.draft().confirmable || decided.policy.state_change_ceiling > Ceiling::Ask);
        }
    }
}
