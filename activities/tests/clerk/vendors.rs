//! What each vendor's API has of its own, as published: cuts, refusals, overload, unknown models, an event's answer.

use crate::ask::{complaint, outcome, reason};
use crate::server::{Behaviour, Server};
use crate::{WIRES, ask, config, error, good_answer, reservation, response};
use serde_json::{Value, json};
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::remote::{ANTHROPIC, ClerkWire, OLLAMA, OPENAI, RemoteClerk};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::extract::{ExtractOutcome, ExtractQuestion, TargetOffer};
use steward_domain::steward::clerk::ClerkCallOutcome;

/// A good response, spoiled.
fn spoiled(wire: &ClerkWire, spoil: impl FnOnce(&mut Value)) -> Value {
    let mut response = response(wire, &good_answer().to_string());
    spoil(&mut response);
    response
}

async fn are_complained_of(wire: &'static ClerkWire, table: Vec<(Value, &str)>) {
    for (body, expected) in table {
        let server = Server::json(&body).await;
        let complaint = complaint(outcome(wire, &server).await);
        assert!(complaint.contains(expected), "{body}: {complaint}");
    }
}

#[tokio::test]
async fn openai_a_refusal_a_cut_and_a_missing_answer_are_bad_answers() {
    let with = |spoil: fn(&mut Value)| spoiled(&OPENAI, |r| spoil(&mut r["choices"][0]));
    let refusal = with(|c| c["message"]["refusal"] = json!("I cannot help.\u{1b}[2J"));
    let table = vec![
        (refusal, "refused to answer: I cannot help.\\u{1b}"),
        (with(|c| c["finish_reason"] = json!("length")), "cut off"),
        (with(|c| c["finish_reason"] = json!("content_filter")), "content filter"),
        (with(|c| c["message"]["content"] = json!(null)), "no content"),
        (with(|c| *c = json!({})), "no content"),
        (json!({"choices": []}), "no content"),
    ];
    are_complained_of(&OPENAI, table).await;
}

#[tokio::test]
async fn anthropic_a_refusal_a_cut_and_a_missing_answer_are_bad_answers() {
    let with = |spoil: fn(&mut Value)| spoiled(&ANTHROPIC, spoil);
    let explained = with(|r| {
        r["stop_reason"] = json!("refusal");
        r["stop_details"] = json!({"type": "refusal", "category": "cyber", "explanation": "Not this.\u{1b}[2J"});
    });
    let table = vec![
        (explained, "refused to answer: Not this.\\u{1b}"),
        (with(|r| r["stop_reason"] = json!("refusal")), "refused to answer: it gave no explanation"),
        (with(|r| r["stop_reason"] = json!("max_tokens")), "cut off at its limit"),
        (with(|r| r["stop_reason"] = json!("model_context_window_exceeded")), "context is full"),
        (with(|r| r["content"] = json!([])), "no content"),
        (with(|r| r["content"] = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}])), "no content"),
    ];
    are_complained_of(&ANTHROPIC, table).await;
}

#[tokio::test]
async fn anthropic_thoughts_before_the_answer_are_no_part_of_it_and_its_version_is_named() {
    let thought = spoiled(&ANTHROPIC, |r| {
        let answer = r["content"][0].clone();
        r["content"] = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, answer]);
    });
    let server = Server::json(&thought).await;
    assert!(matches!(outcome(&ANTHROPIC, &server).await, ClerkCallOutcome::Answered { .. }));
    assert_eq!(server.first().headers["anthropic-version"], "2023-06-01");
}

#[tokio::test]
async fn anthropic_an_answer_in_pairs_is_read_as_it_was_asked_for() {
    let mut answer = good_answer();
    answer["source_contributions"] = json!([{"name": "gmail", "value": 1.0}]);
    let server = Server::json(&response(&ANTHROPIC, &answer.to_string())).await;
    let ClerkCallOutcome::Answered { verdict } = outcome(&ANTHROPIC, &server).await else { panic!("refused") };
    assert_eq!(verdict.source_contributions["gmail"], 1.0);
    let server = Server::json(&response(&OPENAI, &answer.to_string())).await;
    assert!(
        matches!(outcome(&OPENAI, &server).await, ClerkCallOutcome::BadAnswer { .. }),
        "no other wire asks for pairs"
    );
}

