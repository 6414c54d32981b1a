//! Watches the vault and hints that records have changed.
//!
//! A hint may be missing: events get lost, queues overflow, network drives send none. So the periodic scans of
//! [`crate::index`] find every change. An event that is not understood becomes [`ChangeHint::Rescan`]. Only the folders
//! of records are watched, so a large attachment folder or a git history costs nothing. A finished file (renamed into
//! place, or closed by its writer) is hinted at immediately. Other changes wait for further ones (`pending`).

mod pending;

use crate::files::root::VaultRoot;
use crate::signals::inbox;
use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use pending::PendingChanges;
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use steward_domain::action::audit::is_audit_file_name;
use steward_domain::record::path::{RecordKind, RecordPath};
use tokio::sync::mpsc;

/// Above this number of files a scan is cheaper than reading each file.
const MANY: usize = 500;

/// A hint about what may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeHint {
    /// These records; at least one.
    Paths(Vec<RecordPath>),
    /// Any record.
    Rescan,
    /// Something in the drop folder.
    Inbox,
}

/// A running watch of a vault. It ends when this is dropped.
#[derive(Debug)]
pub struct VaultWatcher {
    pending: Arc<PendingChanges>,
}

/// The vault cannot be watched. The periodic scans still find changes.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(
        "{path}: the system's limit of file watches is reached: raise fs.inotify.max_user_watches and \
         fs.inotify.max_user_instances with sysctl and start again"
    )]
    Limit { path: PathBuf },
    #[error("{path}: {source}: check that the folder can be read")]
    Watch { path: PathBuf, source: notify::Error },
    #[error("the watching thread: {0}: lower the load or raise the limit of threads and start again")]
    Thread(#[from] io::Error),
}

/// The folders under watch.
struct WatchedFolders {
    place: WatchedPlace,
    watcher: RecommendedWatcher,
}

/// Where the files of a vault lie.
#[derive(Clone, Debug)]
pub(super) struct WatchedPlace {
    root: PathBuf,
    /// Steward's folder, relative to the root, in a vault with a mapping. There every folder may hold notes.
    steward_folder: Option<String>,
}

impl WatchedPlace {
    /// The folder that holds the folders of Steward's own files.
    fn own_root(&self) -> PathBuf {
        self.steward_folder.as_ref().map_or_else(|| self.root.clone(), |folder| self.root.join(folder))
    }
}

/// When a change may be hinted at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HintUrgency {
    /// Nothing more is written to the file.
    AtOnce,
    /// More may follow within moments.
    Later,
}

/// The changes of a batch of events.
#[derive(Debug, Default)]
struct GatheredChanges {
    paths: BTreeSet<RecordPath>,
    /// Folders of records that were created, removed or replaced.
    folders: BTreeSet<&'static str>,
    /// Folders of notes that were created or moved into the vault.
    note_folders: BTreeSet<PathBuf>,
    rescan: bool,
    inbox: bool,
}

/// Watches the folders of records, also those that are created later.
///
/// # Errors
/// [`WatchError`] if the system does not allow it. The caller then relies on its periodic scan.
pub fn watch_vault(root: &VaultRoot, hints: mpsc::Sender<ChangeHint>) -> Result<VaultWatcher, WatchError> {
    let pending = Arc::new(PendingChanges::default());
    let place = WatchedPlace { root: root.path().to_owned(), steward_folder: root.steward_folder().map(str::to_owned) };
    let on_event = {
        let (pending, place) = (Arc::clone(&pending), place.clone());
        move |result: notify::Result<Event>| pending.add_reported(&place, result)
    };
    let watcher = notify::recommended_watcher(on_event).map_err(|e| WatchError::new(root.path(), e))?;
    let mut folders = WatchedFolders { place, watcher };
    folders.watch_all()?;
    let pending_changes = Arc::clone(&pending);
    std::thread::Builder::new().name("vault-watch".into()).spawn(move || folders.run(&pending_changes, &hints))?;
    Ok(VaultWatcher { pending })
}

