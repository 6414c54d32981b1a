//! The commands `steward up` and `steward worker`: run everything a vault needs until they are stopped.
//!
//! `up` also starts a Temporal server if none is configured, and stops it at its end. `worker` joins a configured
//! server. Both handle Ctrl-C from their first moment, start [`crate::runtime::engine`] and wait. The process that
//! holds the vault writes a holder record about itself. They must not decide anything that a tick decides.

mod beside;
mod round;
mod stop_handler;
mod worker;

pub(crate) use beside::run_beside;
pub(crate) use stop_handler::install_stop_handler;
pub(crate) use worker::run_worker;

use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::fleet;
use crate::preflight;
use crate::registrar::desired;
use crate::runtime::engine::{self, Engine, OpenedVault, wait_for_stop};
use crate::runtime::sdk_workers::{self, TemporalConnection, WorkerContext};
use crate::runtime::supervisor;
use crate::runtime::web::{self, WebInterface};
use crate::telemetry::Telemetry;
use crate::temporal;
use crate::temporal::note::{self, HolderRecord};
use crate::temporal::server::LocalTemporalServer;
use anyhow::Context;
use prometheus::Registry;
use serde_json::json;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use steward_fleet::VaultOwnership;
use steward_server::http::listen::RunningServer;
use steward_server::http::pulse::LoopPulse;
use steward_server::temporal::service_pause::describe_drain;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::drain;
use tokio::sync::{mpsc, watch};

/// How long the workers may take to end after their server has died, because they wait for it: 5 s.
const END_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise.clone())?;
    let telemetry = crate::telemetry::init_telemetry(!up.once)?;
    let outcome = hold_vault(config, up, &telemetry, StopSwitch { raise, stop }, out).await;
    telemetry.shutdown().await;
    outcome
}

/// The flag that ends the process.
struct StopSwitch {
    raise: watch::Sender<bool>,
    stop: watch::Receiver<bool>,
}

/// Runs everything a vault needs until the flag is raised.
async fn hold_vault(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    telemetry: &Telemetry,
    StopSwitch { raise, stop }: StopSwitch,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    log_warnings(config);
    let drain = drain::read_drain(&VaultRoot::open(config.vault_folder()?)?);
    if let Some(drain) = drain.filter(|_| up.once) {
        out.print_value(&json!({"paused": describe_drain(&drain)}), || {
            format!("nothing was ticked: {}", describe_drain(&drain))
        })?;
        return Ok(CommandExit::Refused);
    }
    let mut cleanup = ProcessCleanup::default();
    let serving = if up.once { None } else { Some(web::bind_listener(config, stop.clone()).await?) };
    let starting = start_services(config, telemetry, serving, &raise, &mut cleanup, out);
    let started = run_unless_stopped(&stop, starting).await;
    let outcome = match started.transpose() {
        Ok(None) => end_on_request(out),
        Err(e) => Err(e),
        Ok(Some(services)) => {
            let lost = fleet::wait_for_loss(services.vault.ownership.clone());
            let serving = serve_vault(config, up, services, out);
            tokio::pin!(serving);
            tokio::select! {
                outcome = &mut serving => outcome,
                error = lost => {
                    raise.send_replace(true);
                    let _ = tokio::time::timeout(END_PATIENCE, serving).await;
                    Err(error)
                }
                error = cleanup.wait_for_server_end() => {
                    raise.send_replace(true);
                    // The outcome of the workers does not matter: they have lost their server.
                    let _ = tokio::time::timeout(END_PATIENCE, serving).await;
                    Err(error)
                }
            }
        }
    };
    cleanup.shut_down(config).await?;
    outcome
}

/// What the process must clean up at its end, however far it came.
#[derive(Default)]
struct ProcessCleanup {
    /// Held until the holder record is removed. Otherwise the record would look like that of a process that died.
    writer: Option<Arc<VaultWriter>>,
    server: Option<LocalTemporalServer>,
}

impl ProcessCleanup {
    /// Waits for the end of the server that this process started. If it started none, it waits forever.
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
        if self.writer.is_some() {
            HolderRecord::remove(&config.state_dir()?);
        }
        Ok(())
    }
}

/// What is started before the schedules are registered.
struct StartedServices {
    raise: watch::Sender<bool>,
    /// The web page of the server that this process started.
    ui: Option<String>,
    vault: OpenedVault,
    context: WorkerContext,
    failures: mpsc::UnboundedReceiver<anyhow::Error>,
    /// What this process has recorded about itself.
    record: HolderRecord,
    /// Whether this process created the schedule that claims the namespace.
    claimed: bool,
    /// The server of the dashboard; `None` with `--once`.
    serving: Option<RunningServer>,
    /// What `/metrics` shows of this process.
    metrics: Registry,
}

