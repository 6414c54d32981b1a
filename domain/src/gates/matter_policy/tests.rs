//! Tests what each line of a note means, and that a note never widens what is allowed.

use super::*;
use crate::action::mutation::{ContextField, RelatedField};
use crate::action::plan::ContentHash;
use crate::action::plan::{Disposition, Plan};
use crate::gates::landing::tests::hold_by_notes;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::record::entity::{RecordState, SignalEffect};
use crate::record::frontmatter::{self, FieldEdit};
use crate::signals::route::{RouteCase, RouteDecision, RouteSkip, RouteTarget, StewardWeighing, plan_signal_route};
use crate::signals::signal::{Signal, SignalStatus};
use crate::steward::clerk::Judgement;
use crate::steward::decide::tests::{at, build_check, clerk, evidence, live_plan, path, run, shadow_plan, verdict};
use crate::steward::decide::{DecisionCase, decide};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

fn of(yaml: &str) -> (Option<MatterPolicy>, Vec<read::MatterPolicyFault>) {
    let text = format!("---\ntype: matter\n{yaml}---\nbody\n");
    read::read_matter_policy(&frontmatter::read_document(text.as_bytes()).unwrap())
}

fn note(yaml: &str) -> MatterPolicy {
    let (note, faults) = of(&format!("steward:\n{yaml}"));
    assert_eq!(faults, []);
    note.unwrap()
}

fn hours(text: &str) -> QuietHours {
    QuietHours::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn a_block_says_what_it_says_and_none_says_nothing() {
    assert_eq!(of("name: House\n"), (None, vec![]));
    assert_eq!(of("steward: {}\n"), (Some(MatterPolicy::default()), vec![]));
    let all = note(
        "  classes: [related, state_change]\n  fields: [state]\n  ceiling: Confirm\n  quiet_hours: \"22:00-07:00 +01:00\"\n  \
         trusted_sources: [\"gmail:ann@x\", slack]\n  daily_budget: 5\n",
    );
    let expected = MatterPolicy {
        classes: Some(vec![MutationClass::StateChange, MutationClass::Related]),
        fields: Some(vec!["state".into()]),
        ceiling: Some(Ceiling::Confirm),
        quiet_hours: Some(hours("22:00-07:00 +01:00")),
        trusted_sources: Some(vec!["gmail:ann@x".into(), "slack".into()]),
        daily_budget: Some(5),
    };
    assert_eq!(all, expected);
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<MatterPolicy>(&json).unwrap(), all);
    assert_eq!(
        note("  quiet_hours: 22:00-07:00\n").quiet_hours,
        Some(hours("22:00-07:00")),
        "unquoted it is text as well"
    );
}

