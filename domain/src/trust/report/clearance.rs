//! The clearance of settings: whether the cases support writing them.
//!
//! More careful settings are always cleared. Bolder ones must pass these checks. All cases that they make live clear
//! the bar, and so do the newly live ones alone, and each class that they open, even if it never had a case. No class,
//! and no class from a source, is known to be below the bar. No threshold goes below every decided case. Unnamed
//! sources stay at `confirm`, because no case can support them. The shortfalls are sentences with names of sources.

use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::case::{ReplayRules, TrustCase};
use crate::trust::report::advice::{EvidenceBar, source_label};
use crate::trust::tally::{ActedTally, MAX_SOURCES, SourceTally};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// One pass over the cases.
#[derive(Clone, Debug)]
pub struct SettingsClearance {
    rules: ReplayRules,
    before: ReplayRules,
    now: DateTime<Utc>,
    classes: [ActedTally; 4],
    newly: [ActedTally; 4],
    /// The lowest confidence of a decided case that would be live.
    lowest: Option<f64>,
    /// The newly live cases by the key of each supporting source, with its name.
    sources: BTreeMap<String, (String, [ActedTally; 4])>,
    /// The sources in the settings that a case cites, with the ceilings that humans have set on them so far.
    current_ceilings: BTreeMap<String, Option<Ceiling>>,
}

impl SettingsClearance {
    /// An empty pass for `rules` instead of `before`. `now` is the moment at which feedback is read.
    #[must_use]
    pub fn new(rules: ReplayRules, before: ReplayRules, now: DateTime<Utc>) -> Self {
        let (classes, newly) = Default::default();
        Self {
            rules,
            before,
            now,
            classes,
            newly,
            lowest: None,
            sources: BTreeMap::new(),
            current_ceilings: BTreeMap::new(),
        }
    }

    /// A pass over cases that were counted elsewhere.
    pub(super) fn from_tallies(
        rules: ReplayRules,
        before: ReplayRules,
        now: DateTime<Utc>,
        classes: [ActedTally; 4],
        newly: [ActedTally; 4],
        sources: BTreeMap<String, (String, [ActedTally; 4])>,
        current_ceilings: BTreeMap<String, Option<Ceiling>>,
    ) -> Self {
        Self { classes, newly, sources, current_ceilings, ..Self::new(rules, before, now) }
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        for source in case.cited.iter().filter(|source| self.rules.sources.contains_key(&source.key)) {
            self.current_ceilings.insert(source.key.clone(), source.ceiling);
        }
        if self.rules.replay_case(case) != Disposition::Live {
            return;
        }
        let class = case.class as usize;
        if !case.is_repeated {
            self.classes[class].add_case(case, self.now);
            if case.feedback.is_agreement().is_some() {
                self.lowest = Some(self.lowest.map_or(case.confidence, |lowest| lowest.min(case.confidence)));
            }
        }
        if self.before.replay_case(case) == Disposition::Live {
            return;
        }
        if !case.is_repeated {
            self.newly[class].add_case(case, self.now);
        }
        for supporter in &case.supporters {
            let (name, by_class) = self.sources.entry(supporter.key.clone()).or_default();
            name.clone_from(&supporter.name);
            by_class[class].add_case(case, self.now);
        }
        if self.sources.len() > 2 * MAX_SOURCES {
            self.drop_smallest_sources();
        }
    }

    /// Keeps the sources with the most cases.
    fn drop_smallest_sources(&mut self) {
        let count = |by_class: &[ActedTally; 4]| by_class.iter().map(|acted| acted.tally.total_count()).sum::<u64>();
        let mut by_count: Vec<(u64, String)> =
            self.sources.iter().map(|(key, (_, by_class))| (count(by_class), key.clone())).collect();
        by_count.sort_unstable();
        for (_, key) in by_count.into_iter().take(MAX_SOURCES) {
            self.sources.remove(&key);
        }
    }

    /// The sources in the settings that no proposal cites.
    #[must_use]
    pub fn uncited_sources(&self) -> Vec<String> {
        self.rules.sources.keys().filter(|key| !self.current_ceilings.contains_key(*key)).cloned().collect()
    }

    /// The ceilings in the settings that humans have not set yet.
    #[must_use]
    pub fn ceilings_to_set(&self) -> BTreeMap<String, Ceiling> {
        let differs = |(key, wanted): &(&String, &Ceiling)| self.current_ceiling(key) != Some(**wanted);
        self.rules.sources.iter().filter(differs).map(|(key, wanted)| (key.clone(), *wanted)).collect()
    }

    fn current_ceiling(&self, key: &str) -> Option<Ceiling> {
        self.current_ceilings.get(key).copied().flatten()
    }

