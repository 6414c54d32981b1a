//! A Plane server that follows the published REST API as far as Steward uses it, with scripted failures.
//!
//! It has one workspace, one project and any number of issues. The external id of a comment is unique in the project: a
//! second comment with the same id gets 409. Removed comments are forgotten, as in Plane. Every request is kept.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// The API key that it accepts.
pub const KEY: &str = "plane_api_0123456789abcdef";
/// Its workspace.
pub const WORKSPACE: &str = "acme";
/// Its project.
pub const PROJECT: &str = "aaaaaaaa-0000-4000-8000-000000000001";
/// An issue that exists from the start.
pub const ISSUE: &str = "bbbbbbbb-0000-4000-8000-000000000001";
/// Another issue.
pub const OTHER_ISSUE: &str = "bbbbbbbb-0000-4000-8000-000000000002";
/// The states of the project, with their names.
pub const STATES: [(&str, &str, &str, u32); 6] = [
    ("Backlog", "cccccccc-0000-4000-8000-000000000001", "backlog", 15_000),
    ("In Progress", "cccccccc-0000-4000-8000-000000000002", "started", 35_000),
    ("Shipped", "cccccccc-0000-4000-8000-000000000003", "completed", 65_000),
    ("Done", "cccccccc-0000-4000-8000-000000000004", "completed", 45_000),
    ("Cancelled", "cccccccc-0000-4000-8000-000000000005", "cancelled", 55_000),
    ("Duplicate", "cccccccc-0000-4000-8000-000000000006", "cancelled", 75_000),
];

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    pub body: Value,
}

/// How a request fails.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Returns a status with headers and a body; nothing is done.
    Says(u16, Vec<(&'static str, String)>, String),
    /// Does it, and then returns this status.
    DoneBut(u16),
    /// Returns 504, and does it at [`Plane::catches_up`].
    Late,
    /// Does it, after a person has moved the issue to the state of this name.
    ThenMoved(&'static str),
    /// Never responds; nothing is done.
    Silent,
    /// Returns an endless body.
    Endless,
}

/// A comment of an issue.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    pub id: String,
    pub html: String,
    pub external_id: String,
}

#[derive(Clone, Debug)]
struct Kept {
    state: Option<String>,
    comments: Vec<Comment>,
}

type Script = dyn Fn(&Asked) -> Option<Fault> + Send + Sync;

#[derive(Clone)]
struct Shared(Arc<Mutex<Inside>>);

struct Inside {
    issues: BTreeMap<String, Kept>,
    asked: Vec<Asked>,
    late: Vec<Asked>,
    /// The number of comments ever made.
    made: u32,
    script: Arc<Script>,
    remaining: Option<u32>,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }
}

/// A running server.
pub struct Plane {
    /// The base URL, without `/api/v1`.
    pub url: String,
    shared: Shared,
    serving: tokio::task::JoinHandle<()>,
}

/// Changes the delivery notes of a vault as if each request had been sent ten minutes earlier.
pub fn minutes_later(vault: &Path) {
    let Ok(notes) = std::fs::read_dir(vault.join(".steward/outbox")) else { return };
    for note in notes.map(|entry| entry.unwrap().path()) {
        let mut said: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
        let Some(asked_at) = said["asked_at"].as_str().map(str::to_owned) else { continue };
        let asked_at = chrono::DateTime::parse_from_rfc3339(&asked_at).unwrap() - chrono::TimeDelta::minutes(10);
        said["asked_at"] = json!(asked_at.to_rfc3339());
        std::fs::write(&note, said.to_string()).unwrap();
    }
}

/// The id of a state.
#[must_use]
pub fn state(name: &str) -> String {
    STATES.iter().find(|(known, ..)| *known == name).map(|(_, id, ..)| (*id).to_owned()).unwrap()
}

