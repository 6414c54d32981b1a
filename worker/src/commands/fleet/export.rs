//! The command `steward fleet export`: serves the metrics of all tenants, for Prometheus.
//!
//! A process that is gone cannot report itself, so this one reads the fleet's tables and reports for all. It needs no
//! vault. The tables are read at a scrape; scrapes share a reading, so that they cannot load the database. Without an
//! answer there is no series of a tenant: an old value would look like a good one. Whoever reaches `/metrics` learns the
//! names of tenants, so other machines need a token.

mod render;
mod shared;

use super::{DATABASE, read_database_url};
use crate::cli::fleet::ExportArgs;
use crate::cli::output::{CommandExit, CommandOutput, format_causes};
use crate::commands::up::install_stop_handler;
use crate::runtime::supervisor::report_started;
use crate::telemetry::init_telemetry;
use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::Registry;
use serde_json::json;
use shared::SharedReading;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steward_activities::signals::streams::{StreamError, read_secret};
use steward_activities::steward::clerks::remote::Secret;
use steward_fleet::overview::FleetOverview;
use steward_fleet::{ConnectedRole, FleetError, FleetStore};
use steward_server::access::host::{AllowedHosts, is_reachable_remotely};
use steward_server::access::session::is_equal_constant_time;
use steward_server::http::listen::{BoundListener, TransportSettings};
use steward_server::http::pulse::LoopPulse;
use tokio::sync::{OnceCell, watch};

/// How long a scrape waits for the database: 3 s, below the usual limit of a scrape.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a reading is used again: 1 s.
const REUSE: Duration = Duration::from_secs(1);
/// The fewest characters of a token.
const MIN_TOKEN: usize = 16;
/// The format of the response.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why the metrics are not served, until a person changes something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportRefusal {
    #[error(
        "other machines can reach {0}: give --token-file with a file that holds a token of {MIN_TOKEN} characters or more, or \
         listen on 127.0.0.1"
    )]
    NoToken(SocketAddr),
    #[error("--token-file: {} holds fewer than {MIN_TOKEN} characters: write one with `openssl rand -hex 16`", .0.display())]
    ShortToken(PathBuf),
    #[error("--token-file: {0}")]
    UnusableToken(StreamError),
    #[error("{DATABASE} has {0}: this command needs a role in steward_reader, as in docs/fleet.md, or an operator's")]
    OtherRole(ConnectedRole),
}

pub(super) async fn run(export: &ExportArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (token, url) = (read_token(export)?, read_database_url()?);
    let telemetry = init_telemetry(true)?;
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise)?;
    let source = FleetSource::new(url, telemetry.scraped_metrics());
    source.check_database().await?;
    let bound = BoundListener::bind(Some(export.listen)).await;
    let bound = bound.with_context(|| format!("cannot listen on {}: give --listen a free address", export.listen))?;
    let address = bound.address;
    let server = bound.serve(TransportSettings::default(), stop.clone())?;
    server.replace_router(build_router(Exporter { source, admission: Admission::new(address, token) }));
    report_started(LoopPulse::default(), stop);
    out.print_value(&json!({"metrics": format!("http://{address}/metrics")}), || {
        format!("the fleet's metrics: http://{address}/metrics\nCtrl-C ends it")
    })?;
    server.wait_until_ended().await;
    telemetry.shutdown().await;
    Ok(CommandExit::Ok)
}

/// Reads the token, which an address that other machines can reach must have.
fn read_token(export: &ExportArgs) -> Result<Option<Secret>, ExportRefusal> {
    let Some(file) = &export.token_file else {
        let is_open = is_reachable_remotely(export.listen);
        return if is_open { Err(ExportRefusal::NoToken(export.listen)) } else { Ok(None) };
    };
    let token = read_secret("token", None, Some(file)).map_err(ExportRefusal::UnusableToken)?;
    if token.expose().chars().count() < MIN_TOKEN {
        return Err(ExportRefusal::ShortToken(file.clone()));
    }
    Ok(Some(token))
}

/// Where the numbers come from.
struct FleetSource {
    url: String,
    /// Set once a connection was made whose role may be used.
    store: OnceCell<FleetStore>,
    reading: SharedReading<Option<Arc<FleetOverview>>>,
    /// Why there was no reading last; empty if the database was only away.
    fault: watch::Sender<Option<String>>,
    process: Registry,
}

impl FleetSource {
    fn new(url: String, process: Registry) -> Self {
        let (fault, _) = watch::channel(None);
        Self { url, store: OnceCell::new(), reading: SharedReading::new(REUSE), fault, process }
    }

