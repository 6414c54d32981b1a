//! Candidates: the open records that an event may be about, by its words alone.
//!
//! `own` is the share of a record's own words (name and file name) that the event uses. Each word weighs
//! `1 + ln(N / n)` if `n` of the vault's `N` open records have it, because a rare word says more than a common one.
//! `subject` is the same share over the event's subject alone, `matter` the share of the words of a task's matter.
//! A task scores `0.7·own + 0.15·subject + 0.15·matter`. A matter scores `0.8·(0.85·own + 0.15·subject)`, because a
//! message about a task often names its matter as well. A record without a shared own word is no candidate.
//! The same input must give the same list.

use super::TargetOffer;
use super::words::split_words;
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::signal::MAX_CANDIDATES;
use crate::signals::stream::StreamEvent;
use std::collections::{BTreeMap, BTreeSet};

const OWN: f64 = 0.7;
const SUBJECT: f64 = 0.15;
const MATTER: f64 = 0.15;
/// The weight of a matter's score compared with a task's.
const MATTER_FACTOR: f64 = 0.8;

/// An open task or matter of the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecord {
    pub path: RecordPath,
    pub kind: RecordKind,
    pub name: String,
    /// The name of a task's matter.
    pub matter_name: Option<String>,
}

/// The open records of a vault, ready to be compared with many events.
#[derive(Clone, Debug, Default)]
pub struct CandidateMatcher {
    entries: Vec<CandidateEntry>,
    /// The number of each word that a name contains.
    words: BTreeMap<String, usize>,
    /// The weight of each word, by its number.
    weights: Vec<f64>,
    /// The entries that have the word among their own, by its number.
    entries_by_word: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct CandidateEntry {
    record: OpenRecord,
    own: BTreeSet<usize>,
    matter: BTreeSet<usize>,
}

impl CandidateMatcher {
    /// Splits the names of all open tasks and matters into words.
    #[must_use]
    pub fn new(records: Vec<OpenRecord>) -> Self {
        let own = |r: &OpenRecord| {
            split_words(&r.name).into_iter().chain(split_words(r.path.slug())).collect::<BTreeSet<String>>()
        };
        let matter = |r: &OpenRecord| r.matter_name.as_deref().map(split_words).unwrap_or_default();
        let texts: Vec<(BTreeSet<String>, Vec<String>)> = records.iter().map(|r| (own(r), matter(r))).collect();
        let mut words: BTreeMap<String, usize> =
            texts.iter().flat_map(|(own, matter)| own.iter().chain(matter)).map(|word| (word.clone(), 0)).collect();
        words.values_mut().enumerate().for_each(|(position, number)| *number = position);
        let mut entries_by_word = vec![Vec::new(); words.len()];
        let mut entries = Vec::new();
        for (record, (own, matter)) in records.into_iter().zip(texts) {
            let own: BTreeSet<usize> = own.iter().map(|word| words[word]).collect();
            let matter = matter.iter().map(|word| words[word]).collect();
            own.iter().for_each(|word| entries_by_word[*word].push(entries.len()));
            entries.push(CandidateEntry { record, own, matter });
        }
        let weight = |with_word: &Vec<usize>| 1.0 + (entries.len().max(1) as f64 / with_word.len().max(1) as f64).ln();
        let weights = entries_by_word.iter().map(weight).collect();
        Self { entries, words, weights, entries_by_word }
    }

    /// The records that the event is most likely about, the likeliest first. There are at most 5.
    #[must_use]
    pub fn choose_offers(&self, event: &StreamEvent) -> Vec<TargetOffer> {
        let subject = self.lookup_words(event.subject.as_deref().unwrap_or_default());
        let all: BTreeSet<usize> = self.lookup_words(&event.text).union(&subject).copied().collect();
        let sharing: BTreeSet<usize> = all.iter().flat_map(|word| &self.entries_by_word[*word]).copied().collect();
        let scored = sharing.into_iter().map(|i| &self.entries[i]).map(|e| (self.score_entry(e, &all, &subject), e));
        let mut scored: Vec<(f64, &CandidateEntry)> = scored.collect();
        scored.sort_by(|(a, e), (b, f)| b.total_cmp(a).then_with(|| e.record.path.cmp(&f.record.path)));
        let offer = |(score, entry): (f64, &CandidateEntry)| {
            let OpenRecord { path, kind, name, matter_name } = entry.record.clone();
            TargetOffer { path, kind, name, matter_name, score }
        };
        scored.into_iter().take(MAX_CANDIDATES).map(offer).collect()
    }

    fn lookup_words(&self, text: &str) -> BTreeSet<usize> {
        split_words(text).iter().filter_map(|word| self.words.get(word)).copied().collect()
    }

    /// The score, rounded to two digits. More digits would have no meaning.
    fn score_entry(&self, entry: &CandidateEntry, all: &BTreeSet<usize>, subject: &BTreeSet<usize>) -> f64 {
        let own = self.shared_weight(&entry.own, all);
        let subject = self.shared_weight(&entry.own, subject);
        let score = if entry.record.kind == RecordKind::Matter {
            MATTER_FACTOR * ((OWN + MATTER) * own + SUBJECT * subject)
        } else {
            OWN * own + SUBJECT * subject + MATTER * self.shared_weight(&entry.matter, all)
        };
        (score * 100.0).round().clamp(1.0, 100.0) / 100.0
    }

    /// The weighted share of `words` that `event_words` contains, 0 to 1.
    fn shared_weight(&self, words: &BTreeSet<usize>, event_words: &BTreeSet<usize>) -> f64 {
        let total: f64 = words.iter().map(|word| self.weights[*word]).sum();
        let shared: f64 = words.iter().filter(|word| event_words.contains(word)).map(|word| self.weights[*word]).sum();
        if total > 0.0 { shared / total } else { 0.0 }
    }
}
