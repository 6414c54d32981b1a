//! Puts a backup into empty folders: another copy of the vault.
//!
//! The backup is checked first. A marker is in the vault until everything is there, so no process serves a restore that was
//! cut short. The restored copy has no id of its own in a fleet, so it must be let act there. The
//! count of clerk calls is missing, so the rate guard refuses calls until a person accepts that, or for a day.

use super::files::copy_file;
use super::verify::{BackupVerification, verify_backup};
use super::{Backup, BackupError, STATE, VAULT};
use crate::files::durable::{create_file, remove_file};
use crate::files::root::{OWN_FOLDER, RESTORING};
use crate::index::Index;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, Permissions, PermissionsExt};
use rustix::fs::syncfs;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// What an empty disk may hold.
const USUAL: &str = "lost+found";

/// The folders that a backup is restored into. They may be missing.
#[derive(Clone, Copy, Debug)]
pub struct RestoreTarget<'a> {
    pub vault: &'a Path,
    pub state_dir: &'a Path,
}

/// Restores a backup. Blocks; call it on a thread that may block, inside a runtime.
///
/// # Errors
/// [`BackupError::NotEmpty`] or [`BackupError::Damaged`]: then nothing was written. [`BackupError::Io`]: then the folders
/// hold a part, which must be removed.
pub fn restore_backup(backup: &Path, target: RestoreTarget<'_>) -> Result<Backup, BackupError> {
    refuse_full_folder(target.vault)?;
    if !target.state_dir.starts_with(target.vault) {
        refuse_full_folder(target.state_dir)?;
    }
    let BackupVerification { backup: checked, faults, .. } = verify_backup(backup)?;
    if !faults.is_empty() {
        return Err(BackupError::Damaged { folder: backup.to_owned(), faults });
    }
    let vault = open_folder(target.vault)?;
    write_marker(&vault).map_err(BackupError::wrap_io(target.vault))?;
    let state = open_folder(target.state_dir)?;
    let mut links = copy_tree(&backup.join(STATE), &state)?;
    links.extend(copy_tree(&backup.join(VAULT), &vault)?);
    // Links come last, so that nothing is written through one.
    for LinkCopy { dir, path, target } in links {
        dir.symlink_contents(&target, &path).map_err(BackupError::wrap_io(path))?;
    }
    // Leases of the copy before would hold its tasks for up to half an hour.
    Handle::current().block_on(async {
        let index = Index::open(target.state_dir).await?;
        index.cursors().release_all_leases().await?;
        index.close().await;
        Ok::<_, crate::index::IndexError>(())
    })?;
    sync_disk(target.state_dir)?;
    sync_disk(target.vault)?;
    remove_file(&vault, Path::new(OWN_FOLDER).join(RESTORING)).map_err(BackupError::wrap_io(target.vault))?;
    sync_disk(target.vault)?;
    Ok(checked)
}

/// Says in the vault that it is being restored, so that no process serves a part of it.
fn write_marker(vault: &Dir) -> io::Result<()> {
    let mut builder = cap_std::fs::DirBuilder::new();
    cap_std::fs::DirBuilderExt::mode(&mut builder, 0o700);
    vault.create_dir_with(OWN_FOLDER, &builder)?;
    create_file(&vault.open_dir(OWN_FOLDER)?, RESTORING, b"")
}

fn open_folder(folder: &Path) -> Result<Dir, BackupError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let opened = made.and_then(|()| Dir::open_ambient_dir(folder, ambient_authority()));
    opened.map_err(BackupError::wrap_io(folder))
}

fn refuse_full_folder(folder: &Path) -> Result<(), BackupError> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(BackupError::wrap_io(folder))?,
    };
    match entries.flatten().any(|entry| entry.file_name() != USUAL) {
        true => Err(BackupError::NotEmpty(folder.to_owned())),
        false => Ok(()),
    }
}

/// A link that is still to be made.
struct LinkCopy {
    dir: Dir,
    path: PathBuf,
    target: PathBuf,
}

/// Copies folders and files, and returns the links. Neither side is ever left through a link.
fn copy_tree(from: &Path, to: &Dir) -> Result<Vec<LinkCopy>, BackupError> {
    let source = Dir::open_ambient_dir(from, ambient_authority()).map_err(BackupError::wrap_io(from))?;
    let (mut links, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = waiting.pop() {
        let path = from.join(&folder);
        let failed = |e: io::Error| BackupError::wrap_io(&path)(e);
        let opened = if folder.as_os_str().is_empty() { source.try_clone() } else { source.open_dir(&folder) };
        let opened = opened.map_err(failed)?;
        let target = if folder.as_os_str().is_empty() { to.try_clone() } else { make_folder(to, &folder, &opened) };
        let target = target.map_err(failed)?;
        for entry in opened.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (kind, name) = (entry.file_type().map_err(failed)?, entry.file_name());
            if kind.is_dir() {
                waiting.push(folder.join(name));
            } else if kind.is_symlink() {
                let named = opened.read_link_contents(&name).map_err(failed)?;
                links.push(LinkCopy { dir: target.try_clone().map_err(failed)?, path: name.into(), target: named });
            } else {
                copy_file(&opened, &target, Path::new(&name)).map_err(failed)?;
            }
        }
    }
    Ok(links)
}

fn make_folder(to: &Dir, folder: &Path, model: &Dir) -> io::Result<Dir> {
    let mode = Permissions::from_mode(model.dir_metadata()?.mode() & 0o777);
    match to.create_dir(folder) {
        // The umask of this process may have taken permissions away.
        Ok(()) => to.set_permissions(folder, mode)?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    to.open_dir(folder)
}

/// Makes everything on a folder's disk durable.
fn sync_disk(folder: &Path) -> Result<(), BackupError> {
    let opened = std::fs::File::open(folder).map_err(BackupError::wrap_io(folder))?;
    syncfs(&opened).map_err(|e| BackupError::wrap_io(folder)(e.into()))
}
