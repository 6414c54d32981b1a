//! A review of a wiki: a model reads pages and says what contradicts, is stale, is missing, or should be linked.
//!
//! [`batch`] is one call. The model only reports. Two claims that it finds in contradiction are shown to it again, alone and with their
//! quotes, before they are reported to anybody. [`render`] makes the page of a review.

mod batch;
mod render;

use super::finding::{FindingCode, Severity, WikiFinding};
use super::page::WikiPage;
use super::pairs::{ClaimPair, Contradiction, PairedClaim, find_next_pairs, list_contradictions, list_paired_claims};
use super::verifier::{VerifierBatch, VerifierLine, VerifierStep, plan_call};
use crate::steward::clerk::TokenUsage;
use batch::divide_pages;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub use batch::{BatchReview, ReviewBatch};
pub use render::{ReviewPage, SoundCheck, render_review};

/// The most pages of a review.
pub const REVIEW_PAGES: usize = 30;
/// What is said of a wiki without a page to read.
pub const EMPTY_WIKI: &str = "Wiki is empty — nothing to lint.";

/// What a review found, beside contradictions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReviewFinding {
    /// A claim that is outdated by its own words.
    StaleClaim { claim: String, reason: String },
    /// Something that pages speak of and that has no page.
    MissingPage { title: String, reason: String },
    /// The slugs of a page and of another one that it should link.
    MissingLink { from: String, to: String },
    /// What the pages do not say, and the words to search for.
    Gap { gap: String, search: String },
}

/// A review, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WikiReview {
    /// 8 hex digits.
    pub id: String,
    /// The name of the wiki.
    pub wiki: String,
    /// The person's name, as they gave it.
    pub by: String,
    pub at: DateTime<Utc>,
    /// The model, as in `openai/gpt-4.1`.
    pub model: String,
    /// The files of the pages that were read.
    pub pages: Vec<String>,
    /// Those that the model confirmed with the quotes before it.
    pub contradictions: Vec<Contradiction>,
    /// How many it did not confirm.
    pub dropped: u64,
    pub findings: Vec<ReviewFinding>,
    pub tokens: TokenUsage,
}

impl WikiReview {
    /// Whether it names this claim.
    #[must_use]
    pub fn names(&self, claim: &str) -> bool {
        let is_stale =
            |it: &ReviewFinding| matches!(it, ReviewFinding::StaleClaim { claim: stale, .. } if stale == claim);
        self.contradictions.iter().any(|it| it.first == claim || it.second == claim)
            || self.findings.iter().any(is_stale)
    }

    /// What was found wrong, as findings of a lint. Gaps are none.
    #[must_use]
    pub fn list_as_findings(&self) -> Vec<WikiFinding> {
        let contradictions = self.contradictions.iter().map(|found| {
            let [file, other] = &found.files;
            let problem = format!("{} contradicts {} in {other}: {}", found.first, found.second, found.reason);
            let fix = "correct one, or put both into one `::: disputed` block";
            WikiFinding::new(FindingCode::Contradiction, Severity::Warn, file, &problem, fix)
        });
        let file = |slug: &str| {
            let is_page = |file: &&String| file.rsplit('/').next() == Some(format!("{slug}.md").as_str());
            self.pages.iter().find(is_page).cloned().unwrap_or_else(|| slug.to_owned())
        };
        let others = self.findings.iter().filter_map(|finding| {
            let (code, file, problem, fix) = match finding {
                ReviewFinding::StaleClaim { claim, reason } => {
                    let slug = claim.split('#').next().unwrap_or_default();
                    let fix = "correct it, or ingest a newer source";
                    (FindingCode::StaleClaim, file(slug), format!("{claim}: {reason}"), fix)
                }
                ReviewFinding::MissingPage { title, reason } => {
                    let problem = format!("there is no page about {title}: {reason}");
                    (FindingCode::MissingPage, String::new(), problem, "ingest a source about it, or write the page")
                }
                ReviewFinding::MissingLink { from, to } => {
                    (FindingCode::MissingLink, file(from), format!("it does not link [[{to}]]"), "add the link")
                }
                ReviewFinding::Gap { .. } => return None,
            };
            Some(WikiFinding::new(code, Severity::Info, &file, &problem, fix))
        });
        contradictions.chain(others).collect()
    }
}