#[tokio::test]
async fn anthropic_an_overloaded_server_asks_to_wait() {
    let body = error(&ANTHROPIC, "overloaded_error", "Overloaded").to_string();
    for (header, expected) in [(Some("30"), Some(30)), (None, None)] {
        let headers = header.map(|value| ("retry-after", value.to_owned())).into_iter().collect();
        let server = Server::start(Behaviour::Says(529, headers, body.clone())).await;
        let said = outcome(&ANTHROPIC, &server).await;
        assert_eq!(said, ClerkCallOutcome::RateLimited { retry_after_seconds: expected });
    }
}

#[tokio::test]
async fn anthropic_a_model_that_takes_no_schema_and_a_spent_account_are_named() {
    for (status, kind, message, expected) in [
        (400, "invalid_request_error", "output_config: Extra inputs are not permitted", "since Claude 4.5"),
        (402, "billing_error", "Your credit balance is too low", "saying \"Your credit balance is too low\""),
        (404, "not_found_error", "model: small", "no model `small` (404), saying \"model: small\": check base URL"),
        (500, "api_error", "Internal server error", "Steward will ask again later"),
    ] {
        let server = Server::status(status, &error(&ANTHROPIC, kind, message).to_string()).await;
        let reason = reason(outcome(&ANTHROPIC, &server).await);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn ollama_a_cut_and_a_missing_answer_are_bad_answers() {
    let with = |spoil: fn(&mut Value)| spoiled(&OLLAMA, spoil);
    let table = vec![
        (with(|r| r["done_reason"] = json!("length")), "cut off"),
        (with(|r| r["message"]["content"] = json!("")), "no content"),
        (with(|r| r["message"] = json!({"role": "assistant", "content": "", "thinking": "hm"})), "no content"),
    ];
    are_complained_of(&OLLAMA, table).await;
}

#[tokio::test]
async fn ollama_a_model_that_was_not_pulled_and_a_prompt_beyond_its_context_are_named() {
    for (status, message, expected) in [
        (404, "model 'small' not found", "saying \"model 'small' not found\": check the base URL, or fetch the model"),
        (400, "the input length exceeds the context length", "its context can hold the prompt"),
        (500, "model runner has unexpectedly stopped", "saying \"model runner has unexpectedly stopped\""),
    ] {
        let server = Server::status(status, &error(&OLLAMA, "", message).to_string()).await;
        let reason = reason(outcome(&OLLAMA, &server).await);
        assert!(reason.contains(expected), "{reason}");
    }
}

fn event() -> ExtractQuestion {
    let path = RecordPath::parse("task/pay.md").unwrap();
    ExtractQuestion {
        source: "mail:a@b.example".into(),
        author: Some("Ann".into()),
        subject: Some("Invoice".into()),
        text: "The invoice was paid today.".into(),
        offers: vec![TargetOffer { path, kind: RecordKind::Task, name: "Pay".into(), matter_name: None, score: 0.9 }],
        complaint: None,
    }
}

#[tokio::test]
async fn an_event_is_asked_about_over_every_wire_with_one_request() {
    let finding = json!({"quote": "was paid today", "target": "task/pay.md", "scores": {"task/pay.md": 0.9},
        "effect": "mutation", "mutation": {"class": "state_change", "set": {"state": "done"}},
        "effect_confidence": 0.9, "reasoning": "it says so"});
    let mut paired = finding.clone();
    paired["scores"] = json!([{"name": "task/pay.md", "value": 0.9}]);
    for wire in WIRES {
        let asked = async |finding: &Value| {
            let server = Server::json(&response(wire, &json!({"signals": [finding]}).to_string())).await;
            let clerk = Clerk::Remote(RemoteClerk::new(config(wire, &server.address)).unwrap());
            let reply = clerk.extract_signals(&reservation(), &event()).await;
            assert_eq!((server.requests(), reply.clerk.tokens.completion_tokens), (1, 60));
            reply.outcome
        };
        let ExtractOutcome::Answered { text } = asked(&finding).await else { panic!("{}", wire.name) };
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["signals"][0], finding);
        let invented = json!({"quote": "never said"});
        assert!(matches!(asked(&invented).await, ExtractOutcome::BadAnswer { .. }));
        let taken = matches!(asked(&paired).await, ExtractOutcome::Answered { .. });
        assert_eq!(taken, wire.name == "anthropic");
    }
}

#[tokio::test]
async fn a_base_url_of_another_wire_is_named() {
    for wire in WIRES {
        let server = Server::json(&json!({"hello": "there"})).await;
        let reason = reason(ask(config(wire, &server.address)).await.outcome);
        assert!(reason.contains("check that the base URL ends"), "{reason}");
    }
}
