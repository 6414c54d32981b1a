//! The server put together: what every request goes through, and where it ends.
//!
//! In this order: headers that every answer has, the host, who asks, their pace, their scope. What is refused is
//! refused in the face that was asked: JSON below `/api/`, a gRPC status below a service, a page elsewhere. A stranger
//! gets the same answer of every address, whether it is there or not; who is known gets one 404 of all that is not.

use crate::access::session::Sessions;
use crate::access::{
    AccessError, Caller, Proof, Scope, Store, host::Hosts, local, origin, pace::Pace, proxy::Proxies, seats::Seat,
    seats::Seats, token,
};
use crate::answer::Answers;
use crate::api;
use crate::api::health::IndexFile;
use crate::api::problem::Problem;
use crate::beat::{self, Beat};
use crate::facts::streams::StreamName;
use crate::grpc;
use crate::holder::Holder;
use crate::outside::{self, Outside, registered};
use crate::pages;
use crate::temporal::Temporal;
use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::Utc;
use futures_util::FutureExt;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::mode::{Ceiling, Policy};
use steward_domain::tick::Cadence;
use steward_vault::guard::Ledger;
use steward_vault::index::Index;
use steward_vault::root::Root;
use temporalio_client::Client;
use tokio::sync::watch;

/// What the faces need of the process they run in.
pub struct Parts {
    pub root: Root,
    pub index: Arc<Index>,
    pub answers: Answers,
    pub client: Client,
    /// The rate guard's ledger, where it can be opened.
    pub ledger: Option<Arc<Ledger>>,
    pub store: Store,
    pub hosts: Hosts,
    pub proxies: Proxies,
    /// What arrives here is encrypted.
    pub encrypted: bool,
    pub house: House,
    /// Raised when the process is to end.
    pub stop: watch::Receiver<bool>,
}

/// What is set for the vault, as far as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct House {
    /// Of the process that holds the vault.
    pub policy: Policy,
    pub cadence: Cadence,
    /// The ceiling of sources on which no human has set one.
    pub default_ceiling: Ceiling,
    /// The queue that workers serve.
    pub task_queue: String,
    /// The Temporal UI at this namespace, as in `http://127.0.0.1:8233/namespaces/default`.
    pub temporal_ui: Option<String>,
    /// Which clerk judges: `rules`, `openai`, `anthropic` or `ollama`.
    pub clerk: &'static str,
    /// Where the tracker is; `None` where none is set.
    pub tracker: Option<String>,
    pub streams: Vec<StreamName>,
    /// How often the whole vault is read.
    pub scan_every: Duration,
    /// What is wrong with the configuration. May quote it.
    pub warnings: Vec<String>,
}

/// Most live streams of one caller: each open tab of the dashboard is one, each `WatchEvents` too.
const LIVE_OF_EACH: usize = 32;
/// Most live streams of all callers together.
const LIVE_OF_ALL: usize = 256;
/// When it is worth asking again for a place among them, in seconds.
const FULL_FOR: u32 = 30;
/// How often is looked whether who listens still may, besides whenever anything happens: 5 s.
pub(crate) const KNOWN_AGAIN: Duration = Duration::from_secs(5);

/// What every request can reach.
pub(crate) struct App {
    pub(crate) root: Root,
    pub(crate) index: Arc<Index>,
    pub(crate) answers: Answers,
    pub(crate) temporal: Temporal,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) store: Store,
    pub(crate) sessions: Sessions,
    pub(crate) house: House,
    pub(crate) beat: watch::Receiver<Beat>,
    /// What Temporal said last.
    pub(crate) outside: watch::Receiver<Outside>,
    pub(crate) registration: watch::Receiver<registered::RegistrationStatus>,
    pub(crate) stop: watch::Receiver<bool>,
    hosts: Hosts,
    proxies: Proxies,
    encrypted: bool,
    pace: Pace,
    live: Seats<String>,
    /// The file that [`App::index`] opened.
    pub(crate) index_file: IndexFile,
    /// What the charts were drawn from last.
    pub(crate) charts: pages::charts::Kept,
}

/// As handlers take it.
pub(crate) type Shared = Arc<App>;

impl App {
    /// The policy in force: of the process that holds the vault now, which another may have followed since this one
    /// was started.
    pub(crate) fn policy(&self) -> Policy {
        match Holder::of(&self.root, self.index.state_dir()) {
            Holder::Runs(note) => note.policy,
            Holder::Died(_) | Holder::Silent(_) | Holder::Nobody => self.house.policy.clone(),
        }
    }

