//! Temporal development servers, each for some tests of a run, with a namespace for every test.

use crate::{run, wait};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::workflowservice::v1::RegisterNamespaceRequest;
use tokio::sync::Mutex;

/// How many worlds share one server. Their schedules fire on after a test has ended, so a server that served hundreds would be
/// busy with them alone.
const MAX_SHARES: usize = 24;

/// The server that new worlds share, and how many do.
static CURRENT: Mutex<Option<(Arc<TestServer>, usize)>> = Mutex::const_new(None);

/// A Temporal development server. It ends with the last world that holds it.
pub struct TestServer {
    address: String,
    process: Child,
    database: PathBuf,
}

impl TestServer {
    /// A server, which is shared with some other worlds of this test run.
    pub async fn share() -> Arc<Self> {
        let mut current = CURRENT.lock().await;
        match &mut *current {
            Some((server, shares)) if *shares < MAX_SHARES => {
                *shares += 1;
                Arc::clone(server)
            }
            _ => {
                let server = Arc::new(start().await);
                *current = Some((Arc::clone(&server), 1));
                server
            }
        }
    }

    /// Its host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client of a new namespace.
    pub async fn namespace(&self, name: &str) -> Client {
        let connection = connect(&self.address).await.expect("the test server");
        register(&connection, name).await.unwrap();
        self.open_namespace(name).await
    }

    /// A client of a namespace that exists.
    pub async fn open_namespace(&self, name: &str) -> Client {
        let connection = connect(&self.address).await.expect("the test server");
        Client::new(connection, ClientOptions::new(name).build()).unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        run::strike(self.process.id());
        for suffix in ["", "-shm", "-wal"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", self.database.display()));
        }
    }
}

async fn start() -> TestServer {
    let port = run::free_port();
    let address = format!("127.0.0.1:{port}");
    let (log, database) =
        (run::folder().join(format!("temporal-{port}.log")), run::folder().join(format!("temporal-{port}.db")));
    let log = std::fs::File::create(log).unwrap();
    let process = Command::new(run::temporal_cli())
        .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "warn"])
        .args(["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=OFF"])
        .args(["--port", &port.to_string(), "--db-filename"])
        .arg(&database)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("the Temporal CLI");
    run::note(process.id());
    let server = TestServer { address, process, database };
    wait::until("the Temporal server to answer", async || {
        let connection = connect(&server.address).await?;
        register(&connection, "probe").await.ok()
    })
    .await;
    server
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
