//! A run that an assistant writes, call by call, before it is submitted.
//!
//! Its changes are kept as they were made, and its pages are what they give on the wiki as it is. Each change is durable before it is
//! answered. Only who began a run goes on with it, and nothing outside of the folder of the run is written.

mod author;
mod deadline;
mod kept;
mod lines;
mod outcome;
mod stage;

pub(crate) use author::find_asker;
pub use author::is_written_for;
pub(crate) use kept::KeptDraft;
pub use lines::is_under_way;
pub(crate) use lines::{GuardianLine, count_judged_submissions};
pub use outcome::{GuardianError, StagedPage, Submission};

use crate::files::root::VaultRoot;
use crate::wiki::folder::WikiFolder;
use crate::wiki::ingest::read_source;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{ASSISTANT_WRITER, RunMeta, RunState, StagedRun, StagedRunError, StagedRuns};
use crate::wiki::state::{ReadWiki, ReadWikiError};
use chrono::{DateTime, Utc};
use deadline::{NOT_IN_TIME, is_late};
use lines::{count_submissions, is_submitted};
use outcome::describe_page;
use std::collections::BTreeSet;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::plain_text::to_one_line;
use steward_domain::time::format_millis;
use steward_domain::wiki::LOG_FILE;
use steward_domain::wiki::names::name_summary;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::registry::list_replaced;
use steward_domain::wiki::run::{RunId, RunSource, WikiRunType};
use steward_domain::wiki::verifier::MAX_LOOPS;
use steward_domain::wiki::writer::budget::RunLimits;
use steward_domain::wiki::writer::draft::{PageChange, RunDraft};
use steward_domain::wiki::writer::refusal::{DraftFault, DraftRefusal};
use steward_domain::wiki::writer::related::find_related;

/// How often a run may be submitted: as often as a verifier looks at what any writer made.
const MAX_SUBMISSIONS: usize = MAX_LOOPS as usize;
/// The most changes of a run, and their most bytes: far more than 15 pages need.
const MAX_CHANGES: usize = 300;
const MAX_CHANGE_BYTES: usize = 4 * 1024 * 1024;
/// The longest subject of the log, in characters.
const MAX_SUBJECT: usize = 200;

/// What an assistant wants to begin.
#[derive(Clone, Copy, Debug)]
pub struct NewGuardianRun<'a> {
    pub wiki: &'a str,
    /// Relative to the root of the vault.
    pub folder: &'a str,
    pub run_type: WikiRunType,
    /// As the records name the caller.
    pub by: &'a str,
    pub at: DateTime<Utc>,
    pub source: Option<&'a RunSource>,
}

impl NewGuardianRun<'_> {
    /// The run. Two that begin at once have different names.
    #[must_use]
    pub fn describe(&self, nonce: &str) -> RunMeta {
        let at = format_millis(self.at);
        RunMeta {
            run: RunId::derive(self.at, &["assistant", self.wiki, self.by, &at, nonce]),
            wiki: self.wiki.to_owned(),
            folder: self.folder.to_owned(),
            run_type: self.run_type,
            by: self.by.to_owned(),
            began: self.at,
            source: self.source.cloned(),
            answer: None,
            review: None,
            writer: ASSISTANT_WRITER.to_owned(),
            limits: RunLimits::default(),
            unattended: false,
        }
    }
}

/// A run of an assistant on the wiki as it was read. Nobody else writes the run meanwhile.
pub struct GuardianSession {
    root: VaultRoot,
    run: StagedRun,
    wiki: ReadWiki,
    lines: Vec<GuardianLine>,
}

impl GuardianSession {
    /// Begins a run.
    ///
    /// # Errors
    /// [`GuardianError`].
    pub fn begin(root: &VaultRoot, wiki: ReadWiki, meta: &RunMeta) -> Result<Self, GuardianError> {
        wiki.check_accepted(&meta.wiki).map_err(GuardianError::refuse)?;
        let run = StagedRuns::new(root).begin(meta)?;
        Ok(Self { root: root.clone(), run, wiki, lines: Vec::new() })
    }

