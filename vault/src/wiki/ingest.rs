//! Stages, judges and commits a run that makes pages of a source.
//!
//! The rules judge the very bytes that are committed, on every pass. If a page changed since it was staged, nothing is
//! committed, and the caller stages the run again.

mod report;

pub use report::describe_findings;

use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::VaultRoot;
use crate::wiki::check::{find_verifier, has_new_pairs};
use crate::wiki::folder::WikiFolder;
use crate::wiki::guardian::removes_pages;
use crate::wiki::metrics::keep_coverage;
use crate::wiki::quotes::{QuoteFault, read_text};
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{RunMeta, StagedPlan, StagedRun, StagedRunError};
use crate::wiki::state::{ReadWiki, ReadWikiError, find_wiki_folder, read_current, read_wiki};
use crate::wiki::verdicts::log_rules_verdict;
use chrono::{DateTime, Utc};
use report::{describe_report, describe_verdict, describe_work, find_coverage, find_refusal};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::audit::{ActionKind, WorkflowRef};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::plain_text::{escape_one_line, to_one_line};
use steward_domain::wiki::assemble::{assemble_run, render_idea};
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::compile::WordCounts;
use steward_domain::wiki::compile::rules::{CompileInput, CompiledSource, compile_source};
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::path::{PagePath, WikiFileKind};
use steward_domain::wiki::plan::{RunFile, WikiRun, close};
use steward_domain::wiki::quote::QuoteFinder;
use steward_domain::wiki::registry::{WikiSource, list_replaced};
use steward_domain::wiki::run::{RunSource, WikiMark};
use steward_domain::wiki::source_text::SourceText;
use steward_domain::wiki::verify::{RulesVerdict, Verdict, VerifyInput, verify_run};

/// A run that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedRun {
    pub receipt: ActionReceipt,
    /// The files of its pages, relative to the wiki.
    pub pages: Vec<String>,
    /// Where files went that code renders and that people had edited.
    pub displaced: Vec<PagePath>,
}

/// A person's leave to commit what they saw.
#[derive(Clone, Copy, Debug)]
pub struct RunApproval<'a> {
    /// The hash of what is staged.
    pub staged: &'a ContentHash,
    pub by: &'a str,
    /// Why they commit it although a verifier refused it.
    pub override_reason: Option<&'a str>,
    /// They answered in a terminal. Otherwise they were logged in.
    pub in_terminal: bool,
}

/// Writes the pages of a source by fixed rules into a staged run. Written again, it is the same for the same wiki. `only` are the
/// files to which the run is limited, if it is.
///
/// # Errors
/// [`WikiRunError`].
pub fn stage_by_rules(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: &StagedRun,
    only: Option<&BTreeSet<String>>,
) -> Result<(), WikiRunError> {
    let meta = &run.meta;
    let source = meta.source.as_ref().ok_or_else(|| WikiRunError::refuse("the run names no source"))?;
    let text = read_source(root, wiki, source)?;
    let title = wiki.contents.sources.get(&source.id).map_or(source.id.as_str(), |known| known.title.as_str());
    let counts = WordCounts::count(&wiki.state.pages, text.as_str());
    let links = wiki.state.manifest.find_text(&["curation", "autoLink"]) == Some("byName");
    let compile = |taken: &BTreeSet<String>| {
        compile_source(&CompileInput {
            source_id: &source.id,
            source_title: title,
            text: &text,
            pages: &wiki.state.pages,
            taken,
            counts: &counts,
            links,
            at: meta.began,
        })
    };
    let mut left = BTreeMap::new();
    let (ideas, mut notes, files) = loop {
        let CompiledSource { pages, ideas, notes } = compile(&left.keys().cloned().collect());
        let known = left.len();
        let place = |file: &str| match only {
            Some(only) if !only.contains(file) => Err("is no page of the run as it was seen"),
            _ => place_page(root, wiki, meta, file),
        };
        let placed = pages.into_iter().filter_map(|page| match place(&page.file) {
            Ok(file) => Some(RunFile { after: Some(page.text.into_bytes()), ..file }),
            Err(why) => {
                left.insert(page.file, why);
                None
            }
        });
        let files: Vec<RunFile> = placed.collect();
        if left.len() == known {
            break (ideas, notes, files);
        }
    };
    notes.extend(left.iter().map(|(file, why)| format!("{file} {why}, so it was left alone")));
    for old in list_replaced(&wiki.contents.sources, &source.id) {
        let count = wiki.state.pages.iter().filter(|page| page.sources.iter().any(|id| id == old)).count();
        notes.push(format!(
            "{} on `{old}`, which this source replaces, and fixed rules compare nothing: `steward wiki why {} {old}`",
            if count == 1 { "1 page rests".to_owned() } else { format!("{count} pages rest") },
            meta.wiki
        ));
    }
    let ideas = ideas.iter().map(|idea| render_idea(idea, &source.id, meta.began)).collect();
    Ok(run.stage(&files, StagedPlan { ideas, notes, ..StagedPlan::default() })?)
}

