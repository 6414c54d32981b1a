//! Taking itself back: what is undone too often loses one step of its mode until a human raises it.
//!
//! Live changes of the last 7 days are counted for each source and each class. Where at least two were undone and
//! even the lower end of the 99 % Wilson interval of the rate (Wilson 1927) is above the budget, the mode goes
//! one step down: live, high confidence only, shadow. The interval is wider than the report's because it is looked
//! at every 10 minutes. Sources that were never right before answer together, too, for what they carried: a name costs
//! its sender nothing, so one undone change each would lower nobody. A class answers for what neither its sources nor
//! strangers have answered for: changes of a source that is lowered, or was when they were made, count for no class.
//! After a step down two more undos take the next one; what was undone before a human raised a subject counts no more.
//! Before and after go by the chain, not by clocks.

use crate::action::mutation::MutationClass;
use crate::gates::mode::Mode;
use crate::trust::mark::{TrustMark, TrustSubject, short_source_name};
use crate::trust::wilson;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// The changes that count: those of 7 days.
pub const WINDOW: TimeDelta = TimeDelta::days(7);
/// The rate of undone changes that may be (`STEWARD_REVERSAL_BUDGET`, 0 to 1): 5 %.
pub const REVERSAL_BUDGET: f64 = 0.05;
/// Fewer undone changes lower nothing: one click may be a mistake.
const MIN_UNDONE: u32 = 2;

/// One change that was made without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveChange {
    /// Its place in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub class: MutationClass,
    /// The sources that spoke for it.
    pub sources: Vec<ChangeSupporter>,
    pub undone: Option<LiveChangeUndo>,
}

/// A source that speaks for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSupporter {
    /// The name by which trust goes.
    pub key: String,
    /// As the record names it. Untrusted.
    pub name: String,
    /// It was never right before, as far as is known by now.
    pub is_stranger: bool,
}

/// The record of an undo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LiveChangeUndo {
    /// Its place in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub id: String,
}

/// How far a subject may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeCap {
    /// `None` where a human raised it.
    pub mode: Option<Mode>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The place of its mark in the chain of records.
    pub seq: u64,
}

/// The newest mark of each subject.
pub type ModeCaps = BTreeMap<TrustSubject, ModeCap>;

/// A step back that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct DueDemotion {
    pub mark: TrustMark,
    /// The id and the moment of the newest undo that counted.
    pub cause: (String, DateTime<Utc>),
}

#[derive(Default)]
struct DemotionTally {
    of: u32,
    undone: u32,
    /// Undone since the subject's last mark.
    fresh: u32,
    newest: Option<LiveChangeUndo>,
}

/// Which subjects are to go one step down, in the order of their names: sources, strangers, classes.
#[must_use]
pub fn find_demotions(
    made: &[LiveChange],
    caps: &ModeCaps,
    mode: Mode,
    budget: f64,
    now: DateTime<Utc>,
) -> Vec<DueDemotion> {
    let recent: Vec<&LiveChange> = made.iter().filter(|m| m.at > now - WINDOW).collect();
    let steps_of = |tallies: BTreeMap<TrustSubject, DemotionTally>| -> Vec<DueDemotion> {
        tallies
            .iter()
            .filter_map(|(subject, tally)| decide_demotion(subject, tally, caps, mode, budget, &recent))
            .collect()
    };
    let own = |m: &LiveChange| m.sources.iter().map(|source| TrustSubject::Source(source.key.clone())).collect();
    let mut steps = steps_of(count_by_subject(&recent, caps, own));
    let mut answered = DemotedSubjects { caps, now: steps.iter().map(|s| s.mark.subject().clone()).collect() };
    let (carried, others): (Vec<&LiveChange>, Vec<&LiveChange>) =
        recent.iter().partition(|m| answered.is_left_to_unknown_sources(m));
    let of_strangers = steps_of(count_by_subject(&carried, caps, |_| vec![TrustSubject::Strangers]));
    answered.now.extend(of_strangers.iter().map(|s| s.mark.subject().clone()));
    steps.extend(of_strangers);
    let unanswered =
        carried.into_iter().filter(|m| !answered.has_demoted(&TrustSubject::Strangers, m.seq)).chain(others);
    let rest: Vec<&LiveChange> = unanswered
        .filter(|m| !m.sources.iter().any(|source| answered.has_demoted_source(&source.key, m.seq)))
        .collect();
    steps.extend(steps_of(count_by_subject(&rest, caps, |m| vec![TrustSubject::Class(m.class)])));
    steps
}

