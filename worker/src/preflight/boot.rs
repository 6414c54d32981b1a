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
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// The pause between two checks: 30 s.
const PAUSE: Duration = Duration::from_secs(30);

/// Returns when this build can continue every open run of the vault. Until then `on_change` is called with the reason
/// whenever it changes, and at the end with `None` if there was one.
///
/// A server that does not answer is asked again.
///
/// # Errors
/// The server refuses, the index cannot be read, or `on_change` fails.
pub(crate) async fn wait_until_runs_are_safe(
    config: &StewardConfig,
    connection: &TemporalConnection,
    vault: &OpenedVault,
    mut on_change: impl FnMut(Option<&str>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let owner = Some(vault.writer.identity().clone());
    let registrar = desired::build_registrar(connection.client.clone(), config, owner, |_| ());
    let reader = RunReader::new(connection.client.clone(), registrar, &config.task_queue);
    let mut reason: Option<String> = None;
    let mut clock = interval_at(Instant::now() + PAUSE, PAUSE);
    loop {
        let report = retry_unanswered("check the open runs", &connection.address, async || {
            check_open_runs(&reader, vault).await
        })
        .await?;
        let found = describe_obstacle(&report);
        if found != reason {
            match &found {
                Some(found) => tracing::error!("not polling yet, checking again every {} s: {found}", PAUSE.as_secs()),
                None => tracing::info!("this build can continue every open run now"),
            }
            on_change(found.as_deref())?;
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
