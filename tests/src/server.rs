//! The one Temporal development server of a test run, with a namespace for every test.

use crate::{run, wait};
use std::process::{Command, Stdio};
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::workflowservice::v1::RegisterNamespaceRequest;
use tokio::sync::OnceCell;

static ADDRESS: OnceCell<String> = OnceCell::const_new();

/// The address of the server; the first call starts it.
pub async fn address() -> &'static str {
    ADDRESS.get_or_init(start).await
}

async fn start() -> String {
    let port = run::free_port();
    let address = format!("127.0.0.1:{port}");
    let log = std::fs::File::create(run::folder().join("temporal.log")).unwrap();
    let server = Command::new(run::temporal_cli())
        .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "warn"])
        .args(["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=OFF"])
        .args(["--port", &port.to_string(), "--db-filename"])
        .arg(run::folder().join("temporal.db"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("the Temporal CLI");
    run::note(server.id());
    // The server ends with the run; see `run`.
    std::mem::forget(server);
    wait::until("the Temporal server to answer", async || {
        let connection = connect(&address).await?;
        register(&connection, "probe").await.ok()
    })
    .await;
    address
}

async fn connect(address: &str) -> Option<Connection> {
    let url = Url::parse(&format!("http://{address}")).unwrap();
    Connection::connect(ConnectionOptions::new(url).build()).await.ok()
}

async fn register(connection: &Connection, namespace: &str) -> Result<(), temporalio_client::tonic::Status> {
    let request = RegisterNamespaceRequest {
        namespace: namespace.to_owned(),
        workflow_execution_retention_period: Some(std::time::Duration::from_secs(86_400).try_into().unwrap()),
        ..RegisterNamespaceRequest::default()
    };
    connection.workflow_service().register_namespace(request.into_request()).await.map(drop)
}

/// A client of a new namespace.
pub async fn namespace(name: &str) -> Client {
    let connection = connect(address().await).await.expect("the test server");
    register(&connection, name).await.unwrap();
    open_namespace(name).await
}

/// A client of a namespace that exists.
pub async fn open_namespace(name: &str) -> Client {
    let connection = connect(address().await).await.expect("the test server");
    Client::new(connection, ClientOptions::new(name).build()).unwrap()
}