    /// Fails if the database can never be read with this URL and build. One that is only away is read later.
    async fn check_database(&self) -> anyhow::Result<()> {
        match self.connect().await {
            Ok(_) => Ok(()),
            Err(e) if is_transient(&e) => {
                self.log_fault(Some(&e));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    async fn connect(&self) -> anyhow::Result<&FleetStore> {
        let connect = async {
            let store = FleetStore::connect(&self.url).await?;
            match store.find_connected_role().await? {
                ConnectedRole::Operator | ConnectedRole::Reader => Ok(store),
                role @ ConnectedRole::Tenant(_) => Err(ExportRefusal::OtherRole(role).into()),
            }
        };
        self.store.get_or_try_init(|| connect).await
    }

    /// The state of the fleet; `None` if the database gives no answer.
    async fn read_fleet(&self) -> Option<Arc<FleetOverview>> {
        let read = async {
            let read = async { Ok(self.connect().await?.read_overview().await?) };
            let read: anyhow::Result<FleetOverview> =
                tokio::time::timeout(PATIENCE, read).await.unwrap_or_else(|_| Err(FleetError::Late.into()));
            self.log_fault(read.as_ref().err());
            read.ok().map(Arc::new)
        };
        self.reading.read(read).await
    }

    /// Logs once that the database is away, once that it is back, and each other fault.
    fn log_fault(&self, error: Option<&anyhow::Error>) {
        let fault = error.map(|e| if is_transient(e) { String::new() } else { e.to_string() });
        let is_new = self.fault.send_if_modified(|known| std::mem::replace(known, fault.clone()) != fault);
        match error {
            Some(error) if is_new => tracing::warn!("no metrics of tenants are served: {}", format_causes(error)),
            None if is_new => tracing::info!("the fleet's database is back"),
            Some(_) | None => {}
        }
    }
}

/// Whether the same call may succeed later, without a person's help.
fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(FleetError::is_transient)
}

/// Who gets the metrics.
struct Admission {
    hosts: AllowedHosts,
    token: Option<Secret>,
}

impl Admission {
    fn new(address: SocketAddr, token: Option<Secret>) -> Self {
        Self { hosts: AllowedHosts::from_address(address, &[]), token }
    }

    /// The status of a refusal. Without a token only this machine's own names are answered, because a page in a browser
    /// here could send a request under another name.
    fn find_refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<StatusCode> {
        let Some(token) = &self.token else {
            return self.hosts.match_host(uri, headers).is_none().then_some(StatusCode::MISDIRECTED_REQUEST);
        };
        let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
        let is_right = sent.is_some_and(|(scheme, sent)| {
            scheme.eq_ignore_ascii_case("bearer") && is_equal_constant_time(sent.trim(), token.expose())
        });
        (!is_right).then_some(StatusCode::UNAUTHORIZED)
    }
}

/// What the requests share.
struct Exporter {
    source: FleetSource,
    admission: Admission,
}

fn build_router(exporter: Exporter) -> Router {
    let metrics = get(respond_metrics).with_state(Arc::new(exporter));
    Router::new().route("/healthz", get(async || "ok")).route("/metrics", metrics)
}

async fn respond_metrics(State(exporter): State<Arc<Exporter>>, uri: Uri, headers: HeaderMap) -> Response {
    match exporter.admission.find_refusal(&uri, &headers) {
        Some(StatusCode::UNAUTHORIZED) => {
            let text = "send the bearer token of --token-file\n";
            return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], text).into_response();
        }
        Some(status) => return (status, "this host name is not answered\n").into_response(),
        None => {}
    }
    let fleet = exporter.source.read_fleet().await;
    match render::render_metrics(fleet.as_deref(), exporter.source.process.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(e) => {
            tracing::error!("the metrics cannot be written: {e}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_address_that_others_reach_needs_a_token_that_only_its_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |listen: &str, token_file: Option<&PathBuf>| {
            read_token(&ExportArgs { listen: listen.parse().unwrap(), token_file: token_file.cloned() })
        };
        let write = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        };
        assert!(read("127.0.0.1:0", None).unwrap().is_none());
        for listen in ["0.0.0.0:0", "10.0.0.5:8430", "[::]:0"] {
            let refused = read(listen, None).unwrap_err().to_string();
            assert!(refused.contains("--token-file") && refused.contains(listen), "{refused}");
        }
        write("0123456789abcdef\n", 0o600);
        assert_eq!(read("0.0.0.0:0", Some(&file)).unwrap().unwrap().expose(), "0123456789abcdef");
        write("0123456789abcdef\n", 0o640);
        assert!(read("127.0.0.1:0", Some(&file)).unwrap_err().to_string().contains("chmod 600"));
        write(" 0123456789abcde \n", 0o600);
        let refused = read("127.0.0.1:0", Some(&file)).unwrap_err().to_string();
        assert!(refused.contains("16 characters") && !refused.contains("0123"), "{refused}");
    }

    #[test]
    fn a_request_needs_the_token_or_else_the_name_of_this_machine() {
        let address: SocketAddr = "127.0.0.1:8430".parse().unwrap();
        let uri = Uri::from_static("/metrics");
        let headers = |name: header::HeaderName, value: &str| HeaderMap::from_iter([(name, value.parse().unwrap())]);
        let open = Admission::new(address, None);
        let refusal = |host: &str| open.find_refusal(&uri, &headers(header::HOST, host));
        assert_eq!(refusal("127.0.0.1:8430"), None);
        assert_eq!(refusal("evil.example:8430"), Some(StatusCode::MISDIRECTED_REQUEST));
        let closed = Admission::new(address, Secret::new("0123456789abcdef"));
        let refusal = |sent: &str| closed.find_refusal(&uri, &headers(header::AUTHORIZATION, sent));
        assert_eq!(refusal("Bearer 0123456789abcdef"), None);
        for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer 0"] {
            assert_eq!(refusal(wrong), Some(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert_eq!(closed.find_refusal(&uri, &HeaderMap::new()), Some(StatusCode::UNAUTHORIZED));
    }
}
