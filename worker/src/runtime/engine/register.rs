//! Keeps the schedules in step with the matters while the engine runs.
//!
//! One round of registration at a time; requests that come during a round are served by the next one,
//! all together. A round that failed in part is tried again after the next scan.

use super::create_interval;
use crate::config::StewardConfig;
use crate::registrar::ScheduleRegistrar;
use crate::registrar::desired;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use steward_activities::vault::NewInterval;
use steward_domain::record::path::RecordPath;
use steward_vault::index::Index;
use tokio::sync::{Notify, mpsc, watch as flag};

/// Registers the schedules of one vault.
pub(super) struct RegistrationLoop {
    pub(super) registrar: ScheduleRegistrar,
    index: Arc<Index>,
    config: StewardConfig,
    requests: Notify,
    /// Some schedule is not as it should be, because the server gave no answer.
    behind: AtomicBool,
    /// How many rounds have begun.
    begun: AtomicU64,
    /// How many have ended.
    ended: flag::Sender<u64>,
}

impl RegistrationLoop {
    pub(super) fn new(registrar: ScheduleRegistrar, index: Arc<Index>, config: StewardConfig, behind: bool) -> Self {
        let (requests, begun, (ended, _)) = (Notify::new(), AtomicU64::new(0), flag::channel(0));
        Self { registrar, index, config, requests, behind: AtomicBool::new(behind), begun, ended }
    }

    /// Asks for a round that begins from now on; returns its number.
    pub(super) fn request_round(&self) -> u64 {
        // Read first: a round that begins in between is one that begins from now on.
        let round = self.begun.load(Ordering::SeqCst).saturating_add(1);
        self.requests.notify_one();
        round
    }

    /// Asks for a round if the last one left something to do.
    pub(super) fn request_round_if_behind(&self) {
        if self.behind.load(Ordering::Relaxed) {
            self.request_round();
        }
    }

    /// The number of the round that ended last.
    pub(super) fn subscribe_rounds(&self) -> flag::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Serves requests, and compares the schedules regularly, until the process ends.
    pub(super) async fn run(self: Arc<Self>) {
        let mut check = create_interval(self.config.schedule_check_seconds);
        loop {
            tokio::select! {
                () = self.requests.notified() => {}
                // Schedules may have vanished at the server.
                _ = check.tick() => {}
            }
            check.reset();
            let round = self.begun.fetch_add(1, Ordering::SeqCst).saturating_add(1);
            self.behind.store(false, Ordering::Relaxed);
            let behind = self.register_schedules().await.unwrap_or_else(|e| {
                tracing::error!(error = %format!("{e:#}"), "failed to register the schedules; trying again with the next scan");
                true
            });
            self.behind.fetch_or(behind, Ordering::Relaxed);
            self.ended.send_replace(round);
        }
    }

    /// Whether some schedule could not be registered.
    async fn register_schedules(&self) -> anyhow::Result<bool> {
        let plan = desired::plan_schedules(&self.registrar, &self.index, &self.config).await?;
        let outcome = desired::apply_schedules(&self.registrar, plan).await;
        tracing::info!(
            created = outcome.created,
            updated = outcome.updated,
            paused = outcome.paused,
            deleted = outcome.deleted,
            "schedules registered"
        );
        Ok(outcome.is_behind())
    }

    /// Gives schedules the intervals that ticks ask for, one after the other; of one matter the last counts.
    pub(super) async fn apply_new_intervals(self: Arc<Self>, mut changes: mpsc::UnboundedReceiver<NewInterval>) {
        let mut wanted: BTreeMap<RecordPath, u32> = BTreeMap::new();
        loop {
            let Some((matter, seconds)) = wanted.pop_first() else {
                let Some(change) = changes.recv().await else { return };
                wanted.insert(change.matter, change.seconds);
                continue;
            };
            let edit = self.registrar.set_matter_interval(matter.slug(), seconds);
            tokio::pin!(edit);
            // Taken in meanwhile, so that they do not pile up where the server is slow.
            let edited = loop {
                tokio::select! {
                    edited = &mut edit => break edited,
                    Some(change) = changes.recv() => drop(wanted.insert(change.matter, change.seconds)),
                }
            };
            if let Err(e) = edited {
                tracing::warn!(matter = %matter, "failed to {e}; trying again with the next scan");
                self.behind.store(true, Ordering::Relaxed);
            }
        }
    }
}