impl WatchedFolders {
    fn watch_all(&mut self) -> Result<(), WatchError> {
        let root = self.place.root.clone();
        self.watcher.watch(&root, RecursiveMode::NonRecursive).map_err(|e| WatchError::new(&root, e))?;
        RecordKind::ALL
            .into_iter()
            .map(RecordKind::folder)
            .chain([inbox::FOLDER])
            .try_for_each(|f| self.watch_folder(f))?;
        if self.place.steward_folder.is_some() { self.watch_below(&root) } else { Ok(()) }
    }

    /// Watches the folders of notes below a folder. A folder that cannot be read is left to the periodic scan.
    fn watch_below(&mut self, folder: &Path) -> Result<(), WatchError> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let path = entry.path();
            self.watcher.watch(&path, RecursiveMode::NonRecursive).map_err(|e| WatchError::new(&path, e))?;
            self.watch_below(&path)?;
        }
        Ok(())
    }

    fn watch_folder(&mut self, folder: &str) -> Result<(), WatchError> {
        let path = self.place.own_root().join(folder);
        if !path.is_dir() {
            return Ok(());
        }
        self.watcher.watch(&path, RecursiveMode::NonRecursive).map_err(|e| WatchError::new(&path, e))?;
        if folder == RecordKind::Stream.folder() {
            // If the folder is gone again or unreadable, the periodic scan reports it.
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            for source in entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()) {
                self.watcher.watch(&source, RecursiveMode::NonRecursive).map_err(|e| WatchError::new(&source, e))?;
            }
        }
        Ok(())
    }

    fn run(mut self, pending: &PendingChanges, hints: &mpsc::Sender<ChangeHint>) {
        while let Some(gathered) = pending.next() {
            for folder in &gathered.folders {
                // The old folder may be removed, and its watch with it.
                let _ = self.watcher.unwatch(&self.place.own_root().join(folder));
                if let Err(e) = self.watch_folder(folder) {
                    tracing::warn!(error = %e, "failed to watch a new folder; the periodic scan finds its changes");
                }
            }
            for folder in &gathered.note_folders {
                let watched = self.watcher.watch(folder, RecursiveMode::NonRecursive);
                let watched = watched.map_err(|e| WatchError::new(folder, e)).and_then(|()| self.watch_below(folder));
                if let Err(e) = watched {
                    tracing::debug!(error = %e, "failed to watch a folder; the periodic scan finds its changes");
                }
            }
            for hint in gathered.into_hints() {
                if hints.blocking_send(hint).is_err() {
                    return;
                }
            }
        }
    }
}

impl HintUrgency {
    /// The urgency of an event; `None` if the event is not a change.
    ///
    /// A removed file may come back within moments, because some editors save that way. So its hint waits.
    fn classify_event(event: &Event) -> Option<Self> {
        match event.kind {
            EventKind::Modify(ModifyKind::Name(RenameMode::To))
            | EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Self::AtOnce),
            // Reading is not a change, and our own scans read.
            EventKind::Access(_) => None,
            // Its two sides arrive as events of their own.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => None,
            EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => {
                Some(Self::Later)
            }
        }
    }
}

impl GatheredChanges {
    fn is_empty(&self) -> bool {
        let Self { paths, folders, note_folders, rescan, inbox } = self;
        paths.is_empty() && folders.is_empty() && note_folders.is_empty() && !rescan && !inbox
    }

    fn add_event(&mut self, place: &WatchedPlace, event: &Event) {
        self.rescan |= event.need_rescan();
        for path in &event.paths {
            self.add_path(place, path);
        }
    }