    /// Whether any disposition could be higher than before.
    #[must_use]
    pub fn is_bolder(&self) -> bool {
        let now = |key: &String| self.current_ceiling(key).unwrap_or(self.before.default_ceiling);
        self.rules.is_bolder_than(&self.before) || self.rules.sources.iter().any(|(key, wanted)| *wanted > now(key))
    }

    /// The reasons against the settings, one sentence each. There are none if the settings are not bolder than before.
    #[must_use]
    pub fn list_shortfalls(&self, bar: &EvidenceBar) -> Vec<String> {
        if !self.is_bolder() {
            return Vec::new();
        }
        let mut shortfalls = Vec::new();
        let all = self.classes.iter().fold(ActedTally::default(), |all, acted| all.merge(acted));
        shortfalls.extend(bar.describe_shortfall(&all).map(|why| format!("all cases that would be live: {why}")));
        shortfalls.extend(self.threshold_shortfall());
        let unnamed_sources_act = self.rules.default_ceiling == Ceiling::Act;
        if unnamed_sources_act && (self.is_mode_opened() || self.before.default_ceiling < Ceiling::Act) {
            shortfalls
                .push("unnamed sources may act, and no case supports them: add `--ceiling default=confirm`".into());
        }
        for class in MutationClass::ALL {
            let (acted, newly) = (&self.classes[class as usize], &self.newly[class as usize]);
            let may_act = self.rules.policy.class_ceiling(class) == Ceiling::Act;
            let raised = self.rules.policy.class_ceiling(class) > self.before.policy.class_ceiling(class)
                || (may_act && self.is_mode_opened());
            if newly.tally.total_count() == 0 && !raised {
                continue;
            }
            match bar.describe_shortfall(acted) {
                Some(why) => shortfalls.push(format!("{}: {why}", class.as_str())),
                None if bar.is_missed_by(newly) => shortfalls.push(describe_miss(class.as_str(), newly)),
                None => {}
            }
        }
        for (key, (name, by_class)) in &self.sources {
            let name = source_label(key, &SourceTally { name: name.clone(), ..SourceTally::default() });
            for class in MutationClass::ALL {
                let acted = &by_class[class as usize];
                if bar.is_missed_by(acted) {
                    shortfalls.push(describe_miss(&format!("{} from {name}", class.as_str()), acted));
                }
            }
        }
        shortfalls.extend(self.missing_ceiling_lines());
        if shortfalls.is_empty() {
            let newly = self.newly.iter().fold(ActedTally::default(), |all, acted| all.merge(acted));
            shortfalls
                .extend(bar.describe_shortfall(&newly).map(|why| format!("cases that would be newly live: {why}")));
        }
        shortfalls
    }

    /// Whether the mode changes from shadow to one that applies changes.
    fn is_mode_opened(&self) -> bool {
        self.before.policy.mode == Mode::Shadow && self.rules.policy.mode > Mode::Shadow
    }

    /// Refuses a lower threshold below every decided case, because nobody has judged such cases.
    fn threshold_shortfall(&self) -> Option<String> {
        let (new, old) = (&self.rules.policy, &self.before.policy);
        let threshold = |policy: &DecisionPolicy| match policy.mode {
            Mode::Shadow | Mode::LiveHighConfidenceOnly => policy.high_confidence_threshold,
            Mode::Live => policy.confidence_threshold,
        };
        let lowest = self.lowest?;
        let goes_down = new.confidence_threshold < old.confidence_threshold
            || new.high_confidence_threshold < old.high_confidence_threshold;
        (goes_down && threshold(new) < lowest).then(|| {
            format!("a threshold of {}: no decided case that would be live lies below {lowest:.2}", threshold(new))
        })
    }

    /// The lower ceilings that the settings assume. Only a human can write them, and they are not written yet.
    fn missing_ceiling_lines(&self) -> Vec<String> {
        let now = |key: &String| self.current_ceiling(key).unwrap_or(self.rules.default_ceiling);
        let lower = self.rules.sources.iter().filter(|(key, wanted)| **wanted < now(key));
        lower.map(|(key, wanted)| format!("{key}: set `ceiling: {}` in its instinct first", wanted.as_str())).collect()
    }
}

fn describe_miss(what: &str, acted: &ActedTally) -> String {
    let (tally, newest) = (acted.tally, acted.newest.count_wrong());
    format!(
        "{what} is known to be below the bar: {} agreed, {} wrong, {} without an answer for 14 days; \
         {} of the {} newest were wrong",
        tally.agreed, tally.wrong, tally.unanswered, newest.wrong, newest.of
    )
}

#[cfg(test)]
mod tests;
