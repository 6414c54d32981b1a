//! The server put together: what every request goes through, and where it ends.
//!
//! In this order: headers that every answer has, the host, who asks, their pace, their scope. What is refused is
//! refused in the face that was asked: JSON below `/api/`, a gRPC status below a service, a page elsewhere. A stranger
//! gets the same answer of every address, whether it is there or not; who is known gets one 404 of all that is not.

use crate::access::admission::{self, AccessChecks};
use crate::access::connection_limit::{ConnectionLimiter, ConnectionPermit};
use crate::access::{
    AccessError, AccessScope, AuthenticatedCaller, SecretStore, host::AllowedHosts, proxy::TrustedProxies,
};
use crate::api;
use crate::api::problem::ProblemDetails;
use crate::grpc;
use crate::http::holder::{HolderRecord, VaultHolder};
use crate::pages;
use crate::temporal::client::TemporalQueryClient;
use crate::temporal::health::{self, TemporalHealth, registered};
use crate::temporal::resolve::ResolutionClient;
use crate::views::revision::{self, LiveRevision};
use crate::views::streams::ConfiguredStream;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::Utc;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::steward::guard::{CallCaps, GuardStatus};
use steward_domain::steward::tick::Cadence;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use temporalio_client::Client;
use tokio::sync::watch;

/// What the faces need of the process they run in.
pub struct AppDependencies {
    pub root: VaultRoot,
    pub index: Arc<Index>,
    pub client: Client,
    /// The rate guard's ledger, where it can be opened.
    pub ledger: Option<Arc<Ledger>>,
    pub store: SecretStore,
    pub hosts: AllowedHosts,
    pub proxies: TrustedProxies,
    /// What arrives here is encrypted.
    pub encrypted: bool,
    pub settings: DashboardSettings,
    /// Raised when the process is to end.
    pub stop: watch::Receiver<bool>,
}

/// What is set for the vault, as far as it is shown.
#[derive(Clone, Debug)]
pub struct DashboardSettings {
    pub policy: DecisionPolicy,
    pub cadence: Cadence,
    /// The ceiling of sources on which no human has set one.
    pub default_ceiling: Ceiling,
    /// Of the rate guard.
    pub caps: CallCaps,
    /// The queue that workers serve.
    pub task_queue: String,
    /// The Temporal UI at this namespace, as in `http://127.0.0.1:8233/namespaces/default`.
    pub temporal_ui: Option<String>,
    /// Which clerk judges: `rules`, `openai`, `anthropic` or `ollama`.
    pub clerk: String,
    /// Where the tracker is; `None` where none is set.
    pub tracker: Option<String>,
    pub streams: Vec<ConfiguredStream>,
    /// How often the whole vault is read.
    pub scan_every: Duration,
    /// What is wrong with the configuration. May quote it.
    pub warnings: Vec<String>,
}

impl DashboardSettings {
    /// These, with what the holder of the vault says of its own in their place.
    fn with_holder(mut self, note: HolderRecord, namespace: &str) -> Self {
        if let Some(asks) = note.asks {
            self.caps = asks.caps;
            self.clerk = asks.clerk["kind"].as_str().map_or(self.clerk, str::to_owned);
            self.tracker = asks.tracker;
        }
        Self {
            policy: note.policy,
            cadence: note.cadence.unwrap_or(self.cadence),
            default_ceiling: note.default_ceiling.unwrap_or(self.default_ceiling),
            task_queue: note.task_queue,
            temporal_ui: note.ui.map(|ui| format!("{ui}/namespaces/{namespace}")).or(self.temporal_ui),
            scan_every: note.scan_seconds.map_or(self.scan_every, Duration::from_secs),
            ..self
        }
    }
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
pub(crate) struct AppState {
    pub(crate) root: VaultRoot,
    pub(crate) index: Arc<Index>,
    pub(crate) temporal: TemporalQueryClient,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) access: Arc<AccessChecks>,
    /// Those that this process was started with.
    own_settings: DashboardSettings,
    pub(crate) beat: watch::Receiver<LiveRevision>,
    /// What Temporal said last.
    pub(crate) outside: watch::Receiver<TemporalHealth>,
    pub(crate) registration: watch::Receiver<registered::RegistrationStatus>,
    pub(crate) stop: watch::Receiver<bool>,
    live: ConnectionLimiter<String>,
    /// What the charts were drawn from last.
    pub(crate) charts: pages::charts::ChartCountsCache,
}

/// As handlers take it.
pub(crate) type SharedAppState = Arc<AppState>;

impl AppState {
    /// The settings in force: of the process that holds the vault now, which another may have followed since this one
    /// was started.
    pub(crate) fn read_settings(&self) -> DashboardSettings {
        let own = self.own_settings.clone();
        match VaultHolder::read(&self.root, self.index.state_dir()) {
            VaultHolder::Runs(note) => own.with_holder(note, &self.temporal.client().options().namespace),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => own,
        }
    }

    /// Asks for answers of whoever holds the vault.
    pub(crate) fn resolution_client(&self) -> ResolutionClient {
        ResolutionClient::new(self.temporal.client().clone(), &self.read_settings().task_queue)
    }

