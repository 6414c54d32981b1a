//! The change notifier: reads the current revision twice a second and notifies all live streams.
//!
//! One reader serves all streams. While nothing changes, a query to SQLite costs microseconds, and the stop file costs
//! one `stat`.

use super::VaultViews;
use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_vault::gates::stop;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often the revision is read: 500 ms, so that a stop shows within a second.
const EVERY: Duration = Duration::from_millis(500);

/// The state of the vault, as far as live streams need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveRevision {
    /// The position of the newest record in the audit chain.
    pub(crate) seq: u64,
    pub(crate) newest_signal_at: Option<DateTime<Utc>>,
    pub(crate) stopped: bool,
    /// The index's revision; it differs after every write of any process.
    pub(crate) revision: i64,
}

/// Starts the notifier; it runs until `stop` becomes `true`. The receiver always has the newest revision.
pub(crate) fn spawn_change_notifier(
    views: VaultViews,
    mut stop: watch::Receiver<bool>,
) -> watch::Receiver<LiveRevision> {
    let (sender, receiver) = watch::channel(LiveRevision::default());
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watcher = None;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = clock.tick() => {}
            }
            let stopped = stop::is_stopped(views.root());
            if watcher.is_none() {
                watcher = views
                    .read()
                    .open_watcher()
                    .await
                    .inspect_err(|e| tracing::warn!("failed to watch the index: {e}"))
                    .ok();
            }
            let indexed = match &mut watcher {
                Some(watcher) => watcher.current_revision().await.ok(),
                None => None,
            };
            let Some(indexed) = indexed else {
                watcher = None;
                continue;
            };
            let current = LiveRevision {
                seq: indexed.newest_action_seq,
                newest_signal_at: indexed.newest_signal_at,
                stopped,
                revision: indexed.revision,
            };
            sender.send_if_modified(|last| {
                let changed = *last != current;
                *last = current;
                changed
            });
        }
    });
    receiver
}
