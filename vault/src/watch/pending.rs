//! Changes that are not hinted at yet: some because more may follow, some because nobody has taken them.
//!
//! A change that more may follow waits 150 ms. One file counts once however often it changes, and
//! very many become one scan, so nothing here grows while the index is busy.

use super::{Gathered, MANY, Urgency};
use notify::Event;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long changes of one file are gathered: 150 ms. An editor's save is several events within a
/// few milliseconds; a person does not notice the rest.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(150);

/// What has changed and is not hinted at yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: Mutex<Changes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Changes {
    ready: Gathered,
    /// Changes that more may follow.
    waiting: Gathered,
    /// When those have waited long enough.
    ripe_at: Option<Instant>,
    ended: bool,
}

impl Pending {
    /// Adds what the system reports.
    pub(super) fn add(&self, root: &Path, reported: notify::Result<Event>) {
        let now = Instant::now();
        match reported {
            Ok(event) => {
                let urgency = if event.need_rescan() { Some(Urgency::Later) } else { Urgency::of_event(&event) };
                let Some(urgency) = urgency else { return };
                let mut gathered = Gathered::default();
                gathered.add(root, &event);
                if !gathered.is_empty() {
                    self.lock().add(gathered, urgency, now);
                }
            }
            Err(error) => {
                tracing::debug!(?error, "watching failed in part; scanning instead");
                self.lock().add(Gathered { rescan: true, ..Gathered::default() }, Urgency::Later, now);
            }
        }
        self.changed.notify_one();
    }

    /// Waits for changes that may be hinted at and takes them all; `None` at the end.
    pub(super) fn next(&self) -> Option<Gathered> {
        let mut changes = self.lock();
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

    /// Ends [`Pending::next`].
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changes {
    fn add(&mut self, gathered: Gathered, urgency: Urgency, now: Instant) {
        // A folder may be about to fill, and the drop folder has no records.
        let is_file = gathered.folders.is_empty() && !gathered.rescan && !gathered.inbox;
        if urgency == Urgency::AtOnce && is_file {
            // Whatever the file waited for is over.
            self.waiting.paths.retain(|path| !gathered.paths.contains(path));
            self.ready.merge(gathered);
        } else {
            self.waiting.merge(gathered);
            self.ripe_at.get_or_insert(now + DEBOUNCE);
        }
    }

    fn take_ripe(&mut self, now: Instant) -> Gathered {
        if self.ripe_at.is_some_and(|at| at <= now) {
            self.ripe_at = None;
            let waiting = std::mem::take(&mut self.waiting);
            self.ready.merge(waiting);
        }
        std::mem::take(&mut self.ready)
    }
}

impl Gathered {
    fn merge(&mut self, other: Self) {
        let Self { paths, folders, rescan, inbox } = other;
        self.paths.extend(paths);
        self.folders.extend(folders);
        self.rescan |= rescan;
        self.inbox |= inbox;
        if self.paths.len() > MANY {
            self.paths.clear();
            self.rescan = true;
        }
    }
}
