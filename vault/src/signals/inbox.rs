//! The drop folder: `inbox/` inside the vault, into which people and programs put files.
//!
//! Anything may lie there under any name, so links, pipes and folders are never followed. An ingested file moves to
//! `inbox/done/<date>/`. A file that cannot be read moves to `inbox/refused/`, with its reason in a file beside it. No
//! file is ever deleted. Only the file that was listed moves: a file that was written or replaced since then stays.
//! This module must not read the content of a file; the adapter of the drop folder does that.

use crate::files::disk::disk_error_hint;
use crate::files::durable;
use crate::files::root::{VaultRoot, make_real_folder, open_real_folder};
use cap_std::fs::{Dir, Metadata, MetadataExt};
use chrono::{DateTime, NaiveDate, Utc};
use rustix::fs::{Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The drop folder's name inside the vault.
pub const FOLDER: &str = "inbox";
const DONE: &str = "done";
const REFUSED: &str = "refused";
/// The longest stem of a name, in bytes: a number and an ending must still fit into 255.
const MAX_STEM: usize = 220;

/// The drop folder or a file in it cannot be used. The message holds the fix, if one is known.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}{}", disk_error_hint(source))]
pub struct InboxError {
    pub path: String,
    pub source: io::Error,
}

/// A file, link, pipe or device in the drop folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedFile {
    pub name: OsString,
    pub size: u64,
    pub modified: Option<DateTime<Utc>>,
    /// Whether it is a regular file.
    pub is_file: bool,
    inode: u64,
}

/// A file that was moved to `done` or `refused`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedFile {
    dropped: DroppedFile,
    folder: PathBuf,
    name: OsString,
}

/// The drop folder of a vault.
#[derive(Debug)]
pub struct Inbox {
    dir: Dir,
}

impl Inbox {
    /// Opens the drop folder, and creates it if it is missing.
    ///
    /// # Errors
    /// [`InboxError`] if it is a link or cannot be created.
    pub fn open(root: &VaultRoot) -> Result<Self, InboxError> {
        let made = root.open_own_root().and_then(|own| match root.steward_folder() {
            None => make_real_folder(&own, FOLDER),
            Some(_) => open_real_folder(&own, FOLDER)?.ok_or_else(|| io::ErrorKind::NotFound.into()),
        });
        made.map(|dir| Self { dir }).map_err(|e| inbox_error(OsStr::new(""), e))
    }

    /// Opens the drop folder; `None` if there is none.
    ///
    /// # Errors
    /// [`InboxError`] if it is a link or cannot be opened.
    pub fn open_existing(root: &VaultRoot) -> Result<Option<Self>, InboxError> {
        let opened = root.open_own_root().and_then(|own| open_real_folder(&own, FOLDER));
        let found = opened.map_err(|e| inbox_error(OsStr::new(""), e))?;
        Ok(found.map(|dir| Self { dir }))
    }

