//! Builds the router of all interfaces, with the layers that every request passes.
//!
//! The layers are, from the outside: security headers, panic handling, Host header, authentication, rate limit, scope.
//! A refusal has the form of the interface: JSON below `/api/`, a gRPC status below a service, a page elsewhere. An
//! unknown caller gets the same response for every address, so it does not reveal which ones exist. A known caller gets
//! a 404.

use crate::access::admission::{self, AccessChecks};
use crate::access::connection_limit::{ConnectionLimiter, ConnectionPermit};
use crate::access::{AccessError, AccessScope, AuthenticatedCaller, SecretStore};
use crate::api;
use crate::api::problem::ProblemDetails;
use crate::grpc;
use crate::http::dependencies::{AppDependencies, MappingCheck};
use crate::http::holder::VaultHolder;
use crate::http::pulse::LoopPulse;
use crate::http::settings::DashboardSettings;
use crate::mcp::attachments::AttachmentsByWiki;
use crate::mcp::{self, ConnectHolder, McpVault};
use crate::pages;
use crate::temporal::client::TemporalQueryClient;
use crate::temporal::health::{self, TemporalHealth, registered};
use crate::temporal::resolve::ResolutionClient;
use crate::temporal::service_pause::find_service_pause;
use crate::views::VaultViews;
use crate::views::revision::{self, LiveRevision};
use crate::views::senders::SendersCache;
use crate::views::wiki::WikiIndex;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use prometheus::Registry;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::guard::GuardStatus;
use steward_vault::index::{Index, IndexError, MoveRefusal};
use steward_vault::steward::guard::Ledger;
use tokio::sync::watch;

/// Most live streams of one caller. Each open tab of the dashboard is one, and so is each `WatchEvents`.
const LIVE_PER_CALLER: usize = 32;
/// Most live streams of all callers.
const LIVE_IN_TOTAL: usize = 256;
/// When to try again to open a live stream, in seconds.
const LIVE_RETRY_AFTER: u32 = 30;
/// How often a live stream checks whether its caller may still read: 5 s. It also checks at every event.
pub(crate) const LIVE_RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The state that every request handler can reach.
pub(crate) struct AppState {
    /// What the interfaces may read of the vault.
    pub(crate) views: VaultViews,
    /// Only for the pauses of streams and for what people say about notes that moved. An interface writes nothing else
    /// into the index.
    index: Arc<Index>,
    pub(crate) temporal: TemporalQueryClient,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) access: Arc<AccessChecks>,
    /// The settings that this process started with.
    own_settings: DashboardSettings,
    pub(crate) mapping_check: MappingCheck,
    pub(crate) revision: watch::Receiver<LiveRevision>,
    /// What is known of Temporal's health.
    pub(crate) temporal_health: watch::Receiver<TemporalHealth>,
    pub(crate) registration: watch::Receiver<registered::RegistrationStatus>,
    pub(crate) pulse: LoopPulse,
    pub(crate) process_metrics: Registry,
    pub(crate) certificate_end: watch::Receiver<Option<DateTime<Utc>>>,
    pub(crate) stop: watch::Receiver<bool>,
    live: ConnectionLimiter<String>,
    /// The senders as they were judged last.
    pub(crate) senders: SendersCache,
    /// The last counts that the charts were drawn from.
    pub(crate) charts: pages::charts::ChartCountsCache,
}

/// The form in which handlers take the state.
pub(crate) type SharedAppState = Arc<AppState>;

impl AppState {
    /// Reads the settings in force: those of the process that holds the vault now. It may have started after this one.
    pub(crate) fn read_settings(&self) -> DashboardSettings {
        let own = self.own_settings.clone();
        match self.views.holder() {
            VaultHolder::Runs(record) => own.with_holder(record, &self.temporal.client().options().namespace),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => own,
        }
    }

