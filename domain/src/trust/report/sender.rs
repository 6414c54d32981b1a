//! Whether a sender may act: judged as in Suggest, with this sender alone at `act`, whatever the mode is now.
//!
//! In Suggest every source without a ceiling of its own waits for a person (`confirm`). So the cases of the sender that
//! would be live are those that only its ceiling holds. They are judged by [`SettingsClearance`]. One pass over the
//! cases serves all senders. It must not decide anything but the evidence: lowering a ceiling needs none.

use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::case::{ReplayRules, TrustCase};
use crate::trust::report::advice::{EvidenceBar, format_grouped};
use crate::trust::report::clearance::SettingsClearance;
use crate::trust::report::readiness::{MOST_MISSING_WHEN_NEAR, Readiness};
use crate::trust::tally::{ActedTally, CaseTally, MAX_SOURCES};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;

/// The cases that would be live by themselves, or only with one more sender at `act`, by class.
pub(super) type ActedByClass = [ActedTally; 4];

/// One pass over the cases.
#[derive(Clone, Debug)]
pub struct SenderPass {
    rules: ReplayRules,
    now: DateTime<Utc>,
    /// `None` counts every sender.
    only: Option<String>,
    /// The cases that are live without a further sender.
    acting: ActedByClass,
    /// By key.
    senders: BTreeMap<String, SenderTally>,
}

#[derive(Clone, Debug, Default)]
struct SenderTally {
    name: String,
    /// Every case that it supported.
    supported: [CaseTally; 4],
    /// The cases that are live only with this sender at `act`.
    newly: ActedByClass,
    /// The same by the key of each supporting source, with its name.
    sources: BTreeMap<String, (String, ActedByClass)>,
}

impl SenderTally {
    fn count_cases(&self) -> u64 {
        self.supported.iter().map(|tally| tally.total_count()).sum()
    }

    /// Whether no case of a class would be live, and all of them together are known to be below the bar. Other gates hold
    /// such a class today, and need not tomorrow.
    fn is_missed_in(&self, class: MutationClass, bar: &EvidenceBar) -> bool {
        let all = ActedTally { tally: self.supported[class as usize], ..ActedTally::default() };
        self.newly[class as usize].tally.total_count() == 0 && bar.is_missed_by(&all)
    }

    fn describe_bad_class(&self, class: MutationClass) -> String {
        let CaseTally { agreed, wrong, .. } = self.supported[class as usize];
        format!("{}: {agreed} of {} were right, and other gates held all of them", class.as_str(), agreed + wrong)
    }

    /// The further right cases that a class lacks. A class without a case that would be live lacks none, unless it is
    /// known to be bad.
    fn count_missing_in(&self, class: MutationClass, bar: &EvidenceBar) -> Option<u64> {
        let acted = &self.newly[class as usize];
        let lacks_none = acted.tally.total_count() == 0 && !self.is_missed_in(class, bar);
        if lacks_none { Some(0) } else { bar.count_missing_cases(acted) }
    }
}

/// How far one sender is from acting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SenderTrust {
    /// The source's key.
    pub source: String,
    /// Its name in the newest case. Untrusted.
    pub name: String,
    /// The classes that it supported cases of, in the order of [`MutationClass::ALL`].
    pub classes: Vec<SenderClassTrust>,
    pub readiness: Readiness,
    /// The further right cases in a row that it lacks; 0 if it lacks none. `None` if no number is enough.
    pub missing_cases: Option<u64>,
    /// Why it may not act, one sentence each. Empty if it may.
    pub shortfalls: Vec<String>,
}

/// The cases of one class of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SenderClassTrust {
    pub class: MutationClass,
    #[serde(flatten)]
    pub tally: CaseTally,
    /// The further right cases in a row that this class lacks. Only cases count that nothing but the sender's ceiling
    /// holds. 0 if there is none: then the class asks for nothing.
    pub missing_cases: Option<u64>,
}

impl SenderTrust {
    /// Why it may not act, in words. It may hold the names of sources.
    #[must_use]
    pub fn describe_refusal(&self) -> String {
        let missing = match self.missing_cases {
            Some(0) | None => return self.shortfalls.join("; "),
            Some(1) => "1 more right proposal is needed".to_owned(),
            Some(missing) => format!("{} more right proposals are needed", format_grouped(missing)),
        };
        // The other shortfalls say the same of parts of these cases.
        format!("{missing}: {}", self.shortfalls.first().map_or("", String::as_str))
    }
}

/// The settings of Suggest under the thresholds and class ceilings of a policy.
fn suggest_rules(policy: &DecisionPolicy) -> ReplayRules {
    let policy = DecisionPolicy { mode: Mode::Live, ..policy.clone() };
    ReplayRules { policy, default_ceiling: Ceiling::Confirm, sources: BTreeMap::new() }
}

fn with_sender(rules: &ReplayRules, key: &str) -> ReplayRules {
    let mut rules = rules.clone();
    rules.sources.insert(key.to_owned(), Ceiling::Act);
    rules
}

impl SenderPass {
    /// An empty pass over the cases of every sender. `now` is the moment at which feedback is read. Of the policy the
    /// thresholds and the ceilings of classes count.
    #[must_use]
    pub fn new(policy: &DecisionPolicy, now: DateTime<Utc>) -> Self {
        Self {
            rules: suggest_rules(policy),
            now,
            only: None,
            acting: ActedByClass::default(),
            senders: BTreeMap::new(),
        }
    }

