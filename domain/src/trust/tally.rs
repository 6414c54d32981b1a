//! Counts of cases: how many agreed, were wrong or are open, and how many each mode would apply.
//!
//! Only counts are kept. So the order of the cases does not matter, and a million cases need no more memory than ten.
//! Of the newest cases a few are kept ([`crate::trust::report::newest`]). The number of sources must be bounded as
//! well, because anybody can make up names.

use crate::action::mutation::MutationClass;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::by_hand::ANSWER_WINDOW;
use crate::trust::case::{ReplayRules, TrustCase};
use crate::trust::outcome::ProposalFeedback;
use crate::trust::report::newest::NewestCases;
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The modes that apply changes, from the more careful to the bolder.
pub const ACTING_MODES: [Mode; 2] = [Mode::LiveHighConfidenceOnly, Mode::Live];
/// The most sources that are counted one by one. Those with the fewest cases are counted as one group.
pub const MAX_SOURCES: usize = 2_000;

/// The numbers of cases by their feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaseTally {
    pub agreed: u64,
    pub wrong: u64,
    pub open: u64,
    /// The open cases that are unanswered (see [`is_unanswered`]).
    pub unanswered: u64,
}

/// Whether nobody resolved a proposal within [`super::by_hand::ANSWER_WINDOW`] or made a change by hand.
///
/// For a repeated proposal the time starts with the first one. Silence is not neutral: people who agree often make the
/// change by hand and are seen, but people who disagree often do nothing.
#[must_use]
pub fn is_unanswered(case: &TrustCase, now: DateTime<Utc>) -> bool {
    case.feedback == ProposalFeedback::Open && now - case.since >= ANSWER_WINDOW
}

impl CaseTally {
    /// Counts one case with its feedback by `now`.
    pub fn add_case(&mut self, case: &TrustCase, now: DateTime<Utc>) {
        match case.feedback.is_agreement() {
            Some(true) => self.agreed += 1,
            Some(false) => self.wrong += 1,
            None => self.open += 1,
        }
        self.unanswered += u64::from(is_unanswered(case, now));
    }

    /// The sum of both.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            agreed: self.agreed + other.agreed,
            wrong: self.wrong + other.wrong,
            open: self.open + other.open,
            unanswered: self.unanswered + other.unanswered,
        }
    }

    /// The number of cases of which it is known whether they were right.
    #[must_use]
    pub fn decided_count(self) -> u64 {
        self.agreed + self.wrong
    }

    /// The number of all cases.
    #[must_use]
    pub fn total_count(self) -> u64 {
        self.decided_count() + self.open
    }

    /// The share of the decided cases that agreed.
    #[must_use]
    pub fn precision(self) -> RateEstimate {
        RateEstimate::new(self.agreed, self.decided_count())
    }

    /// The same if every unanswered case counts as wrong. No missing answer can make it worse.
    #[must_use]
    pub fn worst_case_precision(self) -> RateEstimate {
        RateEstimate::new(self.agreed, self.decided_count() + self.unanswered)
    }
}

impl Serialize for CaseTally {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct TallyFields {
            actions: u64,
            agreed: u64,
            wrong: u64,
            open: u64,
            unanswered: u64,
            precision: RateEstimate,
            worst_case: RateEstimate,
        }
        let Self { agreed, wrong, open, unanswered } = *self;
        let (actions, precision, worst_case) = (self.total_count(), self.precision(), self.worst_case_precision());
        TallyFields { actions, agreed, wrong, open, unanswered, precision, worst_case }.serialize(to)
    }
}

/// The cases that would be applied. They are the evidence for or against applying more of their kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActedTally {
    pub tally: CaseTally,
    pub newest: NewestCases,
}

impl ActedTally {
    /// Counts one case with its feedback by `now`.
    pub fn add_case(&mut self, case: &TrustCase, now: DateTime<Utc>) {
        self.tally.add_case(case, now);
        self.newest.add_case(case, now);
    }

    /// The sum of both.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self { tally: self.tally.merge(other.tally), newest: self.newest.merge(&other.newest) }
    }

    /// The same after this many further cases, all newer and all right.
    #[must_use]
    pub fn with_right_cases(&self, count: u64) -> Self {
        let tally = CaseTally { agreed: self.tally.agreed.saturating_add(count), ..self.tally };
        Self { tally, newest: self.newest.with_right_cases(count) }
    }
}

/// The cases of one kind, and those of them that each of [`ACTING_MODES`] would apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallyCell {
    pub all: CaseTally,
    pub through: [ActedTally; 2],
}

