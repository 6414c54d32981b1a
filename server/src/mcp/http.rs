//! Serves assistants over Streamable HTTP, at `/mcp` and for one wiki at `/mcp/<workspace>`.
//!
//! Every request carries a token and passes the checks of all interfaces before: host, caller, rate, scope. A cookie is not taken. Clients of the
//! older protocol have sessions; a session belongs to the caller who began it and to its address, and a stream reports to it what changes.

pub(super) mod bodies;
mod sessions;
mod streams;

#[cfg(not(feature = "mcp-fixture"))]
use super::handler::{CallerSource, McpHandler};
#[cfg(not(feature = "mcp-fixture"))]
use super::updates::ChangeSource;
use super::vault::McpVault;
use crate::access::admission::{RequestOrigin, limit_open_routes, require_scope};
use crate::access::host::AllowedHosts;
use crate::access::{AccessScope, AuthenticatedCaller, CallerProof};
use crate::api::problem::ProblemDetails;
use crate::http::app::{NO_SUCH_PAGE, SharedAppState};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bodies::check_body;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sessions::{SESSION_HEADER, SessionOwners, check_session, end_idle_sessions};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use steward_vault::wiki::create::list_wikis;
use streams::{StreamLimits, limit_stream};

/// The largest request, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// When a session ends that nobody knows of, because its client was gone before it had an answer: a day.
const LONGEST_SILENCE: Duration = Duration::from_secs(86_400);

/// Whether a path belongs to this interface, so that its errors are JSON.
pub(crate) fn is_mcp_path(path: &str) -> bool {
    path == "/mcp" || path.starts_with("/mcp/") || path.starts_with("/.well-known/")
}

/// The wiki that the address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressedWiki(pub(crate) String);

/// Builds the routes.
pub(crate) fn build_router(app: &SharedAppState, vault: Arc<McpVault>, hosts: &AllowedHosts) -> Router<SharedAppState> {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts.names().iter().cloned())
        .with_allowed_origins(hosts.list_origins())
        .enforce_origin_validation()
        .with_max_request_body_bytes(MAX_BODY)
        .with_sse_retry(None);
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = SessionConfig::default();
    // Idle sessions are ended by us, because only we know whether a stream of theirs is open.
    sessions.session_config.keep_alive = Some(LONGEST_SILENCE);
    sessions.session_config.sse_retry = None;
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(choose_handler(app, &vault), Arc::clone(&sessions), config);
    let owners = Arc::new(SessionOwners::default());
    tokio::spawn(end_idle_sessions(Arc::clone(&owners), sessions, app.stop.clone()));
    let streams = StreamLimits { app: Arc::clone(app), owners: Arc::clone(&owners) };
    let guard = |router: Router<SharedAppState>| {
        let router = router.route_layer(from_fn(check_body));
        let router = router.route_layer(from_fn_with_state(streams.clone(), limit_stream));
        router.route_layer(from_fn_with_state(Arc::clone(&owners), check_session))
    };
    // The wiki of the address is known before the session is looked at.
    let named = guard(Router::new().route_service("/mcp/{workspace}", service.clone()));
    let named = named.route_layer(from_fn_with_state(vault, name_wiki));
    let router = guard(Router::new().route_service("/mcp", service)).merge(named).route_layer(from_fn(check_request));
    // A client that finds a description of OAuth drops the token that it was given. So nobody finds one, known or not.
    let nothing = any(|| async { ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE).into_response() });
    let well_known = limit_open_routes(Router::new().route("/.well-known/{*rest}", nothing), app);
    require_scope(router, app, AccessScope::Read).merge(well_known)
}

/// Makes the handler of a client. Each has one of its own: an older one sets what is reported to it.
#[cfg(not(feature = "mcp-fixture"))]
fn choose_handler(
    app: &SharedAppState,
    vault: &Arc<McpVault>,
) -> impl Fn() -> io::Result<McpHandler> + Send + Sync + 'static {
    let (vault, changes) = (Arc::clone(vault), ChangeSource::Server(Arc::clone(app)));
    move || Ok(McpHandler::new(Arc::clone(&vault), CallerSource::Request, changes.clone(), "http"))
}

/// Makes a handler with the tools of the conformance suite.
#[cfg(feature = "mcp-fixture")]
fn choose_handler(
    _: &SharedAppState,
    _: &Arc<McpVault>,
) -> impl Fn() -> io::Result<super::fixture::FixtureHandler> + Send + Sync + 'static {
    || Ok(super::fixture::FixtureHandler::new())
}

/// Takes a token alone, and no request of a page of another site. By GET a session opens its stream, so it needs a session.
async fn check_request(request: Request, next: Next) -> Response {
    let refuse = |status, detail: &str| ProblemDetails::new(status, detail).into_response();
    let caller = request.extensions().get::<AuthenticatedCaller>();
    if caller.is_none_or(|caller| caller.proof != CallerProof::Token) {
        return refuse(StatusCode::UNAUTHORIZED, "send a token as `Authorization: Bearer …` (`steward token create`)");
    }
    if request.headers().contains_key(header::ORIGIN) {
        let checked = RequestOrigin::from_extensions(request.extensions()).and_then(RequestOrigin::check_same_origin);
        if let Err(refusal) = checked {
            return refusal.into_response();
        }
    }
    match request.method() {
        &Method::POST | &Method::DELETE => next.run(request).await,
        &Method::GET if request.headers().contains_key(SESSION_HEADER) => next.run(request).await,
        _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "send requests by POST"),
    }
}

/// Notes the wiki that the address names. One that is unknown, or that the caller does not see, is like any other address.
async fn name_wiki(
    State(vault): State<Arc<McpVault>>,
    Path(workspace): Path<String>,
    mut request: Request,
    next: Next,
) -> Response {
    let root = vault.root().clone();
    let known = tokio::task::spawn_blocking(move || list_wikis(&root)).await;
    let is_known = matches!(known, Ok(Ok(known)) if known.iter().any(|(name, _)| *name == workspace));
    let caller = request.extensions().get::<AuthenticatedCaller>();
    let is_seen = caller.is_some_and(|it| it.limits.workspace.as_ref().is_none_or(|only| *only == workspace));
    if !is_known || !is_seen {
        return ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE).into_response();
    }
    request.extensions_mut().insert(AddressedWiki(workspace));
    next.run(request).await
}
