//! The server put together: what every request goes through, and where it ends.
//!
//! In this order: headers that every answer has, the host, who asks, their pace, their scope. What is refused is
//! refused in the face that was asked: JSON below `/api/`, a page elsewhere. An address that there is not and one that
//! the caller may not know of get the same answer.

use crate::access::session::{self, Sessions};
use crate::access::{AccessError, Caller, Proof, Scope, Store, host::Hosts, origin, pace::Pace, token};
use crate::answer::Answers;
use crate::api;
use crate::api::problem::Problem;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use std::net::SocketAddr;
use std::sync::Arc;
use steward_vault::index::Index;
use steward_vault::root::Root;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;

/// What the faces need of the process they run in.
pub struct Parts {
    pub root: Root,
    pub index: Arc<Index>,
    pub answers: Answers,
    pub store: Store,
    pub hosts: Hosts,
}

/// What every request can reach.
pub(crate) struct App {
    pub(crate) root: Root,
    pub(crate) index: Arc<Index>,
    pub(crate) answers: Answers,
    store: Store,
    sessions: Sessions,
    hosts: Hosts,
    pace: Pace,
}

/// As handlers take it.
pub(crate) type Shared = Arc<App>;

/// The router of everything that is served.
///
/// # Errors
/// [`AccessError`] when the key of sessions can be neither read nor made.
pub fn router(parts: Parts) -> Result<Router, AccessError> {
    let Parts { root, index, answers, store, hosts } = parts;
    let sessions = Sessions::open(&store)?;
    let app = Arc::new(App { root, index, answers, store, sessions, hosts, pace: Pace::default() });
    let router = api::router(&app)
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(RequestBodyLimitLayer::new(api::answers::MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(&app), known_host))
        .layer(CatchPanicLayer::custom(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong here; the log says more")
                .into_response()
        }))
        .layer(axum::middleware::map_response(guarded))
        .with_state(app);
    Ok(router)
}

/// What may be done with an answer, whoever gets it.
async fn guarded(mut response: Response) -> Response {
    const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
        connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Without any, a browser would call the origin of its own forms `null`.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The name that a request was sent to, which is one of ours.
#[derive(Clone)]
struct Host(String);

async fn known_host(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    // Who watches a machine asks it by any of its addresses, and is told nothing.
    if matches!(request.uri().path(), "/healthz" | "/readyz") {
        return next.run(request).await;
    }
    let Some(host) = app.hosts.named(request.uri(), request.headers()).map(|host| Host(host.to_owned())) else {
        let detail = "not a name that is answered to: add it to STEWARD_HOSTS";
        return refuse(&request, Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
    };
    request.extensions_mut().insert(host);
    next.run(request).await
}

/// Lets nobody through to these routes who may not do that much.
pub(crate) fn require<S: Clone + Send + Sync + 'static>(router: Router<S>, app: &Shared, scope: Scope) -> Router<S> {
    router.route_layer(from_fn_with_state((Arc::clone(app), scope), allowed))
}

async fn allowed(State((app, scope)): State<(Shared, Scope)>, mut request: Request, next: Next) -> Response {
    match admit(&app, scope, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refuse(&request, refusal),
    }
}

fn admit(app: &App, scope: Scope, request: &Request) -> Result<Caller, Problem> {
    let headers = request.headers();
    let caller = caller(app, headers).map_err(|e| {
        tracing::error!("failed to tell who asks: {e}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be told who asks; the log says more")
    })?;
    let Some(caller) = caller else {
        let address = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
        address.map_or(Ok(()), |address| app.pace.of_stranger(address)).map_err(too_many)?;
        let detail = "send a token as `Authorization: Bearer …` (`steward token create`), or log in";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    };
    app.pace.of_caller(&caller.name).map_err(too_many)?;
    if caller.scope < scope {
        let detail = format!("this needs the scope `{scope}`, and you have `{}`", caller.scope);
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let host = request.extensions().get::<Host>().map_or("", |host| &host.0);
    let changes = !request.method().is_safe();
    if changes && caller.proof != Proof::Token && !origin::is_ours(headers, host, false) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "this came from another page than ours, and was not done"));
    }
    Ok(caller)
}

/// Who asks; a token counts before a cookie, and one that is wrong is not made up for by the other.
fn caller(app: &App, headers: &HeaderMap) -> Result<Option<Caller>, AccessError> {
    if let Some(said) = headers.get(header::AUTHORIZATION) {
        let said = said.to_str().unwrap_or_default();
        let (scheme, text) = said.split_once(' ').unwrap_or((said, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(None);
        }
        return token::caller(&app.store, text.trim());
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let ours = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut sessions = ours.filter(|(name, _)| *name == session::COOKIE);
    Ok(sessions.find_map(|(_, value)| app.sessions.caller(value, Utc::now())))
}

fn too_many(seconds: u64) -> Problem {
    Problem {
        retry_after: Some(seconds),
        ..Problem::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests: ask again in {seconds} s"))
    }
}

/// In the face that was asked.
fn refuse(_request: &Request, problem: Problem) -> Response {
    problem.into_response()
}

async fn nowhere() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here")
}

async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method")
}
