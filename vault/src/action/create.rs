//! New files of ours, and the end of those that have served: stream events, signals and instincts.
//!
//! They are no human's words about a matter, so nothing is swapped or filed in the chain: a file
//! appears under its name whole and durable, or not at all, and never over another. Asked twice, it is
//! there once. What stands in them changes later by the keeper's other ways alone; extracted events
//! are dropped when they are old ([`VaultWriter::purge`]).

use crate::action::swap;
use crate::action::writer::{ApplyError, VaultWriter};
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot, VaultRootError};
use cap_std::fs::{Dir, File};
use chrono::{DateTime, Utc};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::stream::{EventStatus, StreamEvent};

/// The staged file's name on its way out; what a crash leaves of it, or of those coming in, is swept.
const OUTGOING: &str = "outgoing.md";

/// Why a file was not written or dropped. Asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{path}: there already with other words: move that file away if it is not wanted")]
    Taken { path: RecordPath },
    #[error("{path}: only stream events, signals and instincts are written whole")]
    Kind { path: RecordPath },
    #[error(transparent)]
    Disk(#[from] ApplyError),
}

/// The folders that were written into, to be made durable once.
#[derive(Default)]
struct WrittenFolders(BTreeMap<String, Dir>);

impl VaultWriter {
    /// Writes a new file, durable; `false` where it was there with these very bytes.
    ///
    /// # Errors
    /// [`CreateError::Taken`] where it is there with others; [`CreateError::Disk`] names the mend.
    pub fn create_file(&self, path: &RecordPath, bytes: &[u8]) -> Result<bool, CreateError> {
        let written = self.create_files(&[(path.clone(), bytes.to_vec())])?;
        Ok(written.first().copied().unwrap_or(false))
    }

    /// Writes new files, durable; says for each whether it was written.
    ///
    /// All are written before the first is synced, so that the disk does most of the work once for all of
    /// them. Hand over some hundred at a time: each is held open until it is in place.
    ///
    /// # Errors
    /// As [`VaultWriter::create`], at the first file that fails; some of the others may be there.
    pub fn create_files(&self, files: &[(RecordPath, Vec<u8>)]) -> Result<Vec<bool>, CreateError> {
        let _turn = self.lock_state()?;
        let mut folders = WrittenFolders::default();
        let staged = swap::open_staged_folder(self.root()).map_err(ApplyError::wrap_io(OWN_FOLDER))?;
        let mut open = Vec::with_capacity(files.len());
        for (number, (path, bytes)) in files.iter().enumerate() {
            open.push(stage_file(self.root(), &mut folders, &staged, (number, path, bytes))?);
        }
        for (file, (path, _)) in open.iter().zip(files) {
            file.as_ref().map_or(Ok(()), File::sync_all).map_err(ApplyError::wrap_io(path))?;
        }
        let mut written = Vec::with_capacity(files.len());
        for (number, (file, (path, bytes))) in open.iter().zip(files).enumerate() {
            written.push(file.is_some() && publish_file(self.root(), &mut folders, &staged, (number, path, bytes))?);
        }
        // Also those of files that were there: a crash may have come before their sync.
        folders.sync_all()?;
        Ok(written)
    }

    /// Drops extracted events that came before an instant; how many files are gone by it.
    ///
    /// Events that wait or were parked stay, whatever their age, and so does every other file.
    ///
    /// # Errors
    /// [`CreateError::Disk`] naming the file and the mend; those before it are gone.
    pub fn remove_extracted_events(&self, events: &[RecordPath], before: DateTime<Utc>) -> Result<u64, CreateError> {
        let _turn = self.lock_state()?;
        let mut folders = WrittenFolders::default();
        let mut gone = 0;
        for path in events {
            gone += u64::from(drop_event(self.root(), &mut folders, path, before)?);
        }
        folders.sync_all()?;
        Ok(gone)
    }
}

impl WrittenFolders {
    fn open_parent<'a>(&'a mut self, root: &VaultRoot, path: &RecordPath) -> io::Result<&'a Dir> {
        let name = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        if !self.0.contains_key(&name) {
            let (dir, _) = root.make_folder_for(path)?;
            self.0.insert(name.clone(), dir);
        }
        self.0.get(&name).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_all(&self) -> Result<(), ApplyError> {
        self.0
            .iter()
            .try_for_each(|(name, dir)| durable::sync_folder(dir).map_err(ApplyError::wrap_io(format!("{name}/"))))
    }
}

