//! Keeps what a wiki holds until something in its folder changes, so that ten thousand files are not looked at for each question.
//!
//! The kernel reports each change before the call that made it returns, so what is kept is what stands there. It does so for changes of
//! this machine alone, and not by every way to a file: a file system of another kind is looked at each time, and any at least twice a minute.

use super::listing::{ListedFile, ListingDepth};
use super::{FileStat, PageFacts, WikiFile, WikiFolder, WikiOutline};
use crate::files::read_cache::ReadCache;
use crate::wiki::threads::map_in_threads;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::{Errno, read};
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::wiki::finding::WikiFinding;
use steward_domain::wiki::page::may_be_page;

/// How long what was seen counts without another look: mapped memory, and another name of the same file, are ways to change one unseen.
const MAX_AGE: Duration = Duration::from_secs(30);
/// The file systems whose changes all pass through this kernel: ext, XFS, Btrfs, tmpfs, F2FS, ZFS, overlayfs and bcachefs.
const LOCAL_FILE_SYSTEMS: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x2fc1_2fc1, 0x794c_7630, 0xca45_1a4e];

/// A wiki at one moment: its files, and what lists say of its pages.
#[derive(Debug)]
pub struct WikiSnapshot {
    pub(super) files: Vec<ListedFile>,
    /// What is wrong with names and folders.
    pub(super) findings: Vec<WikiFinding>,
    /// Why a folder could not be listed, so that files may be missing.
    fault: Option<io::Error>,
    outline: OnceLock<Arc<WikiOutline>>,
    /// What lists say of the pages that were read one by one, by file.
    facts: Mutex<HashMap<String, Option<Arc<PageFacts>>>>,
    digest: OnceLock<u64>,
}

impl WikiSnapshot {
    fn lock_facts(&self) -> MutexGuard<'_, HashMap<String, Option<Arc<PageFacts>>>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All files but hidden ones and links, sorted, each with its size and when it changed.
    pub fn files(&self) -> impl Iterator<Item = WikiFile> {
        let files = self.files.iter().filter(|file| file.is_file());
        files.filter_map(|file| {
            let stat = file.stat()?;
            Some(WikiFile { path: file.path.clone(), bytes: stat.size, modified_ms: stat.modified_ms() })
        })
    }

    /// The names of these files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| file.is_file()).map(|file| file.path.as_str())
    }

    /// A number that is the same as long as no file is another one.
    #[must_use]
    pub fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            for file in &self.files {
                (&file.path, file.stat()).hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    /// Checks that no file is missing.
    ///
    /// # Errors
    /// Why a folder could not be listed.
    pub(crate) fn check_complete(&self) -> io::Result<()> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(io::Error::new(fault.kind(), fault.to_string())))
    }

    /// The files that may be pages, each with what it is taken as unchanged by. What went meanwhile is left out.
    pub(crate) fn page_stats(&self) -> impl Iterator<Item = (&str, FileStat)> {
        let pages = self.files.iter().filter(|file| may_be_page(&file.path));
        pages.filter_map(|file| Some((file.path.as_str(), file.stat()?)))
    }
}

/// What is kept of a wiki, and what says that it still holds.
#[derive(Debug)]
pub(crate) struct WatchedWiki {
    watch: FolderWatch,
    inode: u64,
    since: Instant,
    snapshot: Arc<WikiSnapshot>,
}

impl WatchedWiki {
    /// What is kept, unless something changed. After that it is worth nothing.
    fn find(&self, inode: u64) -> Option<Arc<WikiSnapshot>> {
        let holds = self.inode == inode && self.since.elapsed() < MAX_AGE && self.watch.is_quiet();
        holds.then(|| Arc::clone(&self.snapshot))
    }
}

