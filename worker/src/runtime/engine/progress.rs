//! Reports to the fleet's database what this process has done, for `steward fleet status`.
//!
//! It is news for people and no condition of anything: a report that fails is left out.

use super::OpenedVault;
use crate::config::StewardConfig;
use anyhow::Context;
use chrono::Utc;
use std::time::Duration;
use steward_domain::fleet::ownership::OwnerProgress;
use steward_domain::steward::tick::Cadence;
use steward_fleet::VaultOwnership;
use steward_server::views::VaultViews;
use tokio::time::{MissedTickBehavior, interval};

/// The pause between two reports: 30 s.
const EVERY: Duration = Duration::from_secs(30);

/// Starts the reports; `None` for a vault that belongs to no fleet.
pub(super) fn spawn_progress_reports(
    parts: &OpenedVault,
    config: &StewardConfig,
) -> Option<tokio::task::JoinHandle<()>> {
    let ownership = parts.ownership.clone()?;
    let views = VaultViews::new(parts.writer.root().clone(), (*parts.index).clone());
    Some(tokio::spawn(report_regularly(ownership, views, config.cadence)))
}

async fn report_regularly(ownership: VaultOwnership, views: VaultViews, cadence: Cadence) {
    let mut clock = interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        if let Err(e) = report(&ownership, &views, &cadence).await {
            tracing::debug!("the fleet gets no report now: {e:#}");
        }
    }
}

async fn report(ownership: &VaultOwnership, views: &VaultViews, cadence: &Cadence) -> anyhow::Result<()> {
    let now = Utc::now();
    let lag = views.measure_tick_lag(cadence, now).await.context("failed to read the ticks")?;
    let counts = views.read().count_records(now).await.context("failed to count the signals")?;
    let progress =
        OwnerProgress { last_check: lag.newest, matters_late: lag.late, signals_fresh: counts.fresh_signals };
    Ok(ownership.report_progress(&progress).await?)
}
