//! A real Temporal dev server for the tests of one process, and a fake one for a broken listing.
//!
//! The server is the child of a shell that waits on a pipe from this process. When this process ends in any way, the
//! pipe closes, and the shell stops the server and removes its files.

use prost::Message;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use temporalio_client::callback_based::{CallbackBasedGrpcService, GrpcSuccessResponse};
use temporalio_client::tonic::Status;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::workflowservice::v1::ListSchedulesResponse;

/// One namespace for each test; the server knows them from its start.
const NAMESPACES: &[&str] = &[
    "life",
    "overtaken",
    "drift",
    "beneath",
    "pause",
    "late",
    "done",
    "phase",
    "budget",
    "empty",
    "wake",
    "foreign",
    "bad",
    "race",
    "routines",
    "claims",
    "another",
    "adopted",
];

const KEEP: &str =
    r#"trap : INT TERM; dir=$1; shift; "$@" </dev/null >"$dir/log" 2>&1 & read -r _; kill $!; wait; rm -rf "$dir""#;

struct DevServer {
    address: String,
    // Keeps the pipe open.
    _shell: Child,
}

static SERVER: LazyLock<DevServer> = LazyLock::new(|| {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap().keep();
    let mut command = Command::new("sh");
    command.args(["-c", KEEP, "sh"]).arg(&dir).arg(cli()).args(["server", "start-dev", "--headless"]);
    command.args(["--ip", "127.0.0.1", "--port", &port.to_string(), "--log-level", "error", "--db-filename"]);
    command.arg(dir.join("temporal.db"));
    for namespace in NAMESPACES {
        command.args(["--namespace", namespace]);
    }
    let shell = command.stdin(Stdio::piped()).spawn().unwrap();
    DevServer { address: format!("127.0.0.1:{port}"), _shell: shell }
});

fn cli() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let default = root.join(".tools/temporal/bin/temporal");
    let cli = std::env::var_os("STEWARD_TEMPORAL_CLI").map_or(default, PathBuf::from);
    assert!(cli.is_file(), "no Temporal CLI at {}: run `make tools` or set STEWARD_TEMPORAL_CLI", cli.display());
    cli
}

/// A client of the dev server, as soon as the server answers.
pub(super) async fn client(namespace: &str) -> Client {
    assert!(NAMESPACES.contains(&namespace), "add {namespace} to the namespaces of the dev server");
    let target = Url::parse(&format!("http://{}", SERVER.address)).unwrap();
    eventually(async || {
        let connection = Connection::connect(ConnectionOptions::new(target.clone()).build()).await.ok()?;
        let client = Client::new(connection, ClientOptions::new(namespace).build()).ok()?;
        let registrar = super::ScheduleRegistrar::new(client.clone(), super::ScheduleSettings::default());
        registrar.known().await.ok().map(|_| client)
    })
    .await
}

/// Runs the Temporal CLI as a person would, and returns its output.
pub(super) fn run_cli(namespace: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(cli());
    command.args(arguments).args(["--address", &SERVER.address, "--namespace", namespace]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Polls until there is a result. A test that waits longer than two minutes has failed, however busy the machine is.
pub(super) async fn eventually<T>(poll: impl AsyncFn() -> Option<T>) -> T {
    let polling = async {
        let mut interval = tokio::time::interval(Duration::from_millis(20));
        loop {
            interval.tick().await;
            if let Some(result) = poll().await {
                return result;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), polling).await.unwrap()
}

/// A client whose server answers listings by page, counted from 0, and refuses a page without an answer.
pub(super) async fn fake_listing(
    answer: impl Fn(usize) -> Option<ListSchedulesResponse> + Send + Sync + 'static,
) -> Client {
    let pages = Arc::new(AtomicUsize::new(0));
    let answer = Arc::new(answer);
    let service = CallbackBasedGrpcService {
        callback: Arc::new(move |request| {
            let (pages, answer) = (pages.clone(), answer.clone());
            Box::pin(async move {
                let proto = match request.rpc.as_str() {
                    "ListSchedules" => answer(pages.fetch_add(1, Ordering::SeqCst))
                        .ok_or_else(|| Status::permission_denied("no more"))?
                        .encode_to_vec(),
                    _ => Vec::new(),
                };
                Ok(GrpcSuccessResponse { headers: Default::default(), proto })
            })
        }),
    };
    let options = ConnectionOptions::new(Url::parse("http://127.0.0.1:1").unwrap())
        .service_override(service)
        .dns_load_balancing(None)
        .build();
    let connection = Connection::connect(options).await.unwrap();
    Client::new(connection, ClientOptions::new("default").build()).unwrap()
}