    /// How the rate guard stands, by the caps in force; `None` where its ledger could not be opened.
    pub(crate) async fn read_guard_status(&self) -> Option<GuardStatus> {
        let ledger = self.ledger.as_ref()?;
        Some(ledger.status_with_caps(&self.read_settings().caps, Utc::now()).await)
    }

    /// A place among those who listen, for as long as it is kept.
    pub(crate) fn acquire_live_permit(
        &self,
        caller: &AuthenticatedCaller,
    ) -> Result<ConnectionPermit<String>, ProblemDetails> {
        self.live.acquire(caller.name.clone(), false).ok_or_else(|| ProblemDetails {
            retry_after: Some(FULL_FOR),
            ..ProblemDetails::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!("too many listen live, {LIVE_OF_EACH} of one caller or {LIVE_OF_ALL} of all: close some"),
            )
        })
    }

    /// Whether who showed this may still see what they see; it may be taken away, and a session ends.
    pub(crate) fn can_still_read(&self, headers: &HeaderMap) -> Result<bool, AccessError> {
        Ok(self.access.identify_caller(headers)?.is_some_and(|caller| caller.scope >= AccessScope::Read))
    }
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum RouterBuildError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the descriptors of the contract cannot be read: {0}")]
    Contract(#[from] tonic_reflection::server::Error),
}

/// The router of everything that is served.
///
/// # Errors
/// [`RouterBuildError`] when the key of sessions can be neither read nor made.
pub fn build_router(parts: AppDependencies) -> Result<Router, RouterBuildError> {
    let AppDependencies { root, index, client, ledger, store, hosts, proxies, encrypted, settings, stop } = parts;
    let access = Arc::new(AccessChecks::new(store, hosts, proxies, encrypted)?);
    let beat = revision::spawn_change_notifier(root.clone(), Arc::clone(&index), stop.clone());
    let registration = registered::spawn_registration_watcher(
        registered::ExpectedSchedules::new(&client, &root, &index),
        stop.clone(),
    );
    let temporal = TemporalQueryClient::new(client);
    let outside = health::spawn_health_watcher(temporal.clone(), stop.clone());
    let app = Arc::new(AppState {
        root,
        index,
        temporal,
        ledger,
        access: Arc::clone(&access),
        own_settings: settings,
        beat,
        outside,
        registration,
        stop,
        live: ConnectionLimiter::new(LIVE_OF_EACH, LIVE_OF_ALL),
        charts: Default::default(),
    });
    let router = api::build_router(&app)
        .merge(pages::build_router(&app))
        .merge(grpc::build_router(&app)?)
        .fallback(
            respond_not_found
                .layer(from_fn_with_state((Arc::clone(&access), AccessScope::Read), admission::authorize_request)),
        )
        .method_not_allowed_fallback(respond_method_not_allowed)
        // Where a body is read, and so after it is known who sends it.
        .layer(DefaultBodyLimit::max(api::answers::MAX_BODY))
        .layer(from_fn_with_state(access, admission::check_host))
        .layer(from_fn(catch_panics))
        .layer(map_response(add_security_headers))
        .with_state(app);
    Ok(router)
}

/// When a process that starts is worth asking again, in seconds.
const STARTS_FOR: u32 = 2;

/// Who answers before there is a [`router`]: the process lives, and everything else is for later.
pub(crate) fn build_starting_router() -> Router {
    Router::new()
        .route("/healthz", get(api::health::healthz))
        .route("/assets/{name}", get(pages::serve_asset))
        .fallback(respond_starting)
        .layer(map_response(add_security_headers))
}

async fn respond_starting(method: Method, uri: Uri) -> Response {
    let detail = "Steward is starting, and reads the vault first.";
    let problem = ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    respond_with_problem(&method, &uri, ProblemDetails { retry_after: Some(STARTS_FOR), ..problem })
}

/// What panics is answered as well, in the face that was asked.
async fn catch_panics(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the answer to {} panicked", uri.path().escape_debug());
        let detail = "something went wrong here; the log says more";
        respond_with_problem(&method, &uri, ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    })
}

/// What may be done with an answer, whoever gets it.
async fn add_security_headers(mut response: Response) -> Response {
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

/// In the face that was asked.
pub(crate) fn respond_with_problem(method: &Method, uri: &Uri, problem: ProblemDetails) -> Response {
    if grpc::is_grpc_path(uri.path()) {
        return grpc::refusal::build_response(&problem);
    }
    let to_a_program = uri.path().starts_with("/api/") || matches!(uri.path(), "/healthz" | "/readyz");
    // An address to which something was sent may be none to open.
    let back = (!method.is_safe()).then(|| "/".to_owned());
    if to_a_program { problem.into_response() } else { pages::render_refusal(&problem, back) }
}

async fn respond_not_found(method: Method, uri: Uri) -> Response {
    respond_with_problem(&method, &uri, ProblemDetails::new(StatusCode::NOT_FOUND, "there is nothing here"))
}

async fn respond_method_not_allowed(method: Method, uri: Uri) -> Response {
    respond_with_problem(&method, &uri, ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}
