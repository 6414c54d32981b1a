use super::*;
use crate::steward::clerks::tests::{question, reservation, signal};
use steward_domain::steward::clerk::TokenUsage;

fn judged(evidence: Vec<SignalEvidence>) -> Verdict {
    let question = question(evidence);
    let verdict = judge_by_rules(&question);
    let written = serde_json::to_string(&verdict).unwrap();
    assert_eq!(Verdict::parse_answer(&written, &question).as_ref(), Ok(&verdict), "the rules broke the form");
    verdict
}

fn refs(verdict: &Verdict) -> Vec<&str> {
    verdict.evidence.iter().map(RecordPath::slug).collect()
}

#[test]
fn proposals_that_agree_are_repeated_with_the_strongest_confidence() {
    let weak = SignalEvidence { target_confidence: 0.5, ..signal("weak", 1, Some(RecordState::Done)) };
    let verdict = judged(vec![signal("a", 2, Some(RecordState::Done)), weak, signal("other", 0, None)]);
    assert_eq!(verdict.decision, Judgement::LikelyDone);
    assert_eq!(verdict.confidence, 0.8);
    assert_eq!(refs(&verdict), ["a", "weak"]);
    assert_eq!(verdict.reasoning, "Fixed rules, no model was asked: 2 signals propose done, and none disagrees.");
}

#[test]
fn a_proposal_to_archive_is_a_stale_archive_candidate() {
    let verdict = judged(vec![signal("a", 1, Some(RecordState::Archived))]);
    assert_eq!(verdict.decision, Judgement::StaleArchiveCandidate);
}

#[test]
fn proposals_that_contradict_each_other_need_input() {
    for other in [RecordState::Open, RecordState::Archived] {
        let newest = SignalEvidence { effect_confidence: 0.3, ..signal("newest", 5, Some(other)) };
        let verdict = judged(vec![signal("a", 1, Some(RecordState::Done)), newest]);
        assert_eq!(verdict.decision, Judgement::NeedsInput, "{other:?}");
        assert_eq!(verdict.confidence, 0.3, "the newest says how sure it is");
        assert_eq!(refs(&verdict), ["a", "newest"]);
    }
}

#[test]
fn a_newest_signal_that_asks_for_action_needs_input() {
    let asks = |minute| SignalEvidence { effect: SignalEffect::Action, ..signal("asks", minute, None) };
    let verdict = judged(vec![signal("a", 1, Some(RecordState::Done)), asks(2)]);
    assert_eq!((verdict.decision, refs(&verdict)), (Judgement::NeedsInput, vec!["asks"]));
    let same_moment = judged(vec![asks(1), signal("a", 1, Some(RecordState::Done))]);
    assert_eq!(same_moment.decision, Judgement::NeedsInput);
    let older = judged(vec![signal("a", 1, Some(RecordState::Done)), asks(0)]);
    assert_eq!(older.decision, Judgement::LikelyDone, "an action that something newer followed is no obstacle");
}

#[test]
fn signals_without_a_usable_proposal_leave_the_task_active() {
    let not_a_mutation = SignalEvidence { effect: SignalEffect::None, ..signal("b", 2, Some(RecordState::Done)) };
    let verdict = judged(vec![signal("a", 1, None), not_a_mutation]);
    assert_eq!((verdict.decision, verdict.evidence.len()), (Judgement::StillActive, 0));
    assert_eq!(judged(vec![signal("a", 1, Some(RecordState::Open))]).decision, Judgement::StillActive);
    assert_eq!(judged(Vec::new()).decision, Judgement::StillActive);
}

#[test]
fn a_source_contributes_its_most_confident_effect() {
    let bank =
        |c| SignalEvidence { source: "bank".into(), effect_confidence: c, ..signal("b", 1, Some(RecordState::Done)) };
    let verdict = judged(vec![bank(0.2), bank(0.7), signal("a", 1, None)]);
    assert_eq!(verdict.source_contributions, BTreeMap::from([("bank".into(), 0.7), ("gmail".into(), 0.8)]));
    assert_eq!(refs(&verdict), ["b"], "one record is named once");
}

#[test]
fn a_confidence_that_is_no_number_counts_as_none() {
    let broken = SignalEvidence { target_confidence: f64::NAN, ..signal("a", 1, Some(RecordState::Done)) };
    assert_eq!(judged(vec![broken]).confidence, 0.0);
    let beyond =
        SignalEvidence { target_confidence: 7.0, effect_confidence: 9.0, ..signal("a", 1, Some(RecordState::Done)) };
    assert_eq!(judged(vec![beyond]).confidence, 1.0);
}

#[test]
fn the_same_question_gets_the_same_reply_and_another_one_another_mark() {
    let reservation = reservation();
    let one = question(vec![signal("a", 1, Some(RecordState::Done))]);
    let other = question(vec![signal("b", 1, Some(RecordState::Done))]);
    let reply = RulesClerk.ask(&reservation, &one);
    assert_eq!(reply, RulesClerk.ask(&reservation, &one));
    assert_ne!(reply.clerk.prompt_sha256, RulesClerk.ask(&reservation, &other).clerk.prompt_sha256);
    assert_eq!((reply.clerk.provider.as_str(), reply.clerk.model.as_str()), ("rules", "proposals-1"));
    assert_eq!(reply.clerk.tokens, TokenUsage::default());
}

#[test]
fn the_prompt_is_named_by_the_evidence_and_not_by_the_moment() {
    let first = question(vec![signal("a", 0, Some(RecordState::Done))]);
    let later = ClerkQuestion { asked_at: first.asked_at + chrono::TimeDelta::hours(1), ..first.clone() };
    let hash = |question: &ClerkQuestion| RulesClerk.ask(&reservation(), question).clerk.prompt_sha256;
    assert_eq!(hash(&first), hash(&later));
    assert_ne!(hash(&first), hash(&question(vec![signal("b", 0, Some(RecordState::Done))])));
}
