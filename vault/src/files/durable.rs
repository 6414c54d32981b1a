//! Writes files that survive a power cut.
//!
//! A name appears only with complete content, and a failed write leaves nothing behind. New names are durable only
//! after [`sync_folder`]. This module must not decide what is written.

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use rustix::fs::{Gid, Uid, fchown};
use std::io::{self, Write};
use std::path::Path;

/// Only the owner may read a file until its permissions are known.
const PRIVATE: u32 = 0o600;
/// The process's umask reduces this mode.
const USUAL: u32 = 0o666;

/// Writes a new file. The folder is not synced.
pub(crate) fn create_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    remove_failed_file(dir, name, open_new(dir, name, USUAL).and_then(|file| write_and_sync(file, bytes)))
}

/// Writes a new file and returns it. The file is not synced.
pub(crate) fn create_file_unsynced(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<File> {
    let mut file = open_new(dir, name, USUAL)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Writes a new file that will replace another, with the same permissions and the same owner.
///
/// # Errors
/// Errors of the disk. Also an error if the owner cannot be kept and could no longer write their own file.
pub(crate) fn create_file_like(dir: &Dir, name: &str, bytes: &[u8], model: &Metadata) -> io::Result<()> {
    let written = open_new(dir, name, PRIVATE).and_then(|file| {
        keep_owner(&file, model)?;
        file.set_permissions(Permissions::from_mode(model.mode() & 0o7777))?;
        write_and_sync(file, bytes)
    });
    remove_failed_file(dir, name, written)
}

/// Writes a file, and replaces any file of that name. The folder is not synced.
pub(crate) fn replace_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    replace_file_with_mode(dir, name, bytes, USUAL)
}

/// As [`replace_file`], but only the owner may read the file.
pub(crate) fn replace_private_file(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    replace_file_with_mode(dir, name, bytes, PRIVATE)
}

fn replace_file_with_mode(dir: &Dir, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    remove_file(dir, &temporary)?;
    remove_failed_file(dir, &temporary, open_new(dir, &temporary, mode).and_then(|file| write_and_sync(file, bytes)))?;
    remove_failed_file(dir, &temporary, dir.rename(&temporary, dir, name))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(dir: &Dir) -> io::Result<()> {
    rustix::fs::fsync(dir.open(".")?).map_err(io::Error::from)
}

/// Removes a file. A missing file is no error.
pub(crate) fn remove_file(dir: &Dir, name: impl AsRef<Path>) -> io::Result<()> {
    match dir.remove_file(name) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens a new file. A link of that name is never followed.
fn open_new(dir: &Dir, name: &str, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    dir.open_with(name, &options)
}

fn write_and_sync(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

fn remove_failed_file(dir: &Dir, name: &str, written: io::Result<()>) -> io::Result<()> {
    if written.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::AlreadyExists) {
        // Only the error of the write is reported.
        let _ = dir.remove_file(name);
    }
    written
}

/// Gives the new file the owner and the group of the old one, so that its owner keeps their access.
fn keep_owner(file: &File, model: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (model.uid(), model.gid()) {
        return Ok(());
    }
    if own.gid() != model.gid() {
        // If this is not allowed, the check below decides whether the group is needed.
        let _ = fchown(file, None, Some(Gid::from_raw(model.gid())));
    }
    if own.uid() == model.uid() || fchown(file, Some(Uid::from_raw(model.uid())), None).is_ok() {
        return Ok(());
    }
    let shared = file.metadata()?.gid() == model.gid() && model.mode() & 0o060 == 0o060;
    if shared {
        return Ok(());
    }
    let reason = "belongs to another user, who could no longer write it after a change: run Steward as the user who \
                  owns the vault, or share the files through a group that may write them";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

#[cfg(test)]
mod tests;