#[test]
fn what_cannot_be_read_means_the_strictest_and_is_told_with_its_line() {
    let ask = |note: &MatterPolicy| note.ceiling == Some(Ceiling::Ask);
    type Check = fn(&MatterPolicy) -> bool;
    let table: [(&str, Check, &str); 17] = [
        (
            "ceiling: acts",
            |n| n.ceiling == Some(Ceiling::Ask),
            "`steward.ceiling` is `acts`: expected `ask`, `confirm` or `act`",
        ),
        ("ceiling:", |n| n.ceiling == Some(Ceiling::Ask), "`steward.ceiling` is empty"),
        ("ceiling: [act]", |n| n.ceiling == Some(Ceiling::Ask), "`steward.ceiling` is `["),
        (
            "classes: state_change",
            |n| n.classes == Some(vec![]),
            "is `state_change`: expected a list of any of state_change, ",
        ),
        ("classes: [related, states]", |n| n.classes == Some(vec![MutationClass::Related]), "holds `states`"),
        ("classes:", |n| n.classes == Some(vec![]), "`steward.classes` is empty"),
        ("fields: state", |n| n.fields == Some(vec![]), "until then nothing is allowed"),
        ("fields: [state, related_tasks]", |n| n.fields == Some(vec!["state".into()]), "holds `related_tasks`"),
        ("fields: [steward]", |n| n.fields == Some(vec![]), "holds `steward`"),
        ("quiet_hours: 22-7", |n| n.ceiling == Some(Ceiling::Ask), "UTC if neither a zone nor an offset is given"),
        (
            "quiet_hours: \"22:00-07:00 Europe/Berlim\"",
            |n| n.ceiling == Some(Ceiling::Ask) && n.quiet_hours.is_none(),
            "names the unknown zone `Europe/Berlim`: expected a zone such as `Europe/Berlin`, or an offset such as \
             `+01:00`; until then the ceiling is `ask`",
        ),
        ("quiet_hours: \"22:00-07:00 CET\"", |n| n.ceiling == Some(Ceiling::Ask), "unknown zone `CET`"),
        ("trusted_sources: ann", |n| n.trusted_sources == Some(vec![]), "no source is trusted"),
        ("trusted_sources: [ann, 5]", |n| n.trusted_sources == Some(vec!["ann".into()]), "holds `5`"),
        ("daily_budget: many", |n| n.daily_budget == Some(0), "until then it is 0"),
        ("daily_budget: -1", |n| n.daily_budget == Some(0), "is `-1`: expected a whole number"),
        (
            "celing: ask",
            |n| n.ceiling == Some(Ceiling::Ask),
            "`steward.celing` is unknown: expected one of classes, fields",
        ),
    ];
    for (line, holds, told) in table {
        let (note, faults) = of(&format!("name: x\nsteward:\n  # by hand\n  {line}\n"));
        assert!(holds(&note.unwrap()), "{line}");
        let told_so: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(
            matches!(&told_so[..], [one] if one.starts_with("line 6: ") && one.contains(told)),
            "{line}: {told_so:?}"
        );
    }
    for block in ["steward:\nceiling: ask\n", "steward: ask\n", "steward: [ceiling]\n", "steward: true\n"] {
        let (note, faults) = of(block);
        assert!(ask(&note.unwrap()), "{block}");
        assert!(faults[0].to_string().starts_with("line 3: `steward` is "), "{faults:?}");
    }
    let (note, faults) = of("steward_ceiling: actt\nname: x\n");
    assert!(note.is_none() && faults[0].to_string().starts_with("line 3: `steward_ceiling` is `actt`"), "{faults:?}");
    let (_, faults) = of("steward:\n  \"a\\e[31m\\nERROR\": 1\n");
    assert!(!faults[0].to_string().chars().any(char::is_control), "{faults:?}");
}

#[test]
fn a_typing_error_beside_a_wider_ceiling_is_still_the_strictest() {
    for block in ["  ceiling: act\n  quite_hours: 22:00-07:00\n", "  ceiling: act\n  quiet_hours: at night\n"] {
        assert_eq!(of(&format!("steward:\n{block}")).0.unwrap().effective_ceiling(), Ceiling::Ask, "{block}");
    }
}