    /// Pauses or resumes a stream.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn set_stream_pause(&self, stream: &str, paused: bool) -> Result<(), IndexError> {
        self.index.signals().update_stream_pause(stream, paused).await
    }

    /// Puts off what waits for a person about a note.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn snooze_note(
        &self,
        note: &RecordPath,
        until: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<(), IndexError> {
        self.index.cursors().snooze_note(note, until, now).await
    }

    /// Ends the snooze of a note.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn end_snooze(&self, note: &RecordPath) -> Result<(), IndexError> {
        self.index.cursors().end_snooze(note).await
    }

    /// Keeps what a person says about a note that is gone: its new path, or `None` if it was deleted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn keep_move_statement(
        &self,
        old: &RecordPath,
        new: Option<&RecordPath>,
        by: &str,
    ) -> Result<Result<(), MoveRefusal>, IndexError> {
        match new {
            Some(new) => self.index.say_moved(self.views.root(), old, new, by).await,
            None if self.index.forget_lost_note(old).await? => Ok(Ok(())),
            None => Ok(Err(MoveRefusal::NotMissed { note: old.clone() })),
        }
    }

    /// Waits until what a person said about this note is recorded; `false` if that takes too long.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub(crate) async fn wait_for_said_move(&self, old: &RecordPath) -> Result<bool, IndexError> {
        self.index.wait_for_said_move(old).await
    }

    /// Creates a client that requests resolutions from the process that holds the vault now.
    pub(crate) fn resolution_client(&self) -> ResolutionClient {
        let pause = find_service_pause(self.views.root(), &self.views.holder());
        let names = self.temporal.names().clone();
        ResolutionClient::new(self.temporal.client().clone(), names, &self.read_settings().task_queue, pause)
    }

    /// Reads the state of the rate guard, with the caps in force; `None` if its ledger could not be opened.
    pub(crate) async fn read_guard_status(&self) -> Option<GuardStatus> {
        let ledger = self.ledger.as_ref()?;
        Some(ledger.status_with_caps(&self.read_settings().caps, Utc::now()).await)
    }

    /// Takes a permit for one live stream; dropping it returns it.
    ///
    /// # Errors
    /// 429 if the caller, or all callers, have too many live streams.
    pub(crate) fn acquire_live_permit(
        &self,
        caller: &AuthenticatedCaller,
    ) -> Result<ConnectionPermit<String>, ProblemDetails> {
        self.live.acquire(caller.name.clone(), false).ok_or_else(|| ProblemDetails {
            retry_after: Some(LIVE_RETRY_AFTER),
            ..ProblemDetails::new(
                StatusCode::TOO_MANY_REQUESTS,
                format!(
                    "too many live streams ({LIVE_PER_CALLER} per caller, {LIVE_IN_TOTAL} in total): close some tabs"
                ),
            )
        })
    }

    /// Whether the caller of these headers may still read. A token may have been revoked, or a session may have ended.
    pub(crate) fn can_still_read(&self, headers: &HeaderMap) -> Result<bool, AccessError> {
        Ok(self.access.identify_caller(headers)?.is_some_and(|caller| caller.scope >= AccessScope::Read))
    }
}

