//! Copies a folder with everything in it, while people and Steward go on writing there.
//!
//! A second pass copies only what has changed since the first one. A file that changes while it is read is read again.
//! A file that is the same as in the backup before becomes a hard link to it: a note by its content, any other file by
//! its size and its time of change. Links are copied as links, and pipes and sockets are left out. The source is only
//! read.

use super::BackupError;
use super::manifest::FileHashes;
use crate::files::durable::remove_file;
use crate::files::root::OWN_FOLDER;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions,
    PermissionsExt,
};
use rustix::fs::{OFlags, Timespec, Timestamps, futimens};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use steward_domain::action::plan::{ContentHash, ContentHasher};

/// How often a file is read that changes meanwhile.
const TRIES: u32 = 3;
/// How much is read at once: 64 KiB.
const CHUNK: usize = 64 * 1024;
/// The permissions that the owner of a copied folder has in any case.
const OWNER: u32 = 0o700;
/// The permission that the owner of a copied file has in any case.
const READABLE: u32 = 0o400;
/// The permissions that are copied.
const ALL: u32 = 0o777;

/// The files that a pass looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassScope {
    Everything,
    /// Notes and Steward's own files: what an audit record may be about.
    Records,
}

/// The same folder in the backup before.
#[derive(Debug)]
pub(super) struct PreviousTree {
    pub(super) dir: Dir,
    /// The hashes of its files, by their paths in this folder.
    pub(super) hashes: FileHashes,
}

/// What distinguishes a file from an earlier state of it, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Clone, Debug)]
struct CopiedFile {
    version: FileVersion,
    hash: ContentHash,
}

/// One folder that is being copied.
pub(super) struct TreeCopy<'a> {
    from: &'a Dir,
    to: &'a Dir,
    previous: Option<&'a PreviousTree>,
    /// Whether a path below the folder is left out.
    skip: &'a dyn Fn(&Path) -> bool,
    copied: BTreeMap<PathBuf, CopiedFile>,
    /// Links and what they name.
    links: BTreeMap<PathBuf, PathBuf>,
    doubtful: BTreeSet<PathBuf>,
}

/// Why a file was not copied.
enum CopyFault {
    /// It cannot be read.
    Source(io::Error),
    /// The copy cannot be written.
    Target(io::Error),
}

