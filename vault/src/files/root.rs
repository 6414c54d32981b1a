//! The root folder of a vault, opened once.
//!
//! Every access goes through a directory handle that refuses `..` and links that lead outside. So a path can only name
//! something inside the vault. Reads are bounded. An error names the file and the fix. This module must not write
//! records: [`crate::action::writer`] does that.

mod list;

pub use list::NoteListing;

use crate::files::durable;
use crate::files::identity;
use crate::files::private;
use crate::files::read_cache::ReadCache;
use crate::files::steward_folder;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions, OpenOptionsExt};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steward_domain::action::audit::max_record_bytes;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::{RecordKind, RecordPath};

/// Our own folder inside a vault: lock, journal, staged files, head of the chain.
pub const OWN_FOLDER: &str = ".steward";
/// The file in our own folder that says that a backup is being restored into the vault.
pub(crate) const RESTORING: &str = "restoring";

const NEITHER_WAIT_NOR_FOLLOW: i32 = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits().cast_signed();

/// Why a file of the vault cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultRootError {
    #[error("{path}: cannot be opened as a folder ({source}): set STEWARD_VAULT to the folder of your vault")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error("{path}: does not exist")]
    Missing { path: String },
    #[error("{path}: a symbolic link; put the file itself in its place")]
    Link { path: String },
    #[error("{path}: not a regular file")]
    NotAFile { path: String },
    #[error("{path}: {size} bytes, more than the {limit} that it may have: split it or move attachments out")]
    TooLarge { path: String, size: u64, limit: usize },
}

/// A record's bytes and their hash, read in one go.
#[derive(Clone, Debug)]
pub struct RecordSnapshot {
    pub bytes: Vec<u8>,
    pub hash: ContentHash,
}

/// A file of a folder, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    pub name: String,
    pub size: u64,
    /// The time of the last change, in nanoseconds since 1970. It changes with the content on every known file system.
    pub modified_ns: i64,
    pub inode: u64,
    /// The time of birth in nanoseconds since 1970; 0 if the file system keeps none.
    pub born_ns: i64,
}

/// The root of a vault.
#[derive(Clone, Debug)]
pub struct VaultRoot {
    path: PathBuf,
    dir: Arc<Dir>,
    /// The folder below which Steward's own files lie, in a vault with a mapping; otherwise they lie in the root.
    steward_folder: Option<Arc<str>>,
    read_cache: Arc<ReadCache>,
}

/// Whether the folder of a vault is still where it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderPlacement {
    /// The folder is at its path.
    Here,
    /// Nothing is at its path, or nothing that can be checked.
    Gone,
    /// Another folder is at its path.
    Replaced,
}

impl VaultRoot {
    /// Opens the folder of a vault.
    ///
    /// # Errors
    /// [`VaultRootError::Open`] if it does not exist or is not a folder.
    pub fn open(path: &Path) -> Result<Self, VaultRootError> {
        let failed = |source| VaultRootError::Open { path: path.to_owned(), source };
        let real = path.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(failed)?;
        let steward_folder = identity::read_steward_folder(&dir).map(Arc::from);
        Ok(Self { path: real, dir: Arc::new(dir), steward_folder, read_cache: Arc::default() })
    }

    /// What is kept of the wikis that were read. All clones of a root share it.
    pub(crate) fn read_cache(&self) -> &ReadCache {
        &self.read_cache
    }

    /// The folder below which Steward's own files lie, relative to the root; `None` if they lie in the root.
    #[must_use]
    pub fn steward_folder(&self) -> Option<&str> {
        self.steward_folder.as_deref()
    }