/// Refuses to undo a ceiling for a caller who may not set one: the undo may let a sender act.
///
/// # Errors
/// 403.
pub(crate) fn check_may_resolve(
    scope: AccessScope,
    resolution: ResolutionKind,
    resolved: ActionKind,
) -> Result<(), ProblemDetails> {
    if resolution == ResolutionKind::Undo && resolved == ActionKind::CeilingSet && scope < AccessScope::Operate {
        let detail = "this record says how far a sender may go: only a caller with the scope `operate` may undo it";
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(())
}

/// Why the router could not be built.
#[derive(Debug, thiserror::Error)]
pub enum RouterBuildError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the descriptors of the gRPC contract cannot be read: {0}")]
    Contract(#[from] tonic_reflection::server::Error),
}

/// Builds the router of everything that is served.
///
/// # Errors
/// [`RouterBuildError`] when the key of sessions can be neither read nor created.
pub fn build_router(dependencies: AppDependencies) -> Result<Router, RouterBuildError> {
    let AppDependencies {
        root,
        index,
        client,
        names,
        ledger,
        store,
        hosts,
        proxies,
        encrypted,
        certificate_end,
        settings,
        assistants,
        mapping_check,
        pulse,
        process_metrics,
        stop,
    } = dependencies;
    let secrets = store.clone();
    let allowed_hosts = hosts.clone();
    let access = Arc::new(AccessChecks::new(store, hosts, proxies, encrypted)?);
    let views = VaultViews::new(root, Index::clone(&index));
    let revision = revision::spawn_change_notifier(views.clone(), stop.clone());
    let temporal = TemporalQueryClient::new(client, names);
    let registration = registered::spawn_registration_watcher(
        registered::ExpectedSchedules::new(temporal.clone(), views.clone()),
        stop.clone(),
    );
    let temporal_health = health::spawn_health_watcher(temporal.clone(), stop.clone());
    let app = Arc::new(AppState {
        views,
        index,
        temporal,
        ledger,
        access: Arc::clone(&access),
        own_settings: settings,
        mapping_check,
        pulse,
        process_metrics,
        certificate_end,
        revision,
        temporal_health,
        registration,
        stop,
        live: ConnectionLimiter::new(LIVE_PER_CALLER, LIVE_IN_TOTAL),
        senders: SendersCache::default(),
        charts: Default::default(),
    });
    let assistants = match assistants {
        Some(it) => mcp::http::build_router(&app, open_assistants_vault(&app, secrets, it)?, &allowed_hosts),
        None => Router::new(),
    };
    let router = api::build_router(&app)
        .merge(assistants)
        .merge(pages::build_router(&app))
        .merge(grpc::build_router(&app)?)
        .fallback(
            respond_not_found
                .layer(from_fn_with_state(Arc::clone(&app), pages::frame_refusals))
                .layer(from_fn_with_state((Arc::clone(&access), AccessScope::Read), admission::authorize_request)),
        )
        .method_not_allowed_fallback(respond_method_not_allowed)
        // The limit applies where a handler reads the body, so after the caller is authenticated.
        .layer(DefaultBodyLimit::max(api::resolutions::MAX_BODY))
        .layer(from_fn_with_state(access, admission::check_host))
        .layer(from_fn(catch_panics))
        .layer(map_response(add_security_headers))
        .with_state(app);
    Ok(router)
}

/// The vault as assistants see it.
fn open_assistants_vault(
    app: &SharedAppState,
    secrets: SecretStore,
    attachments: AttachmentsByWiki,
) -> Result<Arc<McpVault>, AccessError> {
    let holder = Arc::clone(app);
    let connect = move || async move { Ok(holder.resolution_client()) };
    let connect: ConnectHolder = Arc::new(move || connect.clone()().boxed());
    let index = WikiIndex::opened(Index::clone(&app.index));
    let vault = McpVault::new(app.views.root().clone(), secrets, index, connect)?;
    Ok(Arc::new(vault.with_app(Arc::clone(app)).with_attachments(attachments)))
}

/// Turns a panic of a handler into a 500 in the form of the interface.
async fn catch_panics(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the handler of {} panicked", uri.path().escape_debug());
        let detail = "internal error; the log says more";
        respond_with_problem(&method, &uri, ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
    })
}

/// Adds the security headers to every response.
pub(super) async fn add_security_headers(mut response: Response) -> Response {
    const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
        connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // With `no-referrer`, a browser would send `null` as the origin of its own forms.
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

/// Renders a refusal in the form of the interface that the path belongs to.
pub(crate) fn respond_with_problem(method: &Method, uri: &Uri, problem: ProblemDetails) -> Response {
    if grpc::is_grpc_path(uri.path()) {
        return grpc::refusal::build_response(&problem);
    }
    let is_api = mcp::http::is_mcp_path(uri.path())
        || uri.path().starts_with("/api/")
        || uri.path() == "/metrics"
        || api::health::is_health_check(uri.path());
    // A page cannot link back to an address that only accepts a form.
    let back = (!method.is_safe()).then(|| "/".to_owned());
    if is_api { problem.into_response() } else { pages::render_refusal(&problem, back) }
}

/// The text of a 404 for an address that no interface has.
pub(crate) const NO_SUCH_PAGE: &str = "There is no page at this address. A note may have been renamed or removed.";

async fn respond_not_found(method: Method, uri: Uri) -> Response {
    respond_with_problem(&method, &uri, ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE))
}

async fn respond_method_not_allowed(method: Method, uri: Uri) -> Response {
    respond_with_problem(
        &method,
        &uri,
        ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not support the method"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_operator_undoes_a_ceiling() {
        for scope in [AccessScope::Read, AccessScope::Act, AccessScope::Operate] {
            let undo = check_may_resolve(scope, ResolutionKind::Undo, ActionKind::CeilingSet);
            let status = undo.err().map(|refused| refused.status);
            assert_eq!(status, (scope != AccessScope::Operate).then_some(StatusCode::FORBIDDEN.as_u16()), "{scope:?}");
            assert!(check_may_resolve(scope, ResolutionKind::Undo, ActionKind::Confirmed).is_ok());
        }
    }
}
