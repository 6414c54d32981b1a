//! Scans the notes of a vault with a mapping: they lie anywhere, and only their content tells what they are.
//!
//! Every Markdown file outside hidden folders and Steward's own folders is listed. A note that is neither matter nor task
//! gets a row too, because links may name it, and so that it is not read again while it stays as it is. Names that are
//! equal but for case or normal form, and folders of knowledge, are found in the listing alone.

mod listing;

use super::files::{self, FileToRead, KnownFile, ReadFailure, ScanContext, ScanDepth, ScannedFile};
use super::identities::{self, NoteIdentity};
use super::links::NoteChange;
use super::parse;
use super::rows::{ScanClock, execute_json, to_json};
use super::sync::{VaultScan, split_into_batches};
use crate::files::root::{FolderEntry, VaultRoot};
use crate::index::{Index, IndexError, VaultProblem};
use listing::{KNOWLEDGE_FILE, ListedClass, classify_listing, lies_in_knowledge};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter;
use steward_domain::record::link::fold_name;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::{NoteClass, NoteExclusion};

const OTHER_NOTES: &str = "INSERT OR REPLACE INTO other_notes (path, size, modified_ns, inode, exclusion)
    SELECT value->>'path', value->>'size', value->>'modified_ns', value->>'inode', value->>'exclusion' FROM json_each(?1)";
const DROP_OTHER_NOTES: &str = "DELETE FROM other_notes WHERE path IN (SELECT value FROM json_each(?1))";
/// The row of a note that is neither a matter nor a task.
#[derive(Clone, Debug, Serialize)]
struct OtherNote {
    path: String,
    size: u64,
    modified_ns: i64,
    inode: u64,
    /// As JSON.
    exclusion: Option<String>,
    /// What only [`identities`] keeps.
    #[serde(skip)]
    born_ns: i64,
    #[serde(skip)]
    hash: Option<ContentHash>,
}

impl OtherNote {
    fn identity(&self) -> NoteIdentity<'_> {
        NoteIdentity {
            path: &self.path,
            inode: self.inode,
            born_ns: self.born_ns,
            modified_ns: self.modified_ns,
            hash: self.hash.as_ref().map(ContentHash::as_str),
        }
    }
}

/// What the tables say about a note.
#[derive(Clone, Debug)]
enum KnownNote {
    Record(RecordKind, KnownFile),
    Other(OtherNote),
}

struct NoteToRead {
    path: String,
    entry: FolderEntry,
    known: Option<KnownNote>,
    class: ListedClass,
}

/// A note after it was read.
enum ScannedNote {
    Record { file: Box<ScannedFile>, kind: RecordKind, before: Option<RecordKind> },
    Other { note: OtherNote, before: Option<RecordKind> },
}

impl KnownNote {
    fn kind(&self) -> Option<RecordKind> {
        match self {
            Self::Record(kind, _) => Some(*kind),
            Self::Other(_) => None,
        }
    }

    /// Whether a listing shows the note as it is known.
    fn is_same(&self, entry: &FolderEntry, class: &ListedClass) -> bool {
        match self {
            Self::Record(_, file) => *class == ListedClass::Note && file.is_same_file(entry),
            Self::Other(note) => {
                let is_same_file =
                    (note.size, note.modified_ns, note.inode) == (entry.size, entry.modified_ns, entry.inode);
                let exclusion = note.exclusion.as_deref().and_then(|known| serde_json::from_str(known).ok());
                let is_same_class = match exclusion {
                    Some(NoteExclusion::Twin { .. }) => matches!(class, ListedClass::Twin(_)),
                    Some(NoteExclusion::Knowledge) => *class == ListedClass::Knowledge,
                    _ => *class == ListedClass::Note,
                };
                is_same_file && is_same_class
            }
        }
    }
}

