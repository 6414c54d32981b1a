//! The gRPC face: the services of `steward.v1`, with health and reflection, beside the pages on one port.
//!
//! One service a file, with the values it is made of; what becomes a message is in [`values`], [`words`] and [`record`], what a
//! request names in [`asked`].
//! Facts are those that every face shows. Tokens alone are taken, no session; what is refused is told in the trailers
//! ([`refusal`]), also before a service is reached.

mod actions;
mod asked;
mod events;
mod guard;
mod matters;
mod modes;
mod page;
mod record;
pub(crate) mod refusal;
mod schedules;
mod scope;
mod signals;
mod status;
mod streams;
mod tasks;
mod values;
mod words;

pub use asked::proposed;
pub use record::change;

use crate::access::Caller;
use crate::access::admission::Met;
use crate::app::{App, Shared};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use refusal::refused;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use steward_domain::path::{RecordKind, RecordPath};
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
use tonic::server::NamedService;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tower_service::Service;

/// How the paths of the contract begin.
const OURS: &str = "/steward.v1.";
/// How the paths of health and reflection begin.
const COMMON: &str = "/grpc.";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Longest message that is read, in bytes: less than a body may have, so that a longer one is refused by name.
const LONGEST: usize = 60 * 1024;

/// What every service is made of.
#[derive(Clone)]
struct Face(Shared);

impl Deref for Face {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}

/// The routes of all services.
///
/// # Errors
/// When the descriptors of the contract cannot be read.
pub(crate) fn router(app: &Shared) -> Result<Router<Shared>, tonic_reflection::server::Error> {
    let face = || Face(Arc::clone(app));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(steward_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut names = Vec::new();
    let mut router = Router::new();
    macro_rules! serve {
        ($($server:ident),+) => {$(
            let service = $server::new(face()).max_decoding_message_size(LONGEST);
            names.push(name_of(&service));
            router = with(router, service);
        )+};
    }
    serve!(ActionsServiceServer, MattersServiceServer, TasksServiceServer, SignalsServiceServer, ModesServiceServer);
    serve!(GuardServiceServer, StreamsServiceServer, SchedulesServiceServer, StatusServiceServer, EventsServiceServer);
    tokio::spawn(async move {
        for name in names {
            reporter.set_service_status(name, ServingStatus::Serving).await;
        }
    });
    let reflection = reflection.max_decoding_message_size(LONGEST);
    let router = with(with(router, reflection), health.max_decoding_message_size(LONGEST));
    Ok(router.route_layer(from_fn_with_state(Arc::clone(app), allowed)))
}

fn name_of<S: NamedService>(_: &S) -> &'static str {
    S::NAME
}

fn with<S>(router: Router<Shared>, service: S) -> Router<Shared>
where
    S: Service<Request<Body>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    router.route_service(&format!("/{}/{{*rpc}}", S::NAME), service)
}

/// Whether a request to this path is one of these.
pub(crate) fn is_asked(path: &str) -> bool {
    path.starts_with(OURS) || path.starts_with(COMMON)
}

async fn allowed(State(app): State<Shared>, mut request: Request<Body>, next: Next) -> Response {
    let path = request.uri().path();
    if path.starts_with(HEALTH) {
        return match Met::of(request.extensions()).and_then(|met| met.unhurried(&app.access)) {
            Ok(()) => next.run(request).await,
            Err(problem) => refusal::response(&problem),
        };
    }
    let scope = scope::of(path.rsplit('/').next().unwrap_or_default());
    // A page of somebody else's can make a browser send a cookie, but no token.
    request.headers_mut().remove(header::COOKIE);
    match app.access.admit(scope, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => refusal::response(&problem),
    }
}

/// Who asks.
fn by<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| refused(Code::Internal, 500, "it cannot be told who asks"))
}

/// How the request reached us.
fn met<T>(request: &tonic::Request<T>) -> Result<Met, Status> {
    Met::of(request.extensions()).cloned().map_err(|problem| refusal::status(&problem))
}

/// A path of a record of this kind.
fn path(kind: RecordKind, field: &str, text: &str) -> Result<RecordPath, Status> {
    let path = RecordPath::parse(text).ok().filter(|path| path.kind() == kind);
    let folder = kind.folder();
    path.ok_or_else(|| wrong(&format!("`{field}` is not a path like {folder}/name.md")))
}

/// A request that cannot be meant so.
fn wrong(message: &str) -> Status {
    refused(Code::InvalidArgument, 400, message)
}

/// What is not there, whoever asks.
fn nothing(message: &str) -> Status {
    refused(Code::NotFound, 404, message)
}
