//! Reads files for the index: it lists them, reads their content and detects changes.
//!
//! It runs on blocking threads and uses no database. The listing's size, time and inode are taken before the content.
//! So a file that changes in between appears as changed to the next scan.

use super::parse::{self, ParsedRecord};
use crate::files::root::{FolderEntry, VaultRoot, VaultRootError};
use chrono::DateTime;
use std::sync::Arc;
use steward_domain::action::audit::is_audit_file_name;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::Document;
use steward_domain::record::link::NoteNames;
use steward_domain::record::moves::{LinkReader, MoveHistory, PathTime};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;

/// A record's bytes and hash.
pub(crate) type FileContent = crate::files::root::RecordSnapshot;

/// The row of a file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
    /// `None` if the content could not be read.
    pub(crate) hash: Option<ContentHash>,
    pub(crate) problem: Option<String>,
}

/// A file to read, with its known row.
#[derive(Debug)]
pub(crate) struct FileToRead {
    pub(crate) path: String,
    pub(crate) entry: FolderEntry,
    pub(crate) known: Option<KnownFile>,
}

/// A file after a scan.
#[derive(Debug)]
pub(crate) struct ScannedFile {
    pub(crate) path: String,
    pub(crate) now: KnownFile,
    /// The file's time of birth; see [`FolderEntry`].
    pub(crate) born_ns: i64,
    /// `None` if the tables already have this content, or if the file cannot be parsed.
    pub(crate) parsed: Option<ParsedRecord>,
    /// Whether the file is new or has different content or a different problem.
    pub(crate) changed: bool,
}

/// What reading a file depends on.
#[derive(Clone, Debug)]
pub(crate) struct ScanContext {
    pub(crate) depth: ScanDepth,
    /// The notes that links in signals name.
    pub(crate) names: Arc<NoteNames>,
    /// Where notes have moved, for the paths in records and signals.
    pub(crate) moves: Arc<MoveHistory>,
    pub(crate) schema: Arc<NoteSchema>,
}

impl ScanContext {
    /// The hash of a note's content, as hexadecimal digits.
    pub(crate) fn hash_content(&self, kind: RecordKind, path: &RecordPath, document: &Document) -> String {
        let links =
            LinkReader { names: &self.names, moves: &self.moves, note: path, time: PathTime::At(DateTime::UNIX_EPOCH) };
        self.schema.content_hash(kind, document, links).as_str().to_owned()
    }
}

/// How deep a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanDepth {
    /// Trust size, time and inode: a file with the same ones is not opened.
    Stat,
    /// Trust the hash: every file is read and its hash is compared.
    Content,
    /// Trust nothing: every file is read and parsed again.
    Nothing,
}

impl KnownFile {
    pub(crate) fn from_entry(entry: &FolderEntry, hash: Option<ContentHash>, problem: Option<String>) -> Self {
        Self { size: entry.size, modified_ns: entry.modified_ns, inode: entry.inode, hash, problem }
    }

    /// Whether a listing shows the known file unchanged. A file that could not be read counts as changed.
    pub(crate) fn is_same_file(&self, entry: &FolderEntry) -> bool {
        self.hash.is_some() && (self.size, self.modified_ns, self.inode) == (entry.size, entry.modified_ns, entry.inode)
    }
}

/// Whether the index reads a file of this folder. In `event/` it reads only the audit records.
pub(crate) fn is_ours(kind: RecordKind, file_name: &str) -> bool {
    match kind {
        RecordKind::Event => is_audit_file_name(file_name),
        RecordKind::Matter | RecordKind::Task | RecordKind::Signal | RecordKind::Instinct | RecordKind::Stream => true,
    }
}

/// Lists one folder of the vault. Names that are equal after conversion to text count once.
pub(crate) fn list_folder(root: &VaultRoot, kind: RecordKind) -> Result<Vec<FolderEntry>, VaultRootError> {
    let mut entries = root.list_files(kind)?;
    entries.retain(|e| is_ours(kind, &e.name));
    entries.dedup_by(|a, b| a.name == b.name);
    Ok(entries)
}

/// Reads and parses one file; `None` if the tables need no change.
pub(crate) fn scan_file(
    root: &VaultRoot,
    kind: RecordKind,
    wanted: FileToRead,
    scan: &ScanContext,
) -> Option<ScannedFile> {
    let depth = scan.depth;
    let FileToRead { path, entry, known } = wanted;
    let file_row = |hash, problem| KnownFile::from_entry(&entry, hash, problem);
    let (now, typed) = match read_content(root, &path) {
        // Removed since the listing: the next scan or hint finds that.
        Err(ReadFailure::Gone) => return None,
        Err(ReadFailure::Problem(problem)) => (file_row(None, Some(problem)), None),
        Ok((_, content)) if depth != ScanDepth::Nothing && has_same_hash(known.as_ref(), &content) => {
            let problem = known.as_ref().and_then(|k| k.problem.clone());
            let now = file_row(Some(content.hash), problem);
            let unchanged = ScannedFile { path, now, born_ns: entry.born_ns, parsed: None, changed: false };
            return (known.as_ref() != Some(&unchanged.now)).then_some(unchanged);
        }
        Ok((record, content)) => match parse::parse_record(kind, &record, &content, scan) {
            Ok(typed) => (file_row(Some(content.hash), None), Some(typed)),
            Err(problem) => (file_row(Some(content.hash), Some(problem)), None),
        },
    };
    if depth != ScanDepth::Nothing && known.as_ref() == Some(&now) {
        return None;
    }
    let changed = known.as_ref().is_none_or(|k| k.hash != now.hash || k.problem != now.problem);
    let typed = match typed {
        None if kind == RecordKind::Instinct => Some(parse::instinct::unreadable_instinct(&path)),
        other => other,
    };
    Some(ScannedFile { path, now, born_ns: entry.born_ns, parsed: typed, changed })
}

pub(crate) fn has_same_hash(known: Option<&KnownFile>, content: &FileContent) -> bool {
    known.is_some_and(|k| k.hash.as_ref() == Some(&content.hash))
}

/// Why a file has no content.
pub(crate) enum ReadFailure {
    Gone,
    Problem(String),
}

pub(crate) fn read_content(root: &VaultRoot, path: &str) -> Result<(RecordPath, FileContent), ReadFailure> {
    let record = RecordPath::parse(path).map_err(|e| ReadFailure::Problem(strip_path(path, &e.to_string())))?;
    match root.read_file(&record) {
        Ok(content) => Ok((record, content)),
        Err(VaultRootError::Missing { .. }) => Err(ReadFailure::Gone),
        Err(VaultRootError::Io { source, .. }) => {
            Err(ReadFailure::Problem(format!("{source}: make it readable for the user who runs Steward")))
        }
        Err(e) => Err(ReadFailure::Problem(strip_path(path, &e.to_string()))),
    }
}

/// Problems are shown with their path, so the message need not repeat it.
fn strip_path(path: &str, message: &str) -> String {
    message.strip_prefix(path).and_then(|m| m.strip_prefix(": ")).unwrap_or(message).to_owned()
}
