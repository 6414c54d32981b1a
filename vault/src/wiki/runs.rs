//! Lists the runs of the vault's wikis from their audit records: those that were committed, and those that were not.
//!
//! The name of a record says its run and its wiki, so no index is needed.

use crate::files::root::{VaultRoot, VaultRootError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord, MISSING_FILES};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::wiki::details::{ClaimRecord, FileRecord, WikiDetails};
use steward_domain::wiki::run::{REJECTED_SUFFIX, RunId, RunRejection, RunSource, WikiRunType};
use steward_domain::wiki::{INDEX_FILE, OVERVIEW_FILE};

/// A run with a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    pub run: RunId,
    pub wiki: String,
    pub run_type: WikiRunType,
    pub at: DateTime<Utc>,
    pub reasoning: String,
    pub source: Option<RunSource>,
    /// What its writer took; `None` for fixed rules and people.
    pub tokens: Option<TokenUsage>,
    /// The run that took this one back.
    pub reverted_by: Option<RunId>,
    /// The run that this one took back.
    pub reverts: Option<RunId>,
    /// How the run ended, if it committed nothing.
    pub rejection: Option<RunRejection>,
    pub record: RecordPath,
}

/// A run with everything that its record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDetails {
    pub summary: RunSummary,
    pub files: Vec<FileRecord>,
    pub claims: Vec<ClaimRecord>,
    /// Files that the run did not reach.
    pub missing_files: Vec<String>,
}

/// A file that a run did not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachedFile {
    /// Relative to the wiki.
    pub file: String,
    pub run: RunId,
    pub record: RecordPath,
}

/// A record of a wiki, as its name says.
pub(crate) struct NamedRecord {
    pub(crate) path: RecordPath,
    pub(crate) run: RunId,
    pub(crate) wiki: String,
}

/// Lists the records of these kinds; of one wiki, or of all. No file is opened.
pub(crate) fn list_records(
    root: &VaultRoot,
    kinds: &[ActionKind],
    wiki: Option<&str>,
) -> Result<Vec<NamedRecord>, VaultRootError> {
    let names = root.list_names(RecordKind::Event)?;
    let read = |name: &String| kinds.iter().find_map(|kind| read_record_name(name, *kind));
    Ok(names.iter().filter_map(read).filter(|record| wiki.is_none_or(|wiki| record.wiki == wiki)).collect())
}

/// Reads the name of a record of a wiki: `<kind>-<run>-<wiki>.md`. The name of a run that was not committed begins like that of
/// one that was, and ends in a suffix that no wiki has.
fn read_record_name(name: &str, kind: ActionKind) -> Option<NamedRecord> {
    let stem = name.strip_suffix(".md")?;
    let is_rejected = kind == ActionKind::WikiRejected;
    let prefix = if is_rejected { ActionKind::Wiki } else { kind }.as_str();
    let (run, wiki) = stem.strip_prefix(prefix)?.strip_prefix('-')?.split_at_checked(RunId::LENGTH)?;
    let (run, wiki) = (run.parse().ok()?, wiki.strip_prefix('-')?);
    let wiki = match wiki.strip_suffix(REJECTED_SUFFIX) {
        Some(wiki) if is_rejected => wiki,
        None if !is_rejected => wiki,
        Some(_) | None => return None,
    };
    Some(NamedRecord { path: RecordPath::new(RecordKind::Event, stem).ok()?, run, wiki: wiki.to_owned() })
}

/// Lists the committed runs, oldest first; of one wiki, or of all. A record that cannot be read is left out: `steward audit
/// verify` names it.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_runs(root: &VaultRoot, wiki: Option<&str>) -> Result<Vec<RunSummary>, VaultRootError> {
    list_newest_runs(root, wiki, usize::MAX)
}

/// Lists the newest committed runs, at most so many, oldest first; of one wiki, or of all.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_newest_runs(root: &VaultRoot, wiki: Option<&str>, limit: usize) -> Result<Vec<RunSummary>, VaultRootError> {
    let mut records = list_records(root, &[ActionKind::Wiki], wiki)?;
    // The name of a run begins with its second.
    records.sort_by(|a, b| a.run.cmp(&b.run));
    records.drain(..records.len().saturating_sub(limit));
    Ok(read_summaries(root, &records))
}

