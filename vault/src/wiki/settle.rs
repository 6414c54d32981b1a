//! What a person does to a wiki with one command: settle a dispute, confirm a page, and have the files rendered that code writes.
//!
//! Each is a run of its own with an audit record, and goes back like any other. No model takes part.

use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::state::{ReadWiki, find_wiki_folder, read_current, read_wiki};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::plain_text::escape_one_line;
use steward_domain::wiki::INDEX_FILE;
use steward_domain::wiki::assemble::{RunReport, WikiState, assemble_run, link_pages};
use steward_domain::wiki::log::LogType;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::page_text::confirm_page;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::{RunFile, WikiRun, close};
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::settle::settle_dispute;

/// How often it is planned anew because a file changed meanwhile.
const TRIES: usize = 3;

/// Which side of which dispute stays.
#[derive(Clone, Copy, Debug)]
pub struct SettleChoice<'a> {
    /// The slug of the page.
    pub page: &'a str,
    /// A claim of the dispute, by its id or a label.
    pub claim: &'a str,
    /// The claim of it that stays.
    pub keep: &'a str,
}

/// What was done, and where files went that code renders and that people had edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualRun {
    /// `None` if there was nothing to do.
    pub receipt: Option<ActionReceipt>,
    pub displaced: Vec<PagePath>,
}

impl VaultWriter {
    /// Settles a dispute. Repeated calls do it once.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if there is no such claim or dispute.
    pub fn settle_wiki_dispute(
        &self,
        request: &WikiRunRequest<'_>,
        choice: SettleChoice<'_>,
    ) -> Result<ManualRun, WikiRunError> {
        try_again(|| self.settle_once(request, choice))
    }

    fn settle_once(&self, request: &WikiRunRequest<'_>, choice: SettleChoice<'_>) -> Result<ManualRun, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let parts = ["settle", choice.page, choice.claim, choice.keep];
        let mut run = request.describe(ActionKind::Wiki, &folder, WikiRunType::Manual, &parts);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(ManualRun { receipt: Some(receipt), displaced: Vec::new() });
        }
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        let (page, file) = self.read_page_file(&wiki, choice.page)?;
        let settled = settle_dispute(page, choice.claim, choice.keep, request.at);
        let settled = settled.map_err(|e| WikiRunError::refuse(e.to_string()))?;
        run.reasoning =
            format!("{} settled a dispute of {}: the claim {} stays.", request.by, choice.page, choice.keep);
        run.claims = settled.removed;
        let subject = format!("Settled a dispute of {}", escape_one_line(&page.title));
        let bullets = vec![
            format!("run: {}, kept: {}", run.mark.run, escape_one_line(choice.keep)),
            format!("touched: {}", link_pages(std::slice::from_ref(&page.slug))),
            format!("claims: {} superseded", run.claims.len()),
        ];
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        let files = vec![RunFile { after: Some(settled.text.into_bytes()), ..file }];
        self.commit_manual(run, wiki.state, files, &report)
    }

    /// Notes on a page that a person found it still right. Repeated calls do it once.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if there is no such page.
    pub fn confirm_wiki_page(&self, request: &WikiRunRequest<'_>, slug: &str) -> Result<ManualRun, WikiRunError> {
        try_again(|| self.confirm_once(request, slug))
    }

    fn confirm_once(&self, request: &WikiRunRequest<'_>, slug: &str) -> Result<ManualRun, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let mut run = request.describe(ActionKind::Wiki, &folder, WikiRunType::Manual, &["confirm", slug]);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(ManualRun { receipt: Some(receipt), displaced: Vec::new() });
        }
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        let (page, file) = self.read_page_file(&wiki, slug)?;
        let text = confirm_page(page, request.at).map_err(|e| WikiRunError::refuse(e.to_string()))?;
        run.reasoning = format!("{} found {slug} still right.", request.by);
        let subject = format!("Confirmed {}", escape_one_line(&page.title));
        let bullets = vec![
            format!("run: {}", run.mark.run),
            format!("touched: {}", link_pages(std::slice::from_ref(&page.slug))),
        ];
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        let files = vec![RunFile { after: Some(text.into_bytes()), ..file }];
        self.commit_manual(run, wiki.state, files, &report)
    }

    /// A page by its slug, with its file as it stands.
    fn read_page_file<'w>(&self, wiki: &'w ReadWiki, slug: &str) -> Result<(&'w WikiPage, RunFile), WikiRunError> {
        let page = wiki.state.pages.iter().find(|page| page.slug == slug);
        let page = page.ok_or_else(|| WikiRunError::refuse(format!("there is no page `{slug}`")))?;
        Ok((page, self.read_unchanged(&wiki.state.folder, page)?))
    }

    /// The file of a page, if it is as it was read.
    pub(crate) fn read_unchanged(&self, folder: &str, page: &WikiPage) -> Result<RunFile, WikiRunError> {
        let path = PagePath::new(folder, &page.file)?;
        let before = read_current(self.root(), &path).map_err(WikiRunError::Refused)?;
        if before.as_deref() != Some(page.document.as_bytes()) {
            return Err(WikiRunError::Apply(ApplyError::ChangedMeanwhile { path: path.into() }));
        }
        Ok(RunFile { path, before, after: None })
    }

    pub(crate) fn commit_manual(
        &self,
        run: WikiRun,
        state: WikiState,
        files: Vec<RunFile>,
        report: &RunReport,
    ) -> Result<ManualRun, WikiRunError> {
        let assembled = assemble_run(state, files, report)?;
        let receipt = self.commit_run(&close(run, assembled.files)?)?;
        Ok(ManualRun { receipt: Some(receipt), displaced: assembled.displaced })
    }

    /// Renders the index and the overview anew, if the one does not show the pages or the other the disputes as they are.
    ///
    /// # Errors
    /// [`WikiRunError`].
    pub fn render_wiki_files(&self, request: &WikiRunRequest<'_>) -> Result<ManualRun, WikiRunError> {
        try_again(|| self.render_once(request))
    }

    fn render_once(&self, request: &WikiRunRequest<'_>) -> Result<ManualRun, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let mut run = request.describe(ActionKind::Wiki, &folder, WikiRunType::Lint, &["fix"]);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(ManualRun { receipt: Some(receipt), displaced: Vec::new() });
        }
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        if wiki.state.is_rendered(request.at) {
            return Ok(ManualRun { receipt: None, displaced: Vec::new() });
        }
        run.reasoning = format!("{} had {INDEX_FILE} and the overview rendered anew.", request.by);
        let bullets = vec![format!("run: {}", run.mark.run)];
        let subject = "Rendered the index anew".to_owned();
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        let report = RunReport { log_type: LogType::Lint, ..report };
        self.commit_manual(run, wiki.state, Vec::new(), &report)
    }
}

pub(crate) fn try_again<T>(mut work: impl FnMut() -> Result<T, WikiRunError>) -> Result<T, WikiRunError> {
    let mut tries = 1;
    loop {
        match work() {
            Err(WikiRunError::Apply(ApplyError::ChangedMeanwhile { .. })) if tries < TRIES => tries += 1,
            ended => return ended,
        }
    }
}
