//! The clerks from outside: against a server that behaves well and badly, and against the schema.
#![allow(clippy::unwrap_used)]

mod ask;
mod schema;
mod secrecy;
mod server;
mod vendors;

use chrono::DateTime;
use serde_json::{Value, json};
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::remote::{
    ANTHROPIC, ClerkWire, OLLAMA, OPENAI, RemoteClerk, RemoteClerkConfig, Secret,
};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{ClerkQuestion, ClerkReply, QuestionSubject, SignalEvidence};
use steward_domain::steward::guard::Reservation;

const KEY: &str = "sk-very-secret-0123456789";

fn question(signals: &[(&str, &str)]) -> ClerkQuestion {
    let evidence = |(slug, source): &(&str, &str)| SignalEvidence {
        source: (*source).into(),
        reference: RecordPath::parse(&format!("signal/{slug}.md")).unwrap(),
        note: "paid in full".into(),
        created: DateTime::UNIX_EPOCH,
        effect: SignalEffect::Mutation,
        proposed_state: Some(RecordState::Done),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        observations: 0,
        ceiling: Ceiling::Act,
    };
    ClerkQuestion {
        subject: QuestionSubject {
            task: RecordPath::parse("task/pay.md").unwrap(),
            task_name: "Pay".into(),
            matter: RecordPath::parse("matter/m.md").unwrap(),
            matter_name: "M".into(),
            state: RecordState::Open,
            surface_class: SurfaceClass::Normal,
            due: None,
            description_hash: None,
            last_decision: None,
        },
        evidence: signals.iter().map(evidence).collect(),
        complaint: None,
        asked_at: DateTime::UNIX_EPOCH,
    }
}

/// Read back from JSON, as it travels: only the ledger makes one.
fn reservation() -> Reservation {
    let travelling = json!({"call_id": "tick-1/pay/1", "reserved_at": "2026-11-21T09:30:00Z", "probe": false});
    serde_json::from_value(travelling).unwrap()
}

const WIRES: [&ClerkWire; 3] = [&OPENAI, &ANTHROPIC, &OLLAMA];

/// A server's address as people set it for a wire.
fn config(wire: &'static ClerkWire, address: &str) -> RemoteClerkConfig {
    let base_url = if wire.name == "openai" { format!("{address}/v1") } else { address.to_owned() };
    RemoteClerkConfig { api_key: Secret::new(KEY), ..RemoteClerkConfig::new(wire, &base_url, "small") }
}

async fn ask(config: RemoteClerkConfig) -> ClerkReply {
    let clerk = Clerk::Remote(RemoteClerk::new(config).unwrap());
    clerk.ask(&reservation(), &question(&[("a", "gmail")]), None).await
}

fn good_answer() -> Value {
    json!({
        "decision": "likely_done", "confidence": 0.9, "reasoning": "the quotation says that it was paid",
        "evidence": ["signal/a.md"], "source_contributions": {"gmail": 1.0},
    })
}

/// A response in the form of the published API.
fn response(wire: &ClerkWire, content: &str) -> Value {
    match wire.name {
        "openai" => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small",
            "choices": [{
                "index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": content, "refusal": null},
            }],
            "usage": {"prompt_tokens": 320, "completion_tokens": 60, "total_tokens": 380},
        }),
        "anthropic" => json!({
            "id": "msg_01", "type": "message", "role": "assistant", "model": "small",
            "content": [{"type": "text", "text": content}],
            "stop_reason": "end_turn", "stop_sequence": null, "stop_details": null,
            "usage": {
                "input_tokens": 20, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 200,
                "output_tokens": 60,
            },
        }),
        "ollama" => json!({
            "model": "small", "created_at": "2026-11-22T09:30:00.583064Z",
            "message": {"role": "assistant", "content": content},
            "done": true, "done_reason": "stop", "total_duration": 5_191_566_416_u64, "load_duration": 2_154_458,
            "prompt_eval_count": 320, "prompt_eval_duration": 383_809_000, "eval_count": 60,
            "eval_duration": 4_799_921_000_u64,
        }),
        other => panic!("{other} has no published form here"),
    }
}

/// An error in the form of the published API.
fn error(wire: &ClerkWire, kind: &str, message: &str) -> Value {
    match wire.name {
        "openai" => json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
        "anthropic" => {
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"})
        }
        _ => json!({"error": message}),
    }
}
