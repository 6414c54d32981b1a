//! Whether settings are supported: only if the cases that they would act upon are reason enough.
//!
//! More careful settings always are. Bolder ones are if what they act upon clears the bar, all of it together, and what
//! they act upon newly by itself, and each class that they open, whether it ever had a case or not; if nothing in it is
//! known to be below the bar, no class, and no class from a source; if no threshold goes below what was ever decided; and
//! if sources that nobody named stay closed, because no case can speak for them. What is lacking is told in sentences
//! that hold names of sources.

use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::trust::case::{ReplayRules, TrustCase};
use crate::trust::report::advice::{EvidenceBar, source_label};
use crate::trust::tally::{ActedTally, MAX_SOURCES, SourceTally};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The pass over the cases.
#[derive(Clone, Debug)]
pub struct SettingsClearance {
    rules: ReplayRules,
    before: ReplayRules,
    now: DateTime<Utc>,
    classes: [ActedTally; 4],
    newly: [ActedTally; 4],
    /// The lowest confidence of what would be live and is decided.
    lowest: Option<f64>,
    /// What is newly acted upon, by the source that speaks for it, with its name.
    sources: BTreeMap<String, (String, [ActedTally; 4])>,
    /// Sources that are asked about and cited: what humans have set on them by now.
    asked: BTreeMap<String, Option<Ceiling>>,
}

impl SettingsClearance {
    /// Nothing counted yet: these settings instead of those, as cases stand at that moment.
    #[must_use]
    pub fn new(rules: ReplayRules, before: ReplayRules, now: DateTime<Utc>) -> Self {
        let (classes, newly) = Default::default();
        Self { rules, before, now, classes, newly, lowest: None, sources: BTreeMap::new(), asked: BTreeMap::new() }
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        for source in case.cited.iter().filter(|source| self.rules.sources.contains_key(&source.key)) {
            self.asked.insert(source.key.clone(), source.ceiling);
        }
        if self.rules.replay_case(case) != Disposition::Live {
            return;
        }
        let class = case.class as usize;
        if !case.again {
            self.classes[class].add_case(case, self.now);
            if case.lesson.is_agreement().is_some() {
                self.lowest = Some(self.lowest.map_or(case.confidence, |lowest| lowest.min(case.confidence)));
            }
        }
        if self.before.replay_case(case) == Disposition::Live {
            return;
        }
        if !case.again {
            self.newly[class].add_case(case, self.now);
        }
        for voice in &case.voices {
            let (name, of) = self.sources.entry(voice.key.clone()).or_default();
            name.clone_from(&voice.name);
            of[class].add_case(case, self.now);
        }
        if self.sources.len() > 2 * MAX_SOURCES {
            self.drop_smallest_sources();
        }
    }

    /// Leaves the sources that speak most.
    fn drop_smallest_sources(&mut self) {
        let count = |of: &[ActedTally; 4]| of.iter().map(|acted| acted.tally.total_count()).sum::<u64>();
        let mut by_count: Vec<(u64, String)> =
            self.sources.iter().map(|(key, (_, of))| (count(of), key.clone())).collect();
        by_count.sort_unstable();
        for (_, key) in by_count.into_iter().take(MAX_SOURCES) {
            self.sources.remove(&key);
        }
    }

    /// The sources that are asked about and that no proposal cites.
    #[must_use]
    pub fn uncited_sources(&self) -> Vec<String> {
        self.rules.sources.keys().filter(|key| !self.asked.contains_key(*key)).cloned().collect()
    }

    /// The ceilings that are asked for and that do not hold yet.
    #[must_use]
    pub fn ceilings_to_set(&self) -> BTreeMap<String, Ceiling> {
        let differs = |(key, asked): &(&String, &Ceiling)| self.asked.get(*key).copied().flatten() != Some(**asked);
        self.rules.sources.iter().filter(differs).map(|(key, asked)| (key.clone(), *asked)).collect()
    }