impl WikiFolder {
    /// What the wiki holds now.
    #[must_use]
    pub(crate) fn look(&self, cache: &ReadCache) -> Arc<WikiSnapshot> {
        let inode = self.stat(".").map_or(0, |stat| stat.inode);
        let known = cache.change_watched(|wikis| {
            let found = wikis.get(self.path()).and_then(|known| known.find(inode));
            if found.is_none() {
                wikis.remove(self.path());
            }
            found
        });
        if let Some(known) = known {
            return known;
        }
        // It watches a folder before its files are listed, so that no change lies between.
        let (since, watch) = (Instant::now(), FolderWatch::begin(self));
        let mut findings = Vec::new();
        let (files, fault) = self.list_watched(ListingDepth::Metadata, &mut findings, watch.as_ref());
        let snapshot = Arc::new(WikiSnapshot {
            files,
            findings,
            fault,
            outline: OnceLock::new(),
            facts: Mutex::default(),
            digest: OnceLock::new(),
        });
        // A failure may be over in a moment, so nothing of it is kept.
        let is_whole = snapshot.fault.is_none() && snapshot.files.iter().all(|file| file.stat().is_some());
        if let Some(watch) = watch.filter(|watch| is_whole && watch.is_complete.get()) {
            let kept = WatchedWiki { watch, inode, since, snapshot: Arc::clone(&snapshot) };
            cache.change_watched(|wikis| wikis.insert(self.path().to_owned(), kept));
        }
        snapshot
    }

    /// What lists say of some pages of a snapshot. No other page is read for that, and none twice.
    pub(crate) fn read_page_facts(&self, snapshot: &WikiSnapshot, files: &[String]) -> Vec<Option<Arc<PageFacts>>> {
        if let Some(outline) = snapshot.outline.get() {
            return files.iter().map(|file| outline.find_page(file)).collect();
        }
        let is_unread = |file: &&String| !snapshot.lock_facts().contains_key(*file);
        let unread: Vec<&String> = files.iter().filter(|file| may_be_page(file)).filter(is_unread).collect();
        let read = map_in_threads(&unread, |file| self.read_facts(file));
        let mut facts = snapshot.lock_facts();
        // A failure may be over in a moment.
        let read = unread.into_iter().zip(read).filter(|(_, (_, stamp))| stamp.is_some());
        facts.extend(read.map(|(file, (found, _))| (file.clone(), found)));
        files.iter().map(|file| facts.get(file).cloned().flatten()).collect()
    }

    /// What lists say of the pages of a snapshot. They are read when this is first asked.
    pub(crate) fn outline(&self, snapshot: &WikiSnapshot, cache: &ReadCache) -> Arc<WikiOutline> {
        Arc::clone(snapshot.outline.get_or_init(|| Arc::new(self.read_outline(&snapshot.files, cache))))
    }
}

/// Reports whether anything changed in folders since they were first watched.
#[derive(Debug)]
pub(super) struct FolderWatch {
    queue: OwnedFd,
    /// Whether all folders could be watched.
    is_complete: Cell<bool>,
}

impl FolderWatch {
    /// Begins to watch; `None` where that would not show every change.
    fn begin(folder: &WikiFolder) -> Option<Self> {
        if !is_local(folder.path()) {
            return None;
        }
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        Some(Self { queue, is_complete: Cell::new(true) })
    }

    /// Watches one folder of the wiki, whose path is relative to it.
    pub(super) fn add(&self, wiki: &WikiFolder, folder: &str) {
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let how = WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        let path = wiki.path().join(folder);
        // Another file system may be mounted there.
        let watched = is_local(&path) && add_watch(&self.queue, &path, changes | how).is_ok();
        self.is_complete.set(self.is_complete.get() && watched);
    }

    /// Whether nothing was reported. What was reported is taken from the queue.
    fn is_quiet(&self) -> bool {
        let mut reported = [0_u8; 4_096];
        matches!(read(&self.queue, &mut reported), Err(Errno::AGAIN))
    }
}

/// Whether a folder lies where every change is reported.
fn is_local(folder: &Path) -> bool {
    let kind = rustix::fs::statfs(folder).ok().and_then(|found| u64::try_from(found.f_type).ok());
    kind.is_some_and(|kind| LOCAL_FILE_SYSTEMS.contains(&kind))
}

#[cfg(test)]
mod tests;