/// The file of a page as it is before the run.
///
/// # Errors
/// Why the page is left alone.
fn place_page(root: &VaultRoot, wiki: &ReadWiki, meta: &RunMeta, file: &str) -> Result<RunFile, &'static str> {
    let path = PagePath::new(&meta.folder, file).map_err(|_| "is no file that a run writes")?;
    let before = read_current(root, &path).map_err(|_| "cannot be read")?;
    // What is there and is no page that could be read belongs to a person.
    if before.is_some() && wiki.state.pages.iter().all(|known| known.file != file) {
        return Err("is there already and cannot be read as a page");
    }
    Ok(RunFile { path, before, after: None })
}

/// Reads the text of a source, whose bytes must be those that were registered.
pub(crate) fn read_source(root: &VaultRoot, wiki: &ReadWiki, source: &RunSource) -> Result<SourceText, WikiRunError> {
    let folder = &wiki.state.folder;
    let refuse = |fault: QuoteFault| WikiRunError::refuse(format!("{}: {folder}/{}", fault.code, fault.problem));
    let Some(known) = wiki.contents.sources.get(&source.id).filter(|known| known.content_hash == source.content_hash)
    else {
        return Err(WikiRunError::refuse(format!(
            "source_missing: {folder}/{} is not registered as `{}`",
            source.path, source.id
        )));
    };
    let opened = WikiFolder::open(&root.path().join(folder));
    let opened = opened.map_err(|source| ReadWikiError::Io { path: folder.clone(), source })?;
    read_text(&opened, known).map_err(refuse)
}

/// Reads the texts that a run may quote: that of its source. A run without one may quote every source that it cites.
pub(crate) fn read_texts(
    root: &VaultRoot,
    wiki: &ReadWiki,
    meta: &RunMeta,
    files: &[RunFile],
) -> Result<BTreeMap<String, SourceText>, WikiRunError> {
    if let Some(source) = &meta.source {
        return Ok(BTreeMap::from([(source.id.clone(), read_source(root, wiki, source)?)]));
    }
    let pages = files.iter().filter_map(|file| read_page(file.path.file(), file.after.as_ref()?).page);
    let cited: BTreeSet<String> = pages
        .flat_map(|page| read_claims(page.document.body(), &page.body.disputed).anchors)
        .map(|(_, anchor)| anchor.source)
        .collect();
    let known = cited.into_iter().filter_map(|id| wiki.contents.sources.get(&id));
    let read = |source: &WikiSource| {
        let (id, path, content_hash) = (source.id.clone(), source.path.clone(), source.content_hash.clone());
        let text = read_source(root, wiki, &RunSource { id, path, content_hash })?;
        Ok((source.id.clone(), text))
    };
    known.map(read).collect()
}

