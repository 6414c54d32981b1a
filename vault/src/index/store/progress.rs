//! The progress of a scan, for displays.
//!
//! A scan updates two counters, which can be read at any time without waiting. They are only shown to people: nothing
//! must be decided by them, and the two may be slightly out of step. [`crate::index::Index::scan_progress`] returns
//! them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The counters of the current or last scan.
#[derive(Debug, Default)]
pub(crate) struct ScanProgress {
    done: AtomicUsize,
    expected: AtomicUsize,
}

impl ScanProgress {
    /// Starts the counters of a new scan.
    pub(crate) fn reset(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.expected.store(0, Ordering::Relaxed);
    }

    pub(crate) fn add_expected(&self, files: usize) {
        self.expected.fetch_add(files, Ordering::Relaxed);
    }

    pub(crate) fn add_done(&self, files: usize) {
        self.done.fetch_add(files, Ordering::Relaxed);
    }

    pub(crate) fn done_and_expected(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.expected.load(Ordering::Relaxed))
    }
}
