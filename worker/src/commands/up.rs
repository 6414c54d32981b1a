//! `steward up` and `steward worker`: everything a vault needs, until told to end.
//!
//! `up` also starts a server when none is named and ends it with itself; `worker` joins a fleet. Both
//! listen to Ctrl-C from their first moment, wire [`crate::runtime::engine`] and wait; whoever holds the vault
//! leaves a note of itself. What a tick decides is no business of theirs.

mod round;

use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::runtime::engine::{self, Engine, OpenedVault, wait_for_stop};
use crate::runtime::sdk_workers::{self, TemporalConnection, WorkerContext};
use crate::runtime::web::{self, WebInterface};
use crate::telemetry::Telemetry;
use crate::temporal;
use crate::temporal::note::{self, HolderRecord};
use crate::temporal::server::LocalTemporalServer;
use anyhow::Context;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use steward_server::http::listen::RunningServer;
use steward_vault::action::writer::VaultWriter;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How long the workers get to end when there is no server any more, which they wait for: 5 s.
const END_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise.clone())?;
    let telemetry = crate::telemetry::init_telemetry()?;
    log_warnings(config);
    let mut house = ProcessCleanup::default();
    let serving = if up.once { None } else { Some(web::bind_listener(config, stop.clone()).await?) };
    let begun =
        run_unless_stopped(&stop, start_services(config, (&telemetry, serving), &raise, (&mut house, out))).await;
    let ended = match begun.transpose() {
        Ok(None) => Ok(CommandExit::Ok),
        Err(e) => Err(e),
        Ok(Some(begun)) => {
            let serving = serve_vault(config, up, begun, out);
            tokio::pin!(serving);
            tokio::select! {
                ended = &mut serving => ended,
                died = house.wait_for_server_end() => {
                    raise.send_replace(true);
                    // How the workers ended is no news: they have lost their server.
                    let _ = tokio::time::timeout(END_PATIENCE, serving).await;
                    Err(died)
                }
            }
        }
    };
    house.shut_down(config).await?;
    telemetry.shutdown().await;
    ended
}

/// What must be put away in the end, however far the process came.
#[derive(Default)]
struct ProcessCleanup {
    /// Held until the note is gone, so that nobody takes it for that of a process that died.
    keeper: Option<Arc<VaultWriter>>,
    server: Option<LocalTemporalServer>,
}

impl ProcessCleanup {
    /// The end of the server that this process started; never, when it started none.
    async fn wait_for_server_end(&mut self) -> anyhow::Error {
        match &mut self.server {
            Some(server) => server.wait_for_end().await,
            None => pending().await,
        }
    }

    async fn shut_down(self, config: &StewardConfig) -> anyhow::Result<()> {
        if let Some(server) = self.server {
            server.stop().await;
        }
        if self.keeper.is_some() {
            HolderRecord::remove(&config.state_dir()?);
        }
        Ok(())
    }
}

/// All that is there before the schedules are looked at.
struct StartedServices {
    raise: watch::Sender<bool>,
    /// The web page of the server that this process started.
    ui: Option<String>,
    parts: OpenedVault,
    crew: WorkerContext,
    failures: mpsc::UnboundedReceiver<anyhow::Error>,
    clerk: JoinHandle<()>,
    /// Where the dashboard is; nowhere with `--once`.
    serving: Option<RunningServer>,
}