impl VaultScan<'_> {
    /// Scans all notes.
    pub(super) async fn scan_notes(&mut self) -> Result<(), IndexError> {
        let root = self.root.clone();
        let listing = match tokio::task::spawn_blocking(move || root.list_notes()).await? {
            Ok(listing) => listing,
            Err(e) => {
                self.report_unlisted_folder("", &e);
                return Ok(());
            }
        };
        self.index.add_listed_names(&listing.notes).await?;
        let mut known = self.index.read_known_notes(None).await?;
        for (folder, e) in &listing.unlisted {
            self.report_unlisted_folder(folder.trim_end_matches('/'), e);
        }
        known.retain(|path, _| listing.covers(path));
        let classes = classify_listing(&listing.notes);
        let mut wanted = Vec::new();
        for (entry, class) in listing.notes.into_iter().zip(classes) {
            let path = entry.name.clone();
            let known = known.remove(&path);
            if self.depth != ScanDepth::Stat || known.as_ref().is_none_or(|k| !k.is_same(&entry, &class)) {
                wanted.push(NoteToRead { path, entry, known, class });
            }
        }
        self.forget_gone_notes(known).await?;
        self.read_notes(wanted).await
    }

    /// Scans single notes that a hint names. If their names alone change what other notes are, all are scanned.
    pub(super) async fn scan_named_notes(&mut self, named: &BTreeSet<&RecordPath>) -> Result<(), IndexError> {
        let names = self.index.read_note_names().await?;
        let folded: BTreeSet<String> = named.iter().map(|path| fold_name(path.as_str())).collect();
        let has_twins = folded.len() < named.len() || named.iter().any(|path| names.has_twin(path));
        if has_twins || named.iter().any(|path| path.file_name() == KNOWLEDGE_FILE) {
            return self.scan_notes().await;
        }
        let paths: Vec<String> = named.iter().map(|path| path.to_string()).collect();
        let mut known = self.index.read_known_notes(Some(&paths)).await?;
        let (root, records) = (self.root.clone(), named.iter().map(|path| (*path).clone()).collect::<Vec<_>>());
        let found = tokio::task::spawn_blocking(move || {
            let find = |path: RecordPath| (root.find_entry(&path), lies_in_knowledge(&root, &path), path);
            records.into_iter().map(find).collect::<Vec<_>>()
        });
        let mut wanted = Vec::new();
        for (entry, in_knowledge, path) in found.await? {
            let path = path.to_string();
            let class = if in_knowledge { ListedClass::Knowledge } else { ListedClass::Note };
            match entry {
                Ok(Some(entry)) => wanted.push(NoteToRead { known: known.remove(&path), path, entry, class }),
                Ok(None) => {}
                // Nothing is known about it now, so what was known stays.
                Err(e) => {
                    known.remove(&path);
                    self.report.problems.push(VaultProblem { path, message: e.to_string() });
                }
            }
        }
        self.forget_gone_notes(known).await?;
        self.read_notes(wanted).await
    }

    async fn forget_gone_notes(&mut self, gone: HashMap<String, KnownNote>) -> Result<(), IndexError> {
        let (mut by_kind, mut others): (BTreeMap<RecordKind, Vec<String>>, Vec<String>) = Default::default();
        for (path, known) in gone {
            match known.kind() {
                Some(kind) => by_kind.entry(kind).or_default().push(path),
                None => others.push(path),
            }
        }
        for (kind, paths) in by_kind {
            self.forget_gone_files(kind, paths).await?;
        }
        self.report.removed += others.len() as u64;
        self.index.change_other_notes(&[], &[], &others, self.clock).await
    }

    async fn read_notes(&mut self, wanted: Vec<NoteToRead>) -> Result<(), IndexError> {
        self.report.read += wanted.len() as u64;
        self.index.scan_progress.add_expected(wanted.len());
        for batch in split_into_batches(wanted) {
            let scan = self.create_context();
            let (root, count) = (self.root.clone(), batch.len());
            let read = move || batch.into_iter().filter_map(|note| scan_note(&root, note, &scan)).collect::<Vec<_>>();
            let notes = tokio::task::spawn_blocking(read).await?;
            self.index.scan_progress.add_done(count);
            self.write_notes(notes).await?;
        }
        Ok(())
    }

    /// Writes a batch. A note that became another kind loses the rows of the old one.
    async fn write_notes(&mut self, notes: Vec<ScannedNote>) -> Result<(), IndexError> {
        let (mut left, mut came): (BTreeMap<RecordKind, Vec<String>>, Vec<String>) = Default::default();
        let mut records: BTreeMap<RecordKind, Vec<ScannedFile>> = BTreeMap::new();
        let mut others = Vec::new();
        for note in notes {
            match note {
                ScannedNote::Record { file, kind, before } => {
                    match before {
                        Some(old) if old != kind => left.entry(old).or_default().push(file.path.clone()),
                        Some(_) => {}
                        None => came.push(file.path.clone()),
                    }
                    records.entry(kind).or_default().push(*file);
                }
                ScannedNote::Other { note, before } => {
                    if let Some(old) = before {
                        left.entry(old).or_default().push(note.path.clone());
                    }
                    others.push(note);
                }
            }
        }
        for (kind, paths) in left {
            self.index.forget_files(kind, &paths, None).await?;
        }
        self.index.change_other_notes(&others, &came, &[], self.clock).await?;
        for (kind, files) in records {
            self.write_scanned(kind, files).await?;
        }
        Ok(())
    }
}

