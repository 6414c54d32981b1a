//! Keeps the pages and the hashes of sources that were read, so that a file that did not change is not read again.
//!
//! A file counts as unchanged while its size, its inode and both of its times are the same. One that was changed a moment before it was
//! read is not kept: the clock of a file system is coarse, and a second change could bear the same time. What is kept is never
//! proof: a commit compares the bytes of each file that it changes.

use crate::wiki::folder::{FileStat, PageFacts, WatchedWiki, WikiContents, WikiSnapshot};
use crate::wiki::guardian::KeptDraft;
use cap_std::fs::{Metadata, MetadataExt};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use steward_domain::wiki::page::PageReading;
use steward_domain::wiki::run::RunId;

/// How long a file must not have changed before what was read of it is kept, in nanoseconds. The coarsest clock of a file system in
/// use, that of FAT, has steps of two seconds.
const SETTLED_NS: i128 = 2_500_000_000;
/// The most text of pages that is kept for a vault, in bytes: a wiki of 10,000 pages of 4 kB, and room for others.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// The most drafts of runs that are kept, the newest runs: assistants that write at once.
const MAX_DRAFTS: usize = 8;

/// By which a file is taken as unchanged. Times are in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    size: u64,
    inode: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl FileStamp {
    pub(crate) fn new(meta: &Metadata) -> Self {
        let join = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            size: meta.size(),
            inode: meta.ino(),
            modified_ns: join(meta.mtime(), meta.mtime_nsec()),
            changed_ns: join(meta.ctime(), meta.ctime_nsec()),
        }
    }

    pub(crate) fn to_stat(self) -> FileStat {
        let Self { size, inode, modified_ns, .. } = self;
        FileStat { size, modified_ns: i64::try_from(modified_ns).unwrap_or_default(), inode }
    }

    /// Whether the last change is so old that another one would bear another time.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos().cast_signed());
        self.modified_ns.max(self.changed_ns) + SETTLED_NS < now
    }
}

/// What was read of a file, and how the file was then.
#[derive(Debug)]
struct KeptFile<T> {
    stamp: FileStamp,
    content: T,
}

/// What was read of a wiki, by the paths of its files.
#[derive(Debug, Default)]
pub(crate) struct KeptWiki {
    pages: BTreeMap<String, KeptFile<PageReading>>,
    hashes: BTreeMap<String, KeptFile<String>>,
    /// How much text the pages have, in bytes.
    bytes: usize,
    /// The files as they were listed then, if nothing that was read had changed a moment before.
    snapshot: Option<Arc<WikiSnapshot>>,
    /// All that was read of these files.
    contents: Option<Arc<WikiContents>>,
}

impl KeptWiki {
    pub(crate) fn new(snapshot: &Arc<WikiSnapshot>) -> Self {
        Self { snapshot: Some(Arc::clone(snapshot)), ..Self::default() }
    }

    /// What was read of these very files.
    pub(crate) fn find_contents(&self, snapshot: &Arc<WikiSnapshot>) -> Option<Arc<WikiContents>> {
        let known = self.snapshot.as_ref().filter(|known| Arc::ptr_eq(known, snapshot));
        known.and(self.contents.clone())
    }

    /// Adds all that was read, unless a file changed a moment ago or a part of it is not kept.
    pub(crate) fn add_contents(&mut self, contents: &Arc<WikiContents>) {
        self.contents = self.snapshot.as_ref().map(|_| Arc::clone(contents));
    }

    /// What was read of a page that is as it was then.
    pub(crate) fn find_page(&self, file: &str, stamp: FileStamp) -> Option<PageReading> {
        self.pages.get(file).filter(|kept| kept.stamp == stamp).map(|kept| kept.content.clone())
    }

    /// The hash of a source that is as it was then.
    pub(crate) fn find_hash(&self, file: &str, stamp: FileStamp) -> Option<String> {
        self.hashes.get(file).filter(|kept| kept.stamp == stamp).map(|kept| kept.content.clone())
    }

