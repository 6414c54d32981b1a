//! Runs of wikis: those that were committed, those that are staged, and those that ended without a commit.
//!
//! A committed run is read from its audit record. A staged one is read from its folder, which a process may be writing. When the
//! folder of a run that ended is removed, its record says what is left to say.

use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeSet;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::GRAPH_FILE;
use steward_domain::wiki::details::{ClaimRecord, FileRecord, RecordedContent};
use steward_domain::wiki::merge::{DiffLine, list_diff_lines};
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::{RunId, derive_record_id};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::runs::{
    RunDetails, RunSummary, find_rejected_runs, find_run_records, list_newest_runs, list_rejected_runs,
    list_runs_since, read_run,
};
use steward_vault::wiki::staged::{RunState, StagedPlan, StagedRunSummary, StagedRuns};
use steward_vault::wiki::state::ReadWikiError;
use utoipa::ToSchema;

/// The state of a run that was committed.
const COMMITTED: &str = "committed";
/// The state of one that was taken back.
const TAKEN_BACK: &str = "taken_back";
/// The state of one that is checked.
const VERIFYING: &str = "verifying";

/// A run in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiRunRow {
    pub run: String,
    pub wiki: String,
    /// `ingest`, `manual`, `lint`, `archive` or `rollback`.
    pub run_type: String,
    pub at: DateTime<Utc>,
    /// `pending`, `verifying`, `committed`, `taken_back`, `rejected` or `abandoned`.
    pub state: String,
    /// Whether it waits for a person.
    pub waits: bool,
    /// What it did, or why it is in this state. Untrusted.
    pub what: String,
    /// The run that took it back.
    pub reverted_by: Option<String>,
}

impl WikiRunRow {
    /// The 8 characters by which people name the run.
    #[must_use]
    pub fn short(&self) -> &str {
        shorten_run(&self.run)
    }

    /// Whether it was committed, and perhaps taken back since.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        matches!(self.state.as_str(), COMMITTED | TAKEN_BACK)
    }

    /// Whether its writer has ended: it was committed, is checked, or waits for a person.
    #[must_use]
    pub fn is_submitted(&self) -> bool {
        self.waits || self.is_committed() || self.state == VERIFYING
    }

    /// The id of the action that its audit record is, or will be when it is committed.
    #[must_use]
    pub fn derive_action(&self) -> String {
        derive_record_id(ActionKind::Wiki, &self.run, &self.wiki).to_string()
    }

    /// Its state in the words of the screens.
    #[must_use]
    pub fn describe_state(&self) -> String {
        match &self.reverted_by {
            Some(by) => format!("taken back by {}", shorten_run(by)),
            None if self.waits => "waits for you".to_owned(),
            None => self.state.clone(),
        }
    }
}

/// The 8 characters at the end of the name of a run.
#[must_use]
pub fn shorten_run(run: &str) -> &str {
    run.rsplit('-').next().unwrap_or(run)
}

/// A run with everything that it changes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiRunView {
    #[serde(flatten)]
    pub row: WikiRunRow,
    /// Who wrote its pages: `rules`, or a model. Absent for a run that was committed: `what` says it.
    pub writer: Option<String>,
    pub files: Vec<WikiRunFile>,
    /// The claims that it makes or removes, as in `asserted plot-12#c6107d23f 2024-03-02-lease`.
    pub claims: Vec<String>,
    /// What the rules or the verifier found. Untrusted.
    pub findings: Vec<String>,
    /// Lines that it adds to the ideas. Untrusted.
    pub ideas: Vec<String>,
    /// Whether a verifier refused it and nothing else did, so that a person may commit it all the same.
    pub may_override: bool,
    /// The hash of what is staged, by which it is approved; absent for a run that neither waits nor may be overridden.
    #[schema(value_type = Option<String>)]
    pub staged: Option<ContentHash>,
    /// The audit record of a run that was committed.
    pub record: Option<String>,
    /// Files that a crash kept it from changing.
    pub missing_files: Vec<String>,
}

/// A file of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiRunFile {
    /// Relative to the wiki.
    pub file: String,
    /// `new`, `changed`, `removed`, or `rendered` for a file that code writes from the others.
    pub change: String,
    /// The lines that it loses and gains. Untrusted.
    pub lines: Vec<RunDiffLine>,
}

/// A line that a file loses or gains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunDiffLine {
    pub side: DiffSide,
    /// Untrusted.
    pub text: String,
}

/// Where a line of a diff stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DiffSide {
    Before,
    After,
}