impl Index {
    /// Adds the names of a listing at once, so that the batches that follow need not resolve every link again.
    async fn add_listed_names(&self, entries: &[FolderEntry]) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            let listed = NoteChange::Listed(entries.iter().map(|entry| entry.name.as_str()).collect());
            super::links::resolve_parents(&mut tx, &self.notes, &listed).await?;
            tx.commit().await
        };
        work.await.inspect_err(|_| self.notes.clear()).map_err(|e| self.sql_error(e))
    }

    /// The known rows of all notes, or of some of them.
    async fn read_known_notes(&self, paths: Option<&[String]>) -> Result<HashMap<String, KnownNote>, IndexError> {
        let mut known = HashMap::new();
        for kind in [RecordKind::Matter, RecordKind::Task] {
            let files = self.read_known_files(kind, paths).await?;
            known.extend(files.into_iter().map(|(path, file)| (path, KnownNote::Record(kind, file))));
        }
        let rows: Vec<(String, i64, i64, i64, Option<String>)> = sqlx::query_as(
            "SELECT path, size, modified_ns, inode, exclusion FROM other_notes
             WHERE ?1 IS NULL OR path IN (SELECT value FROM json_each(?1))",
        )
        .bind(paths.map(|paths| to_json(&paths)))
        .fetch_all(&self.store.writer)
        .await
        .map_err(|e| self.sql_error(e))?;
        known.extend(rows.into_iter().map(|(path, size, modified_ns, inode, exclusion)| {
            let (size, inode) = (size.cast_unsigned(), inode.cast_unsigned());
            (
                path.clone(),
                KnownNote::Other(OtherNote { path, size, modified_ns, inode, exclusion, born_ns: 0, hash: None }),
            )
        }));
        Ok(known)
    }

    /// The paths of all notes that are not of this kind.
    pub(super) async fn list_known_notes_but(&self, kind: RecordKind) -> Result<BTreeSet<String>, IndexError> {
        let known = self.read_known_notes(None).await?;
        Ok(known.into_iter().filter(|(_, note)| note.kind() != Some(kind)).map(|(path, _)| path).collect())
    }

    /// Writes notes that are neither matters nor tasks, and removes those that are so no more.
    /// `came` are matters and tasks now, and `gone` are no notes any more.
    async fn change_other_notes(
        &self,
        written: &[OtherNote],
        came: &[String],
        gone: &[String],
        clock: ScanClock,
    ) -> Result<(), IndexError> {
        if written.is_empty() && came.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin_write().await?;
        let work = async {
            execute_json(&mut tx, DROP_OTHER_NOTES, &to_json(&came)).await?;
            identities::keep_gone(&mut tx, gone, clock.now).await?;
            execute_json(&mut tx, DROP_OTHER_NOTES, &to_json(&gone)).await?;
            let seen: Vec<NoteIdentity<'_>> = written.iter().map(OtherNote::identity).collect();
            identities::keep_seen(&mut tx, &seen, clock.arrival(), clock.now).await?;
            execute_json(&mut tx, OTHER_NOTES, &to_json(&written)).await?;
            let read = NoteChange::Read(written.iter().map(|note| note.path.as_str()).collect());
            super::links::resolve_parents(
                &mut tx,
                &self.notes,
                &NoteChange::Gone(gone.iter().map(String::as_str).collect()),
            )
            .await?;
            super::links::resolve_parents(&mut tx, &self.notes, &read).await?;
            tx.commit().await
        };
        work.await.inspect_err(|_| self.notes.clear()).map_err(|e| self.sql_error(e))?;
        self.bump_records_revision(RecordKind::Task);
        Ok(())
    }
}

