//! Trust follows from the records, in any order and however often they are read.

use super::*;
use chrono::TimeDelta;
use steward_domain::action::audit::{MutationProposal, ResolverKind};
use steward_domain::action::mutation::{Mutation, RelatedField};
use steward_domain::gates::closed::ClosedGates;
use steward_domain::gates::result::{GateName, GateResult};
use steward_domain::signals::signal::source_key;
use steward_domain::trust::case::{CaseSupporter, TrustCase};
use steward_domain::trust::confidence::ConfidenceStatus;
use steward_domain::trust::demotion::{ChangeSupporter, LiveChangeUndo, ModeCap, ModeCaps};
use steward_domain::trust::mark::{TrustMark, TrustSubject};
use steward_domain::trust::outcome::ProposalFeedback;

/// A decision in an hour of the day with the contributions of these sources.
fn decide(bench: &Bench, slug: &str, hour: u32, disposition: Disposition, sources: &[(&str, f64)]) -> ActionId {
    bench.action(slug, |draft| {
        draft.timestamp = noon(&format!("{hour:02}:00:00"));
        draft.disposition = disposition;
        draft.class = Some(MutationClass::StateChange);
        // Without a proposed state, no decision repeats another.
        (draft.proposed_state, draft.proposal) = (None, None);
        draft.source_contributions = sources.iter().map(|(name, part)| ((*name).to_owned(), *part)).collect();
    })
}

fn answered(bench: &Bench, slug: &str, kind: ActionKind, of: &ActionId) -> ActionId {
    bench.action(slug, |draft| {
        answer(draft, kind, of);
        draft.timestamp = noon("12:00:00");
        draft.class = Some(MutationClass::StateChange);
        draft.source_contributions =
            BTreeMap::from([("mail:Ann@b.example".to_owned(), 0.9), ("aside".to_owned(), 0.0)]);
    })
}

#[tokio::test]
async fn confidence_moves_with_judgements_and_undos_and_is_the_same_after_a_rebuild() {
    let bench = Bench::scanned().await;
    let one = decide(&bench, "one", 1, Disposition::Live, &[("mail:ann@b.example", 1.0), ("aside", 0.0)]);
    decide(&bench, "two", 2, Disposition::Shadow, &[("mail:Ann@b.example", 0.5)]);
    answered(&bench, "undo", ActionKind::Reversed, &one);
    bench.sync("13:00:00").await;
    let trust = bench.index.trust().compute_source_trust(noon("13:00:00")).await.unwrap();
    let key = steward_domain::signals::signal::source_key("mail:ann@b.example");
    let ann = &trust[&key];
    assert!((ann.confidence.value - (0.9 * 0.55 + 0.1 * 0.5 - 0.1)).abs() < 1e-9, "{ann:?}");
    assert_eq!((ann.confidence.judged, ann.confidence.undone, ann.name.as_str()), (2, 1, "mail:Ann@b.example"));
    let aside = &trust["aside"];
    assert!(
        (aside.confidence.value - 0.45).abs() < 1e-9 && aside.confidence.undone == 0,
        "it contributed nothing: {aside:?}"
    );

    bench.index.rebuild(&bench.root, noon("13:01:00")).await.unwrap();
    assert_eq!(bench.index.trust().compute_source_trust(noon("13:00:00")).await.unwrap(), trust);
    let again = Index::open(&bench.dir.path().join("anew")).await.unwrap();
    again.sync_all(&bench.root, noon("14:00:00")).await.unwrap();
    assert_eq!(again.trust().compute_source_trust(noon("13:00:00")).await.unwrap(), trust, "the records alone say so");
}