async fn start_services(
    config: &StewardConfig,
    (telemetry, serving): (&Telemetry, Option<RunningServer>),
    raise: &watch::Sender<bool>,
    (house, out): (&mut ProcessCleanup, CommandOutput),
) -> anyhow::Result<StartedServices> {
    let parts = OpenedVault::open(config).await?;
    house.keeper = Some(Arc::clone(&parts.keeper));
    let state = config.state_dir()?;
    let listen = serving.as_ref().map(|serving| serving.address);
    let connected = if temporal::is_server_configured() {
        let client = temporal::connect_patiently(config, || telemetry.create_client_plugins()).await?;
        let address = temporal::find_server_address(config)?;
        HolderRecord { listen, ..note::describe_this_process(config, "up", &address) }.write(&state)?;
        TemporalConnection { client, address }
    } else {
        out.print_text("starting Temporal …")?;
        let server = house.server.insert(LocalTemporalServer::spawn(config).await?);
        let mine = note::describe_this_process(config, "up", &server.address);
        HolderRecord { listen, ui: server.ui.clone(), server_pid: Some(server.pid), ..mine }.write(&state)?;
        TemporalConnection {
            client: server.connect(|| telemetry.create_client_plugins()).await?,
            address: server.address.clone(),
        }
    };
    let TemporalConnection { client, address } = &connected;
    desired::claim_namespace(config, client, address, &parts.keeper, house.server.is_some()).await?;
    let (crew, failures) =
        sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, raise.subscribe())?;
    let clerk = engine::start_clerk_worker(config, &crew)?;
    let ui = house.server.as_ref().and_then(|server| server.ui.clone());
    Ok(StartedServices { raise: raise.clone(), ui, parts, crew, failures, clerk, serving })
}

/// Serves until the crew's stop flag is raised, or something ends it; then all has ended.
async fn serve_vault(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    begun: StartedServices,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let StartedServices { raise, ui, parts, crew, mut failures, clerk, serving } = begun;
    // A server whose web page is known is one that this process started.
    let engine = engine::start_engine(config, &crew, parts, ui.is_some()).await?;
    let listen = serving.as_ref().map(|serving| serving.address);
    if let Some(serving) = &serving {
        let (root, index) = (engine.parts.keeper.root().clone(), Arc::clone(&engine.parts.index));
        let ledger = Some(Arc::clone(&engine.parts.ledger));
        let settings = web::build_dashboard_settings(config, &crew.client.options().namespace, ui.as_deref());
        let web = WebInterface { client: crew.client.clone(), root, index, ledger, settings };
        web.serve_requests(config, serving, crew.stop.clone())?;
    }
    let served = UpRuntime { config, crew: &crew, engine: &engine, ui: ui.as_deref(), listen };
    let ended = run_until_stopped(&served, up, &mut failures, out).await;
    raise.send_replace(true);
    if let Some(serving) = serving {
        // It ends by the same flag, and says itself why it ended otherwise.
        serving.wait_until_ended().await;
    }
    engine.shut_down().await;
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    ended
}

/// What `up` keeps running.
struct UpRuntime<'a> {
    config: &'a StewardConfig,
    crew: &'a WorkerContext,
    engine: &'a Engine,
    ui: Option<&'a str>,
    listen: Option<SocketAddr>,
}

async fn run_until_stopped(
    served: &UpRuntime<'_>,
    up: &crate::cli::UpArgs,
    failures: &mut mpsc::UnboundedReceiver<anyhow::Error>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let mut stop = served.crew.stop.clone();
    if !up.once && !*stop.borrow() {
        out.print_text(&super::schedules::describe_plan(&served.engine.registered))?;
    }
    if up.once || up.tick_now {
        tokio::select! {
            said = round::tick_all(served) => {
                let said = said?;
                out.print_value(&said, || round::describe_round(&said))?;
                if up.once {
                    run_unless_stopped(&served.crew.stop, served.engine.write_all_timestamps()).await;
                    return Ok(said.exit_code());
                }
            }
            failed = failures.recv() => return Err(failed.context("the workers are gone")?),
            () = wait_for_stop(&mut stop) => return Ok(CommandExit::Ok),
        }
    }
    served.engine.begin_waking();
    if !*stop.borrow() {
        out.print_text(&describe_addresses(served)?)?;
    }
    tokio::select! {
        failed = failures.recv() => Err(failed.context("the workers are gone")?),
        () = wait_for_stop(&mut stop) => Ok(CommandExit::Ok),
    }
}

