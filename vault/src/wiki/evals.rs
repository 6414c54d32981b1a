//! Measures how many claims of a wiki their quotes carry, how well the verifier finds faults in copies of them, and how alike the
//! answers to gold queries are.
//!
//! The verdicts are kept call by call, so that a crash pays for none twice. The reports are kept for ever. Nothing of the wiki is
//! changed.

use crate::files::root::VaultRoot;
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::gold::{read_gold, read_reference};
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::quotes::read_text;
use crate::wiki::reviews::{choose_files, keep_review};
use crate::wiki::staged::RULES_WRITER;
use crate::wiki::state::{ReadWikiError, find_wiki_folder};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::plan::ContentHash;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::fidelity::{EvalMethod, FidelityReport, is_anchored, list_refused, sample_claims};
use steward_domain::wiki::gold::{GoldQuery, GoldReport, GoldScore, choose_gold, find_mean};
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::pairs::{
    ClaimPair, ConsistencyReport, find_next_pairs, list_contradictions, list_paired_claims, sample_pairs,
};
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::planted::{PlantedCase, PlantedReport, plant_faults, score_cases};
use steward_domain::wiki::review::{ReviewCase, WikiReview};
use steward_domain::wiki::verifier::{
    BATCH, ClaimCheck, ClaimVerdict, VerifierLine, VerifierProgress, VerifierStep, find_next_step, find_verifier_model,
    list_checks,
};

/// What a measurement is made of.
#[derive(Clone, Copy, Debug)]
pub struct EvalSample {
    pub method: EvalMethod,
    /// The most claims, pairs of them, or pages.
    pub claims: usize,
}

/// The reports of a wiki.
const EVALS: &str = "evals.jsonl";
/// The most pages from which claims are taken, and the most topics from which pairs are.
const MAX_PAGES: usize = 200;
const MAX_TOPICS: usize = 20;

/// A measurement that is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EvalReport {
    Fidelity(FidelityReport),
    Consistency(ConsistencyReport),
    Planted(PlantedReport),
    Gold(GoldReport),
}

impl EvalReport {
    fn id(&self) -> &str {
        match self {
            Self::Fidelity(report) => &report.id,
            Self::Consistency(report) => &report.id,
            Self::Planted(report) => &report.id,
            Self::Gold(report) => &report.id,
        }
    }

    /// Who asked for it, and when.
    #[must_use]
    pub fn find_request(&self) -> (&str, DateTime<Utc>) {
        match self {
            Self::Fidelity(report) => (&report.by, report.at),
            Self::Consistency(report) => (&report.by, report.at),
            Self::Planted(report) => (&report.by, report.at),
            Self::Gold(report) => (&report.by, report.at),
        }
    }
}

/// What is asked.
enum EvalQuestions {
    /// Claims as they stand.
    Fidelity(Vec<ClaimCheck>),
    /// Claims that are alike.
    Consistency(Vec<ClaimPair>),
    /// What is wrong with pages.
    Review(ReviewCase),
    /// Claims as they stand, and copies with faults.
    Planted(Vec<PlantedCase>),
    /// What a person asked before. The wiki answers, and not the verifier.
    Gold(Vec<GoldQuery>),
}

/// A measurement with what the verifier said so far.
pub struct EvalSession {
    root: VaultRoot,
    wiki: String,
    id: String,
    questions: EvalQuestions,
    lines: Vec<VerifierLine>,
}