#[tokio::test]
async fn what_a_model_undoes_or_dismisses_teaches_nothing_and_proves_nothing() {
    let bench = Bench::scanned().await;
    let one = decide(&bench, "one", 1, Disposition::Live, &[("mail:ann@b.example", 0.9)]);
    let two = decide(&bench, "two", 2, Disposition::Pending, &[("mail:ann@b.example", 0.9)]);
    bench.sync("11:00:00").await;
    let trust = async |day| {
        let now = noon("13:00:00") + TimeDelta::days(day);
        bench.index.trust().compute_source_trust(now).await.unwrap()
    };
    let (before, kept) = (trust(0).await, trust(8).await);
    let key = steward_domain::signals::signal::source_key("mail:ann@b.example");
    assert_eq!((before[&key].observations, kept[&key].observations), (0, 1), "a change that nobody undid is right");
    for (slug, kind, of) in [("undo", ActionKind::Reversed, &one), ("no", ActionKind::Dismissed, &two)] {
        bench.action(slug, |draft| {
            answer(draft, kind, of);
            draft.resolution.as_mut().unwrap().resolved_by = ResolverKind::Agent;
            draft.timestamp = noon("12:00:00");
            draft.class = Some(MutationClass::StateChange);
            draft.source_contributions = BTreeMap::from([("mail:ann@b.example".to_owned(), 0.9)]);
        });
    }
    bench.sync("13:00:00").await;
    assert_eq!(trust(0).await, before);
    assert_eq!(trust(8).await[&key].observations, 0, "nor was it right, because it is no more");
    let changes = bench.index.trust().list_recent_live_changes(noon("13:00:00")).await.unwrap();
    assert!(changes.iter().all(|change| change.undone.is_none()), "it leads to no demotion: {changes:?}");
    let mut feedback = Vec::new();
    bench.index.trust().for_each_case(noon("13:00:00"), |case| feedback.push(case.feedback)).await.unwrap();
    assert_eq!(feedback, [ProposalFeedback::Open, ProposalFeedback::Open]);

    // A person agrees with both.
    for (slug, of) in [("agree-undo", "undo"), ("agree-no", "no")] {
        let of = ActionId::derive(&[of]);
        bench.action(slug, |draft| {
            answer(draft, ActionKind::Right, &of);
            draft.timestamp = noon("12:30:00");
        });
    }
    bench.sync("13:30:00").await;
    let agreed = trust(0).await;
    assert_eq!((agreed[&key].confidence.undone, agreed[&key].observations), (1, 0), "{:?}", agreed[&key]);
    let changes = bench.index.trust().list_recent_live_changes(noon("13:00:00")).await.unwrap();
    let moments: Vec<_> = changes.iter().filter_map(|change| change.undone.as_ref().map(|undone| undone.at)).collect();
    assert_eq!(moments, [noon("12:30:00")], "it may lead to a demotion, from the moment of the agreement");
    let mut feedback = Vec::new();
    bench.index.trust().for_each_case(noon("13:00:00"), |case| feedback.push(case.feedback)).await.unwrap();
    assert_eq!(feedback, [ProposalFeedback::Undone, ProposalFeedback::Dismissed]);
    bench.index.rebuild(&bench.root, noon("13:31:00")).await.unwrap();
    assert_eq!(trust(0).await, agreed, "the records alone say so");
}

#[tokio::test]
async fn an_average_starts_where_a_human_wrote_that_it_does_and_that_outlives_our_own_numbers() {
    let bench = Bench::scanned().await;
    decide(&bench, "one", 1, Disposition::Live, &[("bank", 1.0), ("aside", 1.0)]);
    bench.put("instinct/bank.md", "---\ntype: instinct\nobservations: 62\nconfidence: 0.8\n---\n");
    bench.sync("13:00:00").await;
    let value = async |source: &str| {
        bench.index.trust().compute_source_trust(noon("13:00:00")).await.unwrap()[source].confidence.value
    };
    assert!((value("bank").await - 0.82).abs() < 1e-9 && (value("aside").await - 0.55).abs() < 1e-9);
    let ours = "observations: 62\nconfidence: 0.82\ninitial_confidence: 0.8\ncounted: 0\n";
    bench.put("instinct/bank.md", format!("---\ntype: instinct\n{ours}---\n"));
    bench.sync("13:01:00").await;
    assert!((value("bank").await - 0.82).abs() < 1e-9, "the judgement is not weighed twice");
    bench.put("instinct/bank.md", "---\ntype: instinct\nobservations: 0\nconfidence: 0.9\ncounted: 0\n---\n");
    bench.sync("13:02:00").await;
    assert!((value("bank").await - 0.55).abs() < 1e-9, "without a person's start value it starts in the middle");
}

