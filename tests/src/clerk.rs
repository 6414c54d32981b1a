//! A model server with scripted answers, in the API of any vendor.

use crate::wait;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The number of the request, from 1.
    pub number: usize,
    /// The body as it was sent.
    pub body: Value,
    /// The user's message: subject and signals.
    pub question: Value,
    /// The key that it was sent with; empty without one.
    pub key: String,
}

impl Asked {
    /// The task of the question.
    #[must_use]
    pub fn task(&self) -> &str {
        self.question["subject"]["task"].as_str().unwrap()
    }
}

/// The answer of the server.
#[derive(Clone, Debug)]
pub enum Says {
    /// A verdict that cites every signal, with this confidence.
    Verdict(&'static str, f64),
    /// Any text instead of a verdict.
    Text(String),
    /// Calls of tools, by name with their arguments.
    Calls(Vec<(String, Value)>),
    /// A status with a message.
    Error(u16, String),
    /// A status, with an optional `Retry-After`.
    Status(u16, Option<String>),
    /// Another answer, after the gate is open.
    Once(watch::Receiver<bool>, Box<Says>),
    /// Another answer, after this time.
    Late(Duration, Box<Says>),
}

type Script = dyn Fn(&Asked) -> Says + Send + Sync;

#[derive(Clone)]
struct Shared {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// The vendor's API of a request.
#[derive(Clone, Copy)]
enum Api {
    OpenAi,
    Anthropic,
    Ollama,
}

/// A running server.
pub struct Clerk {
    /// The base URL for the OpenAI-compatible clerk.
    pub url: String,
    /// The base URL for the other clerks.
    pub address: String,
    shared: Shared,
    serving: tokio::task::JoinHandle<()>,
}

/// A closed gate for [`Says::Once`].
#[must_use]
pub fn gate() -> (watch::Sender<bool>, watch::Receiver<bool>) {
    watch::channel(false)
}

impl Clerk {
    /// Starts a server with a script.
    pub async fn start(script: impl Fn(&Asked) -> Says + Send + Sync + 'static) -> Self {
        let shared = Shared { script: Arc::new(script), asked: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let by = |api| post(move |state, headers, body| answer(api, state, headers, body));
        let router = Router::new()
            .route("/v1/chat/completions", by(Api::OpenAi))
            .route("/v1/messages", by(Api::Anthropic))
            .route("/api/chat", by(Api::Ollama))
            .with_state(shared.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url: format!("{address}/v1"), address, shared, serving }
    }

    /// All requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(api: Api, State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let data = body["messages"].as_array().unwrap().iter().find(|m| m["role"] == "user").unwrap();
    let text = data["content"].as_str().or_else(|| data["content"][0]["text"].as_str());
    let question = serde_json::from_str(text.unwrap()).unwrap();
    let key = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let key = key.unwrap_or_default().to_owned();
    let asked = {
        let mut all = shared.asked.lock().unwrap();
        let asked = Asked { number: all.len() + 1, body, question, key };
        all.push(asked.clone());
        asked
    };
    let mut says = (shared.script)(&asked);
    loop {
        says = match says {
            Says::Once(mut gate, then) => {
                // A gate whose holder was dropped counts as open.
                let _ = gate.wait_for(|open| *open).await;
                *then
            }
            Says::Late(delay, then) => {
                wait::a_moment(delay).await;
                *then
            }
            other => break respond(api, &asked, other),
        };
    }
}

fn respond(api: Api, asked: &Asked, says: Says) -> Response {
    match says {
        Says::Verdict(decision, confidence) => completion(api, &verdict(asked, decision, confidence).to_string()),
        Says::Text(text) => completion(api, &text),
        Says::Calls(calls) => Json(turn(api, &calls)).into_response(),
        Says::Error(status, message) => {
            (StatusCode::from_u16(status).unwrap(), Json(json!({"error": {"message": message}}))).into_response()
        }
        Says::Status(status, wait) => {
            let mut headers = HeaderMap::new();
            if let Some(wait) = wait {
                headers.insert("retry-after", wait.parse().unwrap());
            }
            let body = Json(json!({"error": {"message": "scripted"}}));
            (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
        }
        Says::Once(..) | Says::Late(..) => unreachable!("waited for above"),
    }
}

/// A valid verdict.
#[must_use]
pub fn verdict(asked: &Asked, decision: &str, confidence: f64) -> Value {
    let signals = asked.question["signals"].as_array().unwrap();
    let evidence: Vec<&Value> = signals.iter().map(|s| &s["ref"]).collect();
    let sources: Map<String, Value> =
        signals.iter().map(|s| (s["source"].as_str().unwrap().to_owned(), json!(0.9))).collect();
    json!({
        "decision": decision, "confidence": confidence, "reasoning": "The signals say so.",
        "evidence": evidence, "source_contributions": sources,
    })
}

/// The calls in the API's own form.
fn turn(api: Api, calls: &[(String, Value)]) -> Value {
    let number = |at: usize| format!("call_{at}");
    match api {
        Api::OpenAi => {
            let mut body = completion_body(api, "");
            let call = |(at, (name, arguments)): (usize, &(String, Value))| json!({"id": number(at), "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
            body["choices"][0]["message"]["tool_calls"] = calls.iter().enumerate().map(call).collect();
            body
        }
        Api::Anthropic => {
            let mut body = completion_body(api, "");
            let call = |(at, (name, input)): (usize, &(String, Value))| json!({"type": "tool_use", "id": number(at), "name": name, "input": input});
            body["content"] = calls.iter().enumerate().map(call).collect();
            body
        }
        Api::Ollama => {
            let mut body = completion_body(api, "");
            let call =
                |(name, arguments): &(String, Value)| json!({"function": {"name": name, "arguments": arguments}});
            body["message"]["tool_calls"] = calls.iter().map(call).collect();
            body
        }
    }
}

fn completion(api: Api, content: &str) -> Response {
    Json(completion_body(api, content)).into_response()
}

fn completion_body(api: Api, content: &str) -> Value {
    match api {
        Api::OpenAi => json!({
            "id": "c", "object": "chat.completion", "model": "scripted",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }),
        Api::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
            "content": [{"type": "text", "text": content}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }),
        Api::Ollama => json!({
            "model": "scripted", "created_at": "2026-11-22T09:30:00Z",
            "message": {"role": "assistant", "content": content}, "done": true, "done_reason": "stop",
            "prompt_eval_count": 100, "eval_count": 20,
        }),
    }
}
