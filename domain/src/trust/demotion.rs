//! Demotion: a source or class whose changes are undone too often loses one step of its mode until a human restores it.
//!
//! The live changes of the last 7 days are counted for each source and each class. A subject is demoted if at least two
//! of them were undone and the lower end of the 99 % Wilson interval of the rate (Wilson 1927) is above the budget. The
//! mode then goes one step down: live, high confidence only, shadow. The interval is wider than the report's, because
//! this check runs every 10 minutes. The next step needs two more undos. Undos from before a restore must not count.
//! All unknown sources (never right before) also count as one subject, for the changes that no other source
//! supports, apart from demoted ones. A new name costs its sender nothing, and one undone change each would demote none
//! of them. A class counts only the rest: changes of a source that is demoted, or was when they were made, count for no
//! class. Neither do changes for which the unknown sources were demoted. Events are ordered by the chain of records.
//! Clocks must not decide the order.

use crate::action::mutation::MutationClass;
use crate::gates::mode::Mode;
use crate::trust::mark::{TrustMark, TrustSubject, short_source_name};
use crate::trust::wilson;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// The window in which changes count: 7 days.
pub const WINDOW: TimeDelta = TimeDelta::days(7);
/// The accepted rate of undone changes (`STEWARD_REVERSAL_BUDGET`, 0 to 1): 5 %.
pub const REVERSAL_BUDGET: f64 = 0.05;
/// Fewer undone changes demote nothing, because one click may be a mistake.
const MIN_UNDONE: u32 = 2;

/// One change that was made without a human's confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveChange {
    /// Its position in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub class: MutationClass,
    /// The sources that supported it.
    pub sources: Vec<ChangeSupporter>,
    pub undone: Option<LiveChangeUndo>,
}

/// A source that supports a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSupporter {
    /// The key by which trust identifies the source.
    pub key: String,
    /// The name of the source in the record. Untrusted.
    pub name: String,
    /// Whether the source was never right before, as far as is known now.
    pub is_unknown: bool,
}

/// The record of an undo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveChangeUndo {
    /// Its position in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub id: String,
}

/// How far trust lets a subject go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeCap {
    /// `None` if a human restored it.
    pub mode: Option<Mode>,
    /// The time from which it applies.
    pub since: DateTime<Utc>,
    /// The position of its mark in the chain of records.
    pub seq: u64,
}

/// The newest mark of each subject.
pub type ModeCaps = BTreeMap<TrustSubject, ModeCap>;

/// A demotion that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDemotion {
    pub mark: TrustMark,
    /// The id and the moment of the newest undo that counted.
    pub cause: (String, DateTime<Utc>),
}

#[derive(Default)]
struct DemotionTally {
    total: u32,
    undone: u32,
    /// Undone since the subject's last mark.
    undone_since_mark: u32,
    newest_undo: Option<LiveChangeUndo>,
}

/// Finds the demotions that are due: sources in the order of their names, then unknown sources, then classes.
#[must_use]
pub fn find_demotions(
    made: &[LiveChange],
    caps: &ModeCaps,
    mode: Mode,
    budget: f64,
    now: DateTime<Utc>,
) -> Vec<DueDemotion> {
    let recent: Vec<&LiveChange> = made.iter().filter(|m| m.at > now - WINDOW).collect();
    let find_due = |tallies: BTreeMap<TrustSubject, DemotionTally>| -> Vec<DueDemotion> {
        tallies
            .iter()
            .filter_map(|(subject, tally)| decide_demotion(subject, tally, caps, mode, budget, &recent))
            .collect()
    };
    let own_subjects =
        |m: &LiveChange| m.sources.iter().map(|source| TrustSubject::Source(source.key.clone())).collect();
    let mut steps = find_due(count_by_subject(&recent, caps, own_subjects));
    let mut demoted = DemotedSubjects { caps, now: steps.iter().map(|s| s.mark.subject().clone()).collect() };
    let (by_unknown, others): (Vec<&LiveChange>, Vec<&LiveChange>) =
        recent.iter().partition(|m| demoted.is_left_to_unknown_sources(m));
    let unknown_demotions = find_due(count_by_subject(&by_unknown, caps, |_| vec![TrustSubject::UnknownSources]));
    demoted.now.extend(unknown_demotions.iter().map(|s| s.mark.subject().clone()));
    steps.extend(unknown_demotions);
    let not_demoted =
        by_unknown.into_iter().filter(|m| !demoted.has_demoted(&TrustSubject::UnknownSources, m.seq)).chain(others);
    let rest: Vec<&LiveChange> = not_demoted
        .filter(|m| !m.sources.iter().any(|source| demoted.has_demoted_source(&source.key, m.seq)))
        .collect();
    steps.extend(find_due(count_by_subject(&rest, caps, |m| vec![TrustSubject::Class(m.class)])));
    steps
}