/// The files in the order in which they are read: those that were never reviewed or least recently, then by their names.
#[must_use]
pub fn order_files(mut files: Vec<String>, reviewed: &BTreeMap<String, DateTime<Utc>>) -> Vec<String> {
    files.sort_by_cached_key(|file| (reviewed.get(file).copied(), file.clone()));
    files
}

/// A review with what the model said so far.
pub struct ReviewCase {
    batches: Vec<ReviewBatch>,
    /// All claims of the pages that are read.
    claims: Vec<PairedClaim>,
}

impl ReviewCase {
    /// The review of these pages.
    #[must_use]
    pub fn new(pages: &[&WikiPage], now: DateTime<Utc>) -> Self {
        Self { batches: divide_pages(pages, now), claims: list_paired_claims(pages.iter().copied()) }
    }

    #[must_use]
    pub fn count_pages(&self) -> usize {
        self.batches.iter().map(|batch| batch.pages.len()).sum()
    }

    /// The files of the pages.
    #[must_use]
    pub fn list_files(&self) -> Vec<String> {
        self.batches.iter().flat_map(|batch| &batch.pages).map(|page| page.file.clone()).collect()
    }

    /// What comes next, within so many calls: all pages, then the contradictions that were found on them.
    #[must_use]
    pub fn find_next_step(&self, lines: &[VerifierLine], max_calls: u64) -> VerifierStep {
        let given = list_given(lines);
        let open = self.batches.iter().find(|batch| !given.contains_key(batch.hash().as_str()));
        match open {
            Some(batch) => plan_call(VerifierBatch::Pages(batch.clone()), lines, max_calls),
            None => find_next_pairs(&self.list_pairs(lines), lines, max_calls),
        }
    }

    /// The pairs of claims that the model named as contradictions, each once.
    fn list_pairs(&self, lines: &[VerifierLine]) -> Vec<ClaimPair> {
        let given = list_given(lines);
        let find = |name: &str| self.claims.iter().find(|claim| claim.claim == name && !claim.is_disputed);
        let mut pairs: Vec<ClaimPair> = Vec::new();
        for review in self.batches.iter().filter_map(|batch| given.get(batch.hash().as_str())) {
            for [first, second] in &review.contradictions {
                let (Some(first), Some(second)) = (find(first), find(second)) else { continue };
                let (first, second) = if first.claim <= second.claim { (first, second) } else { (second, first) };
                let pair = ClaimPair::new(first.clone(), second.clone());
                if pairs.iter().all(|known| known.id != pair.id) {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    /// The contradictions that were confirmed, and how many were not.
    #[must_use]
    pub fn list_contradictions(&self, lines: &[VerifierLine]) -> (Vec<Contradiction>, u64) {
        let pairs = self.list_pairs(lines);
        let found = list_contradictions(&pairs, lines);
        let dropped = (pairs.len() - found.len()) as u64;
        (found, dropped)
    }

    /// What else was found, each once. `names` are the titles and aliases of all pages of the wiki, in lower case.
    #[must_use]
    pub fn list_findings(&self, lines: &[VerifierLine], names: &BTreeSet<String>) -> Vec<ReviewFinding> {
        let given = list_given(lines);
        let reviews = self.batches.iter().filter_map(|batch| given.get(batch.hash().as_str()));
        let all: BTreeSet<ReviewFinding> = reviews.flat_map(|review| review.findings.iter().cloned()).collect();
        let has_page = |it: &ReviewFinding| match it {
            ReviewFinding::MissingPage { title, .. } => names.contains(&title.trim().to_lowercase()),
            _ => false,
        };
        all.into_iter().filter(|it| !has_page(it)).collect()
    }
}

fn list_given(lines: &[VerifierLine]) -> BTreeMap<&str, &BatchReview> {
    let reviews = lines.iter().filter_map(|line| match line {
        VerifierLine::Reviewed { review, .. } => Some((review.pages_sha256.as_str(), review)),
        _ => None,
    });
    reviews.collect()
}

#[cfg(test)]
mod tests;