#[tokio::test]
async fn a_source_that_never_gives_anything_is_pruned_and_that_has_its_cause() {
    let bench = Bench::scanned().await;
    for n in 0..3 {
        decide(&bench, &format!("d{n}"), n + 1, Disposition::Recorded, &[("noise", 0.0), ("bank", 0.8)]);
    }
    bench.sync("13:00:00").await;
    let trust = bench.index.trust().compute_source_trust(noon("13:00:00")).await.unwrap();
    let moves: Vec<_> = trust["noise"].status_changes.iter().map(|m| (m.to, m.cause.as_str(), m.at)).collect();
    assert_eq!(moves, [(ConfidenceStatus::Pruned, ActionId::derive(&["d2"]).as_str(), noon("03:00:00"))]);
    assert_eq!(trust["bank"].confidence.status, ConfidenceStatus::Live);
}

#[tokio::test]
async fn only_lessons_that_agree_are_observations() {
    let bench = Bench::scanned().await;
    let ann = [("mail:ann@b.example", 0.9)];
    let key = steward_domain::signals::signal::source_key("mail:ann@b.example");
    decide(&bench, "left", 1, Disposition::Live, &ann);
    let waits = decide(&bench, "waits", 2, Disposition::Pending, &ann);
    let undone = decide(&bench, "undone", 3, Disposition::Live, &ann);
    decide(&bench, "shadow", 4, Disposition::Shadow, &ann);
    bench.sync("13:00:00").await;
    let seen = async |now| bench.index.trust().compute_source_trust(now).await.unwrap()[&key].observations;
    let week = noon("13:00:00") + TimeDelta::days(7);
    assert_eq!(seen(noon("13:00:00")).await, 0, "nothing is known yet");
    assert_eq!(seen(week).await, 2, "two were left alone for a week");
    answered(&bench, "no", ActionKind::Reversed, &undone);
    let confirmed = answered(&bench, "yes", ActionKind::Confirmed, &waits);
    bench.sync("14:00:00").await;
    assert_eq!((seen(noon("14:00:00")).await, seen(week).await), (1, 2), "one confirmed, one left alone, one undone");
    answered(&bench, "no-after-all", ActionKind::Reversed, &confirmed);
    bench.sync("15:00:00").await;
    assert_eq!(seen(week).await, 1);
}

#[tokio::test]
async fn a_lowered_mode_holds_until_a_later_mark_and_after_a_rebuild() {
    let bench = Bench::scanned().await;
    let gmail = || TrustSubject::Source("gmail".into());
    let mark = |slug: &str, kind, trust| {
        bench.action(slug, |draft| {
            draft.kind = kind;
            draft.trust = Some(trust);
            draft.timestamp = noon("08:00:00");
        })
    };
    let (from, to) = (Mode::Live, Mode::LiveHighConfidenceOnly);
    let down =
        TrustMark::Lowered { subject: gmail(), name: None, from, to, undone: 2, of: 3, at_least: 0.25, budget: 0.05 };
    let id = mark("one", ActionKind::Lowered, down);
    mark("two", ActionKind::Pruned, TrustMark::Pruned { subject: gmail(), name: None, confidence: 0.19 });
    bench.sync("13:00:00").await;
    let lowered = ModeCaps::from([(gmail(), ModeCap { mode: Some(to), since: noon("08:00:00"), seq: 1 })]);
    assert_eq!(bench.index.trust().read_mode_caps().await.unwrap(), lowered);
    assert_eq!(bench.index.trust().find_last_demotion(&gmail()).await.unwrap(), Some(id));
    assert_eq!(
        bench.index.trust().find_last_demotion(&TrustSubject::Class(MutationClass::Related)).await.unwrap(),
        None
    );
    assert_eq!(bench.index.trust().list_prune_records().await.unwrap().len(), 1);
    bench.index.rebuild(&bench.root, noon("13:01:00")).await.unwrap();
    assert_eq!(bench.index.trust().read_mode_caps().await.unwrap(), lowered);
    mark("three", ActionKind::Raised, TrustMark::Raised { subject: gmail() });
    bench.sync("14:00:00").await;
    assert_eq!(bench.index.trust().read_mode_caps().await.unwrap()[&gmail()].mode, None);
}

