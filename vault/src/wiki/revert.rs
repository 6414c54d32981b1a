//! Takes a committed run of a wiki back, as a run of its own.
//!
//! It reads the record of the run and the wiki as it is, plans the rollback
//! ([`steward_domain::wiki::rollback`]), renders the index anew, adds an entry to the log, and commits all of it. If a
//! person changes a file meanwhile, it is planned again.

use crate::action::chain::{self, ChainError};
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::VaultRoot;
use crate::wiki::rejected::add_reason;
use crate::wiki::runs::{self, RunSummary, list_runs};
use crate::wiki::state::{ReadWiki, ReadWikiError, read_current, read_wiki};
use chrono::{DateTime, Utc};
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::assemble::{AssembleError, ProvenanceChange, RunReport, assemble_run};
use steward_domain::wiki::details::{FileRecord, RecordedContent, WikiDetails, WikiDetailsError};
use steward_domain::wiki::graph::{PageRelation, choose_new_relations, list_relations};
use steward_domain::wiki::path::{PagePath, PagePathError};
use steward_domain::wiki::plan::{WikiPlanError, WikiRun, close};
use steward_domain::wiki::rollback::{EditedPages, KeptPage, RollbackConflict, RollbackPlan, invert};
use steward_domain::wiki::run::{RunId, WikiMark, WikiRunType};
use steward_domain::wiki::{GRAPH_FILE, IDEAS_FILE};

/// How often a rollback is planned anew because files changed meanwhile.
const TRIES: usize = 3;

/// Which run is taken back, and by whom.
#[derive(Clone, Debug)]
pub struct RevertRequest<'a> {
    /// The record of the run.
    pub record: &'a RecordPath,
    /// The person's name, as they gave it.
    pub by: &'a str,
    /// Why, in their words.
    pub reason: Option<&'a str>,
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
    /// Where files went that code renders and that people had edited.
    pub displaced: Vec<PagePath>,
}

/// Why a run was not taken back. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    #[error("{0}: not the record of a run in the chain of records: `steward audit verify` checks it")]
    NotARun(RecordPath),
    #[error("{record}: {source}: the record was edited, so nothing can be taken back by it")]
    Details { record: RecordPath, source: WikiDetailsError },
    #[error("in the way: {}", list(.0))]
    Conflicts(Vec<RollbackConflict>),
    #[error("the run {0} took it back already; take that one back to let it stand again")]
    Again(RunId),
    #[error("nothing of the run can go back{}", list_kept(.0))]
    Nothing(Vec<KeptPage>),
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error(transparent)]
    Plan(#[from] WikiPlanError),
    #[error(transparent)]
    Read(#[from] ReadWikiError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
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
        let record = RunRecord::read(self.root(), request.record)?;
        let reverted = &record.reverted;
        let run = describe_rollback(request, reverted);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(RevertedRun { receipt, kept: Vec::new(), displaced: Vec::new() });
        }
        let PlannedRevert { runs, wiki, mut plan } = plan_revert(self.root(), &record, request.edited, request.at)?;
        let stands_again = count_rollbacks(&runs, &reverted.run) % 2 == 1;
        let mut report = describe_report(request, &Rollback { mark: &run.mark, stands_again }, &plan, &record.details);
        let first = runs.iter().find(|known| stands_again && reverted.reverts.as_ref() == Some(&known.run));
        if let Some(first) = first.and_then(|first| runs::read_run(self.root(), &first.record)) {
            report.ideas = list_ideas(&first.files);
            let (after, graph) = (plan.apply_to(&wiki.state.pages), wiki.state.texts.graph.as_deref());
            let is_page = |slug: &str| after.iter().any(|page| page.slug == slug);
            report.relations = choose_new_relations(&list_run_relations(&first.files), graph, is_page);
        }
        let kept = std::mem::take(&mut plan.kept);
        let assembled = assemble_run(wiki.state, plan.files, &report)?;
        let receipt = self.commit_run(&close(run, assembled.files)?)?;
        Ok(RevertedRun { receipt, kept, displaced: assembled.displaced })
    }
}

/// Plans to take the run of a record back, as [`VaultWriter::revert_run`] would, and changes nothing.
///
/// # Errors
/// [`RevertError`], as that one would give it.
pub fn preview_revert(
    root: &VaultRoot,
    path: &RecordPath,
    edited: EditedPages,
    now: DateTime<Utc>,
) -> Result<RollbackPlan, RevertError> {
    Ok(plan_revert(root, &RunRecord::read(root, path)?, edited, now)?.plan)
}

/// A rollback that nothing stands in the way of.
struct PlannedRevert {
    runs: Vec<RunSummary>,
    wiki: ReadWiki,
    plan: RollbackPlan,
}

fn plan_revert(
    root: &VaultRoot,
    record: &RunRecord,
    edited: EditedPages,
    at: DateTime<Utc>,
) -> Result<PlannedRevert, RevertError> {
    let RunRecord { reverted, details, missing_files } = record;
    let runs = list_runs(root, Some(&reverted.wiki)).map_err(ReadWikiError::from)?;
    let by = runs.iter().find(|known| known.run == reverted.run).and_then(|known| known.reverted_by.clone());
    if let Some(by) = by {
        return Err(RevertError::Again(by));
    }
    // It is read first. So a run that is committed while the pages are read makes this one start again.
    let wiki = read_wiki(root, &reverted.wiki, &reverted.folder)?;
    let read = |path: &PagePath| read_current(root, path);
    let mut plan = invert(details, &reverted.folder, missing_files, edited, at, read)?;
    plan.settle_names(&wiki.state.pages, &wiki.unreadable, edited);
    if !plan.conflicts.is_empty() {
        name_causes(root, &mut plan.conflicts, &runs, &reverted.run);
        return Err(RevertError::Conflicts(plan.conflicts));
    }
    if plan.files.is_empty() {
        return Err(RevertError::Nothing(plan.kept));
    }
    Ok(PlannedRevert { runs, wiki, plan })
}

