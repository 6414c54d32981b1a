//! The server put together: what every request goes through, and where it ends.
//!
//! In this order: headers that every answer has, the host, who asks, their pace, their scope. What is refused is
//! refused in the face that was asked: JSON below `/api/`, a gRPC status below a service, a page elsewhere. A stranger
//! gets the same answer of every address, whether it is there or not; who is known gets one 404 of all that is not.

use crate::access::admission::{self, AccessChecks};
use crate::access::seats::{Seat, Seats};
use crate::access::{AccessError, Caller, Scope, Store, host::Hosts, local, proxy::Proxies};
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
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::mode::{Ceiling, DecisionPolicy};
use steward_domain::tick::Cadence;
use steward_vault::guard::Ledger;
use steward_vault::index::Index;
use steward_vault::root::VaultRoot;
use temporalio_client::Client;
use tokio::sync::watch;

/// What the faces need of the process they run in.
pub struct Parts {
    pub root: VaultRoot,
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
    pub policy: DecisionPolicy,
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
    pub(crate) root: VaultRoot,
    pub(crate) index: Arc<Index>,
    pub(crate) answers: Answers,
    pub(crate) temporal: Temporal,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) access: Arc<AccessChecks>,
    pub(crate) house: House,
    pub(crate) beat: watch::Receiver<Beat>,
    /// What Temporal said last.
    pub(crate) outside: watch::Receiver<Outside>,
    pub(crate) registration: watch::Receiver<registered::RegistrationStatus>,
    pub(crate) stop: watch::Receiver<bool>,
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
    pub(crate) fn policy(&self) -> DecisionPolicy {
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
        Ok(self.access.caller(headers)?.is_some_and(|caller| caller.scope >= Scope::Read))
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
    local::make(&store)?;
    let access = Arc::new(AccessChecks::new(store, hosts, proxies, encrypted)?);
    let beat = beat::start(root.clone(), Arc::clone(&index), stop.clone());
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
        access: Arc::clone(&access),
        house,
        beat,
        outside,
        registration,
        stop,
        live: Seats::new(LIVE_OF_EACH, LIVE_OF_ALL),
        index_file,
        charts: Default::default(),
    });
    let router = api::router(&app)
        .merge(pages::router(&app))
        .merge(grpc::router(&app)?)
        .fallback(nowhere.layer(from_fn_with_state((Arc::clone(&access), Scope::Read), admission::allowed)))
        .method_not_allowed_fallback(wrong_method)
        // Where a body is read, and so after it is known who sends it.
        .layer(DefaultBodyLimit::max(api::answers::MAX_BODY))
        .layer(from_fn_with_state(access, admission::known_host))
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
    refuse(&method, &uri, Problem { retry_after: Some(STARTS_FOR), ..problem })
}

/// What panics is answered as well, in the face that was asked.
async fn unbroken(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the answer to {} panicked", uri.path().escape_debug());
        let detail = "something went wrong here; the log says more";
        refuse(&method, &uri, Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
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

/// In the face that was asked.
pub(crate) fn refuse(method: &Method, uri: &Uri, problem: Problem) -> Response {
    if grpc::is_asked(uri.path()) {
        return grpc::refusal::response(&problem);
    }
    let to_a_program = uri.path().starts_with("/api/") || matches!(uri.path(), "/healthz" | "/readyz");
    // An address to which something was sent may be none to open.
    let back = (!method.is_safe()).then(|| "/".to_owned());
    if to_a_program { problem.into_response() } else { pages::refusal(&problem, back) }
}

async fn nowhere(method: Method, uri: Uri) -> Response {
    refuse(&method, &uri, Problem::new(StatusCode::NOT_FOUND, "there is nothing here"))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    refuse(&method, &uri, Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method"))
}
