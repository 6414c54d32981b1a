//! Which requests are let through: by the host they name, how often their caller asks, what the caller may do, and the
//! page they come from.
//!
//! A check whose input is missing refuses: a route that was put together without a layer answers 500 and lets nobody
//! through.

use super::host::AllowedHosts;
use super::proxy::TrustedProxies;
use super::session::{BrowserSessions, read_cookies};
use super::{AccessError, AccessScope, AuthenticatedCaller, CallerProof, SecretStore, origin, token};
use crate::access::rate_limit::RequestRateLimiter;
use crate::api::problem::ProblemDetails;
use crate::http::app::{SharedAppState, respond_with_problem};
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
    pace: RequestRateLimiter,
}

impl AccessChecks {
    /// With the key of the vault's sessions, which is made the first time; `encrypted` where everything arrives so.
    pub(crate) fn new(
        store: SecretStore,
        hosts: AllowedHosts,
        proxies: TrustedProxies,
        encrypted: bool,
    ) -> Result<Self, AccessError> {
        let sessions = BrowserSessions::open(&store)?;
        Ok(Self { store, sessions, hosts, proxies, encrypted, pace: RequestRateLimiter::default() })
    }

    /// Who asks; a token counts before a cookie, and one that is wrong is not made up for by the other.
    pub(crate) fn identify_caller(&self, headers: &HeaderMap) -> Result<Option<AuthenticatedCaller>, AccessError> {
        if let Some(said) = headers.get(header::AUTHORIZATION) {
            let said = said.to_str().unwrap_or_default();
            let (scheme, text) = said.split_once(' ').unwrap_or((said, ""));
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Ok(None);
            }
            return token::identify_token(&self.store, text.trim());
        }
        self.sessions.identify_caller(read_cookies(headers), Utc::now())
    }

    /// Who asks, if they may do that much.
    pub(crate) fn admit_request(
        &self,
        scope: AccessScope,
        request: &Request,
    ) -> Result<AuthenticatedCaller, ProblemDetails> {
        let met = RequestOrigin::from_extensions(request.extensions())?;
        let caller = self.identify_caller(request.headers()).map_err(|e| {
            tracing::error!("failed to tell who asks: {e}");
            ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be told who asks; the log says more")
        })?;
        let Some(caller) = caller else {
            met.check_unknown_rate(self)?;
            let detail = "send a token as `Authorization: Bearer …` (`steward token create`), or log in";
            return Err(ProblemDetails::new(StatusCode::UNAUTHORIZED, detail));
        };
        self.pace.check_caller(&caller.name).map_err(too_many_requests)?;
        if caller.scope < scope {
            let detail = format!("this needs the scope `{scope}`, and you have `{}`", caller.scope);
            return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
        }
        if !request.method().is_safe() && caller.proof != CallerProof::Token {
            met.check_same_origin()?;
        }
        Ok(caller)
    }
}

/// How a request reached us.
#[derive(Clone)]
pub(crate) struct RequestOrigin {
    /// It came from a page of ours.
    ours: bool,
    /// Its way was encrypted.
    pub(crate) secure: bool,
    /// The address that asks.
    pub(crate) from: IpAddr,
}

impl RequestOrigin {
    /// What [`check_host`] has noted of a request; a request that did not come through it is refused.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Result<&Self, ProblemDetails> {
        extensions.get::<Self>().ok_or_else(|| missing_layer_problem("how it reached this server"))
    }

    /// Holds that this address does not ask too often; for what unknown callers may ask.
    pub(crate) fn check_unknown_rate(&self, checks: &AccessChecks) -> Result<(), ProblemDetails> {
        checks.pace.check_unknown_address(self.from).map_err(too_many_requests)
    }

    /// As [`RequestOrigin::check_unknown_rate`], for what anybody may have.
    pub(crate) fn check_open_rate(&self, checks: &AccessChecks) -> Result<(), ProblemDetails> {
        checks.pace.check_open_address(self.from).map_err(too_many_requests)
    }

    /// Holds that a page of ours asks.
    pub(crate) fn check_same_origin(&self) -> Result<(), ProblemDetails> {
        let detail = "this came from another page than ours, and was not done";
        if self.ours { Ok(()) } else { Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail)) }
    }
}