impl EvalSession {
    /// Opens a measurement with this id, of at most so many claims. Opened again, it goes on.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn open(root: &VaultRoot, wiki: &str, id: &str, sample: EvalSample) -> Result<Self, ReadWikiError> {
        let path = find_wiki_folder(root, wiki)?;
        let failed = |source| ReadWikiError::Io { path: path.clone(), source };
        let folder = WikiFolder::open(&root.path().join(&path)).map_err(failed)?;
        let mut lines = read_log(root, wiki, &name_progress(id))?;
        let questions = match sample.method {
            EvalMethod::Fidelity => {
                EvalQuestions::Fidelity(sample_claims(read_claim_checks(&folder, &path, id), sample.claims, id))
            }
            EvalMethod::Consistency => {
                let claims = list_paired_claims(folder.read().pages.iter());
                EvalQuestions::Consistency(sample_pairs(claims, MAX_TOPICS, sample.claims, id))
            }
            EvalMethod::Review => {
                let known = lines.iter().find_map(|line| match line {
                    VerifierLine::Chosen { files } => Some(files.clone()),
                    _ => None,
                });
                let files = match known {
                    Some(files) => files,
                    // An edit of another page must not change what is read.
                    None => {
                        let files = choose_files(root, wiki, &folder, sample.claims)?;
                        keep_line(root, wiki, id, &mut lines, VerifierLine::Chosen { files: files.clone() })?;
                        files
                    }
                };
                let pages = folder.read_some(&files).pages;
                EvalQuestions::Review(ReviewCase::new(&pages.iter().collect::<Vec<_>>(), Utc::now()))
            }
            EvalMethod::Planted => {
                let checks: Vec<ClaimCheck> =
                    read_claim_checks(&folder, &path, id).into_iter().map(|(_, check)| check).collect();
                EvalQuestions::Planted(plant_faults(&checks, sample.claims, id))
            }
            EvalMethod::Gold => EvalQuestions::Gold(choose_gold(read_gold(root, wiki)?)),
        };
        Ok(Self { root: root.clone(), wiki: wiki.to_owned(), id: id.to_owned(), questions, lines })
    }

    /// How many claims, pairs, copies, pages or questions there are.
    #[must_use]
    pub fn count_cases(&self) -> usize {
        match &self.questions {
            EvalQuestions::Fidelity(claims) => claims.len(),
            EvalQuestions::Consistency(pairs) => pairs.len(),
            EvalQuestions::Review(case) => case.count_pages(),
            EvalQuestions::Planted(cases) => cases.len(),
            EvalQuestions::Gold(queries) => queries.len(),
        }
    }

    #[must_use]
    pub fn progress(&self) -> VerifierProgress {
        VerifierProgress::from_lines(&self.lines)
    }

    /// What the verifier is asked next. It is over when all cases are answered, whatever the verdicts are, or when the calls are used up.
    #[must_use]
    pub fn find_next_step(&self) -> VerifierStep {
        let checks: Vec<ClaimCheck> = match &self.questions {
            EvalQuestions::Fidelity(claims) => claims.iter().filter(|check| is_anchored(check)).cloned().collect(),
            EvalQuestions::Consistency(pairs) => return find_next_pairs(pairs, &self.lines, max_calls(pairs.len())),
            EvalQuestions::Review(case) => {
                return case.find_next_step(&self.lines, max_calls(case.count_pages() * BATCH));
            }
            EvalQuestions::Planted(cases) => cases.iter().map(|case| case.check.clone()).collect(),
            EvalQuestions::Gold(_) => return VerifierStep::Passed,
        };
        find_next_step(&checks, &self.lines, max_calls(checks.len()))
    }

    /// The first gold query without an answer.
    #[must_use]
    pub fn find_next_question(&self) -> Option<GoldQuery> {
        let EvalQuestions::Gold(queries) = &self.questions else { return None };
        queries.iter().find(|query| find_score(&self.lines, query).is_none()).cloned()
    }

    /// Keeps a line.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn append(&mut self, line: VerifierLine) -> Result<(), ReadWikiError> {
        keep_line(&self.root, &self.wiki, &self.id, &mut self.lines, line)
    }

    /// The titles and aliases of all pages, in lower case.
    fn list_names(&self) -> Result<BTreeSet<String>, ReadWikiError> {
        let path = find_wiki_folder(&self.root, &self.wiki)?;
        let folder = WikiFolder::open(&self.root.path().join(&path));
        let pages = folder.map_err(|source| ReadWikiError::Io { path, source })?.read().pages;
        let names = pages.iter().flat_map(|page| std::iter::once(&page.title).chain(&page.aliases));
        Ok(names.map(|name| name.to_lowercase()).collect())
    }

    /// Keeps the report. One that is kept already stays.
    ///
    /// # Errors
    /// [`ReadWikiError`].
    pub fn keep_report(&self, by: &str, at: DateTime<Utc>) -> Result<(), ReadWikiError> {
        let model = find_verifier_model(&self.lines).unwrap_or_default();
        let (mut verdicts, mut tokens) = (Vec::<ClaimVerdict>::new(), TokenUsage::default());
        for line in &self.lines {
            if let Some(clerk) = line.clerk() {
                tokens.prompt_tokens += clerk.tokens.prompt_tokens;
                tokens.completion_tokens += clerk.tokens.completion_tokens;
            }
            if let VerifierLine::Verdicts { verdicts: given, .. } = line {
                verdicts.extend(given.iter().cloned());
            }
        }
        let (id, wiki, by) = (self.id.clone(), self.wiki.clone(), by.to_owned());
        let report = match &self.questions {
            EvalQuestions::Fidelity(sample) => {
                let (claims, refused) = (sample.len() as u64, list_refused(sample, &verdicts));
                let supported = claims - refused.len() as u64;
                EvalReport::Fidelity(FidelityReport { id, wiki, at, by, model, claims, supported, refused, tokens })
            }
            EvalQuestions::Consistency(asked) => {
                let contradictions = list_contradictions(asked, &self.lines);
                let pairs = asked.len() as u64;
                let consistent = pairs - contradictions.len() as u64;
                EvalReport::Consistency(ConsistencyReport {
                    id,
                    wiki,
                    at,
                    by,
                    model,
                    pairs,
                    consistent,
                    contradictions,
                    tokens,
                })
            }
            EvalQuestions::Review(case) => {
                let (contradictions, dropped) = case.list_contradictions(&self.lines);
                let (pages, findings) = (case.list_files(), case.list_findings(&self.lines, &self.list_names()?));
                let review = WikiReview { id, wiki, by, at, model, pages, contradictions, dropped, findings, tokens };
                return keep_review(&self.root, review);
            }
            EvalQuestions::Planted(cases) => {
                let (faults, clean, refused) = score_cases(cases, &verdicts);
                EvalReport::Planted(PlantedReport { id, wiki, at, by, model, faults, clean, refused, tokens })
            }
            EvalQuestions::Gold(queries) => {
                let answers: Vec<GoldScore> =
                    queries.iter().filter_map(|query| find_score(&self.lines, query)).cloned().collect();
                let model = if model.is_empty() { RULES_WRITER.to_owned() } else { model };
                let (score, before) = (find_mean(&answers), read_reference(&self.root, &wiki, &model)?);
                EvalReport::Gold(GoldReport { id, wiki, at, by, model, score, before, answers, tokens })
            }
        };
        change_log(&self.root, &self.wiki, EVALS, |reports: &mut Vec<EvalReport>| {
            if reports.iter().all(|known| known.id() != report.id()) {
                reports.push(report);
            }
        })
    }
}