/// Lists a committed run of a wiki and all that began after it, among them the one that took it back.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_runs_since(root: &VaultRoot, wiki: &str, run: &RunId) -> Result<Vec<RunSummary>, VaultRootError> {
    let mut records = list_records(root, &[ActionKind::Wiki], Some(wiki))?;
    // Runs of one second are ordered by their hashes.
    records.retain(|record| record.run.began() >= run.began());
    Ok(read_summaries(root, &records))
}

/// Lists the newest runs that were not committed, at most so many, oldest first; of one wiki, or of all. One that a person
/// committed later all the same is among them.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_rejected_runs(
    root: &VaultRoot,
    wiki: Option<&str>,
    limit: usize,
) -> Result<Vec<RunSummary>, VaultRootError> {
    let mut records = list_records(root, &[ActionKind::WikiRejected], wiki)?;
    records.sort_by(|a, b| a.run.cmp(&b.run));
    records.drain(..records.len().saturating_sub(limit));
    Ok(records.iter().filter_map(|record| read_rejected(root, record)).collect())
}

/// Finds the runs of this name that were not committed: by the whole name, or by the 8 characters at its end.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn find_rejected_runs(root: &VaultRoot, run: &str) -> Result<Vec<RunSummary>, VaultRootError> {
    let records = list_records(root, &[ActionKind::WikiRejected], None)?;
    let named = records.iter().filter(|record| record.run.is_named(run));
    Ok(named.filter_map(|record| read_rejected(root, record)).collect())
}

fn read_rejected(root: &VaultRoot, record: &NamedRecord) -> Option<RunSummary> {
    Some(read_record(root, &record.path)?.summary).filter(|run| run.rejection.is_some())
}

/// Reads the runs of these records, oldest first, each with the one that took it back.
fn read_summaries(root: &VaultRoot, records: &[NamedRecord]) -> Vec<RunSummary> {
    let mut runs: Vec<RunSummary> =
        records.iter().filter_map(|record| Some(read_record(root, &record.path)?.summary)).collect();
    runs.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.run.cmp(&b.run)));
    // A rollback is newer than what it takes back, so it is among these. One that was taken back itself takes nothing back.
    let mut reverted: BTreeMap<RunId, RunId> = BTreeMap::new();
    for run in runs.iter().rev() {
        if let Some(reverts) = run.reverts.clone().filter(|_| !reverted.contains_key(&run.run)) {
            reverted.insert(reverts, run.run.clone());
        }
    }
    for run in &mut runs {
        run.reverted_by = reverted.get(&run.run).cloned();
    }
    runs
}

/// Lists the files of a wiki that its runs did not reach. A run that was taken back does not count, nor does a file that code
/// rendered anew since.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_unreached_files(root: &VaultRoot, wiki: &str) -> Result<Vec<UnreachedFile>, VaultRootError> {
    let mut records = list_records(root, &[ActionKind::Wiki, ActionKind::WikiSource], Some(wiki))?;
    records.sort_by(|a, b| a.run.cmp(&b.run));
    let mut found = Vec::new();
    for (at, record) in records.iter().enumerate().filter(|(_, record)| names_missing_files(root, record)) {
        let Some(ReadRecord { summary, missing_files, folder, .. }) = read_record(root, &record.path) else { continue };
        let later = list_runs_since(root, wiki, &summary.run)?;
        if later.iter().any(|run| run.run == summary.run && run.reverted_by.is_some()) {
            continue;
        }
        for path in missing_files {
            let file = path.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&path);
            let is_rendered = [INDEX_FILE, OVERVIEW_FILE].contains(&file);
            if !is_rendered || !records[at + 1..].iter().any(|later| has_written(root, later, file)) {
                let (run, record) = (summary.run.clone(), record.path.clone());
                found.push(UnreachedFile { file: file.to_owned(), run, record });
            }
        }
    }
    Ok(found)
}

