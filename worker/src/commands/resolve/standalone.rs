//! Takes an answer where nothing runs for the vault: brings up a Temporal server and a worker, and ends both again.
//!
//! The server keeps nothing on disk and so knows no schedules: no tick can come due beside the answer, and the history of
//! `steward up` stays as it is. The worker holds the vault's lock and takes the answer on the one write path. If the
//! command is killed, the journal settles what was begun; the answer can be given again.

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
use steward_server::temporal::resolve::{ResolutionClient, ResolutionRequestError};
use steward_vault::action::writer::LockError;
use tokio::sync::{mpsc, watch};

/// How long the worker may take to end: longer than its activities are given.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// Opens the vault where nothing runs for it; `None` where a process runs that takes the answer.
///
/// # Errors
/// When the vault cannot be opened, or another command like this one holds it for too long.
pub(super) async fn open_idle_vault(config: &StewardConfig) -> anyhow::Result<Option<OpenedVault>> {
    let begun = Instant::now();
    while temporal::is_nothing_running(config).await? {
        match OpenedVault::open(config).await {
            // Another command was faster; it ends soon, or turns out to be one that stays.
            Err(e) if is_held(&e) && begun.elapsed() < HOLDER_PATIENCE => tokio::time::sleep(LOOK_AGAIN).await,
            opened => return opened.map(Some),
        }
    }
    Ok(None)
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<LockError>(), Some(LockError::Held { .. }))
}

/// Gives an answer by way of a server and a worker of this command's own.
///
/// # Errors
/// When they cannot be started, when there is no answer in time, or when the command is told to end.
pub(super) async fn resolve_standalone<T>(
    config: &StewardConfig,
    parts: OpenedVault,
    request: impl AsyncFnOnce(ResolutionClient) -> Result<T, ResolutionRequestError>,
) -> anyhow::Result<T> {
    let (told, to_end) = watch::channel(false);
    install_stop_handler(told)?;
    let telemetry = telemetry::init_quiet_telemetry()?;
    log_warnings(config);
    let mut server = None;
    let serving = StandaloneService { config, parts, telemetry: &telemetry, server: &mut server };
    let answered = run_unless_stopped(&to_end, serving.serve_request(request)).await;
    if let Some(server) = server {
        server.stop().await;
    }
    telemetry.shutdown().await;
    answered.context("told to end before there was an answer: `steward audit list` says whether it was given")?
}

/// What serves one answer, and where its server is kept for the end.
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
        let server = server.insert(LocalTemporalServer::spawn_unsaved(config).await?);
        let client = server.connect(|| telemetry.create_client_plugins()).await?;
        let connected = TemporalConnection { client, address: server.address.clone() };
        let (raise, stop) = watch::channel(false);
        let (crew, mut failures) =
            sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, stop)?;
        // No schedule follows a matter's cadence here.
        let (intervals, _) = mpsc::unbounded_channel();
        let worker = engine::start_vault_worker(config, &crew, &parts, intervals)?;
        let answers = ResolutionClient::new(crew.client.clone(), &config.task_queue);
        let answered = tokio::select! {
            answered = request(answers) => answered.map_err(explain_error),
            failed = failures.recv() => Err(failed.context("the worker is gone")?),
            ended = server.wait_for_end() => return Err(ended),
        };
        raise.send_replace(true);
        let keeper = Arc::clone(&parts.keeper);
        // A worker that panicked has already said why, and one that hangs ends with the process. What cannot be settled
        // now is settled by the next process.
        let ends = tokio::task::spawn_blocking(move || (worker.join().is_ok(), keeper.settle_swaps().is_ok()));
        let _ = tokio::time::timeout(END_PATIENCE, ends).await;
        answered
    }
}

/// Nothing goes on once this command has ended.
fn explain_error(error: ResolutionRequestError) -> anyhow::Error {
    match error {
        ResolutionRequestError::Late { .. } => {
            anyhow::anyhow!(
                "no answer in time: `steward audit list` says whether it was given; try again if it was not"
            )
        }
        other => other.into(),
    }
}