    /// Where a file lies in the vault: its path, or for a file of Steward's own its path below Steward's folder.
    #[must_use]
    pub fn locate<'p>(&self, path: &'p RecordPath) -> Cow<'p, str> {
        match self.steward_folder() {
            Some(folder) if path.own_kind().is_some() => Cow::Owned(format!("{folder}/{path}")),
            Some(_) | None => Cow::Borrowed(path.as_str()),
        }
    }

    /// Where a folder of Steward's own lies.
    #[must_use]
    pub fn locate_own_folder(&self, name: &str) -> String {
        self.steward_folder().map_or_else(|| name.to_owned(), |folder| format!("{folder}/{name}"))
    }

    /// Steward's folder, or a folder in it, if it is missing. It was made once and is never made again.
    #[must_use]
    pub fn find_missing_folder(&self) -> Option<String> {
        let folder = self.steward_folder()?;
        let is_folder = |path: &str| self.dir.metadata(path).is_ok_and(|meta| meta.is_dir());
        let inner = steward_folder::list_inner_folders().map(|name| format!("{folder}/{name}"));
        std::iter::once(folder.to_owned()).chain(inner).find(|path| !is_folder(path))
    }

    /// The path of the vault, with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Whether the folder is still where it was opened. The handle itself follows the folder wherever it is moved.
    #[must_use]
    pub fn placement(&self) -> FolderPlacement {
        use cap_std::fs::MetadataExt as _;
        let (Ok(there), Ok(held)) = (std::fs::metadata(&self.path), self.dir.dir_metadata()) else {
            return FolderPlacement::Gone;
        };
        let there = (std::os::unix::fs::MetadataExt::dev(&there), std::os::unix::fs::MetadataExt::ino(&there));
        if there == (held.dev(), held.ino()) { FolderPlacement::Here } else { FolderPlacement::Replaced }
    }

    /// Opens the folder that holds a file; `None` if there is none.
    pub(crate) fn open_parent(&self, path: &RecordPath) -> Result<Option<Dir>, VaultRootError> {
        let located = self.locate(path);
        self.open_folder(located.rsplit_once('/').map_or("", |(folder, _)| folder))
    }

    /// Opens the folder of a kind; `None` if there is none.
    fn open_kind_folder(&self, kind: RecordKind) -> Result<Option<Dir>, VaultRootError> {
        if kind.is_note() {
            return self.open_folder(kind.folder());
        }
        let folder = self.locate_own_folder(kind.folder());
        match self.open_folder(&folder)? {
            None if self.steward_folder.is_some() => {
                Err(VaultRootError::Io { path: format!("{folder}/"), source: io::ErrorKind::NotFound.into() })
            }
            opened => Ok(opened),
        }
    }

    /// Opens a folder of the vault, or its root for an empty name; `None` if there is none.
    fn open_folder(&self, name: &str) -> Result<Option<Dir>, VaultRootError> {
        match self.dir.open_dir(if name.is_empty() { "." } else { name }) {
            Ok(dir) => Ok(Some(dir)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(VaultRootError::Io { path: format!("{name}/"), source }),
        }
    }

    /// The folder that holds the folders of Steward's own files. It is never created here.
    pub(crate) fn open_own_root(&self) -> io::Result<Dir> {
        match self.steward_folder() {
            None => self.dir.try_clone(),
            Some(folder) => self.dir.open_dir(folder),
        }
    }

    /// Opens a folder of Steward's own files for writing, and creates it if it is missing. The folders of a vault with a
    /// mapping were made once and are never made again.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Dir> {
        let own = self.open_own_root()?;
        let was_made = self.steward_folder.is_some() && steward_folder::list_inner_folders().any(|made| made == name);
        match own.open_dir(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && !was_made => {
                own.create_dir_all(name)?;
                durable::sync_folder(&own)?;
                own.open_dir(name)
            }
            opened => opened,
        }
    }

    /// Opens the folder of a new file of Steward's own, and creates it if it is missing. Also returns the file's name in
    /// there.
    pub(crate) fn make_folder_for<'p>(&self, path: &'p RecordPath) -> io::Result<(Dir, &'p str)> {
        let (folder, name) = path.split_folder();
        match folder.split_once('/') {
            None => Ok((self.make_folder(folder)?, name)),
            Some((kind, source)) => {
                let own = self.open_own_root()?;
                let kind = match self.steward_folder() {
                    None => make_real_folder(&own, kind)?,
                    Some(_) => open_real_folder(&own, kind)?.ok_or(io::ErrorKind::NotFound)?,
                };
                Ok((make_real_folder(&kind, source)?, name))
            }
        }
    }

    /// Opens our own folder or one inside it, and creates it if it is missing.
    pub(crate) fn make_own_folder(&self, name: Option<&str>) -> io::Result<Dir> {
        let own = make_private_folder(&self.dir, OWN_FOLDER)?;
        name.map_or(Ok(own.try_clone()?), |name| make_private_folder(&own, name))
    }

    /// Opens our own folder or one inside it for reading; `None` if there is none.
    pub(crate) fn find_own_folder(&self, name: Option<&str>) -> io::Result<Option<Dir>> {
        match (open_real_folder(&self.dir, OWN_FOLDER)?, name) {
            (Some(own), Some(name)) => open_real_folder(&own, name),
            (own, _) => Ok(own),
        }
    }

    /// Reads a record, up to the size limit.
    ///
    /// # Errors
    /// [`VaultRootError`] if it is missing, a link, not a file, too large or unreadable.
    pub fn read_file(&self, path: &RecordPath) -> Result<RecordSnapshot, VaultRootError> {
        let located = self.locate(path);
        let (shown, limit) = (path.as_str().to_owned(), max_record_bytes(path));
        read_bounded_file(&self.dir, &FileToRead { name: &located, shown, limit })
    }

    /// Whether a record's file exists.
    #[must_use]
    pub fn exists(&self, path: &RecordPath) -> bool {
        self.dir.symlink_metadata(&*self.locate(path)).is_ok()
    }

    /// The entry of one record, as a listing would show it; `None` if the record does not exist.
    ///
    /// # Errors
    /// [`VaultRootError::Io`] if the file cannot be checked.
    pub fn find_entry(&self, path: &RecordPath) -> Result<Option<FolderEntry>, VaultRootError> {
        match self.dir.symlink_metadata(&*self.locate(path)) {
            Ok(meta) => Ok(Some(FolderEntry::new(path.file_name().to_owned(), &meta))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(VaultRootError::Io { path: path.as_str().to_owned(), source }),
        }
    }
}

