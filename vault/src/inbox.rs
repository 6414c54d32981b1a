//! The drop folder: `inbox/` inside the vault, into which people and programs put files.
//!
//! Anything may lie there under any name, so nothing is followed: no link, no pipe, no folder. A file
//! that was taken in moves to `inbox/done/<date>/`, one that cannot be read to `inbox/refused/` with a
//! note beside it; nothing is ever deleted. What a file says is for the adapter of the drop folder to
//! understand; nothing here reads a byte of it.

use crate::durable;
use crate::keeper::mend;
use crate::root::{Root, make_real_folder, real_folder};
use cap_std::fs::{Dir, Metadata, MetadataExt};
use chrono::{DateTime, NaiveDate, Utc};
use rustix::fs::{Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The folder, inside the vault.
pub const FOLDER: &str = "inbox";
const DONE: &str = "done";
const REFUSED: &str = "refused";
/// What is kept of a long name, in bytes, so that a number and an ending still fit into 255.
const MAX_STEM: usize = 220;

/// Trouble with the drop folder, with the mend.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}{}", mend(source))]
pub struct InboxError {
    pub path: String,
    pub source: io::Error,
}

/// What lies in the drop folder, and is no folder itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub name: OsString,
    pub size: u64,
    pub modified: Option<DateTime<Utc>>,
    /// A file, not a link, pipe or device.
    pub is_file: bool,
    inode: u64,
}

/// The drop folder of a vault.
#[derive(Debug)]
pub struct Inbox {
    dir: Dir,
}

impl Inbox {
    /// Opens the drop folder, creating it.
    ///
    /// # Errors
    /// [`InboxError`] when it is a link or cannot be made.
    pub fn open(root: &Root) -> Result<Self, InboxError> {
        make_real_folder(root.dir(), FOLDER).map(|dir| Self { dir }).map_err(|e| failed(OsStr::new(""), e))
    }

    /// Opens the drop folder where there is one.
    ///
    /// # Errors
    /// [`InboxError`] when it is a link or cannot be opened.
    pub fn find(root: &Root) -> Result<Option<Self>, InboxError> {
        let found = real_folder(root.dir(), FOLDER).map_err(|e| failed(OsStr::new(""), e))?;
        Ok(found.map(|dir| Self { dir }))
    }

    /// What lies there, in the order of names; hidden files and folders are let be.
    ///
    /// # Errors
    /// [`InboxError`] when it cannot be listed.
    pub fn waiting(&self) -> Result<Vec<Dropped>, InboxError> {
        let listed = |e| failed(OsStr::new(""), e);
        let mut found = Vec::new();
        for entry in self.dir.entries().map_err(listed)? {
            let entry = entry.map_err(listed)?;
            let name = entry.file_name();
            if name.as_bytes().starts_with(b".") {
                continue;
            }
            match self.dir.symlink_metadata(&name) {
                Ok(meta) if meta.is_dir() => {}
                Ok(meta) => found.push(Dropped::new(name, &meta)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(failed(&name, e)),
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Opens a file to read it; `None` when it is not the file that was listed any more.
    ///
    /// # Errors
    /// [`InboxError`] when it cannot be opened.
    pub fn read(&self, dropped: &Dropped) -> Result<Option<File>, InboxError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.dir, &dropped.name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(e) => return Err(failed(&dropped.name, e.into())),
        };
        let meta = file.metadata().map_err(|e| failed(&dropped.name, e))?;
        let is_it = meta.is_file() && std::os::unix::fs::MetadataExt::ino(&meta) == dropped.inode;
        Ok(is_it.then_some(file))
    }

    /// Moves files that were taken in to `inbox/done/<date>/`.
    ///
    /// # Errors
    /// [`InboxError`] when one cannot be moved; those before it are.
    pub fn done(&self, files: &[Dropped], on: NaiveDate) -> Result<(), InboxError> {
        if files.is_empty() {
            return Ok(());
        }
        let to = make_real_folder(&self.dir, DONE).and_then(|done| make_real_folder(&done, &on.to_string()));
        let to = to.map_err(|e| failed(OsStr::new(DONE), e))?;
        files.iter().try_for_each(|d| self.move_to(d, &to).map_err(|e| failed(&d.name, e)))?;
        self.settle(&to).map_err(|e| failed(OsStr::new(DONE), e))
    }

    /// Moves what cannot be taken in to `inbox/refused/`, with the reason beside it.
    ///
    /// # Errors
    /// [`InboxError`] when it cannot be moved.
    pub fn refuse(&self, dropped: &Dropped, reason: &str) -> Result<(), InboxError> {
        let work = || {
            let to = make_real_folder(&self.dir, REFUSED)?;
            // The note first: a file there without one would be a riddle.
            note(&to, &dropped.name, reason)?;
            self.move_to(dropped, &to)?;
            self.settle(&to)
        };
        work().map_err(|e| failed(&dropped.name, e))
    }

    /// Leaves a note in `inbox/refused/` about a part of a file that could not be taken in.
    ///
    /// # Errors
    /// [`InboxError`] when it cannot be written.
    pub fn remark(&self, dropped: &Dropped, reason: &str) -> Result<(), InboxError> {
        let to = make_real_folder(&self.dir, REFUSED);
        to.and_then(|to| note(&to, &dropped.name, reason)).map_err(|e| failed(&dropped.name, e))
    }

    /// Moves a file under its name, or one like it where that is taken. One that is gone was moved.
    fn move_to(&self, dropped: &Dropped, to: &Dir) -> io::Result<()> {
        for number in 1_u32.. {
            let name = if number == 1 { dropped.name.clone() } else { numbered(&dropped.name, number) };
            match renameat_with(&self.dir, &dropped.name, to, &name, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::NOENT) => break,
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn settle(&self, to: &Dir) -> io::Result<()> {
        durable::sync(to)?;
        durable::sync(&self.dir)
    }
}

impl Dropped {
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

    /// The name as it can be shown: on one line, without what drives a terminal.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(&self.name)
    }

    /// The ending of the name, lower-cased; empty where there is none.
    #[must_use]
    pub fn ending(&self) -> String {
        let name = self.name.to_string_lossy().to_lowercase();
        name.rsplit_once('.').map_or_else(String::new, |(_, ending)| ending.to_owned())
    }
}

/// Writes `<name>.reason.txt` over an older one.
fn note(to: &Dir, name: &OsStr, reason: &str) -> io::Result<()> {
    let stem = &name.as_bytes()[..name.len().min(MAX_STEM)];
    let note = format!("{}.reason.txt", String::from_utf8_lossy(stem).replace('\u{fffd}', "_"));
    durable::replace(to, &note, format!("{reason}\n").as_bytes())
}

/// `a.eml` as `a-2.eml`.
fn numbered(name: &OsStr, number: u32) -> OsString {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|b| *b == b'.').filter(|at| *at > 0).unwrap_or(bytes.len());
    let (stem, ending) = bytes.split_at(dot);
    let ending = &ending[..ending.len().min(20)];
    let mut new = stem[..stem.len().min(MAX_STEM)].to_vec();
    new.extend_from_slice(format!("-{number}").as_bytes());
    new.extend_from_slice(ending);
    OsString::from_vec(new)
}

fn shown(name: &OsStr) -> String {
    name.to_string_lossy().chars().flat_map(char::escape_debug).collect()
}

fn failed(name: &OsStr, source: io::Error) -> InboxError {
    InboxError { path: format!("{FOLDER}/{}", shown(name)), source }
}

#[cfg(test)]
mod tests;