#[test]
fn quiet_hours_begin_on_their_minute_and_end_before_theirs() {
    let table = [
        ("22:00-07:00", "2026-11-21T21:59:59Z", None),
        ("22:00-07:00", "2026-11-21T22:00:00Z", Some("2026-11-22T07:00:00Z")),
        ("22:00-07:00", "2026-11-22T06:59:59.9Z", Some("2026-11-22T07:00:00Z")),
        ("22:00-07:00", "2026-11-22T07:00:00Z", None),
        ("12:30-14:00 utc", "2026-11-21T13:15:30Z", Some("2026-11-21T14:00:00Z")),
        ("12:30-14:00", "2026-11-21T14:00:00Z", None),
        ("22:00-07:00 +01:00", "2026-11-21T21:00:00Z", Some("2026-11-22T06:00:00Z")),
        ("22:00-07:00 +01:00", "2026-11-22T06:00:00Z", None),
        ("22:00-07:00 -05:30", "2026-11-22T03:29:00Z", None),
        ("22:00-07:00 -05:30", "2026-11-22T03:30:00Z", Some("2026-11-22T12:30:00Z")),
        ("22:00-00:00", "2026-11-21T23:59:00Z", Some("2026-11-22T00:00:00Z")),
        ("22:00-00:00", "2026-11-22T00:00:00Z", None),
        ("00:00-24:00", "2026-11-21T12:00:00Z", Some("2026-11-22T00:00:00Z")),
    ];
    for (text, now, until) in table {
        assert_eq!(hours(text).end_if_active(at(now)), until.map(at), "{text} at {now}");
    }
    assert_eq!(hours("22:00-07:00 +01:00").to_string(), "22:00-07:00 +01:00");
    for text in [
        "",
        "22:00",
        "22:00-22:00",
        "00:00-00:00",
        "24:00-07:00",
        "22:60-07:00",
        "22:00-25:00",
        "9:00-10:00",
        "22:00-07:00 CET",
        "22:00-07:00 +15:00",
        "22:00-07:00+01:00",
        "22:00–07:00",
        "22:00-07:00 +1",
        "+2:00-07:00",
    ] {
        assert!(QuietHours::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_stewards_turn_does_not_run_out_while_it_keeps_quiet() {
    let quiet = note("  quiet_hours: 22:00-07:00\n");
    let ends = |first_seen: &str| quiet.steward_turn_end(at(first_seen), TimeDelta::minutes(30));
    assert_eq!(ends("2026-11-21T12:00:00Z"), at("2026-11-21T12:30:00Z"));
    assert_eq!(ends("2026-11-21T21:45:00Z"), at("2026-11-22T07:30:00Z"));
    assert_eq!(ends("2026-11-21T23:00:00Z"), at("2026-11-22T07:30:00Z"));
}

/// A decision about a task, or a routed signal that changes it, with or without a note.
#[derive(Clone, Debug)]
struct Asked {
    policy: DecisionPolicy,
    sources: Vec<String>,
    confidence: f64,
    ceiling: Ceiling,
    shadow: bool,
    mutation: Mutation,
    at: DateTime<Utc>,
}

impl Asked {
    fn open() -> Self {
        Self {
            policy: DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() },
            sources: vec!["gmail:ann@x".into()],
            confidence: 0.97,
            ceiling: Ceiling::Act,
            shadow: false,
            mutation: Mutation::StateChange { to: RecordState::Done },
            at: at("2026-11-21T12:00:00Z"),
        }
    }

    fn decide(&self, note: Option<&MatterPolicy>) -> Plan {
        let pieces = self.sources.iter().enumerate().map(|(n, source)| crate::steward::clerk::SignalEvidence {
            source: source.clone(),
            ceiling: self.ceiling,
            ..evidence(&format!("s{n}"), self.confidence, 60)
        });
        let check = build_check(b"bytes", Some("open"), pieces.collect());
        decide(&DecisionCase {
            check: &check,
            policy: &self.policy,
            matter_policy: note,
            verdict: &verdict(Judgement::LikelyDone, self.confidence, &check),
            clerk: &clerk(),
            caller_says_shadow: self.shadow,
            workflow: run("run-1"),
            at: self.at,
        })
    }

    fn route(&self, notes: &[MatterPolicy]) -> RouteDecision {
        let name =
            if matches!(self.mutation, Mutation::ContextEdit { .. }) { "matter/house.md" } else { "task/pay.md" };
        let text = "---\nstate: open\nparent_matter: house\nowner: ann\n---\n";
        let target = RouteTarget {
            path: path(name),
            kind: path(name).folder_kind().unwrap(),
            parent: Some(path("matter/house.md")),
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: ContentHash::hash_bytes(text.as_bytes()),
            fields: frontmatter::read_document(text.as_bytes()).unwrap().fields().clone(),
            is_writable: true,
        };
        let signal = Signal {
            created: self.at,
            source_event: None,
            origin_at: None,
            source_type: self.sources[0].clone(),
            raw_quote: "it is so".into(),
            target: Some(target.path.clone()),
            target_kind: target.kind,
            target_confidence: self.confidence,
            candidates: Vec::new(),
            effect: SignalEffect::Mutation,
            proposal: Some(self.mutation.clone()),
            effect_confidence: self.confidence,
            reasoning: String::new(),
            status: SignalStatus::Unrouted,
            reason: None,
        };
        plan_signal_route(&RouteCase {
            reference: &path("signal/a.md"),
            signal: &signal,
            target: Some(&target),
            new_parent: Some(RecordState::Open),
            claim: None,
            weighing: StewardWeighing::Until(self.at),
            doubt: None,
            observations: 60,
            ceiling: self.ceiling,
            policy: &self.policy,
            matter_policies: notes,
            workflow: run("run-1"),
            at: self.at,
            decided_at: self.at,
        })
    }
}

fn now(policy: MatterPolicy, spent: u32) -> MatterPolicyUsage {
    MatterPolicyUsage { matter: path("matter/house.md"), policy, spent }
}

/// Orders dispositions by how far they go. A shadow changes as little as a recorded decision.
fn reach(disposition: Disposition) -> u8 {
    match disposition {
        Disposition::Recorded | Disposition::Shadow => 0,
        Disposition::Pending => 1,
        Disposition::Live => 2,
    }
}

fn routed(route: &RouteDecision) -> u8 {
    match route {
        RouteDecision::Planned(plan) | RouteDecision::QuestionPlanned(plan) => reach(plan.disposition()),
        RouteDecision::Skipped(_) => 0,
    }
}

#[test]
fn each_line_holds_a_change_back_and_says_with_which_values() {
    let table = [
        ("  classes: [state_change]\n", None),
        ("  classes: [related]\n", Some(("class state_change", "classes: related", false))),
        ("  classes: []\n", Some(("class state_change", "classes: none is allowed", false))),
        ("  fields: [state, owner]\n", None),
        ("  fields: [owner]\n", Some(("field state", "fields: owner", false))),
        ("  ceiling: act\n", None),
        ("  quiet_hours: 13:00-14:00\n", None),
        ("  quiet_hours: 11:00-13:00\n", Some(("12:00 UTC", "outside of quiet_hours 11:00-13:00 UTC", true))),
        ("  trusted_sources: [\"GMAIL:ann@x\"]\n", None),
        ("  trusted_sources: [gmail]\n", Some(("source gmail:ann@x", "only trusted_sources (1 listed)", true))),
        ("  trusted_sources: []\n", Some(("source gmail:ann@x", "only trusted_sources (0 listed)", true))),
    ];
    for (line, closed) in table {
        let note = note(line);
        let plans = [
            Some(Asked::open().decide(Some(&note))),
            match Asked::open().route(std::slice::from_ref(&note)) {
                RouteDecision::Planned(plan) | RouteDecision::QuestionPlanned(plan) => Some(*plan),
                RouteDecision::Skipped(skip) => {
                    assert_eq!((skip, note.quiet_hours.is_some()), (RouteSkip::QuietHours, true), "{line}");
                    None
                }
            },
        ];
        for plan in plans.into_iter().flatten() {
            let expected = if closed.is_some() { Disposition::Pending } else { Disposition::Live };
            assert_eq!((plan.disposition(), plan.draft().pending_confirmation), (expected, closed.is_some()), "{line}");
            assert_eq!(plan.draft().confirmable, closed.is_none_or(|(_, _, confirmable)| confirmable), "{line}");
            let gate = plan.draft().gates.iter().find(|gate| gate.gate == GateName::Policy && !gate.open);
            let told = gate.map(|gate| (gate.found.as_str(), gate.needed.as_str()));
            assert_eq!(told, closed.map(|(found, needed, _)| (found, needed)), "{line}");
        }
        let landed = hold_by_notes(Asked::open().decide(None), &[now(note.clone(), 0)], at("2026-11-21T12:00:00Z"));
        assert_eq!(landed.disposition() == Disposition::Live, closed.is_none(), "at landing {line}");
        assert_eq!(landed.draft().confirmable, closed.is_none_or(|(_, _, confirmable)| confirmable), "{line}");
    }
    assert_eq!(Asked::open().decide(None).draft().gates.len(), 6, "without a note there is no gate of it");
}

#[test]
fn its_ceiling_is_one_of_the_ceilings() {
    for (word, confirmable) in [("ask", false), ("confirm", true)] {
        let note = note(&format!("  ceiling: {word}\n"));
        let RouteDecision::Planned(routed) = Asked::open().route(std::slice::from_ref(&note)) else {
            panic!("skipped")
        };
        for plan in [
            Asked::open().decide(Some(&note)),
            *routed,
            hold_by_notes(live_plan(), &[now(note.clone(), 0)], at("2026-11-21")),
        ] {
            let gate = plan.draft().gates.iter().rfind(|gate| gate.gate == GateName::Ceiling).unwrap();
            assert_eq!((plan.disposition(), gate.found.as_str(), gate.open), (Disposition::Pending, word, false));
            assert_eq!(plan.draft().confirmable, confirmable);
        }
    }
    let lower = Asked { ceiling: Ceiling::Ask, ..Asked::open() };
    assert!(!lower.decide(Some(&note("  ceiling: confirm\n"))).draft().confirmable, "the lowest holds");
}

#[test]
fn one_cited_unknown_source_is_enough_to_wait() {
    let note = note("  trusted_sources: [bank]\n");
    let both = Asked { sources: vec!["bank".into(), "mail:eve@x".into()], ..Asked::open() };
    let plan = both.decide(Some(&note));
    let gate = plan.draft().gates.iter().find(|gate| gate.gate == GateName::Policy).unwrap();
    assert_eq!((plan.disposition(), gate.found.as_str()), (Disposition::Pending, "source mail:eve@x"));
    let forged = Asked { sources: vec!["bank:unverified".into()], ..Asked::open() };
    assert_eq!(forged.decide(Some(&note)).disposition(), Disposition::Pending);
}

#[test]
fn a_day_has_so_many_changes_and_no_more() {
    let budget = |yaml: &str, spent| hold_by_notes(live_plan(), &[now(note(yaml), spent)], at("2026-11-21"));
    for (yaml, spent, disposition) in [
        ("  daily_budget: 2\n", 0, Disposition::Live),
        ("  daily_budget: 2\n", 1, Disposition::Live),
        ("  daily_budget: 2\n", 2, Disposition::Pending),
        ("  daily_budget: 0\n", 0, Disposition::Pending),
    ] {
        let plan = budget(yaml, spent);
        let gate = plan.draft().gates.last().unwrap();
        assert_eq!(
            (plan.disposition(), gate.gate, gate.open),
            (disposition, GateName::Policy, disposition == Disposition::Live)
        );
        assert_eq!(gate.found, format!("{spent} live changes in 24 h under matter/house.md"));
        assert!(gate.needed.starts_with("fewer than daily_budget ") && plan.draft().confirmable, "{gate:?}");
    }
    let two = [now(note("  daily_budget: 9\n"), 0), now(note("  daily_budget: 1\n"), 1)];
    assert_eq!(
        hold_by_notes(live_plan(), &two, at("2026-11-21")).disposition(),
        Disposition::Pending,
        "both matters of a move count"
    );
    let shadow = shadow_plan();
    assert_eq!(hold_by_notes(shadow.clone(), &two, at("2026-11-21")), shadow, "it raises nothing");
}

#[test]
fn what_a_steward_may_write_is_never_its_own_leash() {
    let fields = Mutation::writable_fields();
    assert_eq!(fields.len(), 8);
    assert!(!fields.iter().any(|field| field.starts_with("steward")), "{fields:?}");
    for class in MutationClass::ALL.map(MutationClass::as_str) {
        for verb in ["set", "add", "remove"] {
            for key in [read::BLOCK, read::CEILING, "steward.ceiling"] {
                for value in [json!("act"), json!({"ceiling": "act"}), json!(null)] {
                    let proposal = json!({"class": class, verb: {key: value}});
                    assert!(Mutation::from_proposal(&proposal).is_err(), "{proposal}");
                }
            }
        }
    }
}

fn mutations() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        select(vec![RecordState::Done, RecordState::Archived]).prop_map(|to| Mutation::StateChange { to }),
        select(ContextField::ALL.to_vec()).prop_map(|field| Mutation::ContextEdit { field, to: "new".into() }),
        Just(Mutation::ParentMatter { to: path("matter/farm.md") }),
        select(RelatedField::ALL.to_vec()).prop_map(|field| Mutation::Related {
            field,
            member: "Acme".into(),
            present: true
        }),
    ]
}