/// Lists the newest runs, at most so many of those that were committed, newest first; of one wiki, or of all. Call it on a
/// blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub fn list_wiki_runs(root: &VaultRoot, wiki: Option<&str>, limit: usize) -> Result<Vec<WikiRunRow>, ReadWikiError> {
    let committed = list_newest_runs(root, wiki, limit)?;
    let oldest = committed.first().filter(|_| committed.len() >= limit).map(|run| run.at);
    let known: BTreeSet<RunId> = committed.iter().map(|run| run.run.clone()).collect();
    let mut rows: Vec<WikiRunRow> = committed.into_iter().map(describe_committed).collect();
    // A run that waits is shown, however old it is. One that was committed is in the first list or too old for it.
    let is_shown = |run: &StagedRunSummary| {
        let is_new = oldest.is_none_or(|oldest| run.meta.began >= oldest);
        !known.contains(&run.meta.run)
            && wiki.is_none_or(|it| it == run.meta.wiki)
            && run.status.state != RunState::Committed
            && (run.status.waits || is_new)
    };
    let staged = StagedRuns::new(root).list().unwrap_or_default();
    // A run whose folder is still there says more than its record.
    let listed: BTreeSet<RunId> = staged.iter().map(|run| run.meta.run.clone()).chain(known.iter().cloned()).collect();
    let is_new = |run: &RunSummary| oldest.is_none_or(|oldest| run.run.began() >= Some(oldest));
    let ended = list_rejected_runs(root, wiki, limit)?.into_iter();
    rows.extend(ended.filter(|run| !listed.contains(&run.run) && is_new(run)).map(|run| describe_recorded(&run)));
    rows.extend(staged.into_iter().filter(is_shown).map(|run| describe_staged(&run)));
    rows.sort_by(|a, b| (b.at, &b.run).cmp(&(a.at, &a.run)));
    Ok(rows)
}

/// Reads a run, named by its whole name or by the 8 characters at its end; `None` if there is none or several. Call it on a
/// blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub fn find_wiki_run(root: &VaultRoot, name: &str) -> Result<Option<WikiRunView>, ReadWikiError> {
    let records = find_run_records(root, name)?;
    let mut staged = StagedRuns::new(root).list_named(name).unwrap_or_default().into_iter();
    if records.len() > 1 {
        return Ok(None);
    }
    if let Some(details) = records.first().and_then(|record| read_run(root, record)) {
        let is_other = staged.any(|run| run.meta.run != details.summary.run);
        return Ok((!is_other).then(|| view_committed(root, details)));
    }
    let ended = find_rejected_runs(root, name)?;
    match (staged.next(), staged.next()) {
        (Some(run), None) => {
            let is_other = ended.iter().any(|ended| ended.run != run.meta.run);
            Ok((!is_other).then(|| view_staged(root, &run)))
        }
        (None, _) if ended.len() == 1 => Ok(ended.first().map(view_recorded)),
        _ => Ok(None),
    }
}

/// Lists the runs of a wiki that a name means: the whole one, or the 8 characters at its end. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn list_named_runs(root: &VaultRoot, wiki: &str, name: &str) -> Result<Vec<RunId>, ReadWikiError> {
    let records = find_run_records(root, name)?;
    let committed = records.iter().filter_map(|record| Some(read_run(root, record)?.summary));
    let recorded = committed.chain(find_rejected_runs(root, name)?).filter(|run| run.wiki == wiki).map(|run| run.run);
    let staged = StagedRuns::new(root).list_named(name).unwrap_or_default().into_iter().map(|run| run.meta);
    let staged = staged.filter(|meta| meta.wiki == wiki).map(|meta| meta.run);
    // One run may have a folder and a record.
    let found: BTreeSet<RunId> = recorded.chain(staged).collect();
    Ok(found.into_iter().collect())
}

fn describe_committed(run: RunSummary) -> WikiRunRow {
    WikiRunRow {
        run: run.run.to_string(),
        wiki: run.wiki,
        run_type: run.run_type.to_string(),
        at: run.at,
        state: if run.reverted_by.is_some() { TAKEN_BACK } else { COMMITTED }.to_owned(),
        waits: false,
        what: run.reasoning,
        reverted_by: run.reverted_by.map(|by| by.to_string()),
    }
}

/// A run that ended without a commit, of which the record alone is left.
fn describe_recorded(run: &RunSummary) -> WikiRunRow {
    let source = run.source.as_ref().map(|source| format!(" Source: {}.", source.id)).unwrap_or_default();
    let end = run.rejection.as_ref().map(|rejection| rejection.end.to_string());
    WikiRunRow {
        run: run.run.to_string(),
        wiki: run.wiki.clone(),
        run_type: run.run_type.to_string(),
        at: run.run.began().unwrap_or(run.at),
        state: end.unwrap_or_default(),
        waits: false,
        what: format!("{}{source}", run.reasoning),
        reverted_by: None,
    }
}

fn describe_staged(StagedRunSummary { meta, status }: &StagedRunSummary) -> WikiRunRow {
    WikiRunRow {
        run: meta.run.to_string(),
        wiki: meta.wiki.clone(),
        run_type: meta.run_type.to_string(),
        at: meta.began,
        state: status.state.to_string(),
        waits: status.waits,
        what: match (&meta.source, &meta.answer, &meta.review) {
            (Some(source), ..) => format!("{}; source: {}", status.reason, source.id),
            (None, Some(answer), _) => format!("{}; answer: {answer}", status.reason),
            (None, None, Some(review)) => format!("{}; review: {}", status.reason, review.id),
            (None, None, None) => status.reason.clone(),
        },
        reverted_by: None,
    }
}