    /// Lists the files in the drop folder, in the order of their names. Hidden files and folders are left out.
    ///
    /// # Errors
    /// [`InboxError`] if it cannot be listed.
    pub fn list_waiting_files(&self) -> Result<Vec<DroppedFile>, InboxError> {
        let listed = |e| inbox_error(OsStr::new(""), e);
        let mut found = Vec::new();
        for entry in self.dir.entries().map_err(listed)? {
            let entry = entry.map_err(listed)?;
            let name = entry.file_name();
            if name.as_bytes().starts_with(b".") {
                continue;
            }
            match self.dir.symlink_metadata(&name) {
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) => found.push(DroppedFile::new(name, &meta)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(inbox_error(&name, e)),
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Opens a file for reading; `None` if it has changed since it was listed.
    ///
    /// # Errors
    /// [`InboxError`] if it cannot be opened.
    pub fn open_file(&self, dropped: &DroppedFile) -> Result<Option<File>, InboxError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.dir, &dropped.name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(e) => return Err(inbox_error(&dropped.name, e.into())),
        };
        Ok(self.is_unchanged(dropped, &file)?.then_some(file))
    }

    /// Whether an open file is as it was listed, so that its content was read completely.
    ///
    /// # Errors
    /// [`InboxError`] if the file cannot be checked.
    pub fn is_unchanged(&self, dropped: &DroppedFile, file: &File) -> Result<bool, InboxError> {
        let meta = file.metadata().map_err(|e| inbox_error(&dropped.name, e))?;
        Ok(meta.is_file() && DroppedFile::new(dropped.name.clone(), &Metadata::from_just_metadata(meta)) == *dropped)
    }

    /// Moves ingested files to `inbox/done/<date>/`. A file that has changed since it was listed stays.
    ///
    /// # Errors
    /// [`InboxError`] if a file cannot be moved; the files before it are moved.
    pub fn move_to_done(&self, files: &[DroppedFile], on: NaiveDate) -> Result<Vec<MovedFile>, InboxError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let to = make_real_folder(&self.dir, DONE).and_then(|done| make_real_folder(&done, &on.to_string()));
        let to = to.map_err(|e| inbox_error(OsStr::new(DONE), e))?;
        let folder = Path::new(DONE).join(on.to_string());
        let mut all = Vec::with_capacity(files.len());
        for dropped in files {
            let moved = self.move_unchanged_file(dropped, &to).map_err(|e| inbox_error(&dropped.name, e))?;
            all.extend(moved.map(|name| MovedFile { dropped: dropped.clone(), folder: folder.clone(), name }));
        }
        self.sync_folders(&to).map_err(|e| inbox_error(OsStr::new(DONE), e))?;
        Ok(all)
    }

    /// Moves a file that cannot be ingested to `inbox/refused/`, with its reason in a file beside it.
    ///
    /// A file that has changed since it was listed stays, and the result is `None`.
    ///
    /// # Errors
    /// [`InboxError`] if it cannot be moved.
    pub fn move_to_refused(&self, dropped: &DroppedFile, reason: &str) -> Result<Option<MovedFile>, InboxError> {
        let work = || {
            if !is_listed_file(&self.dir, &dropped.name, dropped)? {
                return Ok(None);
            }
            let to = make_real_folder(&self.dir, REFUSED)?;
            // The reason comes first, so that no file lies there without one.
            write_reason_file(&to, &dropped.name, reason)?;
            let moved = self.move_unchanged_file(dropped, &to)?;
            self.sync_folders(&to)?;
            Ok(moved.map(|name| MovedFile { dropped: dropped.clone(), folder: PathBuf::from(REFUSED), name }))
        };
        work().map_err(|e| inbox_error(&dropped.name, e))
    }

    /// Moves a file back to the drop folder if its writer has written more since it was moved away.
    ///
    /// Returns whether the file was moved back.
    ///
    /// # Errors
    /// [`InboxError`] if it cannot be checked or moved.
    pub fn return_file(&self, moved: &MovedFile) -> Result<bool, InboxError> {
        let work = || {
            let parts = moved.folder.iter().filter_map(OsStr::to_str);
            let mut folder = None;
            for part in parts {
                let Some(inner) = open_real_folder(folder.as_ref().unwrap_or(&self.dir), part)? else {
                    return Ok(false);
                };
                folder = Some(inner);
            }
            let Some(folder) = folder else { return Ok(false) };
            let now = match folder.symlink_metadata(&moved.name) {
                Ok(meta) => DroppedFile::new(moved.dropped.name.clone(), &meta),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(e) => return Err(e),
            };
            // A different file under that name was put there by a person.
            if now == moved.dropped || now.inode != moved.dropped.inode {
                return Ok(false);
            }
            rename_to_free_name(&folder, &moved.name, &self.dir, &moved.dropped.name)?;
            self.sync_folders(&folder)?;
            Ok(true)
        };
        work().map_err(|e| inbox_error(&moved.dropped.name, e))
    }

    /// Writes a reason into `inbox/refused/` about a part of a file that could not be ingested.
    ///
    /// # Errors
    /// [`InboxError`] if it cannot be written.
    pub fn leave_reason(&self, dropped: &DroppedFile, reason: &str) -> Result<(), InboxError> {
        let to = make_real_folder(&self.dir, REFUSED);
        to.and_then(|to| write_reason_file(&to, &dropped.name, reason)).map_err(|e| inbox_error(&dropped.name, e))
    }

