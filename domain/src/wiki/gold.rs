//! Gold queries: questions whose answer a person found good. They are asked again later, and code compares the answers.
//!
//! Two answers are alike by the topics of the pages on which they rest, and by the quotes that they cite. Their words do not count,
//! because a model chooses others each time. A score is compared with the last one that was not broken, so measuring once more does
//! not end a hold.

use super::metrics::{MetricState, WikiMetric};
use super::page::WikiPage;
use super::query::{FiledKind, WikiAnswer};
use crate::steward::clerk::TokenUsage;
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How many gold queries one measurement asks at most.
pub const MAX_GOLD: usize = 30;

/// A question whose answer a person found good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldQuery {
    /// The id of the answer.
    pub id: String,
    pub question: String,
    /// The topics of the pages that were read for the answer.
    pub topics: BTreeSet<String>,
    /// The labels of the quotes that it cites.
    pub citations: BTreeSet<String>,
    /// The person who keeps it, as they gave their name.
    pub by: String,
    pub at: DateTime<Utc>,
}

/// How alike the answer of today is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoldScore {
    /// The id of the gold query.
    pub id: String,
    pub question: String,
    /// The share of the topics that both answers have, 0 to 1.
    pub topics: f64,
    /// The share of the cited quotes that both answers have, 0 to 1.
    pub citations: f64,
    /// The labels that are not cited any more.
    pub lost: BTreeSet<String>,
}

/// What asking the gold queries again came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoldReport {
    /// 8 hex digits.
    pub id: String,
    /// The name of the wiki.
    pub wiki: String,
    pub at: DateTime<Utc>,
    /// The person's name, as they gave it.
    pub by: String,
    /// Who answered: `rules`, or a model.
    pub model: String,
    /// The mean of all scores, 0 to 1.
    pub score: f64,
    /// The score with which it is compared; `None` without an earlier measurement.
    pub before: Option<f64>,
    pub answers: Vec<GoldScore>,
    pub tokens: TokenUsage,
}

impl GoldQuery {
    /// A gold query of an answer, with those of these pages that were read for it. `None` if it cites nothing, because nothing could
    /// be compared then.
    #[must_use]
    pub fn new(answer: &WikiAnswer, pages: &[WikiPage], by: String, at: DateTime<Utc>) -> Option<Self> {
        let citations = list_labels(answer);
        if citations.is_empty() {
            return None;
        }
        let (id, question) = (answer.id.clone(), answer.question.clone());
        Some(Self { id, question, topics: list_topics(answer, pages), citations, by, at })
    }

    /// Compares an answer of today, which was found on these pages.
    #[must_use]
    pub fn score(&self, answer: &WikiAnswer, pages: &[WikiPage]) -> GoldScore {
        let citations = list_labels(answer);
        GoldScore {
            id: self.id.clone(),
            question: self.question.clone(),
            topics: find_overlap(&self.topics, &list_topics(answer, pages)),
            citations: find_overlap(&self.citations, &citations),
            lost: self.citations.difference(&citations).cloned().collect(),
        }
    }
}

impl GoldScore {
    /// 1 if the answer has the topics and quotes of the one that was kept, and no others.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.topics * self.citations
    }
}

impl GoldReport {
    /// The mean score with its interval.
    #[must_use]
    pub fn rate(&self) -> RateEstimate {
        RateEstimate::from_mean(self.score, self.answers.len() as u64)
    }

    /// How the wiki stands by the score and the one before.
    #[must_use]
    pub fn state(&self) -> MetricState {
        WikiMetric::Retroactive.judge_against(&self.rate(), self.before)
    }
}

/// The mean of some scores; 0 if there are none.
#[must_use]
pub fn find_mean(answers: &[GoldScore]) -> f64 {
    let sum: f64 = answers.iter().map(GoldScore::value).sum();
    sum / answers.len().max(1) as f64
}

/// Takes as many as one measurement asks. Ids are hashes, so it is a sample, and the same one the next time.
#[must_use]
pub fn choose_gold(mut queries: Vec<GoldQuery>) -> Vec<GoldQuery> {
    queries.sort_by(|a, b| a.id.cmp(&b.id));
    queries.truncate(MAX_GOLD);
    queries
}

/// The score with which the next one is compared: the last one of the same writer that says enough and is not broken.
#[must_use]
pub fn find_reference<'r>(newest_last: impl DoubleEndedIterator<Item = &'r GoldReport>, model: &str) -> Option<f64> {
    let mut own = newest_last.rev().filter(|report| report.model == model);
    let last = own.find(|report| report.state() != MetricState::Unknown)?;
    if last.state() == MetricState::Broken { last.before } else { Some(last.score) }
}

fn list_labels(answer: &WikiAnswer) -> BTreeSet<String> {
    answer.citations.iter().map(|cited| cited.anchor.label.clone()).collect()
}

fn list_topics(answer: &WikiAnswer, pages: &[WikiPage]) -> BTreeSet<String> {
    // A page that keeps an answer is no other topic.
    let is_kept = |page: &WikiPage| page.kind.parse::<FiledKind>().is_ok();
    let read = pages.iter().filter(|page| answer.pages.contains(&page.file) && !is_kept(page));
    read.map(|page| page.topic().to_owned()).collect()
}

/// The share of what both sets hold, of all that they hold.
fn find_overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    match one.union(other).count() {
        0 => 1.0,
        all => one.intersection(other).count() as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests;
