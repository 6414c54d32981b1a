//! Keeps the schedules in agreement with the matters while the engine runs.
//!
//! One round of registration runs at a time. The next round serves all requests that come meanwhile. A round that
//! failed in part is repeated after the next scan.

use super::{OpenedVault, create_interval};
use crate::config::StewardConfig;
use crate::registrar::ScheduleRegistrar;
use crate::registrar::desired;
use chrono::Utc;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use steward_activities::steward::tick::NewInterval;
use steward_domain::record::path::RecordPath;
use steward_vault::action::moves::settle_moves;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::drain;
use steward_vault::index::Index;
use tokio::sync::{Notify, mpsc, watch as flag};

/// Registers the schedules of one vault.
pub(super) struct RegistrationLoop {
    pub(super) registrar: ScheduleRegistrar,
    writer: Arc<VaultWriter>,
    index: Arc<Index>,
    config: StewardConfig,
    requests: Notify,
    /// Whether some schedule is out of date because the server did not answer.
    behind: AtomicBool,
    /// How many rounds have begun.
    begun: AtomicU64,
    /// The number of the round that ended last.
    ended: flag::Sender<u64>,
}

impl RegistrationLoop {
    pub(super) fn new(registrar: ScheduleRegistrar, parts: &OpenedVault, config: StewardConfig, behind: bool) -> Self {
        let OpenedVault { writer, index, .. } = parts.clone();
        let (requests, begun, (ended, _)) = (Notify::new(), AtomicU64::new(0), flag::channel(0));
        Self { registrar, writer, index, config, requests, behind: AtomicBool::new(behind), begun, ended }
    }

    /// Requests a round that begins after this call; returns its number.
    pub(super) fn request_round(&self) -> u64 {
        // Read before notifying: a round that begins in between counts as well.
        let round = self.begun.load(Ordering::SeqCst).saturating_add(1);
        self.requests.notify_one();
        round
    }

    /// Requests a round if the last one left something to do.
    pub(super) fn request_round_if_behind(&self) {
        if self.behind.load(Ordering::Relaxed) {
            self.request_round();
        }
    }

    /// Follows the number of the round that ended last.
    pub(super) fn subscribe_rounds(&self) -> flag::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Serves requests, and compares the schedules regularly, until the process ends.
    pub(super) async fn run(self: Arc<Self>) {
        let mut check = create_interval(self.config.schedule_check_seconds);
        loop {
            tokio::select! {
                () = self.requests.notified() => {}
                // Schedules may have been deleted at the server.
                _ = check.tick() => {}
            }
            check.reset();
            let round = self.begun.fetch_add(1, Ordering::SeqCst).saturating_add(1);
            self.behind.store(false, Ordering::Relaxed);
            let behind = self.register_schedules().await.unwrap_or_else(|e| {
                let error = format!("{e:#}");
                tracing::error!(%error, "failed to register the schedules; trying again at the next scan");
                true
            });
            self.behind.fetch_or(behind, Ordering::Relaxed);
            self.ended.send_replace(round);
        }
    }

    /// Registers all schedules; returns whether some of them failed.
    async fn register_schedules(&self) -> anyhow::Result<bool> {
        // A scan may just have seen a renamed matter that is not recorded yet, and must not become a new one.
        while settle_moves(&self.writer, &self.index, Utc::now()).await? > 0 {}
        // A drain may have begun or ended since the last round.
        let registrar = self.registrar.clone().with_drain(drain::is_draining(self.writer.root()));
        let plan = desired::plan_schedules(&registrar, &self.index, &self.config).await?;
        let outcome = desired::apply_schedules(&registrar, plan).await;
        tracing::info!(
            created = outcome.created,
            moved = outcome.moved,
            updated = outcome.updated,
            paused = outcome.paused,
            deleted = outcome.deleted,
            "schedules registered"
        );
        Ok(outcome.is_behind())
    }

    /// Gives schedules the intervals that ticks request, one after the other. For each matter the last request counts.
    pub(super) async fn apply_new_intervals(self: Arc<Self>, mut changes: mpsc::UnboundedReceiver<NewInterval>) {
        let mut wanted: BTreeMap<RecordPath, u32> = BTreeMap::new();
        loop {
            let Some((matter, seconds)) = wanted.pop_first() else {
                let Some(change) = changes.recv().await else { return };
                wanted.insert(change.matter, change.seconds);
                continue;
            };
            let edit = self.registrar.set_matter_interval(&matter, seconds);
            tokio::pin!(edit);
            // Requests are received meanwhile, so that they do not pile up if the server is slow.
            let edited = loop {
                tokio::select! {
                    edited = &mut edit => break edited,
                    Some(change) = changes.recv() => drop(wanted.insert(change.matter, change.seconds)),
                }
            };
            if let Err(e) = edited {
                tracing::warn!(matter = %matter, "failed to {e}; trying again at the next scan");
                self.behind.store(true, Ordering::Relaxed);
            }
        }
    }
}