/// Of a request that a check cannot judge.
fn missing_layer_problem(what: &str) -> ProblemDetails {
    tracing::error!("a request was refused, because it is not known {what}: a layer of the server is missing");
    let detail = format!("this cannot be checked, so it was not done: it is not known {what}");
    ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}

fn too_many_requests(seconds: u32) -> ProblemDetails {
    ProblemDetails {
        retry_after: Some(seconds),
        ..ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests: ask again in {seconds} s"))
    }
}

/// Refuses what is sent to a name that is not ours, and notes how the rest reached us.
pub(crate) async fn check_host(State(checks): State<Arc<AccessChecks>>, mut request: Request, next: Next) -> Response {
    // Who watches a machine asks it by any of its addresses, and learns nothing.
    let by_any_name = matches!(request.uri().path(), "/healthz" | "/readyz");
    let host = checks.hosts.match_host(request.uri(), request.headers());
    if host.is_none() && !by_any_name {
        let detail = "not a name that is answered to: add it to STEWARD_HOSTS";
        let problem = ProblemDetails::new(StatusCode::MISDIRECTED_REQUEST, detail);
        return respond_with_problem(request.method(), request.uri(), problem);
    }
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
        return respond_with_problem(request.method(), request.uri(), missing_layer_problem("which address sent it"));
    };
    let came = checks.proxies.find_client(peer.ip(), checks.encrypted, request.headers());
    let ours = host.is_some_and(|host| origin::is_same_origin(request.headers(), host, came.secure));
    request.extensions_mut().insert(RequestOrigin { ours, secure: came.secure, from: came.from });
    let mut response = next.run(request).await;
    if came.secure {
        let a_year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
    response
}

/// Lets nobody through to these routes who may not do that much.
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

/// Lets anybody ask these routes, and no address too often.
pub(crate) fn limit_open_routes<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    app: &SharedAppState,
) -> Router<S> {
    router.route_layer(from_fn_with_state(Arc::clone(&app.access), limit_open_request))
}

async fn limit_open_request(State(checks): State<Arc<AccessChecks>>, request: Request, next: Next) -> Response {
    match RequestOrigin::from_extensions(request.extensions()).and_then(|met| met.check_open_rate(&checks)) {
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

    struct Bench {
        _dir: tempfile::TempDir,
        checks: Arc<AccessChecks>,
    }

    impl Bench {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &[]);
            let checks =
                AccessChecks::new(SecretStore::new(dir.path()), hosts, TrustedProxies::default(), false).unwrap();
            Self { _dir: dir, checks: Arc::new(checks) }
        }

        /// A request with the cookie of a session that may do everything.
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

    fn met(mut request: Request, ours: bool) -> Request {
        request.extensions_mut().insert(RequestOrigin { ours, secure: false, from: "127.0.0.1".parse().unwrap() });
        request
    }

    #[tokio::test]
    async fn a_check_that_does_not_know_how_a_request_reached_us_lets_nothing_through() {
        let bench = Bench::new();
        for method in [Method::GET, Method::POST] {
            assert_eq!(ask(bench.allowed(), bench.request(method.clone())).await, 500, "{method}: the origin");
            assert_eq!(ask(bench.open(), bench.request(method.clone())).await, 500, "{method}: the rate limit");
            assert_eq!(ask(bench.open(), met(bench.request(method.clone()), false)).await, 200, "{method}");
        }
        let nobody = axum::http::Request::builder().uri("/").body(Body::empty()).unwrap();
        assert_eq!(ask(bench.allowed(), nobody).await, 500, "nor does a caller whom nobody knows");
        assert_eq!(ask(bench.allowed(), met(bench.request(Method::POST), false)).await, 403, "another page asks");
        assert_eq!(ask(bench.allowed(), met(bench.request(Method::POST), true)).await, 200, "our own asks");
    }

    #[tokio::test]
    async fn a_request_of_which_no_address_is_known_is_refused() {
        let bench = Bench::new();
        let behind = || bench.open().layer(from_fn_with_state(Arc::clone(&bench.checks), check_host));
        assert_eq!(ask(behind(), bench.request(Method::GET)).await, 500);
        let mut known = bench.request(Method::GET);
        known.extensions_mut().insert(ConnectInfo::<SocketAddr>("127.0.0.1:5".parse().unwrap()));
        assert_eq!(ask(behind(), known).await, 200);
    }
}