/// Whether a record seems to name files that its run did not reach. Most do not, and are not parsed.
fn names_missing_files(root: &VaultRoot, record: &NamedRecord) -> bool {
    let read = root.read_file(&record.path);
    read.is_ok_and(|file| String::from_utf8_lossy(WikiDetails::strip(&file.bytes)).contains(MISSING_FILES))
}

/// Whether a run wrote a file.
fn has_written(root: &VaultRoot, record: &NamedRecord, file: &str) -> bool {
    let is_missing = |run: &RunDetails| run.missing_files.iter().any(|path| path.ends_with(&format!("/{file}")));
    read_run(root, &record.path).is_some_and(|run| run.files.iter().any(|it| it.file == file) && !is_missing(&run))
}

/// Finds the record of a run by its whole name or by the 8 characters at its end.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn find_run_records(root: &VaultRoot, run: &str) -> Result<Vec<RecordPath>, VaultRootError> {
    let records = list_records(root, &[ActionKind::Wiki], None)?;
    let named = records.into_iter().filter(|record| record.run.is_named(run));
    Ok(named.map(|record| record.path).collect())
}

/// Finds the record of what the log names like a run and what changed no page: a source that was added, or files that were accepted.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn find_entry_record(root: &VaultRoot, run: &str) -> Result<Option<RecordPath>, VaultRootError> {
    let records = list_records(root, &[ActionKind::WikiSource, ActionKind::WikiManifest], None)?;
    let named = records.into_iter().find(|record| record.run.is_named(run));
    Ok(named.map(|record| record.path))
}

/// Reads a run from its record; `None` if the record cannot be read.
#[must_use]
pub fn read_run(root: &VaultRoot, path: &RecordPath) -> Option<RunDetails> {
    let ReadRecord { summary, missing_files, text, .. } = read_record(root, path)?;
    let WikiDetails { files, claims } = WikiDetails::parse(&text).ok()?;
    Some(RunDetails { summary, files, claims, missing_files })
}

/// A record of a run, whose details are still text.
struct ReadRecord {
    summary: RunSummary,
    /// That of the wiki, relative to the root of the vault.
    folder: String,
    missing_files: Vec<String>,
    text: String,
}

fn read_record(root: &VaultRoot, path: &RecordPath) -> Option<ReadRecord> {
    let bytes = root.read_file(path).ok()?.bytes;
    let AuditRecord { draft, missing_files, .. } = AuditRecord::parse(&bytes).ok()?;
    let is_own = draft.record_path().as_ref() == Ok(path);
    let mark = draft.wiki.filter(|_| is_own)?;
    let folder = mark.folder;
    let summary = RunSummary {
        run: mark.run,
        wiki: mark.wiki,
        run_type: mark.run_type,
        at: draft.timestamp,
        reasoning: draft.reasoning,
        source: mark.source,
        tokens: draft.clerk.map(|clerk| clerk.tokens),
        reverted_by: None,
        reverts: mark.reverts,
        rejection: mark.rejection,
        record: path.clone(),
    };
    Some(ReadRecord { summary, folder, missing_files, text: String::from_utf8_lossy(&bytes).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_record_says_whether_its_run_was_committed() {
        let run = "r-20261122T091504Z-3f9a1c22";
        let read = |name: &str, kind| read_record_name(&name.replace("RUN", run), kind).map(|record| record.wiki);
        let (committed, rejected) = ("steward-wiki-RUN-plot.md", "steward-wiki-RUN-plot-rejected.md");
        assert_eq!(read(committed, ActionKind::Wiki).as_deref(), Some("plot"));
        assert_eq!(read(rejected, ActionKind::WikiRejected).as_deref(), Some("plot"));
        assert_eq!((read(committed, ActionKind::WikiRejected), read(rejected, ActionKind::Wiki)), (None, None));
        assert_eq!(read("steward-wiki-source-RUN-plot.md", ActionKind::WikiSource).as_deref(), Some("plot"));
        for name in ["steward-wiki-source-RUN-plot.md", "steward-wiki-rejected-RUN-plot.md", "steward-wiki-RUN.md"] {
            let found = (read(name, ActionKind::Wiki), read(name, ActionKind::WikiRejected));
            assert_eq!(found, (None, None), "{name}");
        }
    }
}