/// Reads one note and tells what it is; `None` if it is gone.
fn scan_note(root: &VaultRoot, wanted: NoteToRead, scan: &ScanContext) -> Option<ScannedNote> {
    let NoteToRead { path, entry, known, class } = wanted;
    let before = known.as_ref().and_then(KnownNote::kind);
    let other = |exclusion: Option<NoteExclusion>, hash: Option<&ContentHash>| {
        let exclusion = exclusion.map(|exclusion| to_json(&exclusion));
        let (size, modified_ns, inode) = (entry.size, entry.modified_ns, entry.inode);
        let (path, born_ns, hash) = (path.clone(), entry.born_ns, hash.cloned());
        let note = OtherNote { path, size, modified_ns, inode, exclusion, born_ns, hash };
        Some(ScannedNote::Other { note, before })
    };
    match class {
        ListedClass::Note => {}
        ListedClass::Knowledge => return other(Some(NoteExclusion::Knowledge), None),
        ListedClass::Twin(twin) => return other(Some(NoteExclusion::Twin { twin }), None),
    }
    let unreadable = |fault: String| NoteExclusion::Unreadable { fault };
    let (record, content) = match files::read_content(root, &path) {
        Ok(read) => read,
        Err(ReadFailure::Gone) => return None,
        Err(ReadFailure::Problem(fault)) => {
            let may_be_one = RecordPath::parse(&path).map_or(true, |path| scan.schema.may_select(&path));
            return other(may_be_one.then(|| unreadable(fault)), None);
        }
    };
    if let Some(KnownNote::Record(kind, file)) = &known
        && scan.depth != ScanDepth::Nothing
        && files::has_same_hash(Some(file), &content)
    {
        let wanted = FileToRead { path, entry, known: Some(file.clone()) };
        return files::scan_file(root, *kind, wanted, scan).map(|file| ScannedNote::Record {
            file: Box::new(file),
            kind: *kind,
            before,
        });
    }
    let hash = Some(&content.hash);
    let document = match frontmatter::read_note(&content.bytes) {
        Ok(document) => document,
        Err(e) => return other(scan.schema.may_select(&record).then(|| unreadable(format!("failed to {e}"))), hash),
    };
    let kind = match scan.schema.classify(&record, document.fields()) {
        NoteClass::Matter => RecordKind::Matter,
        NoteClass::Task => RecordKind::Task,
        NoteClass::Other => return other(None, hash),
        NoteClass::Excluded(exclusion) => return other(Some(exclusion), hash),
    };
    match parse::parse_document(kind, &record, &document, &content.hash, scan) {
        Ok(parsed) => {
            let now = KnownFile::from_entry(&entry, hash.cloned(), None);
            let file = ScannedFile { path, now, born_ns: entry.born_ns, parsed: Some(parsed), changed: true };
            Some(ScannedNote::Record { file: Box::new(file), kind, before })
        }
        Err(fault) => other(Some(unreadable(fault)), hash),
    }
}
