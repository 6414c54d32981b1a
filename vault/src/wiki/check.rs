//! A run that a model wrote, as another model checks it.
//!
//! What is checked is what is staged: a claim in other words or in another place is another check. Nothing is sent here.

use crate::files::root::VaultRoot;
use crate::wiki::ingest::read_texts;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{StagedRun, StagedRunError};
use crate::wiki::state::ReadWiki;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::pairs::{ClaimPair, find_next_pairs, list_unmarked, pair_with_known};
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::verifier::{
    ClaimCheck, VerifierLine, VerifierProgress, VerifierStep, count_calls, find_next_step, find_verifier_model,
    list_checks,
};
use steward_domain::wiki::writer::windows::cut_windows;

/// A staged run with what its verifier did.
pub struct VerifierSession {
    run: StagedRun,
    checks: Vec<ClaimCheck>,
    /// New claims beside known ones that may contradict them.
    pairs: Vec<ClaimPair>,
    lines: Vec<VerifierLine>,
    max_calls: u64,
}

impl VerifierSession {
    /// Opens the session of a run whose pages are staged.
    ///
    /// # Errors
    /// [`WikiRunError`].
    pub fn open(root: &VaultRoot, wiki: &ReadWiki, run: StagedRun) -> Result<Self, WikiRunError> {
        let files = run.read_staged()?.map(|(_, files)| files).unwrap_or_default();
        let (checks, max_calls) = read_checks(root, wiki, &run, &wiki.state.pages, &files)?;
        let lines = run.read_verifier()?;
        // They are asked about last, and finding them reads all pages.
        let is_open =
            matches!(find_next_step(&checks, &lines, max_calls), VerifierStep::Send { .. } | VerifierStep::Spent);
        let pairs = if is_open { Vec::new() } else { list_pairs(wiki, &run, &files) };
        Ok(Self { run, checks, pairs, lines, max_calls })
    }

    #[must_use]
    pub fn run(&self) -> &StagedRun {
        &self.run
    }

    /// Gives the run back.
    #[must_use]
    pub fn into_run(self) -> StagedRun {
        self.run
    }

    #[must_use]
    pub fn progress(&self) -> VerifierProgress {
        VerifierProgress::from_lines(&self.lines)
    }

    #[must_use]
    pub fn find_next_step(&self) -> VerifierStep {
        let found = match find_next_step(&self.checks, &self.lines, self.max_calls) {
            VerifierStep::Passed => Vec::new(),
            VerifierStep::Found(found) => found,
            step @ (VerifierStep::Send { .. } | VerifierStep::Spent) => return step,
        };
        // The writer hears of everything at once.
        let source = self.run.meta.source.as_ref().map_or("", |source| source.id.as_str());
        let unmarked = match find_next_pairs(&self.pairs, &self.lines, self.max_calls) {
            VerifierStep::Spent if found.is_empty() => return VerifierStep::Spent,
            step @ VerifierStep::Send { .. } => return step,
            _ => list_unmarked(&self.pairs, &self.lines, source),
        };
        match found.into_iter().chain(unmarked).collect::<Vec<_>>() {
            all if all.is_empty() => VerifierStep::Passed,
            all => VerifierStep::Found(all),
        }
    }

    /// Keeps a line.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn append(&mut self, line: VerifierLine) -> Result<(), StagedRunError> {
        self.run.append_verifier(&line)?;
        self.lines.push(line);
        Ok(())
    }
}

/// Who checked all claims of these files and found every one supported; `None` if nobody did.
pub(crate) fn find_verifier(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: &StagedRun,
    files: &[RunFile],
) -> Result<Option<String>, WikiRunError> {
    let lines = run.read_verifier()?;
    let Some(clerk) = find_verifier_model(&lines) else { return Ok(None) };
    let (checks, max_calls) = read_checks(root, wiki, run, &wiki.state.pages, files)?;
    Ok((find_next_step(&checks, &lines, max_calls) == VerifierStep::Passed).then_some(clerk))
}

fn list_pairs(wiki: &ReadWiki, run: &StagedRun, files: &[RunFile]) -> Vec<ClaimPair> {
    let source = run.meta.source.as_ref();
    source.map_or_else(Vec::new, |source| pair_with_known(&wiki.state.pages, files, &source.id))
}

/// Whether a run that was checked stands beside claims by now that nobody has compared it with.
pub(crate) fn has_new_pairs(wiki: &ReadWiki, run: &StagedRun, files: &[RunFile]) -> Result<bool, WikiRunError> {
    let lines = run.read_verifier()?;
    let is_checked = find_verifier_model(&lines).is_some();
    Ok(is_checked && find_next_pairs(&list_pairs(wiki, run, files), &lines, u64::MAX) != VerifierStep::Passed)
}

/// The claims of a run, and the most calls of its verifier.
fn read_checks(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: &StagedRun,
    pages: &[WikiPage],
    files: &[RunFile],
) -> Result<(Vec<ClaimCheck>, u64), WikiRunError> {
    let texts = read_texts(root, wiki, &run.meta, files)?;
    // The budget of an answer does not grow with the sources that it cites.
    let windows = match &run.meta.source {
        Some(_) => texts.values().map(|text| cut_windows(text.as_str(), text.is_markdown).len()).sum(),
        None => 1,
    };
    let finders = texts.iter().map(|(id, text)| (id.clone(), text.finder())).collect();
    Ok((list_checks(pages, files, &finders), count_calls(windows, &run.meta.limits)))
}
