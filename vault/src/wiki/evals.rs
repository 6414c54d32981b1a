//! Measures the verifier on the claims of a wiki: which faults it finds in copies of them, and what it refuses that stands.
//!
//! The verdicts are kept call by call, so that a crash pays for none twice. The reports are kept for ever. Nothing of the wiki is
//! changed.

use crate::files::root::VaultRoot;
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::quotes::read_text;
use crate::wiki::state::{ReadWikiError, find_wiki_folder};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::plan::ContentHash;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::planted::{PlantedCase, PlantedReport, plant_faults, score_cases};
use steward_domain::wiki::verifier::{
    ClaimCheck, ClaimVerdict, VerifierLine, VerifierProgress, VerifierStep, count_calls, find_next_step, list_checks,
};
use steward_domain::wiki::writer::budget::RunLimits;

/// The reports of a wiki.
const EVALS: &str = "evals.jsonl";
/// The most pages from which claims are taken.
const MAX_PAGES: usize = 200;

/// A measurement with what the verifier said so far.
pub struct EvalSession {
    root: VaultRoot,
    wiki: String,
    id: String,
    cases: Vec<PlantedCase>,
    lines: Vec<VerifierLine>,
}

impl EvalSession {
    /// Opens a measurement with this id, of at most so many claims. Opened again, it goes on.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn open(root: &VaultRoot, wiki: &str, id: &str, claims: usize) -> Result<Self, ReadWikiError> {
        let path = find_wiki_folder(root, wiki)?;
        let failed = |source| ReadWikiError::Io { path: path.clone(), source };
        let folder = WikiFolder::open(&root.path().join(&path)).map_err(failed)?;
        let checks = read_claim_checks(&folder, &path, id);
        let (cases, lines) = (plant_faults(&checks, claims, id), read_log(root, wiki, &name_progress(id))?);
        Ok(Self { root: root.clone(), wiki: wiki.to_owned(), id: id.to_owned(), cases, lines })
    }

    /// How many questions there are.
    #[must_use]
    pub fn count_cases(&self) -> usize {
        self.cases.len()
    }

    #[must_use]
    pub fn progress(&self) -> VerifierProgress {
        VerifierProgress::from_lines(&self.lines)
    }

    /// What comes next. It is over when all cases are answered, whatever the verdicts are, or when the calls are used up.
    #[must_use]
    pub fn find_next_step(&self) -> VerifierStep {
        let checks: Vec<ClaimCheck> = self.cases.iter().map(|case| case.check.clone()).collect();
        // Two calls for each call that is needed.
        find_next_step(&checks, &self.lines, count_calls(checks.len().div_ceil(60), &RunLimits::default()))
    }

    /// Keeps a line.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn append(&mut self, line: VerifierLine) -> Result<(), ReadWikiError> {
        let kept = line.clone();
        change_log(&self.root, &self.wiki, &name_progress(&self.id), |lines: &mut Vec<VerifierLine>| lines.push(kept))?;
        self.lines.push(line);
        Ok(())
    }

    /// Keeps the report. One that is kept already stays.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn keep_report(&self, by: &str, at: DateTime<Utc>) -> Result<(), ReadWikiError> {
        let (mut verdicts, mut model, mut tokens) = (Vec::<ClaimVerdict>::new(), String::new(), TokenUsage::default());
        for line in &self.lines {
            if let VerifierLine::Verdicts { verdicts: given, clerk } = line {
                verdicts.extend(given.iter().cloned());
                model = format!("{}/{}", clerk.provider, clerk.model);
                tokens.prompt_tokens += clerk.tokens.prompt_tokens;
                tokens.completion_tokens += clerk.tokens.completion_tokens;
            }
        }
        let (faults, clean, refused) = score_cases(&self.cases, &verdicts);
        let (id, wiki, by) = (self.id.clone(), self.wiki.clone(), by.to_owned());
        let report = PlantedReport { id, wiki, at, by, model, faults, clean, refused, tokens };
        change_log(&self.root, &self.wiki, EVALS, |reports: &mut Vec<PlantedReport>| {
            if reports.iter().all(|known| known.id != report.id) {
                reports.push(report);
            }
        })
    }
}

/// All reports of a wiki, oldest first.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_evals(root: &VaultRoot, wiki: &str) -> Result<Vec<PlantedReport>, ReadWikiError> {
    read_log(root, wiki, EVALS)
}

fn name_progress(id: &str) -> String {
    format!("eval-{id}.jsonl")
}

/// The claims of some pages, as a verifier is asked about them. The seed chooses the pages.
fn read_claim_checks(folder: &WikiFolder, path: &str, seed: &str) -> Vec<ClaimCheck> {
    let mut files = folder.list_page_files();
    files.sort_by_cached_key(|file| ContentHash::hash_bytes(format!("{seed}\0{file}").as_bytes()));
    files.truncate(MAX_PAGES);
    let contents = folder.read_some(&files);
    let texts = read_cited(folder, &contents);
    let finders = texts.iter().map(|(id, text)| (id.clone(), text.finder())).collect();
    let file = |page: &WikiPage| {
        let path = PagePath::new(path, &page.file).ok()?;
        Some(RunFile { path, before: None, after: Some(page.document.as_bytes().to_vec()) })
    };
    let files: Vec<RunFile> = contents.pages.iter().filter_map(file).collect();
    list_checks(&[], &files, &finders)
}

/// The texts of the sources that these pages cite. One that cannot be read is left out, and so are the claims on it.
fn read_cited(
    folder: &WikiFolder,
    contents: &WikiContents,
) -> BTreeMap<String, steward_domain::wiki::source_text::SourceText> {
    let claims = contents.pages.iter().map(|page| read_claims(page.document.body(), &page.body.disputed));
    let cited: BTreeSet<String> = claims.flat_map(|claims| claims.anchors).map(|(_, anchor)| anchor.source).collect();
    let read = |id: String| Some((id.clone(), read_text(folder, contents.sources.get(&id)?).ok()?));
    cited.into_iter().filter_map(read).collect()
}