    /// An empty pass for one sender, by its key. Its cases are read as if no person had set a ceiling on it, so that
    /// the result does not depend on how far it may go now.
    #[must_use]
    pub fn for_sender(source: &str, policy: &DecisionPolicy, now: DateTime<Utc>) -> Self {
        let mut pass = Self { only: Some(source.to_owned()), ..Self::new(policy, now) };
        pass.rules.sources.insert(source.to_owned(), Ceiling::Confirm);
        pass
    }

    fn counts_sender(&self, key: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == key)
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        let class = case.class as usize;
        for supporter in &case.supporters {
            if self.counts_sender(&supporter.key) {
                let sender = self.senders.entry(supporter.key.clone()).or_default();
                sender.name.clone_from(&supporter.name);
                sender.supported[class].add_case(case, self.now);
            }
        }
        if self.rules.replay_case(case) == Disposition::Live {
            if !case.is_repeated {
                self.acting[class].add_case(case, self.now);
            }
            return;
        }
        let mut cited: Vec<&str> = case.cited.iter().map(|source| source.key.as_str()).collect();
        cited.sort_unstable();
        cited.dedup();
        for key in cited {
            if !self.counts_sender(key) || with_sender(&self.rules, key).replay_case(case) != Disposition::Live {
                continue;
            }
            let sender = self.senders.entry(key.to_owned()).or_default();
            if !case.is_repeated {
                sender.newly[class].add_case(case, self.now);
            }
            for supporter in &case.supporters {
                let (name, acted) = sender.sources.entry(supporter.key.clone()).or_default();
                name.clone_from(&supporter.name);
                acted[class].add_case(case, self.now);
            }
        }
        if self.senders.len() > 2 * MAX_SOURCES {
            self.drop_smallest_senders();
        }
    }

    /// Keeps the senders with the most cases.
    fn drop_smallest_senders(&mut self) {
        let mut by_count: Vec<(u64, String)> =
            self.senders.iter().map(|(key, sender)| (sender.count_cases(), key.clone())).collect();
        by_count.sort_unstable();
        for (_, key) in by_count.into_iter().take(self.senders.len() - MAX_SOURCES) {
            self.senders.remove(&key);
        }
    }

    /// The senders with the most cases, the most first.
    #[must_use]
    pub fn list_senders(&self) -> Vec<&str> {
        let mut senders: Vec<(&String, &SenderTally)> = self.senders.iter().collect();
        senders.sort_by_key(|(_, sender)| std::cmp::Reverse(sender.count_cases()));
        senders.into_iter().take(MAX_SOURCES).map(|(key, _)| key.as_str()).collect()
    }

    /// Judges whether this sender may act. `ceiling` is the one that a person has set on it. A sender that may act
    /// already has no shortfalls.
    #[must_use]
    pub fn judge_sender(&self, key: &str, ceiling: Option<Ceiling>, bar: &EvidenceBar) -> SenderTrust {
        let none = SenderTally::default();
        let sender = self.senders.get(key).unwrap_or(&none);
        let clearance = SettingsClearance::from_tallies(
            with_sender(&self.rules, key),
            self.rules.clone(),
            self.now,
            [0, 1, 2, 3].map(|class: usize| self.acting[class].merge(&sender.newly[class])),
            sender.newly.clone(),
            sender.sources.clone(),
            BTreeMap::from([(key.to_owned(), ceiling)]),
        );
        let mut shortfalls = clearance.list_shortfalls(bar);
        let bad_classes = MutationClass::ALL.into_iter().filter(|class| sender.is_missed_in(*class, bar));
        shortfalls.extend(bad_classes.map(|class| sender.describe_bad_class(class)));
        let missing_cases = if shortfalls.is_empty() { Some(0) } else { count_missing(sender, bar) };
        let readiness = match missing_cases {
            _ if shortfalls.is_empty() => Readiness::Ready,
            Some(1..=MOST_MISSING_WHEN_NEAR) => Readiness::Nearly,
            Some(_) | None => Readiness::TooEarly,
        };
        let class_trust = |class: MutationClass| SenderClassTrust {
            class,
            tally: sender.supported[class as usize],
            missing_cases: sender.count_missing_in(class, bar),
        };
        SenderTrust {
            source: key.to_owned(),
            name: sender.name.clone(),
            classes: MutationClass::ALL
                .into_iter()
                .map(class_trust)
                .filter(|row| row.tally.total_count() > 0)
                .collect(),
            readiness,
            missing_cases,
            shortfalls,
        }
    }
}

/// The further right cases that a sender lacks: those of each class that it has cases of, or those of all classes
/// together if that is more.
fn count_missing(sender: &SenderTally, bar: &EvidenceBar) -> Option<u64> {
    let by_class = MutationClass::ALL.into_iter().map(|class| sender.count_missing_in(class, bar));
    let by_class = by_class.sum::<Option<u64>>()?;
    let all = sender.newly.iter().fold(ActedTally::default(), |all, acted| all.merge(acted));
    Some(by_class.max(bar.count_missing_cases(&all)?))
}

#[cfg(test)]
mod tests;
