//! Starts and stops the development server of `steward up`.
//!
//! Its database lies in the state folder, beside a lock that the server itself holds: the locked file is its standard
//! input. So the lock lives exactly as long as the server, however `up` ends and however the folder's path is written.
//! Two servers must never share a database. The caller writes the address into the note.

mod environment;

use super::TemporalOptions;
use super::build_options;
use super::configured_namespace;
use super::ports::{ServerPorts, find_any_free_port};
use super::start_retry::retry_unanswered;
use crate::cli::output::escape_text;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use steward_vault::files::private;
use temporalio_client::{Client, Connection};
use temporalio_sdk::plugins::SimplePlugin;
use tokio::process::{Child, Command};

/// How long a new server may take to answer: 120 s, for a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(120);
/// How long a server may take to end: 15 s.
const END_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// The most lines of the server's log that an error message quotes: 5.
const LAST_LINES: usize = 5;
/// The most characters of these lines: 1,000.
const LAST_CHARACTERS: usize = 1_000;

/// Finds the Temporal CLI: the configured one, in a development build the one in the project's `.tools`, or the one on
/// the PATH.
///
/// It never searches the current folder: anyone who can write there could make Steward run their program.
pub(crate) fn find_cli(config: &StewardConfig) -> anyhow::Result<PathBuf> {
    if let Some(cli) = &config.temporal_cli {
        if cli.is_file() {
            return Ok(cli.clone());
        }
        bail!("STEWARD_TEMPORAL_CLI is {}, which is not a file", cli.display());
    }
    // A released binary must not know the folder in which it was built.
    #[cfg(debug_assertions)]
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(|dir| dir.join(".tools/temporal/bin/temporal"));
    #[cfg(not(debug_assertions))]
    let tools = None;
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty or relative entry depends on the current folder.
    let on_path = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("temporal"));
    tools.into_iter().chain(on_path).find(|p| p.is_file()).context(
        "the Temporal CLI is not installed: run `make tools`, or install it and set STEWARD_TEMPORAL_CLI to its path",
    )
}

/// A development server that this process started.
pub(crate) struct LocalTemporalServer {
    pub(crate) address: String,
    /// The URL of its web page, if it has one.
    pub(crate) ui: Option<String>,
    pub(crate) pid: u32,
    child: Child,
    log: PathBuf,
    state: PathBuf,
}

/// The state folder and the ports of a server to start.
struct LocalServerLocation {
    state: PathBuf,
    port: u16,
    ui: Option<String>,
}

impl LocalTemporalServer {
    /// Starts the server. A server that a killed `up` left behind is ended first.
    ///
    /// # Errors
    /// There is no CLI, a configured port is taken, or a foreign server uses this state folder.
    pub(crate) async fn spawn(config: &StewardConfig) -> anyhow::Result<Self> {
        let cli = find_cli(config)?;
        let state = config.state_dir()?;
        let lock = acquire_database_lock(&state).await?;
        // Not earlier: a server that was left behind holds its ports until it has ended.
        let ports = ServerPorts::choose(config)?;
        let mut command = Command::new(&cli);
        command
            .args(["server", "start-dev", "--ip", "127.0.0.1", "--log-level", "warn"])
            .args(["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"])
            .args(["--port", &ports.port.to_string(), "--ui-port", &ports.ui_port.to_string()])
            .args(["--namespace", &configured_namespace()])
            .arg("--db-filename")
            .arg(state.join("temporal.db"));
        let ui = Some(format!("http://127.0.0.1:{}", ports.ui_port));
        Self::start_process(command, lock, LocalServerLocation { state, port: ports.port, ui })
    }