fn ceilings() -> impl Strategy<Value = Ceiling> {
    select(vec![Ceiling::Ask, Ceiling::Confirm, Ceiling::Act, Ceiling::Act, Ceiling::Act])
}

fn source() -> impl Strategy<Value = String> {
    select(vec!["bank", "mail:ann@x", "mail:eve@x"]).prop_map(str::to_owned)
}

prop_compose! {
    fn notes()(
        classes in option::of(subsequence(MutationClass::ALL.to_vec(), 0..=4)),
        fields in option::of(subsequence(Mutation::writable_fields(), 0..=8)),
        ceiling in option::of(ceilings()),
        quiet in option::of((0..24_u8, 0..24_u8, -12..12_i8)),
        trusted_sources in option::of(prop::collection::vec(source(), 0..3)),
        daily_budget in option::of(0..4_u32),
    ) -> MatterPolicy {
        let quiet = quiet.and_then(|(from, to, zone)| {
            QuietHours::parse(&format!("{from:02}:00-{to:02}:00 {}{:02}:00", if zone < 0 { '-' } else { '+' }, zone.unsigned_abs())).ok()
        });
        let fields = fields.map(|fields| fields.into_iter().map(str::to_owned).collect());
        MatterPolicy { classes, fields, ceiling, quiet_hours: quiet, trusted_sources, daily_budget }
    }
}

