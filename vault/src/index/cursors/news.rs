//! What scans found that somebody has to act upon, whoever had them made.
//!
//! A scan that an activity asks for finds what the listener's own would have found, and then finds nothing.
//! So every scan leaves its news here, and one who listens takes them. What must outlive the process is
//! marked in `state.db` instead (`wakes`), or looked up at every start.

use crate::index::Index;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// What there is to act upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanChanges {
    /// A signal that nobody has acted upon came or says something new: the router has work.
    pub signals_arrived: bool,
    /// Stream events came that nobody has tried to read yet.
    pub events_arrived: bool,
    /// A record came that owes something to the tracker.
    pub owing_arrived: bool,
    /// A matter came, went or changed its state: the schedules need a look.
    pub matters_changed: bool,
}

impl ScanChanges {
    pub(crate) const ANYTHING: Self =
        Self { signals_arrived: true, events_arrived: true, owing_arrived: true, matters_changed: true };
}

/// Where news are left.
#[derive(Debug, Default)]
pub(crate) struct ScanChangeBoard {
    news: Mutex<ScanChanges>,
    left: Notify,
    wakes: Notify,
}

impl Index {
    /// Takes what has been left since the last time.
    #[must_use]
    pub fn take_changes(&self) -> ScanChanges {
        std::mem::take(&mut *self.news.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something is left, then takes it.
    pub async fn wait_for_changes(&self) -> ScanChanges {
        self.news.left.notified().await;
        self.take_changes()
    }

    /// Waits until a mark was made or taken away in this process, or somebody asked for another look at the marks.
    pub async fn wait_for_wakes(&self) {
        self.news.wakes.notified().await;
    }

    /// Has whoever wakes matters read the marks again.
    pub fn notify_wakes(&self) {
        self.news.wakes.notify_one();
    }

    /// Without a ring, whoever listens finds it when they come round.
    pub(crate) fn publish_changes(&self, left: ScanChanges, rings: bool) {
        let ScanChanges { signals_arrived, events_arrived, owing_arrived, matters_changed } = left;
        {
            let mut news = self.news.news.lock().unwrap_or_else(PoisonError::into_inner);
            news.signals_arrived |= signals_arrived;
            news.events_arrived |= events_arrived;
            news.owing_arrived |= owing_arrived;
            news.matters_changed |= matters_changed;
        }
        if rings {
            self.news.left.notify_one();
        }
    }
}