impl Plane {
    /// Starts a server whose issues are in progress.
    pub async fn start() -> Self {
        let issue = Kept { state: Some(state("In Progress")), comments: Vec::new() };
        let issues = [ISSUE, OTHER_ISSUE].map(|id| (id.to_owned(), issue.clone())).into();
        let inside = Inside {
            issues,
            asked: Vec::new(),
            late: Vec::new(),
            made: 0,
            script: Arc::new(|_| None),
            remaining: None,
        };
        let shared = Shared(Arc::new(Mutex::new(inside)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, serving }
    }

    /// Fails from now on as scripted.
    pub fn fails(&self, script: impl Fn(&Asked) -> Option<Fault> + Send + Sync + 'static) {
        self.shared.open().script = Arc::new(script);
    }

    /// Fails every request with a status.
    pub fn is_down(&self, status: u16) {
        self.fails(move |_| Some(Fault::Says(status, Vec::new(), "{\"error\": \"scripted\"}".into())));
    }

    /// Ends all failures.
    pub fn works(&self) {
        self.fails(|_| None);
    }

    /// Does the delayed requests.
    pub fn catches_up(&self) {
        let mut inside = self.shared.open();
        for asked in std::mem::take(&mut inside.late) {
            let _ = does(&mut inside, &asked);
        }
    }

    /// Reports in every response how many requests are left in this minute.
    pub fn says_left(&self, requests: u32) {
        self.shared.open().remaining = Some(requests);
    }

    /// The name of an issue's state.
    #[must_use]
    pub fn state_of(&self, issue: &str) -> String {
        let id = self.shared.open().issues[issue].state.clone().unwrap_or_default();
        STATES.iter().find(|(_, known, ..)| *known == id).map_or(id.clone(), |(name, ..)| (*name).to_owned())
    }

    /// Moves an issue, as a person does.
    pub fn moves(&self, issue: &str, to: &str) {
        self.shared.open().issues.get_mut(issue).unwrap().state = Some(state(to));
    }

    /// Adds an issue that is in progress.
    pub fn opens(&self, issue: &str) {
        let kept = Kept { state: Some(state("In Progress")), comments: Vec::new() };
        self.shared.open().issues.insert(issue.to_owned(), kept);
    }

    /// All issues.
    #[must_use]
    pub fn issues(&self) -> Vec<String> {
        self.shared.open().issues.keys().cloned().collect()
    }

    /// Removes an issue, as a person does.
    pub fn loses(&self, issue: &str) {
        self.shared.open().issues.remove(issue);
    }

    /// The comments of an issue.
    #[must_use]
    pub fn comments(&self, issue: &str) -> Vec<Comment> {
        self.shared.open().issues[issue].comments.clone()
    }

    /// Adds a person's comments.
    pub fn chatter(&self, issue: &str, count: usize) {
        let mut inside = self.shared.open();
        for n in 0..count {
            inside.made += 1;
            let id = comment_id(inside.made);
            let comment = Comment { id, html: format!("<p>{n}</p>"), external_id: String::new() };
            inside.issues.get_mut(issue).unwrap().comments.push(comment);
        }
    }

    /// Adds a comment that another vault made for an action of the same id.
    pub fn has_comment(&self, issue: &str, external_id: &str) {
        let body = json!({"external_source": "steward", "external_id": external_id, "comment_html": "<p>theirs</p>"});
        let _ = comment(&mut self.shared.open(), issue, &body);
    }

    /// The number of comments ever made.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.shared.open().made
    }

    /// All requests so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.open().asked.clone()
    }

    /// Requests by method.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method == method).count()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let asked = Asked {
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let fault = {
        let mut inside = shared.open();
        inside.asked.push(asked.clone());
        (Arc::clone(&inside.script))(&asked)
    };
    let key = headers.get("x-api-key").and_then(|v| v.to_str().ok());
    match fault {
        Some(Fault::Says(status, headers, body)) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).unwrap()
        }
        Some(Fault::Silent) => std::future::pending().await,
        Some(Fault::Endless) => Body::from_stream(futures::stream::repeat_with(|| {
            Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b' '; 4096]))
        }))
        .into_response(),
        Some(Fault::Late) => {
            shared.open().late.push(asked);
            (StatusCode::GATEWAY_TIMEOUT, "").into_response()
        }
        Some(Fault::ThenMoved(to)) => {
            let mut inside = shared.open();
            let response = does(&mut inside, &asked);
            let issue = asked.path.split('/').nth(8).unwrap();
            inside.issues.get_mut(issue).unwrap().state = Some(state(to));
            response
        }
        Some(Fault::DoneBut(status)) => {
            let _ = does(&mut shared.open(), &asked);
            (StatusCode::from_u16(status).unwrap(), "").into_response()
        }
        // Plane's own authentication names no scheme, so its framework returns 403.
        None if key != Some(KEY) => said(403, &json!({"detail": "Given API token is not valid"})),
        None => {
            let mut inside = shared.open();
            let mut response = does(&mut inside, &asked);
            if let Some(remaining) = inside.remaining {
                let reset = chrono::Utc::now().timestamp() + 60;
                response.headers_mut().insert("x-ratelimit-remaining", remaining.into());
                response.headers_mut().insert("x-ratelimit-reset", reset.into());
            }
            response
        }
    }
}

fn said(status: u16, body: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), axum::Json(body.clone())).into_response()
}

