//! Starts a real Temporal server for one test: in memory, on a free port, ended with the test.
//!
//! It is only for tests of this crate. `steward up` must not use it: that command starts a server with a database.
//! Tests get a client and call the server as the product does.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};

/// How often a start is tried: another process may take the port meanwhile.
const TRIES: usize = 5;

/// A running dev server.
pub(crate) struct DevServer {
    child: Child,
    // Kept open: the server ends when it cannot write to it.
    output: BufReader<ChildStdout>,
    /// `127.0.0.1:<port>`.
    pub(crate) address: String,
}

impl DevServer {
    /// Starts a server and waits until it reports that it serves.
    ///
    /// If another process takes one of its ports first, another server is started.
    pub(crate) fn start() -> Self {
        (0..TRIES).find_map(|_| Self::try_start()).expect("no dev server started")
    }

    fn try_start() -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let port = address.rsplit(':').next().unwrap();
        let mut child = Command::new(cli())
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error", "--port", port])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, output, address };
        let ready =
            server.output.by_ref().lines().map_while(Result::ok).any(|line| line.starts_with("Temporal Server:"));
        ready.then_some(server)
    }

    /// Connects a client to the server.
    pub(crate) async fn client(&self, options: ClientOptions) -> Client {
        connect(&self.address, options).await
    }

    /// The whole history of a workflow, as the CLI prints it.
    pub(crate) fn history(&self, workflow_id: &str) -> String {
        let output = Command::new(cli())
            .args(["workflow", "show", "-o", "json", "--address", &self.address, "-w", workflow_id])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Connects to the server at an address.
pub(crate) async fn connect(address: &str, options: ClientOptions) -> Client {
    let url = Url::parse(&format!("http://{address}")).unwrap();
    let connection = Connection::connect(ConnectionOptions::new(url).build()).await.unwrap();
    Client::new(connection, options).unwrap()
}

impl Drop for DevServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `STEWARD_TEMPORAL_CLI`, or the one that the Makefile fetches.
fn cli() -> PathBuf {
    let fetched = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/temporal/bin/temporal"));
    let cli = std::env::var_os("STEWARD_TEMPORAL_CLI").map_or_else(fetched, PathBuf::from);
    assert!(cli.is_file(), "no Temporal CLI at {}: run `make tools`, or set STEWARD_TEMPORAL_CLI", cli.display());
    cli
}
