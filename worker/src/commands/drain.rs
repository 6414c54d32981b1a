//! The command `steward drain`: no new run begins and the open ones end, so that a new build can take over.
//!
//! It writes the drain file, pauses the schedules and waits up to 5 minutes. If a run is still under way then, or if the
//! command fails or is interrupted, it ends the drain again; if it is killed, the drain lapses. It must not end a run, nor
//! change more of a schedule than its pause. `--end` resumes the schedules.

use crate::cli::DrainArgs;
use crate::cli::output::{CommandExit, CommandOutput, print_progress};
use crate::config::StewardConfig;
use crate::preflight::{RunReader, WorkflowRun, find_open_run_schedules, list_runs_under_way};
use crate::registrar::desired;
use crate::temporal::note::VaultHolder;
use crate::temporal::start_retry::retry_unanswered;
use crate::temporal::{self, read_served_queue};
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
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long open runs may take to end once the schedules are paused: 5 min, which is the time limit of a tick.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two looks at the open runs: 2 s. Visibility may lag behind, so two looks must find none.
const PAUSE: Duration = Duration::from_secs(2);
/// How often the drain is renewed: every 15 looks at the file, which is 30 s.
const LOOKS_PER_RENEWAL: u32 = 15;

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
    let command = DrainCommand { config, root: &root, index: super::open_index(config).await?, client };
    let wanted = VaultDrain::new(&config.operator, Utc::now());
    let begun = drain::begin_drain(&root, &wanted)?;
    let waited = command.wait(&begun, out).await;
    if let Ok(None) = waited {
        out.print_value(&json!({"drained": true, "open": []}), || {
            "drained: no run is under way. Stop the process, start the new build, then run `steward drain --end`."
                .into()
        })?;
        return Ok(CommandExit::Ok);
    }
    // The drain of another command is left to that one.
    let ended = match begun.is_same(&wanted) {
        true => command.end(&begun).await.map(|()| "the drain has ended and the schedules are resumed"),
        false => Ok("the drain of another command stands"),
    };
    match (waited, ended) {
        (Ok(obstacle), Ok(ended)) => {
            let DrainObstacle { open, why } = obstacle.unwrap_or_default();
            out.print_value(&json!({"drained": false, "open": open}), || format!("{why}{}; {ended}", open.join(", ")))?;
            Ok(CommandExit::Incomplete)
        }
        (Ok(_), Err(e)) => Err(e),
        (Err(e), Ok(ended)) => Err(e.context(ended)),
        (Err(e), Err(not_ended)) => Err(e.context(format!("{not_ended:#}"))),
    }
}

/// Why a drain did not come to its end.
#[derive(Default)]
struct DrainObstacle {
    /// The ids of the runs that are still under way.
    open: Vec<String>,
    why: String,
}

/// What the command works with.
struct DrainCommand<'a> {
    config: &'a StewardConfig,
    root: &'a VaultRoot,
    index: Index,
    client: Client,
}

