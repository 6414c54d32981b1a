//! The cache key of evidence: the same for the same evidence, another one for any other.

use super::question;
use super::signal;
use crate::steward::clerks::remote::{ANTHROPIC, ClerkWire, OLLAMA, OPENAI, RemoteClerk, RemoteClerkConfig};
use crate::steward::clerks::{Clerk, rules::RulesClerk};
use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{
    ClerkMark, ClerkQuestion, Judgement, LastDecision, QuestionSubject, SignalEvidence, hash_description,
};

fn remote(wire: &'static ClerkWire, model: &str) -> Clerk {
    at("http://127.0.0.1:1", wire, model)
}

fn at(base_url: &str, wire: &'static ClerkWire, model: &str) -> Clerk {
    Clerk::Remote(RemoteClerk::new(RemoteClerkConfig::new(wire, base_url, model)).unwrap())
}

fn clerks() -> [Clerk; 6] {
    let others = [remote(&OPENAI, "m"), remote(&OPENAI, "n"), remote(&ANTHROPIC, "m"), remote(&OLLAMA, "m")];
    let [a, b, c, d] = others;
    [Clerk::Rules(RulesClerk), a, b, c, d, at("http://127.0.0.1:2", &OPENAI, "m")]
}

#[test]
fn what_is_sent_to_openai_itself_has_the_words_that_its_models_take() {
    let asked = question(vec![signal("a", 0, Some(RecordState::Done))]);
    let sent = |clerk: &Clerk| -> Value { serde_json::from_slice(&clerk.judge_prompt(&asked, None).1).unwrap() };
    let its_own = sent(&at("https://api.openai.com/v1", &OPENAI, "gpt-5"));
    assert!(its_own.get("max_tokens").is_none() && its_own.get("temperature").is_none(), "{its_own}");
    assert_eq!(its_own["max_completion_tokens"], 4_096);
    let other = sent(&remote(&OPENAI, "m"));
    assert!(other.get("max_completion_tokens").is_none(), "{other}");
    assert_eq!((&other["max_tokens"], &other["temperature"]), (&json!(1_024), &json!(0)));
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn evidence() -> impl Strategy<Value = SignalEvidence> {
    let numbers = (0.0..=1.0, 0.0..=1.0, 0_u32..100, 0_i64..1_000_000);
    ("[a-z]{1,4}(:[a-z]{1,3}@[a-z]{1,3})?", "[a-z0-9]{1,6}", ".{0,50}", numbers, 0_usize..3).prop_map(
        |(source, slug, note, (target, effect, observations, minutes), pick)| SignalEvidence {
            source,
            reference: path(&format!("signal/{slug}.md")),
            note,
            created: DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes),
            effect: [SignalEffect::Mutation, SignalEffect::Action, SignalEffect::None][pick],
            proposed_state: [Some(RecordState::Done), Some(RecordState::Archived), None][pick],
            target_confidence: target,
            effect_confidence: effect,
            observations,
            ceiling: [Ceiling::Act, Ceiling::Confirm, Ceiling::Ask][pick],
        },
    )
}

fn questions() -> impl Strategy<Value = ClerkQuestion> {
    let names = ("[a-z]{1,8}", ".{0,300}", "[a-z]{1,8}", ".{0,300}");
    (names, prop::collection::vec(evidence(), 1..5), 0_usize..3, prop::option::of(0_i64..1_000)).prop_map(
        |((task, task_name, matter, matter_name), evidence, pick, due)| ClerkQuestion {
            subject: QuestionSubject {
                task: path(&format!("task/{task}.md")),
                task_name,
                matter: path(&format!("matter/{matter}.md")),
                matter_name,
                state: [RecordState::Open, RecordState::Done, RecordState::Archived][pick],
                surface_class: [SurfaceClass::High, SurfaceClass::Normal, SurfaceClass::Low][pick],
                due: due.map(|days| DateTime::UNIX_EPOCH + TimeDelta::days(days)),
                description_hash: None,
                last_decision: None,
            },
            evidence,
            complaint: None,
            asked_at: DateTime::UNIX_EPOCH,
        },
    )
}

/// The question with one field changed, for each of its fields. The compiler reports a new field.
fn changed(question: &ClerkQuestion) -> Vec<(&'static str, ClerkQuestion)> {
    let ClerkQuestion { subject, evidence, complaint: _, asked_at: _ } = question;
    let QuestionSubject { task: _, task_name, matter: _, matter_name, state, surface_class, due, .. } = subject;
    let with = |subject: QuestionSubject| ClerkQuestion { subject, ..question.clone() };
    let soon = due.unwrap_or(DateTime::UNIX_EPOCH) + TimeDelta::minutes(1);
    let other_state = if *state == RecordState::Open { RecordState::Done } else { RecordState::Open };
    let other_class = if *surface_class == SurfaceClass::High { SurfaceClass::Low } else { SurfaceClass::High };
    let mut all = vec![
        ("task", with(QuestionSubject { task: path("task/other-one.md"), ..subject.clone() })),
        ("task_name", with(QuestionSubject { task_name: format!("{task_name}!"), ..subject.clone() })),
        ("matter", with(QuestionSubject { matter: path("matter/other-one.md"), ..subject.clone() })),
        ("matter_name", with(QuestionSubject { matter_name: format!("{matter_name}!"), ..subject.clone() })),
        ("state", with(QuestionSubject { state: other_state, ..subject.clone() })),
        ("surface_class", with(QuestionSubject { surface_class: other_class, ..subject.clone() })),
        ("due", with(QuestionSubject { due: Some(soon), ..subject.clone() })),
        ("description", with(QuestionSubject { description_hash: Some(hash_description("d")), ..subject.clone() })),
    ];
    for at in 0..evidence.len() {
        let put = |other: SignalEvidence| {
            let mut evidence = evidence.clone();
            evidence[at] = other;
            ClerkQuestion { evidence, ..question.clone() }
        };
        all.extend(changed_evidence(&evidence[at]).into_iter().map(|(what, other)| (what, put(other))));
        let mut fewer = evidence.clone();
        fewer.remove(at);
        all.push(("one less", ClerkQuestion { evidence: fewer, ..question.clone() }));
    }
    let more = [evidence.as_slice(), &[signal("other-one", 0, None)]].concat();
    all.push(("one more", ClerkQuestion { evidence: more, ..question.clone() }));
    all
}

