//! The development server that `steward up` starts, and its end.
//!
//! Its database lies in the state folder, beside a lock that the server itself holds: the locked file is
//! its standard input, so the lock lives exactly as long as it does, however `up` ends and however the
//! folder is spelled. Two servers can so never share a database. The address goes into the note.

use super::options_for;
use crate::config::Config;
use anyhow::{Context, bail};
use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use temporalio_client::{Client, Connection};
use tokio::process::{Child, Command};

/// How long a server that was just started may take to answer: 30 s.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long a server that is told to end may take: 15 s.
const END_PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);

/// Finds the Temporal CLI: as set, in the project's `.tools`, or on the PATH.
///
/// Never in the current folder: whoever fills that would run their program.
pub(crate) fn find_cli(config: &Config) -> anyhow::Result<PathBuf> {
    if let Some(cli) = &config.temporal_cli {
        if cli.is_file() {
            return Ok(cli.clone());
        }
        bail!("STEWARD_TEMPORAL_CLI is {}, which is not a file", cli.display());
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(|dir| dir.join(".tools/temporal/bin/temporal"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty or relative entry means the current folder.
    let on_path = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("temporal"));
    tools.into_iter().chain(on_path).find(|p| p.is_file()).context(
        "the Temporal CLI is not there: run `make tools`, or install it and set STEWARD_TEMPORAL_CLI to its path",
    )
}

/// A development server that this process started.
pub(crate) struct DevServer {
    pub(crate) address: String,
    pub(crate) ui: String,
    pub(crate) pid: u32,
    child: Child,
    log: PathBuf,
}

impl DevServer {
    /// Starts the server, after ending one that an `up` which was killed left behind.
    ///
    /// # Errors
    /// No CLI, no free port, or another server that uses this state folder and is not ours to end.
    pub(crate) async fn spawn(config: &Config) -> anyhow::Result<Self> {
        let cli = find_cli(config)?;
        let state = config.state_dir()?;
        let mut lock = claim(&state).await?;
        let (port, ui_port) = (free_port(config.temporal_port)?, free_port(config.temporal_ui_port)?);
        let log = state.join("temporal.log");
        let written = || format!("failed to write {}", log.display());
        let said = File::create(&log).with_context(written)?;
        let child = Command::new(&cli)
            .args(["server", "start-dev", "--ip", "127.0.0.1", "--log-level", "warn"])
            .args(["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"])
            .args(["--port", &port.to_string(), "--ui-port", &ui_port.to_string()])
            .arg("--db-filename")
            .arg(state.join("temporal.db"))
            .stdin(Stdio::from(lock.try_clone()?))
            .stdout(said.try_clone()?)
            .stderr(said)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", cli.display()))?;
        let pid = child.id().context("the Temporal server ended at once")?;
        lock.rewind()?;
        lock.set_len(0)?;
        write!(lock, "{pid} {}", std::process::id())?;
        Ok(Self { address: format!("127.0.0.1:{port}"), ui: format!("http://127.0.0.1:{ui_port}"), pid, child, log })
    }

    /// Waits until it can be used.
    ///
    /// # Errors
    /// A server that does not come up; the message names its log.
    pub(crate) async fn wait_until_it_answers(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut pause = tokio::time::interval(PAUSE);
        while begun.elapsed() < START_PATIENCE {
            pause.tick().await;
            if let Some(status) = self.child.try_wait()? {
                bail!("the Temporal server ended at once ({status}): see {}", self.log.display());
            }
            let (connection, client) = options_for(&self.address)?;
            let Ok(connection) = Connection::connect(connection).await else { continue };
            if super::answers(&Client::new(connection, client)?).await {
                return Ok(());
            }
        }
        bail!("the Temporal server did not answer within {} s: see {}", START_PATIENCE.as_secs(), self.log.display())
    }

    /// Waits until the server has ended by itself, and says so.
    pub(crate) async fn ended(&mut self) -> anyhow::Error {
        let how = self.child.wait().await.map_or_else(|e| e.to_string(), |status| status.to_string());
        anyhow::anyhow!("the Temporal server ended ({how}): see {}, then start `steward up` again", self.log.display())
    }

    /// Ends the server the way it likes best, or by force after a while.
    pub(crate) async fn stop(mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        end(self.pid);
        if tokio::time::timeout(END_PATIENCE, self.child.wait()).await.is_err() {
            // It is ended by force when this is dropped, too.
            let _ = self.child.kill().await;
        }
    }
}

/// Takes the lock of the state folder's database, ending a server that was left behind.
async fn claim(state: &Path) -> anyhow::Result<File> {
    let path = state.join("temporal.lock");
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = opened.with_context(|| format!("failed to write {}", path.display()))?;
    let begun = Instant::now();
    let mut told = None;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => return Err(e).with_context(|| format!("failed to lock {}", path.display())),
        }
        let stray = stray(&path, &file);
        if let Some(pid) = stray.filter(|_| told != stray) {
            tracing::warn!(pid, "ending a Temporal server that was left behind");
            end(pid);
            told = stray;
        }
        if begun.elapsed() > END_PATIENCE {
            bail!(
                "another Temporal server uses {} ({}): end it first, or set another STEWARD_STATE_DIR",
                state.join("temporal.db").display(),
                held_by(&path).map_or_else(|| "unknown".into(), |(server, _)| format!("process {server}"))
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The server that holds this lock although the process that started it is gone.
fn stray(path: &Path, lock: &File) -> Option<u32> {
    let (server, starter) = held_by(path)?;
    let ours = lock.metadata().ok()?;
    let theirs = std::fs::metadata(format!("/proc/{server}/fd/0")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).ok()?;
    // Behind the name, which may hold anything: the state, then the parent.
    let parent: u32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
    ((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) && parent != starter).then_some(server)
}

/// The server that the lock names, and the process that started it.
fn held_by(path: &Path) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(path).ok()?;
    let (server, starter) = text.split_once(' ')?;
    Some((server.parse().ok()?, starter.parse().ok()?))
}

fn end(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // Gone already is as good as ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The port asked for, or the next free one of the twenty after it.
fn free_port(wanted: u16) -> anyhow::Result<u16> {
    (wanted..=wanted.saturating_add(20))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("ports {wanted} to {} are all taken", wanted.saturating_add(20)))
}
