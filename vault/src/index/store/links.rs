//! Keeps the matter of each task up to date with the names of the notes.
//!
//! A task names its matter by a link, and what a link names depends on all notes of the vault. So whenever a note comes
//! or goes, the links that its name may answer are resolved again, in the same transaction. The names are held in
//! memory by the process that scans.

use super::rows::{execute_json, to_json};
use crate::index::{Index, IndexError};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::sync::{Arc, Mutex, PoisonError};
use steward_domain::record::link::{LinkError, NoteNames, link_key};
use steward_domain::record::path::{RecordKind, RecordPath};

/// The tasks whose link may name one of these notes, and these tasks themselves. ?1: keys of names, ?2: tasks.
const LINKS: &str = "SELECT path, parent, parent_link, parent_fault FROM tasks
    WHERE parent_key IN (SELECT value FROM json_each(?1)) OR path IN (SELECT value FROM json_each(?2))";
const ALL_LINKS: &str = "SELECT path, parent, parent_link, parent_fault FROM tasks";
const MOVE: &str = "UPDATE tasks SET parent = j.value->>'parent', parent_fault = j.value->>'fault' FROM json_each(?1) j WHERE tasks.path = j.value->>'path'";

/// The names of all notes that links may name. `None` until they are loaded, and after a write failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoteNameCache(Arc<Mutex<Option<Arc<NoteNames>>>>);

/// The notes of a batch.
pub(crate) enum NoteChange<'a> {
    Read(Vec<&'a str>),
    Gone(Vec<&'a str>),
}

#[derive(Serialize)]
struct TaskMove {
    path: String,
    parent: String,
    fault: Option<String>,
}

impl NoteNameCache {
    fn with<T>(&self, change: impl FnOnce(&mut Option<Arc<NoteNames>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names as they are known now. `None` before they are loaded, and after a write failed.
    pub(crate) fn read(&self) -> Option<Arc<NoteNames>> {
        self.with(|names| names.clone())
    }

    /// Forgets the names, because a transaction that depended on them failed.
    pub(crate) fn clear(&self) {
        self.with(|names| *names = None);
    }

    /// Adds or removes notes. Returns the names now, and the keys of the names that changed.
    fn update(&self, change: &NoteChange<'_>) -> (Arc<NoteNames>, Vec<String>) {
        self.with(|cached| {
            let names = cached.get_or_insert_default();
            let mut keys = Vec::new();
            let (paths, is_there) = match change {
                NoteChange::Read(paths) => (paths, true),
                NoteChange::Gone(paths) => (paths, false),
            };
            for note in paths.iter().filter_map(|path| RecordPath::parse(path).ok()) {
                if names.contains(&note) != is_there {
                    keys.push(link_key(note.as_str()));
                    let names = Arc::make_mut(names);
                    if is_there { names.insert(note) } else { names.remove(&note) }
                }
            }
            (Arc::clone(names), keys)
        })
    }
}

impl Index {
    /// The names of the notes that links may name. They are loaded from the tables if they are not known.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_note_names(&self) -> Result<Arc<NoteNames>, IndexError> {
        if let Some(names) = self.note_names.with(|names| names.clone()) {
            return Ok(names);
        }
        self.reload_note_names().await
    }

    /// Loads the names of the notes from the tables. Another process may have scanned since they were loaded.
    pub(crate) async fn reload_note_names(&self) -> Result<Arc<NoteNames>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar("SELECT path FROM files WHERE kind IN ('matter', 'task')")
            .fetch_all(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))?;
        let mut names = NoteNames::default();
        paths.iter().filter_map(|path| RecordPath::parse(path).ok()).for_each(|note| names.insert(note));
        let names = Arc::new(names);
        if self.note_names.read().as_ref() != Some(&names) {
            self.resolve_all_parents(&names).await?;
        }
        self.note_names.with(|cached| *cached = Some(Arc::clone(&names)));
        Ok(names)
    }

    /// Resolves every link again, because another process may have scanned, or a scan may have been interrupted.
    async fn resolve_all_parents(&self, names: &NoteNames) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            let rows = sqlx::query_as(ALL_LINKS).fetch_all(&mut *tx).await?;
            move_tasks(&mut tx, names, rows).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))
    }

    /// Finds the note that a link in `from` names, or the path that it spells.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn resolve_link(
        &self,
        kind: RecordKind,
        link: &str,
        from: &RecordPath,
    ) -> Result<Option<RecordPath>, IndexError> {
        Ok(self.read_note_names().await?.resolve_or_spell(kind, link, from))
    }
}

/// Resolves the links that a change of the notes may affect.
pub(crate) async fn resolve_parents(
    tx: &mut SqliteConnection,
    cache: &NoteNameCache,
    change: &NoteChange<'_>,
) -> sqlx::Result<()> {
    let (names, keys) = cache.update(change);
    let read: &[&str] = match change {
        NoteChange::Read(paths) => paths,
        NoteChange::Gone(_) => &[],
    };
    let rows = sqlx::query_as(LINKS).bind(to_json(&keys)).bind(to_json(&read)).fetch_all(&mut *tx).await?;
    move_tasks(tx, &names, rows).await
}

/// A task, its matter, the link, and the fault of the link.
type LinkColumns = (String, String, String, Option<String>);

/// Writes the matters of tasks whose link names another one now.
async fn move_tasks(tx: &mut SqliteConnection, names: &NoteNames, rows: Vec<LinkColumns>) -> sqlx::Result<()> {
    let moved: Vec<TaskMove> = rows
        .into_iter()
        .filter_map(|(path, before, link, fault_before)| {
            let task = RecordPath::parse(&path).ok()?;
            let fault = match names.resolve(RecordKind::Matter, &link, &task) {
                Err(fault @ LinkError::Ambiguous { .. }) => Some(fault.to_string()),
                Ok(_) | Err(LinkError::Missing(_)) => None,
            };
            let parent = names.resolve_or_spell(RecordKind::Matter, &link, &task)?.to_string();
            (parent != before || fault != fault_before).then_some(TaskMove { path, parent, fault })
        })
        .collect();
    if moved.is_empty() { Ok(()) } else { execute_json(tx, MOVE, &to_json(&moved)).await }
}
