//! Takes a committed run of a wiki back, as a run of its own.
//!
//! It reads the record of the run and the wiki as it is, plans the rollback
//! ([`steward_domain::wiki::rollback`]), renders the index anew, adds an entry to the log, and commits all of it. If a
//! person changes a file meanwhile, it is planned again.

use crate::action::chain;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::wiki::chain::{ManifestError, resolve_chain};
use crate::wiki::folder::WikiFolder;
use chrono::{DateTime, Utc};
use std::io;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::details::{WikiDetails, WikiDetailsError};
use steward_domain::wiki::index_page::render_index;
use steward_domain::wiki::log::{LogType, render_entry};
use steward_domain::wiki::manifest::merge_manifests;
use steward_domain::wiki::path::{PagePath, PagePathError};
use steward_domain::wiki::plan::{RunFile, WikiPlanError, WikiRun, close};
use steward_domain::wiki::rollback::{EditedPages, KeptPage, RollbackConflict, RollbackPlan, invert};
use steward_domain::wiki::run::{RunId, WikiMark, WikiRunType};
use steward_domain::wiki::{INDEX_FILE, LOG_FILE, MANIFEST_FILE};

/// How often a rollback is planned anew because files changed meanwhile.
const TRIES: usize = 3;

/// Which run is taken back, and by whom.
#[derive(Clone, Debug)]
pub struct RevertRequest<'a> {
    /// The record of the run.
    pub record: &'a RecordPath,
    /// The person's name, as they gave it.
    pub by: &'a str,
    pub edited: EditedPages,
    /// The same moment names the same rollback, so that it is done once.
    pub at: DateTime<Utc>,
    pub workflow: WorkflowRef,
}

/// A run that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertedRun {
    pub receipt: ActionReceipt,
    /// Pages of the run that stay, and why.
    pub kept: Vec<KeptPage>,
}