fn missing() -> Response {
    said(404, &json!({"error": "The requested resource does not exist."}))
}

fn comment_id(number: u32) -> String {
    format!("dddddddd-0000-4000-8000-{number:012}")
}

fn does(inside: &mut Inside, asked: &Asked) -> Response {
    let parts: Vec<&str> = asked.path.split('/').collect();
    // As in Django's router, a path without a slash at the end is not found.
    let ["", "api", "v1", rest @ .., ""] = parts.as_slice() else { return missing() };
    match (asked.method.as_str(), rest) {
        ("GET", ["users", "me"]) => said(200, &json!({"id": PROJECT, "display_name": "steward"})),
        (_, ["workspaces", slug, "projects", project, ..]) if (*slug, *project) != (WORKSPACE, PROJECT) => {
            said(403, &json!({"detail": "You do not have permission to perform this action."}))
        }
        ("GET", ["workspaces", _, "projects", _, "states"]) => said(200, &page(states(), (0, false))),
        (_, ["workspaces", _, "projects", _, "work-items", issue, ..]) if !inside.issues.contains_key(*issue) => {
            missing()
        }
        (method, ["workspaces", _, "projects", _, "work-items", issue, rest @ ..]) => match (method, rest) {
            ("GET", []) => said(200, &json!({"id": issue, "state": inside.issues[*issue].state})),
            ("PATCH", []) => move_to(inside, issue, &asked.body["state"]),
            ("POST", ["comments"]) => comment(inside, issue, &asked.body),
            ("GET", ["comments"]) => listed(&inside.issues[*issue].comments, &asked.query),
            ("DELETE", ["comments", id]) => remove(inside, issue, id),
            _ => missing(),
        },
        _ => missing(),
    }
}

fn states() -> Vec<Value> {
    let one = |(name, id, group, sequence): &(&str, &str, &str, u32)| json!({"id": id, "name": name, "group": group, "sequence": f64::from(*sequence), "default": *name == "Backlog"});
    STATES.iter().map(one).collect()
}

fn page(results: Vec<Value>, (next, more): (usize, bool)) -> Value {
    let count = results.len();
    json!({
        "results": results, "count": count, "next_page_results": more, "prev_page_results": false,
        "next_cursor": format!("100:{next}:0"), "prev_cursor": "100:-1:1",
    })
}

fn listed(comments: &[Comment], query: &str) -> Response {
    let cursor = query.split('&').find_map(|pair| pair.strip_prefix("cursor=")).unwrap_or_default();
    let cursor = cursor.replace("%3A", ":");
    let number: usize = cursor.split(':').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    let one = |c: &Comment| {
        let source = if c.external_id.is_empty() { Value::Null } else { json!("steward") };
        json!({"id": c.id, "external_source": source, "external_id": c.external_id})
    };
    let newest = comments.iter().rev().skip(number * 100);
    let more = newest.len() > 100;
    said(200, &page(newest.take(100).map(one).collect(), (number + 1, more)))
}

fn move_to(inside: &mut Inside, issue: &str, to: &Value) -> Response {
    let known = STATES.iter().find(|(_, id, ..)| to.as_str() == Some(id));
    let Some((_, id, ..)) = known else {
        return said(400, &json!({"non_field_errors": ["State is not valid please pass a valid state_id"]}));
    };
    let kept = inside.issues.get_mut(issue).unwrap();
    kept.state = Some((*id).to_owned());
    said(200, &json!({"id": issue, "state": id}))
}

fn comment(inside: &mut Inside, issue: &str, body: &Value) -> Response {
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("external_source"), "steward");
    let external_id = text("external_id");
    let all = inside.issues.values().flat_map(|kept| &kept.comments);
    if let Some(there) = all.into_iter().find(|c| !external_id.is_empty() && c.external_id == external_id) {
        let error = "Work item comment with the same external id and external source already exists";
        return said(409, &json!({"error": error, "id": there.id}));
    }
    inside.made += 1;
    let id = comment_id(inside.made);
    let comment = Comment { id: id.clone(), html: text("comment_html"), external_id };
    inside.issues.get_mut(issue).unwrap().comments.push(comment);
    said(201, &json!({"id": id, "comment_html": body["comment_html"]}))
}

fn remove(inside: &mut Inside, issue: &str, id: &str) -> Response {
    let comments = &mut inside.issues.get_mut(issue).unwrap().comments;
    let before = comments.len();
    comments.retain(|comment| comment.id != id);
    if comments.len() == before { missing() } else { StatusCode::NO_CONTENT.into_response() }
}