/// Judges the files of a run on the wiki as it is.
///
/// # Errors
/// [`WikiRunError`].
pub fn judge_run(
    root: &VaultRoot,
    wiki: &ReadWiki,
    meta: &RunMeta,
    files: &[RunFile],
) -> Result<RulesVerdict, WikiRunError> {
    let texts = read_texts(root, wiki, meta, files)?;
    let finders: BTreeMap<String, QuoteFinder<'_>> =
        texts.iter().map(|(id, text)| (id.clone(), text.finder())).collect();
    let removed = files.iter().filter(|file| file.after.is_none() && meta.is_by_assistant());
    let removed: Vec<String> = removed.map(|file| file.path.file().to_owned()).collect();
    Ok(verify_run(&VerifyInput {
        manifest: &wiki.state.manifest,
        pages: &wiki.state.pages,
        files,
        texts: &finders,
        run_type: meta.run_type,
        source: meta.source.as_ref().map(|source| source.id.as_str()),
        removed: &removed,
    }))
}

impl VaultWriter {
    /// Commits a staged run at a moment, which is on its record. Repeated calls commit it once.
    ///
    /// # Errors
    /// [`WikiRunError::Stale`] if a page is not as it was staged: stage the run again. It is refused if the rules find a fault,
    /// or if something else is staged than a person saw.
    pub fn commit_staged(
        &self,
        run: &StagedRun,
        approval: Option<&RunApproval<'_>>,
        at: DateTime<Utc>,
        workflow: &WorkflowRef,
    ) -> Result<CommittedRun, WikiRunError> {
        let mut tries = 1;
        loop {
            match self.commit_staged_once(run, approval, at, workflow.clone()) {
                // Only the index or the log is another one by now: they are rendered again.
                Err(WikiRunError::Apply(ApplyError::ChangedMeanwhile { .. })) if tries < TRIES => tries += 1,
                Err(WikiRunError::Apply(ApplyError::ChangedMeanwhile { .. })) => return Err(WikiRunError::Stale),
                ended => return ended,
            }
        }
    }

