//! Who owns which session of the older protocol.
//!
//! A session is that of the caller who began it, at the address where they did. For anybody else it is not there. It ends when it had no request and no
//! open stream for a while.

use super::AddressedWiki;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a session may be idle.
const SESSION_IDLE: Duration = Duration::from_secs(300);
/// The most sessions of a caller.
const MAX_SESSIONS: usize = 8;
/// How long a caller with too many sessions waits, in seconds.
const RETRY_AFTER: u32 = 60;
/// How often idle sessions are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// What a request of the newest protocol says about itself, and the method by which older clients begin a session.
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const INITIALIZE: &str = "initialize";
pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// The caller, and the wiki that their address names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SessionOwner {
    caller: String,
    wiki: Option<String>,
}

/// The sessions that are open, by their ids.
#[derive(Debug, Default)]
pub(super) struct SessionOwners(Mutex<BTreeMap<String, (SessionOwner, Instant)>>);

impl SessionOwner {
    fn read(extensions: &Extensions) -> Option<Self> {
        let caller = extensions.get::<AuthenticatedCaller>()?.name.clone();
        Some(Self { caller, wiki: extensions.get::<AddressedWiki>().map(|wiki| wiki.0.clone()) })
    }
}

impl SessionOwners {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (SessionOwner, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the sessions that were idle for too long.
    fn take_idle(&self, now: Instant) -> Vec<String> {
        let mut open = self.lock();
        let idle = open.iter().filter(|(_, (_, used))| is_idle(*used, now)).map(|(session, _)| session.clone());
        let idle: Vec<String> = idle.collect();
        idle.iter().for_each(|session| drop(open.remove(session)));
        idle
    }

    /// Notes that a session is in use.
    pub(super) fn touch(&self, session: &str, now: Instant) {
        if let Some((_, used)) = self.lock().get_mut(session) {
            *used = now;
        }
    }

    /// Whether a request may use a session; it is used then.
    fn may_use(&self, session: &str, owner: &SessionOwner, now: Instant) -> bool {
        match self.lock().get_mut(session) {
            Some((known, used)) if known == owner && !is_idle(*used, now) => {
                *used = now;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether a caller may begin another session.
    fn may_begin(&self, owner: &SessionOwner, now: Instant) -> bool {
        let is_theirs = |known: &SessionOwner, used| known.caller == owner.caller && !is_idle(used, now);
        self.lock().values().filter(|(known, used)| is_theirs(known, *used)).count() < MAX_SESSIONS
    }
}

fn is_idle(used: Instant, now: Instant) -> bool {
    now.duration_since(used) >= SESSION_IDLE
}

/// Ends sessions that are idle, until the server stops.
pub(super) async fn end_idle_sessions(
    owners: Arc<SessionOwners>,
    sessions: Arc<LocalSessionManager>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
        }
        for session in owners.take_idle(Instant::now()) {
            if let Err(e) = sessions.close_session(&session.into()).await {
                tracing::warn!("failed to end an idle session of an assistant: {e}");
            }
        }
    }
}

pub(super) async fn check_session(State(owners): State<Arc<SessionOwners>>, request: Request, next: Next) -> Response {
    let refuse = |status, detail: &str| ProblemDetails::new(status, detail);
    let Some(owner) = SessionOwner::read(request.extensions()) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the caller is unknown").into_response();
    };
    let (session, is_end) = (read_session(request.headers()), request.method() == Method::DELETE);
    match &session {
        Some(session) if !owners.may_use(session, &owner, Instant::now()) => {
            return refuse(StatusCode::NOT_FOUND, "there is no such session: begin a new one").into_response();
        }
        None if !is_stateless(request.headers()) && !owners.may_begin(&owner, Instant::now()) => {
            let detail =
                format!("more than {MAX_SESSIONS} sessions: end one, or wait until one was idle for 5 minutes");
            let problem = refuse(StatusCode::TOO_MANY_REQUESTS, &detail);
            return ProblemDetails { retry_after: Some(RETRY_AFTER), ..problem }.into_response();
        }
        Some(_) | None => {}
    }
    let mut response = next.run(request).await;
    // It has ended before this is answered, and clients take 202 for a failure.
    if is_end && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    match (session, read_session(response.headers())) {
        (Some(session), _) if is_end => drop(owners.lock().remove(&session)),
        (None, Some(began)) => drop(owners.lock().insert(began, (owner, Instant::now()))),
        _ => {}
    }
    response
}

/// Whether a request stands for itself, as all do since 2026-07-28 and say in two headers. The transport refuses an `initialize` whose header names
/// another method, so no session begins past its limit.
fn is_stateless(headers: &HeaderMap) -> bool {
    let read = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    read(VERSION_HEADER) == Some(ProtocolVersion::V_2026_07_28.as_str())
        && read(METHOD_HEADER).is_some_and(|method| method != INITIALIZE)
}

pub(super) fn read_session(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(caller: &str, wiki: Option<&str>) -> SessionOwner {
        SessionOwner { caller: caller.to_owned(), wiki: wiki.map(str::to_owned) }
    }

    #[test]
    fn a_session_is_its_owners_alone_until_it_was_idle() {
        let (owners, now) = (SessionOwners::default(), Instant::now());
        owners.lock().insert("s".to_owned(), (owner("a", Some("x")), now));
        assert!(owners.may_use("s", &owner("a", Some("x")), now));
        for other in [owner("b", Some("x")), owner("a", Some("y")), owner("a", None)] {
            assert!(!owners.may_use("s", &other, now), "{other:?}");
        }
        let later = now + SESSION_IDLE - Duration::from_secs(1);
        assert!(owners.may_use("s", &owner("a", Some("x")), later));
        assert!(!owners.may_use("s", &owner("a", Some("x")), later + SESSION_IDLE));
        owners.touch("s", later + SESSION_IDLE);
        assert!(owners.take_idle(later + SESSION_IDLE).is_empty());
        assert_eq!(owners.take_idle(later + 2 * SESSION_IDLE), ["s"]);
        assert!(owners.take_idle(later + 2 * SESSION_IDLE).is_empty());
    }

    #[test]
    fn only_a_request_of_the_newest_protocol_that_begins_nothing_needs_no_session() {
        let headers = |version: &str, method: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(VERSION_HEADER, version.parse().unwrap());
            method.map(|method| headers.insert(METHOD_HEADER, method.parse().unwrap()));
            headers
        };
        assert!(is_stateless(&headers("2026-07-28", Some("tools/call"))));
        for (version, method) in
            [("2026-07-28", Some("initialize")), ("2026-07-28", None), ("2025-11-25", Some("tools/call"))]
        {
            assert!(!is_stateless(&headers(version, method)), "{version} {method:?}");
        }
        assert!(!is_stateless(&HeaderMap::new()));
    }

    #[test]
    fn a_caller_has_eight_sessions() {
        let (owners, now) = (SessionOwners::default(), Instant::now());
        for number in 0..MAX_SESSIONS {
            assert!(owners.may_begin(&owner("a", None), now));
            owners.lock().insert(number.to_string(), (owner("a", None), now));
        }
        assert!(!owners.may_begin(&owner("a", Some("x")), now) && owners.may_begin(&owner("b", None), now));
        assert!(owners.may_begin(&owner("a", None), now + SESSION_IDLE));
    }
}
