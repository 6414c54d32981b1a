//! The queue of changes that are not hinted at yet.
//!
//! A change waits 150 ms if more changes of the same file may follow. Other changes wait only until the index takes
//! them. A file counts once however often it changes, and very many files become one scan. So the queue stays bounded
//! while the index is busy.

use super::GatheredChanges;
use super::HintUrgency;
use super::MANY;
use super::WatchedPlace;
use notify::Event;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long changes of one file are gathered: 150 ms. An editor's save is several events within a few milliseconds, and
/// a person does not notice the delay.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(150);

/// The changes that are not hinted at yet.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    changes: Mutex<ChangeQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ChangeQueue {
    ready: GatheredChanges,
    /// Changes after which more may follow.
    waiting: GatheredChanges,
    /// The end of their wait.
    ripe_at: Option<Instant>,
    ended: bool,
}

impl PendingChanges {
    /// Adds an event that the system reports.
    pub(super) fn add_reported(&self, place: &WatchedPlace, reported: notify::Result<Event>) {
        let now = Instant::now();
        match reported {
            Ok(event) => {
                let urgency =
                    if event.need_rescan() { Some(HintUrgency::Later) } else { HintUrgency::classify_event(&event) };
                let Some(urgency) = urgency else { return };
                let mut gathered = GatheredChanges::default();
                gathered.add_event(place, &event);
                if !gathered.is_empty() {
                    self.lock_changes().add_changes(gathered, urgency, now);
                }
            }
            Err(error) => {
                tracing::debug!(?error, "a part of the watch failed; scanning instead");
                self.lock_changes().add_changes(
                    GatheredChanges { rescan: true, ..GatheredChanges::default() },
                    HintUrgency::Later,
                    now,
                );
            }
        }
        self.changed.notify_one();
    }

    /// Waits for changes that may be hinted at, and takes all of them; `None` after [`PendingChanges::close`].
    pub(super) fn next(&self) -> Option<GatheredChanges> {
        let mut changes = self.lock_changes();
        loop {
            if changes.ended {
                return None;
            }
            let now = Instant::now();
            let gathered = changes.take_ripe(now);
            if !gathered.is_empty() {
                return Some(gathered);
            }
            changes = match changes.ripe_at {
                Some(at) => {
                    let left = at.saturating_duration_since(now);
                    self.changed.wait_timeout(changes, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(changes).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Ends [`PendingChanges::next`].
    pub(super) fn close(&self) {
        self.lock_changes().ended = true;
        self.changed.notify_one();
    }

    fn lock_changes(&self) -> MutexGuard<'_, ChangeQueue> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeQueue {
    fn add_changes(&mut self, gathered: GatheredChanges, urgency: HintUrgency, now: Instant) {
        // A new folder may receive more files, and files of the drop folder are not records.
        let is_file = gathered.folders.is_empty() && !gathered.rescan && !gathered.inbox;
        if urgency == HintUrgency::AtOnce && is_file {
            // The file is finished, so it no longer waits.
            self.waiting.paths.retain(|path| !gathered.paths.contains(path));
            self.ready.merge(gathered);
        } else {
            self.waiting.merge(gathered);
            self.ripe_at.get_or_insert(now + DEBOUNCE);
        }
    }

    fn take_ripe(&mut self, now: Instant) -> GatheredChanges {
        if self.ripe_at.is_some_and(|at| at <= now) {
            self.ripe_at = None;
            let waiting = std::mem::take(&mut self.waiting);
            self.ready.merge(waiting);
        }
        std::mem::take(&mut self.ready)
    }
}

impl GatheredChanges {
    fn merge(&mut self, other: Self) {
        let Self { paths, folders, note_folders, rescan, inbox } = other;
        self.paths.extend(paths);
        self.folders.extend(folders);
        self.note_folders.extend(note_folders);
        self.rescan |= rescan;
        self.inbox |= inbox;
        if self.paths.len() > MANY {
            self.paths.clear();
            self.rescan = true;
        }
    }
}