async fn start_services(
    config: &StewardConfig,
    telemetry: &Telemetry,
    serving: Option<RunningServer>,
    raise: &watch::Sender<bool>,
    cleanup: &mut ProcessCleanup,
    out: CommandOutput,
) -> anyhow::Result<StartedServices> {
    // The first line, so that warnings about records have a context where both outputs go to one file.
    out.print_text(&format!("reading {} …", config.vault_folder()?.display()))?;
    let vault = OpenedVault::open(config).await?;
    cleanup.writer = Some(Arc::clone(&vault.writer));
    // Earlier than `/startz`: a supervisor must not wait for a server elsewhere.
    let pulse = LoopPulse::default();
    supervisor::report_started(pulse.clone(), raise.subscribe());
    let state = config.state_dir()?;
    let listen = serving.as_ref().map(|serving| serving.address);
    let (connected, record) = if temporal::is_server_configured() {
        let client = temporal::connect_patiently(config, || telemetry.create_client_plugins()).await?;
        let address = temporal::find_server_address(config)?;
        let record = HolderRecord { listen, ..note::describe_this_process(config, "up", &address) };
        record.write(&state)?;
        (TemporalConnection { client, address }, record)
    } else {
        out.print_text("starting Temporal …")?;
        let server = cleanup.server.insert(LocalTemporalServer::spawn(config).await?);
        let record = note::describe_this_process(config, "up", &server.address);
        let record = HolderRecord { listen, ui: server.ui.clone(), server_pid: Some(server.pid), ..record };
        record.write(&state)?;
        let client = server.connect(|| telemetry.create_client_plugins()).await?;
        (TemporalConnection { client, address: server.address.clone() }, record)
    };
    let TemporalConnection { client, address } = &connected;
    let claimed = desired::claim_namespace(config, client, address, &vault, cleanup.server.is_some()).await?;
    let (context, failures) =
        sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, raise.subscribe())?;
    let silent = vault.ownership.as_ref().map(VaultOwnership::watch_silence);
    let context = WorkerContext { silent, pulse, key_health: telemetry.observe_key_health(), ..context };
    let ui = cleanup.server.as_ref().and_then(|server| server.ui.clone());
    let metrics = telemetry.scraped_metrics();
    Ok(StartedServices { raise: raise.clone(), ui, vault, context, failures, record, claimed, serving, metrics })
}

/// Serves the vault until the stop flag is raised or a part fails, and then stops all parts.
///
/// The dashboard comes first: it must show why this process does not poll yet.
async fn serve_vault(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    mut services: StartedServices,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let serving = services.serving.take();
    if let Some(serving) = &serving {
        let (context, vault) = (&services.context, &services.vault);
        let (root, index) = (vault.writer.root().clone(), Arc::clone(&vault.index));
        let settings =
            web::build_dashboard_settings(config, &context.client.options().namespace, services.ui.as_deref());
        let ledger = Some(Arc::clone(&vault.ledger));
        let (client, pulse) = (context.client.clone(), context.pulse.clone());
        let metrics = services.metrics.clone();
        let web = WebInterface { client, root, index, ledger, settings, pulse, metrics };
        web.serve_requests(config, serving, context.stop.clone())?;
    }
    let (raise, listen) = (services.raise.clone(), serving.as_ref().map(|serving| serving.address));
    let link = listen.map(|address| describe_dashboard(config, up, address)).transpose()?;
    let report = BootReport { record: services.record.clone(), link, once: up.once, out };
    let checked = check_open_runs(config, &services.context, &services.vault, report);
    let outcome = match run_unless_stopped(&services.context.stop, checked).await {
        Some(Ok(())) => run_engine(config, up, services, listen, out).await,
        Some(Err(e)) => Err(e),
        None => end_on_request(out),
    };
    raise.send_replace(true);
    if let Some(serving) = serving {
        // The same flag stops it. If it ends for another reason, it logs that itself.
        serving.wait_until_ended().await;
    }
    outcome
}

/// Where the boot check reports to.
struct BootReport {
    record: HolderRecord,
    /// The address of the dashboard of this process, as it is printed.
    link: Option<String>,
    /// Whether it reports an obstacle and ends, instead of waiting.
    once: bool,
    out: CommandOutput,
}

