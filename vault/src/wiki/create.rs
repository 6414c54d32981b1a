//! Makes the folder of a new wiki in a vault.
//!
//! Nothing that exists is replaced. The manifest is written last, so a folder without one is not a wiki yet, and making it again
//! completes it.

use crate::files::disk::disk_error_hint;
use crate::files::durable;
use crate::files::root::{VaultRoot, make_real_folder};
use crate::wiki::accept::find_accepted;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use steward_domain::wiki::template::NewFile;
use steward_domain::wiki::{LOG_FILE, MANIFEST_FILE, SOURCES_FOLDER};

/// The folder of a vault in which its wikis lie.
pub const WIKIS_FOLDER: &str = "wiki";

/// Why a wiki was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateWikiError {
    #[error("{} exists already: edit it, or choose another name", .0.display())]
    Exists(PathBuf),
    #[error("{}: {source}{}", .folder.display(), disk_error_hint(source))]
    Io { folder: PathBuf, source: io::Error },
}

/// Makes `wiki/<name>/` with these files. The name must be a slug. Returns the folder.
///
/// # Errors
/// [`CreateWikiError`].
pub fn create_wiki(root: &VaultRoot, name: &str, files: &[NewFile]) -> Result<PathBuf, CreateWikiError> {
    let folder = root.path().join(WIKIS_FOLDER).join(name);
    if folder.join(MANIFEST_FILE).symlink_metadata().is_ok() {
        return Err(CreateWikiError::Exists(folder.join(MANIFEST_FILE)));
    }
    let create = || {
        let dir = make_real_folder(&make_real_folder(root.dir(), WIKIS_FOLDER)?, name)?;
        make_real_folder(&dir, SOURCES_FOLDER)?;
        let (manifest, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.name == MANIFEST_FILE);
        for NewFile { name, text } in others.into_iter().chain(manifest) {
            match durable::create_file(&dir, name, text.as_bytes()) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                Ok(()) | Err(_) => {}
            }
        }
        durable::sync_folder(&dir)
    };
    create().map_err(|source| CreateWikiError::Io { folder: folder.clone(), source })?;
    Ok(folder)
}

/// The folders of the vault's wikis with their names, sorted by name: those with a manifest, and those that have lost it after a
/// person accepted it.
///
/// # Errors
/// The folder of wikis cannot be listed. A vault without one has no wikis.
pub fn list_wikis(root: &VaultRoot) -> io::Result<Vec<(String, PathBuf)>> {
    let folder = root.path().join(WIKIS_FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let (entry, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        // A link leads to a folder that is not the vault's.
        let is_real = |path: &Path, is: fn(&Metadata) -> bool| path.symlink_metadata().is_ok_and(|meta| is(&meta));
        let has = |file: &str| is_real(&path.join(file), Metadata::is_file);
        let is_known = |name: &str| has(LOG_FILE) && find_accepted(root, name).is_ok_and(|accepted| accepted.is_some());
        let has_nothing = || path.join(MANIFEST_FILE).symlink_metadata().is_err();
        if let Some(name) = entry.to_str()
            && is_real(&path, Metadata::is_dir)
            && (has(MANIFEST_FILE) || has_nothing() && is_known(name))
        {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wiki_is_made_once_and_nothing_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        assert_eq!(list_wikis(&root).unwrap(), []);
        let files = [MANIFEST_FILE, "_log.md"].map(|name| NewFile { name, text: "new".to_owned() });
        let folder = dir.path().canonicalize().unwrap().join("wiki/plot");
        std::fs::create_dir_all(folder.join("sources")).unwrap();
        std::fs::write(folder.join("_log.md"), "mine").unwrap();
        assert_eq!(create_wiki(&root, "plot", &files).unwrap(), folder);
        assert_eq!(std::fs::read_to_string(folder.join("_log.md")).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(folder.join(MANIFEST_FILE)).unwrap(), "new");
        assert!(matches!(create_wiki(&root, "plot", &files), Err(CreateWikiError::Exists(_))));
        std::os::unix::fs::symlink(&folder, dir.path().join("wiki/link")).unwrap();
        assert_eq!(list_wikis(&root).unwrap(), [("plot".to_owned(), folder)]);
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_refused() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = VaultRoot::open(dir.path()).unwrap();
        std::os::unix::fs::symlink(out.path(), dir.path().join(WIKIS_FOLDER)).unwrap();
        assert!(create_wiki(&root, "plot", &[NewFile { name: MANIFEST_FILE, text: String::new() }]).is_err());
        assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
    }
}