    /// Goes on with a run that is open, for who began it.
    ///
    /// # Errors
    /// [`GuardianError::Unknown`] for anybody else, [`GuardianError::Closed`] for one that is not open.
    pub fn open(
        root: &VaultRoot,
        wiki: ReadWiki,
        run: &RunId,
        by: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, GuardianError> {
        let unknown = || GuardianError::Unknown(run.to_string());
        let run = match StagedRuns::new(root).open(run) {
            Err(StagedRunError::Unknown(_)) => return Err(unknown()),
            opened => opened?,
        };
        if !run.meta.is_by_assistant() || run.meta.by != by {
            return Err(unknown());
        }
        let session = Self { root: root.clone(), lines: run.read_changes()?, run, wiki };
        session.check_open(now)?;
        Ok(session)
    }

    /// Opens a run that was submitted, to stage it anew.
    ///
    /// # Errors
    /// [`StagedRunError`].
    pub fn resume(root: &VaultRoot, wiki: ReadWiki, run: StagedRun) -> Result<Self, StagedRunError> {
        Ok(Self { root: root.clone(), lines: run.read_changes()?, run, wiki })
    }

    #[must_use]
    pub fn run(&self) -> &StagedRun {
        &self.run
    }

    /// Gives the run and the wiki back.
    #[must_use]
    pub fn into_run(self) -> (StagedRun, ReadWiki) {
        (self.run, self.wiki)
    }

    /// The subject and the kept pages of the last submission.
    fn last_submission(&self) -> Option<(&str, &[PageChange])> {
        self.lines.iter().rev().find_map(|line| match line {
            GuardianLine::Submitted { subject, keeps, .. } => Some((subject.as_str(), keeps.as_slice())),
            GuardianLine::Change { .. } | GuardianLine::Reopened { .. } => None,
        })
    }

    /// Whether the run was submitted and is not open again.
    #[must_use]
    pub fn is_submitted(&self) -> bool {
        is_submitted(&self.lines)
    }

    /// How often it was submitted, also in vain. Each submission has a workflow of its own.
    #[must_use]
    pub fn count_submissions(&self) -> usize {
        count_submissions(&self.lines)
    }

    /// Whether it may be submitted once more.
    #[must_use]
    pub fn has_submissions_left(&self) -> bool {
        count_judged_submissions(&self.lines) < MAX_SUBMISSIONS
    }

    fn check_open(&self, now: DateTime<Utc>) -> Result<(), GuardianError> {
        let status = self.run.read_status()?;
        let closed = |reason: String| GuardianError::Closed { run: self.run.meta.run.clone(), reason };
        if let Some(status) = status.filter(|status| status.state != RunState::Pending || status.waits) {
            return Err(closed(format!("it is {}: {}", status.state, status.reason)));
        }
        if self.is_submitted() {
            return Err(closed("it was submitted".to_owned()));
        }
        if is_late(&self.root, self.run.meta.began, &self.lines, now) {
            self.end_open(now, NOT_IN_TIME)?;
            return Err(closed(format!("{NOT_IN_TIME}, so it is abandoned")));
        }
        Ok(())
    }

    /// Gives up a run that is open.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn end_open(&self, now: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.run.set_status(RunState::Abandoned, now, reason)
    }

