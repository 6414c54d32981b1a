//! Authenticates and authorises every request.
//!
//! The checks run in this order: Host header (421), authentication (401), rate limit (429), scope (403), origin of a
//! browser session's write (403). A check whose input is missing refuses: a route without the layer it needs answers
//! 500.

use super::host::AllowedHosts;
use super::proxy::TrustedProxies;
use super::session::{BrowserSessions, read_cookies};
use super::{AccessError, AccessScope, AuthenticatedCaller, CallerProof, SecretStore, origin, token};
use crate::access::rate_limit::RequestRateLimiter;
use crate::api::health::is_health_check;
use crate::api::problem::ProblemDetails;
use crate::http::app::{SharedAppState, respond_with_problem};
use crate::mcp::http::is_mcp_path;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use chrono::Utc;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What requests are checked against.
pub(crate) struct AccessChecks {
    pub(crate) store: SecretStore,
    pub(crate) sessions: BrowserSessions,
    hosts: AllowedHosts,
    proxies: TrustedProxies,
    encrypted: bool,
    rates: RequestRateLimiter,
}

impl AccessChecks {
    /// Opens the vault's sessions and creates their key if it is missing. `encrypted` says that every connection to
    /// this server uses TLS.
    pub(crate) fn new(
        store: SecretStore,
        hosts: AllowedHosts,
        proxies: TrustedProxies,
        encrypted: bool,
    ) -> Result<Self, AccessError> {
        let sessions = BrowserSessions::open(&store)?;
        Ok(Self { store, sessions, hosts, proxies, encrypted, rates: RequestRateLimiter::default() })
    }

    /// Finds the caller by a token or a session cookie; `None` if neither is valid. A request with a token is judged by
    /// the token alone: a valid cookie does not make up for a wrong token.
    pub(crate) fn identify_caller(&self, headers: &HeaderMap) -> Result<Option<AuthenticatedCaller>, AccessError> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let value = value.to_str().unwrap_or_default();
            let (scheme, text) = value.split_once(' ').unwrap_or((value, ""));
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Ok(None);
            }
            return token::identify_token(&self.store, text.trim());
        }
        self.sessions.identify_caller(read_cookies(headers), Utc::now())
    }

    /// Identifies the caller and checks rate limit, scope and origin.
    pub(crate) fn admit_request(
        &self,
        scope: AccessScope,
        request: &Request,
    ) -> Result<AuthenticatedCaller, ProblemDetails> {
        let origin = RequestOrigin::from_extensions(request.extensions())?;
        let caller = self.identify_caller(request.headers()).map_err(|e| {
            tracing::error!("failed to identify a caller: {e}");
            ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the caller cannot be identified; the log says why")
        })?;
        let Some(caller) = caller else {
            origin.check_unknown_rate(self)?;
            let detail = "send a token as `Authorization: Bearer …` (`steward token create`), or log in";
            return Err(ProblemDetails::new(StatusCode::UNAUTHORIZED, detail));
        };
        self.rates.check_caller(&caller.name).map_err(too_many_requests)?;
        if caller.limits.is_limited() && !is_mcp_path(request.uri().path()) {
            let detail = "this token is limited to assistants and opens `/mcp` alone";
            return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
        }
        if caller.scope < scope {
            let detail = format!("this needs the scope `{scope}`; you have `{}`", caller.scope);
            return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
        }
        if !request.method().is_safe() && caller.proof != CallerProof::Token {
            origin.check_same_origin()?;
        }
        Ok(caller)
    }
}

/// How a request reached this server.
#[derive(Clone)]
pub(crate) struct RequestOrigin {
    /// A page of this dashboard sent it.
    ours: bool,
    /// The caller's connection was encrypted.
    pub(crate) secure: bool,
    /// The caller's address.
    pub(crate) from: IpAddr,
}

impl RequestOrigin {
    /// Reads the origin that [`check_host`] attached to a request.
    ///
    /// # Errors
    /// 500 if the request did not pass [`check_host`].
    pub(crate) fn from_extensions(extensions: &Extensions) -> Result<&Self, ProblemDetails> {
        extensions.get::<Self>().ok_or_else(|| missing_layer_problem("origin"))
    }

    /// Checks the rate limit of this address for requests of unknown callers.
    pub(crate) fn check_unknown_rate(&self, checks: &AccessChecks) -> Result<(), ProblemDetails> {
        checks.rates.check_unknown_address(self.from).map_err(too_many_requests)
    }

    /// Checks the rate limit of this address for routes that need no login.
    pub(crate) fn check_open_rate(&self, checks: &AccessChecks) -> Result<(), ProblemDetails> {
        checks.rates.check_open_address(self.from).map_err(too_many_requests)
    }

    /// Checks that a page of this dashboard sent the request.
    pub(crate) fn check_same_origin(&self) -> Result<(), ProblemDetails> {
        let detail = "refused: the request came from a page of another site";
        if self.ours { Ok(()) } else { Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail)) }
    }
}

