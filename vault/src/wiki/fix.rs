//! Corrects pages as fixed rules can, because a person asked for it, and renders the files anew that code writes.
//!
//! It is one run of at most 15 pages with an audit record, and goes back like any other. The rules judge the very bytes that are
//! committed. A page that they refuse is left alone.

use crate::action::writer::VaultWriter;
use crate::wiki::ingest::describe_findings;
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::settle::{ManualRun, try_again};
use crate::wiki::state::{ReadWiki, find_wiki_folder, read_wiki};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::assemble::{RunReport, link_pages};
use steward_domain::wiki::fix::{FixPlanner, PageChanges};
use steward_domain::wiki::log::LogType;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::verify::{MAX_TOUCHED_PAGES, RulesVerdict, Verdict, VerifyInput, verify_fixes};

/// What a fix did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedWiki {
    pub run: ManualRun,
    /// What was corrected on each page, what was left alone and why, and what is left for another run: one line each. Empty if
    /// the run had been committed before.
    pub notes: Vec<String>,
}

/// The pages of a run.
#[derive(Default)]
struct ChosenPages {
    files: Vec<RunFile>,
    pages: Vec<ChosenPage>,
    /// Why pages are left alone, one line each.
    refused: Vec<String>,
    /// How many other pages can be corrected.
    left: usize,
}

/// A page of the run.
struct ChosenPage {
    file: String,
    slug: String,
    changes: PageChanges,
}

impl VaultWriter {
    /// Corrects pages, and renders the index and the overview anew. Repeated calls do it once.
    ///
    /// # Errors
    /// [`WikiRunError`].
    pub fn fix_wiki(&self, request: &WikiRunRequest<'_>) -> Result<FixedWiki, WikiRunError> {
        try_again(|| self.fix_once(request))
    }

    fn fix_once(&self, request: &WikiRunRequest<'_>) -> Result<FixedWiki, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let mut run = request.describe(ActionKind::Wiki, &folder, WikiRunType::Lint, &["fix", "pages"]);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(FixedWiki {
                run: ManualRun { receipt: Some(receipt), displaced: Vec::new() },
                notes: Vec::new(),
            });
        }
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        wiki.check_accepted(request.wiki).map_err(WikiRunError::Refused)?;
        let chosen = self.choose_pages(&wiki)?;
        let notes = chosen.list_notes();
        if chosen.files.is_empty() && wiki.state.is_rendered(request.at) {
            return Ok(FixedWiki { run: ManualRun { receipt: None, displaced: Vec::new() }, notes });
        }
        let count = count_noun(chosen.pages.len() as u64, "page");
        run.reasoning = format!("{} had {count} corrected by fixed rules, and the index rendered anew.", request.by);
        let subject = match chosen.pages.len() {
            0 => "Rendered the index anew".to_owned(),
            _ => format!("Corrected {count}"),
        };
        let bullets = chosen.list_bullets(run.mark.run.as_str());
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        let report = RunReport { log_type: LogType::Lint, ..report };
        Ok(FixedWiki { run: self.commit_manual(run, wiki.state, chosen.files, &report)?, notes })
    }

    /// Corrects the first pages on which something can be, as far as the rules find no fault.
    fn choose_pages(&self, wiki: &ReadWiki) -> Result<ChosenPages, WikiRunError> {
        let planner = FixPlanner::new(&wiki.state.pages, &wiki.contents.sources);
        let wanted = planner.list_pages();
        let mut next = wanted.iter();
        let mut chosen = ChosenPages::default();
        loop {
            while chosen.files.len() < MAX_TOUCHED_PAGES
                && let Some(at) = next.next()
            {
                self.add_page(&mut chosen, &planner, wiki, *at)?;
            }
            if chosen.files.is_empty() {
                return Ok(chosen);
            }
            let verdict = judge_fixes(wiki, &chosen.files);
            if verdict.verdict == Verdict::Commit {
                chosen.left = next.len();
                return Ok(chosen);
            }
            chosen.drop_faulty(verdict)?;
        }
    }

    fn add_page(
        &self,
        chosen: &mut ChosenPages,
        planner: &FixPlanner<'_>,
        wiki: &ReadWiki,
        at: usize,
    ) -> Result<(), WikiRunError> {
        let page = &wiki.state.pages[at];
        let fixed = match planner.fix_page(at) {
            Ok(fixed) if fixed.changes.is_empty() => return Ok(()),
            Ok(fixed) => fixed,
            Err(e) => {
                chosen.refused.push(format!("{} is left alone: its frontmatter cannot be edited: {e}", page.file));
                return Ok(());
            }
        };
        match self.read_unchanged(&wiki.state.folder, page) {
            Ok(file) => {
                chosen.files.push(RunFile { after: Some(fixed.text.into_bytes()), ..file });
                let (file, slug) = (page.file.clone(), page.slug.clone());
                chosen.pages.push(ChosenPage { file, slug, changes: fixed.changes });
            }
            Err(WikiRunError::Path(e)) => chosen.refused.push(format!("{} is left alone: {e}", page.file)),
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

fn judge_fixes(wiki: &ReadWiki, files: &[RunFile]) -> RulesVerdict {
    // A correction quotes nothing, so it needs no source.
    let texts = BTreeMap::new();
    verify_fixes(&VerifyInput {
        manifest: &wiki.state.manifest,
        pages: &wiki.state.pages,
        files,
        texts: &texts,
        run_type: WikiRunType::Lint,
        source: None,
        removed: &[],
    })
}

impl ChosenPages {
    /// Leaves out the pages in which the rules found a fault.
    ///
    /// # Errors
    /// The fault is in no page of the run.
    fn drop_faulty(&mut self, verdict: RulesVerdict) -> Result<(), WikiRunError> {
        let is_named = |page: &ChosenPage| verdict.findings.iter().any(|finding| finding.file == page.file);
        let faulty: BTreeSet<String> =
            self.pages.iter().filter(|page| is_named(page)).map(|it| it.file.clone()).collect();
        if faulty.is_empty() {
            return Err(WikiRunError::Verdict(Box::new(verdict)));
        }
        let mut named = verdict;
        named.findings.retain(|finding| faulty.contains(&finding.file));
        self.refused.push(format!("left alone: {}", describe_findings(&named)));
        self.pages.retain(|page| !faulty.contains(&page.file));
        self.files.retain(|file| !faulty.contains(file.path.file()));
        Ok(())
    }

    fn list_notes(&self) -> Vec<String> {
        let changed = self.pages.iter().map(|page| format!("{}: {}", page.file, page.changes));
        let left = (self.left > 0).then(|| {
            let pages = count_noun(self.left as u64, "page");
            format!("a run changes at most {MAX_TOUCHED_PAGES} pages, and {pages} can be corrected yet: run it again")
        });
        changed.chain(self.refused.iter().cloned()).chain(left).collect()
    }

    fn list_bullets(&self, run: &str) -> Vec<String> {
        let mut bullets = vec![format!("run: {run}, writer: rules, verdict: {}", Verdict::Commit)];
        if !self.pages.is_empty() {
            let slugs: Vec<String> = self.pages.iter().map(|page| page.slug.clone()).collect();
            bullets.push(format!("touched: {}", link_pages(&slugs)));
            let sum = |count: fn(&PageChanges) -> usize| self.pages.iter().map(|it| count(&it.changes)).sum::<usize>();
            bullets.push(format!(
                "links corrected: {}; see also: {}; fields in the form of today: {}",
                sum(|it| it.links.len()),
                sum(|it| it.see_also.len()),
                sum(|it| it.fields.len())
            ));
        }
        bullets
    }
}