impl TallyCell {
    /// The sum of both.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let through = [0, 1].map(|step: usize| self.through[step].merge(&other.through[step]));
        Self { all: self.all.merge(other.all), through }
    }

    /// The share of all cases that one of [`ACTING_MODES`] would apply.
    #[must_use]
    pub fn step_coverage(&self, step: usize) -> RateEstimate {
        RateEstimate::new(self.through[step].tally.total_count(), self.all.total_count())
    }

    /// Counts one case with its feedback by `now`. `acts` says for each of [`ACTING_MODES`] whether it would apply the case.
    pub fn add_case(&mut self, case: &TrustCase, acts: [bool; 2], now: DateTime<Utc>) {
        self.all.add_case(case, now);
        for (acted, _) in self.through.iter_mut().zip(acts).filter(|(_, acts)| *acts) {
            acted.add_case(case, now);
        }
    }
}

/// The cases of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceTally {
    /// The name in the last case. Untrusted.
    pub name: String,
    /// By class, in the order of [`MutationClass::ALL`].
    pub classes: [TallyCell; 4],
}

impl SourceTally {
    /// The sum of all classes.
    #[must_use]
    pub fn sum_classes(&self) -> TallyCell {
        self.classes.iter().fold(TallyCell::default(), |all, cell| all.merge(cell))
    }
}

/// Cases by class and source, and those that each mode would apply with the present thresholds.
#[derive(Clone, Debug)]
pub struct TallyTable {
    steps: [ReplayRules; 2],
    now: DateTime<Utc>,
    pub classes: [TallyCell; 4],
    /// By key.
    pub sources: BTreeMap<String, SourceTally>,
    /// The sum of the sources beyond [`MAX_SOURCES`].
    pub others: SourceTally,
}

impl TallyTable {
    /// An empty table. `now` is the moment at which feedback is read.
    ///
    /// Only the policy's thresholds count. Its ceilings do not, because the report recommends those.
    #[must_use]
    pub fn new(policy: &DecisionPolicy, now: DateTime<Utc>) -> Self {
        let steps = ACTING_MODES.map(|mode| {
            let DecisionPolicy { confidence_threshold, high_confidence_threshold, .. } = *policy;
            let policy =
                DecisionPolicy { mode, confidence_threshold, high_confidence_threshold, ..DecisionPolicy::default() };
            ReplayRules { policy, default_ceiling: Ceiling::Act, sources: BTreeMap::new() }
        });
        Self { steps, now, classes: Default::default(), sources: BTreeMap::new(), others: SourceTally::default() }
    }

    /// Counts one case. Returns which of [`ACTING_MODES`] would apply it.
    pub fn add_case(&mut self, case: &TrustCase) -> [bool; 2] {
        let acts =
            [0, 1].map(|step: usize| self.steps[step].replay_case(case) == crate::action::plan::Disposition::Live);
        let class = case.class as usize;
        if !case.is_repeated {
            self.classes[class].add_case(case, acts, self.now);
        }
        for supporter in &case.supporters {
            if !self.sources.contains_key(&supporter.key) {
                self.sources.insert(supporter.key.clone(), SourceTally::default());
            }
            if let Some(source) = self.sources.get_mut(&supporter.key) {
                if source.name != supporter.name {
                    source.name.clone_from(&supporter.name);
                }
                source.classes[class].add_case(case, acts, self.now);
            }
        }
        if self.sources.len() > 2 * MAX_SOURCES {
            self.drop_smallest_sources();
        }
        acts
    }

    /// Keeps the [`MAX_SOURCES`] sources with the most cases. Among equals the first by name stay.
    pub fn drop_smallest_sources(&mut self) {
        let surplus = self.sources.len().saturating_sub(MAX_SOURCES);
        if surplus == 0 {
            return;
        }
        let count = |source: &SourceTally| source.sum_classes().all.total_count();
        let mut by_count: Vec<(u64, String)> = self.sources.iter().map(|(key, s)| (count(s), key.clone())).collect();
        by_count.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
        for (_, key) in by_count.into_iter().take(surplus) {
            let removed = self.sources.remove(&key).unwrap_or_default();
            for (mine, theirs) in self.others.classes.iter_mut().zip(removed.classes) {
                *mine = mine.merge(&theirs);
            }
        }
    }
}

/// The cases of one class of one source.
#[must_use]
pub fn class_cell(source: &SourceTally, class: MutationClass) -> &TallyCell {
    &source.classes[class as usize]
}