    /// Whether anything could land livelier than before.
    #[must_use]
    pub fn is_bolder(&self) -> bool {
        let now = |key: &String| self.asked.get(key).copied().flatten().unwrap_or(self.before.default_ceiling);
        self.rules.is_bolder_than(&self.before) || self.rules.sources.iter().any(|(key, asked)| *asked > now(key))
    }

    /// What is lacking, a sentence each; nothing if the settings are no bolder than those before.
    #[must_use]
    pub fn list_shortfalls(&self, bar: &EvidenceBar) -> Vec<String> {
        if !self.is_bolder() {
            return Vec::new();
        }
        let mut lacking = Vec::new();
        let all = self.classes.iter().fold(ActedTally::default(), |all, acted| all.merge(acted));
        lacking.extend(bar.describe_shortfall(&all).map(|why| format!("all that would be live: {why}")));
        lacking.extend(self.threshold_shortfall());
        let strangers_act = self.rules.default_ceiling == Ceiling::Act;
        if strangers_act && (self.is_mode_opened() || self.before.default_ceiling < Ceiling::Act) {
            lacking.push(
                "sources that nobody named may act, and no case speaks for them: `--ceiling default=confirm`".into(),
            );
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
                Some(why) => lacking.push(format!("{}: {why}", class.as_str())),
                None if bar.is_missed_by(newly) => lacking.push(describe_miss(class.as_str(), newly)),
                None => {}
            }
        }
        for (key, (name, of)) in &self.sources {
            let name = source_label(key, &SourceTally { name: name.clone(), ..SourceTally::default() });
            for class in MutationClass::ALL {
                let acted = &of[class as usize];
                if bar.is_missed_by(acted) {
                    lacking.push(describe_miss(&format!("{} from {name}", class.as_str()), acted));
                }
            }
        }
        lacking.extend(self.missing_ceiling_lines());
        if lacking.is_empty() {
            let newly = self.newly.iter().fold(ActedTally::default(), |all, acted| all.merge(acted));
            lacking.extend(bar.describe_shortfall(&newly).map(|why| format!("what would newly be live: {why}")));
        }
        lacking
    }

    /// From saying to acting: whatever is not held may act from then on.
    fn is_mode_opened(&self) -> bool {
        self.before.policy.mode == Mode::Shadow && self.rules.policy.mode > Mode::Shadow
    }

    /// A threshold that goes down below everything that was ever decided opens what nobody has judged.
    fn threshold_shortfall(&self) -> Option<String> {
        let (new, old) = (&self.rules.policy, &self.before.policy);
        let of = |policy: &DecisionPolicy| match policy.mode {
            Mode::Shadow | Mode::LiveHighConfidenceOnly => policy.high_confidence_threshold,
            Mode::Live => policy.confidence_threshold,
        };
        let lowest = self.lowest?;
        let goes_down = new.confidence_threshold < old.confidence_threshold
            || new.high_confidence_threshold < old.high_confidence_threshold;
        (goes_down && of(new) < lowest)
            .then(|| format!("a threshold of {}: no decided case that would be live lies below {lowest:.2}", of(new)))
    }

    /// What was replayed with a source held rests on a line that only a human writes, and that is not there yet.
    fn missing_ceiling_lines(&self) -> Vec<String> {
        let now = |key: &String| self.asked.get(key).copied().flatten().unwrap_or(self.rules.default_ceiling);
        let lowered = self.rules.sources.iter().filter(|(key, asked)| **asked < now(key));
        lowered
            .map(|(key, asked)| format!("{key}: `ceiling: {}` must stand in its instinct before", asked.as_str()))
            .collect()
    }
}

fn describe_miss(what: &str, acted: &ActedTally) -> String {
    let (tally, lately) = (acted.tally, acted.newest.count_wrong());
    format!(
        "{what} is known to be worse than that: {} agreed, {} wrong, {} without an answer for 14 days; of the {} newest {} wrong",
        tally.agreed, tally.wrong, tally.unanswered, lately.of, lately.wrong
    )
}

#[cfg(test)]
mod tests;
