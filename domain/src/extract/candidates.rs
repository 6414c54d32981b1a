//! Which records an event may be about, told by its words alone.
//!
//! `own` is the share of a record's own words (name and file name) that the event uses anywhere, each
//! word weighing `1 + ln(N / n)`, where `n` of the vault's `N` open records have it: a rare word tells
//! more than a common one. `subject` is the same share over the event's subject alone, and `matter` the
//! share of the words of a task's matter. A task scores `0.7·own + 0.15·subject + 0.15·matter`, a matter
//! `0.8·(0.85·own + 0.15·subject)`, for whoever speaks of a task often names its matter as well. What
//! shares no own word with the event is no candidate. The same input gives the same list.

use super::Offer;
use super::words::words;
use crate::path::{RecordKind, RecordPath};
use crate::signal::MAX_CANDIDATES;
use crate::stream::StreamEvent;
use std::collections::{BTreeMap, BTreeSet};

const OWN: f64 = 0.7;
const SUBJECT: f64 = 0.15;
const MATTER: f64 = 0.15;
/// What a matter's score is worth beside a task's.
const OF_A_MATTER: f64 = 0.8;

/// An open task or matter of the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub path: RecordPath,
    pub name: String,
    /// The name of a task's matter.
    pub matter_name: Option<String>,
}

/// The open records of a vault, ready to be compared with many events.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    known: Vec<Entry>,
    /// In how many records each word stands.
    counts: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Entry {
    known: Known,
    own: BTreeSet<String>,
    matter: BTreeSet<String>,
}

impl Candidates {
    /// Reads the names of all open tasks and matters; other kinds of records are left out.
    #[must_use]
    pub fn new(known: Vec<Known>) -> Self {
        let mut counts = BTreeMap::new();
        let mut entries = Vec::new();
        for one in known {
            if !matches!(one.path.kind(), RecordKind::Task | RecordKind::Matter) {
                continue;
            }
            let own: BTreeSet<String> = words(&one.name).into_iter().chain(words(one.path.slug())).collect();
            let matter = one.matter_name.as_deref().map(words).unwrap_or_default().into_iter().collect();
            for word in &own {
                *counts.entry(word.clone()).or_insert(0) += 1;
            }
            entries.push(Entry { known: one, own, matter });
        }
        Self { known: entries, counts }
    }

    /// The records that an event is likeliest about, at most 5, the likeliest first.
    #[must_use]
    pub fn choose(&self, event: &StreamEvent) -> Vec<Offer> {
        let subject: BTreeSet<String> = words(event.subject.as_deref().unwrap_or_default()).into_iter().collect();
        let mut all: BTreeSet<String> = words(&event.text).into_iter().collect();
        all.extend(subject.iter().cloned());
        let mut offers: Vec<Offer> = self.known.iter().filter_map(|e| self.offer(e, &all, &subject)).collect();
        offers.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
        offers.truncate(MAX_CANDIDATES);
        offers
    }

    fn offer(&self, entry: &Entry, all: &BTreeSet<String>, subject: &BTreeSet<String>) -> Option<Offer> {
        let own = self.share(&entry.own, all);
        if own <= 0.0 {
            return None;
        }
        let subject = self.share(&entry.own, subject);
        let score = if entry.known.path.kind() == RecordKind::Matter {
            OF_A_MATTER * ((OWN + MATTER) * own + SUBJECT * subject)
        } else {
            OWN * own + SUBJECT * subject + MATTER * self.share(&entry.matter, all)
        };
        let Known { path, name, matter_name } = entry.known.clone();
        // Two digits: what lies beyond them is not known.
        Some(Offer { path, name, matter_name, score: (score * 100.0).round().clamp(1.0, 100.0) / 100.0 })
    }

    /// How much of these words is among those, 0 to 1.
    fn share(&self, of: &BTreeSet<String>, among: &BTreeSet<String>) -> f64 {
        let total: f64 = of.iter().map(|w| self.weight(w)).sum();
        let met: f64 = of.iter().filter(|w| among.contains(*w)).map(|w| self.weight(w)).sum();
        if total > 0.0 { met / total } else { 0.0 }
    }

    fn weight(&self, word: &str) -> f64 {
        let having = self.counts.get(word).copied().unwrap_or(1).max(1);
        1.0 + (self.known.len().max(1) as f64 / having as f64).ln().max(0.0)
    }
}