prop_compose! {
    fn asked()(
        mode in select(vec![Mode::Shadow, Mode::LiveHighConfidenceOnly, Mode::Live, Mode::Live]),
        class_ceiling in ceilings(),
        ceiling in ceilings(),
        sources in prop::collection::vec(source(), 1..3),
        confidence in select(vec![0.3, 0.7, 0.9, 0.97]),
        shadow in prop::bool::weighted(0.1),
        mutation in mutations(),
        minute in 0..1440_i64,
    ) -> Asked {
        let policy = DecisionPolicy { mode, state_change_ceiling: class_ceiling, related_ceiling: class_ceiling, ..DecisionPolicy::default() };
        let at = at("2026-11-21T00:00:30Z") + TimeDelta::minutes(minute);
        Asked { policy, sources, confidence, ceiling, shadow, mutation, at }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn a_note_never_widens(asked in asked(), note in notes(), other in notes(), spent in 0..5_u32) {
        let (with, without) = (asked.decide(Some(&note)), asked.decide(None));
        prop_assert!(reach(with.disposition()) <= reach(without.disposition()));
        prop_assert!(with.draft().confirmable <= without.draft().confirmable);
        prop_assert_eq!(with.id(), without.id());
        let landed = hold_by_notes(without.clone(), &[now(note.clone(), spent)], asked.at);
        prop_assert!(reach(landed.disposition()) <= reach(without.disposition()));
        prop_assert!(landed.draft().confirmable <= without.draft().confirmable);
        // What is held when it is decided is held when it is applied as well.
        prop_assert!(reach(landed.disposition()) <= reach(with.disposition()));
        let (one, free) = (asked.route(std::slice::from_ref(&note)), asked.route(&[]));
        prop_assert!(routed(&one) <= routed(&free));
        prop_assert!(routed(&asked.route(&[note, other])) <= routed(&one));
        if routed(&one) == 2 {
            prop_assert!(with_nothing_against(&one));
        }
    }

    #[test]
    fn no_change_of_ours_touches_the_block(mutation in mutations(), block in 0..3_usize) {
        let block = ["steward:\n  ceiling: confirm # mine\n", "steward: {classes: [ related ]}\n", "steward:\n"][block];
        let text = format!("---\ntype: matter\nstate: open\n{block}owner: ann\nrelated_to: [Bob]\n---\nbody\n");
        let edited = match &mutation {
            Mutation::Related { field, member, present } => frontmatter::edit_member(text.as_bytes(), field.as_str(), member, *present),
            Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } => {
                let edit = FieldEdit { field: mutation.field().to_owned(), value: Some(json!("new")) };
                frontmatter::edit_fields_with_undo(text.as_bytes(), &[edit])
            }
        };
        let after = String::from_utf8(edited.unwrap().bytes).unwrap();
        prop_assert!(after.contains(block) && after != text, "{}", after);
        let block_of = |text: &str| frontmatter::read_document(text.as_bytes()).unwrap().fields().get(read::BLOCK).cloned();
        prop_assert_eq!(block_of(&after), block_of(&text));
    }
}

