//! The cases of the program are what they claim to be, and a faulty file is named by its line.

use super::*;
use crate::record::entity::RecordState;
use std::collections::BTreeMap;

#[test]
fn the_program_has_300_cases_and_enough_of_them_ask_for_a_change() {
    let cases = read_shipped_cases().unwrap();
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), 300, "each id stands once");
    let (mut labels, mut events, mut groups) = (BTreeMap::new(), 0, BTreeSet::new());
    for case in &cases {
        groups.insert(case.group.as_str());
        match &case.question {
            CaseQuestion::Task { expected, .. } => *labels.entry(expected[0]).or_insert(0) += 1,
            CaseQuestion::Event { .. } => events += 1,
        }
    }
    assert_eq!((events, groups.len(), labels.values().sum::<i32>()), (100, 20, 200));
    let changes = labels[&Judgement::LikelyDone] + labels[&Judgement::StaleArchiveCandidate];
    // With one error among so many the lower end of the interval is still above 95 %.
    assert!(changes >= 140, "{labels:?}");
    assert!(crate::trust::wilson::RateEstimate::new(139, 140).low > 0.95);
    assert!(labels[&Judgement::NeedsInput] >= 10 && labels[&Judgement::StillActive] >= 40, "{labels:?}");
}

#[test]
fn no_question_names_its_case_or_its_label() {
    for case in read_shipped_cases().unwrap() {
        let shown = match &case.question {
            CaseQuestion::Task { question, .. } => serde_json::to_string(question).unwrap(),
            CaseQuestion::Event { question, .. } => serde_json::to_string(question).unwrap(),
        };
        let named = [format!("\"{}\"", case.id), format!("/{}.md", case.id)];
        assert!(named.iter().all(|name| !shown.contains(name)), "{}", case.id);
    }
}

#[test]
fn a_case_is_the_question_of_a_check() {
    let text = "# Bills.\n- id: water\n  task: Pay the water bill\n  matter: Household\n  description: City Water.\n  due: 2026-11-30\n  signals:\n    \
        - {days_ago: 2, source: bank, note: The old one., effect: none, target: 0.9, sure: 0.8}\n    \
        - {days_ago: 0.5, source: mail, note: We received it., effect: mutation, proposes: done, target: 0.9, sure: 0.7}\n  \
        expect: likely_done\n  accept: [needs_input]\n";
    let cases = read_cases("own.yaml", "own", text).unwrap();
    let CaseQuestion::Task { question, description, expected } = &cases[0].question else { panic!("{cases:?}") };
    assert_eq!(
        (question.subject.task.as_str(), question.subject.matter.as_str()),
        ("task/pay-the-water-bill.md", "matter/household.md")
    );
    assert_eq!((description.as_deref(), question.subject.state), (Some("City Water."), RecordState::Open));
    assert_eq!(
        question.evidence.iter().map(|it| it.note.as_str()).collect::<Vec<_>>(),
        ["We received it.", "The old one."]
    );
    assert_eq!(question.evidence[0].created, asked_at() - chrono::TimeDelta::hours(12));
    assert_eq!(expected, &[Judgement::LikelyDone, Judgement::NeedsInput]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let task = "- id: a\n  task: T\n  matter: M\n  signals: [{days_ago: 1, source: s, note: words, effect: none, target: 1, sure: 1}]\n  expect: still_active\n";
    let long = "x".repeat(51);
    for (text, line, problem) in [
        ("a: b\n".to_owned(), 1, "a YAML list"),
        ("- [\n".to_owned(), 1, "a YAML list"),
        ("- task: T\n".to_owned(), 1, "no `id`"),
        (format!("{task}{}", task.replace("id: a", "id: A b")), 6, "case 2 has no `id`"),
        (format!("{task}\n{task}"), 1, "`a` stands twice"),
        (task.replace("expect: still_active", "expect: done"), 1, "unknown variant `done`"),
        (task.replace("  expect: still_active\n", ""), 1, "missing field `expect`"),
        (task.replace("note: words", &format!("note: {long}")), 1, "51 characters: a signal keeps at most 50"),
        (task.replace("effect: none", "effect: mutation"), 1, "`proposes` belongs to the effect `mutation`"),
        (task.replace("target: 1", "target: 2"), 1, "give a number from 0 to 1"),
        (task.replace("expect: still_active", "expect: still_active\n  colour: red"), 1, "unknown field `colour`"),
        ("- {id: e, source: s, text: t, candidates: [{task: T, score: 0.5}], expect: [{about: X, effect: action}]}\n".to_owned(), 1, "`X` is no candidate"),
        ("- {id: e, source: s, text: t, candidates: [{task: T, score: 0.5}], expect: [{about: T, effect: mutation}]}\n".to_owned(), 1, "a `mutation` has `set`"),
    ] {
        let error = read_cases("own.yaml", "own", &text).unwrap_err();
        assert!(error.problem.contains(problem), "{error}");
        assert_eq!((error.file.as_str(), error.line), ("own.yaml", line), "{error}");
    }
}

#[test]
fn the_facts_of_an_event_are_changes_as_a_clerk_proposes_them() {
    let text = "- id: e\n  source: mail\n  text: Anna looks after the house now. The roof belongs to it.\n  candidates:\n    \
        - {task: Mend the roof, matter: Garden, score: 0.5}\n    - {matter: The house, score: 0.4}\n  expect:\n    \
        - {about: The house, effect: mutation, set: {owner: Anna}}\n    \
        - {about: Mend the roof, effect: mutation, set: {parent_matter: The house}}\n    \
        - {about: Mend the roof, effect: action}\n";
    let cases = read_cases("own.yaml", "own", text).unwrap();
    let CaseQuestion::Event { question, expected } = &cases[0].question else { panic!("{cases:?}") };
    assert_eq!(
        question.offers.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(),
        ["task/mend-the-roof.md", "matter/the-house.md"]
    );
    let moved = expected[1].mutation.as_ref().unwrap();
    assert_eq!(moved.to_proposal()["set"]["parent_matter"], "matter/the-house.md");
    assert_eq!((expected[0].target.as_str(), expected[2].mutation.as_ref()), ("matter/the-house.md", None));
}

#[test]
fn the_cases_in_the_documents_can_be_read() {
    let page = include_str!("../../../../../docs/clerks.md");
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let cases: Vec<EvalCase> = blocks.iter().flat_map(|text| read_cases("own.yaml", "own", text).unwrap()).collect();
    assert_eq!(cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["boiler-serviced", "boiler-mail"]);
}