    fn add_path(&mut self, place: &WatchedPlace, path: &Path) {
        let Ok(inside) = path.strip_prefix(&place.root) else {
            self.rescan = true;
            return;
        };
        let parts: Vec<Option<&str>> = inside
            .components()
            .map(|c| match c {
                Component::Normal(name) => name.to_str(),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect();
        let own_parts = match &place.steward_folder {
            None => Some(parts.as_slice()),
            Some(folder) => {
                let names: Vec<Option<&str>> = folder.split('/').map(Some).collect();
                parts.strip_prefix(names.as_slice())
            }
        };
        match own_parts {
            Some(own) => self.add_own_path(own),
            None => self.add_note(path, &parts),
        }
    }

    /// Adds a path below the folder that holds the folders of records.
    fn add_own_path(&mut self, parts: &[Option<&str>]) {
        match parts {
            [] => {
                self.folders.extend(RecordKind::ALL.map(RecordKind::folder).into_iter().chain([inbox::FOLDER]));
                self.rescan = true;
            }
            [folder] => self.add_folder(folder.unwrap_or_default()),
            [Some(inbox::FOLDER), ..] => self.inbox = true,
            [Some(folder), source] if *folder == RecordKind::Stream.folder() => self.add_source(*source),
            [Some(folder), Some(source), file] if *folder == RecordKind::Stream.folder() => {
                self.add_file(&format!("{folder}/{source}"), *file);
            }
            [Some(folder), file] if RecordKind::ALL.iter().any(|k| k.folder() == *folder) => {
                self.add_file(folder, *file)
            }
            _ => {}
        }
    }

    /// Adds a note, or a folder of notes that came or went.
    fn add_note(&mut self, path: &Path, parts: &[Option<&str>]) {
        if parts.is_empty() {
            self.rescan = true;
            return;
        }
        if parts.iter().any(|part| part.is_some_and(|part| part.starts_with('.'))) {
            return;
        }
        let text: Option<Vec<&str>> = parts.iter().copied().collect();
        match text.map(|parts| parts.join("/")) {
            Some(text) if text.ends_with(".md") && !path.is_dir() => match RecordPath::parse(&text) {
                Ok(note) => {
                    self.paths.insert(note);
                }
                // The invalid name is listed by a scan alone.
                Err(_) => self.rescan = true,
            },
            Some(_) | None if path.is_dir() => {
                self.note_folders.insert(path.to_owned());
                self.rescan = true;
            }
            // A folder that is gone has no type any more, but its name rarely has an extension.
            Some(text) if path.extension().is_none() && !text.is_empty() => self.rescan = true,
            None => self.rescan = true,
            Some(_) => {}
        }
    }

    fn add_folder(&mut self, name: &str) {
        if let Some(kind) = RecordKind::ALL.into_iter().find(|k| k.folder() == name) {
            self.folders.insert(kind.folder());
            self.rescan = true;
        }
        if name == inbox::FOLDER {
            self.folders.insert(inbox::FOLDER);
            self.inbox = true;
        }
    }

    /// Adds a stream's folder that was created or removed.
    fn add_source(&mut self, name: Option<&str>) {
        if name.is_none_or(|name| !name.starts_with('.')) {
            self.folders.insert(RecordKind::Stream.folder());
            self.rescan = true;
        }
    }

    fn add_file(&mut self, folder: &str, file: Option<&str>) {
        let Some(file) = file else {
            self.rescan = true;
            return;
        };
        let other_event = folder == RecordKind::Event.folder() && !is_audit_file_name(file);
        if file.starts_with('.') || !file.ends_with(".md") || other_event {
            return;
        }
        match RecordPath::parse(&format!("{folder}/{file}")) {
            Ok(path) => {
                self.paths.insert(path);
            }
            // The invalid name is a problem, which only a scan can store.
            Err(_) => self.rescan = true,
        }
    }

    fn into_hints(self) -> impl Iterator<Item = ChangeHint> {
        let records = if self.rescan || self.paths.len() > MANY {
            Some(ChangeHint::Rescan)
        } else {
            (!self.paths.is_empty()).then(|| ChangeHint::Paths(self.paths.into_iter().collect()))
        };
        self.inbox.then_some(ChangeHint::Inbox).into_iter().chain(records)
    }
}

impl WatchError {
    fn new(path: &Path, source: notify::Error) -> Self {
        let path = path.to_owned();
        let limit = match &source.kind {
            ErrorKind::MaxFilesWatch => true,
            // EMFILE and ENOSPC mean that no instances and no watches are left.
            ErrorKind::Io(e) => matches!(e.raw_os_error(), Some(24 | 28)),
            ErrorKind::Generic(_)
            | ErrorKind::PathNotFound
            | ErrorKind::WatchNotFound
            | ErrorKind::InvalidConfig(_) => false,
        };
        if limit { Self::Limit { path } } else { Self::Watch { path, source } }
    }
}

impl Drop for VaultWatcher {
    fn drop(&mut self) {
        self.pending.close();
    }
}

#[cfg(test)]
mod tests;