/// What the record of a committed run holds.
struct RunRecord {
    reverted: WikiMark,
    details: WikiDetails,
    /// The files that the run did not reach.
    missing_files: Vec<String>,
}

impl RunRecord {
    fn read(root: &VaultRoot, path: &RecordPath) -> Result<Self, RevertError> {
        let (bytes, sha256) = root.read_file(path).map(|read| (read.bytes, read.hash)).map_err(ApplyError::from)?;
        let failed = |source| ApplyError::from(ChainError::Record { path: path.clone(), source });
        let record = AuditRecord::parse(&bytes).map_err(failed)?;
        let details = WikiDetails::parse(&String::from_utf8_lossy(&bytes));
        let details = details.map_err(|source| RevertError::Details { record: path.clone(), source });
        let not_a_run = || RevertError::NotARun(path.clone());
        if record.draft.record_path().as_ref() != Ok(path) {
            return Err(not_a_run());
        }
        let details = details?;
        if !chain::is_linked(root, record.seq, &sha256).map_err(ApplyError::from)? {
            return Err(not_a_run());
        }
        let reverted = record.draft.wiki.filter(|_| record.draft.kind == ActionKind::Wiki).ok_or_else(not_a_run)?;
        Ok(Self { reverted, details, missing_files: record.missing_files })
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
            verifier: None,
            rejection: None,
            ..reverted.clone()
        },
        at: request.at,
        reasoning: format!("{} took back the run {}{}.", request.by, reverted.run, add_reason(request.reason)),
        workflow: request.workflow.clone(),
        clerk: None,
        claims: Vec::new(),
        accepted: Vec::new(),
    }
}

/// How many rollbacks stand between a run and the one that is no rollback: 0 for that one, 1 for its rollback.
fn count_rollbacks(runs: &[RunSummary], run: &RunId) -> usize {
    let reverts = |run: &RunId| runs.iter().find(|known| known.run == *run).and_then(|known| known.reverts.clone());
    std::iter::successors(reverts(run), reverts).take(runs.len()).count()
}

/// Says of each conflict which later run wrote the words that are in the way, or that a person did.
fn name_causes(root: &VaultRoot, conflicts: &mut [RollbackConflict], runs: &[RunSummary], run: &RunId) {
    let later = runs.iter().skip_while(|known| known.run != *run).skip(1);
    let later: Vec<_> = later.filter_map(|known| runs::read_run(root, &known.record)).collect();
    for conflict in conflicts.iter_mut() {
        let Some(words) = conflict.words.as_deref().filter(|words| !words.is_empty()) else { continue };
        let wrote = |file: &FileRecord| match &file.content {
            RecordedContent::Page { before, after } => {
                file.file == conflict.file && after.contains(words) && !before.contains(words)
            }
            RecordedContent::Hashes | RecordedContent::Entry(_) | RecordedContent::Accepted(_) => false,
        };
        let cause = later.iter().rev().find(|known| known.files.iter().any(wrote));
        let cause = cause.map_or_else(|| "by hand".to_owned(), |known| format!("by the run {}", known.summary.run));
        conflict.reason = format!("{} {cause}", conflict.reason);
    }
}

/// The questions that a run kept, as they stand in the file.
fn list_ideas(files: &[FileRecord]) -> Vec<String> {
    let lines = list_added_text(files, IDEAS_FILE).flat_map(str::lines);
    lines.filter(|line| line.starts_with("- ")).map(str::to_owned).collect()
}

/// The relations that a run added to the graph.
fn list_run_relations(files: &[FileRecord]) -> Vec<PageRelation> {
    list_added_text(files, GRAPH_FILE).flat_map(list_relations).collect()
}

/// What a run added at the end of a file.
fn list_added_text<'f>(files: &'f [FileRecord], name: &'f str) -> impl Iterator<Item = &'f str> {
    files.iter().filter(move |file| file.file == name).filter_map(|file| match &file.content {
        RecordedContent::Entry(text) => Some(text.as_str()),
        RecordedContent::Hashes | RecordedContent::Page { .. } | RecordedContent::Accepted(_) => None,
    })
}

/// A rollback.
struct Rollback<'a> {
    mark: &'a WikiMark,
    /// It takes a rollback back, so what that one took back is there again.
    stands_again: bool,
}

fn describe_report(
    request: &RevertRequest<'_>,
    rollback: &Rollback<'_>,
    plan: &RollbackPlan,
    details: &WikiDetails,
) -> RunReport {
    let (mark, files, kept) = (rollback.mark, &plan.files, &plan.kept);
    let reverted = mark.reverts.as_ref().map_or("", |run| run.as_str());
    let names = |files: &mut dyn Iterator<Item = &str>| files.collect::<Vec<_>>().join(", ");
    let touched = names(&mut files.iter().map(|file| file.path.file()));
    let mut bullets = vec![format!("run: {}, takes back: {reverted}", mark.run), format!("touched: {touched}")];
    if !kept.is_empty() {
        bullets.push(format!("kept: {}", names(&mut kept.iter().map(|page| page.file.as_str()))));
    }
    RunReport {
        provenance: match mark.source.clone() {
            None => ProvenanceChange::Nothing,
            Some(source) if rollback.stands_again => ProvenanceChange::Add(source),
            Some(source) => ProvenanceChange::Remove(source),
        },
        dropped_ideas: list_ideas(&details.files),
        dropped_relations: list_run_relations(&details.files),
        ..RunReport::manual(&mark.run, request.at, format!("Took back {reverted}"), bullets)
    }
}