/// Serves a vault when the lock is free, and clerk calls meanwhile.
pub(crate) async fn run_worker(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise.clone())?;
    let telemetry = crate::telemetry::init_telemetry()?;
    log_warnings(config);
    let address = temporal::find_server_address(config)?;
    let Some(client) =
        run_unless_stopped(&stop, temporal::connect_patiently(config, || telemetry.create_client_plugins())).await
    else {
        return Ok(CommandExit::Ok);
    };
    let connected = TemporalConnection { client: client?, address: address.clone() };
    // Its clerk would answer the calls of the other vault.
    let checked = desired::check_owner_patiently(config, &connected.client, &address);
    let Some(checked) = run_unless_stopped(&stop, checked).await else { return Ok(CommandExit::Ok) };
    checked?;
    let (crew, mut failures) =
        sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, stop.clone())?;
    let clerk = engine::start_clerk_worker(config, &crew)?;
    out.print_text("serving clerk calls")?;
    let mut house = ProcessCleanup::default();
    let mut engine = None;
    let ended = {
        let serving = acquire_vault(config, &crew, &address, (&mut house, out));
        tokio::pin!(serving);
        let mut stop = stop.clone();
        let mut opened = false;
        loop {
            tokio::select! {
                result = &mut serving, if !opened => {
                    opened = true;
                    match result {
                        Ok(started) => engine = started,
                        Err(e) => break Err(e),
                    }
                }
                failed = failures.recv() => break failed.context("the workers are gone").and_then(Err),
                () = wait_for_stop(&mut stop), if opened => break Ok(CommandExit::Ok),
            }
        }
    };
    raise.send_replace(true);
    if let Some(engine) = engine {
        engine.shut_down().await;
    }
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    house.shut_down(config).await?;
    telemetry.shutdown().await;
    ended
}

/// Waits for its turn to hold the vault and begins to serve it; `None` when told to end before, or
/// when there is no vault.
async fn acquire_vault(
    config: &StewardConfig,
    crew: &WorkerContext,
    address: &str,
    (house, out): (&mut ProcessCleanup, CommandOutput),
) -> anyhow::Result<Option<Engine>> {
    let mut waiting = crew.stop.clone();
    if config.vault.is_none() {
        return Ok(None);
    }
    let Some(parts) = OpenedVault::open_when_unlocked(config, &mut waiting).await? else { return Ok(None) };
    house.keeper = Some(Arc::clone(&parts.keeper));
    tokio::select! {
        claimed = desired::claim_namespace(config, &crew.client, address, &parts.keeper, false) => claimed?,
        () = wait_for_stop(&mut waiting) => return Ok(None),
    }
    note::describe_this_process(config, "worker", address).write(&config.state_dir()?)?;
    let engine = engine::start_engine(config, crew, parts, false).await?;
    engine.begin_waking();
    if !*waiting.borrow() {
        out.print_text(&super::schedules::describe_plan(&engine.registered))?;
        out.print_text("serving the vault")?;
    }
    Ok(Some(engine))
}

/// Raises the flag on Ctrl-C and on a polite kill, from now on.
pub(crate) fn install_stop_handler(raise: watch::Sender<bool>) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        raise.send_replace(true);
    });
    Ok(())
}

/// Does something unless the process is told to end meanwhile.
pub(super) async fn run_unless_stopped<T>(stop: &watch::Receiver<bool>, work: impl Future<Output = T>) -> Option<T> {
    let mut stop = stop.clone();
    tokio::select! {
        done = work => Some(done),
        () = wait_for_stop(&mut stop) => None,
    }
}

pub(crate) fn log_warnings(config: &StewardConfig) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

fn describe_addresses(served: &UpRuntime<'_>) -> anyhow::Result<String> {
    let UpRuntime { config, ui, listen, .. } = *served;
    let mut lines = vec![format!("vault      {}", config.vault_folder()?.display())];
    if let Some(address) = listen {
        lines.push(format!("dashboard  {}", web::create_operator_login_link(config, address)?));
    }
    if let Some(ui) = ui {
        lines.push(format!("schedules  {ui}/namespaces/{}/schedules", temporal::configured_namespace()));
    }
    lines.push(format!("records    {}", config.vault_folder()?.join("event").display()));
    lines.push("up; Ctrl-C ends it".into());
    Ok(lines.join("\n"))
}
