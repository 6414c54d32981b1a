//! Keeps the matter of each task up to date with the names of the notes.
//!
//! A task names its matter by a link, and what a link names depends on all notes of the vault. So whenever a note comes
//! or goes, the links that its name may answer are resolved again, in the same transaction. The names are held in
//! memory by the process that scans.

use super::rows::{execute_json, to_json};
use crate::index::{Index, IndexError};
use serde::Serialize;
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::link::{LinkError, NoteNames, link_key};
use steward_domain::record::moves::MoveHistory;
use steward_domain::record::path::{RecordKind, RecordPath, parse_link};
use steward_domain::record::schema::NoteSchema;

/// The tasks whose link may name one of these notes, and these tasks themselves. ?1: keys of names, ?2: tasks.
const LINKS: &str = "SELECT path, 0 AS position, parent, parent_link, parent_fault FROM tasks
    WHERE parent_key IN (SELECT value FROM json_each(?1)) OR path IN (SELECT value FROM json_each(?2))
    UNION ALL SELECT task, position, parent, link, fault FROM further_parents
    WHERE link_key IN (SELECT value FROM json_each(?1)) OR task IN (SELECT value FROM json_each(?2))";
const ALL_LINKS: &str = "SELECT path, 0 AS position, parent, parent_link, parent_fault FROM tasks
    UNION ALL SELECT task, position, parent, link, fault FROM further_parents";
const MOVE: &str = "UPDATE tasks SET parent = j.value->>'parent', parent_fault = j.value->>'fault' FROM json_each(?1) j WHERE tasks.path = j.value->>'path'";

/// How the notes of a vault are read, and the names that links may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NoteCatalog {
    pub(crate) schema: Arc<NoteSchema>,
    /// The names of all notes. `None` until they are loaded, and after a write failed.
    names: Arc<Mutex<Option<Arc<NoteNames>>>>,
    /// The hashes of all mappings that people accepted, as they are kept outside the vault.
    accepted_hashes: Arc<BTreeSet<ContentHash>>,
    /// The mappings that people accepted before, by their hashes.
    accepted: Arc<Mutex<BTreeMap<ContentHash, Arc<NoteSchema>>>>,
    /// Where notes have moved.
    moves: Arc<Mutex<Arc<MoveHistory>>>,
}

