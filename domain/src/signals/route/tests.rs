//! Tests every skip by name, the gates, and that each class of change is made and undone.

mod hostile;

use super::*;
use crate::action::audit::{AuditRecord, ChainLink};
use crate::action::mutation::{ContextField, RelatedField};
use crate::action::undo::{
    ResolutionCase, ResolutionKind, ResolutionRefusal, ResolutionRequest, build_resolution_plan,
};
use crate::gates::landing::tests::land;
use crate::gates::mode::Mode;
use crate::record::frontmatter;
use crate::record::path::parse_link;
use crate::record::schema::NoteAccess;
use crate::steward::decide::tests::{at, live, path, run};
use proptest::prelude::*;
use proptest::sample::select;

const TASK: &str = "---\ntype: task\nname: Pay\nstate: open # since May\nparent_matter: \"[[matter/house]]\" # home\n\
                    related_to:\n  - \"[[Ann]]\" # first\n  - Bob\n---\nbody\n";
const MATTER: &str = "---\ntype: matter\nname: House\nowner: ann # me\ndescription: |\n  two\n  lines\n\
                      related_orgs: [Acme,'B & C' ]\n---\n";
const NOW: &str = "2026-11-21T09:30:15.123Z";

/// A case in which every gate is open. A test changes one thing.
#[derive(Clone)]
pub(crate) struct Wide {
    signal: Signal,
    target: Option<RouteTarget>,
    new_parent: Option<RecordState>,
    claim: Option<SignalClaim>,
    weighing: StewardWeighing,
    doubt: Option<ProposalDoubt>,
    observations: u32,
    ceiling: Ceiling,
    policy: DecisionPolicy,
}

fn target(name: &str, text: &str) -> RouteTarget {
    let fields = frontmatter::read_document(text.as_bytes()).unwrap().fields().clone();
    let state = fields.get("state").and_then(Value::as_str).and_then(RecordState::parse).unwrap_or(RecordState::Open);
    RouteTarget {
        path: path(name),
        kind: path(name).folder_kind().unwrap(),
        parent: fields
            .get("parent_matter")
            .and_then(Value::as_str)
            .and_then(|link| parse_link(RecordKind::Matter, link).ok()),
        state,
        snoozed_until: None,
        has_twin: false,
        hash: ContentHash::hash_bytes(text.as_bytes()),
        fields,
        is_writable: true,
    }
}

impl Wide {
    fn about(name: &str, text: &str, mutation: Mutation) -> Self {
        let signal = Signal {
            created: at("2026-11-20T08:00:00Z"),
            source_event: Some(path("stream/mail/a.md")),
            origin_at: None,
            source_type: "mail:bank".into(),
            raw_quote: "the invoice has been paid".into(),
            target: Some(path(name)),
            target_kind: path(name).folder_kind().unwrap(),
            target_confidence: 0.97,
            candidates: Vec::new(),
            effect: SignalEffect::Mutation,
            proposal: Some(mutation),
            effect_confidence: 0.98,
            reasoning: "the bank says so".into(),
            status: crate::signals::signal::SignalStatus::Unrouted,
            reason: None,
        };
        Self {
            signal,
            target: Some(target(name, text)),
            new_parent: Some(RecordState::Open),
            claim: None,
            weighing: StewardWeighing::Until(at(NOW)),
            doubt: None,
            observations: 0,
            ceiling: Ceiling::Act,
            policy: live(),
        }
    }

