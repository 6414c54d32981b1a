//! Files that a change names: records, and files of wikis.
//!
//! The folders of a wiki are entered one by one and never through a link, so that no link can lead a change out of its
//! wiki.

use crate::files::root::{
    FileToRead, RecordSnapshot, VaultRoot, VaultRootError, make_real_folder, open_real_folder, read_bounded_file,
};
use cap_std::fs::{Dir, Metadata};
use std::io;
use steward_domain::action::plan::ContentHash;
use steward_domain::action::target::WriteTarget;
use steward_domain::wiki::path::PagePath;

/// The name of a target's file in its folder.
pub(crate) fn target_name(target: &WriteTarget) -> &str {
    match target {
        WriteTarget::Record(path) => path.split_folder().1,
        WriteTarget::Page(path) => path.split_folders().1,
    }
}

impl VaultRoot {
    /// Opens the folder that holds a target; `None` if there is none.
    pub(crate) fn open_target_folder(&self, target: &WriteTarget) -> io::Result<Option<Dir>> {
        match target {
            WriteTarget::Record(path) => self.open_parent(path).map_err(io::Error::other),
            WriteTarget::Page(path) => self.open_folders(path.split_folders().0),
        }
    }

    /// Opens a folder of the vault, part by part; `None` if a part does not exist, or is a link or a file.
    pub(crate) fn open_folders<'p>(&self, parts: impl Iterator<Item = &'p str>) -> io::Result<Option<Dir>> {
        match self.open_real_folders(parts) {
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(None),
            opened => opened,
        }
    }

    /// As [`VaultRoot::open_folders`], but a link or a file in the way is an error.
    fn open_real_folders<'p>(&self, parts: impl Iterator<Item = &'p str>) -> io::Result<Option<Dir>> {
        let mut dir = self.dir().try_clone()?;
        for part in parts {
            match open_real_folder(&dir, part)? {
                Some(inner) => dir = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(dir))
    }

    /// Whether a link or a file stands where a target has a folder, so that nothing is known of the target.
    pub(crate) fn is_blocked(&self, target: &WriteTarget) -> bool {
        let WriteTarget::Page(path) = target else { return false };
        let opened = self.open_real_folders(path.split_folders().0);
        opened.is_err_and(|e| e.kind() == io::ErrorKind::NotADirectory)
    }

    /// Opens a folder of the vault, part by part and never through a link, and makes what is missing.
    pub(crate) fn make_folders<'p>(&self, parts: impl Iterator<Item = &'p str>) -> io::Result<Dir> {
        let mut dir = self.dir().try_clone()?;
        for part in parts {
            dir = make_real_folder(&dir, part)?;
        }
        Ok(dir)
    }

    /// The metadata of a target's file; `None` if it does not exist. A link is not followed.
    pub(crate) fn find_target(&self, target: &WriteTarget) -> io::Result<Option<Metadata>> {
        let Some(dir) = self.open_target_folder(target)? else { return Ok(None) };
        match dir.symlink_metadata(target_name(target)) {
            Ok(meta) => Ok(Some(meta)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The hash of a target's content; `None` if there is no file that could be one.
    pub(crate) fn hash_target(&self, target: &WriteTarget) -> io::Result<Option<ContentHash>> {
        match self.read_target(target) {
            Ok(snapshot) => Ok(Some(snapshot.hash)),
            Err(VaultRootError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(VaultRootError::Io { source, .. } | VaultRootError::Open { source, .. }) => Err(source),
            Err(VaultRootError::Missing { .. } | VaultRootError::Link { .. }) => Ok(None),
            Err(VaultRootError::NotAFile { .. } | VaultRootError::TooLarge { .. }) => Ok(None),
        }
    }

    /// Reads a target, up to the size that such a file may have.
    pub(crate) fn read_target(&self, target: &WriteTarget) -> Result<RecordSnapshot, VaultRootError> {
        match target {
            WriteTarget::Record(path) => self.read_file(path),
            WriteTarget::Page(path) => self.read_page(path),
        }
    }

    /// Reads a file of a wiki, up to the size that such a file may have.
    ///
    /// # Errors
    /// [`VaultRootError`] if it is missing, a link, not a file, too large or unreadable.
    pub fn read_page(&self, path: &PagePath) -> Result<RecordSnapshot, VaultRootError> {
        let shown = || path.to_string();
        let failed = |source| VaultRootError::Io { path: shown(), source };
        let (folders, name) = path.split_folders();
        let dir = self.open_real_folders(folders).map_err(failed)?;
        let dir = dir.ok_or_else(|| VaultRootError::Missing { path: shown() })?;
        read_bounded_file(&dir, &FileToRead { name, shown: shown(), limit: path.max_bytes() })
    }
}