    fn commit_staged_once(
        &self,
        run: &StagedRun,
        approval: Option<&RunApproval<'_>>,
        at: DateTime<Utc>,
        workflow: WorkflowRef,
    ) -> Result<CommittedRun, WikiRunError> {
        let meta = &run.meta;
        let mut described = describe_run(meta, workflow);
        let Some((plan, files)) = run.read_staged()? else {
            return Err(WikiRunError::refuse("nothing is staged"));
        };
        let pages: Vec<String> = files.iter().map(|file| file.path.file().to_owned()).collect();
        let coverage = find_coverage(&plan, &files);
        if let Some(receipt) = self.find_run(&described)? {
            keep_coverage(self.root(), meta, coverage)?;
            return Ok(CommittedRun { receipt, pages, displaced: Vec::new() });
        }
        if approval.is_some_and(|approval| *approval.staged != plan.hash()) {
            return Err(WikiRunError::refuse("something else is staged than was shown: look at it again"));
        }
        if approval.is_none() && removes_pages(&files) {
            return Err(WikiRunError::refuse("it removes a page, so a person must commit it"));
        }
        let wiki = read_wiki(self.root(), &meta.wiki, &find_wiki_folder(self.root(), &meta.wiki)?)?;
        check_staging(meta, &wiki, &files)?;
        for (file, staged) in files.iter().zip(&plan.files) {
            // A folder or a link in its place is a change, too.
            let current = read_current(self.root(), &file.path).map_err(|_| WikiRunError::Stale)?;
            if current.as_deref().map(ContentHash::hash_bytes) != staged.before {
                return Err(WikiRunError::Stale);
            }
        }
        let verdict = judge_run(self.root(), &wiki, meta, &files)?;
        log_rules_verdict(self.root(), meta, &verdict);
        if verdict.verdict != Verdict::Commit {
            return Err(WikiRunError::Verdict(Box::new(verdict)));
        }
        if approval.is_none() && !meta.is_by_rules() && has_new_pairs(&wiki, run, &files)? {
            return Err(WikiRunError::Stale);
        }
        let verifier = if meta.is_by_rules() { None } else { find_verifier(self.root(), &wiki, run, &files)? };
        let mut report = describe_report(meta, &plan, &files, &verdict, &wiki);
        // A run may wait long before it is committed.
        (described.at, report.at) = (at, at);
        report.bullets.extend(coverage.as_ref().map(|it| {
            format!("related pages: {} offered, {} touched, {} need no change", it.offered, it.touched, it.unchanged)
        }));
        let refused = match approval.and_then(|approval| approval.override_reason) {
            Some(_) => find_refusal(run)?,
            None => None,
        };
        let checked = verifier.as_deref().or(refused.as_deref()).unwrap_or("rules");
        report
            .bullets
            .insert(0, format!("{}, verifier: {}", describe_verdict(meta, &verdict), escape_one_line(checked)));
        described.reasoning =
            format!("{} {}", meta.by, describe_work(meta, &files, verifier.as_deref(), refused.as_deref()));
        if meta.unattended {
            described.reasoning.push_str(" Nobody asked for it.");
        }
        if let Some(approval) = approval {
            let place = if approval.in_terminal { "in a terminal" } else { "on the dashboard" };
            let note = match approval.override_reason {
                Some(reason) => format!("{} committed it {place} against the verifier: {reason}", approval.by),
                None => format!("{} approved it {place}.", approval.by),
            };
            described.reasoning = format!("{} {}", described.reasoning, to_one_line(&note));
            if approval.override_reason.is_some() {
                report.bullets.insert(1, format!("verdict: commit_override; {}", escape_one_line(&note)));
            }
        }
        described.mark.verifier = verifier;
        described.clerk = run.read_transcript()?.describe_clerk();
        described.claims = verdict.claims;
        let assembled = assemble_run(wiki.state, files, &report)?;
        let receipt = self.commit_run(&close(described, assembled.files)?)?;
        keep_coverage(self.root(), meta, coverage)?;
        Ok(CommittedRun { receipt, pages, displaced: assembled.displaced })
    }
}

/// How often a run is committed anew because the index or the log changed meanwhile.
const TRIES: usize = 3;

/// A staged run is a file that somebody could have written: it changes pages of an accepted wiki of this name, and no other.
fn check_staging(meta: &RunMeta, wiki: &ReadWiki, files: &[RunFile]) -> Result<(), WikiRunError> {
    if wiki.state.folder != meta.folder {
        return Err(WikiRunError::refuse(format!("{} is not the folder of the wiki {}", meta.folder, meta.wiki)));
    }
    wiki.check_accepted(&meta.wiki).map_err(WikiRunError::Refused)?;
    match files.iter().find(|file| file.path.kind() != WikiFileKind::Page) {
        Some(file) => Err(WikiRunError::refuse(format!("{} is not a page", file.path))),
        None => Ok(()),
    }
}

pub(super) fn describe_run(meta: &RunMeta, workflow: WorkflowRef) -> WikiRun {
    WikiRun {
        kind: ActionKind::Wiki,
        mark: WikiMark {
            wiki: meta.wiki.clone(),
            folder: meta.folder.clone(),
            run: meta.run.clone(),
            run_type: meta.run_type,
            reverts: None,
            source: meta.source.clone(),
            verifier: None,
            rejection: None,
        },
        at: meta.began,
        reasoning: String::new(),
        workflow,
        clerk: None,
        claims: Vec::new(),
        accepted: Vec::new(),
    }
}

impl From<StagedRunError> for WikiRunError {
    fn from(error: StagedRunError) -> Self {
        match error {
            StagedRunError::Io { .. } | StagedRunError::Busy(_) => Self::Staged(error),
            StagedRunError::Unknown(_) | StagedRunError::Edited { .. } | StagedRunError::Path(_) => {
                Self::Refused(error.to_string())
            }
        }
    }
}