    fn open() -> Self {
        Self::about("task/pay.md", TASK, Mutation::StateChange { to: RecordState::Done })
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn route(&self) -> RouteDecision {
        plan_signal_route(&RouteCase {
            reference: &path("signal/a.md"),
            signal: &self.signal,
            target: self.target.as_ref(),
            new_parent: self.new_parent,
            claim: self.claim.as_ref(),
            weighing: self.weighing,
            doubt: self.doubt.as_ref(),
            observations: self.observations,
            ceiling: self.ceiling,
            policy: &self.policy,
            matter_policies: &[],
            workflow: run("run-1"),
            at: at(NOW),
            decided_at: at(NOW),
        })
    }

    fn plan(&self) -> Plan {
        match self.route() {
            RouteDecision::Planned(plan) => *plan,
            other => panic!("not planned: {other:?}"),
        }
    }

    fn skip(&self) -> RouteSkip {
        match self.route() {
            RouteDecision::Skipped(skip) => skip,
            other => panic!("not skipped: {other:?}"),
        }
    }
}

fn related(member: &str, present: bool) -> Mutation {
    Mutation::Related { field: RelatedField::RelatedTo, member: member.into(), present }
}

fn moved(to: &str) -> Mutation {
    Mutation::ParentMatter { to: path(to) }
}

fn owner(to: &str) -> Mutation {
    Mutation::ContextEdit { field: ContextField::Owner, to: to.into() }
}

fn claim(disposition: Disposition, decision: Judgement) -> SignalClaim {
    SignalClaim { id: action_id(&path("signal/b.md")), disposition, decision }
}

#[test]
fn what_the_steward_passed_over_while_others_spoke_waits_for_a_human() {
    let passed_over = || Wide::open().with(|w| w.weighing = StewardWeighing::DoneBesideOthers);
    let still = Some(claim(Disposition::Recorded, Judgement::StillActive));
    for case in [passed_over(), passed_over().with(|w| w.claim = still.clone())] {
        let plan = case.plan();
        let closed: Vec<_> = plan.draft().gates.iter().filter(|g| !g.open).map(|g| g.gate).collect();
        assert_eq!((plan.disposition(), closed), (Disposition::Pending, vec![GateName::Steward]));
        assert!(plan.draft().confirmable && plan.draft().pending_confirmation);
    }
    let confirm = passed_over().with(|w| w.ceiling = Ceiling::Confirm);
    assert_eq!(confirm.plan().disposition(), Disposition::Pending);
    // Without other messages it would have waited for a human as well.
    let unsure = passed_over().with(|w| w.signal.effect_confidence = 0.5).plan();
    assert!(
        unsure.disposition() == Disposition::Pending && unsure.draft().gates.iter().filter(|g| !g.open).count() > 1
    );
    // For a proposal that is more likely wrong, and in shadow mode, the steward's decision stands.
    assert_eq!(passed_over().with(|w| w.signal.effect_confidence = 0.49).skip(), RouteSkip::Weighed);
    assert_eq!(passed_over().with(|w| w.policy.mode = Mode::Shadow).skip(), RouteSkip::Weighed);
    // The steward weighed it without other messages. A question to the human settles it.
    let alone = Wide::open().with(|w| (w.weighing, w.claim) = (StewardWeighing::Done, still.clone()));
    assert!(matches!(alone.skip(), RouteSkip::Claimed(_)));
    let early = Wide::open().with(|w| w.claim = still.clone());
    assert!(matches!(early.skip(), RouteSkip::Claimed(_)), "a lost state sets nothing free");
    for (disposition, decision) in [
        (Disposition::Recorded, Judgement::NeedsInput),
        (Disposition::Live, Judgement::LikelyDone),
        (Disposition::Pending, Judgement::LikelyDone),
        (Disposition::Shadow, Judgement::LikelyDone),
    ] {
        let taken_up = passed_over().with(|w| w.claim = Some(claim(disposition, decision)));
        assert!(matches!(taken_up.skip(), RouteSkip::Claimed(_)), "{disposition:?}");
    }
}

fn contradicted() -> Option<ProposalDoubt> {
    let newer = CitedSignal {
        reference: path("signal/newer.md"),
        source: "mail:unknown".into(),
        note: "it bounced".into(),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        supports: true,
    };
    let question = question_id(&path("task/pay.md"), &path("signal/newer.md"), None);
    Some(ProposalDoubt::Contradicted { question, newer: vec![newer] })
}

#[test]
fn while_a_human_is_asked_a_proposal_is_listed_on_the_question_and_not_made() {
    let question = action_id(&path("signal/question.md"));
    let asked = || Wide::open().with(|w| w.doubt = Some(ProposalDoubt::Asked(question.clone())));
    let withheld = RouteSkip::Withheld(question.clone());
    assert_eq!(asked().skip(), withheld);
    assert_eq!(asked().with(|w| w.weighing = StewardWeighing::DoneBesideOthers).skip(), withheld);
    assert_eq!(asked().with(|w| w.policy.mode = Mode::Shadow).skip(), withheld);
    // A signal that is skipped for another reason keeps that reason.
    assert_eq!(asked().with(|w| w.target = None).skip(), RouteSkip::TargetMissing);
    let weak = asked().with(|w| (w.weighing, w.signal.effect_confidence) = (StewardWeighing::DoneBesideOthers, 0.49));
    assert_eq!(weak.skip(), RouteSkip::Weighed);
}

#[test]
fn newer_words_of_an_unknown_source_turn_a_proposal_into_a_question_and_never_into_nothing() {
    for mode in [Mode::Live, Mode::Shadow] {
        let case = Wide::open().with(|w| (w.doubt, w.policy.mode) = (contradicted(), mode));
        let RouteDecision::QuestionPlanned(plan) = case.route() else { panic!("no question: {:?}", case.route()) };
        assert!(plan.draft().is_question() && !plan.has_record_change(), "{mode:?}");
        let cited: Vec<_> = plan.draft().evidence.iter().map(|cited| cited.reference.slug()).collect();
        assert_eq!(cited, ["newer", "a"], "it shows both sides");
        assert!(plan.draft().source_contributions.is_empty(), "it teaches nothing");
        assert_eq!(case.route(), case.route(), "the same for every try");
        let (_, record) = carry_out(&plan, TASK);
        assert_eq!(record.draft.id, *plan.id());
        assert!(ask(ResolutionKind::Dismiss, &record).is_ok());
    }
}

#[test]
fn a_misfit_names_the_field_and_the_member() {
    let scalar = TASK.replace("related_to:\n  - \"[[Ann]]\" # first\n  - Bob", "related_to: Bob");
    let table = [
        (
            Wide::about("task/pay.md", &scalar, related("Eve", true)),
            "wrong_form: `related_to` of task/pay.md is not a list",
        ),
        (Wide::about("task/pay.md", TASK, related("Eve", false)), "already_so: `Eve` is not in `related_to`"),
        (Wide::about("task/pay.md", TASK, related("Ann", true)), "already_so: `Ann` is in `related_to`"),
        (Wide::open().with(|w| w.target = None), "target_missing: there is no task/pay.md"),
        (Wide::about("task/pay.md", TASK, owner("bob")), "wrong_kind: task/pay.md has no field `owner`"),
    ];
    for (wide, words) in table {
        let told = explain_misfit(&wide.signal, wide.target.as_ref()).unwrap();
        assert!(told.starts_with(words), "{told}");
    }
    let fits = Wide::open();
    assert_eq!(explain_misfit(&fits.signal, fits.target.as_ref()), None);
}

#[test]
fn a_decision_that_changes_nothing_takes_no_other_change_up() {
    for mutation in [moved("matter/farm.md"), related("Eve", true)] {
        for weighing in [StewardWeighing::Done, StewardWeighing::DoneBesideOthers] {
            let wide = Wide::about("task/pay.md", TASK, mutation.clone());
            let wide = wide.with(|w| {
                (w.weighing, w.claim) = (weighing, Some(claim(Disposition::Recorded, Judgement::StillActive)))
            });
            assert_eq!(wide.plan().disposition(), Disposition::Live);
        }
    }
}

#[test]
fn every_skip_has_its_name() {
    let id = action_id(&path("signal/b.md"));
    let later = at("2026-11-22T00:00:00Z");
    let table: Vec<(Wide, RouteSkip)> = vec![
        (Wide::open().with(|w| w.signal.effect = SignalEffect::None), RouteSkip::NotAMutation),
        (Wide::open().with(|w| w.signal.effect = SignalEffect::Action), RouteSkip::AsksThePrincipal),
        (Wide::open().with(|w| w.signal.proposal = None), RouteSkip::NoProposal),
        (Wide::open().with(|w| w.signal.target = None), RouteSkip::AmbiguousTarget),
        (Wide::open().with(|w| w.target.as_mut().unwrap().has_twin = true), RouteSkip::AmbiguousTarget),
        (Wide::open().with(|w| w.target = None), RouteSkip::TargetMissing),
        (Wide::open().with(|w| w.signal.target = Some(path("task/other.md"))), RouteSkip::TargetMissing),
        (
            Wide::open().with(|w| w.target = Some(target("task/pay.md", &TASK.replace("open", "Done")))),
            RouteSkip::TargetClosed,
        ),
        (Wide::about("task/pay.md", TASK, owner("bob")), RouteSkip::WrongKind),
        (Wide::about("matter/house.md", MATTER, moved("matter/farm.md")), RouteSkip::WrongKind),
        (Wide::open().with(|w| w.signal.target = Some(path("instinct/bank.md"))), RouteSkip::WrongKind),
        (Wide::about("matter/house.md", &MATTER.replace("ann", "[ann]"), owner("bob")), RouteSkip::WrongForm),
        (
            Wide::about(
                "task/pay.md",
                &TASK.replace("related_to:\n  - \"[[Ann]]\" # first\n  - Bob", "related_to: Bob"),
                related("Eve", true),
            ),
            RouteSkip::WrongForm,
        ),
        (Wide::open().with(|w| w.target.as_mut().unwrap().snoozed_until = Some(later)), RouteSkip::Snoozed),
        (Wide::about("task/pay.md", TASK, Mutation::StateChange { to: RecordState::Open }), RouteSkip::AlreadySo),
        (Wide::about("matter/house.md", MATTER, owner("ann")), RouteSkip::AlreadySo),
        (Wide::about("task/pay.md", TASK, moved("matter/house.md")), RouteSkip::AlreadySo),
        (Wide::about("task/pay.md", TASK, related("Ann", true)), RouteSkip::AlreadySo),
        (Wide::about("task/pay.md", TASK, related("Eve", false)), RouteSkip::AlreadySo),
        (
            Wide::about("task/pay.md", TASK, moved("matter/farm.md")).with(|w| w.new_parent = None),
            RouteSkip::ParentMissing,
        ),
        (
            Wide::about("task/pay.md", TASK, moved("matter/farm.md")).with(|w| w.new_parent = Some(RecordState::Done)),
            RouteSkip::ParentClosed,
        ),
        (
            Wide::open().with(|w| w.claim = Some(claim(Disposition::Shadow, Judgement::LikelyDone))),
            RouteSkip::Claimed(id.clone()),
        ),
        (Wide::open().with(|w| w.weighing = StewardWeighing::Until(later)), RouteSkip::WithTheSteward),
        (Wide::open().with(|w| w.weighing = StewardWeighing::Done), RouteSkip::Weighed),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (wide, skip) in table {
        assert_eq!(wide.skip(), skip);
        seen.insert(skip.as_str());
    }
    assert_eq!(seen.len(), 15, "every name is met: {seen:?}");
}

#[test]
fn only_a_change_of_state_waits_for_the_steward() {
    for mutation in [moved("matter/farm.md"), related("Eve", true), related("Bob", false)] {
        for weighing in [StewardWeighing::Until(at("2026-12-01")), StewardWeighing::Done] {
            let wide = Wide::about("task/pay.md", TASK, mutation.clone()).with(|w| w.weighing = weighing);
            assert_eq!(wide.plan().disposition(), Disposition::Live);
        }
    }
}

#[test]
fn the_weaker_of_the_two_confidences_opens_or_closes_the_gates() {
    let plan = Wide::open().plan();
    assert_eq!((plan.disposition(), plan.draft().confidence), (Disposition::Live, 0.97));
    for weaken in [|s: &mut Signal| s.target_confidence = 0.949, |s: &mut Signal| s.effect_confidence = 0.949] {
        let plan = Wide::open().with(|w| weaken(&mut w.signal)).plan();
        let closed: Vec<_> = plan.draft().gates.iter().filter(|g| !g.open).map(|g| g.gate).collect();
        assert_eq!((plan.disposition(), closed), (Disposition::Pending, vec![GateName::Discretion]));
    }
    let weak = Wide::open().with(|w| (w.observations, w.signal.effect_confidence) = (60, 0.59)).plan();
    let closed: Vec<_> = weak.draft().gates.iter().filter(|g| !g.open).map(|g| g.gate).collect();
    assert_eq!(closed, [GateName::Confidence, GateName::Discretion]);
}

#[test]
fn mode_and_each_ceiling_hold_a_routed_change_back() {
    let shadow = Wide::open().with(|w| w.policy.mode = Mode::Shadow).plan();
    assert_eq!((shadow.disposition(), shadow.has_record_change()), (Disposition::Shadow, false));
    let confirm = Wide::open().with(|w| w.ceiling = Ceiling::Confirm).plan();
    assert_eq!((confirm.disposition(), confirm.draft().confirmable), (Disposition::Pending, true));
    let class =
        Wide::about("task/pay.md", TASK, related("Eve", true)).with(|w| w.policy.related_ceiling = Ceiling::Ask);
    assert_eq!((class.plan().disposition(), class.plan().draft().confirmable), (Disposition::Pending, false));
    let other = Wide::open().with(|w| w.policy.related_ceiling = Ceiling::Ask).plan();
    assert_eq!(other.disposition(), Disposition::Live, "another class's ceiling");
}

#[test]
fn what_lands_in_shadow_has_the_id_of_a_shadow_so_that_the_action_itself_can_still_come() {
    let live = Wide::open().plan();
    let shadow = DecisionPolicy { mode: Mode::Shadow, ..DecisionPolicy::default() };
    let landed = land(live.clone(), &shadow, Ceiling::Act);
    assert_eq!((landed.disposition(), live.id()), (Disposition::Shadow, &action_id(&path("signal/a.md"))));
    let decided_in_shadow = Wide::open().with(|w| w.policy.mode = Mode::Shadow).plan();
    assert_eq!(landed.id(), decided_in_shadow.id());
    assert_ne!(landed.id(), live.id());
}

#[test]
fn the_record_says_what_was_asked_of_the_rate_guard() {
    let gate =
        |wide: Wide| wide.plan().draft().gates.iter().find(|g| g.gate == GateName::RateGuard).unwrap().found.clone();
    assert_eq!(gate(Wide::open()), "no clerk asked");
}

/// Applies a plan the way the vault does, and reads the record back from its file.
fn carry_out(plan: &Plan, bytes: &str) -> (String, AuditRecord) {
    let prepared = plan.has_record_change().then(|| plan.prepare(bytes.as_bytes(), NoteAccess::unmapped()).unwrap());
    let (after, patch) = prepared.map_or((bytes.into(), Vec::new()), |p| (p.after, p.patch));
    let record =
        AuditRecord::from_draft(plan.draft().clone(), patch, ChainLink { seq: 1, prev: ContentHash::genesis() });
    let record = AuditRecord::parse(record.render().unwrap().as_bytes()).unwrap();
    (String::from_utf8(after).unwrap(), record)
}

fn ask(kind: ResolutionKind, record: &AuditRecord) -> Result<Plan, ResolutionRefusal> {
    ask_under(kind, record, (&live(), Ceiling::Act))
}

fn ask_under(
    kind: ResolutionKind,
    record: &AuditRecord,
    (policy, ceiling): (&DecisionPolicy, Ceiling),
) -> Result<Plan, ResolutionRefusal> {
    let now = at("2026-11-22T10:00:00Z");
    let request = ResolutionRequest {
        kind,
        by: "ann",
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: Default::default(),
        policy,
        ceiling,
        workflow: run("run-2"),
        now,
    };
    build_resolution_plan(&ResolutionCase {
        request: &request,
        record,
        history: &[],
        notes: NoteAccess::unmapped(),
        reopened: None,
    })
}

/// Every class on every kind of record that has it, and the text that results.
fn changes() -> Vec<(&'static str, &'static str, Mutation, String)> {
    vec![
        ("task/pay.md", TASK, Mutation::StateChange { to: RecordState::Done }, TASK.replace("open", "done")),
        (
            "matter/house.md",
            MATTER,
            Mutation::StateChange { to: RecordState::Archived },
            MATTER.replace("]\n---", "]\nstate: archived\n---"),
        ),
        ("matter/house.md", MATTER, owner("Bob: the builder"), MATTER.replace("ann", "\"Bob: the builder\"")),
        (
            "matter/house.md",
            MATTER,
            Mutation::ContextEdit { field: ContextField::Description, to: "one line".into() },
            MATTER.replace("|\n  two\n  lines", "one line"),
        ),
        (
            "matter/house.md",
            MATTER,
            Mutation::ContextEdit { field: ContextField::Summary, to: "50% done".into() },
            MATTER.replace("]\n---", "]\nsummary: \"50% done\"\n---"),
        ),
        ("task/pay.md", TASK, moved("matter/farm.md"), TASK.replace("matter/house", "matter/farm")),
        ("task/pay.md", TASK, related("Eve", true), TASK.replace("  - Bob\n", "  - Bob\n  - \"Eve\"\n")),
        ("task/pay.md", TASK, related("Ann", false), TASK.replace("  - \"[[Ann]]\" # first\n", "")),
        (
            "matter/house.md",
            MATTER,
            Mutation::Related { field: RelatedField::RelatedOrgs, member: "Acme".into(), present: false },
            MATTER.replace("[Acme,'B", "['B"),
        ),
        ("matter/house.md", MATTER, related("Eve", true), MATTER.replace("]\n---", "]\nrelated_to:\n  - Eve\n---")),
    ]
}

#[test]
fn every_class_changes_its_lines_alone_and_is_undone_to_the_byte() {
    for (name, before, mutation, expected) in changes() {
        let plan = Wide::about(name, before, mutation.clone()).plan();
        let (after, record) = carry_out(&plan, before);
        assert_eq!(after, expected, "{mutation:?}");
        assert_eq!(record.draft.class, Some(mutation.class()));
        let (back, reversed) = carry_out(&ask(ResolutionKind::Undo, &record).unwrap(), &after);
        assert_eq!(back, before, "{mutation:?}");
        assert_eq!((reversed.draft.proposal, reversed.undo_recipe), (None, None));
        let human = after.replace("name: ", "extra: 1\nname: my ");
        let (back, _) = carry_out(&ask(ResolutionKind::Undo, &record).unwrap(), &human);
        assert_eq!(back, before.replace("name: ", "extra: 1\nname: my "), "{mutation:?}");
    }
}

#[test]
fn every_class_is_confirmed_as_it_was_proposed() {
    for (name, before, mutation, expected) in changes() {
        let pending = Wide::about(name, before, mutation.clone()).with(|w| w.ceiling = Ceiling::Confirm).plan();
        let (same, record) = carry_out(&pending, before);
        assert_eq!((same.as_str(), record.undo_recipe.is_none()), (before, true));
        let (after, confirmed) = carry_out(&ask(ResolutionKind::Confirm, &record).unwrap(), before);
        assert_eq!(after, expected, "{mutation:?}");
        let (back, _) = carry_out(&ask(ResolutionKind::Undo, &confirmed).unwrap(), &after);
        assert_eq!(back, before, "{mutation:?}");
        let dismissed = carry_out(&ask(ResolutionKind::Dismiss, &record).unwrap(), before);
        assert_eq!(dismissed.1.draft.proposal.unwrap().mutation, mutation, "what was turned down");
    }
}

#[test]
fn a_confirmation_over_a_humans_own_value_is_a_conflict_and_of_a_set_it_is_none() {
    let held = |name, text, mutation| {
        let plan = Wide::about(name, text, mutation).with(|w| w.ceiling = Ceiling::Confirm).plan();
        ask(ResolutionKind::Confirm, &carry_out(&plan, text).1).unwrap()
    };
    let conflict = |field: &str| Err(crate::action::plan::PreparePlanError::Conflict(vec![field.into()]));
    let plan = held("matter/house.md", MATTER, owner("bob"));
    assert_eq!(plan.prepare(MATTER.replace("ann", "zoe").as_bytes(), NoteAccess::unmapped()), conflict("owner"));
    let plan = held("task/pay.md", TASK, moved("matter/farm.md"));
    assert_eq!(
        plan.prepare(TASK.replace("house", "shed").as_bytes(), NoteAccess::unmapped()),
        conflict("parent_matter")
    );
    let plan = held("task/pay.md", TASK, related("Eve", true));
    let human = TASK.replace("  - Bob\n", "");
    let after = String::from_utf8(plan.prepare(human.as_bytes(), NoteAccess::unmapped()).unwrap().after).unwrap();
    assert_eq!(after, human.replace("first\n", "first\n  - \"Eve\"\n"));
}

#[test]
fn a_confirmation_asks_what_a_human_has_set_by_now() {
    let plan = Wide::open().with(|w| w.ceiling = Ceiling::Confirm).plan();
    let record = carry_out(&plan, TASK).1;
    let human_only = |policy: &DecisionPolicy, ceiling| {
        let refusal = ask_under(ResolutionKind::Confirm, &record, (policy, ceiling)).unwrap_err();
        assert!(matches!(refusal, ResolutionRefusal::HumanOnly { .. }), "{refusal}");
    };
    human_only(&live(), Ceiling::Ask);
    human_only(&DecisionPolicy { state_change_ceiling: Ceiling::Ask, ..live() }, Ceiling::Act);
    let other = DecisionPolicy { related_ceiling: Ceiling::Ask, ..live() };
    assert!(ask_under(ResolutionKind::Confirm, &record, (&other, Ceiling::Confirm)).is_ok());
}

#[test]
fn a_proposal_that_no_steward_writes_is_not_confirmed() {
    let plan = Wide::about("task/pay.md", TASK, related("Eve", true)).with(|w| w.ceiling = Ceiling::Confirm).plan();
    let record = carry_out(&plan, TASK).1;
    let forged: [fn(&mut AuditRecord); 4] = [
        |r| r.draft.proposal.as_mut().unwrap().mutation = related("Eve\nsteward_ceiling: act", true),
        |r| r.draft.proposal.as_mut().unwrap().mutation = owner("eve"),
        |r| r.draft.class = Some(MutationClass::StateChange),
        |r| r.draft.target = path("signal/a.md"),
    ];
    for forge in forged {
        let mut record = record.clone();
        forge(&mut record);
        assert_eq!(ask(ResolutionKind::Confirm, &record).unwrap_err().http_status(), 422);
    }
}

#[test]
fn a_recipe_of_a_class_puts_back_only_what_that_class_may_change() {
    for (name, before, mutation, _) in changes() {
        let record = carry_out(&Wide::about(name, before, mutation.clone()).plan(), before).1;
        for class in MutationClass::ALL.into_iter().filter(|class| *class != mutation.class()) {
            let mut forged = record.clone();
            forged.draft.class = Some(class);
            assert_eq!(ask(ResolutionKind::Undo, &forged).unwrap_err().http_status(), 422, "{mutation:?} as {class:?}");
        }
        let mut forged = record.clone();
        let patch = &mut forged.undo_recipe.as_mut().unwrap().vault_patch[0];
        patch.field = "steward_ceiling".into();
        patch.undo.as_mut().unwrap().field = "steward_ceiling".into();
        assert_eq!(ask(ResolutionKind::Undo, &forged).unwrap_err().http_status(), 422);
    }
    let context = carry_out(&Wide::about("matter/house.md", MATTER, owner("bob")).plan(), MATTER).1;
    let mut forged = context.clone();
    forged.draft.target = path("task/pay.md");
    assert_eq!(ask(ResolutionKind::Undo, &forged).unwrap_err().http_status(), 422, "a task has no such field");
}

fn any_mutation() -> BoxedStrategy<Mutation> {
    let member = select(vec!["Eve", "[[Ann]]", "Bob", "[[Acme]]", "yes: no"]);
    prop_oneof![
        select(vec![RecordState::Done, RecordState::Archived]).prop_map(|to| Mutation::StateChange { to }),
        select(vec!["matter/farm.md", "matter/shed.md"]).prop_map(moved),
        (select(RelatedField::ALL.to_vec()), member, any::<bool>())
            .prop_map(|(field, member, present)| Mutation::Related { field, member: member.into(), present }),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_same_case_gives_the_same_route(mutation in any_mutation(), target in 0..=1_000_u32, effect in 0..=1_000_u32) {
        let (target, effect) = (f64::from(target) / 1_000.0, f64::from(effect) / 1_000.0);
        let wide = Wide::about("task/pay.md", TASK, mutation).with(|w| {
            (w.signal.target_confidence, w.signal.effect_confidence) = (target, effect);
        });
        prop_assert_eq!(wide.route(), wide.route());
        if let RouteDecision::Planned(plan) = wide.route() {
            prop_assert_eq!(plan.draft().confidence, target.min(effect));
            prop_assert!(plan.disposition() != Disposition::Live || target.min(effect) >= 0.95);
            let json = serde_json::to_string(&plan).unwrap();
            prop_assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), *plan);
        }
    }
}
