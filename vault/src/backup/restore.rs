//! Puts a backup into empty folders: another copy of the vault.
//!
//! The backup is checked first. The file with the vault's id comes last, so a restore that was cut short is no vault that a
//! process would serve for another. The restored copy has no id of its own in a fleet, so it must be let act there. The
//! count of clerk calls is missing, so the rate guard refuses calls until a person accepts that, or for a day.

use super::verify::{BackupVerification, verify_backup};
use super::{Backup, BackupError, STATE, VAULT};
use crate::files::root::OWN_FOLDER;
use crate::index::Index;
use rustix::fs::syncfs;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// What an empty disk may hold.
const USUAL: &str = "lost+found";
/// The file that makes a folder a vault of Steward's.
const IDENTITY: &str = "vault.json";

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
    for folder in [target.vault, target.state_dir] {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(BackupError::wrap_io(folder))?;
    }
    copy_tree(&backup.join(STATE), target.state_dir, |_| true)?;
    let identity = Path::new(OWN_FOLDER).join(IDENTITY);
    copy_tree(&backup.join(VAULT), target.vault, |path| path != identity)?;
    // Leases of the copy before would hold its tasks for up to half an hour.
    Handle::current().block_on(async {
        let index = Index::open(target.state_dir).await?;
        index.cursors().release_all_leases().await?;
        index.close().await;
        Ok::<_, crate::index::IndexError>(())
    })?;
    sync_disk(target.state_dir)?;
    sync_disk(target.vault)?;
    copy_file(&backup.join(VAULT), target.vault, &identity)?;
    sync_disk(target.vault)?;
    Ok(checked)
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

/// Copies folders, files and links.
fn copy_tree(from: &Path, to: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<(), BackupError> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let path = from.join(&folder);
        let failed = |e: io::Error| BackupError::wrap_io(&path)(e);
        if !folder.as_os_str().is_empty() {
            let mode = path.metadata().map_err(failed)?.mode() & 0o777;
            let made = DirBuilder::new().recursive(true).mode(mode).create(to.join(&folder));
            // The umask of this process may have taken some of them away.
            let made = made.and_then(|()| std::fs::set_permissions(to.join(&folder), Permissions::from_mode(mode)));
            made.map_err(BackupError::wrap_io(to.join(&folder)))?;
        }
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (kind, inner) = (entry.file_type().map_err(failed)?, folder.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(inner);
            } else if kind.is_symlink() {
                copy_link(&from.join(&inner), &to.join(&inner))?;
            } else if is_wanted(&inner) {
                copy_file(from, to, &inner)?;
            }
        }
    }
    Ok(())
}

fn copy_link(from: &Path, to: &Path) -> Result<(), BackupError> {
    let made = std::fs::read_link(from).and_then(|target| std::os::unix::fs::symlink(target, to));
    made.map_err(BackupError::wrap_io(to))
}

/// Copies a file with its permissions and its time of change.
fn copy_file(from: &Path, to: &Path, path: &Path) -> Result<(), BackupError> {
    let (from, to) = (from.join(path), to.join(path));
    let copied = std::fs::copy(&from, &to).and_then(|_| {
        let modified = from.metadata()?.modified()?;
        std::fs::File::open(&to)?.set_modified(modified)
    });
    copied.map_err(BackupError::wrap_io(to))
}

/// Makes everything on a folder's disk durable.
fn sync_disk(folder: &Path) -> Result<(), BackupError> {
    let opened = std::fs::File::open(folder).map_err(BackupError::wrap_io(folder))?;
    syncfs(&opened).map_err(|e| BackupError::wrap_io(folder)(e.into()))
}
