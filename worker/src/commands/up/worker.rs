//! The command `steward worker`: serves clerk calls at once, and the vault as soon as its lock is free. A tenant's process
//! serves both only once it owns the vault.
//!
//! It joins a configured Temporal server and must not start one.

use super::{
    BootReport, ProcessCleanup, check_open_runs, end_on_request, install_stop_handler, log_warnings, run_unless_stopped,
};
use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::fleet;
use crate::registrar::desired;
use crate::runtime::engine::{self, Engine, OpenedVault, wait_for_stop};
use crate::runtime::sdk_workers::{self, TemporalConnection, WorkerContext};
use crate::runtime::supervisor;
use crate::temporal::{self, note};
use anyhow::{Context, bail};
use std::sync::Arc;
use std::thread::JoinHandle;
use steward_fleet::VaultOwnership;
use tokio::sync::watch;

/// Serves clerk calls, and also the vault as soon as its lock is free.
pub(crate) async fn run_worker(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    install_stop_handler(raise.clone())?;
    if config.fleet.is_some() && config.vault.is_none() {
        bail!("a tenant's worker serves its own vault alone: pass --vault <folder> or set STEWARD_VAULT");
    }
    let telemetry = crate::telemetry::init_telemetry(false)?;
    log_warnings(config);
    let address = temporal::find_server_address(config)?;
    let Some(client) =
        run_unless_stopped(&stop, temporal::connect_patiently(config, || telemetry.create_client_plugins())).await
    else {
        return Ok(CommandExit::Ok);
    };
    let connected = TemporalConnection { client: client?, address: address.clone() };
    // Otherwise its clerk would answer the calls of another vault.
    let checked = desired::check_owner_patiently(config, &connected.client, &address);
    let Some(checked) = run_unless_stopped(&stop, checked).await else { return Ok(CommandExit::Ok) };
    checked?;
    let (context, mut failures) =
        sdk_workers::create_worker_context(config, connected, telemetry.build_runtime_options()?, stop.clone())?;
    let context = WorkerContext { key_health: telemetry.observe_key_health(), ..context };
    // A tenant's queue of clerk calls belongs to the copy that owns the vault.
    let mut clerk = match config.fleet {
        None => Some(start_clerk(config, &context, out)?),
        Some(_) => None,
    };
    supervisor::report_started(context.pulse.clone(), stop.clone());
    let mut cleanup = ProcessCleanup::default();
    let mut engine = None;
    let outcome = {
        let serving = acquire_vault(config, &context, &address, &mut cleanup, out);
        tokio::pin!(serving);
        let mut stop = stop.clone();
        let mut opened = false;
        loop {
            tokio::select! {
                result = &mut serving, if !opened => {
                    opened = true;
                    match result {
                        Ok(Some(served)) => (engine, clerk) = (Some(served.engine), served.clerk.or(clerk)),
                        Ok(None) => {}
                        Err(e) => break Err(e),
                    }
                }
                failed = failures.recv() => break failed.context("the workers ended unexpectedly").and_then(Err),
                () = wait_for_stop(&mut stop), if opened => break end_on_request(out),
            }
        }
    };
    raise.send_replace(true);
    if let Some(engine) = engine {
        engine.shut_down().await;
    }
    // A worker that panicked has already logged why.
    let _ = tokio::task::spawn_blocking(move || clerk.map(JoinHandle::join)).await;
    cleanup.shut_down(config).await?;
    telemetry.shutdown().await;
    outcome
}

/// Waits for the lock of the vault and begins to serve it; `None` if the process is stopped before, or has no vault.
async fn acquire_vault(
    config: &StewardConfig,
    context: &WorkerContext,
    address: &str,
    cleanup: &mut ProcessCleanup,
    out: CommandOutput,
) -> anyhow::Result<Option<ServedVault>> {
    let mut stop = context.stop.clone();
    if config.vault.is_none() {
        return Ok(None);
    }
    let Some(vault) = OpenedVault::open_when_unlocked(config, &mut stop).await? else { return Ok(None) };
    cleanup.writer = Some(Arc::clone(&vault.writer));
    if vault.ownership.is_some() {
        let (ownership, failed) = (vault.ownership.clone(), context.failed.clone());
        // Nobody listens only while the process ends.
        tokio::spawn(async move { drop(failed.send(fleet::wait_for_loss(ownership).await)) });
    }
    let claimed = tokio::select! {
        claimed = desired::claim_namespace(config, &context.client, address, &vault, false) => claimed?,
        () = wait_for_stop(&mut stop) => return Ok(None),
    };
    let record = note::describe_this_process(config, "worker", address);
    record.write(&config.state_dir()?)?;
    let checked = check_open_runs(config, context, &vault, BootReport { record, link: None, once: false, out });
    let Some(checked) = run_unless_stopped(&context.stop, checked).await else { return Ok(None) };
    checked?;
    let silent = vault.ownership.as_ref().map(VaultOwnership::watch_silence);
    let context = &WorkerContext { silent, ..context.clone() };
    let clerk = config.fleet.as_ref().map(|_| start_clerk(config, context, out)).transpose()?;
    let mut engine = engine::start_engine(config, context, vault, false).await?;
    if claimed {
        engine.registered.include_claim();
    }
    engine.begin_waking();
    if !*stop.borrow() {
        out.print_text(&crate::commands::schedules::describe_plan(&engine.registered))?;
        out.print_text("serving the vault")?;
    }
    Ok(Some(ServedVault { engine, clerk }))
}

/// What serves a vault.
struct ServedVault {
    engine: Engine,
    /// The worker for clerk calls, if it was started for this vault alone.
    clerk: Option<JoinHandle<()>>,
}

fn start_clerk(config: &StewardConfig, context: &WorkerContext, out: CommandOutput) -> anyhow::Result<JoinHandle<()>> {
    let clerk = engine::start_clerk_worker(config, context)?;
    out.print_text("serving clerk calls")?;
    Ok(clerk)
}
