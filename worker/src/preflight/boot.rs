//! The boot check: a process that holds a vault does not poll before its build can continue the open runs (S3-62).
//!
//! It judges the open runs of the vault's task queue, and tries again every 30 s while this build would break one. Ticks
//! end by their own time limit of 5 minutes and are repeated, so the check usually passes by itself. It must not end a
//! run: a person decides that.

use super::{Preflight, PreflightReport, RunReader, find_open_run_schedules};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::runtime::engine::OpenedVault;
use crate::runtime::sdk_workers::TemporalConnection;
use crate::temporal::start_retry::retry_unanswered;
use anyhow::bail;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// The pause between two checks: 30 s.
const PAUSE: Duration = Duration::from_secs(30);
/// How long the first check may take before it is shown: 5 s.
const QUIET_START: Duration = Duration::from_secs(5);
/// What is shown meanwhile.
const CHECKING: &str = "the open runs are being checked";

/// Returns when this build can continue every open run of the vault. Until then `on_change` is called with the reason
/// whenever it changes, and at the end with `None` if there was one.
///
/// A server that does not answer is asked again. With `once` it does not wait for a run.
///
/// # Errors
/// The server refuses, or the index cannot be read. With `once`: this build cannot continue every open run.
pub(crate) async fn wait_until_runs_are_safe(
    config: &StewardConfig,
    connection: &TemporalConnection,
    vault: &OpenedVault,
    once: bool,
    mut on_change: impl FnMut(Option<&str>),
) -> anyhow::Result<()> {
    let owner = Some(vault.writer.identity().clone());
    let registrar = desired::build_registrar(connection.client.clone(), config, owner, |_| ());
    let reader = RunReader::new(connection.client.clone(), registrar, &config.task_queue);
    let mut reason: Option<String> = None;
    let mut clock = interval_at(Instant::now() + PAUSE, PAUSE);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let checking = retry_unanswered("check the open runs", &connection.address, async || {
            check_open_runs(&reader, vault).await
        });
        tokio::pin!(checking);
        let report = match timeout(QUIET_START, &mut checking).await {
            Ok(report) => report?,
            Err(_) => {
                if reason.is_none() {
                    on_change(Some(CHECKING));
                    reason = Some(CHECKING.to_owned());
                }
                checking.await?
            }
        };
        let found = describe_obstacle(&report);
        if let Some(found) = found.as_ref().filter(|_| once) {
            bail!("nothing was ticked: {found}");
        }
        if found != reason {
            match &found {
                Some(found) => tracing::error!("not polling yet, checking again every {} s: {found}", PAUSE.as_secs()),
                None => tracing::info!("this build can continue every open run now"),
            }
            on_change(found.as_deref());
            reason = found;
        }
        if reason.is_none() {
            return Ok(());
        }
        clock.tick().await;
    }
}

/// Judges the runs that are open now. Visibility may not know yet what the last holder began a moment before it ended.
async fn check_open_runs(reader: &RunReader, vault: &OpenedVault) -> anyhow::Result<PreflightReport> {
    let schedules = find_open_run_schedules(&vault.index).await?;
    Preflight::new(0)?.check_open_runs_of(reader, schedules).await
}

/// Why this build must not poll; `None` if it may.
fn describe_obstacle(report: &PreflightReport) -> Option<String> {
    let breaking: Vec<String> = report.list_breaking().map(ToString::to_string).collect();
    if !breaking.is_empty() {
        return Some(format!("this build would break open runs: {}", breaking.join("; ")));
    }
    let first = report.not_checked.first()?;
    Some(format!("not every open run could be checked: {first}"))
}
