//! The command `steward drain`: no new run begins and the open ones end, so that a new build can take over.
//!
//! It writes the drain file, pauses the schedules and waits up to 5 minutes. If a run is still under way then, or if the
//! command is interrupted, it ends the drain again. It must not end a run. `--end` resumes the schedules.

use crate::cli::DrainArgs;
use crate::cli::output::{CommandExit, CommandOutput, print_progress};
use crate::config::StewardConfig;
use crate::preflight::{RunReader, WorkflowRun, find_open_run_schedules, list_begun_runs};
use crate::registrar::desired;
use crate::temporal;
use anyhow::{Context, bail};
use chrono::Utc;
use serde_json::json;
use std::time::Duration;
use steward_server::temporal::service_pause::describe_drain;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::drain::{self, VaultDrain};
use steward_vault::index::Index;
use temporalio_client::Client;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long open runs may take to end: 5 min, which is the time limit of a tick.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two looks at the open runs: 2 s. Visibility may lag behind, so two looks must find none.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) async fn run(config: &StewardConfig, args: &DrainArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    if args.end {
        return end_drain(config, &root, out).await;
    }
    if temporal::is_nothing_running(config).await? {
        bail!("nothing is running for this vault, so there is nothing to drain: start the new build");
    }
    let client = temporal::connect_client(config, Vec::new()).await?;
    desired::check_owner(config, &client).await?;
    let (raise, interrupted) = watch::channel(false);
    super::up::install_stop_handler(raise)?;
    let begun = drain::begin_drain(&root, &VaultDrain { at: Some(Utc::now()), by: config.operator.clone() })?;
    out.print_text(&format!("{}; waiting for open runs to end …", describe_drain(&begun)))?;
    let index = super::open_index(config).await?;
    let drained =
        super::up::run_unless_stopped(&interrupted, timeout(PATIENCE, wait_for_runs(config, &client, &root, &index)));
    match drained.await {
        Some(Ok(Ok(()))) => {
            out.print_value(&json!({"drained": true, "open": []}), || {
                "drained: no run is under way. Stop the process, start the new build, then run `steward drain --end`."
                    .into()
            })?;
            Ok(CommandExit::Ok)
        }
        Some(Ok(Err(e))) => {
            resume_schedules(config, &client, &root, &index).await?;
            Err(e.context("the drain was ended again"))
        }
        unfinished => {
            let open: Vec<String> = match unfinished {
                Some(_) => list_open_runs(config, &client, &root, &index).await?,
                None => Vec::new(),
            };
            resume_schedules(config, &client, &root, &index).await?;
            out.print_value(&json!({"drained": false, "open": open}), || describe_failure(&open))?;
            Ok(CommandExit::Incomplete)
        }
    }
}

fn describe_failure(open: &[String]) -> String {
    let ended = "the drain has ended and the schedules are resumed";
    if open.is_empty() {
        format!("interrupted: {ended}")
    } else {
        format!("still under way after {} min: {}; {ended}", PATIENCE.as_secs() / 60, open.join(", "))
    }
}

/// Pauses the schedules and waits until two looks in a row find no run under way.
async fn wait_for_runs(config: &StewardConfig, client: &Client, root: &VaultRoot, index: &Index) -> anyhow::Result<()> {
    let mut clock = interval(PAUSE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A schedule that was made a moment ago may not be in the first listing.
    loop {
        let changed = apply_schedules(config, client, root, index).await?;
        let mut quiet = 0;
        while quiet < 2 {
            clock.tick().await;
            let open = list_open_runs(config, client, root, index).await?;
            quiet = if open.is_empty() { quiet + 1 } else { 0 };
            if !open.is_empty() {
                tracing::debug!("waiting for {}", open.join(", "));
            }
        }
        if changed == 0 {
            return Ok(());
        }
    }
}

/// The ids of the runs that a worker has begun and not ended.
async fn list_open_runs(
    config: &StewardConfig,
    client: &Client,
    root: &VaultRoot,
    index: &Index,
) -> anyhow::Result<Vec<String>> {
    let registrar = desired::build_registrar(client.clone(), config, VaultIdentity::read(root)?, |_| ());
    let reader = RunReader::new(client.clone(), registrar, &config.task_queue);
    let schedules = find_open_run_schedules(index).await?;
    let runs = list_begun_runs(&reader, schedules).await?;
    Ok(runs.into_iter().map(|WorkflowRun { workflow_id, .. }| workflow_id).collect())
}

/// Brings the schedules in line with the drain file: paused while it stands, resumed when it is gone. Returns how many
/// were changed.
async fn apply_schedules(
    config: &StewardConfig,
    client: &Client,
    root: &VaultRoot,
    index: &Index,
) -> anyhow::Result<usize> {
    let owner = VaultIdentity::read(root)?;
    // A listing lags behind, so it may not show yet what a drain has just paused. Nothing may stay paused by it.
    let resumes = !drain::is_draining(root);
    let registrar = desired::build_registrar(client.clone(), config, owner, |s| s.describe_all = resumes)
        .with_progress(print_progress);
    let plan = desired::plan_schedules(&registrar, index, config).await?;
    let outcome = desired::apply_schedules(&registrar, plan).await;
    if let Some(conflict) = outcome.conflict {
        return Err(conflict.into());
    }
    let changed = outcome.paused + outcome.resumed + outcome.created + outcome.routines_changed;
    let failed = outcome.errors.into_iter().map(|e| e.message).chain(outcome.routine_errors).next();
    failed.map_or(Ok(changed), |message| bail!("failed to {message}"))
}

async fn end_drain(config: &StewardConfig, root: &VaultRoot, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let was_drained = drain::end_drain(root)?;
    let text = if was_drained { "the drain has ended" } else { "the vault was not drained" };
    if temporal::is_nothing_running(config).await? {
        out.print_value(&json!({"was_drained": was_drained, "resumed": false}), || {
            format!("{text}; the schedules are resumed when a process serves the vault")
        })?;
        return Ok(CommandExit::Ok);
    }
    let failed = "the drain has ended, but the schedules are still paused; run `steward drain --end` again";
    let client = temporal::connect_client(config, Vec::new()).await.context(failed)?;
    let index = super::open_index(config).await?;
    apply_schedules(config, &client, root, &index).await.context(failed)?;
    out.print_value(&json!({"was_drained": was_drained, "resumed": true}), || {
        format!("{text}; the schedules are resumed")
    })?;
    Ok(CommandExit::Ok)
}

/// Ends the drain that this command has begun.
async fn resume_schedules(
    config: &StewardConfig,
    client: &Client,
    root: &VaultRoot,
    index: &Index,
) -> anyhow::Result<()> {
    drain::end_drain(root)?;
    apply_schedules(config, client, root, index).await.context("run `steward drain --end`").map(drop)
}