/// One of a batch: its number, where it goes, what it says.
type NewFile<'a> = (usize, &'a RecordPath, &'a [u8]);

/// Writes a file beside the vault's own; `None` where it is in place already.
fn stage_file(
    root: &VaultRoot,
    folders: &mut WrittenFolders,
    staged: &Dir,
    one: NewFile<'_>,
) -> Result<Option<File>, CreateError> {
    let (number, path, bytes) = one;
    match path.kind() {
        RecordKind::Stream | RecordKind::Signal | RecordKind::Instinct => {}
        RecordKind::Matter | RecordKind::Task | RecordKind::Event => {
            return Err(CreateError::Kind { path: path.clone() });
        }
    }
    let failed = || ApplyError::wrap_io(path);
    folders.open_parent(root, path).map_err(failed())?;
    if root.exists(path) {
        return check_same_content(root, path, bytes).map(|()| None);
    }
    let name = incoming_name(number);
    durable::remove_file(staged, &name).map_err(failed())?;
    Ok(Some(durable::create_file_unsynced(staged, &name, bytes).map_err(failed())?))
}

/// Lets a staged file appear under its name; `false` where that is there by now with the same words.
fn publish_file(
    root: &VaultRoot,
    folders: &mut WrittenFolders,
    staged: &Dir,
    one: NewFile<'_>,
) -> Result<bool, CreateError> {
    let (number, path, bytes) = one;
    let failed = || ApplyError::wrap_io(path);
    let dir = folders.open_parent(root, path).map_err(failed())?;
    match renameat_with(staged, incoming_name(number), dir, file_name(path), RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => {
            durable::remove_file(staged, &incoming_name(number)).map_err(failed())?;
            check_same_content(root, path, bytes).map(|()| false)
        }
        Err(e) => Err(failed()(e.into()).into()),
    }
}

fn incoming_name(number: usize) -> String {
    format!("incoming-{number}.md")
}

/// A file that is there is done when it holds what was to be written.
fn check_same_content(root: &VaultRoot, path: &RecordPath, bytes: &[u8]) -> Result<(), CreateError> {
    let is_same = root.read_file(path).is_ok_and(|there| there.bytes == bytes);
    if is_same { Ok(()) } else { Err(CreateError::Taken { path: path.clone() }) }
}

fn drop_event(
    root: &VaultRoot,
    folders: &mut WrittenFolders,
    path: &RecordPath,
    before: DateTime<Utc>,
) -> Result<bool, CreateError> {
    let there = match root.read_file(path) {
        Ok(there) => there,
        Err(VaultRootError::Io { path, source }) => return Err(ApplyError::wrap_io(path)(source).into()),
        // Gone already, or none of ours.
        Err(_) => return Ok(false),
    };
    if path.kind() != RecordKind::Stream || !is_served_event(&there.bytes, before) {
        return Ok(false);
    }
    let failed = || ApplyError::wrap_io(path);
    let dir = folders.open_parent(root, path).map_err(failed())?;
    let staged = swap::open_staged_folder(root).map_err(failed())?;
    durable::remove_file(&staged, OUTGOING).map_err(failed())?;
    renameat_with(dir, file_name(path), &staged, OUTGOING, RenameFlags::NOREPLACE).map_err(|e| failed()(e.into()))?;
    let moved = staged.read(OUTGOING).map_err(failed())?;
    if moved != there.bytes {
        // A human wrote into it this very moment.
        renameat_with(&staged, OUTGOING, dir, file_name(path), RenameFlags::NOREPLACE)
            .map_err(|e| failed()(e.into()))?;
        return Ok(false);
    }
    durable::remove_file(&staged, OUTGOING).map_err(failed())?;
    Ok(true)
}

/// Whether these are the words of an event that was extracted and came before an instant.
fn is_served_event(bytes: &[u8], before: DateTime<Utc>) -> bool {
    let event = frontmatter::read_document(bytes).ok().and_then(|d| StreamEvent::read(d.fields(), d.body()).ok());
    event.is_some_and(|e| e.status == EventStatus::Extracted && e.received_at < before)
}

/// The file's name in its own folder.
fn file_name(path: &RecordPath) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
