//! Lists the committed runs of the vault's wikis, from their audit records.
//!
//! The name of a record says its run and its wiki, so no index is needed.

use crate::files::root::{VaultRoot, VaultRootError};
use crate::wiki::accept::read_record_name;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::wiki::details::{ClaimRecord, FileRecord, WikiDetails};
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};

/// A run that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    pub run: RunId,
    pub wiki: String,
    pub run_type: WikiRunType,
    pub at: DateTime<Utc>,
    pub reasoning: String,
    pub source: Option<RunSource>,
    /// The run that took this one back.
    pub reverted_by: Option<RunId>,
    /// The run that this one took back.
    pub reverts: Option<RunId>,
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

/// Lists the committed runs, oldest first; of one wiki, or of all. A record that cannot be read is left out: `steward audit
/// verify` names it.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_runs(root: &VaultRoot, wiki: Option<&str>) -> Result<Vec<RunSummary>, VaultRootError> {
    let read = |path: &RecordPath| Some(read_run(root, path)?.summary);
    let mut runs: Vec<RunSummary> = list_records(root, wiki)?.iter().filter_map(read).collect();
    runs.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.run.cmp(&b.run)));
    // A rollback that was taken back itself takes nothing back.
    let mut reverted: BTreeMap<RunId, RunId> = BTreeMap::new();
    for run in runs.iter().rev() {
        if let Some(reverts) = run.reverts.clone().filter(|_| !reverted.contains_key(&run.run)) {
            reverted.insert(reverts, run.run.clone());
        }
    }
    for run in &mut runs {
        run.reverted_by = reverted.get(&run.run).cloned();
    }
    Ok(runs)
}

/// The paths of the records of runs; of one wiki, or of all.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn list_records(root: &VaultRoot, wiki: Option<&str>) -> Result<Vec<RecordPath>, VaultRootError> {
    let names = root.list_names(RecordKind::Event)?;
    let is_wanted = |name: &&String| {
        let named = read_record_name(name, ActionKind::Wiki);
        named.is_some_and(|named| wiki.is_none_or(|wiki| named.wiki == wiki))
    };
    let stems = names.iter().filter(is_wanted).filter_map(|name| name.strip_suffix(".md"));
    Ok(stems.filter_map(|stem| RecordPath::new(RecordKind::Event, stem).ok()).collect())
}

/// Finds the record of a run by its whole name or by the 8 characters at its end.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn find_run_records(root: &VaultRoot, run: &str) -> Result<Vec<RecordPath>, VaultRootError> {
    let is_named = |path: &RecordPath| {
        let name = format!("{}.md", path.slug());
        let named = read_record_name(&name, ActionKind::Wiki);
        named.is_some_and(|named| named.run.as_str() == run || named.run.short() == run)
    };
    Ok(list_records(root, None)?.into_iter().filter(is_named).collect())
}

/// Reads a run from its record; `None` if the record cannot be read.
#[must_use]
pub fn read_run(root: &VaultRoot, path: &RecordPath) -> Option<RunDetails> {
    let bytes = root.read_file(path).ok()?.bytes;
    let AuditRecord { draft, missing_files, .. } = AuditRecord::parse(&bytes).ok()?;
    let is_own = draft.record_path().as_ref() == Ok(path);
    let details = WikiDetails::parse(&String::from_utf8_lossy(&bytes)).ok()?;
    let mark = draft.wiki.filter(|_| is_own)?;
    let summary = RunSummary {
        run: mark.run,
        wiki: mark.wiki,
        run_type: mark.run_type,
        at: draft.timestamp,
        reasoning: draft.reasoning,
        source: mark.source,
        reverted_by: None,
        reverts: mark.reverts,
        record: path.clone(),
    };
    Some(RunDetails { summary, files: details.files, claims: details.claims, missing_files })
}