    /// Adds a page, unless it changed a moment ago or there is no room.
    pub(crate) fn add_page(&mut self, file: &str, stamp: FileStamp, content: &PageReading) {
        let bytes = self.bytes + content.page.as_ref().map_or(0, |page| page.document.as_bytes().len());
        if stamp.is_settled() && bytes <= MAX_KEPT_BYTES {
            self.bytes = bytes;
            self.pages.insert(file.to_owned(), KeptFile { stamp, content: content.clone() });
        } else {
            self.snapshot = None;
        }
    }

    /// Adds the hash of a source, unless it changed a moment ago.
    pub(crate) fn add_hash(&mut self, file: &str, stamp: FileStamp, content: &str) {
        if stamp.is_settled() {
            self.hashes.insert(file.to_owned(), KeptFile { stamp, content: content.to_owned() });
        } else {
            self.snapshot = None;
        }
    }
}

/// What lists say of the pages of a wiki, by their paths. Of a file that is no page it is known that it is none.
#[derive(Debug, Default)]
pub(crate) struct KeptFacts(BTreeMap<String, KeptFile<Option<Arc<PageFacts>>>>);

impl KeptFacts {
    /// What was read of a file that is as it was then.
    pub(crate) fn find(&self, file: &str, stamp: FileStamp) -> Option<Option<Arc<PageFacts>>> {
        self.0.get(file).filter(|kept| kept.stamp == stamp).map(|kept| kept.content.clone())
    }

    /// Adds a file, unless it changed a moment ago.
    pub(crate) fn add(&mut self, file: &str, stamp: FileStamp, content: Option<Arc<PageFacts>>) {
        if stamp.is_settled() {
            self.0.insert(file.to_owned(), KeptFile { stamp, content });
        }
    }
}

/// What is kept of the wikis of a vault, by their folders.
#[derive(Debug, Default)]
pub(crate) struct ReadCache {
    wikis: Mutex<BTreeMap<PathBuf, Arc<KeptWiki>>>,
    facts: Mutex<BTreeMap<PathBuf, Arc<KeptFacts>>>,
    watched: Mutex<BTreeMap<PathBuf, WatchedWiki>>,
    drafts: Mutex<BTreeMap<RunId, KeptDraft>>,
}

impl ReadCache {
    /// Looks at the wikis that are watched, or changes them.
    pub(crate) fn change_watched<T>(&self, change: impl FnOnce(&mut BTreeMap<PathBuf, WatchedWiki>) -> T) -> T {
        change(&mut self.watched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the draft of a run out of what is kept.
    pub(crate) fn take_draft(&self, run: &RunId) -> Option<KeptDraft> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner).remove(run)
    }

    pub(crate) fn keep_draft(&self, run: RunId, draft: KeptDraft) {
        let mut drafts = self.drafts.lock().unwrap_or_else(PoisonError::into_inner);
        drafts.insert(run, draft);
        // The name of a run begins with its second.
        while drafts.len() > MAX_DRAFTS {
            drafts.pop_first();
        }
    }

    pub(crate) fn find_facts(&self, wiki: &Path) -> Arc<KeptFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).get(wiki).cloned().unwrap_or_default()
    }

    pub(crate) fn keep_facts(&self, wiki: &Path, read: KeptFacts) {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).insert(wiki.to_owned(), Arc::new(read));
    }

    pub(crate) fn find(&self, wiki: &Path) -> Arc<KeptWiki> {
        self.wikis.lock().unwrap_or_else(PoisonError::into_inner).get(wiki).cloned().unwrap_or_default()
    }

    /// Keeps what was read of a wiki in place of what is kept of it. If there is no room for all wikis, the others go.
    pub(crate) fn keep(&self, wiki: &Path, read: KeptWiki) {
        // Drafts would hold the pages that are replaced.
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let mut wikis = self.wikis.lock().unwrap_or_else(PoisonError::into_inner);
        wikis.insert(wiki.to_owned(), Arc::new(read));
        if wikis.values().map(|kept| kept.bytes).sum::<usize>() > MAX_KEPT_BYTES {
            wikis.retain(|folder, _| folder == wiki);
        }
    }
}

#[cfg(test)]
mod tests;