/// The refusal of a request that a check cannot judge.
fn missing_layer_problem(missing: &str) -> ProblemDetails {
    tracing::error!("refused a request: its {missing} is unknown, because a layer of the server is missing");
    let detail = format!("refused: the request's {missing} is unknown, so it cannot be checked");
    ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

fn too_many_requests(seconds: u32) -> ProblemDetails {
    ProblemDetails {
        retry_after: Some(seconds),
        ..ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests: try again in {seconds} s"))
    }
}

/// Refuses requests to an unknown host name, and attaches a [`RequestOrigin`] to all others.
pub(crate) async fn check_host(State(checks): State<Arc<AccessChecks>>, mut request: Request, next: Next) -> Response {
    // A monitor may use any address of the machine. These routes tell it nothing about the vault.
    let allows_any_host = is_health_check(request.uri().path());
    let host = checks.hosts.match_host(request.uri(), request.headers());
    if host.is_none() && !allows_any_host {
        let detail = "unknown host name: add it to STEWARD_HOSTS";
        let problem = ProblemDetails::new(StatusCode::MISDIRECTED_REQUEST, detail);
        return respond_with_problem(request.method(), request.uri(), problem);
    }
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
        return respond_with_problem(request.method(), request.uri(), missing_layer_problem("address"));
    };
    let client = checks.proxies.find_client(peer.ip(), checks.encrypted, request.headers());
    let ours = host.is_some_and(|host| origin::is_same_origin(request.headers(), host, client.secure));
    request.extensions_mut().insert(RequestOrigin { ours, secure: client.secure, from: client.from });
    let mut response = next.run(request).await;
    if client.secure {
        let a_year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
    response
}

/// Requires a caller with at least this scope for these routes.
pub(crate) fn require_scope<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    app: &SharedAppState,
    scope: AccessScope,
) -> Router<S> {
    router.route_layer(from_fn_with_state((Arc::clone(&app.access), scope), authorize_request))
}

pub(crate) async fn authorize_request(
    State((checks, scope)): State<(Arc<AccessChecks>, AccessScope)>,
    mut request: Request,
    next: Next,
) -> Response {
    match checks.admit_request(scope, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => respond_with_problem(request.method(), request.uri(), refusal),
    }
}

/// Opens these routes to everybody, with a rate limit for each address.
pub(crate) fn limit_open_routes<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    app: &SharedAppState,
) -> Router<S> {
    router.route_layer(from_fn_with_state(Arc::clone(&app.access), limit_open_request))
}

async fn limit_open_request(State(checks): State<Arc<AccessChecks>>, request: Request, next: Next) -> Response {
    match RequestOrigin::from_extensions(request.extensions()).and_then(|origin| origin.check_open_rate(&checks)) {
        Ok(()) => next.run(request).await,
        Err(refusal) => respond_with_problem(request.method(), request.uri(), refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Method;
    use axum::routing::any;
    use tower_service::Service;

    struct TestAccess {
        _dir: tempfile::TempDir,
        checks: Arc<AccessChecks>,
    }

    impl TestAccess {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &[]);
            let checks =
                AccessChecks::new(SecretStore::new(dir.path()), hosts, TrustedProxies::default(), false).unwrap();
            Self { _dir: dir, checks: Arc::new(checks) }
        }

        /// A request with the cookie of a session whose scope is `operate`.
        fn request(&self, method: Method) -> Request {
            let (name, value) = self.checks.sessions.begin_session("ann", AccessScope::Operate, Utc::now()).unwrap();
            let request = axum::http::Request::builder().method(method).uri("/").header("host", "127.0.0.1:8420");
            request.header("cookie", format!("{name}={value}")).body(Body::empty()).unwrap()
        }

        fn allowed(&self) -> Router {
            let layer = from_fn_with_state((Arc::clone(&self.checks), AccessScope::Act), authorize_request);
            Router::new().route("/", any(async || "done")).route_layer(layer)
        }

        fn open(&self) -> Router {
            let layer = from_fn_with_state(Arc::clone(&self.checks), limit_open_request);
            Router::new().route("/", any(async || "done")).route_layer(layer)
        }
    }

    async fn ask(mut router: Router, request: Request) -> u16 {
        router.call(request).await.unwrap().status().as_u16()
    }

    fn with_origin(mut request: Request, ours: bool) -> Request {
        request.extensions_mut().insert(RequestOrigin { ours, secure: false, from: "127.0.0.1".parse().unwrap() });
        request
    }

    #[tokio::test]
    async fn a_request_without_a_known_origin_is_refused() {
        let access = TestAccess::new();
        for method in [Method::GET, Method::POST] {
            assert_eq!(ask(access.allowed(), access.request(method.clone())).await, 500, "{method}: the origin");
            assert_eq!(ask(access.open(), access.request(method.clone())).await, 500, "{method}: the rate limit");
            assert_eq!(ask(access.open(), with_origin(access.request(method.clone()), false)).await, 200, "{method}");
        }
        let unknown = axum::http::Request::builder().uri("/").body(Body::empty()).unwrap();
        assert_eq!(ask(access.allowed(), unknown).await, 500, "an unknown caller is refused as well");
        let post = || access.request(Method::POST);
        assert_eq!(ask(access.allowed(), with_origin(post(), false)).await, 403, "from a foreign page");
        assert_eq!(ask(access.allowed(), with_origin(post(), true)).await, 200, "from our own page");
    }

    #[tokio::test]
    async fn a_request_without_a_known_address_is_refused() {
        let access = TestAccess::new();
        let behind = || access.open().layer(from_fn_with_state(Arc::clone(&access.checks), check_host));
        assert_eq!(ask(behind(), access.request(Method::GET)).await, 500);
        let mut known = access.request(Method::GET);
        known.extensions_mut().insert(ConnectInfo::<SocketAddr>("127.0.0.1:5".parse().unwrap()));
        assert_eq!(ask(behind(), known).await, 200);
    }
}