/// The notes of a batch.
pub(crate) enum NoteChange<'a> {
    /// All notes of a listing. Their content is not read yet.
    Listed(Vec<&'a str>),
    Read(Vec<&'a str>),
    Gone(Vec<&'a str>),
}

const MOVE_FURTHER: &str =
    "UPDATE further_parents SET parent = j.value->>'parent', fault = j.value->>'fault' FROM json_each(?1) j
    WHERE further_parents.task = j.value->>'path' AND further_parents.position = j.value->>'position'";

#[derive(Serialize)]
struct TaskMove {
    path: String,
    position: i64,
    parent: String,
    fault: Option<String>,
}

impl NoteCatalog {
    pub(crate) fn new(schema: NoteSchema, accepted: BTreeSet<ContentHash>) -> Self {
        Self { schema: Arc::new(schema), accepted_hashes: Arc::new(accepted), ..Self::default() }
    }

    /// Where notes have moved.
    pub(crate) fn moves(&self) -> Arc<MoveHistory> {
        Arc::clone(&self.moves.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn keep_moves(&self, moves: MoveHistory) {
        *self.moves.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(moves);
    }

    pub(crate) fn was_accepted(&self, mapping: &ContentHash) -> bool {
        self.accepted_hashes.contains(mapping)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Option<Arc<NoteNames>>) -> T) -> T {
        change(&mut self.names.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names as they are known now. `None` before they are loaded, and after a write failed.
    pub(crate) fn read(&self) -> Option<Arc<NoteNames>> {
        self.with(|names| names.clone())
    }

    /// Forgets the names, because a transaction that depended on them failed.
    pub(crate) fn clear(&self) {
        self.with(|names| *names = None);
    }

    /// The names, empty if they are not known.
    pub(crate) fn names_or_empty(&self) -> Arc<NoteNames> {
        self.read().unwrap_or_default()
    }

    /// The schema under which a record was made; `None` if no person accepted that mapping. No mapping changes how
    /// Steward's own files are read.
    pub(crate) fn find_schema(&self, record: &AuditRecord) -> Option<Arc<NoteSchema>> {
        let mapping = record.mapping_sha256.as_ref();
        match mapping {
            _ if record.draft.target.own_kind().is_some() => Some(Arc::default()),
            // What was made before there was a mapping would be read by other names now.
            None if self.schema.is_mapped() => None,
            None => Some(Arc::default()),
            Some(_) if mapping == self.schema.hash() => Some(Arc::clone(&self.schema)),
            Some(hash) => self.accepted.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned(),
        }
    }

    /// Keeps the mappings that people accepted, to undo what was made under them.
    pub(crate) fn keep_accepted(&self, schemas: impl Iterator<Item = Arc<NoteSchema>>) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.extend(schemas.filter_map(|schema| Some((schema.hash()?.clone(), schema))));
    }

    /// Adds or removes notes. Returns the names now, and the keys of the names that changed.
    fn update(&self, change: &NoteChange<'_>) -> (Arc<NoteNames>, Vec<String>) {
        self.with(|cached| {
            let names = cached.get_or_insert_with(|| Arc::new(NoteNames::new(self.schema.link_scope())));
            let mut keys = Vec::new();
            let (paths, is_there) = match change {
                NoteChange::Listed(paths) | NoteChange::Read(paths) => (paths, true),
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
        if let Some(names) = self.notes.with(|names| names.clone()) {
            return Ok(names);
        }
        self.reload_note_names().await
    }

    /// Loads the names of the notes from the tables. Another process may have scanned since they were loaded.
    pub(crate) async fn reload_note_names(&self) -> Result<Arc<NoteNames>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(
            "SELECT path FROM files WHERE kind IN ('matter', 'task') UNION ALL SELECT path FROM other_notes",
        )
        .fetch_all(&self.store.writer)
        .await
        .map_err(|e| self.sql_error(e))?;
        let mut names = NoteNames::new(self.notes.schema.link_scope());
        paths.iter().filter_map(|path| RecordPath::parse(path).ok()).for_each(|note| names.insert(note));
        let names = Arc::new(names);
        if self.notes.read().as_ref() != Some(&names) {
            self.resolve_all_parents(&names).await?;
        }
        self.notes.with(|cached| *cached = Some(Arc::clone(&names)));
        Ok(names)
    }

    /// Resolves every link again, because another process may have scanned, or a scan may have been interrupted.
    pub(crate) async fn resolve_all_parents(&self, names: &NoteNames) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            let rows = sqlx::query_as(ALL_LINKS).fetch_all(&mut *tx).await?;
            move_tasks(&mut tx, &self.notes.schema, names, rows).await?;
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
    cache: &NoteCatalog,
    change: &NoteChange<'_>,
) -> sqlx::Result<()> {
    let (names, keys) = cache.update(change);
    let read: &[&str] = match change {
        NoteChange::Read(paths) => paths,
        NoteChange::Listed(_) | NoteChange::Gone(_) => &[],
    };
    if keys.is_empty() && read.is_empty() {
        return Ok(());
    }
    // The folder of a task may have other notes above it, whose names are in no link.
    let rows = if cache.schema.has_folder_parents() && !keys.is_empty() {
        sqlx::query_as(ALL_LINKS).fetch_all(&mut *tx).await?
    } else {
        sqlx::query_as(LINKS).bind(to_json(&keys)).bind(to_json(&read)).fetch_all(&mut *tx).await?
    };
    move_tasks(tx, &cache.schema, &names, rows).await
}

/// A task, the position of the link in its list, its matter, the link, and the fault of the link.
type LinkColumns = (String, i64, String, String, Option<String>);

/// Writes the matters of tasks whose link names another one now.
async fn move_tasks(
    tx: &mut SqliteConnection,
    schema: &NoteSchema,
    names: &NoteNames,
    rows: Vec<LinkColumns>,
) -> sqlx::Result<()> {
    let (first, further): (Vec<TaskMove>, Vec<TaskMove>) = rows
        .into_iter()
        .filter_map(|(path, position, before, link, fault_before)| {
            let task = RecordPath::parse(&path).ok()?;
            let (parent, fault) = match schema.resolve_parent(names, &link, &task) {
                Ok(found) => (found, None),
                // With a mapping the path that a link spells may be that of another matter. A task is no matter, so its
                // own path stands for none.
                Err(fault) if schema.is_mapped() => {
                    let property = schema.spell_property(RecordKind::Task, "parent_matter");
                    (task.clone(), Some(format!("`{property}`: {fault}")))
                }
                Err(LinkError::Missing(_)) => (parse_link(RecordKind::Matter, &link).ok()?, None),
                Err(fault @ LinkError::Ambiguous { .. }) => {
                    (parse_link(RecordKind::Matter, &link).ok()?, Some(fault.to_string()))
                }
            };
            let parent = parent.to_string();
            let is_moved = parent != before || fault != fault_before;
            is_moved.then_some(TaskMove { path, position, parent, fault })
        })
        .partition(|moved| moved.position == 0);
    for (sql, moved) in [(MOVE, first), (MOVE_FURTHER, further)] {
        if !moved.is_empty() {
            execute_json(tx, sql, &to_json(&moved)).await?;
        }
    }
    Ok(())
}
