//! Resolves actions when nothing runs for the vault: starts a Temporal server and a worker, and stops both again.
//!
//! The server keeps nothing on disk, so it has no schedules. No tick can become due meanwhile, and the history of
//! `steward up` stays as it is. The worker holds the vault's lock and uses the one write path. If the command is
//! killed, the journal settles what was begun, and the command can be run again.

use crate::commands::up::{install_stop_handler, log_warnings, run_unless_stopped};
use crate::config::StewardConfig;
use crate::runtime::engine::{self, OpenedVault};
use crate::runtime::sdk_workers::{self, TemporalConnection};
use crate::telemetry::{self, Telemetry};
use crate::temporal::server::LocalTemporalServer;
use crate::temporal::{self, HOLDER_PATIENCE, LOOK_AGAIN};
use anyhow::Context;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::steward::tick::RunDisplay;
use steward_server::temporal::resolve::{ResolutionClient, ResolutionRequestError};
use steward_vault::action::writer::LockError;
use tokio::sync::{mpsc, watch};

/// How long the worker may take to stop: 20 s, longer than the time limit of its activities.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// Opens the vault if nothing runs for it; `None` if a process runs that can carry out the resolution.
///
/// # Errors
/// When the vault cannot be opened, or another command like this one holds it for too long.
pub(super) async fn open_idle_vault(config: &StewardConfig) -> anyhow::Result<Option<OpenedVault>> {
    let begun = Instant::now();
    while temporal::is_nothing_running(config).await? {
        match OpenedVault::open(config).await {
            // Another command was faster. It ends soon, or it is a process that stays and is found in the next round.
            Err(e) if is_held(&e) && begun.elapsed() < HOLDER_PATIENCE => tokio::time::sleep(LOOK_AGAIN).await,
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<LockError>(), Some(LockError::Held { .. }))
}

/// Requests a resolution from a server and a worker of this command's own.
///
/// # Errors
/// When they cannot be started, when there is no result in time, or when the command is stopped by a signal.
pub(super) async fn resolve_standalone<T>(
    config: &StewardConfig,
    parts: OpenedVault,
    request: impl AsyncFnOnce(ResolutionClient) -> Result<T, ResolutionRequestError>,
) -> anyhow::Result<T> {
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise)?;
    let telemetry = telemetry::init_quiet_telemetry()?;
    log_warnings(config);
    let mut server = None;
    let serving = StandaloneService { config, parts, telemetry: &telemetry, server: &mut server };
    let output = run_unless_stopped(&stop, serving.serve_request(request)).await;
    if let Some(server) = server {
        server.stop().await;
    }
    telemetry.shutdown().await;
    output.context("stopped before there was a result: `steward audit list` shows whether it was done")?
}

/// What serves one resolution. The server is stored outside, so that the caller can stop it.
struct StandaloneService<'a> {
    config: &'a StewardConfig,
    parts: OpenedVault,
    telemetry: &'a Telemetry,
    server: &'a mut Option<LocalTemporalServer>,
}

impl StandaloneService<'_> {
    async fn serve_request<T>(
        self,
        request: impl AsyncFnOnce(ResolutionClient) -> Result<T, ResolutionRequestError>,
    ) -> anyhow::Result<T> {
        let Self { config, parts, telemetry, server } = self;
        let first = server.insert(LocalTemporalServer::spawn_unsaved(config).await?);
        let client = match first.connect(|| telemetry.create_client_plugins()).await {
            Ok(client) => client,
            // Two servers that start at the same moment may choose the same free port for themselves. Nothing was begun yet.
            Err(_) => {
                if let Some(first) = server.take() {
                    first.stop().await;
                }
                let second = server.insert(LocalTemporalServer::spawn_unsaved(config).await?);
                second.connect(|| telemetry.create_client_plugins()).await?
            }
        };
        let Some(server) = server.as_mut() else { anyhow::bail!("the Temporal server is gone") };
        let connected = TemporalConnection { client, address: server.address.clone() };
        let (raise, stop) = watch::channel(false);
        let (context, mut failures) =
            sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, stop)?;
        // There are no schedules here whose interval could change.
        let (intervals, _) = mpsc::unbounded_channel();
        let worker = engine::start_vault_worker(config, &context, &parts, intervals, RunDisplay::default())?;
        let resolutions = ResolutionClient::new(context.client.clone(), config.vault_names(), &config.task_queue, None);
        let output = tokio::select! {
            output = request(resolutions) => output.map_err(explain_error),
            failed = failures.recv() => Err(failed.context("the worker ended unexpectedly")?),
            ended = server.wait_for_end() => return Err(ended),
        };
        raise.send_replace(true);
        let writer = Arc::clone(&parts.writer);
        // A worker that panicked has already logged why, and one that hangs ends with the process. The next process
        // settles what cannot be settled now.
        let ends = tokio::task::spawn_blocking(move || (worker.join().is_ok(), writer.settle_swaps().is_ok()));
        let _ = tokio::time::timeout(END_PATIENCE, ends).await;
        output
    }
}

/// Rewords a timeout: nothing continues in the background once this command has ended.
fn explain_error(error: ResolutionRequestError) -> anyhow::Error {
    match error {
        ResolutionRequestError::Late { .. } => {
            anyhow::anyhow!("no result in time: `steward audit list` shows whether it was done; if not, try again")
        }
        other => other.into(),
    }
}