/// Waits until this build can continue the open runs of the vault. Meanwhile the holder record says why it does not poll.
async fn check_open_runs(
    config: &StewardConfig,
    context: &WorkerContext,
    vault: &OpenedVault,
    BootReport { mut record, link, once, out }: BootReport,
) -> anyhow::Result<()> {
    let state = config.state_dir()?;
    let connection = TemporalConnection { client: context.client.clone(), address: context.address.clone() };
    preflight::wait_until_runs_are_safe(config, &connection, vault, once, |obstacle| {
        record.obstacle = obstacle.map(str::to_owned);
        // A full disk or a closed output is no reason to poll, nor to end.
        if let Err(e) = record.write(&state) {
            tracing::error!("{e}");
        }
        let text = match obstacle {
            Some(obstacle) => format!("not polling yet: {obstacle}"),
            None => "this build can continue every open run now".to_owned(),
        };
        let link = link.iter().filter(|_| obstacle.is_some()).map(|link| format!("dashboard  {link}"));
        for line in [text].into_iter().chain(link) {
            if let Err(e) = out.print_text(&line) {
                tracing::error!("{e}");
            }
        }
    })
    .await
}

/// Runs the workers and loops until the stop flag is raised or a part fails, and then stops them.
async fn run_engine(
    config: &StewardConfig,
    up: &crate::cli::UpArgs,
    services: StartedServices,
    listen: Option<SocketAddr>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let StartedServices { raise, ui, vault, context, mut failures, claimed, .. } = services;
    let clerk = engine::start_clerk_worker(config, &context)?;
    // The web page is known only of a server that this process started.
    let mut engine = engine::start_engine(config, &context, vault, ui.is_some()).await?;
    if claimed {
        engine.registered.include_claim();
    }
    let runtime = UpRuntime { config, context: &context, engine: &engine, ui: ui.as_deref(), listen };
    let outcome = run_until_stopped(&runtime, up, &mut failures, out).await;
    raise.send_replace(true);
    engine.shut_down().await;
    // A worker that panicked has already logged why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    outcome
}

/// The parts that `up` keeps running.
struct UpRuntime<'a> {
    config: &'a StewardConfig,
    context: &'a WorkerContext,
    engine: &'a Engine,
    ui: Option<&'a str>,
    listen: Option<SocketAddr>,
}

async fn run_until_stopped(
    runtime: &UpRuntime<'_>,
    up: &crate::cli::UpArgs,
    failures: &mut mpsc::UnboundedReceiver<anyhow::Error>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let mut stop = runtime.context.stop.clone();
    if !up.once && !*stop.borrow() {
        out.print_text(&super::schedules::describe_plan(&runtime.engine.registered))?;
    }
    let drain = drain::read_drain(runtime.engine.parts.writer.root());
    if let Some(drain) = drain.as_ref().filter(|_| up.tick_now) {
        out.print_text(&format!("nothing is ticked now: {}", describe_drain(drain)))?;
    } else if up.once || up.tick_now {
        tokio::select! {
            round = round::tick_all(runtime) => {
                let round = round?;
                out.print_value(&round, || round::describe_round(&round))?;
                if up.once {
                    run_unless_stopped(&runtime.context.stop, runtime.engine.write_all_timestamps()).await;
                    return Ok(round.exit_code());
                }
            }
            failed = failures.recv() => return Err(failed.context("the workers ended unexpectedly")?),
            () = wait_for_stop(&mut stop) => return end_on_request(out),
        }
    }
    runtime.engine.begin_waking();
    if !*stop.borrow() {
        out.print_text(&describe_addresses(runtime, up)?)?;
    }
    tokio::select! {
        failed = failures.recv() => Err(failed.context("the workers ended unexpectedly")?),
        () = wait_for_stop(&mut stop) => end_on_request(out),
    }
}

/// Reports that the process was asked to end, which may take some seconds.
fn end_on_request(out: CommandOutput) -> anyhow::Result<CommandExit> {
    out.print_text("ending …; unfinished work goes on at the next start")?;
    Ok(CommandExit::Ok)
}

/// Runs `work`; `None` if the stop flag is raised before it is done.
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

/// The address of the dashboard; unless it is unwanted, as a link that logs the operator in.
fn describe_dashboard(config: &StewardConfig, up: &crate::cli::UpArgs, address: SocketAddr) -> anyhow::Result<String> {
    if up.no_login_link {
        return Ok(format!("{}; `steward login` prints a link", web::describe_server(config, address)));
    }
    web::create_operator_login_link(config, address)
}

fn describe_addresses(runtime: &UpRuntime<'_>, up: &crate::cli::UpArgs) -> anyhow::Result<String> {
    let UpRuntime { config, ui, listen, .. } = *runtime;
    let mut lines = vec![format!("vault      {}", config.vault_folder()?.display())];
    if let Some(address) = listen {
        lines.push(format!("dashboard  {}", describe_dashboard(config, up, address)?));
    }
    if let Some(ui) = ui {
        lines.push(format!("schedules  {ui}/namespaces/{}/schedules", temporal::configured_namespace()));
    }
    let root = VaultRoot::open(config.vault_folder()?)?;
    lines.push(format!("records    {}", root.path().join(root.locate_own_folder("event")).display()));
    lines.push("up; Ctrl-C ends it".into());
    Ok(lines.join("\n"))
}
