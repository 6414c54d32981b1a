//! Creates stream events, signals and instincts, and removes old extracted events. Creates a note if a person asks for it.
//!
//! Nobody else writes these files, so nothing is swapped and no audit record is filed. A file appears under its name
//! complete and durable, or not at all. It must never replace another file. Creating it twice creates it once. Its
//! fields change later only by the vault writer's other functions. [`VaultWriter::remove_extracted_events`] removes
//! extracted events that are old.

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

/// The staged name of a file that is being removed. Recovery removes what a crash leaves in the staging folder.
const OUTGOING: &str = "outgoing.md";

/// Why a file was not created or removed. Calling again is safe.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{path}: already exists with other content: move that file away if you do not need it")]
    Taken { path: RecordPath },
    #[error("{path}: only stream events, signals and instincts can be created")]
    Kind { path: RecordPath },
    #[error(transparent)]
    Disk(#[from] ApplyError),
}

/// The folders that were written into. Each is synced once at the end.
#[derive(Default)]
struct WrittenFolders(BTreeMap<String, Dir>);

impl VaultWriter {
    /// Writes a new, durable file; `false` if it already existed with the same bytes.
    ///
    /// # Errors
    /// [`CreateError::Taken`] if it exists with other bytes; [`CreateError::Disk`] names the fix.
    pub fn create_file(&self, path: &RecordPath, bytes: &[u8]) -> Result<bool, CreateError> {
        let written = self.create_files(&[(path.clone(), bytes.to_vec())])?;
        Ok(written.first().copied().unwrap_or(false))
    }

    /// Writes new, durable files; returns for each whether it was written.
    ///
    /// All are written before the first is synced, so that the disk does most of the work once for all of them.
    /// Pass a few hundred at a time: each file is held open until it is in place.
    ///
    /// # Errors
    /// As [`VaultWriter::create_file`], for the first file that fails. Some of the others may have been created.
    pub fn create_files(&self, files: &[(RecordPath, Vec<u8>)]) -> Result<Vec<bool>, CreateError> {
        let _state = self.lock_state()?;
        let mut folders = WrittenFolders::default();
        let staged = swap::open_staged_folder(self.root()).map_err(ApplyError::wrap_io(OWN_FOLDER))?;
        let mut open = Vec::with_capacity(files.len());
        for (number, (path, bytes)) in files.iter().enumerate() {
            open.push(stage_file(self.root(), &mut folders, &staged, &NewFile { number, path, bytes })?);
        }
        for (file, (path, _)) in open.iter().zip(files) {
            file.as_ref().map_or(Ok(()), File::sync_all).map_err(ApplyError::wrap_io(path))?;
        }
        let mut written = Vec::with_capacity(files.len());
        for (number, (file, (path, bytes))) in open.iter().zip(files).enumerate() {
            let new = NewFile { number, path, bytes };
            written.push(file.is_some() && publish_file(self.root(), &mut folders, &staged, &new)?);
        }
        // Folders of files that already existed are synced too: a crash may have come before their sync.
        folders.sync_all()?;
        Ok(written)
    }

    /// Creates a note that a person asked for, and its folder if it is missing.
    ///
    /// # Errors
    /// [`CreateError::Taken`] if there is a file of that name; [`CreateError::Disk`] names the fix.
    pub fn create_note(&self, path: &RecordPath, bytes: &[u8]) -> Result<(), CreateError> {
        let _state = self.lock_state()?;
        let failed = || ApplyError::wrap_io(path);
        let (folder, name) = path.split_folder();
        let dir = self.root().make_note_folder(folder).map_err(failed())?;
        let staged = swap::open_staged_folder(self.root()).map_err(failed())?;
        let incoming = incoming_name(0);
        durable::remove_file(&staged, &incoming).map_err(failed())?;
        let file = durable::create_file_unsynced(&staged, &incoming, bytes).map_err(failed())?;
        file.sync_all().map_err(failed())?;
        match renameat_with(&staged, &incoming, &dir, name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(durable::sync_folder(&dir).map_err(failed())?),
            Err(Errno::EXIST) => {
                durable::remove_file(&staged, &incoming).map_err(failed())?;
                Err(CreateError::Taken { path: path.clone() })
            }
            Err(e) => Err(failed()(e.into()).into()),
        }
    }