    /// Moves a file under its name, or under a numbered name if that is taken; returns the new name.
    ///
    /// `None` if the file was moved already or has changed since it was listed.
    fn move_unchanged_file(&self, dropped: &DroppedFile, to: &Dir) -> io::Result<Option<OsString>> {
        if !is_listed_file(&self.dir, &dropped.name, dropped)? {
            return Ok(None);
        }
        self.move_listed_file(dropped, to)
    }

    /// Moves the file that has the name now, and moves it back if it is not the listed one.
    fn move_listed_file(&self, dropped: &DroppedFile, to: &Dir) -> io::Result<Option<OsString>> {
        let Some(moved) = rename_to_free_name(&self.dir, &dropped.name, to, &dropped.name)? else { return Ok(None) };
        if is_listed_file(to, &moved, dropped)? {
            return Ok(Some(moved));
        }
        // Somebody replaced the file before the move. If its name is taken again by now, it gets a numbered one.
        rename_to_free_name(to, &moved, &self.dir, &dropped.name)?;
        Ok(None)
    }

    fn sync_folders(&self, to: &Dir) -> io::Result<()> {
        durable::sync_folder(to)?;
        durable::sync_folder(&self.dir)
    }
}

impl DroppedFile {
    fn new(name: OsString, meta: &Metadata) -> Self {
        let nanos = u32::try_from(meta.mtime_nsec()).unwrap_or(0);
        Self {
            name,
            size: meta.len(),
            modified: DateTime::from_timestamp(meta.mtime(), nanos),
            is_file: meta.is_file(),
            inode: meta.ino(),
        }
    }

    /// The name for messages: on one line, with control characters escaped.
    #[must_use]
    pub fn display_name(&self) -> String {
        escape_name(&self.name)
    }

    /// The extension of the name in lower case; empty if there is none.
    #[must_use]
    pub fn lowercase_extension(&self) -> String {
        let name = self.name.to_string_lossy().to_lowercase();
        name.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_owned())
    }
}

/// Whether the file of this name is the listed one and has not changed.
fn is_listed_file(dir: &Dir, name: &OsStr, dropped: &DroppedFile) -> io::Result<bool> {
    match dir.symlink_metadata(name) {
        Ok(meta) => Ok(DroppedFile::new(dropped.name.clone(), &meta) == *dropped),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Moves a file to a name, or to a numbered name if that is taken, and never over another file.
///
/// Returns the new name; `None` if the file no longer exists.
fn rename_to_free_name(from: &Dir, old: &OsStr, to: &Dir, new: &OsStr) -> io::Result<Option<OsString>> {
    for number in 1_u32.. {
        let name = if number == 1 { new.to_owned() } else { number_name(new, number) };
        match renameat_with(from, old, to, &name, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Some(name)),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Writes `<name>.reason.txt`, and replaces an older one.
fn write_reason_file(to: &Dir, name: &OsStr, reason: &str) -> io::Result<()> {
    let stem = &name.as_bytes()[..name.len().min(MAX_STEM)];
    let note = format!("{}.reason.txt", String::from_utf8_lossy(stem).replace('\u{fffd}', "_"));
    durable::replace_file(to, &note, format!("{reason}\n").as_bytes())
}

/// `a.eml` as `a-2.eml`.
fn number_name(name: &OsStr, number: u32) -> OsString {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|b| *b == b'.').filter(|at| *at > 0).unwrap_or(bytes.len());
    let (stem, ending) = bytes.split_at(dot);
    let ending = &ending[..ending.len().min(20)];
    let mut new = stem[..stem.len().min(MAX_STEM)].to_vec();
    new.extend_from_slice(format!("-{number}").as_bytes());
    new.extend_from_slice(ending);
    OsString::from_vec(new)
}

fn escape_name(name: &OsStr) -> String {
    name.to_string_lossy().chars().flat_map(char::escape_debug).collect()
}

fn inbox_error(name: &OsStr, source: io::Error) -> InboxError {
    InboxError { path: format!("{FOLDER}/{}", escape_name(name)), source }
}

#[cfg(test)]
mod tests;
