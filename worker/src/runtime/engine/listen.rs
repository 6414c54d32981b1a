//! Brings the index up to date with the vault. File events are only hints; scans find every change.
//!
//! It must not wait for a server. Other parts do what follows from a change: [`super::wake`] wakes matters,
//! [`super::routines`] triggers the vault's own schedules, and [`super::register`] registers the schedules of matters.

use super::create_interval;
use super::log_problems;
use super::register::RegistrationLoop;
use super::routines::RoutineRequests;
use crate::config::StewardConfig;
use chrono::Utc;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::steward::guard::ExhaustedShares;
use steward_vault::action::moves::{follow_moves_in_ledger, settle_moves};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::watch::{ChangeHint, watch_vault};
use steward_vault::index::{Index, ScanChanges};
use steward_vault::steward::guard::Ledger;
use tokio::sync::{Notify, mpsc};
use tokio::time::MissedTickBehavior;

/// The time between two looks at what people said about notes: 2 s, because a command waits for it.
const SAID_SECONDS: u64 = 2;

/// Follows the changes of a vault while the engine runs.
pub(super) struct VaultListener {
    pub(super) writer: Arc<VaultWriter>,
    pub(super) index: Arc<Index>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) config: StewardConfig,
    pub(super) registration: Arc<RegistrationLoop>,
    pub(super) routines: RoutineRequests,
    /// Notified when a file is put into the drop folder.
    pub(super) inbox_changed: Arc<Notify>,
    /// Notified when the vault's folder is back in its place.
    pub(super) folder_returned: Arc<Notify>,
}

impl VaultListener {
    /// Follows changes until the process ends.
    pub(super) async fn run(self) {
        // One at a time: the watcher collects what changes while the index is busy.
        let (send, mut hints) = mpsc::channel(1);
        let _watcher = match watch_vault(self.writer.root(), send) {
            Ok(watcher) => Some(watcher),
            Err(e) => {
                tracing::warn!(error = %e, "failed to watch the vault; the periodic scan finds the changes");
                None
            }
        };
        self.request_waiting_work().await;
        // The first scan runs at once: files may have changed between the start and the watch.
        let mut scan = tokio::time::interval(Duration::from_secs(self.config.scan_seconds));
        scan.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut contents = create_interval(self.config.content_scan_seconds);
        let mut said = create_interval(SAID_SECONDS);
        loop {
            let synced = tokio::select! {
                news = self.index.cursors().wait_for_changes() => {
                    self.dispatch_news(news);
                    continue;
                }
                _ = scan.tick() => self.index.sync_all(self.writer.root(), Utc::now()).await,
                () = self.folder_returned.notified() => self.index.sync_all(self.writer.root(), Utc::now()).await,
                _ = said.tick() => {
                    // A command in another process keeps what a person said about a note.
                    if self.index.has_said_moves().await.unwrap_or(true) {
                        self.settle_moves().await;
                    }
                    continue;
                }
                _ = contents.tick() => self.index.sync_contents(self.writer.root(), Utc::now()).await,
                Some(hint) = hints.recv() => match hint {
                    ChangeHint::Paths(paths) => self.index.sync_paths(self.writer.root(), &paths, Utc::now()).await,
                    ChangeHint::Rescan => self.index.sync_all(self.writer.root(), Utc::now()).await,
                    ChangeHint::Inbox => {
                        self.inbox_changed.notify_one();
                        continue;
                    }
                },
            };
            match synced {
                Ok(report) => log_problems(&report),
                Err(e) => tracing::error!(error = %e, "failed to bring the index up to date"),
            }
            // Before anything acts on the news: a renamed matter is no new one.
            self.settle_moves().await;
            self.dispatch_news(self.index.cursors().take_changes());
            self.registration.request_round_if_behind();
            // Commands in other processes mark matters, too.
            self.index.cursors().notify_wakes();
        }
    }

    /// Records notes that were renamed or moved.
    async fn settle_moves(&self) {
        match settle_moves(&self.writer, &self.index, Utc::now()).await {
            Ok(0) => {}
            Ok(moved) => {
                tracing::info!(moved, "notes were renamed or moved; what is kept about them follows");
                self.registration.request_round();
            }
            Err(e) => tracing::warn!("failed to record notes that moved, trying again later: {e}"),
        }
        if let Err(e) = follow_moves_in_ledger(&self.index, &self.ledger).await {
            tracing::warn!("failed to count the calls about notes that moved, trying again later: {e}");
        }
    }

    /// Requests work for events and records that came while no process listened: scans do not report them as new.
    async fn request_waiting_work(&self) {
        match self.index.signals().list_events_to_extract(1, &ExhaustedShares::default()).await {
            Ok(waiting) if waiting.is_empty() => {}
            Ok(_) => self.routines.extractor.notify_one(),
            Err(e) => {
                tracing::error!(error = %e, "failed to see whether events wait; the next scheduled run reads them")
            }
        }
        match self.index.actions().list_owed_deliveries().await {
            Ok(owing) if owing.is_empty() => {}
            Ok(_) => self.routines.tracker.notify_one(),
            Err(e) => tracing::error!(error = %e, "failed to see what is owed to the tracker"),
        }
    }

    fn dispatch_news(&self, news: ScanChanges) {
        if news.events_arrived {
            self.routines.extractor.notify_one();
        }
        if news.owing_arrived {
            self.routines.tracker.notify_one();
        }
        if news.signals_arrived {
            self.routines.router.notify_one();
        }
        if news.matters_changed {
            self.registration.request_round();
        }
    }
}