    /// A place among those who listen, for as long as it is kept.
    pub(crate) fn listener(&self, caller: &Caller) -> Result<Seat<String>, Problem> {
        self.live.take(caller.name.clone(), false).ok_or_else(|| Problem {
            retry_after: Some(FULL_FOR),
            ..Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("too many listen live, {LIVE_OF_EACH} of one caller or {LIVE_OF_ALL} of all: close some"),
            )
        })
    }

    /// Whether who showed this may still see what they see; it may be taken away, and a session ends.
    pub(crate) fn still_sees(&self, headers: &HeaderMap) -> Result<bool, AccessError> {
        Ok(caller(self, headers)?.is_some_and(|caller| caller.scope >= Scope::Read))
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the descriptors of the contract cannot be read: {0}")]
    Contract(#[from] tonic_reflection::server::Error),
}

/// The router of everything that is served.
///
/// # Errors
/// [`StartError`] when the keys of sessions and of the command can be neither read nor made.
pub fn router(parts: Parts) -> Result<Router, StartError> {
    let Parts { root, index, answers, client, ledger, store, hosts, proxies, encrypted, house, stop } = parts;
    let sessions = Sessions::open(&store)?;
    local::make(&store)?;
    let beat = beat::start(root.clone(), Arc::clone(&index), stop.clone());
    let pace = Pace::default();
    let index_file = IndexFile::of(index.state_dir());
    let registration = registered::start(registered::ExpectedSchedules::new(&client, &root, &index), stop.clone());
    let temporal = Temporal::new(client);
    let outside = outside::start(temporal.clone(), stop.clone());
    let app = Arc::new(App {
        root,
        index,
        answers,
        temporal,
        ledger,
        store,
        sessions,
        house,
        beat,
        outside,
        registration,
        stop,
        hosts,
        proxies,
        encrypted,
        pace,
        live: Seats::new(LIVE_OF_EACH, LIVE_OF_ALL),
        index_file,
        charts: Default::default(),
    });
    let router = api::router(&app)
        .merge(pages::router(&app))
        .merge(grpc::router(&app)?)
        .fallback(nowhere.layer(from_fn_with_state((Arc::clone(&app), Scope::Read), allowed)))
        .method_not_allowed_fallback(wrong_method)
        // Where a body is read, and so after it is known who sends it.
        .layer(DefaultBodyLimit::max(api::answers::MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(&app), known_host))
        .layer(from_fn(unbroken))
        .layer(map_response(guarded))
        .with_state(app);
    Ok(router)
}

/// When a process that starts is worth asking again, in seconds.
const STARTS_FOR: u32 = 2;

/// Who answers before there is a [`router`]: the process lives, and everything else is for later.
pub(crate) fn starting() -> Router {
    Router::new()
        .route("/healthz", get(api::health::healthz))
        .route("/assets/{name}", get(pages::asset))
        .fallback(not_yet)
        .layer(map_response(guarded))
}

async fn not_yet(method: Method, uri: Uri) -> Response {
    let detail = "Steward is starting, and reads the vault first.";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    refuse((&method, &uri), Problem { retry_after: Some(STARTS_FOR), ..problem })
}

/// What panics is answered as well, in the face that was asked.
async fn unbroken(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the answer to {} panicked", uri.path().escape_debug());
        let detail = "something went wrong here; the log says more";
        refuse((&method, &uri), Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    })
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

/// How a request reached us.
#[derive(Clone)]
pub(crate) struct Met {
    /// It came from a page of ours.
    ours: bool,
    /// Its way was encrypted.
    pub(crate) secure: bool,
    from: Option<IpAddr>,
}

impl Met {
    /// Holds that this address does not ask too often; for what is answered to strangers.
    pub(crate) fn paced(&self, app: &App) -> Result<(), Problem> {
        self.from.map_or(Ok(()), |from| app.pace.of_stranger(from)).map_err(too_many)
    }

    /// As [`Met::paced`], for what anybody may have.
    pub(crate) fn unhurried(&self, app: &App) -> Result<(), Problem> {
        self.from.map_or(Ok(()), |from| app.pace.of_anybody(from)).map_err(too_many)
    }

    /// The address that asks, where it is known.
    pub(crate) fn from(&self) -> Option<IpAddr> {
        self.from
    }

    /// Holds that a page of ours asks.
    pub(crate) fn same_origin(&self) -> Result<(), Problem> {
        let detail = "this came from another page than ours, and was not done";
        if self.ours { Ok(()) } else { Err(Problem::new(StatusCode::FORBIDDEN, detail)) }
    }
}

async fn known_host(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    // Who watches a machine asks it by any of its addresses, and is told nothing.
    let by_any_name = matches!(request.uri().path(), "/healthz" | "/readyz");
    let host = app.hosts.named(request.uri(), request.headers());
    if host.is_none() && !by_any_name {
        let detail = "not a name that is answered to: add it to STEWARD_HOSTS";
        let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, detail);
        return refuse((request.method(), request.uri()), problem);
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let came = peer.map(|peer| app.proxies.came(peer, app.encrypted, request.headers()));
    let secure = came.map_or(app.encrypted, |came| came.secure);
    let ours = host.is_some_and(|host| origin::is_ours(request.headers(), host, secure));
    request.extensions_mut().insert(Met { ours, secure, from: came.map(|came| came.from) });
    let mut response = next.run(request).await;
    if secure {
        let a_year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, a_year);
    }
    response
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
        Err(refusal) => refuse((request.method(), request.uri()), refusal),
    }
}