/// All reports of a wiki, oldest first.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_evals(root: &VaultRoot, wiki: &str) -> Result<Vec<EvalReport>, ReadWikiError> {
    read_log(root, wiki, EVALS)
}

/// Adds a line to the progress, and returns after it is durable.
fn keep_line(
    root: &VaultRoot,
    wiki: &str,
    id: &str,
    lines: &mut Vec<VerifierLine>,
    line: VerifierLine,
) -> Result<(), ReadWikiError> {
    let kept = line.clone();
    change_log(root, wiki, &name_progress(id), |lines: &mut Vec<VerifierLine>| lines.push(kept))?;
    lines.push(line);
    Ok(())
}

/// How alike the answer to a gold query is, if it was answered.
fn find_score<'l>(lines: &'l [VerifierLine], query: &GoldQuery) -> Option<&'l GoldScore> {
    lines.iter().find_map(|line| match line {
        VerifierLine::Answered { score, .. } if score.id == query.id => Some(score),
        _ => None,
    })
}

/// The calls for so many questions: twice as many as are needed, and at least 20. A page counts as the questions of one call.
fn max_calls(questions: usize) -> u64 {
    (2 * questions.div_ceil(BATCH) as u64).max(20)
}

fn name_progress(id: &str) -> String {
    format!("eval-{id}.jsonl")
}

/// The files of some pages. The seed chooses them.
fn sample_files(folder: &WikiFolder, seed: &str) -> Vec<String> {
    let mut files = folder.list_page_files();
    files.sort_by_cached_key(|file| ContentHash::hash_bytes(format!("{seed}\0{file}").as_bytes()));
    files.truncate(MAX_PAGES);
    files
}

/// The claims of some pages, as a verifier is asked about them, each with the topic of its page. The seed chooses the pages.
fn read_claim_checks(folder: &WikiFolder, path: &str, seed: &str) -> Vec<(String, ClaimCheck)> {
    let contents = folder.read_some(&sample_files(folder, seed));
    let texts = read_cited(folder, &contents);
    let finders = texts.iter().map(|(id, text)| (id.clone(), text.finder())).collect();
    let file = |page: &WikiPage| {
        let path = PagePath::new(path, &page.file).ok()?;
        Some(RunFile { path, before: None, after: Some(page.document.as_bytes().to_vec()) })
    };
    let files: Vec<RunFile> = contents.pages.iter().filter(|page| !page.is_report()).filter_map(file).collect();
    let topics: BTreeMap<&str, &str> = contents.pages.iter().map(|page| (page.file.as_str(), page.topic())).collect();
    let topic = |check: &ClaimCheck| topics.get(check.file.as_str()).copied().unwrap_or_default().to_owned();
    list_checks(&[], &files, &finders).into_iter().map(|check| (topic(&check), check)).collect()
}

/// The texts of the sources that these pages cite. One that cannot be read is left out, so no quote stands in it.
fn read_cited(
    folder: &WikiFolder,
    contents: &WikiContents,
) -> BTreeMap<String, steward_domain::wiki::source_text::SourceText> {
    let claims = contents.pages.iter().map(|page| read_claims(page.document.body(), &page.body.disputed));
    let cited: BTreeSet<String> = claims.flat_map(|claims| claims.anchors).map(|(_, anchor)| anchor.source).collect();
    let read = |id: String| Some((id.clone(), read_text(folder, contents.sources.get(&id)?).ok()?));
    cited.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_the_one_that_was_kept() {
        let score = GoldScore {
            id: "1a2b3c4d".into(),
            question: "When does it end?".into(),
            topics: 1.0,
            citations: 0.5,
            lost: BTreeSet::from(["c6107d23f".to_owned()]),
        };
        let report = EvalReport::Gold(GoldReport {
            id: "00000001".into(),
            wiki: "plot".into(),
            at: "2026-11-22T09:15:04Z".parse().unwrap(),
            by: "ann".into(),
            model: RULES_WRITER.into(),
            score: 0.5,
            before: None,
            answers: vec![score],
            tokens: TokenUsage::default(),
        });
        let line = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<EvalReport>(&line).unwrap(), report, "{line}");
    }
}