    /// Removes the run with all that it staged, as if it had never begun.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn discard(self) -> Result<(), StagedRunError> {
        StagedRuns::new(&self.root).remove(&self.run.meta.run)
    }

    /// Makes a change, and keeps it. `base` is the hash that the page must have before, in hex digits.
    ///
    /// # Errors
    /// [`GuardianError`]; the run is as it was.
    pub fn change(&mut self, change: &PageChange, base: Option<&str>) -> Result<StagedPage, GuardianError> {
        self.check_room(change)?;
        self.check_link(change.file())?;
        let (staged, draft) = self.replay(Some(change), |draft| {
            if let Some(base) = base {
                check_base(draft, change.file(), base)?;
            }
            let file = draft.apply_change(change, true)?;
            // A new page may go to the folder of its kind.
            self.check_link(&file)?;
            Ok::<_, GuardianError>(describe_page(draft, &self.wiki.state.pages, &file))
        })?;
        let staged = match staged {
            Ok(staged) => staged,
            Err(error) => {
                // A change that the draft refuses leaves it as it was. Where the page would lie is looked at after that.
                if matches!(error, GuardianError::Draft(_) | GuardianError::StaleBase { .. }) {
                    self.keep_draft(draft);
                }
                return Err(error);
            }
        };
        let line = GuardianLine::Change { change: change.clone() };
        self.run.append_change(&line)?;
        self.lines.push(line);
        self.keep_draft(draft);
        Ok(staged)
    }

    fn check_room(&self, change: &PageChange) -> Result<(), GuardianError> {
        let size = |change: &PageChange| serde_json::to_vec(change).map_or(0, |text| text.len());
        let (count, bytes) = self.list_changes().fold((1, size(change)), |(n, sum), it| (n + 1, sum + size(it)));
        if count > MAX_CHANGES || bytes > MAX_CHANGE_BYTES {
            let text = format!(
                "error: the run would have {count} changes of {bytes} bytes; it has at most {MAX_CHANGES} of {MAX_CHANGE_BYTES}: submit it, and begin another one"
            );
            return Err(DraftRefusal::new(DraftFault::QuotaReached, text).into());
        }
        Ok(())
    }

    /// Checks that a file is no symbolic link and leads through none: what lies behind one is no part of the wiki.
    fn check_link(&self, file: &str) -> Result<(), GuardianError> {
        let folder = &self.run.meta.folder;
        let opened = WikiFolder::open(&self.root.path().join(folder));
        let opened = opened.map_err(|source| WikiRunError::from(ReadWikiError::Io { path: folder.clone(), source }))?;
        match opened.leads_through_link(file) {
            true => Err(GuardianError::Link { file: file.to_owned() }),
            false => Ok(()),
        }
    }

    /// The files of pages that the source of the run should touch, the best first.
    ///
    /// # Errors
    /// [`WikiRunError`] if the source cannot be read.
    pub fn list_related(&self) -> Result<Vec<String>, WikiRunError> {
        let Some(source) = &self.run.meta.source else { return Ok(Vec::new()) };
        let text = read_source(&self.root, &self.wiki, source)?;
        let pages = &self.wiki.state.pages;
        let replaced = list_replaced(&self.wiki.contents.sources, &source.id);
        let related = find_related(pages, text.as_str(), &replaced);
        Ok(related.offered.into_iter().filter_map(|at| pages.get(at)).map(|page| page.file.clone()).collect())
    }

    /// What is staged of a page; `None` for one that the run does not change.
    ///
    /// # Errors
    /// [`GuardianError`].
    pub fn read_page(&self, file: &str) -> Result<Option<StagedPage>, GuardianError> {
        self.inspect(|draft| {
            let changed = draft.list_files().iter().any(|staged| staged.path.file() == file);
            changed.then(|| describe_page(draft, &self.wiki.state.pages, file))
        })
    }

    /// All that the run changes.
    ///
    /// # Errors
    /// [`GuardianError`].
    pub fn list_pages(&self) -> Result<Vec<StagedPage>, GuardianError> {
        self.inspect(|draft| {
            let files = draft.list_files();
            files.iter().map(|file| describe_page(draft, &self.wiki.state.pages, file.path.file())).collect()
        })
    }

    /// Submits the run: it is staged as a whole and judged by the rules. From then on it is closed.
    ///
    /// # Errors
    /// [`GuardianError`]; the run stays open.
    pub fn submit(&mut self, submission: &Submission<'_>, now: DateTime<Utc>) -> Result<(), GuardianError> {
        if !self.has_submissions_left() {
            let reason = format!("it was submitted {MAX_SUBMISSIONS} times");
            return Err(GuardianError::Closed { run: self.run.meta.run.clone(), reason });
        }
        self.check_link(LOG_FILE)?;
        self.check_touched(submission)?;
        if let Some(keep) = submission.keeps.iter().find(|keep| !self.has_page(keep)) {
            let text = format!("error: there is no page {}", keep.file());
            return Err(DraftRefusal::new(DraftFault::NotFound, text).into());
        }
        let subject: String = to_one_line(submission.subject).chars().take(MAX_SUBJECT).collect();
        let line = GuardianLine::Submitted { at: now, subject, keeps: submission.keeps.to_vec() };
        self.lines.push(line.clone());
        let staged = self.stage();
        if let Err(error) = staged {
            self.lines.pop();
            return Err(error);
        }
        self.run.append_change(&line)?;
        self.run.set_status(RunState::Pending, now, "it was submitted")?;
        Ok(())
    }

    /// Opens a run again after something was found.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn reopen(&mut self, now: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.open_again(GuardianLine::Reopened { at: now, unsent: false }, now, reason)
    }

    /// Takes back a submission that reached nobody. The run is open as before: the submission does not count, and the deadline stays.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn withdraw_submission(&mut self, now: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.open_again(GuardianLine::Reopened { at: now, unsent: true }, now, reason)
    }

    fn open_again(&mut self, line: GuardianLine, now: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.run.append_change(&line)?;
        self.lines.push(line);
        self.run.set_status(RunState::Pending, now, reason)
    }

    fn check_touched(&self, submission: &Submission<'_>) -> Result<(), GuardianError> {
        let (staged, has_summary) = self.inspect(|draft| {
            let files: BTreeSet<String> = draft.list_files().iter().map(|file| file.path.file().to_owned()).collect();
            (files, draft.has_summary())
        })?;
        let incomplete = |what: String| Err(GuardianError::Incomplete(what));
        if staged.is_empty() {
            return incomplete("nothing is staged".to_owned());
        }
        let named: BTreeSet<String> = submission.touched.iter().cloned().collect();
        let missing: Vec<&str> = staged.difference(&named).map(String::as_str).collect();
        let extra: Vec<&str> = named.difference(&staged).map(String::as_str).collect();
        if !missing.is_empty() || !extra.is_empty() {
            let list = |files: &[&str]| if files.is_empty() { "none".to_owned() } else { files.join(", ") };
            return incomplete(format!(
                "`touched` names other pages than are staged; staged and not named: {}; named and not staged: {}",
                list(&missing),
                list(&extra)
            ));
        }
        match &self.run.meta.source {
            Some(source) if self.run.meta.run_type == WikiRunType::Ingest && !has_summary => {
                incomplete(format!("there is no summary of the source: make summaries/{}.md", name_summary(&source.id)))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks that a page is as the assistant saw it.
fn check_base(draft: &RunDraft<'_>, file: &str, base: &str) -> Result<(), GuardianError> {
    let page = draft.pages().iter().find(|page| page.file == file);
    let hash = page.map(|page| ContentHash::hash_bytes(page.document.as_bytes()));
    match hash.is_some_and(|hash| hash.as_str() == base) {
        true => Ok(()),
        false => Err(GuardianError::StaleBase { file: file.to_owned() }),
    }
}

/// Whether a run removes a page, so that a person must commit it.
#[must_use]
pub fn removes_pages(files: &[RunFile]) -> bool {
    files.iter().any(|file| file.after.is_none())
}
