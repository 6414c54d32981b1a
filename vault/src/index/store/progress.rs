//! How far a scan has come, for whoever waits for it.
//!
//! Two numbers that a scan moves and anybody may look at, at any time and without waiting. They are for people: nothing
//! is decided by them, and between the two a moment may pass. [`crate::index::Index::reading`] gives them out.

use std::sync::atomic::{AtomicUsize, Ordering};

/// What a scan has read.
#[derive(Debug, Default)]
pub(crate) struct ScanProgress {
    done: AtomicUsize,
    of: AtomicUsize,
}

impl ScanProgress {
    /// Another scan begins.
    pub(crate) fn reset(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.of.store(0, Ordering::Relaxed);
    }

    /// So many more files are to be read.
    pub(crate) fn add_expected(&self, files: usize) {
        self.of.fetch_add(files, Ordering::Relaxed);
    }

    /// So many of them have been.
    pub(crate) fn add_done(&self, files: usize) {
        self.done.fetch_add(files, Ordering::Relaxed);
    }

    pub(crate) fn done_and_expected(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.of.load(Ordering::Relaxed))
    }
}