    /// Starts a server without a database and web page, on any free port, for one command.
    ///
    /// # Errors
    /// As [`LocalTemporalServer::spawn`].
    pub(crate) async fn spawn_unsaved(config: &StewardConfig) -> anyhow::Result<Self> {
        let cli = find_cli(config)?;
        let state = config.state_dir()?;
        let (lock, port) = (acquire_database_lock(&state).await?, find_any_free_port()?);
        let mut command = Command::new(&cli);
        command.args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "warn"]).args([
            "--port",
            &port.to_string(),
            "--namespace",
            &configured_namespace(),
        ]);
        Self::start_process(command, lock, LocalServerLocation { state, port, ui: None })
    }

    fn start_process(mut command: Command, mut lock: File, location: LocalServerLocation) -> anyhow::Result<Self> {
        let LocalServerLocation { state, port, ui } = location;
        let log = state.join("temporal.log");
        let output = create_private_file(&log).with_context(|| format!("failed to write {}", log.display()))?;
        let program = command.as_std().get_program().to_owned();
        let child = command
            .env_clear()
            .envs(environment::filter_inherited(std::env::vars_os()))
            .stdin(Stdio::from(lock.try_clone()?))
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", Path::new(&program).display()))?;
        let pid = child.id().context("the Temporal server ended at once")?;
        lock.rewind()?;
        lock.set_len(0)?;
        write!(lock, "{pid} {}", std::process::id())?;
        Ok(Self { address: format!("127.0.0.1:{port}"), ui, pid, child, log, state })
    }

    /// Waits until the server is ready, and connects.
    ///
    /// # Errors
    /// The server does not start. The message quotes the end of its log and names the file.
    pub(crate) async fn connect(&mut self, plugins: impl Fn() -> Vec<SimplePlugin>) -> anyhow::Result<Client> {
        self.wait_until_ready().await?;
        // The database exists by now, and SQLite gives the files beside it the same permissions.
        private::tighten_state(&self.state);
        let address = self.address.clone();
        retry_unanswered("connect", &address, async || super::connect_to_address(&address, plugins()).await).await
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut pause = tokio::time::interval(PAUSE);
        while begun.elapsed() < START_PATIENCE {
            pause.tick().await;
            if let Some(status) = self.child.try_wait()? {
                bail!("the Temporal server ended at once ({status}){}", self.describe_last_lines());
            }
            let TemporalOptions { connection, client } = build_options(&self.address)?;
            let Ok(connection) = Connection::connect(connection).await else { continue };
            if super::is_namespace_ready(&Client::new(connection, client)?).await {
                return Ok(());
            }
        }
        bail!("the Temporal server did not answer within {} s{}", START_PATIENCE.as_secs(), self.describe_last_lines())
    }

    /// The end of the server's log, for a message, and the path of the log.
    fn describe_last_lines(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let lines = format_last_lines(&String::from_utf8_lossy(&text));
        let log = self.log.display();
        if lines.is_empty() {
            format!(": it logged nothing; its log is {log}")
        } else {
            format!(": it logged \"{lines}\"; its log is {log}")
        }
    }

    /// Waits until the server ends by itself; returns an error that describes it.
    pub(crate) async fn wait_for_end(&mut self) -> anyhow::Error {
        let how = self.child.wait().await.map_or_else(|e| e.to_string(), |status| status.to_string());
        anyhow::anyhow!("the Temporal server ended ({how}){}; start `steward up` again", self.describe_last_lines())
    }

    /// Asks the server to end, and ends it by force after 15 s.
    pub(crate) async fn stop(mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        terminate_process(self.pid);
        if tokio::time::timeout(END_PATIENCE, self.child.wait()).await.is_err() {
            // Dropping this ends it by force, too.
            let _ = self.child.kill().await;
        }
    }
}

/// Takes the lock of the state folder's database. A server that was left behind is ended first.
async fn acquire_database_lock(state: &Path) -> anyhow::Result<File> {
    let path = state.join("temporal.lock");
    let opened = File::options().read(true).write(true).create(true).truncate(false).mode(private::FILE).open(&path);
    let file = opened.with_context(|| format!("failed to write {}", path.display()))?;
    let begun = Instant::now();
    let mut ended = None;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => return Err(e).with_context(|| format!("failed to lock {}", path.display())),
        }
        let stray = find_stray_server(&path, &file);
        if let Some(pid) = stray.filter(|_| ended != stray) {
            tracing::warn!(pid, "ending a Temporal server that was left behind");
            terminate_process(pid);
            ended = stray;
        }
        if begun.elapsed() > END_PATIENCE {
            bail!(
                "another Temporal server uses {} ({}): end it first, or set another STEWARD_STATE_DIR",
                state.join("temporal.db").display(),
                read_lock_holder(&path).map_or_else(|| "unknown".into(), |(server, _)| format!("process {server}"))
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The server that holds this lock although the process that started it has ended.
fn find_stray_server(path: &Path, lock: &File) -> Option<u32> {
    let (server, starter) = read_lock_holder(path)?;
    let ours = lock.metadata().ok()?;
    let theirs = std::fs::metadata(format!("/proc/{server}/fd/0")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).ok()?;
    // The process name may hold any characters. After it come the state and the parent.
    let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    ((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) && parent != starter).then_some(server)
}

/// The server that the lock names, and the process that started it.
fn read_lock_holder(path: &Path) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(path).ok()?;
    let (server, starter) = text.split_once(' ')?;
    Some((server.parse().ok()?, starter.parse().ok()?))
}

fn terminate_process(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // An error means that it has already ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Creates a file in the state folder that only its owner may read.
fn create_private_file(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create(true).truncate(true).mode(private::FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(private::FILE))?;
    Ok(file)
}

/// The last lines of a log, joined into one line of limited length, with control characters escaped.
fn format_last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" | ");
    let characters = last.chars().count();
    let shortened: String = last.chars().skip(characters.saturating_sub(LAST_CHARACTERS)).collect();
    escape_text(&shortened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_quoted_and_escaped() {
        assert_eq!(format_last_lines("\n \n"), "");
        assert_eq!(format_last_lines("a\n\nError: can't bind\n"), "a | Error: can't bind");
        let long = format_last_lines(&format!("{}\nx\u{1b}[31m", "y\n".repeat(10_000)));
        assert!(long.ends_with("y | x\\u{1b}[31m") && long.chars().count() < 40, "{long}");
        assert!(format_last_lines(&"z".repeat(100_000)).len() <= LAST_CHARACTERS);
    }
}