impl DrainCommand<'_> {
    /// Waits until no run is under way; `None` if that is so, and else the obstacle.
    async fn wait(&self, begun: &VaultDrain, out: CommandOutput) -> anyhow::Result<Option<DrainObstacle>> {
        let (mut interrupt, mut terminate, mut hang_up) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        out.print_text(&format!("{}; waiting for open runs to end …", describe_drain(begun)))?;
        let interrupted = DrainObstacle { why: "interrupted".to_owned(), ..DrainObstacle::default() };
        tokio::select! {
            waited = self.wait_for_runs(begun) => waited,
            e = self.keep_alive(begun) => Err(e),
            _ = interrupt.recv() => Ok(Some(interrupted)),
            _ = terminate.recv() => Ok(Some(interrupted)),
            _ = hang_up.recv() => Ok(Some(interrupted)),
        }
    }

    /// Renews the drain. It returns only if the drain was ended by somebody else, or cannot be renewed.
    async fn keep_alive(&self, begun: &VaultDrain) -> anyhow::Error {
        let mut clock = interval(PAUSE);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 1_u32.. {
            clock.tick().await;
            if let Err(e) = self.check_in_force(begun) {
                return e;
            }
            if look % LOOKS_PER_RENEWAL == 0
                && let Err(e) = drain::renew_drain(self.root, begun, Utc::now())
            {
                return e.into();
            }
        }
        anyhow::anyhow!("the drain was not renewed")
    }

    /// # Errors
    /// The drain was ended by somebody else.
    fn check_in_force(&self, begun: &VaultDrain) -> anyhow::Result<()> {
        if !self.is_in_force(begun) {
            bail!("somebody ended the drain meanwhile: nothing is drained");
        }
        Ok(())
    }

    fn is_in_force(&self, begun: &VaultDrain) -> bool {
        drain::read_drain(self.root).is_some_and(|drain| drain.is_same(begun))
    }

    /// Pauses the schedules and waits until two looks in a row find no run under way.
    async fn wait_for_runs(&self, begun: &VaultDrain) -> anyhow::Result<Option<DrainObstacle>> {
        let mut open = Vec::new();
        // A schedule that was made a moment ago may not be in the first listing.
        let mut changed = self.apply_pauses().await?;
        let waiting = async {
            let mut clock = interval(PAUSE);
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let mut quiet = 0;
                while quiet < 2 {
                    clock.tick().await;
                    open = self.list_open_runs().await?;
                    quiet = if open.is_empty() { quiet + 1 } else { 0 };
                }
                if changed == 0 {
                    return anyhow::Ok(());
                }
                changed = self.apply_pauses().await?;
            }
        };
        match timeout(PATIENCE, waiting).await {
            Ok(waited) => {
                waited?;
                // Completing a drain that was ended would begin it again.
                self.check_in_force(begun)?;
                drain::complete_drain(self.root, begun)?;
                Ok(None)
            }
            Err(_) => {
                let why = format!("still under way after {} min: ", PATIENCE.as_secs() / 60);
                Ok(Some(DrainObstacle { open, why }))
            }
        }
    }

    /// The ids of the runs that are under way: those that a worker has begun, and all of them while a process serves the
    /// vault, because it begins the others any moment.
    async fn list_open_runs(&self) -> anyhow::Result<Vec<String>> {
        let registrar =
            desired::build_registrar(self.client.clone(), self.config, VaultIdentity::read(self.root)?, |_| ());
        let holder = VaultHolder::read(self.root, &self.config.state_dir()?);
        let serves = matches!(holder, VaultHolder::Runs(_) | VaultHolder::Silent(_));
        let reader = RunReader::new(self.client.clone(), registrar, &read_served_queue(self.config, &holder));
        let address = temporal::find_server_address(self.config)?;
        let runs = retry_unanswered("list the open runs", &address, async || {
            list_runs_under_way(&reader, find_open_run_schedules(&self.index).await?, serves).await
        });
        Ok(runs.await?.into_iter().map(|WorkflowRun { workflow_id, .. }| workflow_id).collect())
    }

    /// Pauses the schedules while the drain is in force, and resumes them afterwards. Returns how many were changed.
    async fn apply_pauses(&self) -> anyhow::Result<usize> {
        // A listing lags behind, so it may not show yet what a drain has just paused. Nothing may stay paused by it.
        let resumes = !drain::is_draining(self.root);
        let owner = VaultIdentity::read(self.root)?;
        let registrar = desired::build_registrar(self.client.clone(), self.config, owner, |s| s.describe_all = resumes)
            .with_progress(print_progress);
        let mut plan = desired::plan_schedules(&registrar, &self.index, self.config).await?;
        // Everything else follows from the settings of the process that serves the vault.
        if let Some(id) = plan.unread.first() {
            bail!("failed to read schedule {id}");
        }
        plan.retain_pauses();
        let outcome = desired::apply_schedules(&registrar, plan).await;
        if let Some(conflict) = outcome.conflict {
            return Err(conflict.into());
        }
        let changed = outcome.paused + outcome.resumed + outcome.routines_changed;
        let failed = outcome.errors.into_iter().map(|e| e.message).chain(outcome.routine_errors).next();
        failed.map_or(Ok(changed), |message| bail!("failed to {message}"))
    }

    /// Ends the drain that this command has begun.
    async fn end(&self, begun: &VaultDrain) -> anyhow::Result<()> {
        if self.is_in_force(begun) {
            drain::end_drain(self.root)?;
        }
        self.apply_pauses().await.context("the schedules are still paused: run `steward drain --end`").map(drop)
    }
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
    let failed = "the drain has ended, but schedules may still be paused: run `steward drain --end` again";
    let client = temporal::connect_client(config, Vec::new()).await.context(failed)?;
    let command = DrainCommand { config, root, index: super::open_index(config).await?, client };
    command.apply_pauses().await.context(failed)?;
    out.print_value(&json!({"was_drained": was_drained, "resumed": true}), || {
        format!("{text}; the schedules are resumed")
    })?;
    Ok(CommandExit::Ok)
}