fn view_committed(root: &VaultRoot, details: RunDetails) -> WikiRunView {
    let RunDetails { summary, files, claims, missing_files } = details;
    let record = summary.record.to_string();
    let known = list_runs_since(root, &summary.wiki, &summary.run).unwrap_or_default();
    let summary = known.into_iter().find(|run| run.run == summary.run).unwrap_or(summary);
    WikiRunView {
        row: describe_committed(summary),
        writer: None,
        files: files.into_iter().map(show_recorded).collect(),
        claims: claims.iter().map(describe_claim).collect(),
        findings: Vec::new(),
        ideas: Vec::new(),
        may_override: false,
        staged: None,
        record: Some(record),
        missing_files,
    }
}

fn view_recorded(run: &RunSummary) -> WikiRunView {
    WikiRunView {
        row: describe_recorded(run),
        writer: None,
        files: Vec::new(),
        claims: Vec::new(),
        findings: Vec::new(),
        ideas: Vec::new(),
        may_override: false,
        staged: None,
        record: None,
        missing_files: Vec::new(),
    }
}

fn view_staged(root: &VaultRoot, run: &StagedRunSummary) -> WikiRunView {
    let opened = StagedRuns::new(root).peek(&run.meta.run).ok();
    let (plan, files) = opened.as_ref().and_then(|staged| staged.read_staged().ok().flatten()).unwrap_or_default();
    let verdict = opened.as_ref().and_then(|staged| staged.read_verdict().ok().flatten());
    let findings = verdict.iter().flat_map(|verdict| &verdict.findings);
    let may_override = opened.as_ref().is_some_and(|staged| staged.is_rejected_by_verifier().unwrap_or(false));
    WikiRunView {
        row: describe_staged(run),
        writer: Some(run.meta.writer.clone()),
        may_override,
        staged: (run.status.waits || may_override).then(|| plan.hash()),
        files: files.iter().map(show_staged).chain(show_relations(&plan)).collect(),
        findings: findings.map(|it| format!("{} {}: {}", it.file, it.fault, it.problem)).collect(),
        claims: verdict.iter().flat_map(|verdict| &verdict.claims).map(describe_claim).collect(),
        ideas: plan.ideas.iter().map(|idea| idea.trim_start_matches("- ").to_owned()).collect(),
        record: None,
        missing_files: Vec::new(),
    }
}

fn describe_claim(claim: &ClaimRecord) -> String {
    let sources: Vec<&str> = claim.anchors.iter().map(|anchor| anchor.source.as_str()).collect();
    format!("{} {} {}", claim.change, claim.claim, sources.join(", ")).trim_end().to_owned()
}

fn show_recorded(file: FileRecord) -> WikiRunFile {
    let (before, after) = (file.before.is_some(), file.after.is_some());
    match &file.content {
        RecordedContent::Page { before: old, after: new } => {
            show_file(file.file.clone(), before.then_some(old), after.then_some(new))
        }
        RecordedContent::Entry(entry) => show_file(file.file.clone(), Some(""), Some(entry)),
        RecordedContent::Accepted(_) | RecordedContent::Hashes => show_file(file.file.clone(), None, None),
    }
}

fn show_staged(file: &RunFile) -> WikiRunFile {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (before, after) = (text(&file.before), text(&file.after));
    show_file(file.path.file().to_owned(), before.as_deref(), after.as_deref())
}

/// The lines that a file loses, and those that it gains.
pub(crate) fn list_run_lines(file: &RunFile) -> (Vec<String>, Vec<String>) {
    let (lost, gained): (Vec<_>, Vec<_>) =
        show_staged(file).lines.into_iter().partition(|line| line.side == DiffSide::Before);
    let texts = |lines: Vec<RunDiffLine>| lines.into_iter().map(|line| line.text).collect();
    (texts(lost), texts(gained))
}

/// What a run adds to the graph, shown as for a run that was committed.
fn show_relations(plan: &StagedPlan) -> Option<WikiRunFile> {
    let lines: String = plan.relations.iter().map(|relation| format!("{relation}\n")).collect();
    (!lines.is_empty()).then(|| show_file(GRAPH_FILE.to_owned(), Some(""), Some(&lines)))
}

/// Without both texts, code writes the file from the others.
fn show_file(file: String, before: Option<&str>, after: Option<&str>) -> WikiRunFile {
    let change = match (before, after) {
        (None, Some(_)) => "new",
        (Some(_), None) => "removed",
        (Some(_), Some(_)) => "changed",
        (None, None) => "rendered",
    };
    let line = |side, text: &str| Some(RunDiffLine { side, text: text.trim_end().to_owned() });
    let diff = list_diff_lines(before.unwrap_or_default(), after.unwrap_or_default());
    let lines = diff.into_iter().filter_map(|diff| match diff {
        DiffLine::Both(_) => None,
        DiffLine::Before(text) => line(DiffSide::Before, text),
        DiffLine::After(text) => line(DiffSide::After, text),
    });
    WikiRunFile { file, change: change.to_owned(), lines: lines.collect() }
}
