//! A cached answer is used again for the same evidence, and for nothing else.

use super::*;
use crate::vault::tests::VaultFixture;
use steward_domain::gates::mode::Mode;
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkMark, TokenUsage};
use steward_domain::steward::guard::{CallId, Settlement, SettlementOutcome};
use steward_workflows::activities::SettleCallInput;

/// The clerk's answer to the only question, as it would be in a payload.
async fn asked(bench: &VaultFixture) -> (ClerkQuestion, AttributedVerdict) {
    let check = bench.see("first/1").await.task_checks.remove(0);
    assert_eq!(check.known_verdict, None, "nothing was asked yet");
    let reply = bench.clerk.ask(&crate::steward::clerks::tests::reservation(), &check.question, None).await;
    let ClerkCallOutcome::Answered { verdict } = reply.outcome else { panic!("{reply:?}") };
    let clerk = ClerkMark { tokens: TokenUsage { prompt_tokens: 7, completion_tokens: 3 }, ..reply.clerk };
    (check.question, AttributedVerdict { verdict, clerk })
}

async fn settle(bench: &VaultFixture, question: &ClerkQuestion, judged: &AttributedVerdict) {
    let settlement = Settlement {
        call_id: CallId("first/1/pay/1".into()),
        outcome: SettlementOutcome::Answered { usage: judged.clerk.tokens },
    };
    let ask = SettleCallInput { settlement, answer: Some((question.clone(), judged.clone())) };
    // There is no reservation for it, which the ledger ignores.
    let _ = bench.steward().settle_call(ask).await;
}

#[tokio::test]
async fn what_was_answered_comes_with_the_next_look_and_says_that_nobody_was_asked() {
    let bench = VaultFixture::new(Mode::Live).await;
    let (question, judged) = asked(&bench).await;
    settle(&bench, &question, &judged).await;
    bench.context.index.cursors().release_leases("first").await.unwrap();
    let known = bench.see("second/1").await.task_checks.remove(0).known_verdict.unwrap();
    assert_eq!(known.verdict, judged.verdict);
    assert_eq!(known.clerk, ClerkMark { tokens: TokenUsage::default(), cached: true, ..judged.clerk.clone() });
    let mut other = question.clone();
    other.evidence[0].note.push('!');
    assert_eq!(bench.steward().recall_verdict(&other).await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_to_the_stricter_question_is_one_about_the_same_evidence() {
    let bench = VaultFixture::new(Mode::Live).await;
    let (question, judged) = asked(&bench).await;
    let stricter = ClerkQuestion { complaint: Some("bad form".into()), ..question.clone() };
    settle(&bench, &stricter, &judged).await;
    assert_eq!(bench.steward().recall_verdict(&question).await.unwrap(), None, "it was no answer to that request");
    let reply = bench.clerk.ask(&crate::steward::clerks::tests::reservation(), &stricter, None).await;
    settle(&bench, &stricter, &AttributedVerdict { clerk: reply.clerk, ..judged }).await;
    assert!(bench.steward().recall_verdict(&question).await.unwrap().is_some());
}

#[tokio::test]
async fn what_another_clerk_of_the_fleet_said_is_not_kept() {
    let bench = VaultFixture::new(Mode::Live).await;
    let (question, judged) = asked(&bench).await;
    for clerk in [
        ClerkMark { provider: "openai".into(), ..judged.clerk.clone() },
        ClerkMark { model: "another".into(), ..judged.clerk.clone() },
        ClerkMark { prompt_sha256: "0".repeat(64), ..judged.clerk.clone() },
    ] {
        settle(&bench, &question, &AttributedVerdict { clerk, ..judged.clone() }).await;
        assert_eq!(bench.steward().recall_verdict(&question).await.unwrap(), None);
    }
    settle(&bench, &question, &judged).await;
    assert!(bench.steward().recall_verdict(&question).await.unwrap().is_some());
}

#[tokio::test]
async fn what_is_old_or_does_not_hold_is_not_given_again() {
    let bench = VaultFixture::new(Mode::Live).await;
    let (question, judged) = asked(&bench).await;
    let key = bench.clerk.evidence_key(&question);
    let keep = async |text: &str, days: i64| {
        bench.context.index.cursors().cache_answer(&key, text, Utc::now() - TimeDelta::days(days)).await.unwrap();
        bench.steward().recall_verdict(&question).await.unwrap()
    };
    let good = serde_json::to_string(&judged).unwrap();
    let mut invented = judged.clone();
    invented.verdict.evidence = vec![steward_domain::record::path::RecordPath::parse("signal/other.md").unwrap()];
    assert!(keep(&good, 6).await.is_some());
    assert_eq!(keep(&good, 7).await, None, "a week is over");
    assert_eq!(keep("not ours", 0).await, None);
    assert_eq!(keep(&serde_json::to_string(&invented).unwrap(), 0).await, None);
    assert!(keep(&good, 0).await.is_some());
}