    /// Removes extracted events that were received before an instant; returns the number of removed files.
    ///
    /// New and parked events stay, whatever their age. So does every other file.
    ///
    /// # Errors
    /// [`CreateError::Disk`], which names the file and the fix; the files before it are removed.
    pub fn remove_extracted_events(&self, events: &[RecordPath], before: DateTime<Utc>) -> Result<u64, CreateError> {
        let _state = self.lock_state()?;
        let mut folders = WrittenFolders::default();
        let mut removed = 0;
        for path in events {
            removed += u64::from(drop_event(self.root(), &mut folders, path, before)?);
        }
        folders.sync_all()?;
        Ok(removed)
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

/// One file of a batch. The number names its staged file.
struct NewFile<'a> {
    number: usize,
    path: &'a RecordPath,
    bytes: &'a [u8],
}

/// Writes a file into the staging folder; `None` if it already exists in its place.
fn stage_file(
    root: &VaultRoot,
    folders: &mut WrittenFolders,
    staged: &Dir,
    new: &NewFile<'_>,
) -> Result<Option<File>, CreateError> {
    let NewFile { number, path, bytes } = *new;
    match path.own_kind() {
        Some(RecordKind::Stream | RecordKind::Signal | RecordKind::Instinct) => {}
        Some(RecordKind::Matter | RecordKind::Task | RecordKind::Event) | None => {
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

/// Moves a staged file to its name; `false` if a file with the same bytes exists there by now.
fn publish_file(
    root: &VaultRoot,
    folders: &mut WrittenFolders,
    staged: &Dir,
    new: &NewFile<'_>,
) -> Result<bool, CreateError> {
    let NewFile { number, path, bytes } = *new;
    let failed = || ApplyError::wrap_io(path);
    let dir = folders.open_parent(root, path).map_err(failed())?;
    match renameat_with(staged, incoming_name(number), dir, file_name(path), RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => {
            durable::remove_file(staged, incoming_name(number)).map_err(failed())?;
            check_same_content(root, path, bytes).map(|()| false)
        }
        Err(e) => Err(failed()(e.into()).into()),
    }
}

fn incoming_name(number: usize) -> String {
    format!("incoming-{number}.md")
}

/// Checks that an existing file holds the bytes that were to be written.
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
        // It is removed already, or it is not a file of ours.
        Err(_) => return Ok(false),
    };
    if path.own_kind() != Some(RecordKind::Stream) || !is_served_event(&there.bytes, before) {
        return Ok(false);
    }
    let failed = || ApplyError::wrap_io(path);
    let dir = folders.open_parent(root, path).map_err(failed())?;
    let staged = swap::open_staged_folder(root).map_err(failed())?;
    durable::remove_file(&staged, OUTGOING).map_err(failed())?;
    renameat_with(dir, file_name(path), &staged, OUTGOING, RenameFlags::NOREPLACE).map_err(|e| failed()(e.into()))?;
    let moved = staged.read(OUTGOING).map_err(failed())?;
    if moved != there.bytes {
        // A person wrote into it at this moment.
        renameat_with(&staged, OUTGOING, dir, file_name(path), RenameFlags::NOREPLACE)
            .map_err(|e| failed()(e.into()))?;
        return Ok(false);
    }
    durable::remove_file(&staged, OUTGOING).map_err(failed())?;
    Ok(true)
}

/// Whether the content is an extracted event that was received before an instant.
fn is_served_event(bytes: &[u8], before: DateTime<Utc>) -> bool {
    let event = frontmatter::read_document(bytes).ok().and_then(|d| StreamEvent::read(d.fields(), d.body()).ok());
    event.is_some_and(|e| e.status == EventStatus::Extracted && e.received_at < before)
}

/// The file's name in its folder. Unlike `RecordPath::file_name`, it leaves out the source of a stream event.
fn file_name(path: &RecordPath) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