/// Why a run was not taken back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    #[error("{0}: not the record of a run")]
    NotARun(RecordPath),
    #[error("{record}: {source}: the record was edited, so nothing can be taken back by it")]
    Details { record: RecordPath, source: WikiDetailsError },
    #[error("in the way: {}", list(.0))]
    Conflicts(Vec<RollbackConflict>),
    #[error("nothing of the run stands any more{}", if .0.is_empty() { String::new() } else { format!("; kept: {}", list_kept(.0)) })]
    Nothing(Vec<KeptPage>),
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error(transparent)]
    Plan(#[from] WikiPlanError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

fn list(conflicts: &[RollbackConflict]) -> String {
    conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn list_kept(kept: &[KeptPage]) -> String {
    kept.iter().map(|page| format!("{} ({})", page.file, page.reason)).collect::<Vec<_>>().join(", ")
}

impl VaultWriter {
    /// Takes a run back. It may be done at any time, also below later runs and under a stop.
    ///
    /// # Errors
    /// [`RevertError`]; calling again is safe.
    pub fn revert_run(&self, request: &RevertRequest<'_>) -> Result<RevertedRun, RevertError> {
        let mut tries = 1;
        loop {
            match self.revert_run_once(request) {
                Err(RevertError::Apply(ApplyError::ChangedMeanwhile { .. })) if tries < TRIES => tries += 1,
                ended => return ended,
            }
        }
    }

    fn revert_run_once(&self, request: &RevertRequest<'_>) -> Result<RevertedRun, RevertError> {
        let not_a_run = || RevertError::NotARun(request.record.clone());
        let (record, details) = read_run(self.root(), request.record)?;
        let reverted = record.draft.wiki.filter(|_| record.draft.kind == ActionKind::Wiki).ok_or_else(not_a_run)?;
        let run = describe_rollback(request, &reverted);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(RevertedRun { receipt, kept: Vec::new() });
        }
        let read = |path: &PagePath| read_current(self.root(), path);
        let mut plan = invert(&details, &reverted.folder, &record.missing_files, request.edited, read)?;
        if !plan.conflicts.is_empty() {
            return Err(RevertError::Conflicts(plan.conflicts));
        }
        let failed = |source| RevertError::Io { path: reverted.folder.clone(), source };
        let folder = WikiFolder::open(&self.root().path().join(&reverted.folder)).map_err(failed)?;
        let pages = folder.read().pages;
        plan.keep_used_pages(&pages);
        if plan.files.is_empty() {
            return Err(RevertError::Nothing(plan.kept));
        }
        let chain = resolve_chain(&folder.path().join(MANIFEST_FILE), Some(self.root().path()))?;
        let index = render_index(&merge_manifests(&chain.layers).0, &plan.apply_to(&pages));
        let RollbackPlan { mut files, kept, .. } = plan;
        let entry = render_log_entry(request, &run.mark, &files, &kept);
        files.push(self.replace_whole(&reverted.folder, INDEX_FILE, |_| index)?);
        files.push(self.replace_whole(&reverted.folder, LOG_FILE, |log| format!("{log}{entry}"))?);
        let receipt = self.commit_run(&close(run, files)?)?;
        Ok(RevertedRun { receipt, kept })
    }

    /// A file of a wiki with another content.
    fn replace_whole(
        &self,
        folder: &str,
        file: &str,
        change: impl FnOnce(&str) -> String,
    ) -> Result<RunFile, RevertError> {
        let path = PagePath::new(folder, file)?;
        let before = read_current(self.root(), &path).map_err(ApplyError::Form)?;
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        Ok(RunFile { path, before, after: Some(change(&text).into_bytes()) })
    }
}

fn read_run(root: &VaultRoot, path: &RecordPath) -> Result<(AuditRecord, WikiDetails), RevertError> {
    let (record, _) = chain::read_audit_record(root, path).map_err(ApplyError::from)?;
    let bytes = root.read_file(path).map_err(ApplyError::from)?.bytes;
    if record.draft.record_path().as_ref() != Ok(path) {
        return Err(RevertError::NotARun(path.clone()));
    }
    let details = WikiDetails::parse(&String::from_utf8_lossy(&bytes));
    Ok((record, details.map_err(|source| RevertError::Details { record: path.clone(), source })?))
}

fn read_current(root: &VaultRoot, path: &PagePath) -> Result<Option<Vec<u8>>, String> {
    match root.read_page(path) {
        Ok(current) => Ok(Some(current.bytes)),
        Err(VaultRootError::Missing { .. }) => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

fn describe_rollback(request: &RevertRequest<'_>, reverted: &WikiMark) -> WikiRun {
    let at = steward_domain::time::format_millis(request.at);
    WikiRun {
        kind: ActionKind::Wiki,
        mark: WikiMark {
            run: RunId::derive(request.at, &["rollback", &reverted.wiki, reverted.run.as_str(), &at]),
            run_type: WikiRunType::Rollback,
            reverts: Some(reverted.run.clone()),
            ..reverted.clone()
        },
        at: request.at,
        reasoning: format!("{} took back the run {}.", request.by, reverted.run),
        workflow: request.workflow.clone(),
    }
}

fn render_log_entry(request: &RevertRequest<'_>, mark: &WikiMark, files: &[RunFile], kept: &[KeptPage]) -> String {
    let reverted = mark.reverts.as_ref().map_or("", |run| run.as_str());
    let names = |files: &mut dyn Iterator<Item = &str>| files.collect::<Vec<_>>().join(", ");
    let touched = names(&mut files.iter().map(|file| file.path.file()));
    let mut bullets = vec![format!("run: {}, takes back: {reverted}", mark.run), format!("touched: {touched}")];
    if !kept.is_empty() {
        bullets.push(format!("kept: {}", names(&mut kept.iter().map(|page| page.file.as_str()))));
    }
    render_entry(request.at, LogType::Manual, &format!("Took back {reverted}"), &bullets)
}
