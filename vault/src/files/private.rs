//! Restricts our own folders and files to their owner.
//!
//! Permissions are changed by name: opening and closing a database's file would drop the locks that SQLite holds on it.
//! A file system without permissions, or a folder of another user, is reported and otherwise left alone.

use crate::files::root::OWN_FOLDER;
use std::fs::{Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The mode of a file.
pub const FILE: u32 = 0o600;
/// The mode of a folder.
pub const FOLDER: u32 = 0o700;
/// The permissions of the group and of all others.
const OTHERS: u32 = 0o077;
/// The prefixes of our files' names in a state folder. Other programs' files may lie beside them.
const OURS: [&str; 5] = ["state.db", "ledger.", "temporal.", "up.json", "serve-"];

/// Restricts the state folder, and our files in it, to their owner.
pub fn tighten_state(state_dir: &Path) {
    let is_own = state_dir.file_name().is_some_and(|name| name == OWN_FOLDER);
    report_failure(
        state_dir,
        tighten_folder(state_dir, |name| is_own || OURS.iter().any(|ours| name.starts_with(ours))),
    );
}

/// Restricts a database and its side files to their owner.
pub(crate) fn tighten_database(database: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let file = Path::new(&format!("{}{suffix}", database.display())).to_owned();
        report_failure(&file, tighten_mode(&file, FILE, Metadata::is_file));
    }
}

fn tighten_folder(folder: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<()> {
    tighten_mode(folder, FOLDER, Metadata::is_dir)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_ours(&entry.file_name().to_string_lossy()) {
            tighten_mode(&entry.path(), FILE, Metadata::is_file)?;
        }
    }
    Ok(())
}

/// Restricts one file. Links are left alone, because the file that a link names may be anybody's.
fn tighten_mode(path: &Path, mode: u32, is_kind: impl Fn(&Metadata) -> bool) -> io::Result<()> {
    let known = match std::fs::symlink_metadata(path) {
        Ok(meta) if is_kind(&meta) => meta,
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    if known.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        changed => changed,
    }
}

fn report_failure(path: &Path, tightened: io::Result<()>) {
    if let Err(e) = tightened {
        tracing::warn!("other users may be able to read {}: {e}; remove their permissions with chmod", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_ours_is_taken_from_others_and_what_is_theirs_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (own, shared, outside) =
            (dir.path().join(OWN_FOLDER), dir.path().join("shared"), dir.path().join("outside"));
        std::fs::write(&outside, "x").unwrap();
        for folder in [&own, &shared] {
            std::fs::create_dir(folder).unwrap();
            std::fs::create_dir(folder.join("staged")).unwrap();
            for file in ["state.db", "ledger.db-wal", "notes.txt", "staged/1"] {
                std::fs::write(folder.join(file), "x").unwrap();
                std::fs::set_permissions(folder.join(file), Permissions::from_mode(0o644)).unwrap();
            }
            std::os::unix::fs::symlink(&outside, folder.join("up.json")).unwrap();
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
            tighten_state(folder);
        }
        for folder in [&own, &shared] {
            assert_eq!((mode(folder), mode(&folder.join("state.db"))), (FOLDER, FILE));
            assert_eq!(mode(&folder.join("ledger.db-wal")), FILE);
            assert_eq!(mode(&folder.join("staged/1")), 0o644, "it will replace a file of the vault");
        }
        assert_eq!((mode(&own.join("notes.txt")), mode(&shared.join("notes.txt"))), (FILE, 0o644));
        assert_ne!(mode(&outside), FILE);
        tighten_state(&dir.path().join("not there"));
    }
}
