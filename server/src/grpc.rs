//! The gRPC interface: the services of `steward.v1`, with health and reflection, on the same port as the pages.
//!
//! Each service has its own file. `values`, `enums` and `record` encode values as messages; `request` and `page` decode
//! requests. The values are the [`crate::views`] that every interface shows. Only tokens are accepted, no sessions. A
//! refusal has its details in the trailers (`refusal`), even before a request reaches a service.

mod actions;
mod enums;
mod events;
mod guard;
mod matters;
mod modes;
mod page;
mod record;
pub(crate) mod refusal;
mod request;
mod schedules;
mod scope;
mod signals;
mod status;
mod streams;
mod tasks;
mod values;
mod wikis;

pub use record::encode_change;
pub use request::decode_change;

use crate::access::AuthenticatedCaller;
use crate::access::admission::RequestOrigin;
use crate::http::app::{AppState, SharedAppState};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use refusal::build_status;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_proto::v1::actions_service_server::ActionsServiceServer;
use steward_proto::v1::events_service_server::EventsServiceServer;
use steward_proto::v1::guard_service_server::GuardServiceServer;
use steward_proto::v1::matters_service_server::MattersServiceServer;
use steward_proto::v1::modes_service_server::ModesServiceServer;
use steward_proto::v1::schedules_service_server::SchedulesServiceServer;
use steward_proto::v1::signals_service_server::SignalsServiceServer;
use steward_proto::v1::status_service_server::StatusServiceServer;
use steward_proto::v1::streams_service_server::StreamsServiceServer;
use steward_proto::v1::tasks_service_server::TasksServiceServer;
use steward_proto::v1::wikis_service_server::WikisServiceServer;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tower_service::Service;

/// The prefix of the contract's paths.
const CONTRACT_PREFIX: &str = "/steward.v1.";
/// The prefix of the paths of health and reflection.
const COMMON_PREFIX: &str = "/grpc.";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Longest message that is read, in bytes. It is less than the limit of a body, so that gRPC itself refuses a longer
/// one.
const LONGEST: usize = 60 * 1024;

/// The implementation of every service, with the shared state.
#[derive(Clone)]
struct GrpcService(SharedAppState);

impl Deref for GrpcService {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

/// Builds the routes of all services.
///
/// # Errors
/// When the descriptors of the contract cannot be read.
pub(crate) fn build_router(app: &SharedAppState) -> Result<Router<SharedAppState>, tonic_reflection::server::Error> {
    let implementation = || GrpcService(Arc::clone(app));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(steward_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut names = Vec::new();
    let mut router = Router::new();
    macro_rules! serve {
        ($($server:ident),+) => {$(
            let service = $server::new(implementation()).max_decoding_message_size(LONGEST);
            names.push(service_name(&service));
            router = add_service(router, service);
        )+};
    }
    serve!(ActionsServiceServer, MattersServiceServer, TasksServiceServer, SignalsServiceServer, ModesServiceServer);
    serve!(GuardServiceServer, StreamsServiceServer, SchedulesServiceServer, StatusServiceServer, EventsServiceServer);
    serve!(WikisServiceServer);
    tokio::spawn(async move {
        for name in names {
            reporter.set_service_status(name, ServingStatus::Serving).await;
        }
    });
    let reflection = reflection.max_decoding_message_size(LONGEST);
    let router = add_service(add_service(router, reflection), health.max_decoding_message_size(LONGEST));
    Ok(router.route_layer(from_fn_with_state(Arc::clone(app), authorize_rpc)))
}

fn service_name<S: NamedService>(_: &S) -> &'static str {
    S::NAME
}

fn add_service<S>(router: Router<SharedAppState>, service: S) -> Router<SharedAppState>
where
    S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    router.route_service(&format!("/{}/{{*rpc}}", S::NAME), service)
}

/// Whether this is a path of a gRPC service.
pub(crate) fn is_grpc_path(path: &str) -> bool {
    path.starts_with(CONTRACT_PREFIX) || path.starts_with(COMMON_PREFIX)
}

async fn authorize_rpc(State(app): State<SharedAppState>, mut request: Request<Body>, next: Next) -> Response {
    let path = request.uri().path();
    if path.starts_with(HEALTH) {
        return match RequestOrigin::from_extensions(request.extensions())
            .and_then(|origin| origin.check_open_rate(&app.access))
        {
            Ok(()) => next.run(request).await,
            Err(problem) => refusal::build_response(&problem),
        };
    }
    let scope = scope::required_scope(path.rsplit('/').next().unwrap_or_default());
    // gRPC accepts only tokens. No browser sends a token by itself, so no origin has to be checked. A foreign page can
    // make a browser send a cookie, so the cookie is removed.
    request.headers_mut().remove(header::COOKIE);
    match app.access.admit_request(scope, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => refusal::build_response(&problem),
    }
}

/// The caller of a request.
fn require_caller<T>(request: &tonic::Request<T>) -> Result<AuthenticatedCaller, Status> {
    let caller = request.extensions().get::<AuthenticatedCaller>().cloned();
    caller.ok_or_else(|| build_status(Code::Internal, 500, "the caller cannot be identified"))
}

/// How a request reached this server.
fn require_origin<T>(request: &tonic::Request<T>) -> Result<RequestOrigin, Status> {
    RequestOrigin::from_extensions(request.extensions())
        .cloned()
        .map_err(|problem| refusal::status_from_problem(&problem))
}

/// Parses the path of a record of this kind.
fn parse_record_path(kind: RecordKind, field: &str, text: &str) -> Result<RecordPath, Status> {
    let is_fitting = |path: &RecordPath| path.scanned_kind().map_or(kind.is_note(), |scanned| scanned == kind);
    let path = RecordPath::parse(text).ok().filter(is_fitting);
    let folder = kind.folder();
    path.ok_or_else(|| invalid_argument(&format!("`{field}` is not a path like {folder}/name.md")))
}

/// The refusal of an invalid request.
fn invalid_argument(message: &str) -> Status {
    build_status(Code::InvalidArgument, 400, message)
}

/// The refusal of a request for something that does not exist.
fn not_found(message: &str) -> Status {
    build_status(Code::NotFound, 404, message)
}