impl FileVersion {
    fn new(meta: &Metadata) -> Self {
        Self {
            inode: meta.ino(),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl<'a> TreeCopy<'a> {
    pub(super) fn new(
        from: &'a Dir,
        to: &'a Dir,
        previous: Option<&'a PreviousTree>,
        skip: &'a dyn Fn(&Path) -> bool,
    ) -> Self {
        let (copied, links, doubtful) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self { from, to, previous, skip, copied, links, doubtful }
    }

    /// The hashes of the files so far, by their paths in the folder.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (&PathBuf, &ContentHash)> {
        self.copied.iter().map(|(path, copied)| (path, &copied.hash))
    }

    /// The size of all files.
    pub(super) fn count_bytes(&self) -> u64 {
        self.copied.values().map(|copied| copied.version.size).sum()
    }

    /// The links, and what each names.
    pub(super) fn links(&self) -> impl Iterator<Item = (&PathBuf, &PathBuf)> {
        self.links.iter()
    }

    /// Files that could not be read, or that changed each time they were.
    pub(super) fn doubtful(&self) -> &BTreeSet<PathBuf> {
        &self.doubtful
    }

    /// Brings the copy in line with the folder.
    ///
    /// # Errors
    /// [`BackupError::Io`] if the copy cannot be written, or one of Steward's own files cannot be read.
    pub(super) fn run_pass(&mut self, scope: PassScope) -> Result<(), BackupError> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![PathBuf::new()];
        // Folders are opened one at a time, because a process may have a thousand files open at most.
        while let Some(folder) = waiting.pop() {
            let opened = self.from.open_dir(name_or_dot(&folder));
            let Some(from) = self.accept_or_note(&folder, opened.map_err(CopyFault::Source))? else { continue };
            let made = make_folder(self.to, &folder, &from);
            let Some(to) = self.accept_or_note(&folder, made)? else { continue };
            let listed = from.entries().and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
            let Some(entries) = self.accept_or_note(&folder, listed.map_err(CopyFault::Source))? else { continue };
            for entry in entries {
                let path = folder.join(entry.file_name());
                if (self.skip)(&path) {
                    continue;
                }
                let Some(kind) = self.accept_or_note(&path, entry.file_type().map_err(CopyFault::Source))? else {
                    continue;
                };
                if kind.is_dir() {
                    waiting.push(path);
                } else if kind.is_symlink() && scope == PassScope::Everything {
                    let copied = copy_link(&from, &to, &path);
                    if let Some(target) = self.accept_or_note(&path, copied)? {
                        self.links.insert(path, target);
                    }
                } else if kind.is_file() && is_in_scope(&path, scope) {
                    let copied = self.copy_file(&from, &to, &path);
                    if copied.is_err() {
                        // What an earlier attempt or pass has written is no copy of anything that is there.
                        self.forget_copy(&path)?;
                    }
                    self.accept_or_note(&path, copied)?;
                    seen.insert(path);
                }
            }
        }
        self.remove_vanished(scope, &seen)
    }

    /// The value, or `None` if the file is gone or cannot be read, which is noted.
    fn accept_or_note<T>(&mut self, path: &Path, found: Result<T, CopyFault>) -> Result<Option<T>, BackupError> {
        let is_needed = path.as_os_str().is_empty() || path.starts_with(OWN_FOLDER);
        match found {
            Ok(value) => Ok(Some(value)),
            Err(CopyFault::Source(e)) if e.kind() == io::ErrorKind::NotFound && !path.as_os_str().is_empty() => {
                Ok(None)
            }
            Err(CopyFault::Source(_)) if !is_needed => {
                self.doubtful.insert(path.to_owned());
                Ok(None)
            }
            Err(CopyFault::Source(source) | CopyFault::Target(source)) => {
                Err(BackupError::Io { path: path.to_owned(), source })
            }
        }
    }

    fn copy_file(&mut self, from: &Dir, to: &Dir, path: &Path) -> Result<(), CopyFault> {
        let name = Path::new(path.file_name().unwrap_or_default());
        let known = self.copied.get(path).map(|copied| copied.version);
        for attempt in 1..=TRIES {
            let mut file = open_file(from, name).map_err(CopyFault::Source)?;
            let meta = file.metadata().map_err(CopyFault::Source)?;
            let version = FileVersion::new(&meta);
            if known == Some(version) || !meta.is_file() {
                return Ok(());
            }
            let hash = match self.link_unchanged(&mut file, &meta, to, path)? {
                Some(hash) => hash,
                None => write_copy(&mut file, &meta, to, name).inspect_err(|_| drop(remove_file(to, name)))?,
            };
            // It may also have been replaced by another file of that name.
            let is_same = |now: io::Result<Metadata>| now.is_ok_and(|now| FileVersion::new(&now) == version);
            let is_settled = is_same(file.metadata()) && is_same(from.symlink_metadata(name));
            if is_settled || attempt == TRIES {
                self.copied.insert(path.to_owned(), CopiedFile { version, hash });
            }
            if is_settled {
                self.doubtful.remove(path);
                return Ok(());
            }
        }
        self.doubtful.insert(path.to_owned());
        Ok(())
    }

    /// Links to the file of the backup before if it is the same; `None` if it is not, or cannot be linked.
    fn link_unchanged(
        &self,
        file: &mut File,
        meta: &Metadata,
        to: &Dir,
        path: &Path,
    ) -> Result<Option<ContentHash>, CopyFault> {
        let Some((previous, hash)) = self.previous.and_then(|tree| Some((tree, tree.hashes.get(path)?))) else {
            return Ok(None);
        };
        let Ok(before) = previous.dir.symlink_metadata(path) else { return Ok(None) };
        let fields = |meta: &Metadata| (meta.len(), meta.mode() & ALL | READABLE);
        if fields(&before) != fields(meta) {
            return Ok(None);
        }
        let is_same = match is_in_scope(path, PassScope::Records) {
            // The copy is read too, because damage of it would go on into every later backup.
            true => {
                hash_content(file).map_err(CopyFault::Source)? == *hash
                    && open_file(&previous.dir, path)
                        .and_then(|mut copy| hash_content(&mut copy))
                        .is_ok_and(|now| now == *hash)
            }
            false => (before.mtime(), before.mtime_nsec()) == (meta.mtime(), meta.mtime_nsec()),
        };
        if !is_same {
            return Ok(None);
        }
        let name = path.file_name().unwrap_or_default();
        remove_file(to, Path::new(name)).map_err(CopyFault::Target)?;
        // A file system without links gets another copy.
        Ok(previous.dir.hard_link(path, to, name).is_ok().then(|| hash.clone()))
    }

    /// Removes the copies of files that have vanished since an earlier pass.
    fn remove_vanished(&mut self, scope: PassScope, seen: &BTreeSet<PathBuf>) -> Result<(), BackupError> {
        let gone: Vec<PathBuf> =
            self.copied.keys().filter(|path| is_in_scope(path, scope) && !seen.contains(*path)).cloned().collect();
        gone.iter().try_for_each(|path| self.forget_copy(path))
    }

    fn forget_copy(&mut self, path: &Path) -> Result<(), BackupError> {
        self.copied.remove(path);
        remove_file(self.to, path).map_err(BackupError::wrap_io(path))
    }
}

/// Whether a pass looks at a file.
fn is_in_scope(path: &Path, scope: PassScope) -> bool {
    let is_note = || path.extension().is_some_and(|extension| extension == "md");
    scope == PassScope::Everything || path.starts_with(OWN_FOLDER) || is_note()
}

fn name_or_dot(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Makes a folder of the copy with the permissions of its model.
fn make_folder(to: &Dir, folder: &Path, model: &Dir) -> Result<Dir, CopyFault> {
    if folder.as_os_str().is_empty() {
        return to.try_clone().map_err(CopyFault::Target);
    }
    let mode = model.dir_metadata().map_err(CopyFault::Source)?.mode();
    let mut builder = DirBuilder::new();
    builder.mode((mode & ALL) | OWNER);
    let made = match to.create_dir_with(folder, &builder) {
        // The umask of this process may have taken permissions away.
        Ok(()) => to.set_permissions(folder, Permissions::from_mode((mode & ALL) | OWNER)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    };
    made.and_then(|()| to.open_dir(folder)).map_err(CopyFault::Target)
}

/// Opens a file for reading without following a link, and without waiting for the writer of a pipe.
fn open_file(dir: &Dir, name: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    dir.open_with(name, &options)
}

/// The hash of everything that is left to read.
pub(super) fn hash_content(content: &mut impl Read) -> io::Result<ContentHash> {
    let (mut hasher, mut chunk) = (ContentHasher::default(), vec![0; CHUNK]);
    loop {
        match content.read(&mut chunk)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&chunk[..read]),
        }
    }
}

/// Writes a copy with the same permissions and the same time of change. Returns the hash of what was written.
fn write_copy(file: &mut File, meta: &Metadata, to: &Dir, name: &Path) -> Result<ContentHash, CopyFault> {
    file.seek(SeekFrom::Start(0)).map_err(CopyFault::Source)?;
    remove_file(to, name).map_err(CopyFault::Target)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut copy = to.open_with(name, &options).map_err(CopyFault::Target)?;
    let (mut hasher, mut chunk) = (ContentHasher::default(), vec![0; CHUNK]);
    loop {
        let read = file.read(&mut chunk).map_err(CopyFault::Source)?;
        if read == 0 {
            break;
        }
        hasher.update(&chunk[..read]);
        copy.write_all(&chunk[..read]).map_err(CopyFault::Target)?;
    }
    copy_attributes(&copy, meta).map_err(CopyFault::Target)?;
    Ok(hasher.finish())
}

fn copy_attributes(copy: &File, meta: &Metadata) -> io::Result<()> {
    copy.set_permissions(Permissions::from_mode(meta.mode() & ALL | READABLE))?;
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps {
        last_access: time(meta.atime(), meta.atime_nsec()),
        last_modification: time(meta.mtime(), meta.mtime_nsec()),
    };
    Ok(futimens(copy, &times)?)
}

/// Copies a link and returns what it names.
fn copy_link(from: &Dir, to: &Dir, path: &Path) -> Result<PathBuf, CopyFault> {
    let name = Path::new(path.file_name().unwrap_or_default());
    let target = from.read_link_contents(name).map_err(CopyFault::Source)?;
    remove_file(to, name).map_err(CopyFault::Target)?;
    to.symlink_contents(&target, name).map_err(CopyFault::Target)?;
    Ok(target)
}

/// Copies a file with its permissions and its time of change.
pub(super) fn copy_file(from: &Dir, to: &Dir, name: &Path) -> io::Result<()> {
    let mut file = open_file(from, name)?;
    let meta = file.metadata()?;
    match write_copy(&mut file, &meta, to, name) {
        Ok(_) => Ok(()),
        Err(CopyFault::Source(e) | CopyFault::Target(e)) => Err(e),
    }
}
