//! Reads files for the index: which ones, their content, and what became of them.
//!
//! Runs on blocking threads and touches no database. The listing's size, time and inode are taken
//! before the content, so a file that changes in between looks changed again to the next scan.

use super::parse::{self, ParsedRecord};
use crate::files::root::{FolderEntry, VaultRoot, VaultRootError};
use steward_domain::action::audit::is_audit_file_name;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::{RecordKind, RecordPath};

/// A record's bytes and hash.
pub(crate) type FileContent = crate::files::root::RecordSnapshot;

/// What the index remembers of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
    /// `None` when the content could not be read.
    pub(crate) hash: Option<ContentHash>,
    pub(crate) problem: Option<String>,
}

/// A file that is to be read, and what was known of it.
#[derive(Debug)]
pub(crate) struct FileToRead {
    pub(crate) path: String,
    pub(crate) entry: FolderEntry,
    pub(crate) known: Option<KnownFile>,
}

/// A file as it is now.
#[derive(Debug)]
pub(crate) struct ScannedFile {
    pub(crate) path: String,
    pub(crate) now: KnownFile,
    /// `None` when the content is what the tables already say.
    pub(crate) typed: Option<ParsedRecord>,
    /// New, or another content or problem than was known.
    pub(crate) changed: bool,
}

/// How much a scan believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanDepth {
    /// Size, time and inode: what has not moved is not opened.
    Stat,
    /// The content: every file is read and its hash compared.
    Content,
    /// Nothing: every file is read and understood anew.
    Nothing,
}

impl KnownFile {
    /// Whether a listing shows the very file that is known. What could not be read never is.
    pub(crate) fn is_same_file(&self, entry: &FolderEntry) -> bool {
        self.hash.is_some() && (self.size, self.modified_ns, self.inode) == (entry.size, entry.modified_ns, entry.inode)
    }
}

/// Whether a file of a folder is one of ours; of `event/` only the audit records are.
pub(crate) fn is_ours(kind: RecordKind, file_name: &str) -> bool {
    match kind {
        RecordKind::Event => is_audit_file_name(file_name),
        RecordKind::Matter | RecordKind::Task | RecordKind::Signal | RecordKind::Instinct | RecordKind::Stream => true,
    }
}

/// Lists one folder of the vault; names that look alike once shown as text count once.
pub(crate) fn list_folder(root: &VaultRoot, kind: RecordKind) -> Result<Vec<FolderEntry>, VaultRootError> {
    let mut entries = root.list_files(kind)?;
    entries.retain(|e| is_ours(kind, &e.name));
    entries.dedup_by(|a, b| a.name == b.name);
    Ok(entries)
}

/// Reads and understands one file; `None` when the tables need no change.
pub(crate) fn scan_file(
    root: &VaultRoot,
    kind: RecordKind,
    wanted: FileToRead,
    depth: ScanDepth,
) -> Option<ScannedFile> {
    let FileToRead { path, entry, known } = wanted;
    let seen = |hash, problem| KnownFile {
        size: entry.size,
        modified_ns: entry.modified_ns,
        inode: entry.inode,
        hash,
        problem,
    };
    let (now, typed) = match read_content(root, &path) {
        // Gone since it was listed: the next scan or hint says so.
        Err(ReadFailure::Gone) => return None,
        Err(ReadFailure::Problem(problem)) => (seen(None, Some(problem)), None),
        Ok((_, content)) if depth != ScanDepth::Nothing && has_same_hash(known.as_ref(), &content) => {
            let problem = known.as_ref().and_then(|k| k.problem.clone());
            let now = seen(Some(content.hash), problem);
            return (known.as_ref() != Some(&now)).then_some(ScannedFile { path, now, typed: None, changed: false });
        }
        Ok((record, content)) => match parse::parse_record(kind, &record, &content) {
            Ok(typed) => (seen(Some(content.hash), None), Some(typed)),
            Err(problem) => (seen(Some(content.hash), Some(problem)), None),
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
    Some(ScannedFile { path, now, typed, changed })
}

fn has_same_hash(known: Option<&KnownFile>, content: &FileContent) -> bool {
    known.is_some_and(|k| k.hash.as_ref() == Some(&content.hash))
}

/// Why there is no content.
enum ReadFailure {
    Gone,
    Problem(String),
}

fn read_content(root: &VaultRoot, path: &str) -> Result<(RecordPath, FileContent), ReadFailure> {
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

/// Problems stand beside their path, so the message need not repeat it.
fn strip_path(path: &str, message: &str) -> String {
    message.strip_prefix(path).and_then(|m| m.strip_prefix(": ")).unwrap_or(message).to_owned()
}
