//! How far everything has come, looked at twice a second and told to whoever shows it live.
//!
//! One look for all who listen: what SQLite says costs microseconds while nothing happens, and the brake is one `stat`.

use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::index::Index;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often is looked: 500 ms, so that a stop shows within a second.
const EVERY: Duration = Duration::from_millis(500);

/// What may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveRevision {
    /// The newest place in the chain of audit records.
    pub(crate) seq: u64,
    pub(crate) newest_signal_at: Option<DateTime<Utc>>,
    pub(crate) stopped: bool,
    /// Another one whenever anybody has written anything.
    pub(crate) revision: i64,
}

/// Looks until told to end; the receiver always has the newest.
pub(crate) fn spawn_change_notifier(
    root: VaultRoot,
    index: std::sync::Arc<Index>,
    mut stop: watch::Receiver<bool>,
) -> watch::Receiver<LiveRevision> {
    let (tell, told) = watch::channel(LiveRevision::default());
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watcher = None;
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = clock.tick() => {}
            }
            let stopped = stop::is_stopped(&root);
            if watcher.is_none() {
                watcher = index.open_watcher().await.inspect_err(|e| tracing::warn!("cannot look for news: {e}")).ok();
            }
            let pulse = match &mut watcher {
                Some(watching) => watching.current_revision().await.ok(),
                None => None,
            };
            let Some(pulse) = pulse else {
                watcher = None;
                continue;
            };
            let (seq, newest_signal_at, revision) = (pulse.newest_action_seq, pulse.newest_signal_at, pulse.revision);
            let beat = LiveRevision { seq, newest_signal_at, stopped, revision };
            tell.send_if_modified(|last| {
                let changed = *last != beat;
                *last = beat;
                changed
            });
        }
    });
    told
}
