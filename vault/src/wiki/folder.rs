//! Reads the folder of a wiki: its pages, sources and generated files.
//!
//! Links are not followed, and nothing that could wait, such as a pipe, is opened. What cannot be read is a finding that names
//! the file, and the rest is read all the same.

mod facts;
mod listing;
mod sources;
mod watched;

pub use facts::{PageFacts, WikiOutline};
pub(crate) use watched::WatchedWiki;
pub use watched::WikiSnapshot;

use crate::files::read_cache::{FileStamp, KeptWiki, ReadCache};
use crate::files::root::FolderEntry;
use crate::wiki::threads::map_in_threads;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};
use listing::{ListedFile, ListingDepth};
use rustix::fs::{AtFlags, FileType, OFlags, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::page::{PageReading, WikiPage, may_be_page, names_a_page, read_page};
use steward_domain::wiki::registry::{SourceProvenance, WikiSource};
use steward_domain::wiki::run::RunSource;
use steward_domain::wiki::{
    GUIDE_FILE, INDEX_FILE, LOG_FILE, MAX_GENERATED_BYTES, MAX_PAGE_BYTES, MAX_PAGES, SOURCES_FOLDER,
};

/// The hash that is made here.
const HASH: &str = "sha256:";
/// How much of a file that is too large is looked at, in bytes.
const START: u64 = 4_096;
/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("a symbolic link: put the file itself in its place")]
    Link,
    #[error("not a regular file")]
    NotAFile,
    #[error("more than {0} bytes")]
    TooLarge(usize),
}

/// By which a file is taken as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct FileStat {
    pub(crate) size: u64,
    /// The time of the last change, in nanoseconds since 1970.
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
}

impl FileStat {
    fn new(meta: &Metadata) -> Self {
        let FolderEntry { size, modified_ns, inode, .. } = FolderEntry::new(String::new(), meta);
        Self { size, modified_ns, inode }
    }

    /// When the file changed last, in milliseconds since 1970.
    #[must_use]
    pub fn modified_ms(&self) -> i64 {
        self.modified_ns / 1_000_000
    }
}

/// A file of a wiki.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WikiFile {
    /// Relative to the wiki.
    pub path: String,
    pub bytes: u64,
    /// When it changed last, in milliseconds since 1970.
    pub modified_ms: i64,
}

/// A wiki as its files are.
#[derive(Debug, Default)]
pub struct WikiContents {
    /// By file.
    pub pages: Arc<Vec<WikiPage>>,
    /// The registered sources by id. Without a registry, those that describe themselves.
    pub sources: BTreeMap<String, WikiSource>,
    /// The hash of each registered source by its path; `None` if the file is not there.
    pub source_hashes: BTreeMap<String, Option<String>>,
    /// All files but hidden ones, by their paths.
    pub files: BTreeSet<String>,
    /// Whether there is a registry.
    pub has_registry: bool,
    /// Which sources became pages.
    pub provenance: SourceProvenance,
    pub index: Option<String>,
    pub log: Option<String>,
    pub guide: Option<String>,
    pub findings: Vec<WikiFinding>,
}

impl WikiContents {
    /// Whether a source became pages already, in the form in which it is now.
    #[must_use]
    pub fn is_ingested(&self, source: &RunSource) -> bool {
        let hash = source.content_hash.trim_start_matches("sha256:");
        self.provenance.sources.get(&source.path).is_some_and(|known| known.content_hash == hash)
    }
}

/// The folder of a wiki.
#[derive(Debug)]
pub struct WikiFolder {
    path: PathBuf,
    dir: Dir,
}

