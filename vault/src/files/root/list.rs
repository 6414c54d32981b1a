//! Lists the files of a vault: those of one kind, and all notes.
//!
//! A listing opens no file. Hidden files and folders, and links to folders, are left out.

use super::{FolderEntry, VaultRoot, VaultRootError, make_real_folder, open_real_folder};
use crate::signals::inbox;
use cap_std::fs::{Dir, Metadata};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use steward_domain::record::path::RecordKind;

/// All notes of a vault.
#[derive(Debug, Default)]
pub struct NoteListing {
    /// In the order of paths. An entry's name is its path.
    pub notes: Vec<FolderEntry>,
    /// The folders that could not be listed, each with a slash at its end, and why. What lies in them is not known.
    pub unlisted: Vec<(String, VaultRootError)>,
}

impl NoteListing {
    /// Whether a note that is not listed does not exist: all folders in which it could lie were listed.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        !self.unlisted.iter().any(|(folder, _)| path.starts_with(folder))
    }
}

impl VaultRoot {
    /// Lists the Markdown files of a folder, in the order of their names. Hidden files are left out.
    ///
    /// Stream events lie one folder deeper: their names are `<source>/<id>.md`. A missing folder is empty.
    ///
    /// # Errors
    /// [`VaultRootError::Io`] if the folder cannot be listed.
    pub fn list_files(&self, kind: RecordKind) -> Result<Vec<FolderEntry>, VaultRootError> {
        let Some(dir) = self.open_kind_folder(kind)? else {
            return Ok(Vec::new());
        };
        let failed = |folder: String| move |source| VaultRootError::Io { path: format!("{folder}/"), source };
        let mut entries = list_markdown_files(&dir, "").map_err(failed(kind.folder().to_owned()))?;
        if kind == RecordKind::Stream {
            for source in list_folders(&dir).map_err(failed(kind.folder().to_owned()))? {
                let shown = source.to_string_lossy();
                let failed = failed(format!("{}/{shown}", kind.folder()));
                // The folder was removed since it was listed.
                let Some(inside) = open_real_folder(&dir, &source).map_err(&failed)? else { continue };
                entries.extend(list_markdown_files(&inside, &format!("{shown}/")).map_err(&failed)?);
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Lists every note of the vault, in the order of paths. An entry's name is its path.
    ///
    /// Hidden folders, links to folders and Steward's own folders are left out. So are folders of the root that are called
    /// like one of Steward's, because paths in records would mix them up.
    ///
    /// A folder that cannot be listed is part of the listing.
    ///
    /// # Errors
    /// [`VaultRootError::Io`] if the root cannot be listed.
    pub fn list_notes(&self) -> Result<NoteListing, VaultRootError> {
        let mut listing = NoteListing::default();
        let root = self.open_folder("")?;
        let mut waiting = vec![PathBuf::new()];
        // Folders are opened one at a time, because a process may have a thousand files open at most.
        while let Some(folder) = waiting.pop() {
            let prefix = if folder.as_os_str().is_empty() { String::new() } else { format!("{}/", folder.display()) };
            let listed = open_nested_folder(root.as_ref(), &folder).and_then(|dir| match dir {
                // The folder was removed since it was listed.
                None => Ok((Vec::new(), Vec::new())),
                Some(dir) => Ok((list_markdown_files(&dir, &prefix)?, list_folders(&dir)?)),
            });
            match listed {
                Ok((files, folders)) => {
                    listing.notes.extend(files);
                    let inner = folders.into_iter().map(|name| folder.join(name));
                    waiting.extend(inner.filter(|path| !self.is_steward_folder(&path.to_string_lossy())));
                }
                Err(source) if prefix.is_empty() => return Err(VaultRootError::Io { path: "/".into(), source }),
                Err(source) => {
                    listing.unlisted.push((prefix.clone(), VaultRootError::Io { path: prefix, source }));
                }
            }
        }
        listing.notes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Opens a folder of notes without following a link, and creates it if it is missing.
    pub(crate) fn make_note_folder(&self, folder: &str) -> io::Result<Dir> {
        let parts = folder.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(self.dir().try_clone()?, |dir, part| make_real_folder(&dir, part))
    }

    /// Whether a folder of the vault holds Steward's own files, or is called as if it did.
    pub(crate) fn is_steward_folder(&self, path: &str) -> bool {
        match self.steward_folder() {
            Some(folder) => path == folder || is_kind_folder(path),
            None => path == inbox::FOLDER || is_kind_folder(path),
        }
    }

    /// The names in a folder, in no order. The files are not opened. A missing folder is empty.
    pub(crate) fn list_names(&self, kind: RecordKind) -> Result<Vec<String>, VaultRootError> {
        let Some(dir) = self.open_kind_folder(kind)? else { return Ok(Vec::new()) };
        let failed = |source| VaultRootError::Io { path: format!("{}/", kind.folder()), source };
        let name =
            |entry: io::Result<cap_std::fs::DirEntry>| entry.map(|e| e.file_name().to_string_lossy().into_owned());
        dir.entries().and_then(|mut entries| entries.by_ref().map(name).collect()).map_err(failed)
    }
}

impl FolderEntry {
    pub(crate) fn new(name: String, meta: &Metadata) -> Self {
        use cap_std::fs::MetadataExt;
        let modified_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
        let born = meta.created().ok().and_then(|born| born.into_std().duration_since(UNIX_EPOCH).ok());
        let born_ns = born.and_then(|born| i64::try_from(born.as_nanos()).ok()).unwrap_or_default();
        Self { name, size: meta.len(), modified_ns, inode: meta.ino(), born_ns }
    }
}

/// Whether a folder is called like one of Steward's own kinds.
fn is_kind_folder(name: &str) -> bool {
    RecordKind::ALL.iter().any(|kind| !kind.is_note() && kind.folder() == name)
}

/// The Markdown files of a folder, with a prefix before their names.
fn list_markdown_files(dir: &Dir, prefix: &str) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || !name.ends_with(".md") {
            continue;
        }
        match entry.metadata() {
            Ok(meta) => entries.push(FolderEntry::new(format!("{prefix}{name}"), &meta)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(source),
        }
    }
    Ok(entries)
}

/// Opens a folder below the root without following a link; `None` if it is gone.
fn open_nested_folder(root: Option<&Dir>, folder: &Path) -> io::Result<Option<Dir>> {
    let Some(root) = root else { return Ok(None) };
    let mut dir = root.try_clone()?;
    for name in folder.iter() {
        match open_real_folder(&dir, name)? {
            Some(inner) => dir = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(dir))
}

/// The folders inside a folder that are neither hidden nor links.
fn list_folders(dir: &Dir) -> io::Result<Vec<OsString>> {
    let mut found = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() && !name.to_string_lossy().starts_with('.') {
            found.push(name);
        }
    }
    Ok(found)
}