#[tokio::test]
async fn changes_of_a_week_are_told_with_their_undos_and_sources() {
    let bench = Bench::scanned().await;
    let sources = [("mail:ann@b.example", 0.9), ("aside", 0.0)];
    let one = decide(&bench, "one", 1, Disposition::Live, &sources);
    decide(&bench, "two", 2, Disposition::Live, &sources);
    decide(&bench, "shadow", 3, Disposition::Shadow, &sources);
    let undo = answered(&bench, "undo", ActionKind::Reversed, &one);
    bench.sync("13:00:00").await;
    let made = bench.index.trust().list_recent_live_changes(noon("13:00:00")).await.unwrap();
    let key = steward_domain::signals::signal::source_key("mail:ann@b.example");
    let ann = ChangeSupporter { key, name: "mail:ann@b.example".into(), is_unknown: true };
    assert!(made.iter().all(|m| m.sources == [ann.clone()] && m.class == MutationClass::StateChange), "{made:?}");
    let undone: Vec<_> = made.iter().map(|m| m.undone.clone()).collect();
    assert_eq!(undone, [Some(LiveChangeUndo { seq: 4, at: noon("12:00:00"), id: undo.to_string() }), None]);
    assert!(
        bench.index.trust().list_recent_live_changes(noon("13:00:00") + TimeDelta::days(8)).await.unwrap().is_empty()
    );
}

#[tokio::test]
async fn what_is_open_and_whose_target_was_written_to_since_is_compared() {
    let bench = Bench::scanned().await;
    bench.put("task/t.md", "---\ntype: task\nparent_matter: \"[[matter/m]]\"\n---\n");
    let proposed = |slug: &str, disposition| decide(&bench, slug, 1, disposition, &[("mail", 0.9)]);
    proposed("open", Disposition::Shadow);
    let said_no = proposed("answered", Disposition::Pending);
    proposed("live", Disposition::Live);
    answered(&bench, "no", ActionKind::Dismissed, &said_no);
    bench.sync("13:00:00").await;
    let to_compare = async |now| bench.index.trust().next_comparison_round(now).await.unwrap().proposals.len();
    // Steward's later live change settles the earlier proposal. The live change itself may be reverted.
    assert_eq!(to_compare(noon("13:00:00")).await, 1);
    proposed("newer", Disposition::Shadow);
    bench.sync("14:00:00").await;
    assert_eq!(to_compare(noon("14:00:00")).await, 2);
    assert_eq!(to_compare(noon("14:00:00") + TimeDelta::days(7)).await, 1, "as long as it can be undone");
    assert_eq!(to_compare(noon("14:00:00") + TimeDelta::days(14)).await, 0, "watched for 14 days");
}

#[tokio::test]
async fn a_change_of_another_member_hides_no_proposal() {
    let bench = Bench::scanned().await;
    bench.put("task/t.md", "---\ntype: task\nparent_matter: \"[[matter/m]]\"\n---\n");
    let related = |slug: &str, (hour, disposition): (u32, Disposition), member: &str| {
        bench.action(slug, |draft| {
            draft.timestamp = noon(&format!("{hour:02}:00:00"));
            (draft.disposition, draft.class) = (disposition, Some(MutationClass::Related));
            let (field, member) = (RelatedField::RelatedTo, member.to_owned());
            let mutation = Mutation::Related { field, member, present: true };
            draft.proposal = Some(MutationProposal { mutation, replaces: None, moved_from: None });
        })
    };
    related("ann", (1, Disposition::Shadow), "Ann");
    related("bob", (2, Disposition::Live), "[[Bob]]");
    bench.sync("13:00:00").await;
    let to_compare =
        async || bench.index.trust().next_comparison_round(noon("13:00:00")).await.unwrap().proposals.len();
    assert_eq!(to_compare().await, 2);
    related("ann-ours", (3, Disposition::Live), "[[Ann]]");
    bench.sync("14:00:00").await;
    assert_eq!(to_compare().await, 2, "a change of Steward, not of a person: it settles the first proposal");
}

async fn cases(bench: &Bench, now: &str) -> Vec<TrustCase> {
    let mut all = Vec::new();
    bench.index.trust().for_each_case(noon(now), |case| all.push(case.clone())).await.unwrap();
    all
}