/// The subjects that were demoted for undone changes.
struct DemotedSubjects<'a> {
    caps: &'a ModeCaps,
    /// The subjects that this check demotes.
    now: BTreeSet<TrustSubject>,
}

impl DemotedSubjects<'_> {
    fn has_demoted(&self, subject: &TrustSubject, seq: u64) -> bool {
        let applied = |cap: &ModeCap| cap.mode.is_some() || seq <= cap.seq;
        self.now.contains(subject) || self.caps.get(subject).is_some_and(applied)
    }

    fn has_demoted_source(&self, key: &str, seq: u64) -> bool {
        self.has_demoted(&TrustSubject::Source(key.to_owned()), seq)
    }

    /// Whether all supporters of the change that were not demoted for it are unknown sources, and there is one.
    fn is_left_to_unknown_sources(&self, made: &LiveChange) -> bool {
        let mut rest = made.sources.iter().filter(|source| !self.has_demoted_source(&source.key, made.seq)).peekable();
        rest.peek().is_some() && rest.all(|source| source.is_unknown)
    }
}

fn count_by_subject(
    made: &[&LiveChange],
    caps: &ModeCaps,
    subjects: impl Fn(&LiveChange) -> Vec<TrustSubject>,
) -> BTreeMap<TrustSubject, DemotionTally> {
    let mut all: BTreeMap<TrustSubject, DemotionTally> = BTreeMap::new();
    for change in made {
        for subject in subjects(change) {
            let cap = caps.get(&subject);
            let forgiven =
                |cap: &ModeCap| cap.mode.is_none() && change.undone.as_ref().is_some_and(|undo| undo.seq <= cap.seq);
            if cap.is_some_and(forgiven) {
                continue;
            }
            let last_mark = cap.map_or(0, |cap| cap.seq);
            let tally = all.entry(subject).or_default();
            tally.total = tally.total.saturating_add(1);
            if let Some(undo) = &change.undone {
                tally.undone = tally.undone.saturating_add(1);
                let is_since_mark = u32::from(undo.seq > last_mark);
                tally.undone_since_mark = tally.undone_since_mark.saturating_add(is_since_mark);
                tally.newest_undo = tally.newest_undo.take().max(Some(undo.clone()));
            }
        }
    }
    all
}

fn decide_demotion(
    subject: &TrustSubject,
    tally: &DemotionTally,
    caps: &ModeCaps,
    mode: Mode,
    budget: f64,
    made: &[&LiveChange],
) -> Option<DueDemotion> {
    let (at_least, _) = wilson::score_interval(tally.undone.into(), tally.total.into(), wilson::Z_99);
    if tally.undone_since_mark < MIN_UNDONE || at_least <= budget {
        return None;
    }
    let from = caps.get(subject).and_then(|cap| cap.mode).map_or(mode, |cap| cap.min(mode));
    let to = match from {
        Mode::Live => Mode::LiveHighConfidenceOnly,
        Mode::LiveHighConfidenceOnly => Mode::Shadow,
        Mode::Shadow => return None,
    };
    let (undone, of, name) = (tally.undone, tally.total, newest_source_name(subject, made));
    let mark = TrustMark::Lowered { subject: subject.clone(), name, from, to, undone, of, at_least, budget };
    let newest = tally.newest_undo.as_ref()?;
    Some(DueDemotion { mark, cause: (newest.id.clone(), newest.at) })
}

/// The name of a source in its newest change, if the name says more than the key.
fn newest_source_name(subject: &TrustSubject, made: &[&LiveChange]) -> Option<String> {
    let TrustSubject::Source(key) = subject else { return None };
    let named = made.iter().flat_map(|m| m.sources.iter().map(|source| (m.seq, source)));
    let (_, newest) = named.filter(|(_, source)| source.key == *key).max_by_key(|(seq, _)| *seq)?;
    short_source_name(key, &newest.name)
}

#[cfg(test)]
mod tests;
