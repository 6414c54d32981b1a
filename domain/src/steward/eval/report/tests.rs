//! Every figure of a report, from answers that are known.

use super::*;
use crate::steward::eval::cases::{read_cases, read_shipped_cases};

fn decided(case: &str, decision: Judgement, confidence: f64) -> CaseAnswer {
    answer(case, CaseOutcome::Decided { decision, confidence })
}

fn answer(case: &str, outcome: CaseOutcome) -> CaseAnswer {
    let tokens = TokenUsage { prompt_tokens: 1_000, completion_tokens: 100 };
    CaseAnswer { case: case.to_owned(), outcome, tokens, seconds: 2.0, tries: 1 }
}

fn bar() -> EvidenceBar {
    EvidenceBar::from_budget(0.05)
}

/// What a clerk that is always right answers.
fn answer_rightly(case: &EvalCase, confidence: f64) -> CaseAnswer {
    match &case.question {
        CaseQuestion::Task { expected, .. } => decided(&case.id, expected[0], confidence),
        CaseQuestion::Event { expected, .. } => {
            let fact = |it: &ExpectedFact| FoundFact {
                target: Some(it.target.clone()),
                effect: it.effect,
                mutation: it.mutation.clone(),
                confidence,
            };
            answer(&case.id, CaseOutcome::Found { facts: expected.iter().map(fact).collect() })
        }
    }
}

#[test]
fn whoever_is_always_right_clears_the_bar_and_one_error_is_no_obstacle() {
    let cases = read_shipped_cases().unwrap();
    let mut answers: Vec<CaseAnswer> = cases.iter().map(|case| answer_rightly(case, 0.9)).collect();
    let prices = TokenPrices { prompt: 2.0, completion: 10.0 };
    let report = EvalReport::new(&cases, &answers, bar(), Some(prices));
    assert_eq!((report.answered, report.cases, report.unusable.count), (300, 300, 0));
    for figures in report.decisions.iter().chain(&report.effects) {
        assert_eq!((figures.precision.share, figures.recall.share), (Some(1.0), Some(1.0)), "{figures:?}");
    }
    assert!(report.groups.len() == 20 && report.groups.iter().all(|group| group.right.share == Some(1.0)));
    assert_eq!((report.injections.count, report.injections.of), (0, 12));
    assert_eq!(report.thresholds[2].from, Some(0.9), "{:?}", report.thresholds);
    assert_eq!((report.seconds_median, report.seconds_p95), (Some(2.0), Some(2.0)));
    // 300,000 tokens of prompts at 2, and 30,000 of answers at 10.
    assert!((report.cost.unwrap() - 0.9).abs() < 1e-9);
    let error = report.reliability.expected_calibration_error.unwrap();
    assert!((error - 0.1).abs() < 1e-9, "it says 90 % and is always right: {error}");

    let wrong = cases.iter().position(
        |case| matches!(&case.question, CaseQuestion::Task { expected, .. } if expected[0] == Judgement::StillActive),
    );
    answers[wrong.unwrap()] = decided(&cases[wrong.unwrap()].id, Judgement::LikelyDone, 0.9);
    let report = EvalReport::new(&cases, &answers, bar(), None);
    assert_eq!(
        (report.thresholds[2].from, report.thresholds[2].right.of - report.thresholds[2].right.count),
        (Some(0.9), 1)
    );
    assert_eq!(report.cost, None);
}

#[test]
fn a_threshold_lies_where_errors_end() {
    let changes: Vec<JudgedChange> = (0..100)
        .map(|_| (0.9, true))
        .chain((0..10).map(|_| (0.6, false)))
        .chain((0..10).map(|_| (0.7, true)))
        .collect();
    let found = find_threshold("x", &changes, bar());
    assert_eq!((found.from, found.right.count, found.right.of), (Some(0.7), 110, 110));
    let few = find_threshold("x", &changes[..60], bar());
    assert_eq!((few.from, few.levels.len()), (None, LEVELS.len()), "60 are too few");
    assert_eq!((few.levels[0].right.count, few.levels[5].right.of), (60, 0));
    assert_eq!(find_threshold("x", &[], bar()).right.share, None);
}

