//! The Temporal server: the one that is set, the one that `steward up` runs, or none.
//!
//! With `TEMPORAL_ADDRESS` (or a Temporal profile) that server is used and none is started.
//! Otherwise `steward up` starts the CLI's development server on loopback with its database in the
//! state folder, and leaves a note beside it by which the other commands find it.

use crate::config::Config;
pub(crate) mod clock;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use steward_domain::mode::Policy;
use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression, NamespacedClient};
use temporalio_sdk::plugins::SimplePlugin;
use tokio::process::{Child, Command};

/// How long a server that was just started may take to answer: 30 s.
const START_PATIENCE: Duration = Duration::from_secs(30);
const NOTE: &str = "up.json";

/// Where the server of a running `steward up` is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UpNote {
    pub(crate) address: String,
    pub(crate) ui: Option<String>,
    pub(crate) pid: u32,
    pub(crate) server_pid: Option<u32>,
    pub(crate) task_queue: String,
    /// The policy of the process that runs, which may differ from a command's environment.
    pub(crate) policy: Policy,
}

impl UpNote {
    pub(crate) fn read(state_dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(state_dir.join(NOTE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    pub(crate) fn write(&self, state_dir: &Path) -> anyhow::Result<()> {
        let path = state_dir.join(NOTE);
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    }

    pub(crate) fn remove(state_dir: &Path) {
        // Left behind it would only name a server that no longer answers.
        let _ = std::fs::remove_file(state_dir.join(NOTE));
    }
}

/// Whether the environment names a server.
pub(crate) fn is_named() -> bool {
    ["TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"].iter().any(|v| std::env::var_os(v).is_some())
}

/// Connects to the server that is set or that `steward up` runs.
///
/// # Errors
/// When there is none, or it does not answer; the message names the address and the mend.
pub(crate) async fn connect(config: &Config, plugins: Vec<SimplePlugin>) -> anyhow::Result<Client> {
    let note = config.state_dir().ok().and_then(|dir| UpNote::read(&dir));
    let ((mut connection, client), setting) = match (is_named(), note) {
        (false, Some(note)) => {
            (options_for(&note.address)?, "TEMPORAL_ADDRESS to another; `steward up` left this address")
        }
        (true, _) => (from_environment()?, "TEMPORAL_ADDRESS (or your Temporal profile) to where it is"),
        (false, None) => bail!(
            "no Temporal server is set and no `steward up` runs for this vault: start `steward up`, or set TEMPORAL_ADDRESS"
        ),
    };
    let client = ClientOptions::new(client.namespace).plugins(plugins).build();
    let address = connection.target.to_string();
    if matches!(connection.target.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
        // Compressing for the same machine only costs both ends processor time.
        connection.grpc_compression = GrpcCompression::None;
    }
    let connection = tokio::time::timeout(Duration::from_secs(15), Connection::connect(connection))
        .await
        .map_err(anyhow::Error::from)
        .and_then(|connected| Ok(connected?))
        .with_context(|| format!("the Temporal server at {address} does not answer: start it, or set {setting}"))?;
    Ok(Client::new(connection, client)?)
}

fn from_environment() -> anyhow::Result<(ConnectionOptions, ClientOptions)> {
    ClientOptions::load_from_config(LoadClientConfigProfileOptions::default())
        .map_err(|e| anyhow::anyhow!("failed to read Temporal's own settings (TEMPORAL_…): {e}"))
}

fn options_for(address: &str) -> anyhow::Result<(ConnectionOptions, ClientOptions)> {
    let url = temporalio_client::Url::parse(&format!("http://{address}"))
        .context("failed to read the address of the server")?;
    let namespace = std::env::var("TEMPORAL_NAMESPACE").unwrap_or_else(|_| "default".into());
    Ok((ConnectionOptions::new(url).build(), ClientOptions::new(namespace).build()))
}

/// Finds the Temporal CLI: as set, in `.tools` of the folder or the project, or on the PATH.
pub(crate) fn find_cli(config: &Config) -> anyhow::Result<PathBuf> {
    if let Some(cli) = &config.temporal_cli {
        if cli.is_file() {
            return Ok(cli.clone());
        }
        bail!("STEWARD_TEMPORAL_CLI is {}, which is not a file", cli.display());
    }
    let near = [Path::new("."), Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))];
    let tools = near.iter().map(|dir| dir.join(".tools/temporal/bin/temporal"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|dir| dir.join("temporal")).collect();
    tools.chain(on_path).find(|p| p.is_file()).context(
        "the Temporal CLI is not there: run `make tools`, or install it and set STEWARD_TEMPORAL_CLI to its path",
    )
}

/// A development server that this process started.
pub(crate) struct DevServer {
    pub(crate) address: String,
    pub(crate) ui: String,
    pub(crate) pid: u32,
    child: Child,
}

impl DevServer {
    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// No CLI, no free port, or a server that does not come up; the message names its log.
    pub(crate) async fn start(config: &Config) -> anyhow::Result<Self> {
        let cli = find_cli(config)?;
        let state = config.state_dir()?;
        stop_stray(&state).await?;
        let (port, ui_port) = (free_port(config.temporal_port)?, free_port(config.temporal_ui_port)?);
        let log_path = state.join("temporal.log");
        let log =
            std::fs::File::create(&log_path).with_context(|| format!("failed to write {}", log_path.display()))?;
        let child = Command::new(&cli)
            .args(["server", "start-dev", "--ip", "127.0.0.1", "--log-level", "warn"])
            .args(["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"])
            .args(["--port", &port.to_string(), "--ui-port", &ui_port.to_string()])
            .arg("--db-filename")
            .arg(state.join("temporal.db"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", cli.display()))?;
        let pid = child.id().context("the Temporal server ended at once")?;
        let address = format!("127.0.0.1:{port}");
        let mut server = Self { address, ui: format!("http://127.0.0.1:{ui_port}"), pid, child };
        server.wait_until_it_answers(&log_path).await?;
        Ok(server)
    }

    async fn wait_until_it_answers(&mut self, log: &Path) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut pause = tokio::time::interval(Duration::from_millis(100));
        while begun.elapsed() < START_PATIENCE {
            pause.tick().await;
            if let Some(status) = self.child.try_wait()? {
                bail!("the Temporal server ended at once ({status}): see {}", log.display());
            }
            let (connection, client) = options_for(&self.address)?;
            let Ok(connection) = Connection::connect(connection).await else { continue };
            let client = Client::new(connection, client)?;
            if answers(&client).await {
                return Ok(());
            }
        }
        bail!("the Temporal server did not answer within {} s: see {}", START_PATIENCE.as_secs(), log.display())
    }

    /// Ends the server the way it likes best, or by force after ten seconds.
    pub(crate) async fn stop(mut self) {
        end(self.pid);
        if tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await.is_err() {
            // It is ended by force when this is dropped, too.
            let _ = self.child.kill().await;
        }
    }
}

/// Whether the namespace can be used; the server listens a moment before it can.
pub(crate) async fn answers(client: &Client) -> bool {
    use temporalio_common::protos::temporal::api::workflowservice::v1::ListSchedulesRequest;
    let request = ListSchedulesRequest {
        namespace: client.namespace().to_owned(),
        maximum_page_size: 1,
        ..ListSchedulesRequest::default()
    };
    let mut service = client.connection().workflow_service();
    service.list_schedules(temporalio_client::tonic::IntoRequest::into_request(request)).await.is_ok()
}

fn end(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // Gone already is as good as ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Ends the server that an `up` which was killed left behind, so that two never share a database.
async fn stop_stray(state: &Path) -> anyhow::Result<()> {
    let Some(pid) = UpNote::read(state).and_then(|note| note.server_pid) else {
        return Ok(());
    };
    let database = state.join("temporal.db");
    let runs = || {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&*database.to_string_lossy())
    };
    if !runs() {
        return Ok(());
    }
    end(pid);
    let begun = Instant::now();
    while runs() {
        if begun.elapsed() > Duration::from_secs(15) {
            bail!("process {pid} still uses {}: end it first", database.display());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The port asked for, or the next free one of the twenty after it.
fn free_port(wanted: u16) -> anyhow::Result<u16> {
    (wanted..=wanted.saturating_add(20))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("ports {wanted} to {} are all taken", wanted.saturating_add(20)))
}

/// Whether anything listens there.
pub(crate) fn is_taken(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok()
}