fn changed_evidence(one: &SignalEvidence) -> Vec<(&'static str, SignalEvidence)> {
    let SignalEvidence { source, reference: _, note, created, effect, proposed_state, .. } = one;
    let SignalEvidence { target_confidence, effect_confidence, observations, ceiling, .. } = one;
    let other = |number: f64| if number > 0.5 { number - 0.25 } else { number + 0.25 };
    let other_effect = if *effect == SignalEffect::Action { SignalEffect::None } else { SignalEffect::Action };
    let other_state = if proposed_state.is_some() { None } else { Some(RecordState::Done) };
    let other_ceiling = if *ceiling == Ceiling::Act { Ceiling::Ask } else { Ceiling::Act };
    vec![
        ("source", SignalEvidence { source: format!("{source}!"), ..one.clone() }),
        ("ref", SignalEvidence { reference: path("signal/other-one.md"), ..one.clone() }),
        ("note", SignalEvidence { note: format!("{note}!"), ..one.clone() }),
        ("created", SignalEvidence { created: *created + TimeDelta::seconds(1), ..one.clone() }),
        ("effect", SignalEvidence { effect: other_effect, ..one.clone() }),
        ("proposed_state", SignalEvidence { proposed_state: other_state, ..one.clone() }),
        ("target_confidence", SignalEvidence { target_confidence: other(*target_confidence), ..one.clone() }),
        ("effect_confidence", SignalEvidence { effect_confidence: other(*effect_confidence), ..one.clone() }),
        ("observations", SignalEvidence { observations: observations + 1, ..one.clone() }),
        ("ceiling", SignalEvidence { ceiling: other_ceiling, ..one.clone() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn other_evidence_has_another_name_and_so_has_another_clerk(question in questions(), minutes in 1_i64..10_000) {
        let mut names = BTreeSet::new();
        for clerk in clerks() {
            let name = clerk.evidence_key(&question);
            prop_assert!(names.insert(name.clone()), "two clerks have one name for it");
            for (what, other) in changed(&question) {
                prop_assert_ne!(clerk.evidence_key(&other), name.clone(), "{} was changed", what);
            }
            let asked_at = question.asked_at + TimeDelta::minutes(minutes);
            let later = ClerkQuestion { asked_at, complaint: Some("bad form".into()), ..question.clone() };
            prop_assert_eq!(clerk.evidence_key(&later), name, "the same evidence at another time");
        }
    }
}

#[test]
fn only_an_answer_to_the_very_request_counts_as_ones_own() {
    let asked = question(vec![signal("a", 0, Some(RecordState::Done))]);
    let stricter = ClerkQuestion { complaint: Some("bad form".into()), ..asked.clone() };
    for clerk in clerks() {
        let (mark, prompt) = clerk.judge_prompt(&asked, None);
        assert_eq!(mark.prompt_sha256, crate::steward::clerks::sha256_hex(&prompt));
        assert!(clerk.would_ask_the_same(&asked, None, &mark));
        assert!(!clerk.would_ask_the_same(&stricter, None, &mark), "{mark:?}");
        for other in [
            ClerkMark { provider: "other".into(), ..mark.clone() },
            ClerkMark { model: "other".into(), ..mark.clone() },
            ClerkMark { server: "other".into(), ..mark.clone() },
            ClerkMark { prompt_sha256: "0".repeat(64), ..mark.clone() },
        ] {
            assert!(!clerk.would_ask_the_same(&asked, None, &other), "{other:?}");
        }
    }
}

#[test]
fn what_was_decided_last_is_told_and_makes_no_other_question_but_a_description_does() {
    let asked = question(vec![signal("a", 0, Some(RecordState::Done))]);
    let last = LastDecision { decision: Judgement::NeedsInput, confidence: 0.5, at: DateTime::UNIX_EPOCH };
    let subject = QuestionSubject { last_decision: Some(last), ..asked.subject.clone() };
    let after = ClerkQuestion { subject, ..asked.clone() };
    for clerk in clerks() {
        assert_eq!(clerk.evidence_key(&after), clerk.evidence_key(&asked), "the same evidence costs one call");
        let (mark, prompt) = clerk.judge_prompt(&after, Some("Of City Water."));
        let prompt = String::from_utf8_lossy(&prompt).into_owned();
        if matches!(clerk, Clerk::Remote(_)) {
            assert!(prompt.contains("needs_input") && prompt.contains("Of City Water."), "{prompt}");
            assert!(
                !clerk.would_ask_the_same(&after, None, &mark),
                "who did not see the description was asked another thing"
            );
            assert!(!clerk.would_ask_the_same(&asked, Some("Of City Water."), &mark));
        }
        assert!(clerk.would_ask_the_same(&after, Some("Of City Water."), &mark));
    }
}