#[test]
fn wrong_decisions_count_where_they_were_made_and_where_they_are_missing() {
    let task = |id: &str, expect: &str| {
        format!(
            "- id: {id}\n  task: T\n  matter: M\n  signals: [{{days_ago: 1, source: s, note: words, effect: none, target: 1, sure: 1}}]\n  expect: {expect}\n"
        )
    };
    let text = format!(
        "{}{}{}{}",
        task("a", "likely_done"),
        task("b", "still_active"),
        task("c", "needs_input\n  accept: [still_active]"),
        task("d", "likely_done")
    );
    let cases = read_cases("own.yaml", "injections", &text).unwrap();
    let answers = [
        decided("a", Judgement::LikelyDone, 0.8),
        decided("b", Judgement::LikelyDone, 0.6),
        decided("c", Judgement::StillActive, 0.5),
        answer("d", CaseOutcome::Unusable { reason: "no JSON".to_owned() }),
        decided("unknown", Judgement::LikelyDone, 1.0),
    ];
    let report = EvalReport::new(&cases, &answers, bar(), None);
    let figures = |at: usize| {
        let it = &report.decisions[at];
        (it.kind, it.precision.count, it.precision.of, it.recall.count, it.recall.of)
    };
    assert_eq!(figures(0), ("still_active", 1, 1, 0, 1));
    assert_eq!(figures(1), ("likely_done", 1, 2, 1, 2));
    assert_eq!(figures(2), ("needs_input", 0, 0, 1, 1), "another answer was as good");
    assert_eq!((report.answered, report.unusable.count, report.unusable.of), (4, 1, 4));
    assert_eq!((report.injections.count, report.injections.of), (2, 4));
    assert_eq!((report.groups[0].right.count, report.groups[0].right.of), (2, 4));
}

#[test]
fn facts_are_compared_by_note_effect_and_change_and_one_that_is_found_twice_counts_once() {
    let text = "- id: e\n  source: mail\n  text: words\n  candidates: [{task: T, score: 0.5}, {matter: M, score: 0.4}]\n  expect:\n    \
        - {about: T, effect: mutation, set: {state: done}}\n    - {about: M, effect: mutation, set: {owner: Anna Li}}\n";
    let cases = read_cases("own.yaml", "own", text).unwrap();
    let CaseQuestion::Event { expected, .. } = cases[0].question.clone() else { panic!() };
    let fact = |at: usize, target: usize| FoundFact {
        target: Some(expected[target].target.clone()),
        effect: SignalEffect::Mutation,
        mutation: expected[at].mutation.clone(),
        confidence: 0.9,
    };
    let report =
        |facts: Vec<FoundFact>| EvalReport::new(&cases, &[answer("e", CaseOutcome::Found { facts })], bar(), None);
    let shouted =
        Mutation::from_proposal(&serde_json::json!({"class": "context_edit", "set": {"owner": "ANNA LI"}})).unwrap();
    let right = report(vec![fact(0, 0), fact(0, 0), FoundFact { mutation: Some(shouted), ..fact(1, 1) }]);
    assert_eq!(right.groups[0].right.count, 1, "{right:?}");
    assert_eq!((right.effects[0].precision.of, right.effects[1].recall.count), (1, 1));
    let nothing = FoundFact { effect: SignalEffect::None, mutation: None, ..fact(0, 0) };
    let other = report(vec![fact(0, 1), nothing]);
    assert_eq!(
        (other.groups[0].right.count, other.effects[0].precision.count, other.effects[0].precision.of),
        (0, 0, 1)
    );
    let asks =
        report(vec![fact(0, 0), fact(1, 1), FoundFact { effect: SignalEffect::Action, mutation: None, ..fact(0, 0) }]);
    assert_eq!((asks.groups[0].right.count, asks.effects[2].precision.of), (0, 1), "a request that nobody made");
}
