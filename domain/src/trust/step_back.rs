//! Taking itself back: what is undone too often loses one step of its mode until a human raises it.
//!
//! Live changes of the last 7 days are counted for each source and each class. Where at least two were undone and
//! even the lower end of the 99 % Wilson interval of the rate (Wilson 1927) is above the budget, the mode goes
//! one step down: live, high confidence only, shadow. The interval is wider than the report's because it is looked
//! at every 10 minutes. A class answers for what its sources have not answered for: changes of a source that is
//! lowered, or was when they were made, count for no class. After a step down two more undos take the next one; what
//! was made before a human raised a subject counts no more. Before and after go by the chain, not by clocks.

use crate::decide::{Gate, GateName};
use crate::mode::{Mode, Policy};
use crate::mutation::MutationClass;
use crate::plan::{Landing, Plan};
use crate::trust::mark::{Subject, TrustMark};
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
pub struct Made {
    /// Its place in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub class: MutationClass,
    /// The keys of the sources that contributed to it.
    pub sources: Vec<String>,
    pub undone: Option<Undo>,
}

/// The record of an undo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Undo {
    /// Its place in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    pub id: String,
}

/// How far a subject may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// `None` where a human raised it.
    pub mode: Option<Mode>,
    /// Since when.
    pub since: DateTime<Utc>,
    /// The place of its mark in the chain of records.
    pub seq: u64,
}

/// The newest mark of each subject.
pub type Caps = BTreeMap<Subject, Cap>;

/// A step back that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBack {
    pub mark: TrustMark,
    /// The id and the moment of the newest undo that counted.
    pub cause: (String, DateTime<Utc>),
}

#[derive(Default)]
struct Tally {
    of: u32,
    undone: u32,
    /// Undone since the subject's last mark.
    fresh: u32,
    newest: Option<Undo>,
}

/// Which subjects are to go one step down, in the order of their names, sources first.
#[must_use]
pub fn due(made: &[Made], caps: &Caps, (mode, budget): (Mode, f64), now: DateTime<Utc>) -> Vec<StepBack> {
    let recent: Vec<&Made> = made.iter().filter(|m| m.at > now - WINDOW).collect();
    let of_sources = tally(&recent, caps, |m| m.sources.iter().cloned().map(Subject::Source).collect());
    let mut steps: Vec<StepBack> = of_sources.iter().filter_map(|t| step(t, caps, mode, budget)).collect();
    let answers_now: BTreeSet<Subject> = steps.iter().map(|s| s.mark.subject().clone()).collect();
    let has_answered = |source: &String, seq: u64| {
        let subject = Subject::Source(source.clone());
        let before = |cap: &Cap| cap.mode.is_some() || seq <= cap.seq;
        answers_now.contains(&subject) || caps.get(&subject).is_some_and(before)
    };
    let rest: Vec<&Made> =
        recent.into_iter().filter(|m| !m.sources.iter().any(|source| has_answered(source, m.seq))).collect();
    let of_classes = tally(&rest, caps, |m| vec![Subject::Class(m.class)]);
    steps.extend(of_classes.iter().filter_map(|t| step(t, caps, mode, budget)));
    steps
}

fn tally(made: &[&Made], caps: &Caps, subjects: impl Fn(&Made) -> Vec<Subject>) -> BTreeMap<Subject, Tally> {
    let mut all: BTreeMap<Subject, Tally> = BTreeMap::new();
    for one in made {
        for subject in subjects(one) {
            let cap = caps.get(&subject);
            if cap.is_some_and(|cap| cap.mode.is_none() && one.seq <= cap.seq) {
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

fn step((subject, tally): (&Subject, &Tally), caps: &Caps, mode: Mode, budget: f64) -> Option<StepBack> {
    let (at_least, _) = wilson::interval(tally.undone.into(), tally.of.into(), wilson::Z_99);
    if tally.fresh < MIN_UNDONE || at_least <= budget {
        return None;
    }
    let from = caps.get(subject).and_then(|cap| cap.mode).map_or(mode, |cap| cap.min(mode));
    let to = match from {
        Mode::Live => Mode::LiveHighConfidenceOnly,
        Mode::LiveHighConfidenceOnly => Mode::Shadow,
        Mode::Shadow => return None,
    };
    let (undone, of) = (tally.undone, tally.of);
    let mark = TrustMark::Lowered { subject: subject.clone(), from, to, undone, of, at_least, budget };
    let newest = tally.newest.as_ref()?;
    Some(StepBack { mark, cause: (newest.id.clone(), newest.at) })
}

impl Plan {
    /// The same plan, no livelier than its class and the sources that speak for it may be by now.
    ///
    /// Of several sources the one that may go furthest counts: one that was undone too often does not hold back
    /// what others say as well. A plan that would not be live stays as it is.
    #[must_use]
    pub fn within_trust(mut self, speaking: &[String], caps: &Caps, policy: &Policy) -> Self {
        if self.landing() != Landing::Live || !self.changes_the_record() {
            return self;
        }
        let cap = |subject: &Subject| caps.get(subject).and_then(|cap| cap.mode);
        let of = |source: &String| cap(&Subject::Source(source.clone())).unwrap_or(Mode::Live);
        let furthest = speaking.iter().map(|source| (of(source), source.as_str())).max_by_key(|(mode, _)| *mode);
        let class = self.draft.class.and_then(|class| Some((cap(&Subject::Class(class))?, class.word())));
        let lowest = furthest.into_iter().chain(class).min_by_key(|(mode, _)| *mode);
        let Some((mode, whose)) = lowest.filter(|(mode, _)| *mode < policy.mode) else { return self };
        let (confidence, needed) = (self.draft.confidence, policy.high_confidence_threshold);
        let found = format!("{} for {whose}, which was lowered", mode.word());
        match mode {
            Mode::Shadow => {
                let needed = format!("`steward trust raise {whose}`");
                self.draft.gates.push(Gate::new(GateName::Trust, false, found, needed));
                self.draft.landing = Landing::Shadow;
            }
            Mode::LiveHighConfidenceOnly | Mode::Live if confidence >= needed => {
                self.draft.gates.push(Gate::new(GateName::Trust, true, found, format!("confidence >= {needed}")));
            }
            Mode::LiveHighConfidenceOnly | Mode::Live => {
                self.draft.gates.push(Gate::new(GateName::Trust, false, found, format!("confidence >= {needed}")));
                self.draft.landing = Landing::Pending;
                self.draft.pending_confirmation = true;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests;