impl WikiFolder {
    /// Opens a folder.
    ///
    /// # Errors
    /// It does not exist, or is not a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { path, dir })
    }

    /// The folder, with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything.
    #[must_use]
    pub fn read(&self) -> WikiContents {
        let mut findings = Vec::new();
        let files = self.list_entries(ListingDepth::Metadata, &mut findings).0;
        self.read_listed(&files, findings, &KeptWiki::default(), &mut KeptWiki::default())
    }

    /// Reads everything, but for pages and sources that are as they were when they were read last. If no file changed, it is what
    /// was read then.
    pub(crate) fn read_changed(&self, cache: &ReadCache) -> Arc<WikiContents> {
        let (snapshot, known) = (self.look(cache), cache.find(&self.path));
        if let Some(contents) = known.find_contents(&snapshot) {
            return contents;
        }
        let mut kept = KeptWiki::new(&snapshot);
        let read = self.read_listed(&snapshot.files, snapshot.findings.clone(), &known, &mut kept);
        let contents = Arc::new(read);
        // A failure may be over in a moment, and a source without a registry may fail unseen.
        let is_failure = |finding: &WikiFinding| finding.severity == Severity::Error;
        if contents.has_registry && !contents.findings.iter().any(is_failure) {
            kept.add_contents(&contents);
        }
        cache.keep(&self.path, kept);
        contents
    }

    fn read_listed(
        &self,
        files: &[ListedFile],
        findings: Vec<WikiFinding>,
        known: &KeptWiki,
        kept: &mut KeptWiki,
    ) -> WikiContents {
        let mut wiki = WikiContents { findings, ..WikiContents::default() };
        let candidates: Vec<&ListedFile> = files.iter().filter(|file| may_be_page(&file.path)).collect();
        let read = map_in_threads(&candidates, |file| self.read_unless_known(file, known));
        let mut pages = Vec::with_capacity(read.len());
        for (file, (read, stamp)) in candidates.iter().zip(read) {
            if let Some(stamp) = stamp {
                kept.add_page(&file.path, stamp, &read);
            }
            pages.extend(read.page);
            wiki.findings.extend(read.findings);
        }
        wiki.pages = Arc::new(pages);
        if wiki.pages.len() > MAX_PAGES {
            let problem = format!("{} pages, more than {MAX_PAGES}", wiki.pages.len());
            wiki.findings.push(report("", FindingCode::EntryInvalid, &problem, "divide the wiki"));
        }
        wiki.files = files.iter().map(|file| file.path.clone()).collect();
        self.read_sources(&mut wiki, files, known, kept);
        self.read_rendered(&mut wiki);
        wiki
    }

    /// Reads the files that code writes and those that people read first.
    fn read_rendered(&self, wiki: &mut WikiContents) {
        let mut read_text = |file: &str, code| match self.read_text(file, MAX_GENERATED_BYTES) {
            Ok(text) => text,
            Err(fault) => {
                wiki.findings.push(report(file, code, &fault.to_string(), "restore the file"));
                None
            }
        };
        (wiki.index, wiki.log) =
            (read_text(INDEX_FILE, FindingCode::IndexStale), read_text(LOG_FILE, FindingCode::LogUnreadable));
        wiki.guide = read_text(GUIDE_FILE, FindingCode::WikiSchemaDrift);
    }

    /// What is known of a file that did not change, or else what it holds. Without a stamp it cannot be read.
    fn read_unless_known(&self, file: &ListedFile, known: &KeptWiki) -> (PageReading, Option<FileStamp>) {
        let stamp = file.stamp;
        match stamp.and_then(|stamp| known.find_page(&file.path, stamp)) {
            Some(read) => (read, stamp),
            None => self.read_one(&file.path),
        }
    }

    fn read_one(&self, file: &str) -> (PageReading, Option<FileStamp>) {
        match self.read_stamped(file, MAX_PAGE_BYTES) {
            Ok((bytes, stamp)) => (read_page(file, &bytes), Some(stamp)),
            // A large file of another tool is none of our business.
            Err(ReadFault::TooLarge(_)) if !self.read_start(file, START).is_ok_and(|start| names_a_page(&start)) => {
                (PageReading::default(), None)
            }
            Err(fault) => {
                let finding =
                    report(file, FindingCode::EntryInvalid, &fault.to_string(), "the page is left alone until then");
                (PageReading { page: None, findings: vec![finding] }, None)
            }
        }
    }

    /// Reads a text of the wiki; `None` if the file is not there. What is no UTF-8 is replaced.
    ///
    /// # Errors
    /// [`ReadFault`].
    pub fn read_text(&self, file: &str, limit: usize) -> Result<Option<String>, ReadFault> {
        match self.read_bytes(file, limit) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(ReadFault::Io(e)) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Whether there is a file of this name. A link is none.
    #[must_use]
    pub fn has_file(&self, file: &str) -> bool {
        self.dir.symlink_metadata(file).is_ok_and(|meta| meta.is_file())
    }

    /// Whether a path is a symbolic link, or leads through one.
    #[must_use]
    pub fn leads_through_link(&self, file: &str) -> bool {
        let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
        let is_link = |end: usize| self.dir.symlink_metadata(&file[..end]).is_ok_and(|meta| meta.is_symlink());
        ends.into_iter().any(is_link)
    }

    /// By which a file is taken as unchanged; `None` if it is not there or cannot be looked at.
    #[must_use]
    pub fn stat(&self, file: &str) -> Option<FileStat> {
        Some(FileStat::new(&self.dir.symlink_metadata(file).ok()?))
    }

    /// Reads the pages in these files and the registry of the sources. A file that is no page any more is left out, and no
    /// source is hashed.
    #[must_use]
    pub fn read_some(&self, files: &[String]) -> WikiContents {
        let read = map_in_threads(files, |file| self.read_one(file).0).into_iter();
        let pages = Arc::new(read.filter_map(|read| read.page).collect());
        let mut wiki = WikiContents { pages, ..WikiContents::default() };
        let (files, _) = self.list_entries(ListingDepth::Names, &mut wiki.findings);
        wiki.files = files.into_iter().map(|file| file.path).collect();
        wiki.sources = self.read_registered(&mut wiki).unwrap_or_default();
        wiki
    }

    /// Reads a file of the wiki up to a limit.
    ///
    /// # Errors
    /// [`ReadFault`].
    pub fn read_bytes(&self, file: &str, limit: usize) -> Result<Vec<u8>, ReadFault> {
        Ok(self.read_stamped(file, limit)?.0)
    }

    /// Reads a file, and how it was before.
    fn read_stamped(&self, file: &str, limit: usize) -> Result<(Vec<u8>, FileStamp), ReadFault> {
        let file = self.open_file(file)?;
        let meta = file.metadata()?;
        Ok((take_bounded(file, meta.len(), limit)?, FileStamp::new(&meta)))
    }

    /// The first bytes of a file, at most so many, however large it is.
    ///
    /// # Errors
    /// [`ReadFault`].
    pub fn read_start(&self, file: &str, limit: u64) -> Result<Vec<u8>, ReadFault> {
        let mut bytes = Vec::new();
        self.open_file(file)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open_file(&self, file: &str) -> Result<File, ReadFault> {
        // One call of the system. Where it would lead out of the folder, the file is not opened.
        let found = statat(&self.dir, file, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(ReadFault::Link),
            _ => return Err(ReadFault::NotAFile),
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
        Ok(self.dir.open_with(file, &options)?)
    }
}

fn report(file: &str, code: FindingCode, problem: &str, fix: &str) -> WikiFinding {
    WikiFinding::new(code, Severity::Error, if file.is_empty() { "." } else { file }, problem, fix)
}

/// Reads a file of any folder, up to a limit. A link to it is followed.
///
/// # Errors
/// [`ReadFault`].
pub fn read_bounded(file: &Path, limit: usize) -> Result<Vec<u8>, ReadFault> {
    let meta = std::fs::metadata(file)?;
    if !meta.is_file() {
        return Err(ReadFault::NotAFile);
    }
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), OFlags::NONBLOCK.bits().cast_signed());
    take_bounded(options.open(file)?, meta.len(), limit)
}

/// Reads up to a limit. `size` is what the system says, for which there is room at once.
fn take_bounded(file: impl Read, size: u64, limit: usize) -> Result<Vec<u8>, ReadFault> {
    let room = usize::try_from(size).unwrap_or(limit).min(limit).saturating_add(1);
    let mut bytes = Vec::with_capacity(room);
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit { Err(ReadFault::TooLarge(limit)) } else { Ok(bytes) }
}

/// Whether a file lies in the folder of sources.
fn is_source(file: &str) -> bool {
    file.split('/').next() == Some(SOURCES_FOLDER)
}

#[cfg(test)]
mod tests;