/// Who has answered for what was undone.
struct DemotedSubjects<'a> {
    caps: &'a ModeCaps,
    /// Those that go a step down this very moment.
    now: BTreeSet<TrustSubject>,
}

impl DemotedSubjects<'_> {
    fn has_demoted(&self, subject: &TrustSubject, seq: u64) -> bool {
        let before = |cap: &ModeCap| cap.mode.is_some() || seq <= cap.seq;
        self.now.contains(subject) || self.caps.get(subject).is_some_and(before)
    }

    fn has_demoted_source(&self, key: &str, seq: u64) -> bool {
        self.has_demoted(&TrustSubject::Source(key.to_owned()), seq)
    }

    /// Strangers speak for it, and nobody else who has not answered for it.
    fn is_left_to_unknown_sources(&self, made: &LiveChange) -> bool {
        let mut left = made.sources.iter().filter(|source| !self.has_demoted_source(&source.key, made.seq)).peekable();
        left.peek().is_some() && left.all(|source| source.is_stranger)
    }
}

fn count_by_subject(
    made: &[&LiveChange],
    caps: &ModeCaps,
    subjects: impl Fn(&LiveChange) -> Vec<TrustSubject>,
) -> BTreeMap<TrustSubject, DemotionTally> {
    let mut all: BTreeMap<TrustSubject, DemotionTally> = BTreeMap::new();
    for one in made {
        for subject in subjects(one) {
            let cap = caps.get(&subject);
            let forgiven =
                |cap: &ModeCap| cap.mode.is_none() && one.undone.as_ref().is_some_and(|undo| undo.seq <= cap.seq);
            if cap.is_some_and(forgiven) {
                continue;
            }
            let last = cap.map_or(0, |cap| cap.seq);
            let tally = all.entry(subject).or_default();
            tally.of = tally.of.saturating_add(1);
            if let Some(undo) = &one.undone {
                tally.undone = tally.undone.saturating_add(1);
                tally.fresh = tally.fresh.saturating_add(u32::from(undo.seq > last));
                tally.newest = tally.newest.take().max(Some(undo.clone()));
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
    let (at_least, _) = wilson::score_interval(tally.undone.into(), tally.of.into(), wilson::Z_99);
    if tally.fresh < MIN_UNDONE || at_least <= budget {
        return None;
    }
    let from = caps.get(subject).and_then(|cap| cap.mode).map_or(mode, |cap| cap.min(mode));
    let to = match from {
        Mode::Live => Mode::LiveHighConfidenceOnly,
        Mode::LiveHighConfidenceOnly => Mode::Shadow,
        Mode::Shadow => return None,
    };
    let (undone, of, name) = (tally.undone, tally.of, newest_source_name(subject, made));
    let mark = TrustMark::Lowered { subject: subject.clone(), name, from, to, undone, of, at_least, budget };
    let newest = tally.newest.as_ref()?;
    Some(DueDemotion { mark, cause: (newest.id.clone(), newest.at) })
}

/// As the newest change names a source, where that says more than its key.
fn newest_source_name(subject: &TrustSubject, made: &[&LiveChange]) -> Option<String> {
    let TrustSubject::Source(key) = subject else { return None };
    let named = made.iter().flat_map(|m| m.sources.iter().map(|source| (m.seq, source)));
    let (_, newest) = named.filter(|(_, source)| source.key == *key).max_by_key(|(seq, _)| *seq)?;
    short_source_name(key, &newest.name)
}

#[cfg(test)]
mod tests;