/// A live change has no closed gate.
fn with_nothing_against(route: &RouteDecision) -> bool {
    matches!(route, RouteDecision::Planned(plan) if plan.draft().gates.iter().all(|gate| gate.open))
}

#[test]
fn a_key_that_was_meant_to_be_ours_holds_what_it_could_mean() {
    for (block, meant) in [
        ("Steward:\n  ceiling: act\n", "steward"),
        ("stewards:\n  daily_budget: 3\n", "steward"),
        ("steward-ceiling: ask\n", "steward_ceiling"),
        ("STEWARD_CEILING: act\n", "steward_ceiling"),
    ] {
        let document = frontmatter::read_document(format!("---\ntype: matter\n{block}---\n").as_bytes()).unwrap();
        let (policy, faults) = read::read_matter_policy(&document);
        assert_eq!(policy.unwrap().ceiling, Some(Ceiling::Ask), "{block}");
        assert_eq!(faults.len(), 1, "{block}");
        assert!(faults[0].line == 3 && faults[0].hint.contains(&format!("`{meant}`")), "{:?}", faults[0]);
    }
    let other =
        frontmatter::read_document(b"---\ntype: matter\nstewardship: mine\nsteward_ceiling: act\n---\n").unwrap();
    assert_eq!(read::read_matter_policy(&other), (None, Vec::new()));
}
