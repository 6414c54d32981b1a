//! Takes a committed run of a wiki back, as a run of its own.
//!
//! It reads the record of the run and the wiki as it is, plans the rollback
//! ([`steward_domain::wiki::rollback`]), renders the index anew, adds an entry to the log, and commits all of it. If a
//! person changes a file meanwhile, it is planned again.

use crate::action::chain::ChainError;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::wiki::chain::resolve_chain;
use crate::wiki::folder::WikiFolder;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::io;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::details::{WikiDetails, WikiDetailsError};
use steward_domain::wiki::finding::Severity;
use steward_domain::wiki::index_page::render_index;
use steward_domain::wiki::log::{LogType, render_entry};
use steward_domain::wiki::manifest::{EffectiveManifest, merge_manifests};
use steward_domain::wiki::page::{WikiPage, may_be_page};
use steward_domain::wiki::path::{PagePath, PagePathError};
use steward_domain::wiki::plan::{RunFile, WikiPlanError, WikiRun, close};
use steward_domain::wiki::rollback::{EditedPages, KeptPage, RollbackConflict, UnreadablePage, invert};
use steward_domain::wiki::run::{RunId, WikiMark, WikiRunType};
use steward_domain::wiki::{INDEX_FILE, LOG_FILE, MANIFEST_FILE, MAX_GENERATED_BYTES};

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
    /// Pages of the run that stay, and why. Empty if it had been taken back before.
    pub kept: Vec<KeptPage>,
    /// Where the index went, if it had lines that code did not write.
    pub displaced: Option<PagePath>,
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
    #[error("nothing of the run stands any more{}", list_kept(.0))]
    Nothing(Vec<KeptPage>),
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error(transparent)]
    Plan(#[from] WikiPlanError),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

fn list(conflicts: &[RollbackConflict]) -> String {
    conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn list_kept(kept: &[KeptPage]) -> String {
    kept.iter().map(|page| format!("; {} stays: {}", page.file, page.reason)).collect()
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
            return Ok(RevertedRun { receipt, kept: Vec::new(), displaced: None });
        }
        // They are read first. So a run that is committed while the pages are read makes this one start again.
        let [index, log] =
            [self.read_whole(&reverted.folder, INDEX_FILE)?, self.read_whole(&reverted.folder, LOG_FILE)?];
        let read = |path: &PagePath| read_current(self.root(), path);
        let mut plan = invert(&details, &reverted.folder, &record.missing_files, request.edited, read)?;
        let wiki = self.read_wiki(&reverted.folder, index.before.as_deref())?;
        plan.settle_names(&wiki.pages, &wiki.unreadable, request.edited);
        if !plan.conflicts.is_empty() {
            return Err(RevertError::Conflicts(plan.conflicts));
        }
        if plan.files.is_empty() {
            return Err(RevertError::Nothing(plan.kept));
        }
        let (rendered, wanted) =
            (render_index(&wiki.manifest, &wiki.pages), render_index(&wiki.manifest, &plan.apply_to(&wiki.pages)));
        let entry = render_log_entry(request, &run.mark, &plan.files, &plan.kept);
        let is_edited = index.before.as_ref().is_some_and(|index| index != rendered.as_bytes());
        let displaced = is_edited.then(|| index.path.in_trash(&run.mark.run));
        let kept = std::mem::take(&mut plan.kept);
        let mut files = plan.files;
        files.extend(displaced.clone().map(|path| RunFile { path, before: None, after: index.before.clone() }));
        files.push(RunFile { after: Some(wanted.into_bytes()), ..index });
        let mut text = log.before.clone().unwrap_or_default();
        text.extend_from_slice(entry.as_bytes());
        files.push(RunFile { after: Some(text), ..log });
        let receipt = self.commit_run(&close(run, files)?)?;
        Ok(RevertedRun { receipt, kept, displaced })
    }

    /// A file of a wiki as it is, without a new content.
    fn read_whole(&self, folder: &str, file: &str) -> Result<RunFile, RevertError> {
        let path = PagePath::new(folder, file)?;
        let before = read_current(self.root(), &path).map_err(ApplyError::Form)?;
        Ok(RunFile { path, before, after: None })
    }

    /// Reads the pages and the manifest of a wiki.
    fn read_wiki(&self, folder: &str, index: Option<&[u8]>) -> Result<ReadWiki, RevertError> {
        let failed = |source| RevertError::Io { path: folder.to_owned(), source };
        let opened = WikiFolder::open(&self.root().path().join(folder)).map_err(failed)?;
        let contents = opened.read();
        let broken = contents.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let mut broken: Vec<&String> = broken.map(|finding| &finding.file).filter(|file| may_be_page(file)).collect();
        broken.retain(|file| contents.pages.iter().all(|page| page.file != **file));
        broken.dedup();
        let unreadable = broken.into_iter().filter_map(|file| {
            let text = opened.read_text(file, MAX_GENERATED_BYTES).ok()??;
            Some(UnreadablePage { file: file.clone(), text })
        });
        let unreadable = unreadable.collect();
        // A manifest that cannot be read must not keep anybody from taking a run back.
        let manifest = match resolve_chain(&opened.path().join(MANIFEST_FILE), Some(self.root().path())) {
            Ok(chain) => merge_manifests(&chain.layers).0,
            Err(_) => {
                let index = String::from_utf8_lossy(index.unwrap_or_default()).into_owned();
                let title = index.lines().next().and_then(|line| line.strip_prefix("# Index: ")).unwrap_or("Wiki");
                let fields = [("title".to_owned(), title.into())].into_iter().collect();
                EffectiveManifest::new(fields, BTreeMap::new())
            }
        };
        Ok(ReadWiki { pages: contents.pages, unreadable, manifest })
    }
}

/// A wiki as a rollback looks at it.
struct ReadWiki {
    pages: Vec<WikiPage>,
    unreadable: Vec<UnreadablePage>,
    manifest: EffectiveManifest,
}

fn read_run(root: &VaultRoot, path: &RecordPath) -> Result<(AuditRecord, WikiDetails), RevertError> {
    let bytes = root.read_file(path).map_err(ApplyError::from)?.bytes;
    let failed = |source| ApplyError::from(ChainError::Record { path: path.clone(), source });
    let record = AuditRecord::parse(&bytes).map_err(failed)?;
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
