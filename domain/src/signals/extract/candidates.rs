//! Which records an event may be about, told by its words alone.
//!
//! `own` is the share of a record's own words (name and file name) that the event uses anywhere, each
//! word weighing `1 + ln(N / n)`, where `n` of the vault's `N` open records have it: a rare word tells
//! more than a common one. `subject` is the same share over the event's subject alone, and `matter` the
//! share of the words of a task's matter. A task scores `0.7·own + 0.15·subject + 0.15·matter`, a matter
//! `0.8·(0.85·own + 0.15·subject)`, for whoever speaks of a task often names its matter as well. What
//! shares no own word with the event is no candidate. The same input gives the same list.

use super::TargetOffer;
use super::words::split_words;
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::signal::MAX_CANDIDATES;
use crate::signals::stream::StreamEvent;
use std::collections::{BTreeMap, BTreeSet};

const OWN: f64 = 0.7;
const SUBJECT: f64 = 0.15;
const MATTER: f64 = 0.15;
/// What a matter's score is worth beside a task's.
const OF_A_MATTER: f64 = 0.8;

/// An open task or matter of the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecord {
    pub path: RecordPath,
    pub name: String,
    /// The name of a task's matter.
    pub matter_name: Option<String>,
}

/// The open records of a vault, ready to be compared with many events.
#[derive(Clone, Debug, Default)]
pub struct CandidateMatcher {
    entries: Vec<CandidateEntry>,
    /// Every word of a name, by its place in the order of words.
    words: BTreeMap<String, usize>,
    /// What each of them weighs.
    weights: Vec<f64>,
    /// Which entries have it among their own.
    having: Vec<Vec<usize>>,
}

#[derive(Clone, Debug)]
struct CandidateEntry {
    known: OpenRecord,
    own: BTreeSet<usize>,
    matter: BTreeSet<usize>,
}

impl CandidateMatcher {
    /// Reads the names of all open tasks and matters; other kinds of records are left out.
    #[must_use]
    pub fn new(known: Vec<OpenRecord>) -> Self {
        let known: Vec<OpenRecord> =
            known.into_iter().filter(|k| matches!(k.path.kind(), RecordKind::Task | RecordKind::Matter)).collect();
        let own = |k: &OpenRecord| {
            split_words(&k.name).into_iter().chain(split_words(k.path.slug())).collect::<BTreeSet<String>>()
        };
        let matter = |k: &OpenRecord| k.matter_name.as_deref().map(split_words).unwrap_or_default();
        let texts: Vec<(BTreeSet<String>, Vec<String>)> = known.iter().map(|k| (own(k), matter(k))).collect();
        let mut words: BTreeMap<String, usize> =
            texts.iter().flat_map(|(own, matter)| own.iter().chain(matter)).map(|word| (word.clone(), 0)).collect();
        words.values_mut().enumerate().for_each(|(place, at)| *at = place);
        let mut having = vec![Vec::new(); words.len()];
        let mut entries = Vec::new();
        for (known, (own, matter)) in known.into_iter().zip(texts) {
            let own: BTreeSet<usize> = own.iter().map(|word| words[word]).collect();
            let matter = matter.iter().map(|word| words[word]).collect();
            own.iter().for_each(|word| having[*word].push(entries.len()));
            entries.push(CandidateEntry { known, own, matter });
        }
        let weight = |having: &Vec<usize>| 1.0 + (entries.len().max(1) as f64 / having.len().max(1) as f64).ln();
        let weights = having.iter().map(weight).collect();
        Self { entries, words, weights, having }
    }

    /// The records that an event is likeliest about, at most 5, the likeliest first.
    #[must_use]
    pub fn choose_offers(&self, event: &StreamEvent) -> Vec<TargetOffer> {
        let subject = self.lookup_words(event.subject.as_deref().unwrap_or_default());
        let all: BTreeSet<usize> = self.lookup_words(&event.text).union(&subject).copied().collect();
        let sharing: BTreeSet<usize> = all.iter().flat_map(|word| &self.having[*word]).copied().collect();
        let scored = sharing.into_iter().map(|at| &self.entries[at]).map(|e| (self.score_entry(e, &all, &subject), e));
        let mut scored: Vec<(f64, &CandidateEntry)> = scored.collect();
        scored.sort_by(|(a, e), (b, f)| b.total_cmp(a).then_with(|| e.known.path.cmp(&f.known.path)));
        let offer = |(score, entry): (f64, &CandidateEntry)| {
            let OpenRecord { path, name, matter_name } = entry.known.clone();
            TargetOffer { path, name, matter_name, score }
        };
        scored.into_iter().take(MAX_CANDIDATES).map(offer).collect()
    }

    fn lookup_words(&self, text: &str) -> BTreeSet<usize> {
        split_words(text).iter().filter_map(|word| self.words.get(word)).copied().collect()
    }

    /// Two digits: what lies beyond them is not known.
    fn score_entry(&self, entry: &CandidateEntry, all: &BTreeSet<usize>, subject: &BTreeSet<usize>) -> f64 {
        let own = self.shared_weight(&entry.own, all);
        let subject = self.shared_weight(&entry.own, subject);
        let score = if entry.known.path.kind() == RecordKind::Matter {
            OF_A_MATTER * ((OWN + MATTER) * own + SUBJECT * subject)
        } else {
            OWN * own + SUBJECT * subject + MATTER * self.shared_weight(&entry.matter, all)
        };
        (score * 100.0).round().clamp(1.0, 100.0) / 100.0
    }

    /// How much of these words is among those, 0 to 1.
    fn shared_weight(&self, of: &BTreeSet<usize>, among: &BTreeSet<usize>) -> f64 {
        let total: f64 = of.iter().map(|word| self.weights[*word]).sum();
        let met: f64 = of.iter().filter(|word| among.contains(word)).map(|word| self.weights[*word]).sum();
        if total > 0.0 { met / total } else { 0.0 }
    }
}