#[tokio::test]
async fn every_proposal_is_a_case_with_its_gates_sources_and_lesson_also_after_a_rebuild() {
    let bench = Bench::scanned().await;
    let closed = |gate| vec![GateResult { gate, open: false, found: String::new(), needed: String::new() }];
    let ann = [("mail:Ann@b.example", 0.9), ("aside", 0.0)];
    let one = decide(&bench, "one", 1, Disposition::Live, &ann);
    bench.action("two", |draft| {
        draft.timestamp = noon("02:00:00");
        draft.disposition = Disposition::Shadow;
        draft.class = Some(MutationClass::StateChange);
        draft.gates = closed(GateName::Mode);
    });
    decide(&bench, "nothing", 3, Disposition::Recorded, &ann);
    bench.action("looked", |draft| draft.class = None);
    let waits = decide(&bench, "waits", 4, Disposition::Pending, &ann);
    answered(&bench, "no", ActionKind::Reversed, &one);
    let confirmed = answered(&bench, "yes", ActionKind::Confirmed, &waits);
    bench.sync("13:00:00").await;
    let seen = cases(&bench, "13:00:00").await;
    let lessons: Vec<ProposalFeedback> = seen.iter().map(|case| case.feedback).collect();
    assert_eq!(
        lessons,
        [ProposalFeedback::Open, ProposalFeedback::Undone, ProposalFeedback::Open, ProposalFeedback::Confirmed],
        "in the order of their names"
    );
    assert_eq!(
        seen[1].supporters,
        [CaseSupporter { key: source_key(ann[0].0), name: ann[0].0.into() }],
        "what gave nothing is silent"
    );
    assert_eq!(seen[2].closed, ClosedGates::default().with_gate(GateName::Mode));

    answered(&bench, "no-after-all", ActionKind::Reversed, &confirmed);
    bench.sync("14:00:00").await;
    let later = cases(&bench, "14:00:00").await;
    assert_eq!(later[3].feedback, ProposalFeedback::Undone, "what was confirmed can be taken back");
    bench.index.rebuild(&bench.root, noon("14:01:00")).await.unwrap();
    assert_eq!(cases(&bench, "14:00:00").await, later);
}

#[tokio::test]
async fn a_case_is_held_by_the_ceilings_that_humans_have_set_by_now() {
    let bench = Bench::scanned().await;
    let ceilings = async |clock: &str| {
        bench.sync(clock).await;
        let of = |case: &TrustCase| {
            let set = case.cited.iter().filter_map(|source| source.ceiling).fold(case.ceiling, Ceiling::min);
            (set, case.cited.iter().any(|source| source.ceiling.is_none()))
        };
        cases(&bench, clock).await.iter().map(of).collect::<Vec<_>>()
    };
    bench.matter("m");
    bench.task("t", "m", "");
    bench.action("one", |draft| {
        cite(draft, "signal/s.md");
        draft.class = Some(MutationClass::StateChange);
        draft.source_contributions = BTreeMap::from([("gmail".to_owned(), 0.0), ("aside".to_owned(), 0.9)]);
    });
    bench.put("instinct/aside.md", "---\ntype: instinct\nsource: aside\nceiling: ask\n---\n");
    assert_eq!(ceilings("01:00:00").await, [(Ceiling::Act, true)]);
    bench.put("instinct/gmail.md", "---\ntype: instinct\nsource: gmail\nceiling: act\n---\n");
    assert_eq!(ceilings("02:00:00").await, [(Ceiling::Act, false)]);
    bench.put("instinct/gmail.md", "---\ntype: instinct\nsource: gmail\nceiling: confirm\n---\n");
    assert_eq!(ceilings("03:00:00").await, [(Ceiling::Confirm, false)]);
    bench.put("matter/m.md", "---\ntype: matter\nstate: open\nsteward_ceiling: ask\n---\n");
    assert_eq!(ceilings("04:00:00").await, [(Ceiling::Ask, false)]);
    bench.put("instinct/gmail.md", "---\ntype: instinct\nsource: gmail\nceiling: act\n---\n");
    bench.put("matter/m.md", "---\ntype: matter\nstate: open\nsteward:\n  ceiling: confirm\n---\n");
    assert_eq!(ceilings("05:00:00").await, [(Ceiling::Confirm, false)]);
    bench.put("matter/m.md", "---\ntype: matter\nstate: open\n---\n");
    assert_eq!(ceilings("06:00:00").await, [(Ceiling::Act, false)]);
}