/// Opens a folder that must not be a link; `None` if there is nothing of that name.
///
/// Somebody who can put a link there could redirect our writes and removals to other files.
pub(crate) fn open_real_folder(parent: &Dir, name: impl AsRef<OsStr>) -> io::Result<Option<Dir>> {
    let name = name.as_ref();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(Dir::from_std_file(File::from(fd)))),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("`{}` is a link or a file where Steward needs a folder of its own: remove it", name.display()),
        )),
        Err(e) => Err(e.into()),
    }
}

pub(crate) fn make_real_folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    make_folder_as(parent, name, &DirBuilder::new())
}

/// As [`make_real_folder`], but only the owner may use a new folder.
fn make_private_folder(parent: &Dir, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    builder.mode(private::FOLDER);
    make_folder_as(parent, name, &builder)
}

fn make_folder_as(parent: &Dir, name: &str, builder: &DirBuilder) -> io::Result<Dir> {
    if let Some(found) = open_real_folder(parent, name)? {
        return Ok(found);
    }
    match parent.create_dir_with(name, builder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        Ok(()) | Err(_) => durable::sync_folder(parent)?,
    }
    open_real_folder(parent, name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// A file in a folder, how messages call it, and the most bytes that it may have.
pub(crate) struct FileToRead<'a> {
    pub(crate) name: &'a str,
    pub(crate) shown: String,
    pub(crate) limit: usize,
}

/// Reads a file up to its limit.
///
/// # Errors
/// [`VaultRootError`] if it is missing, a link, not a file, too large or unreadable.
pub(crate) fn read_bounded_file(dir: &Dir, file: &FileToRead<'_>) -> Result<RecordSnapshot, VaultRootError> {
    let FileToRead { name, shown, limit } = file;
    let shown = || shown.clone();
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => VaultRootError::Missing { path: shown() },
        _ => VaultRootError::Io { path: shown(), source },
    };
    let too_large = |size| VaultRootError::TooLarge { path: shown(), size, limit: *limit };
    let meta = dir.symlink_metadata(name).map_err(failed)?;
    if meta.is_symlink() {
        return Err(VaultRootError::Link { path: shown() });
    }
    if !meta.is_file() {
        return Err(VaultRootError::NotAFile { path: shown() });
    }
    if meta.len() > *limit as u64 {
        return Err(too_large(meta.len()));
    }
    // A pipe or a link may have replaced the file since the check, and opening must not wait for a pipe's writer.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NEITHER_WAIT_NOR_FOLLOW);
    let opened = dir.open_with(name, &options).map_err(failed)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    opened.take(*limit as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > *limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(RecordSnapshot { hash: ContentHash::hash_bytes(&bytes), bytes })
}

#[cfg(test)]
mod tests;
