//! Changes that scans found and that other parts must act on, regardless of who started the scan.
//!
//! A scan that an activity requests finds the same changes as the listener's own scan, which then finds nothing. So
//! every scan publishes its changes here, and the listener takes them. A change that must outlive the process is
//! marked in `state.db` instead (`wakes`), or is searched for at every start.

use crate::index::CursorsView;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// The kinds of changes to act on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanChanges {
    /// A signal that nothing has acted on arrived or has new content: the router has work.
    pub signals_arrived: bool,
    /// Stream events arrived that the extraction has not tried yet.
    pub events_arrived: bool,
    /// A record arrived that owes the tracker a delivery.
    pub owing_arrived: bool,
    /// A matter was added or removed or changed its state: the schedules must be compared.
    pub matters_changed: bool,
}

impl ScanChanges {
    pub(crate) const ANYTHING: Self =
        Self { signals_arrived: true, events_arrived: true, owing_arrived: true, matters_changed: true };
}

/// The changes that were published and not taken yet.
#[derive(Debug, Default)]
pub(crate) struct ScanChangeBoard {
    changes: Mutex<ScanChanges>,
    changes_published: Notify,
    wakes_changed: Notify,
}

impl CursorsView<'_> {
    /// Takes the changes that were published since the last call.
    #[must_use]
    pub fn take_changes(self) -> ScanChanges {
        std::mem::take(&mut *self.index.scan_changes.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a scan publishes changes, then takes them.
    pub async fn wait_for_changes(self) -> ScanChanges {
        self.index.scan_changes.changes_published.notified().await;
        self.take_changes()
    }

    /// Waits until a wake mark was made or cleared in this process, or `CursorsView::notify_wakes` was called.
    pub async fn wait_for_wakes(self) {
        self.index.scan_changes.wakes_changed.notified().await;
    }

    /// Lets the wake dispatcher read the marks again.
    pub fn notify_wakes(self) {
        self.index.scan_changes.wakes_changed.notify_one();
    }

    /// Adds changes for the listener. Without `notify` the listener finds them at its next regular round.
    pub(crate) fn publish_changes(self, found: ScanChanges, notify: bool) {
        let ScanChanges { signals_arrived, events_arrived, owing_arrived, matters_changed } = found;
        {
            let mut changes = self.index.scan_changes.changes.lock().unwrap_or_else(PoisonError::into_inner);
            changes.signals_arrived |= signals_arrived;
            changes.events_arrived |= events_arrived;
            changes.owing_arrived |= owing_arrived;
            changes.matters_changed |= matters_changed;
        }
        if notify {
            self.index.scan_changes.changes_published.notify_one();
        }
    }
}