/// Lets anybody ask these routes, and no address too often.
pub(crate) fn open<S: Clone + Send + Sync + 'static>(router: Router<S>, app: &Shared) -> Router<S> {
    router.route_layer(from_fn_with_state(Arc::clone(app), unhurried))
}

async fn unhurried(State(app): State<Shared>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Met>().map_or(Ok(()), |met| met.unhurried(&app)) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refuse((request.method(), request.uri()), refusal),
    }
}

pub(crate) fn admit(app: &App, scope: Scope, request: &Request) -> Result<Caller, Problem> {
    let caller = caller(app, request.headers()).map_err(|e| {
        tracing::error!("failed to tell who asks: {e}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be told who asks; the log says more")
    })?;
    let Some(caller) = caller else {
        request.extensions().get::<Met>().map_or(Ok(()), |met| met.paced(app))?;
        let detail = "send a token as `Authorization: Bearer …` (`steward token create`), or log in";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, detail));
    };
    app.pace.of_caller(&caller.name).map_err(too_many)?;
    if caller.scope < scope {
        let detail = format!("this needs the scope `{scope}`, and you have `{}`", caller.scope);
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    if !request.method().is_safe() && caller.proof != Proof::Token {
        request.extensions().get::<Met>().map_or(Ok(()), Met::same_origin)?;
    }
    Ok(caller)
}

/// Who asks; a token counts before a cookie, and one that is wrong is not made up for by the other.
pub(crate) fn caller(app: &App, headers: &HeaderMap) -> Result<Option<Caller>, AccessError> {
    if let Some(said) = headers.get(header::AUTHORIZATION) {
        let said = said.to_str().unwrap_or_default();
        let (scheme, text) = said.split_once(' ').unwrap_or((said, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Ok(None);
        }
        let known = token::caller(&app.store, text.trim())?;
        return known.map_or_else(|| local::caller(&app.store, text.trim(), headers), |known| Ok(Some(known)));
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let ours = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    app.sessions.caller(ours, Utc::now())
}

fn too_many(seconds: u32) -> Problem {
    Problem {
        retry_after: Some(seconds),
        ..Problem::new(StatusCode::TOO_MANY_REQUESTS, format!("too many requests: ask again in {seconds} s"))
    }
}

/// In the face that was asked.
fn refuse((method, uri): (&Method, &Uri), problem: Problem) -> Response {
    if grpc::is_asked(uri.path()) {
        return grpc::refusal::response(&problem);
    }
    let to_a_program = uri.path().starts_with("/api/") || matches!(uri.path(), "/healthz" | "/readyz");
    // An address to which something was sent may be none to open.
    let back = (!method.is_safe()).then(|| "/".to_owned());
    if to_a_program { problem.into_response() } else { pages::refusal(&problem, back) }
}

async fn nowhere(method: Method, uri: Uri) -> Response {
    refuse((&method, &uri), Problem::new(StatusCode::NOT_FOUND, "there is nothing here"))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    refuse((&method, &uri), Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}
