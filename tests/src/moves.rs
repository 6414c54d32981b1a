//! Counts, by the kernel, how often a file was put into its place.
//!
//! Steward changes a note by exchanging two files, which the kernel reports as a move. So a change that was made twice is
//! seen here even if both left the same content and one left no record.

use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::Path;

/// Watches folders.
#[derive(Debug)]
pub struct MoveCounter {
    queue: OwnedFd,
    folders: BTreeMap<i32, String>,
    counts: BTreeMap<(String, String), usize>,
}

impl MoveCounter {
    /// Watches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        Self { queue: inotify::init(flags).unwrap(), folders: BTreeMap::new(), counts: BTreeMap::new() }
    }

    /// Watches a folder under a name.
    pub fn watch(&mut self, name: &str, folder: &Path) {
        let watch = inotify::add_watch(&self.queue, folder, inotify::WatchFlags::MOVED_TO).unwrap();
        self.folders.insert(watch, name.to_owned());
    }

    /// How often each file was put into its place so far, by the name of its folder and its own.
    pub fn count(&mut self) -> &BTreeMap<(String, String), usize> {
        let mut buffer = [MaybeUninit::uninit(); 16_384];
        let mut reader = inotify::Reader::new(&self.queue, &mut buffer);
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW), "the kernel lost moves");
            let folder = self.folders[&event.wd()].clone();
            let file = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            *self.counts.entry((folder, file)).or_default() += 1;
        }
        &self.counts
    }
}

impl Default for MoveCounter {
    fn default() -> Self {
        Self::new()
    }
}
